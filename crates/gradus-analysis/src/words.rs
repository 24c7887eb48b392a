//! Types of words: which memory and which integers carry floats and pointers, over the whole closure.
//!
//! Seeds are all accesses (before or after), type-based alias tags, and declared types where nothing
//! else is known. Integers have lanes: a float or pointer at a bit offset. Steps: (1) one equation per
//! op that moves lanes unchanged (see `lanes.rs`) and per integer load or store; (2) sweeps over the
//! equations, forwards and backwards in turn, and over the copies of bytes, until nothing changes;
//! (3) declared types are taken for words of which nothing is known, and (2) again.

use crate::closure::Closure;
use crate::lanes::{self, Equation, Node, Nodes, StoredConstant};
use crate::layout::{self, lane_kinds, seen_of};
use crate::memory::{ClassId, CopyBytes, Memory, MemoryPlace, Origin};
use crate::seen::Seen;
use gradus_ir::known::{Known, MemoryFn};
use gradus_ir::{
    AttrValue, Body, ConstKind, CopiedMember, Entity, FloatKind, FuncId, Initializer, Op, POINTEE,
    Unit, Value,
};
use std::collections::{BTreeMap, HashMap};

/// The size of the widest floats in bytes.
const FLOAT_BYTES_MAX: i64 = 16;
/// The most bytes of one access that are looked at.
const ACCESS_MAX: u32 = 4096;

/// What a lane carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LaneKind {
    /// A float.
    Float(FloatKind),
    /// A pointer.
    Pointer,
}

/// A float or pointer inside a value, as it would lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lane {
    /// Where it starts: bits from the least significant one, or from the first byte of an aggregate.
    pub bit: u32,
    /// What it is.
    pub kind: LaneKind,
}

/// What a word of copied memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CopiedWord {
    /// Bytes from the start of the copy, or of its period.
    pub offset_bytes: u64,
    /// What lies there.
    pub kind: LaneKind,
}

/// How many words of another period a copy of any length is followed for.
const MOST_REPEATS: u64 = 4096;

/// How the words of a copy repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    /// Bytes from the start of the copy to the first period: words before stand once.
    pub from_bytes: u64,
    /// The length of a period.
    pub bytes: u64,
}

/// What a copy of bytes moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyKind {
    /// Floats of one format side by side, from the first byte to the last.
    Floats(FloatKind),
    /// Pointers side by side.
    Pointers,
    /// Words of several kinds; bytes not named need nothing.
    Words {
        /// The words in order.
        words: Vec<CopiedWord>,
        /// How they repeat, up to the size of the copy.
        period: Option<Period>,
    },
    /// Neither floats nor pointers.
    Nothing,
    /// It cannot be told.
    Unknown,
}

impl CopyKind {
    /// Whether floats are among what is moved, or may be.
    pub fn may_hold_floats(&self) -> bool {
        match self {
            CopyKind::Floats(_) | CopyKind::Unknown => true,
            CopyKind::Words { words, .. } => {
                words.iter().any(|w| matches!(w.kind, LaneKind::Float(_)))
            }
            CopyKind::Pointers | CopyKind::Nothing => false,
        }
    }
}

/// The words of all memory of a closure and the lanes of all its values.
#[derive(Clone, Debug, Default)]
pub struct Words {
    /// By class and reduced offset.
    seen: Vec<BTreeMap<i64, Seen>>,
    /// By class and offset that is not reduced.
    evidence: Vec<BTreeMap<i64, Seen>>,
    nodes: Nodes,
    copies: HashMap<(FuncId, Op), CopyBytes>,
    visible: Vec<bool>,
    /// The classes of which no access, name or declaration told anything, before integers were looked at.
    untold: Vec<bool>,
    /// The classes that parameters point to which are declared to point to numbers.
    declared: Vec<bool>,
}

