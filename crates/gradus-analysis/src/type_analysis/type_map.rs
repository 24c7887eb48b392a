//! Type analysis: the floats and pointers in memory cells and in integers, over the whole call graph.
//!
//! Seeds are all accesses (earlier or later in the program), TBAA tags and, without other evidence,
//! declared types. Integers have bit ranges: a float or pointer at a bit offset. Steps:
//!
//! 1. One equation per op that moves bit ranges unchanged (see `bit_ranges.rs`) and per integer load or store.
//! 2. Fixpoint iteration over the equations, forwards and backwards in turn, and over the byte copies.
//! 3. Declared types become the types of cells without evidence; then step 2 runs again.
//!
//! `type_flow.rs` has the iteration. A pointer may have several targets: an access is evidence for the cell at
//! each target, and its type is the join of the types at all targets.

use crate::call_graph::CallGraph;
use crate::points_to::alias_sets::{AliasSetId, AliasSets, CellRef, CopyBytes, MemoryOrigin};
use crate::type_analysis::bit_ranges;
use crate::type_analysis::bit_ranges::{Nodes, START, Stamp};
use crate::type_analysis::block_layout;
use crate::type_analysis::block_layout::lane_kinds;
use crate::type_analysis::type_flow::own_cells;
use crate::types::lattice::CellType;
use gradus_ir::externals::{ExternalFn, MemoryFn};
use gradus_ir::{
    AttrValue, Body, ConstKind, Entity, FloatKind, FuncId, Op, POINTEE_ATTR, TbaaStructMember,
    Unit, Value,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Size of the widest float in bytes.
pub(super) const FLOAT_BYTES_MAX: i64 = 16;
/// Size of the widest pointer in bytes.
const POINTER_BYTES: i64 = 8;
/// Size of the shortest float that type analysis follows in memory of bytes (`float`).
const SHORTEST_FLOAT_BYTES: u64 = 4;
/// Maximal number of bytes inspected per access.
pub(super) const ACCESS_MAX: u32 = 4096;

/// Type of a bit range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LaneKind {
    /// A float.
    Float(FloatKind),
    /// A pointer.
    Pointer,
}

/// A float or pointer inside a value, laid out as in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BitRange {
    /// First bit, counted from the least significant bit, or from the first byte of an aggregate.
    pub bit: u32,
    /// Type of the bit range.
    pub kind: LaneKind,
}

/// A float or pointer in copied memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CopiedWord {
    /// Offset in bytes from the start of the copy, or of its period.
    pub offset_bytes: u64,
    /// Type at the offset.
    pub kind: LaneKind,
}

/// Period of the contents of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    /// Offset in bytes from the start of the copy to the first period. Cells before the offset do not
    /// repeat.
    pub from_bytes: u64,
    /// Length of a period in bytes.
    pub bytes: u64,
}

/// Contents of a byte copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyKind {
    /// Contiguous floats of one format, from the first byte to the last.
    Floats(FloatKind),
    /// Contiguous pointers.
    Pointers,
    /// Cells of several types. Bytes outside the listed cells carry no derivative and no pointer.
    Cells {
        /// The cells, in order of their offsets.
        words: Vec<CopiedWord>,
        /// Period of the cells, up to the size of the copy.
        period: Option<Period>,
    },
    /// Words of which each is a pointer, a `double` or an integer, as only the run knows.
    Words,
    /// Neither floats nor pointers.
    Nothing,
    /// The contents are unknown.
    Unknown,
}

impl CopyKind {
    /// Returns true if the copy moves or may move floats.
    pub fn may_hold_floats(&self) -> bool {
        match self {
            CopyKind::Floats(_) | CopyKind::Words | CopyKind::Unknown => true,
            CopyKind::Cells { words, .. } => {
                words.iter().any(|w| matches!(w.kind, LaneKind::Float(_)))
            }
            CopyKind::Pointers | CopyKind::Nothing => false,
        }
    }
}

