//! Deferred frees.
//!
//! A `free` in the region of its allocation is deferred until the reverse pass reverses the allocation, which
//! keeps loads from the block recomputable. The deferral is unneeded if a first plan recomputes no load of
//! the block. The facts are then rebuilt with the block freed at the program's own `free`, and earlier loads
//! from the block count as clobbered.

use super::BodyFacts;
use crate::analysis::body_facts::build::FactsBuilder;
use gradus_analysis::Alias;
use gradus_ir::externals::{ExternalFn, MemoryFn};
use gradus_ir::{Body, Op, Value};
use std::collections::{HashMap, HashSet};

impl FactsBuilder<'_> {
    /// Finds the allocations with exactly one `free` in the same region, mapped to the `free`. A `free` on
    /// another no-return path does not count.
    pub(super) fn find_deferred_frees(&self, body: &Body, alias: &Alias<'_>) -> HashMap<Op, Op> {
        let mut found = HashMap::new();
        for op in body.walk(body.root()) {
            let Some(ExternalFn::Memory(function)) = self.known(body, op) else {
                continue;
            };
            if function.allocation().is_none_or(|a| a.replaces.is_some()) {
                continue;
            }
            let Some(result) = gradus_analysis::visible_call_result(body, op) else {
                continue;
            };
            let same_way = |free: Op| {
                alias.nest.enclosing_noreturn_region(free)
                    == alias.nest.enclosing_noreturn_region(op)
            };
            let frees: Vec<Op> = body
                .uses(result)
                .filter(|u| u.index == 1 && self.is_free(body, u.op) && same_way(u.op))
                .map(|u| u.op)
                .collect();
            if let [free] = frees[..]
                && body.parent(free) == body.parent(op)
            {
                found.insert(op, free);
            }
        }
        found
    }

    /// Returns true if a call only frees a block.
    pub(super) fn is_free(&self, body: &Body, op: Op) -> bool {
        matches!(
            self.known(body, op),
            Some(ExternalFn::Memory(
                MemoryFn::Free | MemoryFn::Delete | MemoryFn::RustDealloc
            ))
        )
    }

    /// Removes the deferrals that an earlier plan found unneeded.
    pub(super) fn drop_unneeded_deferrals(&self, facts: &mut BodyFacts<'_>) {
        let at_once = &self.choices.freed_early;
        facts
            .deferred_frees
            .retain(|made, _| !at_once.contains(made));
    }

    /// Records the addresses within each private block that holds no pointers and whose `free` is deferred.
    pub(super) fn find_private_blocks(&self, facts: &mut BodyFacts<'_>) {
        let waiting: Vec<Op> = facts.deferred_frees.keys().copied().collect();
        for made in waiting {
            let addresses = facts
                .call_result(made)
                .and_then(|block| self.addresses_in(facts, block));
            if let Some(addresses) = addresses {
                facts.private_block_addresses.insert(made, addresses);
            }
        }
    }
}

impl BodyFacts<'_> {
    /// Returns true if a `free` is deferred to the reverse pass.
    pub fn is_deferred_free(&self, op: Op) -> bool {
        self.deferred_frees.values().any(|free| *free == op)
    }
    /// Returns the `free` that is deferred to the reversal of an allocation.
    pub fn deferred_free_of(&self, allocation: Op) -> Option<Op> {
        self.deferred_frees.get(&allocation).copied()
    }
    /// Returns the allocations with a deferred free whose block holds no pointers, each with the addresses in the
    /// block.
    pub fn private_block_addresses(&self) -> &HashMap<Op, HashSet<Value>> {
        &self.private_block_addresses
    }
}
