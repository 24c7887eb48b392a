//! Run-time overlap checks: selects the pointer pairs to compare, in favour of reloading instead of saving.
//!
//! Without annotations, a store through one argument may overwrite the memory behind another, and each load
//! from that memory must be saved on the tape. One comparison of the access ranges of the whole body, made
//! at an op with known bounds, selects one of two bodies. The fast body receives the compared pairs as
//! [`crate::AliasOptions::assume_disjoint`].
//!
//! The check of a pair, in 128 bits with both addresses zero-extended: both ranges of [`AccessRanges`] lie
//! within ±2⁶², and one ends before the other begins. Any other outcome selects the slow body.

use crate::loops::access_ranges::{AccessRanges, BaseRange};
use crate::loops::trip_counts::Availability;
use crate::memory::clobbers::Clobbers;
use crate::memory::effects::Effects;
use crate::memory::local_points_to::Targets;
use crate::scev::poly::BaseValue;
use gradus_ir::{Entity, Op, OpKind};
use std::collections::HashSet;

/// A proposed run-time check.
#[derive(Clone, Debug)]
pub struct Disjointness {
    /// The access ranges per base pointer.
    pub extents: AccessRanges,
    /// Pairs of indices into [`AccessRanges::roots`]: writes behind the first may alias accesses behind the
    /// second. Both have ranges.
    pub checked_pairs: Vec<(usize, usize)>,
}

impl Disjointness {
    /// Returns the profitable pairs for a check before `at`, which must be outside all loops. In each pair,
    /// writes through one pointer clobber loads through the other. Returns `None` if there are none or too
    /// many.
    pub fn of(clobbers: &Clobbers, effects: &Effects, at: Op) -> Option<Disjointness> {
        const MAX_PAIRS: usize = 16;
        let known = Availability::new(clobbers);
        let body = clobbers.alias.body;
        let extents = AccessRanges::of_ops(&known, effects, body.walk(body.root()), at);
        let clobbered = clobbered_bases(clobbers);
        let mut pairs = Vec::new();
        for (i, written) in extents.roots.iter().enumerate() {
            for (j, other) in extents.roots.iter().enumerate() {
                let ranges = written.range.is_some() && other.range.is_some();
                let counts = i != j && written.writes && !(other.writes && j < i);
                let lost = clobbered.contains(&base_key(other.root))
                    || other.writes && clobbered.contains(&base_key(written.root));
                if ranges && counts && lost && may_alias(clobbers, written, other) {
                    pairs.push((i, j));
                }
            }
        }
        (!pairs.is_empty() && pairs.len() <= MAX_PAIRS).then_some(Disjointness {
            extents,
            checked_pairs: pairs,
        })
    }

    /// Returns the disjoint pairs that the fast body may assume.
    pub fn assumptions(&self) -> Vec<(BaseValue, BaseValue)> {
        let root = |number: usize| self.extents.roots[number].root;
        self.checked_pairs
            .iter()
            .map(|(i, j)| (root(*i), root(*j)))
            .collect()
    }
}

fn base_key(root: BaseValue) -> (bool, usize) {
    match root {
        BaseValue::Value(value) => (false, value.index()),
        BaseValue::Global(global) => (true, global.index()),
    }
}

/// Returns the base pointers of loads whose memory is overwritten later.
fn clobbered_bases(clobbers: &Clobbers) -> HashSet<(bool, usize)> {
    let alias = clobbers.alias;
    let (unit, body) = (alias.unit, alias.body);
    let ops = body.walk(body.root());
    let loads = ops.filter(|op| matches!(body.kind(*op), OpKind::Load(_)));
    loads
        .filter(|op| clobbers.written_after(*op))
        .map(|op| base_key(alias.forms.of_pointer(unit, body, body.operand(op, 0)).root))
        .collect()
}

fn may_alias(clobbers: &Clobbers, a: &BaseRange, b: &BaseRange) -> bool {
    let alias = clobbers.alias;
    let targets = |root: BaseValue| match root {
        BaseValue::Value(value) => Targets::from_slice(alias.points_to.targets(alias.body, value)),
        BaseValue::Global(global) => {
            let object = alias
                .points_to
                .find(crate::memory::local_points_to::Object::Global(global));
            let target =
                |object| crate::memory::local_points_to::PointsToTarget { object, old: false };
            object.map(target).into_iter().collect()
        }
    };
    let (left, right) = (targets(a.root), targets(b.root));
    left.iter().any(|x| {
        right
            .iter()
            .any(|y| alias.objects_may_alias(x.object, y.object, false))
    })
}
