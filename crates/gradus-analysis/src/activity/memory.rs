//! Activity of memory: decides which alias sets carry derivatives and therefore have shadows.
//!
//! Derivatives flow along the edges of `flow_graph.rs` over the whole call graph, context-insensitively: between
//! values, through memory, into callees and back. A value is *varied* if it depends on an active input and
//! *useful* if an active output depends on it. Two searches over one graph compute both. An alias set with
//! varied and useful floats carries derivatives. The shadow state of its pointers depends on the allocation
//! sites: see [`ShadowPresence`]. The state is decided per group of alias sets that share a pointer
//! (`shadow_groups.rs`).
//!
//! `values.rs` restores context sensitivity, one variant of a function at a time.

use crate::activity::exception_objects;
use crate::activity::flow_graph::{Flow, FlowNode};
use crate::activity::fraction_bits::FractionBits;
use crate::activity::integer_words::IntegerWords;
use crate::activity::partial_floats::{FloatBitNodes, is_partial_float};
use crate::activity::shadow_groups::ShadowGroups;
use crate::call_graph::Callee;
use crate::lifetime::{must_free, persistent_blocks};
use crate::memory::value_accesses::{ValueAccess, value_accesses};
use crate::points_to::alias_sets::{AliasSet, AliasSetId, AliasSets, CellRef, MemoryOrigin};
use crate::view::View;
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{
    Body, ConstKind, Definition, Entity, FuncId, GlobalId, Op, OpKind, Type, Unit, Value,
};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Activity annotation of an argument of the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Activity {
    /// Inactive, including the memory behind the argument.
    Const,
    /// Has a tangent or a shadow. All memory reachable from the argument has shadow memory.
    Dup,
    /// Like [`Activity::Dup`], but the caller does not require the primal contents afterwards.
    DupNoNeed,
    /// A float whose adjoint is a result of the derivative.
    Out,
}

/// A differentiation request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The function to be differentiated.
    pub root: FuncId,
    /// One entry per parameter; an absent entry means [`Activity::Const`].
    pub args: Vec<Activity>,
    /// True if the result is active: it has a tangent or a cotangent.
    pub result: bool,
}

/// Presence of shadow memory for an alias set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ShadowPresence {
    /// No object has a shadow; the shadow of a pointer is the pointer itself.
    #[default]
    Inactive,
    /// Every object has a shadow; every pointer has a real shadow.
    Active,
    /// Some objects have a shadow. A run-time test decides: a pointer is inactive if its shadow equals it.
    Maybe,
}

/// Kind of a pointer's shadow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ShadowState {
    /// The pointer itself: its memory carries no derivative.
    #[default]
    None,
    /// Memory distinct from the pointer's.
    Real,
    /// Either; the run-time test is `shadow != primal`.
    Maybe,
}

impl ShadowState {
    /// Returns true if there may be a shadow.
    pub fn is_some(self) -> bool {
        self != ShadowState::None
    }
    /// Returns the join of two states.
    #[must_use]
    pub fn or(self, other: ShadowState) -> ShadowState {
        if self == other {
            self
        } else {
            ShadowState::Maybe
        }
    }
}

/// Activity of an argument or a result in one variant of a function; part of the variant's key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ArgActivity {
    /// True if floats carried by value are active.
    pub active: bool,
    /// Shadow of the carried pointers.
    pub shadow: ShadowState,
}

