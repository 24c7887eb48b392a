//! Case pages of derivatives: both modes of a GIR program, checked three ways.
//!
//! `run: ad -f NAME` differentiates NAME by every float and every pointer, except the parameters in `--const
//! a,b`.

use gradus_ad::{
    ArgActivity, Mode, Options, ProgramFacts, ResultActivity, Root, Variant, differentiate,
};
use gradus_analysis::Analyses;
use gradus_interp::{Machine, Value};
use gradus_ir::{Code, Diagnostic, FuncId, Type, Unit};
use gradus_testkit::{
    Argument, Array, Call, Check, Functions, Pass, check_pages, number_text, three_way,
};
use std::collections::BTreeSet;

#[test]
fn case_pages_pass() {
    let passes = [Pass::derived("ad", ad)];
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/cases");
    let count = check_pages(folder, &passes).unwrap();
    assert!(count > 0);
}

/// Arguments of a page's command.
struct PageCommand {
    name: String,
    constant: Vec<String>,
}

fn parse_command(words: &[String]) -> PageCommand {
    let mut asked = PageCommand {
        name: String::new(),
        constant: Vec::new(),
    };
    for pair in words.chunks(2) {
        match pair {
            [flag, value] if flag == "-f" => asked.name = value.clone(),
            [flag, value] if flag == "--const" => {
                asked.constant = value.split(',').map(str::to_string).collect();
            }
            _ => {}
        }
    }
    asked
}

fn activities(unit: &Unit, func: FuncId, constant: &[String]) -> Vec<ArgActivity> {
    let function = &unit.functions[func];
    let types = unit.param_types(function.ty).iter().enumerate();
    types
        .map(|(i, ty)| {
            let name = function.param_names.get(i).cloned().flatten();
            match unit.types.get(*ty) {
                _ if name.is_some_and(|n| constant.contains(&n)) => ArgActivity::Const,
                Type::Float(_) => ArgActivity::Active,
                Type::Ptr(_) => ArgActivity::Dup,
                _ => ArgActivity::Const,
            }
        })
        .collect()
}

/// The pass: builds the VJP and the JVP, and returns the check.
fn ad(unit: &mut Unit, words: &[String]) -> Result<Check, Vec<Diagnostic>> {
    let asked = parse_command(words);
    let missing = || {
        vec![Diagnostic::error(
            Code::NoSuchFunction,
            "there is no such function",
        )]
    };
    let func = unit.function(&asked.name).ok_or_else(missing)?;
    for func in unit.functions.ids() {
        if let Some(mut body) = unit.functions[func].body.take() {
            gradus_ad::calculus::legalize_calls(unit, &mut body);
            gradus_edit::loops_to_fors(unit, &mut body);
            unit.functions[func].body = Some(body);
        }
    }
    let args = activities(unit, func, &asked.constant);
    let float = unit
        .result_type(unit.functions[func].ty)
        .is_some_and(|ty| unit.types.float_kind(ty).is_some());
    let result = match float {
        true => ResultActivity::Active,
        false => ResultActivity::Const,
    };
    let root = Root {
        func,
        args: args.clone(),
        result,
    };
    let facts = ProgramFacts::of(unit, &mut Analyses::default(), &root)?;
    let variant = |mode| Variant {
        func,
        mode,
        width: 1,
        args: args.clone(),
        result,
        primal_result: false,
        overwritten: Vec::new(),
        tape: Default::default(),
        versions: Default::default(),
        strong_zero: false,
        tangents: Default::default(),
        concurrent: false,
        outermost: false,
    };
    let mut work = vec![variant(Mode::Combined), variant(Mode::Forward)];
    let names: Vec<String> = work.iter().map(|v| v.symbol(unit)).collect();
    let mut seen: BTreeSet<Variant> = work.iter().cloned().collect();
    let mut made = 0;
    while let Some(next) = work.get(made).cloned() {
        let derived = differentiate(unit, &facts, &next, &Options::default())?;
        made += 1;
        work.extend(
            derived
                .required_variants
                .into_iter()
                .filter(|need| seen.insert(need.clone())),
        );
    }
    Ok(Box::new(move |before, after, call| {
        let (_, values) = call.ordered_arguments(before)?;
        let problem = Problem {
            before,
            after,
            call,
            values,
            args: &args,
            float,
        };
        problem.check(&names[0], &names[1])
    }))
}

