//! Persistent memory: active memory that outlives the call because a global retains its address.
//!
//! Shadows of blocks are allocated with the blocks and freed by the reverse pass. A global's shadow would
//! then dangle, or the next call would find stale contents. A block allocated earlier, outside the
//! differentiated code, has no shadow. Neither case is supported; both are refused.
//!
//! Pointers stored before the call may reach a block on several paths. A write through one path may be read
//! through another, and the derivative would be lost. Such memory is refused too. A path may be a
//! variable's name, if functions outside the differentiated code store its address.

use crate::activity::memory::MemoryActivity;
use crate::checks::finding::Finding;
use crate::checks::request::RequestFacts;
use crate::lifetime::owned_blocks::owned_blocks;
use crate::lifetime::persistent_blocks::{reachable_from, retained_blocks, retaining_global};
use crate::memory::value_accesses::{ValueAccess, value_accesses};
use crate::points_to::alias_sets::{AliasSetId, MemoryOrigin};
use crate::types::lattice::CellType;
use crate::view::View;
use gradus_ir::{Body, Code, Diagnostic, FuncId, GlobalId, Op, Symbol, Unit};
use std::collections::{BTreeMap, BTreeSet};

/// Refuses active memory that a variable retains: one finding per alias set.
pub(crate) fn check(request: &RequestFacts<'_>) -> Vec<Finding> {
    let (facts, classes) = (request.facts, request.classes);
    let kept = PersistentBlocks::retained_by_globals(facts, classes);
    let refused = kept.refused(facts, classes).into_iter();
    refused
        .filter_map(|(class, why)| diagnostic(facts, class, why))
        .map(Finding::without_position)
        .collect()
}

/// Memory that exists before or after the call.
#[derive(Default)]
struct PersistentBlocks {
    /// Blocks reachable from a global, with a global that reaches them.
    blocks: BTreeMap<AliasSetId, PersistentRef>,
    /// Memory with active floats directly behind such blocks, or reachable from globals with unreadable
    /// initializers.
    active_behind_globals: BTreeMap<AliasSetId, GlobalId>,
    /// Memory behind pointers that functions outside the differentiated code may have stored in a global.
    set: BTreeMap<AliasSetId, ExternalPointee>,
}

/// Memory behind a pointer that functions outside the differentiated code may have stored.
struct ExternalPointee {
    /// The global that holds or reaches the pointer.
    global: GlobalId,
    /// The memory to which every pointer to the pointee may point, too: an alias that the analysis represents.
    companions: BTreeSet<AliasSetId>,
}

/// Reason of a refusal.
#[derive(Clone, Copy)]
enum RefusalReason {
    /// A global retains the address.
    RetainedByGlobal(GlobalId),
    /// The pointee of the first global may be the second global or lie in it.
    AliasesGlobal(GlobalId, GlobalId),
}

#[derive(Clone, Copy)]
struct PersistentRef {
    global: GlobalId,
    /// True if the global itself holds the pointer.
    is_direct: bool,
    /// True if the derivative makes the block's shadow at its start: only owning pointers lead to the block.
    is_owned: bool,
}

impl PersistentBlocks {
    fn retained_by_globals(facts: View<'_>, classes: &MemoryActivity) -> PersistentBlocks {
        let mut kept = PersistentBlocks::default();
        let owned = owned_blocks(facts, |class| classes.is_always_freed(class));
        for (holder, class) in facts.memory.alias_sets() {
            let Some(global) = retaining_global(facts, class) else {
                continue;
            };
            kept.record_external_stores(facts, classes, holder);
            let is_freed = |class| classes.is_always_freed(class);
            let is_left = |class| classes.is_write_only(class);
            for (class, direct) in retained_blocks(facts, holder, &is_freed, &is_left) {
                kept.blocks.insert(
                    class,
                    PersistentRef {
                        global,
                        is_direct: direct,
                        is_owned: owned.contains(&class),
                    },
                );
                let held = facts.memory.pointees(class);
                let active = held
                    .iter()
                    .filter(|held| classes.holds_active_floats(**held));
                kept.active_behind_globals
                    .extend(active.map(|held| (*held, global)));
            }
        }
        kept
    }