/// Activity of the memory of a call graph.
#[derive(Clone, Debug, Default)]
pub struct MemoryActivity {
    states: Vec<ShadowPresence>,
    floats: Vec<bool>,
    flow: Flow,
    varied: Vec<bool>,
    useful: Vec<bool>,
    scrambled: Vec<bool>,
    /// Per alias set with a shadow: facts about missing type evidence.
    untold: Vec<UnknownMemory>,
    written: Vec<bool>,
    escaping: Vec<bool>,
    /// Pointer blocks with stores of addresses only.
    write_only: BTreeSet<AliasSetId>,
    provenance: Vec<SetProvenance>,
    /// Per alias set: the join of the provenance over its shadow group.
    group_provenance: Vec<SetProvenance>,
    /// The integers that may hold bits of varied floats.
    float_bits: HashSet<FlowNode>,
    integer_words: IntegerWords,
    fraction_bits: FractionBits,
    /// The alias sets reachable from a result with a shadow.
    returned: BTreeSet<AliasSetId>,
    frees: HashMap<AliasSetId, Vec<(FuncId, Op)>>,
    always_freed: HashSet<AliasSetId>,
    functions: HashSet<FuncId>,
    touching_globals: HashSet<FuncId>,
    handlers_only_read: bool,
}

/// Provenance of an alias set, as far as activity depends on it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SetProvenance {
    /// Reachable from an argument with a shadow.
    pub dup: bool,
    /// An argument with a shadow points to the set directly.
    direct_argument: bool,
    /// Some objects have no shadow.
    pub constant: bool,
    /// Reachable from a const argument.
    pub promised: bool,
    /// Reachable through pointers that the caller stored. Without a shadow, the caller stores the primal
    /// pointer in the place of the shadow pointer.
    handed: bool,
    /// Allocated in the call graph; shadow memory can be allocated alongside.
    pub allocated_inside: bool,
    /// A global that cannot have a shadow in this unit.
    pub barred: Option<GlobalId>,
}

/// Missing type evidence for memory with a shadow from the caller.
#[derive(Clone, Copy, Debug, Default)]
struct UnknownMemory {
    /// No evidence for the contents' types.
    no_evidence: bool,
    /// An argument points to the memory directly.
    direct_argument: bool,
    /// Declared as floats, but accessed as integers only.
    contradicts_declaration: bool,
}

impl MemoryActivity {
    /// Computes the activity of all memory under `request`.
    pub fn of(facts: View<'_>, request: &Request) -> MemoryActivity {
        let flow = Flow::of(facts);
        let sources = provenance_of_alias_sets(facts, request);
        let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
        for (index, source) in sources.iter().enumerate() {
            if source.dup {
                inputs.push(flow.alias_set_node(AliasSetId::from_index(index)));
                outputs.push(flow.alias_set_node(AliasSetId::from_index(index)));
            }
        }
        if let Some(body) = facts.unit.functions[request.root].body.as_deref() {
            for (&param, activity) in body.params().iter().zip(&request.args) {
                if *activity != Activity::Const && facts.words.carries_float(request.root, param) {
                    inputs.extend(flow.value_node(request.root, param));
                }
            }
            if request.result {
                outputs.extend(flow.result_node(request.root));
            }
        }
        let returned = match request.result {
            true => persistent_blocks::reachable_from_result(facts, request.root),
            false => BTreeSet::new(),
        };
        // The caller reads tangents from the shadow of a returned block or adds cotangents to it.
        for &class in &returned {
            outputs.push(flow.alias_set_node(class));
            if facts.words.types_of_set(class).has_float() {
                inputs.push(flow.alias_set_node(class));
            }
        }
        let mut found = MemoryActivity {
            varied: flow.reach(&inputs, true),
            useful: flow.reach(&outputs, false),
            flow,
            ..MemoryActivity::default()
        };
        found.written = written_alias_sets(facts);
        found.escaping = escaping_alias_sets(facts, &sources);
        found.frees = must_free::frees(facts);
        found.always_freed = must_free::always_freed_sets(facts, &found.frees);
        found.untold = (sources.iter().enumerate())
            .map(|(i, source)| UnknownMemory {
                no_evidence: source.dup && facts.words.is_unknown(AliasSetId::from_index(i)),
                direct_argument: source.direct_argument,
                contradicts_declaration: source.dup
                    && facts
                        .words
                        .contradicts_declaration(AliasSetId::from_index(i)),
            })
            .collect();
        let bits = found.float_bits(facts, &sources);
        found.scrambled = found.flow.bitwise_tainted(&bits.all, bits.partial);
        found.compute_states(facts, &sources, request.root);
        found.functions = active_functions(facts, &found);
        found.touching_globals = functions_touching_globals(facts, &found);
        found.handlers_only_read = exception_objects::handlers_are_read_only(facts);
        found.float_bits = bits.all.into_iter().collect();
        found.integer_words = IntegerWords::of(facts, &found);
        found.returned = returned;
        found.provenance = sources;
        found.fraction_bits = FractionBits::of(facts, &found);
        found
    }

