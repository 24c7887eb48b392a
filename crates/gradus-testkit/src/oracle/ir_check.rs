//! Checks IR programs, many per module, through the pipeline, with three oracles.
//!
//! Per batch: programs as text → a unit → LLVM bitcode → both derivatives of each → run in this process
//! without LLVM's optimiser and after its -O3. The oracles: reverse against forward mode by the dot test,
//! forward mode against finite differences, and the interpreter against the machine. The interpreter runs
//! primal and derivatives, and detects invalid accesses, double frees and leaks.
//!
//! A batch's number selects whether the early pipeline runs, and which switch is off.

use crate::generate::{CELLS, WideProgram, wide_declarations};
use crate::oracle::check::{Runner, Vector, check_all_points, directions, points};
use crate::run::compiled_module::{CompiledDerivatives, Module, Subject, compile_derivatives};
use crate::run::verdict::Verdict;
use gradus_interp::{Machine, Options as Limits, ReplayMode, TrapKind, Value};
use gradus_ir::{Diagnostic, Layout, Unit, parse, verify};
use gradus_llvm::{Host, OptLevel};
use gradus_pipeline::{Derivative, Level, Options, Role, switches};

/// The route of a batch of programs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WideRoute {
    /// True to differentiate the bodies as written, not after LLVM's early pipeline.
    pub skip_early_pipeline: bool,
    /// A switch of differentiation that is off.
    pub off: Option<&'static str>,
    /// True if LLVM's optimiser runs on the output.
    pub optimised: bool,
    /// True to verify all bodies and cached analyses after each pass: nine tenths of the time.
    pub verify_each: bool,
}

impl WideRoute {
    /// Returns the route of a batch: half of the batches as written, every second with a switch off. LLVM's
    /// optimiser runs on three of sixteen, the verification after each pass on one of nine.
    pub fn of(batch: u64) -> WideRoute {
        let half = batch as usize / 2;
        let off = match batch % 2 {
            0 => {
                let switches = switches();
                Some(switches[half % switches.len()])
            }
            _ => None,
        };
        WideRoute {
            // Signs set by masks must be rewritten to a differentiable form by either pipeline.
            skip_early_pipeline: matches!(batch % 4, 1 | 2) && off != Some("simplify"),
            off,
            optimised: matches!(batch % 16, 2 | 7 | 13),
            verify_each: batch % 9 == 0,
        }
    }

    fn options(&self) -> Options {
        Options {
            skip_early: self.skip_early_pipeline,
            skip_late: true,
            verify_each: self.verify_each,
            // Loops are recomputed wherever possible: in random programs it rarely pays.
            off: (self.off.into_iter())
                .chain((!self.optimised).then_some("recompute-loops-cost"))
                .map(str::to_string)
                .collect(),
            ..Options::default()
        }
    }
}

/// Returns the unit of some programs.
///
/// # Errors
/// A program that cannot be parsed or is rejected by the verifier: a fault of the generator.
pub fn wide_unit(programs: &[WideProgram]) -> Result<Unit, String> {
    let mut text = wide_declarations();
    programs.iter().for_each(|p| text.push_str(&p.text));
    let mut unit = parse(&text, "programs").map_err(|d| format!("{d} {:?}", d.labels))?;
    if let Some(first) = verify(&unit).first() {
        return Err(format!("{first} {:?}", first.notes));
    }
    for func in unit.functions.ids() {
        unit.functions[func].defined = false;
        let function = &mut unit.functions[func];
        if function.body.is_some() && !function.name.starts_with("f_") {
            function.linkage = gradus_ir::Linkage::Internal;
        }
    }
    Ok(unit)
}

/// Checks a unit's programs, each a function `f_SEED`, by a route. Returns a verdict for each.
///
/// # Errors
/// The unit cannot be exported, or the output cannot be loaded.
pub fn check_unit(
    unit: &Unit,
    programs: &[WideProgram],
    way: &WideRoute,
) -> Result<Vec<Verdict>, String> {
    let bytes = bitcode(unit)?;
    let subjects: Vec<Subject> = programs
        .iter()
        .map(|p| Subject {
            function: p.function.clone(),
            single: p.single,
        })
        .collect();
    let blamed = |d: &Diagnostic| {
        let (_, tag) = d.function.as_ref()?.rsplit_once('_')?;
        let own = |p: &WideProgram| p.function.strip_prefix("f_") == Some(tag);
        programs.iter().position(own)
    };
    let shown = |d: &Diagnostic| d.function.clone().unwrap_or_default();
    let (made, verdicts) = compile_derivatives(&Module {
        bytes: &bytes,
        subjects: &subjects,
        blamed: &blamed,
        shown: &shown,
        options: way.options(),
        level: Level::O0,
    })?;
    let Some(made) = made else {
        return Ok(verdicts.into_iter().flatten().collect());
    };
    let interpreted = interpreted_unit(&made)?;
    let level = way.optimised.then_some(OptLevel::O3);
    let loaded = made.load(level)?;
    let judge = |(i, verdict): (usize, Option<Verdict>)| {
        if let Some(verdict) = verdict {
            return verdict;
        }
        let found = Runner::new(&loaded, i, &subjects[i]).and_then(|runner| {
            let single = subjects[i].single;
            matches_interpreter(unit, &interpreted, &runner, &subjects[i])?;
            let along = |of: &Vector, at: &Vector, curves| {
                run_along_path(unit, &subjects[i], of, at, curves)
            };
            check_all_points(&runner, single, Some(&along))
        });
        Verdict::of(found)
    };
    Ok(verdicts.into_iter().enumerate().map(judge).collect())
}

