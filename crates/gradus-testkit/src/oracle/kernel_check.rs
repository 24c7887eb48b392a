//! Checks random kernels: lowering to loops preserves their result for any order of threads, as does
//! compiled code on the pool.
//!
//! Steps: the program itself, in several orders of its threads, which must not matter; simplified; lowered,
//! directly and after simplification; and compiled. All must return an equal number.
//!
//! Warp barriers encode the meaning of volatile memory for threads in lockstep. Only the interpreter sees
//! them: lowering starts without them, and must infer them.

use crate::oracle::fork_join_check::{check_verifier, with_bodies};
use crate::{Pool, options_with_eager_forks};
use gradus_analysis::{AliasOptions, Analyses, CallGraph, Effects, PassContext};
use gradus_interp::{Machine, Options};
use gradus_ir::{BarrierScope, OpKind, SpmdKind, Unit, parse, print};
use gradus_simplify::simplify;
use std::collections::BTreeSet;

fn interpreted(unit: &Unit, random_order: Option<u64>) -> Result<i64, String> {
    let options = Options {
        random_order,
        check_edges: true,
        ..Options::default()
    };
    let mut machine = Machine::with_options(unit, options);
    match machine.call("f", &[]) {
        Ok(Some(value)) => value.as_i64().ok_or("the result is undefined".to_string()),
        other => Err(format!("{other:?}")),
    }
}

fn simplified(unit: &mut Unit) {
    let functions = with_bodies(unit);
    let effects = Effects::of(unit, &CallGraph::of(unit, &functions));
    let alias = AliasOptions::default();
    for func in functions {
        let facts = PassContext {
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

/// Lowers all kernels. Returns the numbers of removed barriers and of fused launches.
fn lowered(unit: &mut Unit) -> Result<[usize; 2], String> {
    let functions = with_bodies(unit);
    let effects = Effects::of(unit, &CallGraph::of(unit, &functions));
    let options = gradus_gpu::Options::default();
    let lowered = gradus_gpu::lower(unit, &functions, &effects, &options);
    if let Some(finding) = lowered.diagnostics.first() {
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
            return Err("a kernel remains after lowering".into());
        }
    }
    check_verifier(unit)?;
    let kernels = lowered.kernels.iter();
    let counts = kernels.map(|k| [k.removed_barriers.len(), k.fused_lines.len()]);
    Ok(counts.fold([0, 0], |[a, b], [c, d]| [a + c, b + d]))
}

/// Returns the unit for lowering: without warp barriers.
fn without_warp_barriers(unit: &Unit) -> Unit {
    let mut unit = unit.clone();
    for func in with_bodies(&unit) {
        if let Some(mut body) = unit.functions[func].body.take() {
            let is_step = |kind: &OpKind| matches!(kind, OpKind::Barrier(BarrierScope::Warp));
            let ops = body.walk(body.root());
            let steps: Vec<_> = ops.filter(|op| is_step(body.kind(*op))).collect();
            for step in steps {
                body.erase(step);
            }
            unit.functions[func].body = Some(body);
        }
    }
    unit
}

/// Returns the passes that change a program, directly or after simplification.
///
/// # Errors
/// A failure of the program.
pub fn effective_passes(text: &str) -> Result<BTreeSet<&'static str>, String> {
    let written = without_warp_barriers(&parse(text, "program").map_err(|e| e.to_string())?);
    let mut shorter = written.clone();
    simplified(&mut shorter);
    let (alias, options) = (AliasOptions::default(), gradus_gpu::Options::default());
    let mut at_work = BTreeSet::new();
    for mut unit in [written, shorter] {
        let functions = with_bodies(&unit);
        let effects = Effects::of(&unit, &CallGraph::of(&unit, &functions));
        for func in functions {
            let facts = PassContext {
                function: Some(func),
                effects: &effects,
                alias: &alias,
            };
            for pass in gradus_gpu::PASSES {
                let before = print(&unit);
                if let Some(mut body) = unit.functions[func].body.take() {
                    (pass.run)(&mut unit, &mut body, &facts, &options);
                    unit.functions[func].body = Some(body);
                }
                if print(&unit) != before {
                    at_work.insert(pass.name);
                }
            }
        }
    }
    Ok(at_work)
}

/// Checks a kernel. Returns the numbers of removed barriers and of fused launches.
///
/// # Errors
/// A failure of the program.
pub fn check_kernel(text: &str, compiled: bool) -> Result<[usize; 2], String> {
    let unit = parse(text, "program").map_err(|e| e.to_string())?;
    check_verifier(&unit)?;
    let meant = interpreted(&unit, None)?;
    for order in [3, 77] {
        if interpreted(&unit, Some(order))? != meant {
            return Err("the program itself depends on the order of its threads".into());
        }
    }
    let mut as_meant = unit.clone();
    simplified(&mut as_meant);
    check_verifier(&as_meant)?;
    for order in [None, Some(5)] {
        let given = interpreted(&as_meant, order);
        if given != Ok(meant) {
            let text = print(&as_meant);
            return Err(format!(
                "after simplification the result is {given:?}, expected {meant}\n{text}"
            ));
        }
    }
    let mut counts = [0, 0];
    for first in [false, true] {
        let mut after = without_warp_barriers(&unit);
        if first {
            simplified(&mut after);
            check_verifier(&after)?;
        }
        for (sum, count) in counts.iter_mut().zip(lowered(&mut after)?) {
            *sum += count;
        }
        simplified(&mut after);
        check_verifier(&after)?;
        for order in [None, Some(9)] {
            let given = interpreted(&after, order);
            if given != Ok(meant) {
                let text = print(&after);
                return Err(format!(
                    "after lowering (simplified: {first}) the result is {given:?}, expected {meant}\n{text}"
                ));
            }
        }
        if compiled && first {
            let ids = with_bodies(&after);
            gradus_par::lower(
                &mut after,
                &mut Analyses::default(),
                &ids,
                &options_with_eager_forks(0),
            );
            check_verifier(&after)?;
            let given = Pool::load(&after, &["f"], None)?.call("f", 3)?;
            if given != meant {
                return Err(format!("the compiled result is {given}, expected {meant}"));
            }
        }
    }
    Ok(counts)
}
