//! Programs compiled by clang and imported have equal results in the interpreter and on the machine: the
//! benchmark workloads, at every level, before and after the early pipeline.

use gradus_interp::{Machine, Options};
use gradus_ir::{Unit, parse, print, verify};
use gradus_llvm::host::jit::Jit;
use gradus_llvm::{Host, Pipeline};
use std::io::Write;
use std::process::{Command, Stdio};

/// Workloads with sizes that the interpreter runs quickly.
const WORKLOADS: &[(&str, &[&str])] = &[
    ("ba", &["4", "20", "40"]),
    ("bruss", &["6"]),
    ("cg", &["6", "5"]),
    ("fft", &["32"]),
    ("gmm", &["3", "4", "10"]),
    ("lstm", &["2", "4", "3"]),
    ("mlp", &["5", "6", "4", "3", "4"]),
    ("nbody", &["5", "3"]),
    ("rk4", &["4", "10"]),
    ("stencil", &["12", "3"]),
];

const LEVELS: &[&[&str]] = &[
    &["-O0"],
    &["-O1"],
    &["-O2"],
    &["-O3", "-march=x86-64-v3", "-ffp-contract=off"],
    &["-O2", "-g", "-Xclang", "-disable-llvm-passes"],
];

/// Returns the bitcode of a workload with a function `double probe(void)` that sets up and runs the
/// workload.
fn bitcode(name: &str, sizes: &[&str], flags: &[&str]) -> Vec<u8> {
    let bench = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench");
    let list: Vec<String> = sizes.iter().map(|s| format!("\"{s}\"")).collect();
    let text = format!(
        "#include \"{name}.c\"
         void {name}_gradient(const {name}_ctx *c, const double *x, double *a) {{ (void)c; (void)x; (void)a; }}
         double probe(void) {{
           static char *argv[] = {{{}}};
           course_problem p = {{0}};
           course.setup(&p, {}, argv);
           double r = course.objective(p.ctx, p.x);
           course.teardown(&p);
           return r;
         }}\n",
        list.join(", "),
        sizes.len()
    );
    let clang = std::env::var("GRADUS_CLANG").unwrap_or_else(|_| "clang-22".into());
    let mut child = Command::new(clang)
        .args(["-x", "c", "-", "-c", "-emit-llvm", "-o", "-", "-I", bench])
        .args(flags)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("clang starts");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(text.as_bytes()).expect("clang reads");
    drop(input);
    let output = child.wait_with_output().expect("clang ends");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

/// Checks that a unit passes the verifier and survives printing and parsing.
fn sound(unit: &Unit, what: &str) {
    let findings = verify(unit);
    let first = findings.first();
    assert!(
        findings.is_empty(),
        "{what}: {} findings, first {first:?}",
        findings.len()
    );
    let text = print(unit);
    let again = parse(&text, "printed").unwrap_or_else(|e| panic!("{what}: {e} {:?}", e.labels));
    let differs = std::iter::zip(text.lines(), print(&again).lines().map(str::to_string))
        .find(|(a, b)| a != b)
        .map(|(a, b)| format!("{a}\n{b}"));
    assert_eq!(differs, None, "{what}");
}

fn interpreted(unit: &Unit) -> Result<f64, String> {
    let options = Options {
        max_steps: 50_000_000,
        ..Options::default()
    };
    let mut machine = Machine::with_options(unit, options);
    match machine.call("probe", &[]) {
        Ok(Some(value)) => value.as_f64().ok_or(format!("the result is {value:?}")),
        Ok(None) => Err("no result".into()),
        Err(trap) => Err(trap.to_string()),
    }
}

#[test]
fn the_interpreter_agrees_with_the_machine() {
    let mut wrong = Vec::new();
    for (name, sizes) in WORKLOADS {
        for flags in LEVELS {
            let bytes = bitcode(name, sizes, flags);
            let host = Host::parse(&bytes, name).expect("bitcode");
            let jit = Jit::new(host, &["probe"]).expect("compiled");
            let compiled = jit.call("probe", &mut []).expect("runs").f64();
            for early in [false, true] {
                let what = format!("{name} {flags:?} early={early}");
                let mut host = Host::parse(&bytes, name).expect("bitcode");
                if early {
                    host.run(Pipeline::EarlySerial).expect("the pipeline runs");
                }
                let imported = host.import(&["probe"]).expect("imported");
                assert!(imported.refused.is_empty(), "{what}");
                sound(&imported.unit, &what);
                match interpreted(&imported.unit) {
                    Ok(own) if (own - compiled).abs() <= 1e-11 * compiled.abs() => {}
                    Ok(own) => {
                        wrong.push(format!("{what}: {own} interpreted, {compiled} compiled"))
                    }
                    Err(error) => wrong.push(format!("{what}: {error}")),
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