/// The cells of a memory block.
pub(super) struct BlockCells {
    /// Distance from the start of the block in bytes, and type; not sorted.
    pub(super) list: Vec<(u64, CellType)>,
    /// The cells repeat with this period, in bytes. `list` has the first period.
    pub(super) period: Option<u64>,
    /// False if `list` lacks elements of an array with too many elements.
    pub(super) is_complete: bool,
}

/// Types of all memory cells and bit ranges of all values of a call graph.
#[derive(Clone, Debug, Default)]
pub struct TypeMap {
    /// By alias set and normalised offset.
    pub(super) types: Vec<BTreeMap<i64, CellType>>,
    /// By alias set and unreduced offset.
    pub(super) evidence: Vec<BTreeMap<i64, CellType>>,
    pub(super) nodes: Nodes,
    /// By alias set: the normalised offsets of the cells whose types do not come from the destination of a copy
    /// alone. Recorded only during the fixpoint, and only if copies have a direction.
    pub(super) own_cells: Vec<BTreeSet<i64>>,
    /// By alias set: the time of the last change of `types`, `evidence` or `own_cells` in the present fixpoint.
    pub(super) set_changed_at: Vec<Stamp>,
    /// The time of the last change in any alias set.
    pub(super) cells_changed_at: Stamp,
    copies: HashMap<(FuncId, Op), CopyBytes>,
    pub(super) visible: Vec<bool>,
    /// True for alias sets without evidence from accesses, TBAA names and declarations, before integer
    /// accesses are considered.
    untold: Vec<bool>,
    /// True for alias sets behind parameters that are declared as pointers to floats.
    declared: Vec<bool>,
    /// True for alias sets with accesses of doubles or pointers that may straddle two words.
    pub(super) unaligned: Vec<bool>,
    /// True for alias sets with words that hold addresses or integers (Note [Address words]).
    pub(super) address_words: Vec<bool>,
    /// The largest offset that a copy of unknown size reaches.
    pub(super) offset_max: i64,
}