    /// Returns the shadow state of an alias set.
    pub fn state(&self, class: AliasSetId) -> ShadowPresence {
        self.states.get(class.index()).copied().unwrap_or_default()
    }
    /// Returns true if every exception handler only reads the caught object.
    pub(crate) fn handlers_are_read_only(&self) -> bool {
        self.handlers_only_read
    }
    /// Returns true if floats in the alias set carry derivatives. An alias set with only pointers to such
    /// memory has a shadow, but no active floats.
    pub fn holds_active_floats(&self, class: AliasSetId) -> bool {
        self.floats.get(class.index()).copied().unwrap_or(false)
    }
    /// Returns true if floats in the alias set may depend on active inputs.
    pub fn is_varied(&self, class: AliasSetId) -> bool {
        self.varied[self.flow.alias_set_node(class)]
    }
    /// Returns true if active outputs may depend on floats in the alias set.
    pub fn is_useful(&self, class: AliasSetId) -> bool {
        self.useful[self.flow.alias_set_node(class)]
    }
    /// Returns true if a value may depend on active inputs in some calling context.
    pub fn value_varied(&self, func: FuncId, value: Value) -> bool {
        let node = self.flow.value_node(func, value);
        node.is_some_and(|node| self.varied[node])
    }
    /// Returns true if active outputs may depend on a value in some calling context.
    pub fn value_useful(&self, func: FuncId, value: Value) -> bool {
        let node = self.flow.value_node(func, value);
        node.is_some_and(|node| self.useful[node])
    }
    /// Returns true if the call graph stores floats or copies bytes to the alias set.
    pub fn is_written(&self, class: AliasSetId) -> bool {
        self.written.get(class.index()).copied().unwrap_or(false)
    }
    /// Returns true if the call graph allocates blocks of the alias set that escape to memory of the
    /// caller.
    pub fn escapes(&self, class: AliasSetId) -> bool {
        self.escaping.get(class.index()).copied().unwrap_or(false)
    }
    /// Returns true if the alias set is reachable from an argument with a shadow.
    pub fn has_caller_shadow(&self, class: AliasSetId) -> bool {
        self.provenance
            .get(class.index())
            .is_some_and(|source| source.dup)
    }
    /// Returns true if the alias set is reachable from the request's result and the caller receives the
    /// result's shadow.
    pub fn is_result_reachable(&self, class: AliasSetId) -> bool {
        self.returned.contains(&class)
    }
    /// Returns the calls that may free blocks of the alias set.
    pub fn frees(&self, class: AliasSetId) -> &[(FuncId, Op)] {
        self.frees.get(&class).map_or(&[], Vec::as_slice)
    }
    /// Returns true for pointer blocks that globals retain and that only receive stores of addresses. Such
    /// blocks have no shadow.
    pub(crate) fn is_write_only(&self, class: AliasSetId) -> bool {
        self.write_only.contains(&class)
    }
    /// Returns true if the allocating call frees every block of the alias set before it returns.
    pub fn is_always_freed(&self, class: AliasSetId) -> bool {
        self.always_freed.contains(&class)
    }
    /// Returns true if the alias set has a shadow from the caller and there is no evidence for its types.
    /// `names_accesses` states that the body's front end emits TBAA names. Without names, only memory
    /// directly behind an argument counts: the caller's annotation declares it as floats.
    pub fn is_unknown(&self, class: AliasSetId, names_accesses: bool) -> bool {
        let untold = self.untold.get(class.index());
        untold.is_some_and(|u| {
            u.contradicts_declaration || u.no_evidence && (u.direct_argument || names_accesses)
        })
    }
    /// Returns true if the alias set has a shadow from the caller and is declared as floats, although the
    /// program's accesses name integers only.
    pub fn contradicts_declaration(&self, class: AliasSetId) -> bool {
        self.untold
            .get(class.index())
            .is_some_and(|u| u.contradicts_declaration)
    }
    /// Returns true if an integer results from integer arithmetic on the bits of a varied float.
    pub fn is_bitwise_tainted(&self, func: FuncId, value: Value) -> bool {
        let node = self.flow.value_node(func, value);
        node.is_some_and(|node| self.scrambled[node])
    }
    /// Returns true if a function's result may depend on active inputs in some calling context.
    pub fn result_varied(&self, func: FuncId) -> bool {
        let node = self.flow.result_node(func);
        node.is_some_and(|node| self.varied[node])
    }
    /// Returns the shadow of a global's address.
    pub fn global(&self, facts: View<'_>, global: GlobalId) -> ShadowState {
        let Some(place) = facts.memory.global(global) else {
            return ShadowState::None;
        };
        match can_have_shadow(facts.unit, global)
            && self.state(place.class) != ShadowPresence::Inactive
        {
            true => ShadowState::Real,
            false => ShadowState::None,
        }
    }
    /// Returns true if an address-taken function works on active values or on memory with shadows.
    pub fn is_active_function(&self, func: FuncId) -> bool {
        self.functions.contains(&func)
    }
    /// Returns true if a function or one of its callees mentions a global with a shadow. Such a function
    /// may carry derivatives even without active arguments.
    pub fn touches_globals(&self, func: FuncId) -> bool {
        self.touching_globals.contains(&func)
    }
    /// Returns the provenance of an alias set.
    pub(crate) fn provenance(&self, class: AliasSetId) -> &SetProvenance {
        &self.provenance[class.index()]
    }
    /// Returns the join of the provenance over the shadow group of an alias set.
    pub(crate) fn group_provenance(&self, class: AliasSetId) -> &SetProvenance {
        &self.group_provenance[class.index()]
    }
    /// Returns the alias sets reachable from a result with a shadow.
    pub(crate) fn result_reachable_sets(&self) -> &BTreeSet<AliasSetId> {
        &self.returned
    }
    /// Returns the flow graph of the call graph.
    pub(crate) fn flow(&self) -> &Flow {
        &self.flow
    }
    /// Returns true if an integer may hold bits of a varied float, as they were loaded.
    pub(crate) fn may_be_float_bits(&self, func: FuncId, value: Value) -> bool {
        let node = self.flow.value_node(func, value);
        node.is_some_and(|node| self.float_bits.contains(&node))
    }
    pub(super) fn integer_words(&self) -> &IntegerWords {
        &self.integer_words
    }
    /// Returns what happens to fraction bits of varied floats.
    pub(crate) fn fraction_bits(&self) -> &FractionBits {
        &self.fraction_bits
    }
    /// Returns the nodes of integers that may hold bits of varied floats.
    pub(crate) fn float_bit_nodes(&self) -> &HashSet<FlowNode> {
        &self.float_bits
    }