/// Returns a module with the functions of a unit.
pub(crate) fn bitcode(unit: &Unit) -> Result<Vec<u8>, String> {
    let layout = Layout::default();
    let mut host = Host::create("programs", "x86_64-unknown-linux-gnu", layout.text());
    // Export requires an imported host: here a host without functions.
    let _ = host.import_all();
    host.export_all(unit).map_err(|d| d.to_string())?;
    host.verify().map_err(|d| d.to_string())?;
    Ok(host.to_bitcode())
}

/// Returns the derivatives before LLVM's optimiser, imported again.
fn interpreted_unit(made: &CompiledDerivatives) -> Result<Unit, String> {
    let pairs = made.derivatives.iter().flatten();
    let names: Vec<&str> = pairs
        .flat_map(|(vjp, jvp)| [vjp.name.as_str(), jvp.name.as_str()])
        .collect();
    import_functions(&made.bytes, &names)
}

/// Imports functions of a module, and their callees.
///
/// # Errors
/// The module cannot be read, or a function cannot be imported.
pub(crate) fn import_functions(bytes: &[u8], names: &[&str]) -> Result<Unit, String> {
    let mut host = Host::parse(bytes, "made.bc").map_err(|d| d.message)?;
    let imported = host.import(names).map_err(|d| d.message)?;
    match imported.refused.first() {
        Some((func, why)) => Err(format!("{func:?} cannot be imported: {why:?}")),
        None => Ok(imported.unit),
    }
}

/// Checks that primal and derivatives, in a single unit, have equal results in the interpreter and on the
/// machine, no races, and no leaks.
pub(crate) fn matches_interpreter_in_one_unit(
    unit: &Unit,
    runner: &Runner,
    subject: &Subject,
) -> Result<(), String> {
    let x = points()[0];
    match interpret(unit, &subject.function, &primal_arguments(&x))? {
        Some(own) => same("the primal", subject, &own, &runner.primal(&x)?)?,
        None => return Err("the interpreter does not support the program".into()),
    }
    derivatives_match_interpreter(unit, runner, subject)
}

/// Like [`matches_interpreter_in_one_unit`], for both derivatives.
fn derivatives_match_interpreter(
    unit: &Unit,
    runner: &Runner,
    subject: &Subject,
) -> Result<(), String> {
    let x = points()[0];
    let (x_tan, y_adj) = directions(0, 0);
    let (value, tangent) = runner.forward(&x, &x_tan)?;
    let arguments = arguments(runner.jvp, &x, &x_tan[..CELLS], x_tan[CELLS])?;
    if let Some(own) = interpret(unit, &runner.jvp.name, &arguments)? {
        same("the JVP", subject, &own, &interleaved(&value, &tangent))?;
    }
    let (value, mut adjoint) = runner.reverse(&x, &y_adj)?;
    adjoint.rotate_right(1);
    let arguments = self::arguments(runner.vjp, &x, &y_adj[1..], y_adj[0])?;
    match interpret(unit, &runner.vjp.name, &arguments)? {
        Some(own) => same("the VJP", subject, &own, &interleaved(&value, &adjoint)),
        None => Ok(()),
    }
}

/// Checks that primal and derivatives have equal results in the interpreter and on the machine, and no
/// leaks.
fn matches_interpreter(
    primal: &Unit,
    derived: &Unit,
    runner: &Runner,
    subject: &Subject,
) -> Result<(), String> {
    let x = points()[0];
    if let Some(own) = interpret(primal, &subject.function, &primal_arguments(&x))? {
        same("the primal", subject, &own, &runner.primal(&x)?)?;
    }
    derivatives_match_interpreter(derived, runner, subject)
}

/// Returns both results, then both arrays.
fn interleaved(value: &Vector, other: &Vector) -> Vec<f64> {
    let mut all = vec![value[0], other[0]];
    all.extend(&value[1..]);
    all.extend(&other[1..]);
    all
}

enum Argument<'a> {
    Int(i64),
    Number(f64),
    Cells(&'a [f64]),
}