impl TypeMap {
    /// Computes the types of all memory accessed by `closure`.
    pub fn of(unit: &Unit, closure: &CallGraph, memory: &AliasSets) -> TypeMap {
        let mut words = TypeMap {
            types: memory
                .alias_sets()
                .map(|(_, class)| class.words.iter().map(|(o, w)| (*o, w.observed)).collect())
                .collect(),
            evidence: memory
                .alias_sets()
                .map(|(_, c)| c.evidence.clone())
                .collect(),
            untold: memory
                .alias_sets()
                .map(|(_, c)| c.evidence.values().all(|seen| seen.is_nothing()))
                .collect(),
            nodes: Nodes::of(unit, closure, memory),
            own_cells: own_cells(memory),
            set_changed_at: vec![START; memory.alias_sets().len()],
            cells_changed_at: START,
            copies: memory.copies().iter().map(|c| (c.at, c.clone())).collect(),
            visible: externally_visible(closure, memory),
            declared: vec![false; memory.alias_sets().len()],
            unaligned: vec![false; memory.alias_sets().len()],
            address_words: vec![false; memory.alias_sets().len()],
            offset_max: offset_limit(memory),
        };
        words.declare_pointees(unit, closure, memory);
        let system = bit_ranges::equations(unit, closure, memory, &words.nodes);
        words.nodes.mark_merged_words(&system);
        words.nodes.mark_address_arithmetic(&system.equations);
        let equations = system.equations;
        for node in system.integral {
            words.nodes.set_integral(node);
        }
        words.solve_fixpoint(memory, &equations);
        for cell in words.types.iter_mut().flat_map(|class| class.values_mut()) {
            *cell = cell.effective();
        }
        words.solve_fixpoint(memory, &equations);
        words.mark_integers(memory, &equations);
        words.mark_address_words(&equations);
        for constant in &system.constants {
            words.seed_constant(memory, constant);
        }
        words.own_cells = Vec::new();
        words.mark_unaligned(unit, closure, memory);
        words
    }
    /// Uses the declared pointee types of parameters as evidence for memory without other evidence.
    fn declare_pointees(&mut self, unit: &Unit, closure: &CallGraph, memory: &AliasSets) {
        for (func, body) in closure.bodies(unit) {
            let attrs = unit.attrs(unit.functions[func].attrs);
            for (index, &param) in body.params().iter().enumerate() {
                let Some(AttrValue::Type(ty)) = attrs.param(index, POINTEE_ATTR) else {
                    continue;
                };
                let Some(kind) = unit.types.float_kind(*ty) else {
                    continue;
                };
                for &place in memory.targets(func, param) {
                    self.declared[place.class.index()] = true;
                    if self.untold[place.class.index()] {
                        let seen = CellType::float(kind).declared();
                        self.note(memory, place, seen);
                    }
                }
            }
        }
    }
    /// Returns the bit ranges of a value, by offset: a float or pointer itself, vector elements, aggregate
    /// members, and floats or pointers in integers. An integer constant has floats if it overwrites floats.
    pub fn lanes(&self, func: FuncId, value: Value) -> &[BitRange] {
        self.nodes
            .of_value(func, value)
            .map_or(&[], |node| self.nodes.lanes(node))
    }
    /// Returns true if a value contains a float.
    pub fn carries_float(&self, func: FuncId, value: Value) -> bool {
        let lanes = self.lanes(func, value).iter();
        lanes
            .into_iter()
            .any(|l| matches!(l.kind, LaneKind::Float(_)))
    }
    /// Returns true if a value contains a pointer.
    pub fn carries_pointer(&self, func: FuncId, value: Value) -> bool {
        let lanes = self.lanes(func, value).iter();
        lanes.into_iter().any(|l| l.kind == LaneKind::Pointer)
    }
    /// Returns true if bits of a value have conflicting types, or if a float is truncated.
    pub fn is_conflicting(&self, func: FuncId, value: Value) -> bool {
        self.nodes
            .of_value(func, value)
            .is_some_and(|node| self.nodes.is_conflicting(node))
    }
    /// Returns the type of the cell at a location.
    pub fn type_at(&self, memory: &AliasSets, place: CellRef) -> CellType {
        let offset = memory.get(place.class).normalize_offset(place.offset_bytes);
        let class = self.types.get(place.class.index());
        class
            .and_then(|words| words.get(&offset))
            .copied()
            .unwrap_or_default()
    }
    /// Returns the union of the types of an alias set's cells.
    pub fn types_of_set(&self, class: AliasSetId) -> CellType {
        let mut all = CellType::NOTHING;
        for seen in self
            .types
            .get(class.index())
            .into_iter()
            .flat_map(|c| c.values())
        {
            all.add(seen);
        }
        all
    }

    /// Returns true if an alias set has no type evidence: no access as float or pointer, no TBAA name, no
    /// declaration. Integer arithmetic on values loaded from such memory may be arithmetic on float bits.
    pub fn is_unknown(&self, class: AliasSetId) -> bool {
        let all = self.types_of_set(class);
        self.untold[class.index()] && !all.has_float() && !all.has_pointer()
    }

    /// Returns true if a parameter declares the memory as floats, but only integer accesses occur.
    pub fn contradicts_declaration(&self, class: AliasSetId) -> bool {
        let all = self.types_of_set(class);
        self.declared[class.index()] && !all.has_float() && !all.has_pointer()
    }

