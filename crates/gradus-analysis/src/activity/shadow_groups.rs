//! Shadow groups: alias sets whose pointers need one answer to the question of a shadow.
//!
//! An object has a shadow or not. A pointer with several targets has one shadow pointer; the derivative
//! decides once how to compute it. Alias sets that share a pointer therefore form a group, transitively, and
//! all members have the same shadow state. A pointer is a leaf of a value or of a function's result, or the
//! content of one memory cell. The memory of unknown code and all escaped memory form one group.

use crate::points_to::alias_sets::{AliasSetId, AliasSets, CellRef};
use gradus_ir::Entity;

/// The shadow groups of a call graph.
#[derive(Clone, Debug, Default)]
pub(crate) struct ShadowGroups {
    /// Per alias set, the first member of its group.
    first: Vec<u32>,
}

impl ShadowGroups {
    /// Computes the groups of all alias sets.
    pub fn of(memory: &AliasSets) -> ShadowGroups {
        let count = memory.alias_sets().len() as u32;
        let mut groups = ShadowGroups {
            first: (0..count).collect(),
        };
        for targets in memory.pointers() {
            groups.join(targets);
        }
        if let Some((unknown, escaped)) = memory.unknown_memory() {
            for set in escaped {
                groups.join_sets(unknown, set);
            }
        }
        for set in 0..count {
            groups.first[set as usize] = groups.find(set);
        }
        groups
    }
    /// Returns the representative of an alias set's group: the member with the least index.
    pub fn group_of(&self, class: AliasSetId) -> AliasSetId {
        AliasSetId::from_index(self.first[class.index()] as usize)
    }
    /// Returns, per alias set, the join of the `items` of its group.
    pub fn join_members<T: Clone>(&self, items: &[T], mut join: impl FnMut(&mut T, &T)) -> Vec<T> {
        let mut joined = items.to_vec();
        for (set, first) in self.first.iter().enumerate() {
            join(&mut joined[*first as usize], &items[set]);
        }
        let of_group = |first: &u32| joined[*first as usize].clone();
        self.first.iter().map(of_group).collect()
    }

    fn join(&mut self, targets: &[CellRef]) {
        for pair in targets.windows(2) {
            self.join_sets(pair[0].class, pair[1].class);
        }
    }
    fn join_sets(&mut self, a: AliasSetId, b: AliasSetId) {
        let [a, b] = [a, b].map(|set| self.find(set.index() as u32));
        self.first[a.max(b) as usize] = a.min(b);
    }
    fn find(&mut self, set: u32) -> u32 {
        let mut at = set;
        while self.first[at as usize] != at {
            let next = self.first[at as usize];
            self.first[at as usize] = self.first[next as usize];
            at = next;
        }
        at
    }
}
