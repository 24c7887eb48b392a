//! Random programs have equal results in the interpreter, in LLVM after export, and in the interpreter
//! again after LLVM's optimiser and the import.
//!
//! `GRADUS_FUZZ` is the number of programs (a short run otherwise), `GRADUS_FUZZ_SEED` the first seed.

use gradus_interp::{Machine, Value};
use gradus_ir::{Layout, Unit, parse, print, verify};
use gradus_llvm::host::jit::{Arg, Jit};
use gradus_llvm::{Host, OptLevel, Pipeline};
use gradus_testkit::{CELLS, Style, program};

const N: i64 = 5;
const S: f64 = 0.3;
const X: [f64; CELLS] = [0.5, -1.0, 0.25, 2.0, 0.0, 1.5, -0.75, 0.125];

/// The result, and the final cells.
type Outcome = (f64, Vec<f64>);

fn interpreted(unit: &Unit) -> Result<Outcome, String> {
    let mut machine = Machine::new(unit);
    let x = machine.alloc_f64(&X).map_err(|t| t.to_string())?;
    let args = [Value::i64(N), Value::ptr(x), Value::f64(S)];
    let value = machine.call("f", &args).map_err(|t| t.to_string())?;
    let value = value.and_then(|v| v.as_f64()).ok_or("no result")?;
    Ok((
        value,
        machine.read_f64(x, CELLS).map_err(|t| t.to_string())?,
    ))
}

fn compiled(host: Host) -> Result<Outcome, String> {
    let jit = Jit::new(host, &["f"]).map_err(|d| d.to_string())?;
    let mut x = X;
    let mut args = [Arg::Int(N), Arg::F64s(&mut x), Arg::F64(S)];
    let value = jit.call("f", &mut args).map_err(|d| d.to_string())?.f64();
    Ok((value, x.to_vec()))
}

/// Returns a module with the functions of a unit.
fn exported(unit: &Unit) -> Result<Host, String> {
    let layout = Layout::default();
    let mut host = Host::create("program", "x86_64-unknown-linux-gnu", layout.text());
    // Export requires an imported host: here a host without functions.
    let _ = host.import_all();
    host.export_all(unit).map_err(|d| d.to_string())?;
    host.verify().map_err(|d| d.to_string())?;
    Ok(host)
}

fn same(what: &str, own: Result<Outcome, String>, expected: &Outcome) -> Result<(), String> {
    let own = own.map_err(|e| format!("{what}: {e}"))?;
    let close = |a: f64, b: f64| a == b || (a - b).abs() <= 1e-13 * a.abs().max(b.abs());
    let cells = std::iter::zip(&own.1, &expected.1).all(|(a, b)| close(*a, *b));
    match close(own.0, expected.0) && cells {
        true => Ok(()),
        false => Err(format!("{what}: {own:?}, not {expected:?}")),
    }
}

fn check(seed: u64) -> Result<(), String> {
    let style = Style {
        statements: 15 + seed as u32 % 4 * 15,
        depth: 2 + seed as u32 % 3,
        ..Style::default()
    };
    let mut unit = parse(&program(seed, style), "program").map_err(|d| d.to_string())?;
    for func in unit.functions.ids() {
        unit.functions[func].defined = false;
    }
    let expected = interpreted(&unit)?;
    same("exported", compiled(exported(&unit)?), &expected)?;
    for pipeline in [Pipeline::EarlySerial, Pipeline::Late(OptLevel::O3)] {
        let what = format!("after {pipeline:?}");
        let mut host = exported(&unit)?;
        host.run(pipeline).map_err(|d| d.to_string())?;
        let imported = host.import(&["f"]).map_err(|d| d.to_string())?;
        if let Some((func, why)) = imported.refused.first() {
            return Err(format!("{what}: {func:?} is not imported: {why:?}"));
        }
        if let Some(first) = verify(&imported.unit).first() {
            return Err(format!("{what}: {first} {:?}", first.notes));
        }
        let text = print(&imported.unit);
        let again = parse(&text, "printed").map_err(|d| format!("{what}: {d}"))?;
        same(&what, interpreted(&again), &expected)?;
        host.export_all(&imported.unit).map_err(|d| d.to_string())?;
        host.verify()
            .map_err(|d| format!("{what}, exported again: {d}"))?;
        same(
            &format!("{what}, exported again"),
            compiled(host),
            &expected,
        )?;
    }
    Ok(())
}

#[test]
fn export_optimiser_and_import_keep_the_meaning() {
    if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        return;
    }
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse().ok());
    let first: u64 = number("GRADUS_FUZZ_SEED").unwrap_or(0);
    let mut wrong = Vec::new();
    for seed in first..first + number("GRADUS_FUZZ").unwrap_or(12) {
        if let Err(message) = check(seed) {
            wrong.push(format!("seed {seed}: {message}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