    /// Returns the contents of a byte copy: `memcpy`, `memmove`, `memset`, an aggregate store, a `byval`
    /// argument. Returns [`CopyKind::Nothing`] for other ops.
    pub fn copy_kind(
        &self,
        unit: &Unit,
        memory: &AliasSets,
        body: &Body,
        func: FuncId,
        op: Op,
    ) -> CopyKind {
        let kind = self.plain_copy_kind(unit, memory, body, func, op);
        match self.copies.get(&(func, op)) {
            Some(copy) if kind == CopyKind::Nothing => self.kind_over_address_words(memory, copy),
            _ => kind,
        }
    }
    fn plain_copy_kind(
        &self,
        unit: &Unit,
        memory: &AliasSets,
        body: &Body,
        func: FuncId,
        op: Op,
    ) -> CopyKind {
        if let Some(copy) = self.copies.get(&(func, op)) {
            let ends: Vec<CellRef> = copy.ends().collect();
            let kind = self.block_kind(memory, &ends, copy.size_bytes);
            if kind != CopyKind::Unknown {
                return kind;
            }
            if copies_constant_bytes(unit, body, op) {
                return self.zero_fill_kind(memory, &copy.to, copy.size_bytes);
            }
            let members = body.ops[op]
                .meta
                .map_or(&[][..], |id| &unit.meta(id).tbaa_struct);
            if let Some(named) = self.kind_by_tags(unit, memory, members, copy) {
                return named;
            }
            let declared = |end: &Vec<CellRef>| {
                crate::type_analysis::declared::declared_float_format(unit, memory, end)
            };
            // An optimiser may declare a word as a float that holds an address at other times.
            let has_pointer = |end: &CellRef| self.types_of_set(end.class).has_pointer();
            let floats = [&copy.to, &copy.from].into_iter().find_map(declared);
            let floats = floats.filter(|_| !ends.iter().any(has_pointer));
            let floats = floats
                .or_else(|| crate::type_analysis::declared::template_float_format(unit, body, op));
            return match floats {
                Some(floats) => CopyKind::Floats(floats),
                None if self.are_words(memory, &ends) => CopyKind::Words,
                None => kind,
            };
        }
        self.fill_kind(unit, memory, body, func, op)
    }

    /// Returns the contents of a copy according to its `tbaa.struct` members, which resolve memory of
    /// varying type. Returns `None` without names, for names of bytes that may hold a float, and for an integer name over
    /// cells with float accesses only.
    fn kind_by_tags(
        &self,
        unit: &Unit,
        memory: &AliasSets,
        members: &[TbaaStructMember],
        copy: &CopyBytes,
    ) -> Option<CopyKind> {
        let mut list = Vec::new();
        for member in members {
            let start = member.offset_bytes;
            let end = start.checked_add(member.size_bytes)?;
            let named = crate::types::lattice::tbaa_type(unit, member.tag.access);
            if named.is_nothing() && member.size_bytes < SHORTEST_FLOAT_BYTES {
                continue;
            }
            let only_floats = |end: CellRef| {
                let offset_bytes = end.offset_bytes.wrapping_add_unsigned(start);
                let seen = self.type_at(
                    memory,
                    CellRef {
                        offset_bytes,
                        ..end
                    },
                );
                seen.has_float() && !seen.has_integer()
            };
            let belied = named.has_integer() && copy.ends().any(only_floats);
            if named.is_nothing() || belied || end > copy.size_bytes? {
                return None;
            }
            let bytes = lane_kinds(named)
                .map(bit_ranges::kind_bytes)
                .next()
                .unwrap_or(4);
            list.extend((start..end).step_by(bytes as usize).map(|at| (at, named)));
        }
        list.sort_unstable_by_key(|(at, _)| *at);
        let kind = block_layout::block(&list, 0, copy.size_bytes, false);
        (!list.is_empty() && kind != CopyKind::Unknown).then_some(kind)
    }

    /// Returns the type of the memory overwritten by a fill.
    fn fill_kind(
        &self,
        unit: &Unit,
        memory: &AliasSets,
        body: &Body,
        func: FuncId,
        op: Op,
    ) -> CopyKind {
        let Some(ExternalFn::Memory(fill)) = unit.known_callee(body, op) else {
            return CopyKind::Nothing;
        };
        let args = unit.call_args(body, op);
        let (byte, size) = match (fill, args.as_slice()) {
            (MemoryFn::Memset | MemoryFn::MemsetIntrinsic, [_, byte, size, ..]) => {
                (body.as_int(unit, *byte), *size)
            }
            (MemoryFn::Bzero, [_, size, ..]) => (Some(0), *size),
            _ => return CopyKind::Nothing,
        };
        let size_bytes = body.as_int(unit, size).and_then(|n| u64::try_from(n).ok());
        let global = global_place(unit, memory, body, args[0]);
        let targets = match memory.targets(func, args[0]) {
            [] => global.as_slice(),
            targets => targets,
        };
        match self.block_kind(memory, targets, size_bytes) {
            CopyKind::Unknown if byte == Some(0) => {
                match self.zero_fill_kind(memory, targets, size_bytes) {
                    CopyKind::Unknown if self.are_words(memory, targets) => CopyKind::Words,
                    kind => kind,
                }
            }
            kind => kind,
        }
    }