impl Words {
    /// The words of all memory that `closure` touches.
    pub fn of(unit: &Unit, closure: &Closure, memory: &Memory) -> Words {
        let mut words = Words {
            seen: memory
                .classes()
                .map(|(_, class)| class.words.iter().map(|(o, w)| (*o, w.seen)).collect())
                .collect(),
            evidence: memory.classes().map(|(_, c)| c.evidence.clone()).collect(),
            untold: memory
                .classes()
                .map(|(_, c)| c.evidence.values().all(|seen| seen.is_nothing()))
                .collect(),
            nodes: Nodes::of(unit, closure, memory),
            copies: memory.copies().iter().map(|c| (c.at, *c)).collect(),
            visible: visible(closure, memory),
            declared: vec![false; memory.classes().len()],
        };
        words.declare_pointees(unit, closure, memory);
        let system = lanes::equations(unit, closure, memory, &words.nodes);
        let equations = system.equations;
        for node in system.integral {
            words.nodes.set_integral(node);
        }
        words.settle(memory, &equations);
        for cell in words.seen.iter_mut().flat_map(|class| class.values_mut()) {
            *cell = cell.settled();
        }
        words.settle(memory, &equations);
        words.see_integers(memory, &equations);
        for constant in &system.constants {
            words.stamp(memory, constant);
        }
        words
    }
    /// Where nothing else tells what memory holds, the declared types of parameters do.
    fn declare_pointees(&mut self, unit: &Unit, closure: &Closure, memory: &Memory) {
        for (func, body) in closure.bodies(unit) {
            let attrs = unit.attrs(unit.functions[func].attrs);
            for (index, &param) in body.params().iter().enumerate() {
                let Some(AttrValue::Type(ty)) = attrs.param(index, POINTEE) else {
                    continue;
                };
                let (Some(place), Some(kind)) =
                    (memory.place(func, param), unit.types.float_kind(*ty))
                else {
                    continue;
                };
                self.declared[place.class.index()] = true;
                if self.untold[place.class.index()] {
                    let seen = Seen::float(kind).declared();
                    self.note(memory, place.class, place.offset_bytes, seen);
                }
            }
        }
    }
    /// An integer constant that overwrites floats stands for floats: zeros, where `memset` was a store. So
    /// does one that reads as a number, in memory that callers see and of which nothing else is known:
    /// zeros in its shadow are right for a float, and do no harm to anything else.
    fn stamp(&mut self, memory: &Memory, constant: &StoredConstant) {
        let StoredConstant {
            node,
            place,
            number,
        } = *constant;
        let nothing_known =
            self.visible[place.class.index()] && self.seen(memory, place).is_nothing();
        let taken_for = number.filter(|_| nothing_known);
        for byte in 0..self.nodes.bits(node) / 8 {
            let at = MemoryPlace {
                class: place.class,
                offset_bytes: place.offset_bytes + i64::from(byte),
            };
            let kind = match self.overlaps_floats(memory, at, 1) {
                true => self.seen(memory, at).float_kind(),
                false => taken_for,
            };
            if let Some(kind) = kind.filter(|k| byte % (k.bits() / 8) == 0) {
                self.nodes.stamp(node, byte * 8, LaneKind::Float(kind));
            }
        }
    }

    /// The floats and pointers that a value carries, by their offsets: of a float or pointer itself, of
    /// a vector's elements, of an aggregate's members, and of integers that are really those. An integer
    /// constant carries floats where it overwrites such.
    pub fn lanes(&self, func: FuncId, value: Value) -> &[Lane] {
        self.nodes
            .of_value(func, value)
            .map_or(&[], |node| self.nodes.lanes(node))
    }
    /// Whether a value carries a float.
    pub fn carries_float(&self, func: FuncId, value: Value) -> bool {
        let lanes = self.lanes(func, value).iter();
        lanes
            .into_iter()
            .any(|l| matches!(l.kind, LaneKind::Float(_)))
    }
    /// Whether a value carries a pointer.
    pub fn carries_pointer(&self, func: FuncId, value: Value) -> bool {
        let lanes = self.lanes(func, value).iter();
        lanes.into_iter().any(|l| l.kind == LaneKind::Pointer)
    }
    /// Whether bits of a value are taken for different things in different places, or a float is cut.
    pub fn is_confused(&self, func: FuncId, value: Value) -> bool {
        self.nodes
            .of_value(func, value)
            .is_some_and(|node| self.nodes.is_confused(node))
    }
    /// What the word at a place is known to be.
    pub fn seen(&self, memory: &Memory, place: MemoryPlace) -> Seen {
        let offset = memory.get(place.class).normal(place.offset_bytes);
        let class = self.seen.get(place.class.index());
        class
            .and_then(|words| words.get(&offset))
            .copied()
            .unwrap_or_default()
    }
    /// All that the words of a class are known to be.
    pub fn seen_anywhere(&self, class: ClassId) -> Seen {
        let mut all = Seen::NOTHING;
        for seen in self
            .seen
            .get(class.index())
            .into_iter()
            .flat_map(|c| c.values())
        {
            all.add(seen);
        }
        all
    }

