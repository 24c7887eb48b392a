//! Alias sets: the memory that each pointer of a call graph may point into.
//!
//! Results of [`AliasSets::of`]; `alias_set_solver.rs` computes the sets. An alias set is a set of abstract
//! objects. A pointer has a list of *targets*: locations in alias sets. The list is may-information: the pointer
//! points to one of the targets, and a pointer without targets is null or undefined. Pointers without a common
//! alias set among their targets never address a common byte, except if both pointers come from arguments of a
//! root, because the callers of a root are unknown.
//!
//! Within an alias set, the folds of `folds.rs` state which offsets share a memory cell. The facts hold for the
//! whole call graph and are context-insensitive.
//!
//! Note [One target or several]
//! A client asks one of two questions. "May the pointer touch memory with a property" is
//! [`AliasSets::may_point_into`]: any target. "Does the pointer only touch memory with a property" is
//! [`AliasSets::points_only_into`]: all targets, of which there is at least one.

use crate::call_graph::CallGraph;
use crate::points_to::folds::Fold;
use crate::points_to::leaf_tables::LeafTargets;
use crate::points_to::{alias_set_solver, inclusion};
use crate::types::flat_aggregates::FlatTypes;
use crate::types::lattice::CellType;
use gradus_ir::{Entity, FuncId, GlobalId, Op, TypeId, Unit, Value};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

/// Maximal number of nodes of the analysis by inclusion. Its time may grow with the cube of the nodes.
const NODES_MAX: u32 = 200_000;

/// An alias set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AliasSetId(u32);

impl Entity for AliasSetId {
    fn from_index(index: usize) -> Self {
        AliasSetId(index as u32)
    }
    fn index(self) -> usize {
        self.0 as usize
    }
}

/// A location: an offset in bytes from the start of an object of an alias set. Two locations with equal
/// offsets under [`AliasSet::normalize_offset`] may alias.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CellRef {
    /// The alias set.
    pub class: AliasSetId,
    /// Offset in bytes. The origin of the offsets is arbitrary, but common to the whole alias set.
    pub offset_bytes: i64,
}

/// Allocation site of an object in an alias set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MemoryOrigin {
    /// Memory behind an argument of a root, with the argument's index.
    Argument(FuncId, u32),
    /// An `alloca`.
    Alloca(FuncId, Op),
    /// A call that allocates.
    Heap(FuncId, Op),
    /// A global variable.
    Global(GlobalId),
    /// A function. Pointers of the alias set may be its address.
    Function(FuncId),
    /// A call or op with a result that points to external memory (`getenv`, errno, an integer cast to a
    /// pointer).
    External(FuncId, Op),
    /// Memory reachable from unknown code.
    Unknown,
}

/// State of one memory cell of an alias set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CellState {
    /// Targets of the pointers stored in the cell, sorted and distinct.
    pub targets: Vec<CellRef>,
    /// Types observed by loads and stores of the cell.
    pub observed: CellType,
}

/// State of an alias set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AliasSet {
    /// The parts in which offsets count modulo a stride, from the outside in.
    pub folds: Vec<Fold>,
    /// The accessed memory cells, by normalised offset.
    pub words: BTreeMap<i64, CellState>,
    /// Allocation sites of the objects, sorted.
    pub origins: Vec<MemoryOrigin>,
    /// True if the memory escapes to unknown code.
    pub escaped: bool,
    /// Type evidence from accesses, by offsets before normalisation. A variable index counts as index 0.
    pub evidence: BTreeMap<i64, CellType>,
    /// Pairs (offset, stride in bytes) of repeated pointer increments, sorted.
    pub strides: Vec<(i64, u64)>,
}

/// A byte copy between two locations (`memcpy`, `memmove`, a `byval` argument).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyBytes {
    /// Function and op of the copy.
    pub at: (FuncId, Op),
    /// Destinations: the targets of one pointer.
    pub to: Vec<CellRef>,
    /// Sources: the targets of one pointer.
    pub from: Vec<CellRef>,
    /// Size in bytes, if constant.
    pub size_bytes: Option<u64>,
}

impl CopyBytes {
    /// Returns the locations at both ends.
    pub fn ends(&self) -> impl Iterator<Item = CellRef> {
        self.to.iter().chain(&self.from).copied()
    }
    /// Returns the pairs of an alias set with a source and an alias set with a destination.
    pub(crate) fn flows(&self) -> impl Iterator<Item = (AliasSetId, AliasSetId)> {
        let pairs = |from: AliasSetId| self.to.iter().map(move |to| (from, to.class));
        self.from.iter().flat_map(move |from| pairs(from.class))
    }
}

