//! Alias sets: the memory that each pointer of a call graph may point into.
//!
//! Results of [`AliasSets::of`]; `alias_set_solver.rs` computes the sets. An alias set is a set of abstract objects
//! that share a pointer. Pointers of two alias sets never address a common byte, except if both pointers
//! come from arguments of a root, because the callers of a root are unknown. Within an alias set, offsets
//! count modulo the set's modulus. The modulus separates the memory cells of a structure, also in an array
//! of structures. The facts hold for the whole call graph and are context-insensitive.

use crate::call_graph::CallGraph;
use crate::points_to::alias_set_solver;
use crate::types::flat_aggregates::FlatTypes;
use crate::types::lattice::CellType;
use gradus_ir::{Entity, FuncId, GlobalId, Op, TypeId, Unit, Value};
use std::collections::{BTreeMap, HashMap};

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CellState {
    /// Target of the pointers stored in the cell.
    pub target: Option<CellRef>,
    /// Types observed by loads and stores of the cell.
    pub observed: CellType,
}

/// State of an alias set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AliasSet {
    /// Modulus of the offsets, in bytes. 0 means exact offsets.
    pub modulus_bytes: u64,
    /// The accessed memory cells, by normalised offset.
    pub words: BTreeMap<i64, CellState>,
    /// Allocation sites of the objects, sorted.
    pub origins: Vec<MemoryOrigin>,
    /// True if the memory escapes to unknown code.
    pub escaped: bool,
    /// Type evidence from accesses, by offsets before reduction by the modulus. A variable index counts as
    /// index 0.
    pub evidence: BTreeMap<i64, CellType>,
    /// Pairs (offset, stride in bytes) of repeated pointer increments, sorted.
    pub strides: Vec<(i64, u64)>,
}

impl AliasSet {
    /// Normalises an offset: reduces `offset_bytes` by the modulus.
    pub fn normalize_offset(&self, offset_bytes: i64) -> i64 {
        match self.modulus_bytes {
            0 => offset_bytes,
            m => offset_bytes.rem_euclid(m as i64),
        }
    }
}

/// A byte copy between two locations (`memcpy`, `memmove`, a `byval` argument).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyBytes {
    /// Function and op of the copy.
    pub at: (FuncId, Op),
    /// Destination.
    pub to: CellRef,
    /// Source.
    pub from: CellRef,
    /// Size in bytes, if constant.
    pub size_bytes: Option<u64>,
}

/// The alias sets of a call graph.
#[derive(Clone, Debug, Default)]
pub struct AliasSets {
    pub(crate) classes: Vec<AliasSet>,
    pub(crate) functions: HashMap<FuncId, Slots<CellRef>>,
    pub(crate) returns: HashMap<FuncId, Vec<Option<CellRef>>>,
    pub(crate) globals: HashMap<GlobalId, CellRef>,
    pub(crate) copies: Vec<CopyBytes>,
    pub(crate) callees: HashMap<(FuncId, Op), (Vec<FuncId>, bool)>,
    pub(crate) leaves: FlatTypes,
}

/// A table with one entry per leaf of each value of a body.
#[derive(Clone, Debug)]
pub(crate) struct Slots<T> {
    first: Vec<u32>,
    items: Vec<Option<T>>,
}

impl<T: Copy> Slots<T> {
    /// Returns an empty table for the values of `body`.
    pub fn new(body: &gradus_ir::Body, leaves: &FlatTypes) -> Self {
        let mut first = Vec::with_capacity(body.values.len() + 1);
        let mut total = 0u32;
        for (_, data) in body.values.iter() {
            first.push(total);
            total += leaves.get(data.ty).len() as u32;
        }
        first.push(total);
        Slots {
            first,
            items: vec![None; total as usize],
        }
    }
    /// Returns the positions of a value's leaves.
    pub fn range(&self, value: Value) -> std::ops::Range<usize> {
        let end = self.first.get(value.index() + 1).copied().unwrap_or(0);
        let start = self.first.get(value.index()).copied().unwrap_or(end);
        start as usize..end as usize
    }
    /// Returns the entries of a value's leaves.
    pub fn of(&self, value: Value) -> &[Option<T>] {
        &self.items[self.range(value)]
    }
    /// Returns the entry at a position.
    pub fn at(&mut self, position: usize) -> &mut Option<T> {
        &mut self.items[position]
    }
    /// Maps every entry.
    pub fn map<U>(self, mut f: impl FnMut(T) -> U) -> Slots<U> {
        Slots {
            first: self.first,
            items: self.items.into_iter().map(|t| t.map(&mut f)).collect(),
        }
    }
}

impl AliasSets {
    /// Computes the alias sets of all memory accessed by the bodies of `closure`.
    pub fn of(unit: &Unit, closure: &CallGraph) -> AliasSets {
        alias_set_solver::solve(unit, closure)
    }

    /// Returns the alias set of the memory behind a pointer. For an aggregate, the first pointer counts.
    /// Integers of pointer width count as pointers. Returns `None` for a value without pointers and for
    /// null and undefined pointers.
    pub fn alias_set(&self, func: FuncId, value: Value) -> Option<AliasSetId> {
        self.place(func, value).map(|place| place.class)
    }
    /// Returns the location behind a pointer: [`AliasSets::alias_set`] with the offset.
    pub fn place(&self, func: FuncId, value: Value) -> Option<CellRef> {
        self.places(func, value).iter().flatten().next().copied()
    }
    /// Returns the locations behind the leaves of a value, in the order of [`FlatTypes::get`] for its type.
    pub fn places(&self, func: FuncId, value: Value) -> &[Option<CellRef>] {
        self.functions.get(&func).map_or(&[], |s| s.of(value))
    }
    /// Returns the locations behind the leaves of a function's result.
    pub fn returned(&self, func: FuncId) -> &[Option<CellRef>] {
        self.returns.get(&func).map_or(&[], Vec::as_slice)
    }
    /// Returns the start of a global variable, or `None` if the call graph does not mention the variable.
    pub fn global(&self, global: GlobalId) -> Option<CellRef> {
        self.globals.get(&global).copied()
    }
    /// Returns the target of the pointers stored at a location.
    pub fn pointee(&self, place: CellRef) -> Option<CellRef> {
        let class = self.get(place.class);
        class
            .words
            .get(&class.normalize_offset(place.offset_bytes))?
            .target
    }
    /// Returns the alias sets of the pointers stored in `class`, without duplicates.
    pub fn pointees(&self, class: AliasSetId) -> Vec<AliasSetId> {
        let words = self.get(class).words.values();
        let mut list: Vec<AliasSetId> = words.filter_map(|w| w.target).map(|p| p.class).collect();
        list.sort_unstable();
        list.dedup();
        list
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
    /// Returns the leaf table, by which types are flattened.
    pub fn leaves(&self) -> &FlatTypes {
        &self.leaves
    }
    /// Returns the leaves of a type.
    pub fn leaves_of(&self, ty: TypeId) -> &[crate::types::flat_aggregates::FlatScalar] {
        self.leaves.get(ty)
    }
}