    /// Returns the integers that carry varied floats or are loaded from cells that may hold such floats.
    /// Included are loads from memory with a shadow that is never stored to and is accessed as integers
    /// only, or that has no type evidence.
    fn float_bits(&self, facts: View<'_>, sources: &[SetProvenance]) -> FloatBitNodes {
        let (mut list, mut pieces) = (Vec::new(), Vec::new());
        let stored = stored_alias_sets(facts);
        let as_integers = |class: AliasSetId, named: bool| {
            let seen = facts.words.types_of_set(class);
            let integers = seen.has_integer() && !seen.has_float() && !seen.has_pointer();
            let read = sources[class.index()].dup && integers && !stored.contains(&class);
            read || self.is_unknown(class, named)
        };
        for (func, body) in facts.closure.bodies(facts.unit) {
            let is_int = |value: Value| facts.unit.types.int_bits(body.ty(value)).is_some();
            let named = crate::types::lattice::has_tbaa_names(facts.unit, body);
            for value in body.values.ids().filter(|value| is_int(*value)) {
                let node = self.flow.value_node(func, value);
                list.extend(node.filter(|node| self.varied[*node]));
            }
            for op in body.walk(body.root()) {
                value_accesses(facts.unit, body, op, |access| {
                    let ValueAccess::Load { ptr, value } = access else {
                        // Not an error: stores define no integers.
                        return;
                    };
                    let bytes = facts.unit.layout.store_bytes(facts.unit, body.ty(value));
                    let may_hold = |place: &&CellRef| {
                        self.is_varied(place.class)
                            && facts.words.may_hold_floats(facts.memory, **place, bytes)
                            || as_integers(place.class, named)
                    };
                    let targets = facts.memory.targets(func, ptr).iter();
                    let mut floats = targets.filter(may_hold).peekable();
                    let named = || crate::types::lattice::is_next_to_pointers(facts.unit, body, op);
                    if floats.peek().is_some() && is_int(value) && !named() {
                        let node = self.flow.value_node(func, value);
                        list.extend(node);
                        let piece =
                            floats.any(|at| is_partial_float(facts, body, op, (*at, bytes)));
                        pieces.extend(node.filter(|_| piece));
                    }
                });
            }
        }
        FloatBitNodes {
            all: list,
            partial: pieces,
        }
    }
    /// Computes the shadow states, per shadow group. Memory with pointers to memory with shadows has a shadow
    /// itself.
    fn compute_states(&mut self, facts: View<'_>, sources: &[SetProvenance], root: FuncId) {
        let count = sources.len();
        self.floats = (0..count)
            .map(|i| {
                let node = self.flow.alias_set_node(AliasSetId::from_index(i));
                sources[i].dup || self.varied[node] && self.useful[node]
            })
            .collect();
        let returned = persistent_blocks::reachable_from_result(facts, root);
        // Floats that are only written or only read may belong to another block.
        let matters = |class: AliasSetId| {
            self.floats[class.index()] || self.is_varied(class) || self.is_useful(class)
        };
        let is_freed = |class| self.is_always_freed(class);
        self.write_only = persistent_blocks::write_only_blocks(facts, &is_freed, &matters);
        self.write_only.retain(|class| !returned.contains(class));
        let groups = ShadowGroups::of(facts.memory);
        self.group_provenance = groups.join_members(sources, SetProvenance::join);
        for group in &mut self.group_provenance {
            group.allocated_inside |= !group.dup && !group.constant;
        }
        let sets = || (0..count).map(AliasSetId::from_index);
        // A group has no shadow only if no member needs one.
        let shadowed: BTreeSet<AliasSetId> = sets()
            .filter(|class| !self.write_only.contains(class))
            .map(|class| groups.group_of(class))
            .collect();
        self.write_only
            .retain(|class| !shadowed.contains(&groups.group_of(*class)));
        let mut holders: Vec<Vec<AliasSetId>> = vec![Vec::new(); count];
        for (id, _) in facts.memory.alias_sets() {
            for stored in facts.memory.pointees(id) {
                holders[groups.group_of(stored).index()].push(groups.group_of(id));
            }
        }
        let mut states = vec![ShadowPresence::Inactive; count];
        let mut work: Vec<AliasSetId> = sets()
            .filter(|class| self.floats[class.index()])
            .map(|class| groups.group_of(class))
            .collect();
        let mut seen = vec![false; count];
        while let Some(group) = work.pop() {
            if std::mem::replace(&mut seen[group.index()], true) {
                continue;
            }
            let is_note = self.write_only.contains(&group);
            if is_note && !is_planted(Mutant::WriteOnlyBlocksShadowed) {
                continue;
            }
            let state = self.group_provenance[group.index()].state();
            states[group.index()] = state;
            if state != ShadowPresence::Inactive {
                work.extend(&holders[group.index()]);
            }
        }
        self.states = sets()
            .map(|class| states[groups.group_of(class).index()])
            .collect();
    }
}

