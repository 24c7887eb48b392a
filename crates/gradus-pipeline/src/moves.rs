//! What simplification did to parallel loops: what left them, and which of them went.
//!
//! Simplification moves ops, and does not say what it did: a body is looked at before and after. What stood in a
//! parallel loop and stands outside of it now has left it; a loop that is nowhere any more was not needed.

use gradus_ir::known::Known;
use gradus_ir::{Body, LocId, Op, OpKind, Unit};
use std::collections::{BTreeMap, HashSet};

/// Something that happened to a parallel loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Move {
    /// Where the loop stands.
    pub lp: Option<LocId>,
    /// What happened.
    pub what: What,
}

/// What happened to a parallel loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A call of a function left it.
    Call(String, Option<LocId>),
    /// A loop inside left it.
    Loop(Option<LocId>),
    /// So many loads left it.
    Loads(usize),
    /// A call inside is not made: what it gives is known otherwise, or not used.
    NoCall(String, Option<LocId>),
    /// It is gone: nothing runs in it, or nothing that it leaves is used.
    Gone,
}

/// What stands in the parallel loops of a body.
pub(crate) struct Before {
    inside: Vec<Inside>,
    loops: Vec<Op>,
}

/// An op in a parallel loop. What is known of it is kept, as nothing is of an op that went.
struct Inside {
    op: Op,
    lp: Op,
    /// Of a call: what it calls.
    called: Option<String>,
    loc: Option<LocId>,
}

impl Before {
    /// Looks at a body.
    pub(crate) fn of(unit: &Unit, body: &Body) -> Before {
        let is_loop = |op: &Op| matches!(body.kind(*op), OpKind::ParFor { .. });
        let told = |op: Op| {
            let called = called(unit, body, op);
            let others = matches!(
                body.kind(op),
                OpKind::For { .. } | OpKind::Loop { .. } | OpKind::Load(_)
            );
            (called.is_some() || others).then_some(Inside {
                op,
                lp: around(body, op)?,
                called,
                loc: body.ops[op].loc,
            })
        };
        Before {
            inside: body.walk(body.root()).filter_map(told).collect(),
            loops: body.walk(body.root()).filter(is_loop).collect(),
        }
    }

    /// What happened since.
    pub(crate) fn since(self, body: &Body) -> Vec<Move> {
        let there: HashSet<Op> = body.walk(body.root()).collect();
        let mut moves = Vec::new();
        let mut loads: BTreeMap<Op, usize> = BTreeMap::new();
        let mut say = |lp: Op, what| {
            let lp = body.ops[lp].loc;
            moves.push(Move { lp, what });
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
                (Some(name), true) => say(lp, What::Call(name, loc)),
                (Some(name), false) => say(lp, What::NoCall(name, loc)),
                (None, false) => {}
                (None, true) if matches!(body.kind(op), OpKind::Load(_)) => {
                    *loads.entry(lp).or_default() += 1;
                }
                (None, true) => say(lp, What::Loop(loc)),
            }
        }
        for (lp, count) in loads {
            say(lp, What::Loads(count));
        }
        for lp in self.loops.into_iter().filter(|lp| !there.contains(lp)) {
            say(lp, What::Gone);
        }
        moves
    }
}

/// The innermost parallel loop around an op.
fn around(body: &Body, op: Op) -> Option<Op> {
    let owner = |op: &Op| body.owner(body.parent(*op)?);
    std::iter::successors(owner(&op), owner)
        .find(|around| matches!(body.kind(*around), OpKind::ParFor { .. }))
}

/// Whether an op stands in a loop.
fn is_in(body: &Body, op: Op, lp: Op) -> bool {
    let region = body.op_regions(lp)[0];
    body.parent(op)
        .is_some_and(|parent| body.is_inside(parent, region))
}

/// The name of a called function that a reader of the program's text knows.
fn called(unit: &Unit, body: &Body, op: Op) -> Option<String> {
    matches!(body.kind(op), OpKind::Call(_)).then_some(())?;
    let func = unit.callee(body, op)?;
    let function = &unit.functions[func];
    let own = matches!(
        unit.known(func),
        Some(
            Known::Marker(_)
                | Known::Integer(_)
                | Known::Reduce(_)
                | Known::OpenMp(_)
                | Known::Fork(_)
        )
    );
    let name = function.source_name.as_ref().unwrap_or(&function.name);
    (!own && !name.starts_with("llvm.") && !name.starts_with("__kmpc")).then(|| name.clone())
}
