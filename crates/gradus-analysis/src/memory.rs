//! Memory classes: which memory each pointer of a closure may point into.
//!
//! The facts that [`Memory::of`] finds (see `constraints.rs` for how): a class is a set of objects that
//! some pointer may mean alike; two pointers of different classes never mean the same byte, unless both
//! come from arguments of a root: what its callers pass is not known. Within a class, offsets count
//! modulo the class's modulus, so that the words of a structure, also in an array of structures, are
//! told apart. Facts hold for the whole closure, whatever the calling context.

use crate::closure::Closure;
use crate::constraints;
use crate::leaves::Leaves;
use crate::seen::Seen;
use gradus_ir::{Entity, FuncId, GlobalId, Op, TypeId, Unit, Value};
use std::collections::{BTreeMap, HashMap};

/// A class of memory objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClassId(u32);

impl Entity for ClassId {
    fn from_index(index: usize) -> Self {
        ClassId(index as u32)
    }
    fn index(self) -> usize {
        self.0 as usize
    }
}

/// A place that a pointer may mean: so many bytes from the start of an object of a class. Places whose
/// offsets are the same under [`Class::normal`] may be the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MemoryPlace {
    /// The class.
    pub class: ClassId,
    /// The offset; which byte of the objects is 0 is arbitrary, but the same for the whole class.
    pub offset_bytes: i64,
}

/// Where memory of a class comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Origin {
    /// An argument of a root, by its number.
    Argument(FuncId, u32),
    /// An `alloca`.
    Alloca(FuncId, Op),
    /// A call that allocates.
    Heap(FuncId, Op),
    /// A global variable.
    Global(GlobalId),
    /// A function: pointers of the class may be its address.
    Function(FuncId),
    /// A call or op whose result points to memory that nobody here made (`getenv`, errno, a cast of an
    /// integer).
    Elsewhere(FuncId, Op),
    /// What code that is not seen can reach.
    Unseen,
}

/// What is known of one word of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Word {
    /// Where pointers stored there point to.
    pub points: Option<MemoryPlace>,
    /// What loads and stores took it for.
    pub seen: Seen,
}

/// What is known of a class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Class {
    /// Offsets count modulo this many bytes; exactly where it is 0.
    pub modulus_bytes: u64,
    /// The words that are accessed, by offset.
    pub words: BTreeMap<i64, Word>,
    /// Where its memory comes from, sorted.
    pub origins: Vec<Origin>,
    /// Whether code that is not seen may reach it.
    pub escaped: bool,
    /// What accesses took words for, by offsets that are not reduced: those of the first element where
    /// an index is variable.
    pub evidence: BTreeMap<i64, Seen>,
    /// Places from which pointers step on, and by how many bytes; sorted.
    pub steps: Vec<(i64, u64)>,
}

impl Class {
    /// An offset as this class counts it.
    pub fn normal(&self, offset_bytes: i64) -> i64 {
        match self.modulus_bytes {
            0 => offset_bytes,
            m => offset_bytes.rem_euclid(m as i64),
        }
    }
}

/// A copy of bytes between places (`memcpy`, `memmove`, a call by value).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyBytes {
    /// Where it stands.
    pub at: (FuncId, Op),
    /// Where to.
    pub to: MemoryPlace,
    /// Where from.
    pub from: MemoryPlace,
    /// How many bytes, where that is constant.
    pub size_bytes: Option<u64>,
}

/// The memory classes of a closure.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    pub(crate) classes: Vec<Class>,
    pub(crate) functions: HashMap<FuncId, Slots<MemoryPlace>>,
    pub(crate) returns: HashMap<FuncId, Vec<Option<MemoryPlace>>>,
    pub(crate) globals: HashMap<GlobalId, MemoryPlace>,
    pub(crate) copies: Vec<CopyBytes>,
    pub(crate) callees: HashMap<(FuncId, Op), (Vec<FuncId>, bool)>,
    pub(crate) leaves: Leaves,
}

/// A table with one entry for each leaf of each value of a body.
#[derive(Clone, Debug)]
pub(crate) struct Slots<T> {
    first: Vec<u32>,
    items: Vec<Option<T>>,
}

