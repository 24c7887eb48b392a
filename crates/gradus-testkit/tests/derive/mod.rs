//! Derivatives of random programs, emitted and interpreted without LLVM.

use gradus_ad::{
    ArgActivity, Mode, Options, ProgramFacts, ResultActivity, Root, Tangents, Variant,
    differentiate,
};
use gradus_analysis::{AliasOptions, Analyses};
use gradus_interp::{Machine, Options as Limits, Value};
use gradus_ir::{Diagnostic, FuncId, Unit, print_function, verify_function};
use gradus_testkit::{CELLS, Functions, three_way};
use std::collections::BTreeSet;

/// The reason of a failed check.
pub enum Failure {
    /// The derivative is refused, which is not a fault.
    Refused(String),
    /// The derivative is wrong, or cannot be run.
    Wrong(String),
}

fn refused(findings: Vec<Diagnostic>) -> Failure {
    Failure::Refused(
        findings
            .first()
            .map_or(String::new(), Diagnostic::to_string),
    )
}

fn wrong(message: impl Into<String>) -> Failure {
    Failure::Wrong(message.into())
}

/// The options of a derivative.
#[derive(Clone, Debug, Default)]
pub struct DerivativeOptions {
    /// True to simplify primal and derivatives, like the pipeline.
    pub simplify: bool,
    /// The options of the tape plan.
    pub options: Options,
    /// The number of simultaneous tangents or adjoints; 0 counts as 1.
    pub width: u32,
    /// What forward mode propagates.
    pub tangents: Tangents,
}

impl DerivativeOptions {
    /// Returns the options for the program of a seed.
    pub fn of(seed: u64) -> DerivativeOptions {
        DerivativeOptions {
            simplify: seed.is_multiple_of(2),
            options: Options {
                recompute: !seed.is_multiple_of(5),
                loop_variance_cost: !seed.is_multiple_of(7),
                recompute_calls: !seed.is_multiple_of(3),
                early_frees: !seed.is_multiple_of(5),
                save_conditions: !seed.is_multiple_of(4),
                shadow_pointers: seed % 6 != 1,
                segmented_tape: seed % 4 != 3,
                recompute_loops: seed % 8 != 5,
                recompute_loops_cost: seed % 3 != 1,
                ..Options::default()
            },
            width: 1,
            tangents: Tangents::Numbers,
        }
    }
}

fn simplify(unit: &mut Unit, roots: &[FuncId]) {
    let alias = AliasOptions::default();
    gradus_simplify::simplify_reachable(unit, &mut Analyses::default(), roots, &alias);
}

/// Normalises bodies for differentiation, like the pipeline.
fn prepare(unit: &mut Unit, roots: &[FuncId], choice: &DerivativeOptions) {
    if choice.simplify {
        simplify(unit, roots);
    }
    for func in unit.functions.ids() {
        if let Some(mut body) = unit.functions[func].body.take() {
            gradus_ad::calculus::legalize_calls(unit, &mut body);
            gradus_edit::loops_to_fors(unit, &mut body);
            unit.functions[func].body = Some(body);
        }
    }
}