/// The alias sets of a call graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AliasSets {
    pub(crate) classes: Vec<AliasSet>,
    pub(crate) functions: HashMap<FuncId, LeafTargets>,
    pub(crate) returns: HashMap<FuncId, Vec<Vec<CellRef>>>,
    pub(crate) globals: HashMap<GlobalId, CellRef>,
    pub(crate) copies: Vec<CopyBytes>,
    /// True if the contents of the destination of a byte copy do not become contents of the source.
    pub(crate) copies_are_directed: bool,
    /// True if loads read the stores with compatible TBAA tags alone: the program must keep the aliasing rules of its
    /// language.
    pub(crate) assumes_aliasing_rules: bool,
    /// True if the sets come from the fallback by unification.
    pub(crate) is_unified: bool,
    pub(crate) callees: HashMap<(FuncId, Op), (Vec<FuncId>, bool)>,
    pub(crate) leaves: FlatTypes,
    /// The pointers that are assembled from bits of addresses, such as two halves.
    pub(crate) assembled: HashSet<(FuncId, Value)>,
}

impl AliasSets {
    /// Computes the alias sets of all memory accessed by the bodies of `closure`, by inclusion (`inclusion/`). A program
    /// with more than [`NODES_MAX`] nodes gets the coarser [`AliasSets::by_unification`], whose time is almost linear.
    pub fn of(unit: &Unit, closure: &CallGraph) -> AliasSets {
        let exact = inclusion::solve(unit, closure, NODES_MAX);
        exact.unwrap_or_else(|| AliasSets::by_unification(unit, closure))
    }
    /// Computes [`AliasSets::of`] on the assumption that the program keeps the aliasing rules of its language: a load reads
    /// the stores with compatible TBAA tags alone.
    pub fn by_aliasing_rules(unit: &Unit, closure: &CallGraph) -> AliasSets {
        let exact = inclusion::solve_by_tags(unit, closure, NODES_MAX);
        exact.unwrap_or_else(|| AliasSets::by_unification(unit, closure))
    }
    /// Returns true if loads read the stores with compatible TBAA tags alone. The results hold for a program that keeps
    /// the aliasing rules of its language.
    pub fn assumes_aliasing_rules(&self) -> bool {
        self.assumes_aliasing_rules
    }
    /// Returns true if [`AliasSets::by_aliasing_rules`] may have another result for the program. [`AliasSets::of`] falls back
    /// to unification if that fails, too.
    pub(crate) fn may_assume_more(&self) -> bool {
        !self.assumes_aliasing_rules && !self.is_unified
    }
    /// Computes the alias sets by unification (`alias_set_solver.rs`): the fallback of [`AliasSets::of`], and a bound
    /// for its result.
    pub fn by_unification(unit: &Unit, closure: &CallGraph) -> AliasSets {
        AliasSets {
            is_unified: true,
            ..alias_set_solver::solve(unit, closure)
        }
    }