    /// Records the memory reachable from the globals of an alias set that external code sets or whose
    /// initializer is unreadable.
    fn record_external_stores(
        &mut self,
        facts: View<'_>,
        classes: &MemoryActivity,
        holder: AliasSetId,
    ) {
        let reached = reachable_from(facts, holder);
        for origin in &facts.memory.get(holder).origins {
            let MemoryOrigin::Global(global) = *origin else {
                continue;
            };
            let active = |class: &AliasSetId| classes.holds_active_floats(*class);
            if !facts.unit.globals[global].unparsed_symbols.is_empty() {
                let lent = reached.iter().filter(|class| active(class));
                self.active_behind_globals
                    .extend(lent.map(|class| (*class, global)));
            }
            let how = facts.unit.address_escapes(global);
            if how.is_some_and(|how| {
                how.pointers_stored_by
                    .iter()
                    .any(|by| is_not_differentiated(facts, *by))
            }) {
                self.add_pointees(facts, global, reached.iter().chain([&holder]));
            }
        }
    }
    /// Adds the memory behind the pointers in `holders`.
    fn add_pointees<'c>(
        &mut self,
        facts: View<'_>,
        global: GlobalId,
        holders: impl Iterator<Item = &'c AliasSetId>,
    ) {
        for holder in holders {
            for cell in facts.memory.get(*holder).words.values() {
                let targets: BTreeSet<_> = cell.targets.iter().map(|at| at.class).collect();
                for &class in &targets {
                    let known = self.set.entry(class).or_insert_with(|| ExternalPointee {
                        global,
                        companions: targets.clone(),
                    });
                    known.companions.retain(|other| targets.contains(other));
                }
            }
        }
    }

    /// Returns the globals that may be pointees of externally set pointers, with one written and the other
    /// read.
    fn written_global_aliases(
        &self,
        facts: View<'_>,
        classes: &MemoryActivity,
    ) -> BTreeMap<AliasSetId, RefusalReason> {
        let given = facts.closure.globals().iter().filter(|global| {
            let how = facts.unit.address_escapes(**global);
            // External code may have copied the initial value of a variable.
            let gives = |by: &Option<Symbol>| {
                matches!(by, Some(Symbol::Global(_))) || is_not_differentiated(facts, *by)
            };
            how.is_some_and(|how| how.stored_by.iter().any(gives))
        });
        let named: BTreeMap<AliasSetId, GlobalId> = given
            .filter_map(|global| Some((facts.memory.global(*global)?.class, *global)))
            .collect();
        let is_written = |class| classes.is_varied(class) && classes.is_written(class);
        let mut refused = BTreeMap::new();
        for (&class, pointee) in &self.set {
            let apart = |other: &AliasSetId| !pointee.companions.contains(other);
            for (&other, &name) in named.iter().filter(|(other, _)| apart(other)) {
                let (to, from) = match (is_written(class), is_written(other)) {
                    (true, _) if classes.is_useful(other) => (class, other),
                    (_, true) if classes.is_useful(class) => (other, class),
                    _ => continue,
                };
                if share_float_type(facts, to, from) {
                    refused.insert(to, RefusalReason::AliasesGlobal(pointee.global, name));
                }
            }
        }
        refused
    }

    /// Returns the refused blocks: written with varied values, while active outputs depend on the block or
    /// on a block that may alias. Pointers stored before the call may point anywhere.
    fn refused(
        &self,
        facts: View<'_>,
        classes: &MemoryActivity,
    ) -> BTreeMap<AliasSetId, RefusalReason> {
        let mut refused = self.written_global_aliases(facts, classes);
        let lent = self.active_behind_globals.iter();
        refused
            .extend(lent.map(|(class, global)| (*class, RefusalReason::RetainedByGlobal(*global))));
        let written = (self.blocks.iter())
            .filter(|(class, _)| classes.is_varied(**class) && classes.is_written(**class));
        for (&class, holder) in written {
            let mut read = self
                .blocks
                .iter()
                .filter(|(read, _)| classes.is_useful(**read));
            if read.any(|(&read, other)| match read == class {
                true => !holder.is_owned,
                false => {
                    !holder.is_disjoint(*other, facts.unit) && share_float_type(facts, read, class)
                }
            }) {
                refused.insert(class, RefusalReason::RetainedByGlobal(holder.global));
            }
        }
        refused
    }
}

