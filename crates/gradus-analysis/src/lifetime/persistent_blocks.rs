//! Memory that globals retain or a result reaches: blocks that exist before or after the call.
//!
//! Activity analysis gives blocks that only receive addresses no shadow. `checks/outlives/persistent_memory.rs` refuses the
//! blocks whose derivatives would be lost.

use crate::memory::value_accesses::{ValueAccess, value_accesses};
use crate::points_to::alias_sets::{AliasSet, AliasSetId, MemoryOrigin};
use crate::view::View;
use gradus_ir::{FuncId, GlobalId};
use std::collections::BTreeSet;

/// Returns the blocks reachable from the memory of variables. The flag is true if the variables themselves
/// hold the pointer. Alias sets selected by `is_left`, and sets reachable only through them, are left out.
pub(crate) fn retained_blocks(
    facts: View<'_>,
    holder: AliasSetId,
    is_freed: &dyn Fn(AliasSetId) -> bool,
    is_left: &dyn Fn(AliasSetId) -> bool,
) -> Vec<(AliasSetId, bool)> {
    let ends: BTreeSet<AliasSetId> = pointees_that_end(facts, holder, is_freed);
    let own = facts.memory.pointees(holder);
    let mut work: Vec<(AliasSetId, bool)> = own.iter().map(|class| (*class, true)).collect();
    let (mut seen, mut blocks) = (BTreeSet::new(), Vec::new());
    while let Some((class, direct)) = work.pop() {
        // A block shares the variable's alias set if the analysis cannot separate them.
        let asked = direct || class == holder;
        if !seen.insert(class) || is_left(class) || asked && ends.contains(&class) {
            continue;
        }
        blocks.push((class, direct));
        let held = facts.memory.pointees(class);
        work.extend(held.into_iter().map(|class| (class, false)));
    }
    blocks
}

/// Returns the pointees of variables that do not exist after the call and have a shadow if they exist before it.
///
/// A pointer that other code may set points to known blocks or to memory of unknown origin. The known blocks decide:
/// derivatives end the program at a pointer without a shadow.
fn pointees_that_end(
    facts: View<'_>,
    holder: AliasSetId,
    is_freed: &dyn Fn(AliasSetId) -> bool,
) -> BTreeSet<AliasSetId> {
    let is_known = |class: &&AliasSetId| !facts.memory.get(**class).origins.is_empty();
    let outlives = |class: &AliasSetId| outlives(facts.memory.get(*class), is_freed(*class));
    let (mut ends, mut left) = (BTreeSet::from([holder]), BTreeSet::new());
    left.extend(Some(holder).filter(outlives));
    for cell in facts.memory.get(holder).words.values() {
        let targets: BTreeSet<AliasSetId> = cell.targets.iter().map(|at| at.class).collect();
        let known: Vec<&AliasSetId> = targets.iter().filter(is_known).collect();
        let known_end = !known.is_empty() && !known.into_iter().any(outlives);
        for class in &targets {
            let ends_here = match is_known(&class) {
                true => !outlives(class),
                false => known_end,
            };
            ends.insert(*class);
            left.extend(Some(*class).filter(|_| !ends_here));
        }
    }
    ends.retain(|class| !left.contains(class));
    ends
}

/// Returns true if memory of an alias set may exist after the call, or may have been allocated before the
/// call without a shadow.
fn outlives(class: &AliasSet, is_freed: bool) -> bool {
    let made = class
        .origins
        .iter()
        .any(|o| matches!(o, MemoryOrigin::Heap(..)));
    let has_shadow = |o: &MemoryOrigin| {
        matches!(
            o,
            MemoryOrigin::Argument(..) | MemoryOrigin::Alloca(..) | MemoryOrigin::Global(_)
        )
    };
    match made {
        true => !is_freed,
        false => !class.origins.iter().any(has_shadow),
    }
}

/// Returns a non-constant variable among the origins of an alias set.
pub(crate) fn retaining_global(facts: View<'_>, class: &AliasSet) -> Option<GlobalId> {
    class.origins.iter().find_map(|origin| match origin {
        MemoryOrigin::Global(global) if !facts.unit.globals[*global].constant => Some(*global),
        _ => None,
    })
}

