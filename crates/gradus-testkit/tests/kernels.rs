//! Random kernels: lowered to loops they do what they mean, in any order of their threads, and so does
//! their compiled code on the pool.
//!
//! `GRADUS_FUZZ` is the number of programs, `GRADUS_FUZZ_SEED` the first seed.

use gradus_analysis::{AliasOptions, Closure, Effects};
use gradus_interp::{Machine, Options};
use gradus_ir::{FuncId, OpKind, SpmdKind, Unit, parse, print, verify};
use gradus_simplify::{Facts, simplify};
use gradus_testkit::{KERNEL_FEATURES, Pool, eager, kernel_program};
use std::collections::BTreeMap;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|n| n.parse().ok())
}

fn seeds(usual: u64) -> std::ops::Range<u64> {
    let first = number("GRADUS_FUZZ_SEED").unwrap_or(0);
    first..first + number("GRADUS_FUZZ").unwrap_or(usual)
}

fn interpreted(unit: &Unit, random_order: Option<u64>) -> Result<i64, String> {
    let options = Options {
        random_order,
        ..Options::default()
    };
    let mut machine = Machine::with_options(unit, options);
    match machine.call("f", &[]) {
        Ok(Some(value)) => value
            .as_i64()
            .ok_or("the result is not defined".to_string()),
        other => Err(format!("{other:?}")),
    }
}

fn functions(unit: &Unit) -> Vec<FuncId> {
    let ids = unit.functions.ids();
    ids.filter(|f| unit.functions[*f].body.is_some()).collect()
}

fn simplified(unit: &mut Unit) {
    let functions = functions(unit);
    let effects = Effects::of(unit, &Closure::of(unit, &functions));
    let alias = AliasOptions::default();
    for func in functions {
        let facts = Facts {
            function: Some(func),
            effects: &effects,
            alias: &alias,
        };
        if let Some(mut body) = unit.functions[func].body.take() {
            simplify(unit, &mut body, &facts);
            unit.functions[func].body = Some(body);
        }
    }
}

/// Lowers all kernels; gives how many barriers were removed.
fn lowered(unit: &mut Unit) -> Result<usize, String> {
    let functions = functions(unit);
    let effects = Effects::of(unit, &Closure::of(unit, &functions));
    let options = gradus_gpu::Options::default();
    let lowered = gradus_gpu::lower(unit, &functions, &effects, &options);
    if let Some(finding) = lowered.findings.first() {
        return Err(finding.to_string());
    }
    let kernels = |kind: &OpKind| match kind {
        OpKind::Spmd { kind, .. } => *kind != SpmdKind::Team,
        _ => false,
    };
    for (_, function) in unit.functions.iter() {
        let Some(body) = function.body.as_deref() else {
            continue;
        };
        if body.walk(body.root()).any(|op| kernels(body.kind(op))) {
            return Err("a kernel is left".into());
        }
    }
    sound(unit)?;
    Ok(lowered.kernels.iter().map(|k| k.removed.len()).sum())
}

fn sound(unit: &Unit) -> Result<(), String> {
    match verify(unit).first() {
        None => Ok(()),
        Some(finding) => Err(format!("{finding} {:?}", finding.notes)),
    }
}

/// What is wrong with a program, if anything; how many barriers were removed.
fn check(text: &str, compiled: bool) -> Result<usize, String> {
    let unit = parse(text, "program").map_err(|e| e.to_string())?;
    sound(&unit)?;
    let meant = interpreted(&unit, None)?;
    for order in [3, 77] {
        if interpreted(&unit, Some(order))? != meant {
            return Err("the program itself depends on the order of its threads".into());
        }
    }
    let mut removed = 0;
    for first in [false, true] {
        let mut after = unit.clone();
        if first {
            simplified(&mut after);
            sound(&after)?;
            for order in [None, Some(5)] {
                let given = interpreted(&after, order);
                if given != Ok(meant) {
                    return Err(format!(
                        "simplified: {given:?}, not {meant}\n{}",
                        print(&after)
                    ));
                }
            }
        }
        removed += lowered(&mut after)?;
        simplified(&mut after);
        sound(&after)?;
        for order in [None, Some(9)] {
            let given = interpreted(&after, order);
            if given != Ok(meant) {
                let text = print(&after);
                return Err(format!(
                    "lowered (simplified: {first}): {given:?}, not {meant}\n{text}"
                ));
            }
        }
        if compiled && first {
            let ids = functions(&after);
            gradus_par::lower(&mut after, &ids, &eager(0));
            sound(&after)?;
            let given = Pool::load(&after, &["f"], None)?.call("f", 3)?;
            if given != meant {
                return Err(format!("compiled: {given}, not {meant}"));
            }
        }
    }
    Ok(removed)
}

#[test]
fn lowered_kernels_keep_their_meaning() {
    let (mut wrong, mut removed) = (Vec::new(), 0);
    let mut met: BTreeMap<&str, u64> = KERNEL_FEATURES.iter().map(|f| (*f, 0)).collect();
    for seed in seeds(150) {
        let program = kernel_program(seed, 12 + (seed % 4) as u32 * 8);
        for feature in program.features {
            *met.entry(feature).or_default() += 1;
        }
        let outcome = std::panic::catch_unwind(|| check(&program.text, seed % 8 == 0));
        match outcome {
            Ok(Ok(barriers)) => removed += barriers,
            Ok(Err(message)) => wrong.push(format!("seed {seed}: {message}\n{}", program.text)),
            Err(_) => wrong.push(format!("seed {seed}: it panics\n{}", program.text)),
        }
        if wrong.len() >= 2 {
            break;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    let never: Vec<&&str> = met
        .iter()
        .filter(|(_, n)| **n == 0)
        .map(|(f, _)| f)
        .collect();
    assert!(never.is_empty(), "no program held {never:?}");
    assert!(removed > 0, "no barrier was removed");
}