/// Returns true if a function or variable is outside the differentiated code.
fn is_not_differentiated(facts: View<'_>, symbol: Option<Symbol>) -> bool {
    match symbol {
        None => true,
        Some(Symbol::Func(func)) => !facts.closure.contains(func),
        Some(Symbol::Global(global)) => !facts.closure.globals().contains(&global),
    }
}

impl PersistentRef {
    /// Returns true if no other pointer from before the call reaches the block.
    fn is_only_pointer(self, unit: &Unit) -> bool {
        self.is_direct && unit.holds_only_fresh_blocks(self.global)
    }
    /// Returns true if the block and another one are known to be two blocks.
    fn is_disjoint(self, other: PersistentRef, unit: &Unit) -> bool {
        self.is_owned && other.is_owned || self.is_only_pointer(unit) && other.is_only_pointer(unit)
    }
}

/// Returns true if accesses saw floats of one common format in both alias sets.
pub(crate) fn share_float_type(facts: View<'_>, a: AliasSetId, b: AliasSetId) -> bool {
    let (a, b) = (facts.words.types_of_set(a), facts.words.types_of_set(b));
    a.floats().any(|kind| b.has(CellType::float(kind)))
}

fn diagnostic(facts: View<'_>, class: AliasSetId, why: RefusalReason) -> Option<Diagnostic> {
    let (func, body, op) = first_store(facts, class).or_else(|| first_pointer(facts, class))?;
    let unit: &Unit = facts.unit;
    let function = &unit.functions[func];
    let name = |global: GlobalId| &unit.globals[global].name;
    let (message, help) = match why {
        RefusalReason::RetainedByGlobal(global) => {
            let name = name(global);
            (
                format!("`{name}` retains active memory from one call to the next"),
                format!(
                    "allocate and free the memory in the differentiated function, or pass `{name}` as an argument"
                ),
            )
        }
        RefusalReason::AliasesGlobal(global, other) => {
            let (name, other) = (name(global), name(other));
            (
                format!(
                    "`{name}` may point to `{other}`, and derivatives do not pass between the two names"
                ),
                format!(
                    "set `{name}` in the differentiated function, or access `{other}` through only one of the two names"
                ),
            )
        }
    };
    Some(
        Diagnostic::error(Code::Outlives, message)
            .in_function(function.display_name())
            .at(unit.span(body.ops[op].loc), "here")
            .help(help),
    )
}

/// Returns the first op that loads an address of an alias set, or else the first that stores one.
fn first_pointer<'a>(facts: View<'a>, class: AliasSetId) -> Option<(FuncId, &'a Body, Op)> {
    let mut put = None;
    for (func, body) in facts.closure.bodies(facts.unit) {
        for op in body.walk(body.root()) {
            let leads = |value| {
                facts
                    .memory
                    .may_point_into(func, value, |other| other == class)
            };
            let mut taken = false;
            value_accesses(facts.unit, body, op, |touch| match touch {
                ValueAccess::Load { value, .. } => taken |= leads(value),
                ValueAccess::Store { value, .. } if leads(value) => {
                    put = put.or(Some((func, body, op)));
                }
                ValueAccess::Store { .. } => {}
            });
            if taken {
                return Some((func, body, op));
            }
        }
    }
    put
}

/// Returns the first store of a float to an alias set.
fn first_store<'a>(facts: View<'a>, class: AliasSetId) -> Option<(FuncId, &'a Body, Op)> {
    for (func, body) in facts.closure.bodies(facts.unit) {
        for op in body.walk(body.root()) {
            let mut hit = false;
            value_accesses(facts.unit, body, op, |touch| {
                if let ValueAccess::Store { ptr, value } = touch {
                    hit |= facts
                        .memory
                        .may_point_into(func, ptr, |other| other == class)
                        && facts.words.carries_float(func, value);
                }
            });
            if hit {
                return Some((func, body, op));
            }
        }
    }
    None
}