    /// Returns the common contents of equal memory blocks at `ends`: the targets of a pointer, or both ends of
    /// a copy. Normalised offsets are tried first, because they cover all accesses. If they mix several types,
    /// the layout of the accesses decides.
    pub fn block_kind(&self, memory: &AliasSets, ends: &[CellRef], size: Option<u64>) -> CopyKind {
        let mut kind = CopyKind::Nothing;
        for &end in ends {
            kind = match (kind, self.reduced_kind(memory, end, size)) {
                (CopyKind::Nothing, other) | (other, CopyKind::Nothing) => other,
                (a, b) if a == b => a,
                _ => CopyKind::Unknown,
            };
        }
        let mut kinds = CellType::NOTHING;
        for seen in ends
            .iter()
            .flat_map(|end| self.evidence[end.class.index()].values())
        {
            kinds.add(&seen.effective());
        }
        if kind != CopyKind::Unknown && kinds.is_single() {
            return kind;
        }
        match block_layout::resolve(memory, &self.evidence, ends, size) {
            Some(found) => found,
            None if kinds.has_pointer() && matches!(kind, CopyKind::Floats(_)) => CopyKind::Unknown,
            None => kind,
        }
    }
    /// Returns the contents of the memory block at `place` by normalised offsets.
    fn reduced_kind(&self, memory: &AliasSets, place: CellRef, size: Option<u64>) -> CopyKind {
        let mut block = self.block_cells(memory, place, size);
        if !block.is_complete {
            return CopyKind::Unknown;
        }
        block.list.sort_unstable_by_key(|(distance, _)| *distance);
        let shown = self.visible[place.class.index()];
        block_layout::block(&block.list, block.period.unwrap_or(0), size, shown)
    }
    /// Returns the cells of the memory block at `place`, with their distance from its start.
    pub(super) fn block_cells(
        &self,
        memory: &AliasSets,
        place: CellRef,
        size: Option<u64>,
    ) -> BlockCells {
        let class = memory.get(place.class);
        let start = place.offset_bytes;
        let period = class.block_period(start, size);
        let bytes = match (period, size) {
            (Some(period), Some(size)) => Some(period.min(size)),
            (period, size) => period.or(size),
        };
        let end = bytes.map_or(i64::MAX, |bytes| start.saturating_add_unsigned(bytes));
        let mut block = BlockCells {
            list: Vec::new(),
            period,
            is_complete: true,
        };
        let types = &self.types[place.class.index()];
        if class.folds.is_empty() {
            let cells = types.range(start..end.max(start));
            block.list = cells
                .map(|(at, seen)| ((at - start) as u64, *seen))
                .collect();
            return block;
        }
        for (&cell, &seen) in types {
            let list = &mut block.list;
            let visit = |at: i64| list.push((at.wrapping_sub(start) as u64, seen));
            block.is_complete &= class.visit_offsets(cell, start..end, visit);
        }
        block
    }
    /// Returns the contents for a fill with zeros over memory of unknown type: all candidate types. Zeros in
    /// the shadow are correct for floats and pointers and harmless otherwise.
    fn zero_fill_kind(
        &self,
        memory: &AliasSets,
        targets: &[CellRef],
        size: Option<u64>,
    ) -> CopyKind {
        let mut cells: BTreeMap<u64, CellType> = BTreeMap::new();
        for target in targets {
            for (distance, seen) in self.block_cells(memory, *target, size).list {
                cells.entry(distance).or_default().add(&seen);
            }
        }
        if !cells.values().any(|seen| seen.has_pointer()) {
            return CopyKind::Floats(FloatKind::F64);
        }
        let of_word = |(offset_bytes, seen): (u64, CellType)| {
            lane_kinds(seen).map(move |kind| CopiedWord { offset_bytes, kind })
        };
        CopyKind::Cells {
            words: cells.into_iter().flat_map(of_word).collect(),
            period: None,
        }
    }

