//! Blocks that variables own: heap memory that the program keeps from one call to the next, and that nothing but owning
//! pointers lead to. A derivative makes the shadows of such blocks at its start, so that they need not be refused.

use crate::call_graph::Callee;
use crate::points_to::alias_sets::{AliasSet, AliasSetId, CellRef, MemoryOrigin};
use crate::view::View;
use gradus_ir::{GlobalId, Linkage, Symbol};
use std::collections::BTreeSet;

/// Returns the alias sets of blocks without pointers to which, of all memory that outlives a call, only owning pointers
/// lead ([`gradus_ir::OwnedBlock`]). `is_freed` states that the call frees the blocks of an alias set.
pub fn owned_blocks(
    facts: View<'_>,
    is_freed: impl Fn(AliasSetId) -> bool,
) -> BTreeSet<AliasSetId> {
    let (mut owned, mut others) = (BTreeSet::new(), BTreeSet::new());
    let calls_back = may_call_back(facts);
    for (holder, set) in facts.memory.alias_sets() {
        if is_freed(holder) || !outlives_call(set) {
            continue;
        }
        let owning = match calls_back && is_set_by_exported_function(facts, set) {
            true => BTreeSet::new(),
            false => owning_cells(facts, holder, set),
        };
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

/// Returns true if the call graph calls an unknown function, which may call exported functions of the program.
fn may_call_back(facts: View<'_>) -> bool {
    let functions = facts.closure.bodies(facts.unit).map(|(func, _)| func);
    let mut sites = functions.flat_map(|func| facts.closure.calls_in(func));
    sites.any(|site| match site.callee {
        Callee::Outside(callee) => facts.unit.known_effects(callee).is_none(),
        Callee::Indirect(_) => facts.memory.may_call_unknown(site.caller, site.op),
        Callee::Inside(_) => false,
        Callee::Foreign => true,
    })
}

/// Returns true if a function other than the roots, which other files or pointers may reach, stores pointers in a variable.
fn is_set_by_exported_function(facts: View<'_>, set: &AliasSet) -> bool {
    let [MemoryOrigin::Global(global)] = set.origins[..] else {
        // Not an error: no variable, hence no owning pointers.
        return false;
    };
    let Some(escapes) = facts.unit.address_escapes(global) else {
        // Not an error: no function stores pointers in the variable.
        return false;
    };
    let taken = facts.closure.address_taken();
    escapes.pointers_stored_by.iter().any(|by| match by {
        Some(Symbol::Func(func)) => {
            let is_exported = facts.unit.functions[*func].linkage != Linkage::Internal;
            !facts.closure.roots().contains(func) && is_exported || taken.contains(func)
        }
        Some(Symbol::Global(_)) => false,
        None => true,
    })
}

/// Returns true unless all objects of an alias set are variables of a call.
fn outlives_call(set: &AliasSet) -> bool {
    let is_local = |origin: &MemoryOrigin| matches!(origin, MemoryOrigin::Alloca(..));
    set.origins.is_empty() || !set.origins.iter().all(is_local)
}

/// Returns the cells of a variable that own their blocks, by normalised offset.
fn owning_cells(facts: View<'_>, holder: AliasSetId, set: &AliasSet) -> BTreeSet<i64> {
    let [MemoryOrigin::Global(global)] = set.origins[..] else {
        // Not an error: no variable, hence no owning pointers.
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