impl SetProvenance {
    /// Returns the shadow state of an alias set that carries derivatives.
    fn state(self) -> ShadowPresence {
        match (
            self.dup || self.allocated_inside,
            self.constant || self.handed,
        ) {
            (false, _) => ShadowPresence::Inactive,
            (true, false) => ShadowPresence::Active,
            (true, true) => ShadowPresence::Maybe,
        }
    }
    /// Adds the provenance of another alias set.
    fn join(&mut self, other: &SetProvenance) {
        let SetProvenance {
            dup,
            direct_argument,
            constant,
            promised,
            handed,
            allocated_inside,
            barred,
        } = *other;
        self.dup |= dup;
        self.direct_argument |= direct_argument;
        self.constant |= constant;
        self.promised |= promised;
        self.handed |= handed;
        self.allocated_inside |= allocated_inside;
        self.barred = self.barred.or(barred);
    }
    fn of_alias_set(facts: View<'_>, class: &AliasSet) -> SetProvenance {
        let mut sources = SetProvenance::default();
        for origin in &class.origins {
            match *origin {
                MemoryOrigin::Alloca(..) | MemoryOrigin::Heap(..) => {
                    sources.allocated_inside = true
                }
                // Code has no shadow: the call looks up the derivative of a function address.
                MemoryOrigin::Function(_) => sources.constant = true,
                MemoryOrigin::Global(global) if can_have_shadow(facts.unit, global) => {
                    sources.allocated_inside = true;
                }
                MemoryOrigin::Global(global) => {
                    sources.constant = true;
                    if !facts.unit.globals[global].constant
                        && !is_opaque_external(facts.unit, global)
                    {
                        sources.barred = sources.barred.or(Some(global));
                    }
                }
                MemoryOrigin::External(..) | MemoryOrigin::Unknown => sources.constant = true,
                MemoryOrigin::Argument(..) => {}
            }
        }
        sources
    }
}