    /// Returns true if a value may be a float although its type is unknown: an integer that is only moved,
    /// and loaded from or stored to externally visible memory without evidence.
    pub fn is_opaque(&self, memory: &AliasSets, func: FuncId, ptr: Value, value: Value) -> bool {
        let Some(node) = self.nodes.of_value(func, value) else {
            return false;
        };
        let is_untyped = |place: &CellRef| {
            self.visible[place.class.index()] && self.type_at(memory, *place).is_nothing()
        };
        self.nodes.accepts_ranges(node)
            && self.nodes.lanes(node).is_empty()
            && !self.nodes.is_integral(node)
            && self.nodes.bits(node) >= 32
            && memory.targets(func, ptr).iter().any(is_untyped)
    }
    /// Returns [`TypeMap::may_hold_floats`] for a store of a number. If a fold mixes cells of a structure, the
    /// unreduced offset decides.
    pub fn overlaps_floats(&self, memory: &AliasSets, place: CellRef, bytes: u64) -> bool {
        if !self.may_hold_floats(memory, place, bytes) {
            return false;
        }
        let overlaps = self.has_floats_at(place, bytes);
        let named = self.evidence[place.class.index()]
            .get(&place.offset_bytes)
            .map_or(CellType::NOTHING, |s| s.effective());
        // Bytes in which no float begins may be padding; only the unreduced offsets decide.
        overlaps || self.may_begin_floats(memory, place, bytes) && !named.has_integer()
    }
    /// Returns true if a value is a vector of integers that contains floats.
    pub fn is_int_vector_with_floats(
        &self,
        unit: &Unit,
        body: &Body,
        func: FuncId,
        value: Value,
    ) -> bool {
        let ty = unit.types.get(body.ty(value));
        matches!(ty, gradus_ir::Type::Vector { .. })
            && unit.types.int_bits(body.ty(value)).is_some()
            && self.carries_float(func, value)
    }
    /// Returns true if the floats in a vector of integers have one format and are aligned like the elements
    /// of a float vector.
    pub fn floats_are_even(&self, func: FuncId, value: Value) -> bool {
        let lanes = self.lanes(func, value);
        let Some(LaneKind::Float(kind)) = lanes.first().map(|lane| lane.kind) else {
            return false;
        };
        let node = self.nodes.of_value(func, value);
        let whole = node.is_some_and(|n| self.nodes.bits(n).is_multiple_of(kind.bits()));
        let even = |lane: &BitRange| {
            lane.kind == LaneKind::Float(kind) && lane.bit.is_multiple_of(kind.bits())
        };
        whole && lanes.iter().all(even)
    }
    /// Returns true if a store of `bytes` bytes at a location may overwrite floats. The shadow is then
    /// zeroed.
    pub fn may_hold_floats(&self, memory: &AliasSets, place: CellRef, bytes: u64) -> bool {
        // A float that begins before the location may reach into it.
        let reaches = |k: i64| {
            let mut kinds = self.type_at(memory, offset_by(place, -k)).floats();
            kinds.any(|kind| i64::from(kind.bits() / 8) > k)
        };
        self.may_begin_floats(memory, place, bytes) || (1..FLOAT_BYTES_MAX).any(reaches)
    }
    /// Returns true if the `bytes` bytes at a location may hold floats and pointers at different times, as a union does.
    pub fn may_hold_floats_and_pointers(
        &self,
        memory: &AliasSets,
        place: CellRef,
        bytes: u64,
    ) -> bool {
        let bytes_max = bytes.min(u64::from(ACCESS_MAX)) as i64;
        let mut offsets = 1 - POINTER_BYTES..bytes_max;
        offsets.any(|k| self.type_at(memory, offset_by(place, k)).has_pointer())
            && self.may_hold_floats(memory, place, bytes)
    }
    /// Returns true if callers of the roots or unknown code can access an alias set.
    pub fn is_visible(&self, class: AliasSetId) -> bool {
        self.visible[class.index()]
    }
    /// Returns true if floats may begin in the `bytes` bytes at a location.
    fn may_begin_floats(&self, memory: &AliasSets, place: CellRef, bytes: u64) -> bool {
        let mut offsets = 0..bytes.min(u64::from(ACCESS_MAX)) as i64;
        offsets.any(|k| self.type_at(memory, offset_by(place, k)).has_float())
    }
}

