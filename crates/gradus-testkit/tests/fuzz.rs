//! Random programs: every pass preserves their meaning, and their derivatives pass the three-way check.
//!
//! `GRADUS_FUZZ` is the number of programs (a short run otherwise), `GRADUS_FUZZ_SEED` the first seed; with
//! `GRADUS_FUZZ_REDUCE` programs with wrong derivatives are reduced. `GRADUS_FUZZ_REFUSED` is the permitted
//! percentage of refusals: 0 shows all.

use gradus_analysis::{AliasOptions, CallGraph, Effects, PassContext};
use gradus_interp::Options;
use gradus_ir::{Unit, parse, print, verify};
use gradus_simplify::{BodyPass, PASSES};
use gradus_testkit::{Call, Style, program, reduce, run_call, same_outcome};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Returns the seeds of this run.
fn seeds(usual: u64) -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse().ok());
    let first = number("GRADUS_FUZZ_SEED").unwrap_or(0);
    first..first + number("GRADUS_FUZZ").unwrap_or(usual)
}

fn read(text: &str) -> Unit {
    parse(text, "program").unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Calls that show a program's behaviour.
const CALLS: &[&str] = &[
    "@f(n = 5, x = [0.5, -1.0, 0.25, 2.0, 0.0, 1.5, -0.75, 0.125], s = 0.3)",
    "@f(n = -3, x = [1.5, 1.0, -0.25, 0.5, 3.0, -1.5, 0.75, 0.625], s = -1.1)",
];

/// Runs a pass on every function.
fn simplified(unit: &mut Unit, pass: &BodyPass) {
    let with_bodies: Vec<_> = unit
        .functions
        .ids()
        .filter(|f| unit.functions[*f].body.is_some())
        .collect();
    for func in with_bodies {
        let closure = CallGraph::of(unit, &[func]);
        let effects = Effects::of(unit, &closure);
        let alias = AliasOptions::default();
        let facts = PassContext {
            function: Some(func),
            effects: &effects,
            alias: &alias,
        };
        let Some(mut body) = unit.functions[func].body.take() else {
            continue;
        };
        (pass.run)(unit, &mut body, &facts);
        unit.functions[func].body = Some(body);
    }
}

/// Checks a program after a pass.
fn check_outcome(before: &Unit, after: &Unit) -> Result<(), String> {
    let findings = verify(after);
    if let Some(first) = findings.first() {
        return Err(format!("{first} {:?}", first.notes));
    }
    let result = before
        .function("f")
        .and_then(|f| before.result_type(before.functions[f].ty));
    for text in CALLS {
        let call = Call::parse(text)?;
        let (a, ran_a) = run_call(before, &call, Options::default())?;
        if ran_a.outcome.is_err() {
            // A flag was violated and control depends on the poison value: any behaviour is permitted.
            continue;
        }
        let (b, ran_b) = run_call(after, &call, Options::default())?;
        same_outcome(before, result, (&a, &ran_a), (&b, &ran_b), 0.0)?;
    }
    Ok(())
}

#[test]
fn every_pass_keeps_the_meaning() {
    let mut wrong = Vec::new();
    for seed in seeds(60) {
        let style = Style {
            promises: seed % 2 == 1,
            ..Style::default()
        };
        let text = program(seed, style);
        let before = read(&text);
        let mut all = before.clone();
        for pass in PASSES {
            let mut after = before.clone();
            let ran = catch_unwind(AssertUnwindSafe(|| {
                simplified(&mut after, pass);
                simplified(&mut all, pass);
            }));
            let outcome = match ran {
                Err(_) => Err("it panics".to_string()),
                Ok(()) => {
                    check_outcome(&before, &after).and_then(|()| check_outcome(&before, &all))
                }
            };
            if let Err(message) = outcome {
                wrong.push(format!("seed {seed}, pass {}: {message}", pass.name));
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

type Check = fn(&Unit, &crate::derive::DerivativeOptions) -> Result<(), crate::derive::Failure>;

/// Returns the reduced program with the wrong derivative; empty unless `GRADUS_FUZZ_REDUCE` is set.
fn reduced_program(
    check: Check,
    unit: &Unit,
    choice: &crate::derive::DerivativeOptions,
    message: &str,
) -> String {
    if std::env::var_os("GRADUS_FUZZ_REDUCE").is_none() {
        return String::new();
    }
    let small = reduce(unit, |candidate| {
        let outcome = catch_unwind(AssertUnwindSafe(|| check(candidate, choice)));
        let same = |own: &str| own.split(' ').take(3).eq(message.split(' ').take(3));
        matches!(outcome, Ok(Err(crate::derive::Failure::Wrong(own))) if same(&own))
    });
    format!("\n{}", print(&small))
}

/// Runs a check of derivatives on random programs, with a permitted percentage of refusals.
fn check_derivatives(check: Check, usual: u64, copies: bool, refused_percent: usize) {
    let mut wrong = Vec::new();
    let mut refused = Vec::new();
    for seed in seeds(usual) {
        let style = Style {
            statements: 15 + seed as u32 % 4 * 15,
            depth: 2 + seed as u32 % 3,
            promises: false,
            copies,
        };
        let text = program(seed, style);
        let choice = crate::derive::DerivativeOptions::of(seed);
        match catch_unwind(|| check(&read(&text), &choice)) {
            Err(_) => wrong.push(format!("seed {seed}: it panics")),
            Ok(Err(crate::derive::Failure::Refused(why))) => {
                refused.push(format!("seed {seed}: {why}"))
            }
            Ok(Err(crate::derive::Failure::Wrong(message))) => {
                let small = reduced_program(check, &read(&text), &choice, &message);
                wrong.push(format!("seed {seed}: {message}{small}"));
            }
            Ok(Ok(())) => {}
        }
    }
    let limit = std::env::var("GRADUS_FUZZ_REFUSED");
    let percent = limit.ok().and_then(|p| p.parse().ok());
    let percent = percent.unwrap_or(refused_percent);
    let few = refused.len() * 100 <= percent * seeds(usual).count();
    if !few {
        wrong.push(format!("too many are refused:\n{}", refused.join("\n")));
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn derivatives_agree_three_ways() {
    check_derivatives(crate::derive::check, 60, true, 10);
}

/// The permitted percentage of refused second derivatives. Derivatives copy blocks of their own between objects, and
/// types do not flow back from the destination of a copy.
const SECOND_REFUSED: usize = 5;

#[test]
fn hessian_vector_products_agree_with_differences() {
    check_derivatives(crate::derive::check_second, 40, true, SECOND_REFUSED);
}

#[test]
fn batched_adjoints_equal_two_runs() {
    check_derivatives(crate::derive::check_width, 30, true, 10);
}

#[test]
fn dependency_sets_contain_the_nonzero_derivatives() {
    check_derivatives(crate::derive::check_dependencies, 60, true, 10);
}