fn primal_arguments(x: &Vector) -> [Argument<'_>; 3] {
    let cells = Argument::Cells(&x[..CELLS]);
    [
        Argument::Int(CELLS as i64),
        cells,
        Argument::Number(x[CELLS]),
    ]
}

/// Returns a derivative's arguments: the point, the shadow of `x`, and the other number.
fn arguments<'a>(
    derivative: &Derivative,
    x: &'a Vector,
    beside: &'a [f64],
    other: f64,
) -> Result<Vec<Argument<'a>>, String> {
    let one = |role: Role| match role {
        Role::Inactive(0) => Ok(Argument::Int(CELLS as i64)),
        Role::Active(1) => Ok(Argument::Cells(&x[..CELLS])),
        Role::Shadow(1, _) => Ok(Argument::Cells(beside)),
        Role::Active(2) => Ok(Argument::Number(x[CELLS])),
        Role::Shadow(2, _) | Role::Cotangent(_) => Ok(Argument::Number(other)),
        role => Err(format!("unexpected argument role {role:?}")),
    };
    derivative.arguments.iter().map(|a| one(a.role)).collect()
}

/// Returns the results and then the arrays of a call; `None` if the interpreter does not support it.
fn interpret(unit: &Unit, name: &str, arguments: &[Argument]) -> Result<Option<Vec<f64>>, String> {
    run(&mut machine(unit), name, arguments)
}

fn machine(unit: &Unit) -> Machine<'_> {
    let limits = Limits {
        max_steps: 5_000_000,
        races: true,
        ..Limits::default()
    };
    Machine::with_options(unit, limits)
}

/// Returns a program's outputs at a point along the path taken at another point; `None` if impossible, or
/// if the interpreter does not support the program.
pub(crate) fn run_along_path(
    unit: &Unit,
    subject: &Subject,
    of: &Vector,
    at: &Vector,
    curves: ReplayMode,
) -> Result<Option<Vector>, String> {
    let mut first = machine(unit);
    first.start_recording();
    if run(&mut first, &subject.function, &primal_arguments(of))?.is_none() {
        return Ok(None);
    }
    let mut second = machine(unit);
    second.start_replay(first.recorded_steps(), curves);
    let Ok(Some(found)) = run(&mut second, &subject.function, &primal_arguments(at)) else {
        // Not an error: along another point's path a program may fail in ways impossible on its own path.
        return Ok(None);
    };
    Ok(<Vector>::try_from(found)
        .ok()
        .filter(|_| second.has_replayed_all()))
}

/// Like [`interpret`], on a given machine.
fn run(
    machine: &mut Machine,
    name: &str,
    arguments: &[Argument],
) -> Result<Option<Vec<f64>>, String> {
    let told = |trap: gradus_interp::Trap| format!("the interpreter traps in {name}: {trap}");
    let (mut values, mut arrays) = (Vec::new(), Vec::new());
    for argument in arguments {
        values.push(match argument {
            Argument::Int(n) => Value::i64(*n),
            Argument::Number(x) => Value::f64(*x),
            Argument::Cells(cells) => {
                let address = machine.alloc_f64(cells).map_err(told)?;
                arrays.push(address);
                Value::ptr(address)
            }
        });
    }
    let result = match machine.call(name, &values) {
        Err(trap) if trap.kind == TrapKind::Unsupported => return Ok(None),
        other => other.map_err(told)?,
    };
    if machine.heap_blocks() > 0 {
        return Err(format!("in the interpreter, {name} leaks memory"));
    }
    let mut numbers: Vec<Option<f64>> = match &result {
        Some(Value::Elements(members)) => members.iter().map(Value::as_f64).collect(),
        Some(value) => vec![value.as_f64()],
        None => Vec::new(),
    };
    for address in arrays {
        let cells = machine.read_f64(address, CELLS).map_err(told)?;
        numbers.extend(cells.into_iter().map(Some));
    }
    let all: Option<Vec<f64>> = numbers.into_iter().collect();
    all.map(Some).ok_or(format!(
        "in the interpreter, {name} returns an undefined value"
    ))
}

fn same(what: &str, subject: &Subject, own: &[f64], machine: &[f64]) -> Result<(), String> {
    let tolerance = if subject.single { 1e-4 } else { 1e-9 };
    let scale = machine.iter().fold(1e-3, |m: f64, x| m.max(x.abs()));
    let apart = |(a, b): (&f64, &f64)| {
        let both_none = a.is_nan() && b.is_nan();
        a != b && !both_none && ((a - b).abs() > tolerance * scale || (a - b).is_nan())
    };
    match std::iter::zip(own, machine).position(apart) {
        Some(i) => Err(format!(
            "{what}: number {i} is {:e} in the interpreter, {:e} in compiled code",
            own[i], machine[i]
        )),
        None if own.len() != machine.len() => Err(format!("{what} returns {} numbers", own.len())),
        None => Ok(()),
    }
}
