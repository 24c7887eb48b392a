//! Frees. One that stands beside the allocation of its block *waits* until the return sweep undoes that
//! allocation, so that loads from the block can be done again. Where a first plan does none of them again, it need
//! not wait: the facts are made once more with that block freed where the program frees it, and what was read from
//! it before counts as lost.

use super::Facts;
use super::make::MakeFacts;
use crate::node::Node;
use crate::tape::plan::Plan;
use gradus_analysis::Alias;
use gradus_ir::known::{Known, MemoryFn};
use gradus_ir::{Body, Op, OpKind, Value};
use std::collections::{BTreeSet, HashMap, HashSet};

impl MakeFacts<'_> {
    /// Frees that stand beside the allocation whose block they free.
    pub(super) fn deferred(&self, body: &Body, alias: &Alias<'_>) -> HashMap<Op, Op> {
        let mut found = HashMap::new();
        for op in body.walk(body.root()) {
            let Some(Known::Memory(function)) = self.known(body, op) else {
                continue;
            };
            if function.allocation().is_none_or(|a| a.replaces.is_some()) {
                continue;
            }
            let Some(result) = gradus_analysis::given(body, op) else {
                continue;
            };
            let same_way = |free: Op| alias.nest.doomed(free) == alias.nest.doomed(op);
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
            Some(Known::Memory(
                MemoryFn::Free | MemoryFn::Delete | MemoryFn::RustDealloc
            ))
        )
    }

    /// Lets those frees wait no more of which an earlier plan found that they need not.
    pub(super) fn free_at_once(&self, facts: &mut Facts<'_>) {
        let at_once = &self.chosen.freed_at_once;
        facts.deferred.retain(|made, _| !at_once.contains(made));
    }

    /// Fills in the blocks that hold numbers only, are known to nobody else and whose frees wait, each with all
    /// addresses in it.
    pub(super) fn blocks_of_numbers(&self, facts: &mut Facts<'_>) {
        let waiting: Vec<Op> = facts.deferred.keys().copied().collect();
        for made in waiting {
            let addresses = facts
                .given(made)
                .and_then(|block| self.addresses_in(facts, block));
            if let Some(addresses) = addresses {
                facts.of_numbers.insert(made, addresses);
            }
        }
    }
}

impl Facts<'_> {
    /// Whether a free waits for the return sweep.
    pub fn is_deferred_free(&self, op: Op) -> bool {
        self.deferred.values().any(|free| *free == op)
    }
    /// The free that waits until an allocation is undone.
    pub fn deferred_free_of(&self, allocation: Op) -> Option<Op> {
        self.deferred.get(&allocation).copied()
    }
    /// The allocations whose blocks need not wait: the return sweep of a plan reads nothing in them again.
    pub fn needless_waits(&self, plan: &Plan) -> BTreeSet<Op> {
        let needless = |addresses: &HashSet<Value>| {
            addresses.iter().all(|address| {
                let mut uses = self.body.uses(*address);
                !self.shadow_may_be_primal(*address)
                    && uses.all(|at| !self.is_done_again(plan, at.op))
            })
        };
        let blocks = self.of_numbers.iter();
        blocks
            .filter(|(_, addresses)| needless(addresses))
            .map(|(made, _)| *made)
            .collect()
    }
    /// Whether the return sweep of a plan does an op again, or all that is around it.
    fn is_done_again(&self, plan: &Plan, op: Op) -> bool {
        let in_replay = |region| self.replayed_around(region).is_some();
        let loaded = match self.body.kind(op) {
            OpKind::Load(_) => plan.redone.contains(&Node::Primal(self.body.result(op))),
            _ => false,
        };
        loaded || self.body.parent(op).is_some_and(in_replay)
    }
}
