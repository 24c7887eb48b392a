//! Bounds of indices from the program's control flow: loops of constant length, and comparisons with constants that guard
//! an access (the bounds checks of Rust).

use crate::points_to::inclusion::build::BodyBuilder;
use gradus_ir::{Body, CastOp, Definition, IntPredicate, Op, OpKind, Unit, Value};

/// Maximal number of indices: a wider range is no member of a structure.
const INDICES_MAX: i64 = 1 << 20;

impl BodyBuilder<'_, '_> {
    /// Returns the number of values from 0 on that contains the index of an address at `op`.
    pub(super) fn indices_below(&self, op: Op, index: Value) -> Option<i64> {
        let (body, unit) = (self.body, self.builder.unit);
        let mut names = vec![index];
        while let Some(cast) = body.def_op(names[names.len() - 1])
            && matches!(body.kind(cast), OpKind::Cast(CastOp::SExt | CastOp::ZExt))
        {
            names.push(body.operand(cast, 0));
        }
        let loops = names
            .iter()
            .filter_map(|name| loop_length(unit, body, *name));
        let guards = names.iter().filter_map(|name| guard(unit, body, op, *name));
        let least = loops.chain(guards).min()?;
        (1..=INDICES_MAX).contains(&least).then_some(least)
    }
}

/// Returns the constant trip count of the loop of which a value is the index.
fn loop_length(unit: &Unit, body: &Body, value: Value) -> Option<i64> {
    let Definition::Param(region, 0) = body.values[value].def else {
        // Not an error: the value is no loop index.
        return None;
    };
    let owner = body.owner(region)?;
    match body.kind(owner) {
        OpKind::For { .. } => body.as_int(unit, body.operand(owner, 0)),
        _ => None,
    }
}

/// Returns the least unsigned bound of a value from the conditions around an op.
fn guard(unit: &Unit, body: &Body, op: Op, value: Value) -> Option<i64> {
    let bounds = body.op_and_ancestors(op).filter_map(|inner| {
        let region = body.parent(inner)?;
        let owner = body.owner(region)?;
        if !matches!(body.kind(owner), OpKind::If) {
            // Not an error: only conditions bound an index.
            return None;
        }
        let holds = body.op_regions(owner).first() == Some(&region);
        let test = body.def_op(body.operand(owner, 0))?;
        let OpKind::ICmp(predicate) = *body.kind(test) else {
            // Not an error: only comparisons bound an index.
            return None;
        };
        let (a, b) = (body.operand(test, 0), body.operand(test, 1));
        let (constant, predicate) = match (a == value, b == value) {
            (true, _) => (body.as_int(unit, b)?, predicate),
            (_, true) => (body.as_int(unit, a)?, predicate.swapped()),
            _ => return None,
        };
        match (predicate, holds) {
            (IntPredicate::Ult, true) | (IntPredicate::Uge, false) => Some(constant),
            (IntPredicate::Ule, true) | (IntPredicate::Ugt, false) => constant.checked_add(1),
            _ => None,
        }
    });
    bounds.filter(|bound| *bound > 0).min()
}