/// Returns true if a variable is external and of an opaque type, such as the handles of Open MPI. The
/// program only passes the address on. Code that would store active values in such a variable is refused on
/// its own.
fn is_opaque_external(unit: &Unit, global: GlobalId) -> bool {
    let variable = &unit.globals[global];
    !variable.defined && matches!(unit.types.get(variable.ty), Type::Opaque(_))
}

/// Returns true if a global can have a shadow: this module defines it, its initializer is readable, and it
/// is mutable or holds addresses.
fn can_have_shadow(unit: &Unit, global: GlobalId) -> bool {
    let variable = &unit.globals[global];
    let mut addresses = variable.init.iter().flat_map(|init| &init.relocations);
    let changes = !variable.constant || addresses.next().is_some();
    variable.defined && variable.unparsed_symbols.is_empty() && changes
}

/// Returns the alias sets written by a store of the call graph.
fn stored_alias_sets(facts: View<'_>) -> HashSet<AliasSetId> {
    let mut found = HashSet::new();
    for (func, body) in facts.closure.bodies(facts.unit) {
        for op in body.walk(body.root()) {
            value_accesses(facts.unit, body, op, |access| {
                if let ValueAccess::Store { ptr, .. } = access {
                    found.extend(facts.memory.alias_sets_of(func, ptr));
                }
            });
        }
    }
    found
}

