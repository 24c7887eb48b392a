//! Nesting of ops and regions in a body: parents, ancestors and the region of a definition.
//!
//! The names follow MLIR (`getParentOp`, `isAncestor`, `findAncestorOpInRegion`). Each query walks outward
//! from the op; analyses that ask often precompute the answers.

use crate::{Body, Definition, Flags, Op, OpKind, Region, Value};

impl Body {
    /// Returns the op that owns the region of `op`; `None` for an op of the root and for a detached op.
    pub fn parent_op(&self, op: Op) -> Option<Op> {
        self.owner(self.parent(op)?)
    }

    /// Iterates over the ops around `op`, innermost first, without `op`.
    pub fn ancestors(&self, op: Op) -> impl Iterator<Item = Op> + Clone + '_ {
        std::iter::successors(self.parent_op(op), |op| self.parent_op(*op))
    }

    /// Iterates over `op` and the ops around `op`, innermost first.
    pub fn op_and_ancestors(&self, op: Op) -> impl Iterator<Item = Op> + Clone + '_ {
        std::iter::successors(Some(op), |op| self.parent_op(*op))
    }

    /// Iterates over `region` and the regions around it, innermost first.
    pub fn regions_around(&self, region: Region) -> impl Iterator<Item = Region> + Clone + '_ {
        std::iter::successors(Some(region), |region| self.enclosing(*region))
    }

    /// Returns whether `op` equals `ancestor` or is nested in `ancestor`.
    pub fn is_ancestor(&self, ancestor: Op, op: Op) -> bool {
        self.op_and_ancestors(op).any(|at| at == ancestor)
    }

    /// Returns `op` or the op around `op` that lies directly in `region`; `None` outside of `region`.
    pub fn ancestor_in(&self, region: Region, op: Op) -> Option<Op> {
        self.op_and_ancestors(op)
            .find(|at| self.parent(*at) == Some(region))
    }

    /// Returns whether `inner` equals `outer` or is nested in `outer`.
    pub fn is_inside(&self, inner: Region, outer: Region) -> bool {
        self.regions_around(inner).any(|region| region == outer)
    }

    /// Returns whether a value is defined in `region` or in a nested region; false for a constant.
    pub fn is_defined_in(&self, value: Value, region: Region) -> bool {
        self.region_of(value)
            .is_some_and(|home| self.is_inside(home, region))
    }

    /// Returns whether an op is in `region` or in a nested region.
    pub fn is_nested_in(&self, op: Op, region: Region) -> bool {
        self.parent(op)
            .is_some_and(|home| self.is_inside(home, region))
    }

    /// Returns whether a value is defined in `region` or in a region around it; true for a constant. The order
    /// of ops in the region of the definition is not considered.
    pub fn is_visible_in(&self, value: Value, region: Region) -> bool {
        self.region_of(value)
            .is_none_or(|home| self.is_inside(region, home))
    }

    /// Returns whether the definition of a value dominates `op`: the value is a constant, a parameter of a region
    /// around `op`, or a result of an op before `op` or before an op around `op`.
    pub fn dominates(&self, value: Value, op: Op) -> bool {
        match self.values[value].def {
            Definition::Const(_) => true,
            Definition::Param(region, _) => self.is_nested_in(op, region),
            Definition::Result(def, _) => {
                let at = self.parent(def).and_then(|home| self.ancestor_in(home, op));
                at.is_some_and(|at| self.ops_after(def).any(|later| later == at))
            }
        }
    }

    /// Returns the `yield` that terminates a region; `None` if control does not reach the end of the region.
    pub fn yield_of(&self, region: Region) -> Option<Op> {
        self.last(region)
            .filter(|end| matches!(self.kind(*end), OpKind::Yield))
    }

    /// Returns the values that a region yields; `None` if the region does not end in a `yield`.
    pub fn yielded(&self, region: Region) -> Option<Vec<Value>> {
        Some(self.operands(self.yield_of(region)?).collect())
    }

    /// Iterates over the ops behind `op` in the region of `op`.
    pub fn ops_after(&self, op: Op) -> impl Iterator<Item = Op> + Clone + '_ {
        std::iter::successors(self.next(op), |op| self.next(*op))
    }

    /// Returns whether `op` is inside of a sequential loop.
    pub fn is_in_loop(&self, op: Op) -> bool {
        self.ancestors(op).any(|at| self.kind(at).is_loop())
    }

    /// Returns whether `op` is inside of a task, a parallel iteration or a rank.
    pub fn is_in_strand(&self, op: Op) -> bool {
        self.ancestors(op).any(|at| self.kind(at).is_strand_op())
    }

    /// Returns whether `op` is inside of a team.
    pub fn is_in_team(&self, op: Op) -> bool {
        self.ancestors(op)
            .any(|at| matches!(self.kind(at), OpKind::Spmd { .. }))
    }

    /// Returns whether `op` is a `for` with independent iterations.
    pub fn is_independent(&self, op: Op) -> bool {
        matches!(self.kind(op), OpKind::For { .. }) && self.ops[op].flags.has(Flags::INDEPENDENT)
    }
}