    /// Whether nothing tells what memory of a class holds: no access as a number or an address, no name that
    /// the front end gave an access, no declaration. Arithmetic on integers that are loaded from it and stored
    /// to it may be arithmetic on the bits of numbers.
    pub fn is_untold(&self, class: ClassId) -> bool {
        let all = self.seen_anywhere(class);
        self.untold[class.index()] && !all.has_float() && !all.has_pointer()
    }

    /// Whether a parameter is declared to point to numbers in memory of a class, and all that is seen there are
    /// integers.
    pub fn is_belied(&self, class: ClassId) -> bool {
        let all = self.seen_anywhere(class);
        self.declared[class.index()] && !all.has_float() && !all.has_pointer()
    }

    /// What a call of `memcpy`, `memmove` or `memset` (or a `store` of an aggregate, a call by value)
    /// moves; [`CopyKind::Nothing`] for other ops.
    pub fn copy_kind(
        &self,
        unit: &Unit,
        memory: &Memory,
        body: &Body,
        func: FuncId,
        op: Op,
    ) -> CopyKind {
        if let Some(copy) = self.copies.get(&(func, op)) {
            let kind = self.kind_at(memory, &[copy.to, copy.from], copy.size_bytes);
            if kind != CopyKind::Unknown {
                return kind;
            }
            if copies_zeros(unit, body, op) {
                return zeroed(&self.block_words(memory, copy.to, copy.size_bytes));
            }
            let members = body.ops[op]
                .meta
                .map_or(&[][..], |id| &unit.meta(id).copied);
            if let Some(named) = self.named(unit, memory, members, copy) {
                return named;
            }
            let declared = |place| crate::declared::floats(unit, memory, place);
            let floats = [copy.to, copy.from].into_iter().find_map(declared);
            let floats = floats.or_else(|| crate::declared::copied_elements(unit, body, op));
            return floats.map_or(kind, CopyKind::Floats);
        }
        self.fill_kind(unit, memory, body, func, op)
    }

    /// What a copy moves as the front end names it, which tells where the memory at its ends holds now this and now
    /// that; `None` where it names nothing, or bytes, or an integer where nothing but floats was seen.
    fn named(
        &self,
        unit: &Unit,
        memory: &Memory,
        members: &[CopiedMember],
        copy: &CopyBytes,
    ) -> Option<CopyKind> {
        let mut list = Vec::new();
        for member in members {
            let start = member.offset_bytes;
            let end = start.checked_add(member.size_bytes)?;
            let named = crate::seen::of_tbaa(unit, member.tag.access);
            let only_floats = |end: MemoryPlace| {
                let offset_bytes = end.offset_bytes.wrapping_add_unsigned(start);
                let seen = self.seen(
                    memory,
                    MemoryPlace {
                        offset_bytes,
                        ..end
                    },
                );
                seen.has_float() && !seen.has_integer()
            };
            let belied = named.has_integer() && [copy.to, copy.from].into_iter().any(only_floats);
            if named.is_nothing() || belied || end > copy.size_bytes? {
                return None;
            }
            let bytes = lane_kinds(named).map(lanes::kind_bytes).next().unwrap_or(4);
            list.extend((start..end).step_by(bytes as usize).map(|at| (at, named)));
        }
        list.sort_unstable_by_key(|(at, _)| *at);
        let kind = layout::block(&list, 0, copy.size_bytes, false);
        (!list.is_empty() && kind != CopyKind::Unknown).then_some(kind)
    }