/// A call at which derivatives are checked.
struct Problem<'p> {
    before: &'p Unit,
    after: &'p Unit,
    call: &'p Call,
    values: Vec<Argument>,
    args: &'p [ArgActivity],
    float: bool,
}

/// Derivative arguments that follow the primal arguments.
#[derive(Clone, Copy, PartialEq)]
enum ShadowArguments {
    None,
    /// For arrays and scalars: forward mode.
    All,
    /// For arrays only: reverse mode.
    Arrays,
}

/// Results of a run: scalars, arrays, and shadows of arrays.
type RunResult = (Vec<f64>, Vec<f64>, Vec<f64>);

/// Returns the floats of an array; zeros for an uninitialised array.
fn array_floats(array: &Array) -> Vec<f64> {
    match array.size_bytes {
        0 => array.numbers.clone(),
        bytes => vec![0.0; bytes as usize / 8],
    }
}

impl Problem<'_> {
    /// Returns the inputs of differentiation in order.
    fn inputs(&self) -> Vec<f64> {
        let pairs = self.values.iter().zip(self.args);
        let parts = pairs.map(|(value, activity)| match (value, activity) {
            (Argument::Array(array), ArgActivity::Dup) => array_floats(array),
            (Argument::Float(x), ArgActivity::Active) => vec![*x],
            (Argument::Int(n), ArgActivity::Active) => vec![*n as f64],
            _ => Vec::new(),
        });
        parts.flatten().collect()
    }

    /// Runs a function with inputs `x` and derivative arguments `d`. Returns scalars, arrays, and shadows of
    /// arrays.
    fn run(
        &self,
        unit: &Unit,
        name: &str,
        x: &[f64],
        (beside, d): (ShadowArguments, &[f64]),
        last: Option<f64>,
    ) -> Result<RunResult, String> {
        let told = |trap: gradus_interp::Trap| trap.to_string();
        let mut machine = Machine::new(unit);
        let mut args = Vec::new();
        let (mut own, mut shadows) = (Vec::new(), Vec::new());
        let (mut at, mut at_beside) = (0, 0);
        for (value, activity) in self.values.iter().zip(self.args) {
            match (value, activity) {
                (Argument::Array(array), ArgActivity::Dup) => {
                    let count = array_floats(array).len();
                    let memory = machine.alloc_f64(&x[at..at + count]).map_err(told)?;
                    args.push(Value::ptr(memory));
                    own.push((memory, count));
                    if beside != ShadowArguments::None {
                        let part = &d[at_beside..at_beside + count];
                        let shadow = machine.alloc_f64(part).map_err(told)?;
                        args.push(Value::ptr(shadow));
                        shadows.push((shadow, count));
                    }
                    at += count;
                    at_beside += count;
                }
                (Argument::Array(array), _) => {
                    let memory = machine.alloc_bytes(&array.bytes()).map_err(told)?;
                    args.push(Value::ptr(memory));
                }
                (_, ArgActivity::Active) => {
                    args.push(Value::f64(x[at]));
                    at += 1;
                    if beside == ShadowArguments::All {
                        args.push(Value::f64(d[at_beside]));
                        at_beside += 1;
                    }
                }
                (Argument::Int(n), _) => args.push(Value::i64(*n as i64)),
                (Argument::Float(x), _) => args.push(Value::f64(*x)),
                _ => return Err("an argument is of no kind that is checked".into()),
            }
        }
        args.extend(last.map(Value::f64));
        let value = machine.call(name, &args).map_err(told)?;
        let scalars = match &value {
            Some(Value::Elements(members)) => members.iter().map(Value::as_f64).collect(),
            Some(value) => vec![value.as_f64()],
            None => Vec::new(),
        };
        let scalars: Option<Vec<f64>> = scalars.into_iter().collect();
        let read = |arrays: &[(gradus_interp::Address, usize)]| -> Result<Vec<f64>, String> {
            let parts = arrays
                .iter()
                .map(|(at, n)| machine.read_f64(*at, *n).map_err(told));
            Ok(parts.collect::<Result<Vec<_>, _>>()?.concat())
        };
        let scalars = scalars.ok_or("a result is undefined")?;
        Ok((scalars, read(&own)?, read(&shadows)?))
    }

    fn primal(&self, x: &[f64]) -> Result<Vec<f64>, String> {
        let name = &self.call.function;
        let (mut y, cells, _) =
            self.run(self.before, name, x, (ShadowArguments::None, &[]), None)?;
        y.extend(cells);
        Ok(y)
    }

    fn forward(&self, jvp: &str, x: &[f64], d: &[f64]) -> Result<Vec<f64>, String> {
        let (mut y, _, cells) = self.run(self.after, jvp, x, (ShadowArguments::All, d), None)?;
        y.extend(cells);
        Ok(y)
    }

    /// Returns the adjoints of the inputs in order: adjoints of arrays from shadow memory, adjoints of
    /// scalars from the result.
    fn reverse(&self, vjp: &str, x: &[f64], y_adj: &[f64]) -> Result<Vec<f64>, String> {
        let (last, cells) = match self.float {
            true => (Some(y_adj[0]), &y_adj[1..]),
            false => (None, y_adj),
        };
        let (scalars, _, cells) =
            self.run(self.after, vjp, x, (ShadowArguments::Arrays, cells), last)?;
        let (mut scalars, mut cells) = (scalars.into_iter(), cells.into_iter());
        let mut adjoint = Vec::new();
        for (value, activity) in self.values.iter().zip(self.args) {
            match (value, activity) {
                (Argument::Array(array), ArgActivity::Dup) => {
                    adjoint.extend(cells.by_ref().take(array_floats(array).len()));
                }
                (_, ArgActivity::Active) => adjoint.extend(scalars.next()),
                _ => {}
            }
        }
        Ok(adjoint)
    }

    /// Checks along several directions. Returns the gradient of the result by both modes; a function without
    /// a result has the gradient of the sum of all outputs.
    fn check(&self, vjp: &str, jvp: &str) -> Result<String, String> {
        let x = self.inputs();
        let functions = Functions {
            primal: &|x| self.primal(x),
            jvp: Some(&|x, d| self.forward(jvp, x, d)),
            vjp: Some(&|x, y_adj| self.reverse(vjp, x, y_adj)),
            noise: 0.0,
        };
        let found = three_way(&functions, &x)?;
        let mut seed = vec![if self.float { 0.0 } else { 1.0 }; found.value.len()];
        seed[0] = 1.0;
        let reverse = self.reverse(vjp, &x, &seed)?;
        let mut forward = Vec::new();
        for input in 0..x.len() {
            let mut direction = vec![0.0; x.len()];
            direction[input] = 1.0;
            let y = self.forward(jvp, &x, &direction)?;
            forward.push(std::iter::zip(&y, &seed).map(|(y, s)| y * s).sum());
        }
        let list = |numbers: &[f64]| -> String {
            let texts: Vec<String> = numbers.iter().map(|x| number_text(*x)).collect();
            texts.join(" ")
        };
        let value = match self.float {
            true => number_text(found.value[0]),
            false => format!("[{}]", list(&found.value)),
        };
        let gradients = (list(&reverse), list(&forward));
        Ok(format!(
            "value {value}   reverse [{}]   forward [{}]",
            gradients.0, gradients.1
        ))
    }
}