    /// Returns the targets of each leaf of a value, in the order of [`FlatTypes::get`] for the value's type.
    /// Integers of pointer width count as pointers. A leaf without pointers, or with null and undefined
    /// pointers only, has no targets.
    pub fn leaf_targets(&self, func: FuncId, value: Value) -> impl Iterator<Item = &[CellRef]> {
        let table = self.functions.get(&func).into_iter();
        table.flat_map(move |table| table.leaves(value))
    }
    /// Returns the targets of all leaves of a value. A pointer has one leaf; the targets are sorted and distinct
    /// per leaf.
    pub fn targets(&self, func: FuncId, value: Value) -> &[CellRef] {
        self.functions
            .get(&func)
            .map_or(&[], |table| table.of(value))
    }
    /// Returns the alias sets with targets of a value, sorted and distinct.
    pub fn alias_sets_of(&self, func: FuncId, value: Value) -> Vec<AliasSetId> {
        distinct_sets(self.targets(func, value))
    }
    /// Returns true if a value may point into an alias set for which `has` holds.
    pub fn may_point_into(
        &self,
        func: FuncId,
        value: Value,
        mut has: impl FnMut(AliasSetId) -> bool,
    ) -> bool {
        let mut targets = self.targets(func, value).iter();
        targets.any(|target| has(target.class))
    }
    /// Returns true if a value points to memory, and `has` holds for every alias set with a target.
    pub fn points_only_into(
        &self,
        func: FuncId,
        value: Value,
        mut has: impl FnMut(AliasSetId) -> bool,
    ) -> bool {
        let targets = self.targets(func, value);
        !targets.is_empty() && targets.iter().all(|target| has(target.class))
    }
    /// Returns the targets of each leaf of a function's result.
    pub fn returned(&self, func: FuncId) -> &[Vec<CellRef>] {
        self.returns.get(&func).map_or(&[], Vec::as_slice)
    }
    /// Returns the start of a global variable, or `None` if the call graph does not mention the variable.
    pub fn global(&self, global: GlobalId) -> Option<CellRef> {
        self.globals.get(&global).copied()
    }
    /// Returns the targets of the pointers stored at a location, sorted and distinct.
    pub fn pointee(&self, place: CellRef) -> &[CellRef] {
        let class = self.get(place.class);
        let word = class.words.get(&class.normalize_offset(place.offset_bytes));
        word.map_or(&[], |word| &word.targets)
    }
    /// Returns the alias sets with targets of the pointers stored at a location, sorted and distinct.
    pub fn pointee_sets(&self, place: CellRef) -> Vec<AliasSetId> {
        distinct_sets(self.pointee(place))
    }
    /// Returns the alias sets of the pointers stored in `class`, sorted and distinct.
    pub fn pointees(&self, class: AliasSetId) -> Vec<AliasSetId> {
        let words = self.get(class).words.values();
        distinct_sets(words.flat_map(|word| &word.targets))
    }
    /// Returns the targets of every pointer: of the leaves of values and results, and of memory cells.
    pub(crate) fn pointers(&self) -> impl Iterator<Item = &[CellRef]> {
        let values = self.functions.values().flat_map(LeafTargets::all);
        let results = self.returns.values().flatten().map(Vec::as_slice);
        let words = self.classes.iter().flat_map(|class| class.words.values());
        let cells = words.map(|word| word.targets.as_slice());
        let copies = self.copies.iter().flat_map(|copy| [&copy.to, &copy.from]);
        let ends = copies.map(Vec::as_slice);
        values.chain(results).chain(cells).chain(ends)
    }
    /// Iterates over all alias sets.
    pub fn alias_sets(&self) -> impl ExactSizeIterator<Item = (AliasSetId, &AliasSet)> {
        let classes = self.classes.iter().enumerate();
        classes.map(|(i, class)| (AliasSetId::from_index(i), class))
    }
    /// Returns the state of an alias set.
    pub fn get(&self, class: AliasSetId) -> &AliasSet {
        &self.classes[class.index()]
    }
    /// Returns true if the alias set escapes to unknown code.
    pub fn escaped(&self, class: AliasSetId) -> bool {
        self.get(class).escaped
    }
    /// Returns the alias set of unknown code's memory and the alias sets that escape to unknown code. A pointer from
    /// unknown code may point into any of them, although its targets name only the first.
    pub(crate) fn unknown_memory(&self) -> Option<(AliasSetId, Vec<AliasSetId>)> {
        let is_unknown = |(_, set): &(AliasSetId, &AliasSet)| {
            set.escaped && set.origins.contains(&MemoryOrigin::Unknown)
        };
        let (unknown, _) = self.alias_sets().find(is_unknown)?;
        let escaped = self
            .alias_sets()
            .filter(|(id, set)| set.escaped && *id != unknown);
        Some((unknown, escaped.map(|(id, _)| id).collect()))
    }
    /// Returns true if a pointer is assembled from bits of addresses: it has no known target.
    pub(crate) fn is_assembled(&self, func: FuncId, pointer: Value) -> bool {
        self.assembled.contains(&(func, pointer))
    }
    /// Returns the known possible callees of an indirect call.
    pub fn callees(&self, func: FuncId, op: Op) -> &[FuncId] {
        self.callees.get(&(func, op)).map_or(&[], |(list, _)| list)
    }
    /// Returns true if an indirect call may call an unknown function.
    pub fn may_call_unknown(&self, func: FuncId, op: Op) -> bool {
        self.callees
            .get(&(func, op))
            .is_none_or(|(_, other)| *other)
    }
    /// Returns the byte copies, in program order per function.
    pub fn copies(&self) -> &[CopyBytes] {
        &self.copies
    }
    /// Adds the targets of `other` to a pointer.
    #[cfg(test)]
    pub(crate) fn add_targets(&mut self, func: FuncId, pointer: Value, other: Value) {
        let added = self.targets(func, other).to_vec();
        let Some(table) = self.functions.get_mut(&func) else {
            unreachable!("the function is in the call graph");
        };
        added
            .into_iter()
            .for_each(|target| table.add(pointer, 0, target));
    }
    /// Adds the leaves of the types that the unit has received since.
    pub(crate) fn with_types_of(self: Rc<AliasSets>, unit: &Unit) -> Rc<AliasSets> {
        if self.leaves.has_all_types(unit) {
            return self;
        }
        let mut own = AliasSets::clone(&self);
        own.leaves = FlatTypes::of(unit);
        Rc::new(own)
    }
    /// Returns the leaf table, by which types are flattened.
    pub fn leaves(&self) -> &FlatTypes {
        &self.leaves
    }
    /// Returns the leaves of a type.
    pub fn leaves_of(&self, ty: TypeId) -> &[crate::types::flat_aggregates::FlatScalar] {
        self.leaves.get(ty)
    }
}

/// Returns the alias sets of locations, sorted and distinct.
fn distinct_sets<'a>(places: impl IntoIterator<Item = &'a CellRef>) -> Vec<AliasSetId> {
    let mut list: Vec<AliasSetId> = places.into_iter().map(|place| place.class).collect();
    list.sort_unstable();
    list.dedup();
    list
}