/// Emits derivatives of a function in some modes, and all callees.
fn derive(
    unit: &mut Unit,
    name: &str,
    args: &[ArgActivity],
    modes: &[Mode],
    choice: &DerivativeOptions,
) -> Result<Vec<String>, Failure> {
    let func = unit
        .function(name)
        .ok_or_else(|| wrong("there is no such function"))?;
    prepare(unit, &[func], choice);
    let result = ResultActivity::Active;
    let root = Root {
        func,
        args: args.to_vec(),
        result,
    };
    let facts = ProgramFacts::of(unit, &mut Analyses::default(), &root).map_err(refused)?;
    let variant = |mode: &Mode| Variant {
        func,
        mode: *mode,
        width: choice.width.max(1),
        args: args.to_vec(),
        result,
        primal_result: false,
        overwritten: Vec::new(),
        tape: Default::default(),
        versions: Default::default(),
        strong_zero: false,
        tangents: choice.tangents,
        concurrent: false,
        outermost: false,
    };
    let roots: Vec<Variant> = modes.iter().map(variant).collect();
    let names: Vec<String> = roots.iter().map(|v| v.symbol(unit)).collect();
    let mut seen: BTreeSet<Variant> = roots.iter().cloned().collect();
    let mut work = roots;
    let mut made: Vec<FuncId> = Vec::new();
    while let Some(next) = work.get(made.len()).cloned() {
        let derived = differentiate(unit, &facts, &next, &choice.options);
        let derived = derived.map_err(refused)?;
        made.push(derived.func);
        work.extend(
            derived
                .required_variants
                .into_iter()
                .filter(|need| seen.insert(need.clone())),
        );
    }
    if choice.simplify {
        simplify(unit, &made);
    }
    for &func in &made {
        if let Some(first) = verify_function(unit, func).first() {
            let text = print_function(unit, func);
            return Err(wrong(format!("{first} {:?}\n{text}", first.notes)));
        }
    }
    Ok(names)
}

/// An argument of a derivative.
enum Arg<'a> {
    Number(f64),
    Cells(&'a [f64]),
}

/// Calls a function with `%n` = 5 and the arguments. Returns the result and the final arrays, concatenated.
fn call(unit: &Unit, name: &str, args: &[Arg]) -> Result<Vec<f64>, String> {
    let options = Limits {
        max_steps: 2_000_000,
        ..Limits::default()
    };
    let mut machine = Machine::with_options(unit, options);
    let told = |trap: gradus_interp::Trap| trap.to_string();
    let mut values = vec![Value::i64(5)];
    let mut arrays = Vec::new();
    for arg in args {
        values.push(match arg {
            Arg::Number(x) => Value::f64(*x),
            Arg::Cells(cells) => {
                let address = machine.alloc_f64(cells).map_err(told)?;
                arrays.push((address, cells.len()));
                Value::ptr(address)
            }
        });
    }
    let value = machine.call(name, &values).map_err(told)?;
    let mut numbers = match &value {
        Some(Value::Elements(members)) => members.iter().map(Value::as_f64).collect(),
        Some(value) => vec![value.as_f64()],
        None => Vec::new(),
    };
    for (address, count) in arrays {
        let cells = machine.read_f64(address, count).map_err(told)?;
        numbers.extend(cells.into_iter().map(Some));
    }
    numbers
        .into_iter()
        .collect::<Option<Vec<f64>>>()
        .ok_or("a result is undefined".into())
}

const ARGS: [ArgActivity; 3] = [ArgActivity::Const, ArgActivity::Dup, ArgActivity::Active];

fn point(count: usize) -> Vec<f64> {
    // All numbers are distinct and differ from the programs' constants: derivatives have no kinks there.
    (0..count)
        .map(|i| 0.37 * ((i * 7 + 3) % 5) as f64 - 0.6137 + 0.00113 * i as f64)
        .collect()
}

/// Checks both derivatives of `@f` at a point: the inputs are the cells and `%s`, the outputs the result
/// and the final cells.
pub fn check(primal: &Unit, choice: &DerivativeOptions) -> Result<(), Failure> {
    use Arg::{Cells, Number};
    let mut unit = primal.clone();
    let names = derive(
        &mut unit,
        "f",
        &ARGS,
        &[Mode::Combined, Mode::Forward],
        choice,
    )?;
    let run_primal = |x: &[f64]| call(primal, "f", &[Cells(&x[..CELLS]), Number(x[CELLS])]);
    let run_jvp = |x: &[f64], d: &[f64]| {
        let cells = (Cells(&x[..CELLS]), Cells(&d[..CELLS]));
        let args = [cells.0, cells.1, Number(x[CELLS]), Number(d[CELLS])];
        let mut y = call(&unit, &names[1], &args)?;
        y.drain(1..1 + CELLS);
        Ok(y)
    };
    let run_vjp = |x: &[f64], y_adj: &[f64]| {
        let cells = (Cells(&x[..CELLS]), Cells(&y_adj[1..]));
        let args = [cells.0, cells.1, Number(x[CELLS]), Number(y_adj[0])];
        let mut adjoint = call(&unit, &names[0], &args)?;
        adjoint.drain(1..1 + CELLS);
        adjoint.rotate_left(1);
        Ok(adjoint)
    };
    let functions = Functions {
        primal: &run_primal,
        jvp: Some(&run_jvp),
        vjp: Some(&run_vjp),
        noise: 1e-14,
    };
    three_way(&functions, &point(CELLS + 1))
        .map(drop)
        .map_err(wrong)
}

