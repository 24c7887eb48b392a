//! Lowering of parallel operations: the worklist of bodies, and the target of each op.
//!
//! Place: last step of the crate, after the passes of [`crate::opt`]. The outermost parallel op of a body is lowered
//! first; an outlined region joins the worklist.

pub(crate) mod column_interchange;
pub(crate) mod cooperative;
pub(crate) mod deterministic;
pub(crate) mod exceptions;
pub(crate) mod fork_clones;
pub(crate) mod intrinsics;
pub(crate) mod loops;
pub(crate) mod outline_alias_scopes;
pub(crate) mod outlined;
pub(crate) mod pointer_facts;
pub(crate) mod profitability;
pub(crate) mod serial_fallback;
pub(crate) mod tasks;
pub(crate) mod team;

use crate::cost::decision::ForkDecision;
use crate::cost::model;
use crate::emit::serial;
use crate::emit::serial::outermost_parallel_op;
use crate::opt::{
    hoist_conditional_loads, large_frames, tsan_atomics, unaligned_atomics, widen_indices,
};
use crate::{Lowered, Options, Target};
use gradus_analysis::{Analyses, Effects};
use gradus_ir::{Body, FuncId, Op, OpKind, Unit};

/// Lowers every parallel op of `functions`.
pub fn lower(
    unit: &mut Unit,
    analyses: &mut Analyses,
    functions: &[FuncId],
    options: &Options,
) -> Lowered {
    let mut pending = functions.to_vec();
    let (mut made, mut forks) = (Vec::new(), Vec::new());
    if options.target == Target::Runtime {
        let closure = analyses.call_graph(unit, functions);
        let split = fork_clones::clone_recursive_spawners(unit, &closure);
        made.extend(split.into_iter().filter(|func| !functions.contains(func)));
        pending.extend(&made);
    }
    let effects = analyses.effects(unit, &pending);
    if options.target != Target::Intrinsics {
        attach_access_facts(unit, &pending, &effects);
    }
    let closure = analyses.call_graph(unit, &pending);
    let mut throws = exceptions::UnwindAnalysis::of(unit, &closure);
    let costs = model::CallCosts::of(unit, &closure);
    while let Some(func) = pending.pop() {
        let Some(mut body) = unit.functions[func].body.take() else {
            continue;
        };
        let mut lowering = Lowering {
            unit,
            func,
            options,
            made: Vec::new(),
            forks: Vec::new(),
            throws,
            costs: &costs,
            effects: &effects,
        };
        lowering.lower_body(&mut body);
        let new = lowering.made;
        forks.extend(lowering.forks);
        throws = lowering.throws;
        gradus_edit::hoist_private_allocas(&mut body);
        if made.contains(&func) {
            large_frames::large_allocas_to_scratch(unit, &mut body);
            widen_indices::widen(unit, &mut body);
        }
        unaligned_atomics::split_by_alignment(unit, &mut body);
        if tsan_atomics::is_tsan_instrumented(unit, func) {
            tsan_atomics::float_sums_to_cmpxchg(unit, &mut body);
        }
        unit.functions[func].body = Some(body);
        made.extend(&new);
        pending.extend(new);
    }
    Lowered { made, forks }
}

/// Attaches alias scopes to the accesses in regions, before outlining. Hoisted conditional loads are moved
/// first.
fn attach_access_facts(unit: &mut Unit, functions: &[FuncId], effects: &Effects) {
    for &func in functions {
        if let Some(mut body) = unit.functions[func].body.take() {
            if !tsan_atomics::is_tsan_instrumented(unit, func) {
                hoist_conditional_loads::hoist_conditional_loads(unit, func, &mut body, effects);
            }
            outline_alias_scopes::attach_alias_scopes(unit, func, &mut body, effects);
            unit.functions[func].body = Some(body);
        }
    }
}

/// The lowering of one body.
pub(crate) struct Lowering<'a> {
    unit: &'a mut Unit,
    /// The function of the body.
    func: FuncId,
    options: &'a Options,
    /// The functions outlined from the body.
    made: Vec<FuncId>,
    /// The fork decisions of the body's parallel loops.
    forks: Vec<ForkDecision>,
    /// Functions that may throw.
    throws: exceptions::UnwindAnalysis,
    /// Cost estimates of calls.
    costs: &'a model::CallCosts,
    /// Effect summaries of functions.
    effects: &'a Effects,
}

impl Lowering<'_> {
    /// Lowers the outermost parallel op until none is left. Nested parallel ops have then been outlined or
    /// inlined.
    fn lower_body(&mut self, body: &mut Body) {
        while let Some(op) = outermost_parallel_op(body) {
            match self.options.target {
                _ if cooperative::is_cooperative(body, op) => self.lower_cooperative_grid(body, op),
                Target::Serial => serial::lower(self.unit, body, op),
                Target::Runtime => self.lower_to_runtime(body, op),
                Target::Intrinsics => self.lower_to_intrinsic(body, op),
            }
        }
    }

    fn lower_to_runtime(&mut self, body: &mut Body, op: Op) {
        match body.kind(op) {
            OpKind::ParFor { .. } => self.lower_par_for(body, op),
            OpKind::Spmd { .. } => self.lower_team(body, op),
            OpKind::Scope => self.lower_scope(body, op),
            OpKind::Critical(_) => self.critical(body, op),
            _ => serial::lower(self.unit, body, op),
        }
    }
}

/// Parses a program and lowers all functions with the default options.
#[cfg(test)]
pub(crate) fn lowered(text: &str) -> Unit {
    let mut unit =
        gradus_ir::parse(text, "program").unwrap_or_else(|e| panic!("{e} {:?}", e.labels));
    let all: Vec<FuncId> = unit.functions.ids().collect();
    lower(
        &mut unit,
        &mut Analyses::default(),
        &all,
        &Options::default(),
    );
    unit
}
