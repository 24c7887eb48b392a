//! Blocks that variables own: heap memory that the program keeps from one call to the next, and that nothing but owning
//! pointers lead to. A derivative makes the shadows of such blocks at its start, so that they need not be refused.

use crate::points_to::alias_sets::{AliasSet, AliasSetId, CellRef, MemoryOrigin};
use crate::view::View;
use gradus_ir::GlobalId;
use std::collections::BTreeSet;

/// Returns the alias sets of blocks without pointers to which, of all memory that outlives a call, only owning pointers
/// lead ([`gradus_ir::OwnedBlock`]). `is_freed` states that the call frees the blocks of an alias set.
pub fn owned_blocks(
    facts: View<'_>,
    is_freed: impl Fn(AliasSetId) -> bool,
) -> BTreeSet<AliasSetId> {
    let (mut owned, mut others) = (BTreeSet::new(), BTreeSet::new());
    for (holder, set) in facts.memory.alias_sets() {
        if is_freed(holder) || !outlives_call(set) {
            continue;
        }
        let owning = owning_cells(facts, holder, set);
        for (offset, cell) in &set.words {
            let targets = cell.targets.iter().map(|target| target.class);
            match owning.contains(offset) {
                true => owned.extend(targets),
                false => others.extend(targets),
            }
        }
    }
    owned.retain(|class| !others.contains(class) && is_plain_block(facts, *class));
    owned
}

/// Returns true unless all objects of an alias set are variables of a call.
fn outlives_call(set: &AliasSet) -> bool {
    let is_local = |origin: &MemoryOrigin| matches!(origin, MemoryOrigin::Alloca(..));
    set.origins.is_empty() || !set.origins.iter().all(is_local)
}

/// Returns the cells of a variable that own their blocks, by normalised offset.
fn owning_cells(facts: View<'_>, holder: AliasSetId, set: &AliasSet) -> BTreeSet<i64> {
    let [MemoryOrigin::Global(global)] = set.origins[..] else {
        return BTreeSet::new();
    };
    let cells = owning_places(facts, global).filter(|place| place.class == holder);
    cells
        .map(|place| set.normalize_offset(place.offset_bytes))
        .collect()
}

/// Returns the places of the owning pointers in a variable.
fn owning_places(facts: View<'_>, global: GlobalId) -> impl Iterator<Item = CellRef> {
    let start = facts.memory.global(global);
    let blocks = facts.unit.owned_blocks(global).iter();
    blocks.filter_map(move |block| {
        let start = start?;
        Some(CellRef {
            offset_bytes: start.offset_bytes + block.offset_bytes as i64,
            ..start
        })
    })
}

/// Returns true for heap blocks, from the call or from before it, that hold no pointers and do not escape.
fn is_plain_block(facts: View<'_>, class: AliasSetId) -> bool {
    let set = facts.memory.get(class);
    let is_heap = |origin: &MemoryOrigin| matches!(origin, MemoryOrigin::Heap(..));
    !set.escaped
        && set.origins.iter().all(is_heap)
        && !facts.words.types_of_set(class).has_pointer()
        && set.words.values().all(|cell| cell.targets.is_empty())
}