/// Returns, per alias set, true if floats are stored or bytes are copied to it. Copies for `byval`
/// arguments do not count.
pub(crate) fn written_alias_sets(facts: View<'_>) -> Vec<bool> {
    let mut written = vec![false; facts.memory.alias_sets().len()];
    for (func, body) in facts.closure.bodies(facts.unit) {
        for op in body.walk(body.root()) {
            value_accesses(facts.unit, body, op, |access| {
                let ValueAccess::Store { ptr, value } = access else {
                    // Not an error: a load writes no memory.
                    return;
                };
                if facts.words.carries_float(func, value) {
                    for target in facts.memory.targets(func, ptr) {
                        written[target.class.index()] = true;
                    }
                }
            });
        }
    }
    for copy in facts.memory.copies() {
        let body = facts.unit.functions[copy.at.0].body.as_deref();
        let callee = body.and_then(|body| facts.closure.callee(facts.unit, body, copy.at.1));
        if matches!(callee, Some(Callee::Outside(_))) {
            for to in &copy.to {
                written[to.class.index()] = true;
            }
        }
    }
    written
}

/// Computes [`MemoryActivity::escapes`].
fn escaping_alias_sets(facts: View<'_>, sources: &[SetProvenance]) -> Vec<bool> {
    let over = |(id, class): (AliasSetId, &AliasSet)| {
        let made = class
            .origins
            .iter()
            .any(|o| matches!(o, MemoryOrigin::Heap(..)));
        made && sources[id.index()].handed
    };
    facts.memory.alias_sets().map(over).collect()
}

/// Computes [`MemoryActivity::touches_globals`].
fn functions_touching_globals(facts: View<'_>, classes: &MemoryActivity) -> HashSet<FuncId> {
    let mut by_address: HashMap<FuncId, Vec<FuncId>> = HashMap::new();
    let mut work = Vec::new();
    for (func, body) in facts.closure.bodies(facts.unit) {
        let constants = body.values.iter().filter_map(|(_, v)| match v.def {
            Definition::Const(id) => Some(id),
            _ => None,
        });
        let mut globals = constants.filter_map(|id| match facts.unit.constant(id).kind {
            ConstKind::Global { global, .. } => Some(global),
            _ => None,
        });
        if globals.any(|g| classes.global(facts, g).is_some()) {
            work.push(func);
        }
        for site in facts.closure.calls_in(func) {
            for &callee in facts.memory.callees(func, site.op) {
                by_address.entry(callee).or_default().push(func);
            }
        }
    }
    let mut found = HashSet::new();
    while let Some(func) = work.pop() {
        if found.insert(func) {
            work.extend(facts.closure.calls_of(func).iter().map(|site| site.caller));
            work.extend(by_address.remove(&func).into_iter().flatten());
        }
    }
    found
}

/// Returns the functions that work on derivatives, directly or in a callee. Empty if no function's address
/// is taken.
fn active_functions(facts: View<'_>, classes: &MemoryActivity) -> HashSet<FuncId> {
    let taken = facts.closure.address_taken();
    if taken.is_empty() {
        return HashSet::new();
    }
    let mut callers: HashMap<FuncId, Vec<FuncId>> = HashMap::new();
    let mut work = Vec::new();
    for (func, body) in facts.closure.bodies(facts.unit) {
        for site in facts.closure.calls_in(func) {
            for &callee in facts.memory.callees(func, site.op) {
                callers.entry(callee).or_default().push(func);
            }
        }
        if touches_shadows(facts, classes, func, body) {
            work.push(func);
        }
    }
    let mut found = HashSet::new();
    while let Some(func) = work.pop() {
        if found.insert(func) {
            work.extend(facts.closure.calls_of(func).iter().map(|site| site.caller));
            work.extend(callers.get(&func).into_iter().flatten());
        }
    }
    found
}

