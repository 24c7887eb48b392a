//! Derivatives of random programs, made and run without LLVM.

use gradus_ad::{
    ArgActivity, ClosureFacts, Mode, Options, ResultActivity, Root, Variant, differentiate,
};
use gradus_analysis::{AliasOptions, Closure};
use gradus_interp::{Machine, Options as Limits, Value};
use gradus_ir::{FuncId, Unit, print_function, verify_function};
use gradus_testkit::{CELLS, Functions, three_way};
use std::collections::BTreeSet;

/// Why a check fails.
pub enum Failure {
    /// The derivative is refused; that is no fault.
    Refused,
    /// It is wrong, or cannot be run.
    Wrong(String),
}

fn wrong(message: impl Into<String>) -> Failure {
    Failure::Wrong(message.into())
}

/// How a derivative is made.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Primal and derivatives are simplified, as the pipeline does.
    pub simplify: bool,
    /// What the tape plan may do.
    pub options: Options,
}

impl Choice {
    /// One of the ways to make a derivative, by the number of a program.
    pub fn of(seed: u64) -> Choice {
        Choice {
            simplify: seed.is_multiple_of(2),
            options: Options {
                recompute: !seed.is_multiple_of(5),
                variance_cost: !seed.is_multiple_of(7),
                redo_calls: !seed.is_multiple_of(3),
                ..Options::default()
            },
        }
    }
}

fn simplify(unit: &mut Unit, roots: &[FuncId]) {
    let closure = Closure::of(unit, roots);
    gradus_simplify::simplify_closure(unit, &closure, &AliasOptions::default());
}

/// Both derivatives of `@f`, and all that they call; gives the names of VJP and JVP.
fn derive(unit: &mut Unit, choice: &Choice) -> Result<(String, String), Failure> {
    if choice.simplify {
        let roots: Vec<FuncId> = unit.function("f").into_iter().collect();
        simplify(unit, &roots);
    }
    for func in unit.functions.ids() {
        if let Some(mut body) = unit.functions[func].body.take() {
            gradus_ad::calculus::expand_outputs(unit, &mut body);
            gradus_edit::loops_to_fors(unit, &mut body);
            unit.functions[func].body = Some(body);
        }
    }
    let func = unit.function("f").ok_or_else(|| wrong("there is no @f"))?;
    let args = vec![ArgActivity::Const, ArgActivity::Dup, ArgActivity::Active];
    let result = ResultActivity::Active;
    let root = Root {
        func,
        args: args.clone(),
        result,
    };
    let facts = ClosureFacts::of(unit, &root).map_err(|_| Failure::Refused)?;
    let variant = |mode| Variant {
        func,
        mode,
        width: 1,
        args: args.clone(),
        result,
        primal_result: false,
        overwritten: Vec::new(),
        strong_zero: false,
    };
    let roots = [variant(Mode::Combined), variant(Mode::Forward)];
    let names: Vec<String> = roots.iter().map(|v| v.symbol(unit)).collect();
    let mut work = roots.to_vec();
    let mut seen: BTreeSet<Variant> = roots.iter().cloned().collect();
    let mut made: Vec<FuncId> = Vec::new();
    while let Some(next) = work.get(made.len()).cloned() {
        let derived = differentiate(unit, &facts, &next, &choice.options);
        let derived = derived.map_err(|_| Failure::Refused)?;
        made.push(derived.func);
        work.extend(
            derived
                .needs
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
    Ok((names[0].clone(), names[1].clone()))
}

/// Calls a function on the numbers behind `%x`, those beside them, `%s` and whatever follows;
/// gives the result and both arrays.
fn call(
    unit: &Unit,
    name: &str,
    x: &[f64],
    beside: Option<&[f64]>,
    rest: &[f64],
) -> Result<(Vec<f64>, Vec<f64>, Vec<f64>), String> {
    let options = Limits {
        max_steps: 1_000_000,
        ..Limits::default()
    };
    let mut machine = Machine::with_options(unit, options);
    let told = |trap: gradus_interp::Trap| trap.to_string();
    let memory = machine.alloc_f64(x).map_err(told)?;
    let mut args = vec![Value::i64(5), Value::ptr(memory)];
    let shadow = machine.alloc_f64(beside.unwrap_or(&[])).map_err(told)?;
    if beside.is_some() {
        args.push(Value::ptr(shadow));
    }
    args.extend(rest.iter().map(|s| Value::f64(*s)));
    let value = machine.call(name, &args).map_err(told)?;
    let numbers = match &value {
        Some(Value::Many(members)) => members.iter().map(Value::as_f64).collect(),
        Some(value) => vec![value.as_f64()],
        None => Vec::new(),
    };
    let numbers: Option<Vec<f64>> = numbers.into_iter().collect();
    let x = machine.read_f64(memory, CELLS).map_err(told)?;
    let shadow = machine
        .read_f64(shadow, beside.map_or(0, <[f64]>::len))
        .map_err(told)?;
    Ok((numbers.ok_or("a result is undefined")?, x, shadow))
}

/// Checks both derivatives of `@f` at one point: the inputs are the cells and `%s`, the outputs
/// the result and the cells afterwards.
pub fn check(primal: &Unit, choice: &Choice) -> Result<(), Failure> {
    let mut unit = primal.clone();
    let (vjp, jvp) = derive(&mut unit, choice)?;
    let point: Vec<f64> = (0..=CELLS)
        .map(|i| 0.37 * ((i * 7 + 3) % 5) as f64 - 0.6)
        .collect();
    let split = |x: &[f64]| (x[..CELLS].to_vec(), x[CELLS]);
    let run_primal = |x: &[f64]| {
        let (cells, s) = split(x);
        let (mut y, cells, _) = call(primal, "f", &cells, None, &[s])?;
        y.extend(cells);
        Ok(y)
    };
    let run_jvp = |x: &[f64], d: &[f64]| {
        let ((cells, s), (cells_tan, s_tan)) = (split(x), split(d));
        let (mut y, _, cells_tan) = call(&unit, &jvp, &cells, Some(&cells_tan), &[s, s_tan])?;
        y.extend(cells_tan);
        Ok(y)
    };
    let run_vjp = |x: &[f64], y_adj: &[f64]| {
        let (cells, s) = split(x);
        let rest = [s, y_adj[0]];
        let (s_adj, _, mut adjoint) = call(&unit, &vjp, &cells, Some(&y_adj[1..]), &rest)?;
        adjoint.extend(s_adj);
        Ok(adjoint)
    };
    let functions = Functions {
        primal: &run_primal,
        jvp: Some(&run_jvp),
        vjp: Some(&run_vjp),
        noise: 1e-14,
    };
    three_way(&functions, &point).map(drop).map_err(wrong)
}
