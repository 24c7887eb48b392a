//! Assumptions of the alias analysis: memory with conflicting types, and pairs that a run-time alias check compared.
//!
//! [`FactsBuilder::runtime_alias_check`] returns a check, and `driver/versioning.rs` emits the check. The version of the
//! derivative for disjoint memory assumes the compared pairs.

use super::build::FactsBuilder;
use crate::analysis::program_facts::ProgramFacts;
use crate::variant::{Mode, Versions};
use gradus_analysis::{
    AccessRanges, Alias, AliasOptions, Availability, BaseValue, Bound, Clobbers, Disjointness,
};
use gradus_ir::{Body, Op, OpKind, Value};

/// A run-time alias check: extents, pairs to compare, and ops to execute beforehand.
pub(crate) struct RuntimeAliasCheck {
    /// Accessed ranges, by base.
    pub extents: AccessRanges,
    /// Pairs of ranges to compare, as indices into `extents.roots`.
    pub pairs: Vec<(usize, usize)>,
    /// Ops of the primal that compute the operands of the bounds, in execution order.
    pub early: Vec<Op>,
}

impl FactsBuilder<'_> {
    fn plain_options(&self, body: &Body) -> AliasOptions {
        let ProgramFacts {
            memory, retyped, ..
        } = self.closure;
        AliasOptions {
            retyped: retyped.accesses(self.unit, memory, self.variant.func, body),
            ..AliasOptions::default()
        }
    }

    /// Returns the assumptions of the alias analysis. In the disjoint version, the assumptions include all
    /// pairs that the run-time check compared.
    pub(super) fn alias_options(&self, body: &Body) -> AliasOptions {
        let plain = self.plain_options(body);
        if self.variant.versions != Versions::Disjoint {
            return plain;
        }
        let alias = self.alias(body, &plain);
        let clobbers = Clobbers::of(&alias, &self.closure.effects, self.after_end());
        let found = body
            .first(body.root())
            .and_then(|at| Disjointness::of(&clobbers, &self.closure.effects, at));
        let assume_disjoint = found.map_or(Vec::new(), |found| found.assumptions());
        AliasOptions {
            assume_disjoint,
            ..plain
        }
    }

    /// Returns the run-time alias check that would make loads recomputable; `None` if no check is profitable.
    pub fn runtime_alias_check(&self, body: &Body) -> Option<RuntimeAliasCheck> {
        let alias = self.alias(body, &self.plain_options(body));
        let clobbers = Clobbers::of(&alias, &self.closure.effects, self.after_end());
        let at = body.first(body.root())?;
        let found = Disjointness::of(&clobbers, &self.closure.effects, at)?;
        if self.variant.mode != Mode::Combined && !rereads_checked_memory(&alias, &found) {
            return None;
        }
        let known = Availability::new(&clobbers);
        let mut early: Vec<Op> = Vec::new();
        let mut wanted: Vec<Value> = Vec::new();
        for bound in &found.extents.bounds {
            if let Bound::Signed(value) | Bound::Unsigned(value) = bound {
                wanted.push(*value);
            }
        }
        for &(a, b) in &found.checked_pairs {
            for number in [a, b] {
                if let BaseValue::Value(value) = found.extents.roots[number].root {
                    wanted.push(value);
                }
            }
        }
        for value in wanted {
            early.extend(known.ops_before(value, at)?);
        }
        early.sort_unstable_by_key(|op| alias.nest.order(*op));
        early.dedup();
        Some(RuntimeAliasCheck {
            extents: found.extents,
            pairs: found.checked_pairs,
            early,
        })
    }
}

/// Returns true if nested loops load from memory that the run-time check compares. A snapshot is then shorter
/// than the sequence of loaded values.
fn rereads_checked_memory(alias: &Alias<'_>, found: &Disjointness) -> bool {
    let roots: Vec<BaseValue> = (found.checked_pairs.iter())
        .flat_map(|&(a, b)| [a, b])
        .map(|number| found.extents.roots[number].root)
        .collect();
    let body = alias.body;
    body.walk(body.root()).any(|op| {
        let nested = matches!(body.kind(op), OpKind::Load(_)) && alias.nest.loop_depth(op) > 1;
        nested && {
            let place = alias
                .forms
                .of_pointer(alias.unit, body, body.operand(op, 0));
            roots.contains(&place.root)
        }
    })
}