/// Returns the location `bytes` further on.
fn offset_by(place: CellRef, bytes: i64) -> CellRef {
    CellRef {
        class: place.class,
        offset_bytes: place.offset_bytes.saturating_add(bytes),
    }
}

/// Returns true if the source of a copy is a constant without addresses (`T{}` in C++, a text): the copy sets a shadow as
/// a fill does.
fn copies_constant_bytes(unit: &Unit, body: &Body, op: Op) -> bool {
    let Some(ExternalFn::Memory(_)) = unit.known_callee(body, op) else {
        return false;
    };
    let source = unit
        .call_args(body, op)
        .get(1)
        .and_then(|source| body.as_const(*source));
    let Some(ConstKind::Global { global, .. }) = source.map(|id| &unit.constant(id).kind) else {
        return false;
    };
    let variable = &unit.globals[*global];
    let init = variable
        .init
        .as_ref()
        .filter(|_| variable.constant && variable.defined);
    init.is_some_and(|init| init.relocations.is_empty())
}

/// Returns the limit for offsets of copies of unknown size: an object that is copied to a later place in itself would grow
/// without end. No access of the program lies beyond half of the limit.
fn offset_limit(memory: &AliasSets) -> i64 {
    let accessed = memory
        .alias_sets()
        .flat_map(|(_, class)| class.words.keys().chain(class.evidence.keys()));
    let far = accessed.map(|offset| offset.unsigned_abs()).max();
    let far = i64::try_from(far.unwrap_or_default()).unwrap_or(i64::MAX);
    far.saturating_mul(2).saturating_add(i64::from(ACCESS_MAX))
}

/// Returns, per alias set, true if callers of the roots or unknown code can access the memory.
fn externally_visible(closure: &CallGraph, memory: &AliasSets) -> Vec<bool> {
    let mut seen = vec![false; memory.alias_sets().len()];
    let mut work: Vec<AliasSetId> = memory
        .alias_sets()
        .filter(|(_, class)| {
            class.escaped
                || class.origins.iter().any(|o| {
                    !matches!(
                        o,
                        MemoryOrigin::Alloca(..)
                            | MemoryOrigin::Heap(..)
                            | MemoryOrigin::Function(_)
                    )
                })
        })
        .map(|(id, _)| id)
        .collect();
    for &root in closure.roots() {
        work.extend(memory.returned(root).iter().flatten().map(|p| p.class));
    }
    while let Some(class) = work.pop() {
        if !std::mem::replace(&mut seen[class.index()], true) {
            work.extend(memory.pointees(class));
        }
    }
    seen
}

/// Returns the location of a global's address in a function that only fills the global.
fn global_place(unit: &Unit, memory: &AliasSets, body: &Body, value: Value) -> Option<CellRef> {
    let ConstKind::Global { global, offset } = unit.constant(body.as_const(value)?).kind else {
        return None;
    };
    let start = memory.global(global)?;
    Some(CellRef {
        offset_bytes: start.offset_bytes.checked_add(offset)?,
        ..start
    })
}