impl<T: Copy> Slots<T> {
    /// An empty table for a body's values.
    pub fn new(body: &gradus_ir::Body, leaves: &Leaves) -> Self {
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
    /// The positions of a value's leaves.
    pub fn range(&self, value: Value) -> std::ops::Range<usize> {
        let end = self.first.get(value.index() + 1).copied().unwrap_or(0);
        let start = self.first.get(value.index()).copied().unwrap_or(end);
        start as usize..end as usize
    }
    /// The entries of a value's leaves.
    pub fn of(&self, value: Value) -> &[Option<T>] {
        &self.items[self.range(value)]
    }
    /// The entry at a position.
    pub fn at(&mut self, position: usize) -> &mut Option<T> {
        &mut self.items[position]
    }
    /// The table with every entry replaced.
    pub fn map<U>(self, mut f: impl FnMut(T) -> U) -> Slots<U> {
        Slots {
            first: self.first,
            items: self.items.into_iter().map(|t| t.map(&mut f)).collect(),
        }
    }
}

impl Memory {
    /// The classes of all memory that the bodies of `closure` touch.
    pub fn of(unit: &Unit, closure: &Closure) -> Memory {
        constraints::solve(unit, closure)
    }

    /// The class of the memory that a pointer points into (that of its first pointer, for an aggregate).
    /// `None` for a value that holds no pointer, and for null and undefined pointers. Integers as wide
    /// as a pointer count as pointers.
    pub fn class(&self, func: FuncId, value: Value) -> Option<ClassId> {
        self.place(func, value).map(|place| place.class)
    }
    /// As [`Memory::class`], with the offset.
    pub fn place(&self, func: FuncId, value: Value) -> Option<MemoryPlace> {
        self.places(func, value).iter().flatten().next().copied()
    }
    /// The places that the leaves of a value point to, in the order of [`Leaves::get`] of its type.
    pub fn places(&self, func: FuncId, value: Value) -> &[Option<MemoryPlace>] {
        self.functions.get(&func).map_or(&[], |s| s.of(value))
    }
    /// The places that the leaves of a function's result point to.
    pub fn returned(&self, func: FuncId) -> &[Option<MemoryPlace>] {
        self.returns.get(&func).map_or(&[], Vec::as_slice)
    }
    /// The place where a global variable starts; `None` for one that the closure does not mention.
    pub fn global(&self, global: GlobalId) -> Option<MemoryPlace> {
        self.globals.get(&global).copied()
    }
    /// Where pointers stored at a place point to.
    pub fn pointee(&self, place: MemoryPlace) -> Option<MemoryPlace> {
        let class = self.get(place.class);
        class.words.get(&class.normal(place.offset_bytes))?.points
    }
    /// The classes that pointers stored in `class` point into, each once.
    pub fn stored(&self, class: ClassId) -> Vec<ClassId> {
        let words = self.get(class).words.values();
        let mut list: Vec<ClassId> = words.filter_map(|w| w.points).map(|p| p.class).collect();
        list.sort_unstable();
        list.dedup();
        list
    }
    /// All classes.
    pub fn classes(&self) -> impl ExactSizeIterator<Item = (ClassId, &Class)> {
        let classes = self.classes.iter().enumerate();
        classes.map(|(i, class)| (ClassId::from_index(i), class))
    }
    /// What is known of a class.
    pub fn get(&self, class: ClassId) -> &Class {
        &self.classes[class.index()]
    }
    /// Whether code that is not seen may reach the class.
    pub fn escaped(&self, class: ClassId) -> bool {
        self.get(class).escaped
    }
    /// The functions that a pointer may be the address of, as far as they are mentioned in the closure.
    pub fn functions_at(&self, class: ClassId) -> impl Iterator<Item = FuncId> {
        self.get(class).origins.iter().filter_map(|o| match o {
            Origin::Function(func) => Some(*func),
            _ => None,
        })
    }
    /// The functions that a call by address may lead to, as far as they are known.
    pub fn callees(&self, func: FuncId, op: Op) -> &[FuncId] {
        self.callees.get(&(func, op)).map_or(&[], |(list, _)| list)
    }
    /// Whether a call by address may lead to functions that are not known.
    pub fn leads_elsewhere(&self, func: FuncId, op: Op) -> bool {
        self.callees
            .get(&(func, op))
            .is_none_or(|(_, other)| *other)
    }
    /// Whether pointers of the class can only be addresses of functions of the closure.
    pub fn only_known_functions(&self, class: ClassId) -> bool {
        let class = self.get(class);
        !class.escaped
            && !class.origins.is_empty()
            && class
                .origins
                .iter()
                .all(|o| matches!(o, Origin::Function(_)))
    }
    /// The copies of bytes, in program order per function.
    pub fn copies(&self) -> &[CopyBytes] {
        &self.copies
    }
    /// How types are split into leaves.
    pub fn leaves(&self) -> &Leaves {
        &self.leaves
    }
    /// The leaves of a type.
    pub fn leaves_of(&self, ty: TypeId) -> &[crate::leaves::Leaf] {
        self.leaves.get(ty)
    }
}
