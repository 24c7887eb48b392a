//! Which pointers a test at run time should tell apart, so that loads can be made again.
//!
//! Without a word from the programmer, what one argument points to may be written through another, and
//! each load from it then has to be kept. One comparison of the bytes that the whole body touches behind
//! both, made where their bounds are known, decides which of two bodies runs; in the fast one the pairs given here are
//! handed to [`crate::AliasOptions::assume_disjoint`].
//!
//! The test of a pair, in 128 bits with both addresses zero-extended: the ranges of both, [`Extents`]
//! says how, lie within ±2⁶², and one ends before the other begins. Any other outcome runs the slow body.

use crate::clobber::Clobbers;
use crate::effects::Effects;
use crate::extents::{Extents, RootExtent};
use crate::linear::Root;
use crate::points_to::Targets;
use crate::trips::Availability;
use gradus_ir::{Entity, Op, OpKind};
use std::collections::HashSet;

/// A proposal for one test.
#[derive(Clone, Debug)]
pub struct Disjointness {
    /// The bytes touched behind each pointer.
    pub extents: Extents,
    /// Pairs of numbers in [`Extents::roots`]: what is written behind the first is, as far as is known
    /// without the test, what is touched behind the second. Both have ranges.
    pub pairs: Vec<(usize, usize)>,
}

impl Disjointness {
    /// The pairs that are worth a test before `at`, which stands in no loop: from one of each, loads are
    /// clobbered by writes through the other. `None` where there are none.
    pub fn of(clobbers: &Clobbers, effects: &Effects, at: Op) -> Option<Disjointness> {
        const MAX_PAIRS: usize = 16;
        let known = Availability::new(clobbers);
        let body = clobbers.alias.body;
        let extents = Extents::of_ops(&known, effects, body.walk(body.root()), at);
        let clobbered = clobbered_roots(clobbers);
        let mut pairs = Vec::new();
        for (i, written) in extents.roots.iter().enumerate() {
            for (j, other) in extents.roots.iter().enumerate() {
                let ranges = written.range.is_some() && other.range.is_some();
                let counts = i != j && written.writes && !(other.writes && j < i);
                let lost = clobbered.contains(&key(other.root))
                    || other.writes && clobbered.contains(&key(written.root));
                if ranges && counts && lost && may_meet(clobbers, written, other) {
                    pairs.push((i, j));
                }
            }
        }
        (!pairs.is_empty() && pairs.len() <= MAX_PAIRS).then_some(Disjointness { extents, pairs })
    }

    /// What the fast body may assume.
    pub fn assumptions(&self) -> Vec<(Root, Root)> {
        let root = |number: usize| self.extents.roots[number].root;
        self.pairs
            .iter()
            .map(|(i, j)| (root(*i), root(*j)))
            .collect()
    }
}

fn key(root: Root) -> (bool, usize) {
    match root {
        Root::Value(value) => (false, value.index()),
        Root::Global(global) => (true, global.index()),
    }
}

/// The roots of loads whose memory is overwritten later.
fn clobbered_roots(clobbers: &Clobbers) -> HashSet<(bool, usize)> {
    let alias = clobbers.alias;
    let (unit, body) = (alias.unit, alias.body);
    let ops = body.walk(body.root());
    let loads = ops.filter(|op| matches!(body.kind(*op), OpKind::Load(_)));
    loads
        .filter(|op| clobbers.written_after(*op))
        .map(|op| key(alias.forms.of_pointer(unit, body, body.operand(op, 0)).root))
        .collect()
}

fn may_meet(clobbers: &Clobbers, a: &RootExtent, b: &RootExtent) -> bool {
    let alias = clobbers.alias;
    let targets = |root: Root| match root {
        Root::Value(value) => Targets::from_slice(alias.points_to.targets(alias.body, value)),
        Root::Global(global) => {
            let object = alias
                .points_to
                .find(crate::points_to::Object::Global(global));
            let target = |object| crate::points_to::Target { object, old: false };
            object.map(target).into_iter().collect()
        }
    };
    let (left, right) = (targets(a.root), targets(b.root));
    left.iter().any(|x| {
        right
            .iter()
            .any(|y| alias.objects_may_meet(x.object, y.object, false))
    })
}