/// Returns true if a body computes active values, or writes, copies, frees or returns memory with shadows.
fn touches_shadows(facts: View<'_>, classes: &MemoryActivity, func: FuncId, body: &Body) -> bool {
    let active =
        |value: Value| classes.value_varied(func, value) && classes.value_useful(func, value);
    if body.values.ids().any(active) {
        return true;
    }
    let shadowed = |value: Value| {
        let has_shadow = |class| classes.state(class) != ShadowPresence::Inactive;
        facts.memory.may_point_into(func, value, has_shadow)
    };
    body.walk(body.root()).any(|op| match body.kind(op) {
        OpKind::Call(_) | OpKind::Invoke(_) => {
            // Callees with a body are scanned separately.
            let callee = facts.unit.callee(body, op);
            let outside = callee.is_none_or(|f| facts.unit.functions[f].body.is_none());
            let harmless = callee
                .and_then(|f| facts.unit.known_effects(f))
                .is_some_and(|effects| effects.inactive);
            let results = body.results(op).iter().copied();
            outside && !harmless && body.operands(op).chain(results).any(shadowed)
        }
        OpKind::Return | OpKind::Foreign(_) => body.operands(op).any(shadowed),
        OpKind::Store(_) => shadowed(body.operand(op, 1)),
        OpKind::AtomicRmw(..) | OpKind::CmpXchg { .. } => shadowed(body.operand(op, 0)),
        _ => false,
    })
}

/// Computes the provenance of every alias set: its allocation sites, and the annotations of arguments from
/// which it is reachable.
fn provenance_of_alias_sets(facts: View<'_>, request: &Request) -> Vec<SetProvenance> {
    let mut list: Vec<SetProvenance> = facts
        .memory
        .alias_sets()
        .map(|(_, class)| SetProvenance::of_alias_set(facts, class))
        .collect();
    let (mut dup, mut constant) = (Vec::new(), Vec::new());
    if let Some(body) = facts.unit.functions[request.root].body.as_deref() {
        for (index, &param) in body.params().iter().enumerate() {
            if !facts.words.carries_pointer(request.root, param) {
                continue;
            }
            let classes = facts.memory.alias_sets_of(request.root, param);
            match request.argument_activity(index) {
                Activity::Const => constant.extend(classes),
                _ => dup.extend(classes),
            }
        }
    }
    for class in &dup {
        list[class.index()].direct_argument = true;
    }
    mark_reachable(facts.memory, dup, &mut list, |s| &mut s.dup);
    for (holder, _) in facts.memory.alias_sets() {
        if list[holder.index()].dup {
            for held in facts.memory.pointees(holder) {
                list[held.index()].handed = true;
            }
        }
    }
    mark_reachable(facts.memory, constant.clone(), &mut list, |s| {
        &mut s.promised
    });
    mark_reachable(facts.memory, constant, &mut list, |s| &mut s.constant);
    list
}

/// Marks `start` and all alias sets reachable from it through pointers in memory.
fn mark_reachable(
    memory: &AliasSets,
    start: Vec<AliasSetId>,
    list: &mut [SetProvenance],
    mark: impl Fn(&mut SetProvenance) -> &mut bool,
) {
    let mut work = start;
    let mut seen = vec![false; list.len()];
    while let Some(class) = work.pop() {
        if !std::mem::replace(&mut seen[class.index()], true) {
            *mark(&mut list[class.index()]) = true;
            work.extend(memory.pointees(class));
        }
    }
}

impl Request {
    /// Returns the annotation of a parameter of the root.
    fn argument_activity(&self, index: usize) -> Activity {
        let Some(activity) = self.args.get(index) else {
            unreachable!("a request has an activity for every parameter");
        };
        *activity
    }
    /// Returns the variant of the root for the request.
    pub fn variant(&self, facts: View<'_>) -> crate::Variant {
        let body = facts.unit.functions[self.root].body.as_deref();
        let params = body.map_or(&[][..], |b| b.params());
        let args = params.iter().enumerate().map(|(index, &param)| {
            let activity = self.argument_activity(index);
            let given = activity != Activity::Const;
            let pointer = facts.words.carries_pointer(self.root, param);
            let shadow = match given && pointer {
                true => ShadowState::Real,
                false => ShadowState::None,
            };
            ArgActivity {
                active: given && facts.words.carries_float(self.root, param),
                shadow,
            }
        });
        crate::Variant {
            func: self.root,
            args: args.collect(),
            result: self.result,
        }
    }
}