/// Checks the forward derivative of the reverse derivative of `@f`: Hessian-vector products.
pub fn check_second(primal: &Unit, choice: &DerivativeOptions) -> Result<(), Failure> {
    use Arg::{Cells, Number};
    let mut unit = primal.clone();
    let vjp = derive(&mut unit, "f", &ARGS, &[Mode::Combined], choice)?.remove(0);
    let first = unit.clone();
    let args = [
        ArgActivity::Const,
        ArgActivity::Dup,
        ArgActivity::Dup,
        ArgActivity::Active,
        ArgActivity::Active,
    ];
    let second = derive(&mut unit, &vjp, &args, &[Mode::Forward], choice)?.remove(0);
    let parts = |x: &[f64]| {
        (
            x[..CELLS].to_vec(),
            x[CELLS..2 * CELLS].to_vec(),
            x[2 * CELLS],
            x[2 * CELLS + 1],
        )
    };
    let run_vjp = |x: &[f64]| {
        let (cells, adjoints, s, y_adj) = parts(x);
        let args = [Cells(&cells), Cells(&adjoints), Number(s), Number(y_adj)];
        call(&first, &vjp, &args)
    };
    let run_second = |x: &[f64], d: &[f64]| {
        let (x, d) = (parts(x), parts(d));
        let args = [
            Cells(&x.0),
            Cells(&d.0),
            Cells(&x.1),
            Cells(&d.1),
            Number(x.2),
            Number(d.2),
            Number(x.3),
            Number(d.3),
        ];
        let y = call(&unit, &second, &args)?;
        let mut tangents = y[..1].to_vec();
        tangents.extend(&y[1 + CELLS..1 + 2 * CELLS]);
        tangents.extend(&y[1 + 3 * CELLS..]);
        Ok(tangents)
    };
    let functions = Functions {
        primal: &run_vjp,
        jvp: Some(&run_second),
        vjp: None,
        noise: 1e-14,
    };
    three_way(&functions, &point(2 * CELLS + 2))
        .map(drop)
        .map_err(wrong)
}

/// Checks that two simultaneous adjoints equal those of two runs.
pub fn check_width(primal: &Unit, choice: &DerivativeOptions) -> Result<(), Failure> {
    use Arg::{Cells, Number};
    let mut single = primal.clone();
    let one = derive(&mut single, "f", &ARGS, &[Mode::Combined], choice)?.remove(0);
    let wide = DerivativeOptions {
        width: 2,
        ..choice.clone()
    };
    let mut double = primal.clone();
    let two = derive(&mut double, "f", &ARGS, &[Mode::Combined], &wide)?.remove(0);
    let x = point(CELLS + 1);
    let seeds = [point(CELLS + 1), point(CELLS + 2)[1..].to_vec()];
    let (cells, s) = (Cells(&x[..CELLS]), Number(x[CELLS]));
    let shadows = (Cells(&seeds[0][1..]), Cells(&seeds[1][1..]));
    let seed = |lane: usize| Number(seeds[lane][0]);
    let args = [cells, shadows.0, shadows.1, s, seed(0), seed(1)];
    let both = call(&double, &two, &args).map_err(wrong)?;
    for lane in 0..2 {
        let (cells, s) = (Cells(&x[..CELLS]), Number(x[CELLS]));
        let args = [cells, Cells(&seeds[lane][1..]), s, seed(lane)];
        let own = call(&single, &one, &args).map_err(wrong)?;
        let mut expected = vec![own[0]];
        expected.extend(&own[1 + CELLS..]);
        let start = 2 + CELLS + lane * CELLS;
        let mut found = vec![both[lane]];
        found.extend(&both[start..start + CELLS]);
        for (a, b) in std::iter::zip(&found, &expected) {
            if (a - b).abs() > 1e-12 * a.abs().max(b.abs()) + 1e-14 {
                return Err(wrong(format!(
                    "lane {lane} of two gives {found:?}, alone {expected:?}"
                )));
            }
        }
    }
    Ok(())
}

