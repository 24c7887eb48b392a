//! Abstract objects of the inclusion-based analysis: allocation sites, arguments, globals, and memory behind them.

use crate::points_to::folds::Fold;
use crate::points_to::inclusion::fold_growth::Folds;
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{FuncId, GlobalId, Op, TbaaTypeId, TypeId};
use std::collections::{BTreeSet, HashMap};

/// An abstract object: an index of [`Objects`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ObjectId(pub u32);

/// All memory of unknown code, and every escaped object.
pub(crate) const EXTERNAL: ObjectId = ObjectId(0);

/// A set of locations in an object: `offset + stride · n` for any integer n that stays in the array around `offset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Location {
    pub object: ObjectId,
    /// Offset in bytes.
    pub offset: i64,
    /// Distance of the locations in bytes; 0 for a single location.
    pub stride: u64,
}

impl Location {
    /// Returns the start of an object.
    pub fn start(object: ObjectId) -> Location {
        Location::at(object, 0)
    }
    /// Returns a single location.
    pub fn at(object: ObjectId, offset: i64) -> Location {
        Location {
            object,
            offset,
            stride: 0,
        }
    }
}

/// A memory cell: an object and a normalised offset in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Cell {
    pub object: ObjectId,
    pub offset: i64,
}

/// A calling context of a function: the number of an instance (`contexts.rs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Context(pub u32);

/// Identity of an abstract object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum ObjectKey {
    /// [`EXTERNAL`].
    External,
    /// Memory behind a parameter of a root.
    Argument(FuncId, u32),
    /// The callee's copy of a `byval` argument, in a context.
    ByValue(FuncId, u32, Context),
    /// The variadic arguments of a function, in a context.
    Variadic(FuncId, Context),
    /// An `alloca`, in a context.
    Alloca(FuncId, Op, Context),
    /// A call that allocates, in a context.
    Heap(FuncId, Op, Context),
    /// A global variable.
    Global(GlobalId),
    /// A function.
    Function(FuncId),
    /// The target of a call or an op that returns an address of external memory, in a context.
    Returned(FuncId, Op, Context),
    /// The target of a pointer in a cell of unknown content.
    Behind(ObjectId, i64),
    /// A number that contains bits of an address of the object: shifted, truncated, as a floating-point number.
    Bits(ObjectId),
}

impl ObjectKey {
    /// Returns true if the object is not memory: it has no cells and no offsets.
    pub fn is_without_memory(&self) -> bool {
        matches!(self, ObjectKey::Function(_) | ObjectKey::Bits(_))
    }
}

/// State of an object.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    pub key: ObjectKey,
    pub folds: Folds,
    /// True if sets hold normalised offsets of the object. Unreduced offsets name the members that accesses touch, but
    /// a loop over an array has very many of them.
    pub is_normalized: bool,
    /// True if other code may have stored pointers in the object.
    pub has_unknown_content: bool,
    /// True for the memory behind an argument that is an integer.
    pub is_number: bool,
    /// True for the memory behind an argument that the source declares as a pointer to floating-point numbers.
    pub is_declared_floats: bool,
    /// Offsets of the pointers in the initializer of a variable.
    pub initial_pointers: BTreeSet<i64>,
    /// Declared types of the memory, with the offset of each.
    pub declared: Vec<(i64, TypeId)>,
    /// The structure of the member through which the memory was reached first, or the type of the pointer outside
    /// structures, by TBAA tags. Present for [`ObjectKey::Behind`] alone.
    through: Option<TbaaTypeId>,
}

/// The objects of an analysis. Numbers are stable across rounds of the solver.
#[derive(Clone, Debug)]
pub(crate) struct Objects {
    list: Vec<Object>,
    number: HashMap<ObjectKey, ObjectId>,
    /// Per root of a path, the number of objects behind cells on paths from this root.
    behind_count: HashMap<ObjectId, usize>,
}

/// Maximal number of elements that leave their array at one movement.
const LEAVING_MAX: i64 = 32;

/// Alignment of the pointers in memory of unknown content, in bytes.
const WORD_BYTES: i64 = 8;

/// Maximal number of objects behind cells on all paths from one object.
const BEHIND_MAX: usize = 128;

/// Maximal number of cells of unknown content on the path to an object.
const PATH_MAX: usize = 6;