    /// What a fill overwrites.
    fn fill_kind(
        &self,
        unit: &Unit,
        memory: &Memory,
        body: &Body,
        func: FuncId,
        op: Op,
    ) -> CopyKind {
        let Some(Known::Memory(fill)) = unit.callee(body, op).and_then(|f| unit.known(f)) else {
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
        let place = memory
            .place(func, args[0])
            .or_else(|| global_place(unit, memory, body, args[0]));
        let Some(place) = place else {
            return CopyKind::Nothing;
        };
        match self.block_kind(memory, place, size_bytes) {
            CopyKind::Unknown if byte == Some(0) => {
                zeroed(&self.block_words(memory, place, size_bytes))
            }
            kind => kind,
        }
    }

    /// What the block of memory at `place` holds.
    pub fn block_kind(
        &self,
        memory: &Memory,
        place: MemoryPlace,
        size_bytes: Option<u64>,
    ) -> CopyKind {
        self.kind_at(memory, &[place], size_bytes)
    }
    /// What blocks of memory hold that are alike. First by reduced offsets, which leave nothing out; where
    /// that mixes words of several kinds, by the layout that the accesses show.
    fn kind_at(&self, memory: &Memory, ends: &[MemoryPlace], size: Option<u64>) -> CopyKind {
        let mut kind = CopyKind::Nothing;
        for &end in ends {
            kind = match (kind, self.reduced_kind(memory, end, size)) {
                (CopyKind::Nothing, other) | (other, CopyKind::Nothing) => other,
                (a, b) if a == b => a,
                _ => CopyKind::Unknown,
            };
        }
        let mut kinds = Seen::NOTHING;
        for seen in ends
            .iter()
            .flat_map(|end| self.evidence[end.class.index()].values())
        {
            kinds.add(&seen.settled());
        }
        if kind != CopyKind::Unknown && kinds.is_single() {
            return kind;
        }
        match layout::resolve(memory, &self.evidence, ends, size) {
            Some(found) => found,
            None if kinds.has_pointer() && matches!(kind, CopyKind::Floats(_)) => CopyKind::Unknown,
            None => kind,
        }
    }
    /// What the block of memory at `place` holds by reduced offsets.
    fn reduced_kind(&self, memory: &Memory, place: MemoryPlace, size: Option<u64>) -> CopyKind {
        let list = self.block_words(memory, place, size);
        let modulus = memory.get(place.class).modulus_bytes;
        let shown = self.visible[place.class.index()];
        layout::block(&list, modulus, size, shown)
    }
    /// The words of the block of memory at `place` by reduced offsets, with their distance from its start.
    fn block_words(
        &self,
        memory: &Memory,
        place: MemoryPlace,
        size: Option<u64>,
    ) -> Vec<(u64, Seen)> {
        let class = memory.get(place.class);
        let start = class.normal(place.offset_bytes);
        let mut list: Vec<(u64, Seen)> = Vec::new();
        for (&offset, &seen) in &self.seen[place.class.index()] {
            let distance = match class.modulus_bytes {
                0 => offset - start,
                m => (offset - start).rem_euclid(m as i64),
            };
            let inside = size.is_none_or(|size| (distance as u64) < size);
            if distance >= 0 && inside {
                list.push((distance as u64, seen));
            }
        }
        list.sort_unstable_by_key(|(distance, _)| *distance);
        list
    }

    /// Step 2.
    fn settle(&mut self, memory: &Memory, equations: &[Equation]) {
        loop {
            let mut news = false;
            for equation in equations.iter().chain(equations.iter().rev()) {
                news |= match *equation {
                    Equation::Link(link) => self.nodes.join(link),
                    Equation::Access {
                        node,
                        place,
                        tagged,
                    } => self.access(memory, node, place, tagged),
                };
            }
            for copy in memory.copies() {
                news |= self.copy(memory, copy.from, copy.to, copy.size_bytes);
                news |= self.copy(memory, copy.to, copy.from, copy.size_bytes);
            }
            if !news {
                return;
            }
        }
    }
    /// An integer at `node` is loaded from, or stored to, `place`. What is also used as a float is one, by
    /// whatever name it is accessed.
    fn access(&mut self, memory: &Memory, node: Node, place: MemoryPlace, tagged: Seen) -> bool {
        let is_float = |lane: &Lane| matches!(lane.kind, LaneKind::Float(_));
        if tagged.has_integer() && !self.nodes.lanes(node).iter().any(is_float) {
            return self.access_address(memory, node, place);
        }
        let mut news = false;
        for byte in 0..self.nodes.bits(node).div_ceil(8).min(ACCESS_MAX) {
            let at = MemoryPlace {
                class: place.class,
                offset_bytes: place.offset_bytes + i64::from(byte),
            };
            let seen = match tagged.is_nothing() {
                true => self.seen_by(memory, at, node),
                false if byte == 0 => tagged,
                false => Seen::NOTHING,
            };
            for kind in lane_kinds(seen) {
                if byte % lanes::kind_bytes(kind) == 0 {
                    news |= self.nodes.add(node, byte * 8, kind);
                }
            }
        }
        for lane in self.nodes.lanes(node).to_vec() {
            if lane.bit.is_multiple_of(8) {
                let offset = place.offset_bytes + i64::from(lane.bit / 8);
                news |= self.note(memory, place.class, offset, seen_of(lane.kind));
            }
        }
        news
    }
    /// A declared integer is loaded from, or stored to, `place`: no float, but it may be an address that
    /// is kept as a number.
    fn access_address(&mut self, memory: &Memory, node: Node, place: MemoryPlace) -> bool {
        let named = self.evidence[place.class.index()].get(&place.offset_bytes);
        let named = named.copied().unwrap_or_default();
        let pointer = LaneKind::Pointer;
        let whole = self.nodes.bits(node) == 8 * lanes::kind_bytes(pointer);
        let mut news = whole
            && named.has_pointer()
            && !named.has_float()
            && !self.nodes.is_integral(node)
            && self.nodes.add(node, 0, pointer);
        let first = Lane {
            bit: 0,
            kind: pointer,
        };
        if self.nodes.lanes(node).contains(&first) {
            news |= self.note(memory, place.class, place.offset_bytes, seen_of(pointer));
        }
        news
    }
    /// What the word at a place is, asked for an integer that is used as a number or not: where the
    /// words of a structure are mixed, the offset as it was named decides.
    fn seen_by(&self, memory: &Memory, at: MemoryPlace, node: Node) -> Seen {
        let seen = self.seen(memory, at);
        let exact = memory.get(at.class).modulus_bytes == 0;
        if seen.is_nothing() || exact && seen.is_single() {
            return seen;
        }
        let named = self.evidence[at.class.index()].get(&at.offset_bytes);
        let named = named.map_or(Seen::NOTHING, |s| s.settled());
        match (named.has_float(), self.nodes.is_integral(node)) {
            (true, _) => named,
            (false, true) => Seen::NOTHING,
            (false, false) => seen,
        }
    }
    fn copy(
        &mut self,
        memory: &Memory,
        from: MemoryPlace,
        to: MemoryPlace,
        size: Option<u64>,
    ) -> bool {
        let (source, goal) = (memory.get(from.class), memory.get(to.class));
        let start = source.normal(from.offset_bytes);
        let mut found = Vec::new();
        let first = if source.modulus_bytes == 0 {
            start
        } else {
            i64::MIN
        };
        for (&offset, &seen) in self.seen[from.class.index()].range(first..) {
            let distance = match source.modulus_bytes {
                0 => offset - start,
                m => (offset - start).rem_euclid(m as i64),
            };
            if size.is_none_or(|s| (distance as u64) < s) {
                found.push((distance, seen));
            } else if source.modulus_bytes == 0 {
                break;
            }
        }
        let mut news = self.copy_evidence(from, to, size);
        for (distance, seen) in found {
            let mut repeats = 1;
            // A copy of any length may fill all of the other side's period.
            let (length, most) = match size {
                Some(size) => (Some(size), 65),
                None => (Some(goal.modulus_bytes).filter(|m| *m > 0), MOST_REPEATS),
            };
            if let (m @ 1.., Some(length)) = (source.modulus_bytes, length)
                && m != goal.modulus_bytes
            {
                let whole = length.saturating_sub(distance as u64);
                repeats = whole.div_ceil(m).clamp(1, most) as i64;
            }
            for k in 0..repeats {
                let step = distance + k * source.modulus_bytes as i64;
                if repeats > 1 && step % seen.grain_bytes() != 0 {
                    continue;
                }
                let offset = goal.normal(to.offset_bytes.wrapping_add(step));
                let cell = self.seen[to.class.index()].entry(offset).or_default();
                news |= cell.add(&seen);
            }
        }
        news
    }
    /// As the words by reduced offsets, but only of copies whose size is known: else offsets could grow
    /// without end where copies go round in a circle.
    fn copy_evidence(&mut self, from: MemoryPlace, to: MemoryPlace, size: Option<u64>) -> bool {
        let Some(size) = size.and_then(|s| i64::try_from(s).ok()) else {
            // Not an error: the words by reduced offsets are copied all the same.
            return false;
        };
        let range = from.offset_bytes..from.offset_bytes.saturating_add(size);
        let found: Vec<(i64, Seen)> = (self.evidence[from.class.index()].range(range))
            .map(|(offset, seen)| (offset - from.offset_bytes + to.offset_bytes, *seen))
            .collect();
        let mut news = false;
        for (offset, seen) in found {
            news |= self.evidence[to.class.index()]
                .entry(offset)
                .or_default()
                .add(&seen);
        }
        news
    }
    /// Notes what the word at an offset of a class is; gives whether that is new.
    fn note(&mut self, memory: &Memory, class: ClassId, offset: i64, seen: Seen) -> bool {
        let raw = self.evidence[class.index()].entry(offset).or_default();
        let news = raw.add(&seen);
        let offset = memory.get(class).normal(offset);
        let cell = self.seen[class.index()].entry(offset).or_default();
        cell.add(&seen) || news
    }
    /// Words that are loaded or stored as integers which carry nothing, and are used as numbers, are
    /// integers; so are words too short to be floats.
    fn see_integers(&mut self, memory: &Memory, equations: &[Equation]) {
        for equation in equations {
            let Equation::Access {
                node,
                place,
                tagged,
            } = *equation
            else {
                continue;
            };
            if !self.nodes.lanes(node).is_empty() {
                continue;
            }
            let number = self.nodes.is_integral(node) || self.nodes.bits(node) < 32;
            if tagged.has_integer() || number {
                self.note(memory, place.class, place.offset_bytes, Seen::INTEGER);
            } else if self.seen(memory, place).has_float() {
                self.nodes.confuse(node);
            }
        }
        for copy in memory.copies() {
            self.copy(memory, copy.from, copy.to, copy.size_bytes);
            self.copy(memory, copy.to, copy.from, copy.size_bytes);
        }
    }
    /// Whether a value is an integer that is only moved, loaded from or stored to memory that may be
    /// seen outside and of which nothing is known: it may be a float.
    pub fn is_opaque(&self, memory: &Memory, func: FuncId, ptr: Value, value: Value) -> bool {
        let node = self.nodes.of_value(func, value);
        let (Some(node), Some(place)) = (node, memory.place(func, ptr)) else {
            return false;
        };
        self.nodes.is_open(node)
            && self.nodes.lanes(node).is_empty()
            && !self.nodes.is_integral(node)
            && self.nodes.bits(node) >= 32
            && self.visible[place.class.index()]
            && self.seen(memory, place).is_nothing()
    }
    /// As [`Words::may_hold_floats`], for a store of a number: where the words of a structure are mixed,
    /// the offset as it was named decides.
    pub fn overlaps_floats(&self, memory: &Memory, place: MemoryPlace, bytes: u64) -> bool {
        if !self.may_hold_floats(memory, place, bytes) {
            return false;
        }
        let start = place.offset_bytes;
        let end = start.saturating_add(bytes as i64);
        let evidence = &self.evidence[place.class.index()];
        let overlaps = evidence
            .range(start - FLOAT_BYTES_MAX + 1..end)
            .any(|(&offset, seen)| {
                seen.settled()
                    .floats()
                    .any(|kind| offset + i64::from(kind.bits() / 8) > start)
            });
        let named = evidence.get(&start).map_or(Seen::NOTHING, |s| s.settled());
        // Of bytes in which no float begins, only the offsets tell: they may be padding.
        overlaps || self.begin_floats(memory, place, bytes) && !named.has_integer()
    }
    /// Whether a value is a vector of integers that carries floats.
    pub fn hides_floats(&self, unit: &Unit, body: &Body, func: FuncId, value: Value) -> bool {
        let ty = unit.types.get(body.ty(value));
        matches!(ty, gradus_ir::Type::Vector { .. })
            && unit.types.int_bits(body.ty(value)).is_some()
            && self.carries_float(func, value)
    }
    /// Whether the floats that a vector of integers carries are of one format and each where a vector of
    /// such floats has an element.
    pub fn floats_are_even(&self, func: FuncId, value: Value) -> bool {
        let lanes = self.lanes(func, value);
        let Some(LaneKind::Float(kind)) = lanes.first().map(|lane| lane.kind) else {
            return false;
        };
        let node = self.nodes.of_value(func, value);
        let whole = node.is_some_and(|n| self.nodes.bits(n).is_multiple_of(kind.bits()));
        let even = |lane: &Lane| {
            lane.kind == LaneKind::Float(kind) && lane.bit.is_multiple_of(kind.bits())
        };
        whole && lanes.iter().all(even)
    }
    /// Whether a store of so many bytes at a place may overwrite floats: their shadow is then zeroed.
    pub fn may_hold_floats(&self, memory: &Memory, place: MemoryPlace, bytes: u64) -> bool {
        // A float that begins before the place may reach into it.
        let reaches = |k: i64| {
            let mut kinds = self.seen(memory, moved(place, -k)).floats();
            kinds.any(|kind| i64::from(kind.bits() / 8) > k)
        };
        self.begin_floats(memory, place, bytes) || (1..FLOAT_BYTES_MAX).any(reaches)
    }
    /// Returns true if floats may begin in so many bytes at a place.
    fn begin_floats(&self, memory: &Memory, place: MemoryPlace, bytes: u64) -> bool {
        let mut offsets = 0..bytes.min(u64::from(ACCESS_MAX)) as i64;
        offsets.any(|k| self.seen(memory, moved(place, k)).has_float())
    }
}

/// Returns the place `bytes` further on.
fn moved(place: MemoryPlace, bytes: i64) -> MemoryPlace {
    MemoryPlace {
        class: place.class,
        offset_bytes: place.offset_bytes.saturating_add(bytes),
    }
}

/// What zeros overwrite where that cannot be told: all that it may be, as zeros in the shadow are right for
/// floats and for pointers, and do no harm to anything else.
fn zeroed(block: &[(u64, Seen)]) -> CopyKind {
    if !block.iter().any(|(_, seen)| seen.has_pointer()) {
        return CopyKind::Floats(FloatKind::F64);
    }
    let of_word = |&(offset_bytes, seen): &(u64, Seen)| {
        lane_kinds(seen).map(move |kind| CopiedWord { offset_bytes, kind })
    };
    CopyKind::Words {
        words: block.iter().flat_map(of_word).collect(),
        period: None,
    }
}

/// Whether a copy's source is a constant of nothing but zeros, as `T{}` is written: the copy fills.
fn copies_zeros(unit: &Unit, body: &Body, op: Op) -> bool {
    let Some(Known::Memory(_)) = unit.callee(body, op).and_then(|f| unit.known(f)) else {
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
    let is_zero = |init: &Initializer| {
        init.relocations.is_empty() && init.bytes.iter().all(|byte| *byte == 0)
    };
    variable.constant && variable.defined && variable.init.as_ref().is_some_and(is_zero)
}

/// The classes that callers of the roots, or code that is not seen, can see too.
fn visible(closure: &Closure, memory: &Memory) -> Vec<bool> {
    let mut seen = vec![false; memory.classes().len()];
    let mut work: Vec<ClassId> = memory
        .classes()
        .filter(|(_, class)| {
            class.escaped
                || class.origins.iter().any(|o| {
                    !matches!(
                        o,
                        Origin::Alloca(..) | Origin::Heap(..) | Origin::Function(_)
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
            work.extend(memory.stored(class));
        }
    }
    seen
}

/// The place of a global's address that a function only fills.
fn global_place(unit: &Unit, memory: &Memory, body: &Body, value: Value) -> Option<MemoryPlace> {
    let ConstKind::Global { global, offset } = unit.constant(body.as_const(value)?).kind else {
        return None;
    };
    let start = memory.global(global)?;
    Some(MemoryPlace {
        offset_bytes: start.offset_bytes.checked_add(offset)?,
        ..start
    })
}