/// The bits of the set with one input.
fn single_set(input: usize) -> f64 {
    f64::from_bits(1f64.to_bits() | 1 << input)
}

/// Returns true if a set has an input.
fn has_input(set: f64, input: usize) -> Result<bool, String> {
    match set.to_bits() {
        0 => Ok(false),
        bits if bits >> 52 == 1f64.to_bits() >> 52 => Ok(bits >> input & 1 == 1),
        bits => Err(format!("{bits:x} is not a set")),
    }
}

/// Checks that the dependency sets of `@f` and of its VJP contain each input with a non-zero derivative.
pub fn check_dependencies(primal: &Unit, choice: &DerivativeOptions) -> Result<(), Failure> {
    check_sets(primal, "f", &ARGS, choice)?;
    let mut unit = primal.clone();
    let vjp = derive(&mut unit, "f", &ARGS, &[Mode::Combined], choice)?.remove(0);
    let args = [
        ArgActivity::Const,
        ArgActivity::Dup,
        ArgActivity::Dup,
        ArgActivity::Active,
        ArgActivity::Active,
    ];
    check_sets(&unit, &vjp, &args, choice)
}

/// Compares the sets of a function with its Jacobian. The first argument is `%n`; pointers lead to cells.
fn check_sets(
    primal: &Unit,
    name: &str,
    args: &[ArgActivity],
    choice: &DerivativeOptions,
) -> Result<(), Failure> {
    let with_sets = DerivativeOptions {
        tangents: Tangents::Dependencies,
        ..choice.clone()
    };
    let (mut unit, mut set_unit) = (primal.clone(), primal.clone());
    let jvp = derive(&mut unit, name, args, &[Mode::Forward], choice)?.remove(0);
    let dep = derive(&mut set_unit, name, args, &[Mode::Forward], &with_sets)?.remove(0);
    let count_of = |arg: &ArgActivity| if *arg == ArgActivity::Dup { CELLS } else { 1 };
    let inputs: usize = args[1..].iter().map(count_of).sum();
    let x = point(inputs);
    // The arguments with their tangents; the results of the call are the tangents of the outputs.
    let run = |unit: &Unit, name: &str, tangents: &[f64]| {
        let (mut given, mut at) = (Vec::new(), 0);
        for arg in &args[1..] {
            let range = at..at + count_of(arg);
            at = range.end;
            for values in [&x, tangents] {
                given.push(match arg {
                    ArgActivity::Dup => Arg::Cells(&values[range.clone()]),
                    _ => Arg::Number(values[range.start]),
                });
            }
        }
        call(unit, name, &given)
    };
    let sets: Vec<f64> = (0..inputs).map(single_set).collect();
    let sets = run(&set_unit, &dep, &sets).map_err(wrong)?;
    // The results come first, then the cells of each pointer and of its shadow.
    let results = sets.len() - 2 * CELLS * args.iter().filter(|a| **a == ArgActivity::Dup).count();
    for input in 0..inputs {
        let mut direction = vec![0.0; inputs];
        direction[input] = 1.0;
        let column = run(&unit, &jvp, &direction).map_err(wrong)?;
        for (at, (&tangent, &set)) in column.iter().zip(&sets).enumerate() {
            let is_shadow = at < results || (at - results) / CELLS % 2 == 1;
            if is_shadow && tangent != 0.0 && !has_input(set, input).map_err(wrong)? {
                return Err(wrong(format!(
                    "output {at} of {name} has derivative {tangent:e} with respect to input {input}, which is not in its set"
                )));
            }
        }
    }
    Ok(())
}