impl Objects {
    /// Returns the table with [`EXTERNAL`] alone.
    pub fn new() -> Objects {
        let mut objects = Objects {
            list: Vec::new(),
            number: HashMap::new(),
            behind_count: HashMap::new(),
        };
        let external = objects.of(ObjectKey::External);
        let whole = Fold::of_whole_object(1);
        objects.list[external.0 as usize].folds.insert(whole);
        objects
    }
    /// Returns the object of a key; creates the object on first use.
    pub fn of(&mut self, key: ObjectKey) -> ObjectId {
        let next = ObjectId(self.list.len() as u32);
        let id = *self.number.entry(key).or_insert(next);
        if id == next {
            let has_unknown_content = matches!(
                key,
                ObjectKey::Argument(..) | ObjectKey::Returned(..) | ObjectKey::Behind(..)
            );
            self.list.push(Object {
                key,
                folds: Folds::default(),
                is_normalized: false,
                has_unknown_content,
                is_number: false,
                is_declared_floats: false,
                initial_pointers: BTreeSet::new(),
                declared: Vec::new(),
                through: None,
            });
        }
        id
    }
    /// Returns the object behind a cell of unknown content.
    ///
    /// A path that repeats a member, such as the second `next` of a list, returns to the object of the first
    /// occurrence. The number of objects is therefore finite. The member is known by its offset and by its structure
    /// (`owner`), unless an access has no tag: the second element of a table is not the second member of a structure. A
    /// pointer variable counts as no member: the rows of a global `double **` are not its table.
    ///
    /// Pointers are aligned: all bytes of a word lead to one object. Memory that a program reads at very many places, as
    /// a hash of bytes does, has a limited number of objects behind it.
    pub fn behind(&mut self, holder: ObjectId, offset: i64, owner: Option<TbaaTypeId>) -> ObjectId {
        let offset = offset.wrapping_sub(offset.rem_euclid(WORD_BYTES));
        let (mut at, mut length) = (holder, 0);
        while let ObjectKey::Behind(outer, through) = self.get(at).key {
            length += 1;
            let in_variable = matches!(self.get(outer).key, ObjectKey::Global(_));
            let other = self.get(at).through;
            let is_other_member = owner.zip(other).is_some_and(|(a, b)| a != b);
            let is_repeated =
                through == offset && !is_other_member && !(in_variable && at == holder);
            if is_repeated || length >= PATH_MAX {
                return at;
            }
            at = outer;
        }
        let key = ObjectKey::Behind(holder, offset);
        let count = self.behind_count.entry(at).or_default();
        if length > 0 && *count >= BEHIND_MAX && !self.number.contains_key(&key) {
            return holder;
        }
        let is_new = !self.number.contains_key(&key);
        *count += usize::from(is_new);
        let object = self.of(key);
        if is_new {
            self.get_mut(object).through = owner;
        }
        object
    }
    /// Returns the numbers with bits of an address of an object.
    pub fn bits_of(&mut self, object: ObjectId) -> ObjectId {
        match self.get(object).key {
            ObjectKey::Bits(_) => object,
            _ => self.of(ObjectKey::Bits(object)),
        }
    }
    /// Returns true if some number contains bits of an address.
    pub fn has_bits(&self) -> bool {
        let mut objects = self.list.iter();
        objects.any(|object| matches!(object.key, ObjectKey::Bits(_)))
    }
    /// Returns an object.
    pub fn get(&self, id: ObjectId) -> &Object {
        &self.list[id.0 as usize]
    }
    /// Returns an object.
    pub fn get_mut(&mut self, id: ObjectId) -> &mut Object {
        &mut self.list[id.0 as usize]
    }
    /// Iterates over all objects.
    pub fn iter(&self) -> impl Iterator<Item = (ObjectId, &Object)> {
        let numbered = self.list.iter().enumerate();
        numbered.map(|(index, object)| (ObjectId(index as u32), object))
    }
    /// Returns a location as sets hold it.
    pub fn location(&self, at: Location) -> Location {
        let data = self.get(at.object);
        let offset = match data.key {
            ObjectKey::Function(_) | ObjectKey::Bits(_) => 0,
            _ if data.is_normalized => data.folds.normalize(at.offset),
            _ => at.offset,
        };
        Location { offset, ..at }
    }
    /// Returns the array of which a location is some element: the outermost fold whose stride divides the stride of the
    /// location. An inner fold lies in the first period of the outer ones; the result lies around the location.
    pub fn array_of(&self, at: Location) -> Option<Fold> {
        let data = self.get(at.object);
        if at.stride == 0 || data.is_normalized {
            // Not an error: a single location, or an object whose locations are all normalised.
            return None;
        }
        let mut offset = at.offset;
        for fold in data.folds.list().iter() {
            if !fold.contains(offset) {
                continue;
            }
            if at.stride.is_multiple_of(fold.stride) {
                return Some(fold.moved(at.offset.wrapping_sub(offset)));
            }
            if !is_planted(Mutant::ArraysOfLaterStructuresLost) {
                offset = fold.normalize(offset);
            }
        }
        None
    }
    /// Returns the single locations that a location stands for, as starts of a block of `size_bytes`. Periodic memory
    /// needs one of them. `None` if there are too many.
    pub fn starts(&self, at: Location, size_bytes: Option<u64>) -> Option<Vec<Location>> {
        let single = Location { stride: 0, ..at };
        let bounds = self
            .array_of(at)
            .and_then(|array| Some((array, array.end?)));
        let Some((array, end)) = bounds else {
            // Not an error: a single location, or the rest of the object is periodic.
            return Some(vec![single]);
        };
        let inside = at
            .offset
            .wrapping_sub(array.first)
            .rem_euclid(array.stride as i64);
        let within = |size: u64| inside.saturating_add_unsigned(size) <= array.stride as i64;
        if size_bytes.is_some_and(within) {
            return Some(vec![single]);
        }
        let first = array.first.wrapping_add(inside);
        if end.saturating_sub(first) / array.stride as i64 > LEAVING_MAX {
            return None;
        }
        let starts = (first..end).step_by(array.stride as usize);
        Some(
            starts
                .map(|offset| Location::at(at.object, offset))
                .collect(),
        )
    }
    /// Visits the locations `bytes` behind a location.
    ///
    /// A location with a stride is some element of an array ([`Objects::array_of`]). A constant movement leads to another
    /// element, or out of the array from the elements at its edge: `&nodes[i]` moved back to the structure that contains
    /// `nodes`.
    ///
    /// # Errors
    /// Returns the fold if too many elements lead out; its range then has to include `bytes` more.
    pub fn visit_moved(
        &self,
        from: Location,
        bytes: i64,
        mut visit: impl FnMut(Location),
    ) -> Result<(), Fold> {
        let moved = Location {
            offset: from.offset.wrapping_add(bytes),
            ..from
        };
        let array = self.array_of(from).filter(|_| bytes != 0);
        let Some(array) = array else {
            // Not an error: a single location, or no array.
            visit(self.location(moved));
            return Ok(());
        };
        let offset = match array.contains(moved.offset) {
            true => moved.offset,
            false => array.normalize(moved.offset),
        };
        visit(Location { offset, ..from });
        let range =
            leaving(&array, bytes).filter(|_| !is_planted(Mutant::NeighboursOfElementsLost));
        let Some((first, end)) = range else {
            // Not an error: the array covers the object on this side.
            return Ok(());
        };
        let stride = array.stride as i64;
        let start = first.wrapping_add(from.offset.wrapping_sub(first).rem_euclid(stride));
        if end.saturating_sub(start) / stride > LEAVING_MAX {
            return Err(array);
        }
        for element in (start..end).step_by(array.stride as usize) {
            visit(Location::at(from.object, element.wrapping_add(bytes)));
        }
        Ok(())
    }
    /// Returns true if other code stores pointers in a cell, and no known pointer takes the place of them.
    ///
    /// If other code changes the initial pointers of a variable, the variable counts as if they had exchanged places:
    /// derivatives look up the shadow of such a pointer among the initial pointees, and end the program at any other
    /// pointer.
    pub fn is_unknown(&self, cell: Cell) -> bool {
        let data = self.get(cell.object);
        let mut initial = data.initial_pointers.iter();
        data.has_unknown_content
            && !data.is_declared_floats
            && !initial.any(|offset| data.folds.normalize(*offset) == cell.offset)
    }
    /// Returns the cell at a location.
    pub fn cell(&self, at: Location) -> Cell {
        Cell {
            object: at.object,
            offset: self.get(at.object).folds.normalize(at.offset),
        }
    }
}

/// Returns the range of the elements of an array that a movement takes out of the array.
fn leaving(array: &Fold, bytes: i64) -> Option<(i64, i64)> {
    match bytes < 0 {
        true if array.first == Fold::NO_START => None,
        true => {
            let end = array.first.saturating_sub(bytes);
            Some((array.first, array.end.map_or(end, |last| last.min(end))))
        }
        false => {
            let end = array.end?;
            Some((end.saturating_sub(bytes).max(array.first), end))
        }
    }
}