/// Returns the pointer blocks that globals retain and into which the call graph only stores addresses. No
/// load from such a block yields a pointer to memory for which `is_active` holds. Such blocks need no
/// shadow.
pub(crate) fn write_only_blocks(
    facts: View<'_>,
    is_freed: &dyn Fn(AliasSetId) -> bool,
    is_active: &dyn Fn(AliasSetId) -> bool,
) -> BTreeSet<AliasSetId> {
    let mut blocks = BTreeSet::new();
    for (holder, class) in facts.memory.alias_sets() {
        if retaining_global(facts, class).is_some() {
            let list = retained_blocks(facts, holder, is_freed, &|_| false).into_iter();
            blocks.extend(list.map(|(block, _)| block));
        }
    }
    blocks.retain(|block| {
        let origins = &facts.memory.get(*block).origins;
        let is_heap = |o: &MemoryOrigin| matches!(o, MemoryOrigin::Heap(..));
        // The head of a container lies in the variable and shares an alias set with the nodes.
        let may_be = |o: &MemoryOrigin| is_heap(o) || matches!(o, MemoryOrigin::Global(_));
        !is_active(*block)
            && origins.iter().all(may_be)
            && (origins.is_empty() || origins.iter().any(is_heap))
    });
    loop {
        let read = blocks_with_active_loads(facts, &blocks, is_active);
        if read.is_empty() {
            return blocks;
        }
        blocks.retain(|block| !read.contains(block));
    }
}

/// Returns the blocks from which the call graph loads pointers that reach active memory.
fn blocks_with_active_loads(
    facts: View<'_>,
    blocks: &BTreeSet<AliasSetId>,
    is_active: &dyn Fn(AliasSetId) -> bool,
) -> BTreeSet<AliasSetId> {
    let leads = |class: AliasSetId| {
        !blocks.contains(&class)
            && (is_active(class) || reachable_from(facts, class).into_iter().any(is_active))
    };
    let mut read = BTreeSet::new();
    for (func, body) in facts.closure.bodies(facts.unit) {
        for op in body.walk(body.root()) {
            value_accesses(facts.unit, body, op, |touch| {
                let ValueAccess::Load { ptr, value } = touch else {
                    // Not an error: a store loads no address.
                    return;
                };
                for block in facts.memory.alias_sets_of(func, ptr) {
                    let mut taken = facts.memory.alias_sets_of(func, value);
                    // The value holds several pointers.
                    let bytes = facts.unit.layout.store_bytes(facts.unit, body.ty(value));
                    if bytes > facts.unit.layout.pointer_bytes {
                        taken.extend(facts.memory.pointees(block));
                    }
                    if blocks.contains(&block) && taken.into_iter().any(leads) {
                        read.insert(block);
                    }
                }
            });
        }
    }
    for copy in facts.memory.copies() {
        for (from, to) in copy.flows() {
            let held = || facts.memory.pointees(from).into_iter();
            if blocks.contains(&from) && !blocks.contains(&to) && held().any(leads) {
                read.insert(from);
            }
        }
    }
    read
}

/// Returns all memory reachable from a function's result.
pub(crate) fn reachable_from_result(facts: View<'_>, func: FuncId) -> BTreeSet<AliasSetId> {
    let places = facts.memory.returned(func).iter().flatten();
    let classes: BTreeSet<AliasSetId> = places.map(|place| place.class).collect();
    let behind = classes
        .iter()
        .flat_map(|class| reachable_from(facts, *class));
    behind.chain(classes.iter().copied()).collect()
}

/// Returns all memory reachable from an alias set, transitively.
pub(crate) fn reachable_from(facts: View<'_>, holder: AliasSetId) -> BTreeSet<AliasSetId> {
    let mut found = BTreeSet::new();
    let mut work = facts.memory.pointees(holder);
    while let Some(class) = work.pop() {
        if found.insert(class) {
            work.extend(facts.memory.pointees(class));
        }
    }
    found
}
