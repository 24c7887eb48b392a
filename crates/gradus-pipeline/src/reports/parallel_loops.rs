//! Reports the effect of simplification on parallel loops: hoisted ops and deleted loops.
//!
//! Simplification keeps no log, hence a body is compared before and after. An op formerly in a parallel
//! loop and now outside was hoisted; a loop no longer in the body was dead.

use gradus_ir::externals::ExternalFn;
use gradus_ir::{Body, LocId, Op, OpKind, Unit};
use std::collections::{BTreeMap, HashSet};

/// A change to a parallel loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ParallelLoopChange {
    /// The loop's source location.
    pub lp: Option<LocId>,
    /// The change.
    pub what: ChangeKind,
}

/// The kind of a change to a parallel loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    /// A call of a function was hoisted.
    Call(String, Option<LocId>),
    /// An inner loop was hoisted.
    Loop(Option<LocId>),
    /// The number of hoisted loads.
    Loads(usize),
    /// An inner call was deleted: the result is known otherwise, or unused.
    DeletedCall(String, Option<LocId>),
    /// The loop was deleted: it is empty, or its results are unused.
    Deleted,
}

/// The ops in the parallel loops of a body, before simplification.
pub(crate) struct ParallelLoops {
    inside: Vec<Inside>,
    loops: Vec<Op>,
}

/// An op in a parallel loop. Facts of the op are copied, since a deleted op has none.
struct Inside {
    op: Op,
    lp: Op,
    /// The callee's name, if the op is a call.
    called: Option<String>,
    loc: Option<LocId>,
}

impl ParallelLoops {
    /// Records the parallel loops of a body.
    pub(crate) fn of(unit: &Unit, body: &Body) -> ParallelLoops {
        let is_loop = |op: &Op| matches!(body.kind(*op), OpKind::ParFor { .. });
        let told = |op: Op| {
            let called = called(unit, body, op);
            let others = matches!(
                body.kind(op),
                OpKind::For { .. } | OpKind::Loop { .. } | OpKind::Load(_)
            );
            (called.is_some() || others).then_some(Inside {
                op,
                lp: enclosing_parallel_loop(body, op)?,
                called,
                loc: body.ops[op].loc,
            })
        };
        ParallelLoops {
            inside: body.walk(body.root()).filter_map(told).collect(),
            loops: body.walk(body.root()).filter(is_loop).collect(),
        }
    }

    /// Returns the changes since [`ParallelLoops::of`].
    pub(crate) fn changes_since(self, body: &Body) -> Vec<ParallelLoopChange> {
        let there: HashSet<Op> = body.walk(body.root()).collect();
        let mut moves = Vec::new();
        let mut loads: BTreeMap<Op, usize> = BTreeMap::new();
        let mut say = |lp: Op, what| {
            let lp = body.ops[lp].loc;
            moves.push(ParallelLoopChange { lp, what });
        };
        for Inside {
            op,
            lp,
            called,
            loc,
        } in self.inside
        {
            let left = there.contains(&op);
            if !there.contains(&lp) || left && is_in(body, op, lp) {
                continue;
            }
            match (called, left) {
                (Some(name), true) => say(lp, ChangeKind::Call(name, loc)),
                (Some(name), false) => say(lp, ChangeKind::DeletedCall(name, loc)),
                (None, false) => {}
                (None, true) if matches!(body.kind(op), OpKind::Load(_)) => {
                    *loads.entry(lp).or_default() += 1;
                }
                (None, true) => say(lp, ChangeKind::Loop(loc)),
            }
        }
        for (lp, count) in loads {
            say(lp, ChangeKind::Loads(count));
        }
        for lp in self.loops.into_iter().filter(|lp| !there.contains(lp)) {
            say(lp, ChangeKind::Deleted);
        }
        moves
    }
}

/// Returns the innermost parallel loop enclosing an op.
fn enclosing_parallel_loop(body: &Body, op: Op) -> Option<Op> {
    let owner = |op: &Op| body.owner(body.parent(*op)?);
    std::iter::successors(owner(&op), owner)
        .find(|around| matches!(body.kind(*around), OpKind::ParFor { .. }))
}

/// Returns true if an op is inside a loop.
fn is_in(body: &Body, op: Op, lp: Op) -> bool {
    let region = body.op_regions(lp)[0];
    body.parent(op)
        .is_some_and(|parent| body.is_inside(parent, region))
}

/// Returns the name of a called function known to a reader of the source.
fn called(unit: &Unit, body: &Body, op: Op) -> Option<String> {
    matches!(body.kind(op), OpKind::Call(_)).then_some(())?;
    let func = unit.callee(body, op)?;
    let function = &unit.functions[func];
    let own = matches!(
        unit.known(func),
        Some(
            ExternalFn::Marker(_)
                | ExternalFn::Integer(_)
                | ExternalFn::Reduce(_)
                | ExternalFn::OpenMp(_)
                | ExternalFn::Fork(_)
        )
    );
    let name = function.display_name();
    (!own && !name.starts_with("llvm.") && !name.starts_with("__kmpc")).then(|| name.to_string())
}
