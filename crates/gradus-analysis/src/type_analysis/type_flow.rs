//! Type flow: iterates the equations of bit ranges and the byte copies to a fixpoint.
//!
//! A byte copy moves the contents of its source to its destination, hence types flow in this direction. A
//! source that the call graph only copies has no types of its own; the destination's types then say what the
//! source holds. With directed copies, the first fixpoint therefore follows copies forwards only, and the second
//! one in addition backwards, into cells that no other evidence types. Without this restriction, two
//! destinations of one source would lend their types to each other.
//!
//! The present solver of alias sets equates both ends of a copy ([`CopyFlow::Symmetric`]).

use crate::points_to::alias_sets::{AliasSetId, AliasSets, CellRef};
use crate::type_analysis::bit_ranges;
use crate::type_analysis::bit_ranges::{Equation, Node, Stamp, StoredConstant};
use crate::type_analysis::block_layout::{lane_kinds, seen_of};
use crate::type_analysis::type_map::{ACCESS_MAX, BitRange, LaneKind, TypeMap};
use crate::types::lattice::CellType;
use gradus_ir::Entity;
use std::collections::BTreeSet;

/// Maximal number of repetitions propagated for a copy of unknown size.
const REPEATS_MAX: u64 = 4096;

/// The flow of types along byte copies in one fixpoint.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CopyFlow {
    /// From sources to destinations.
    Forward,
    /// Forwards, and backwards into source cells without types of their own.
    Inferred,
    /// In both directions.
    Symmetric,
}

/// The cells that a copy of types writes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CellFilter {
    All,
    /// Cells without types, or with types from the destinations of copies only.
    Inferred,
}

/// Returns the flow of the last fixpoint.
fn full_flow(memory: &AliasSets) -> CopyFlow {
    match memory.copies_are_directed {
        true => CopyFlow::Inferred,
        false => CopyFlow::Symmetric,
    }
}

/// Returns, per alias set, the cells that accesses type; empty if copies have no direction.
pub(super) fn own_cells(memory: &AliasSets) -> Vec<BTreeSet<i64>> {
    if !memory.copies_are_directed {
        return Vec::new();
    }
    let sets = memory.alias_sets();
    let typed = sets.map(|(_, set)| {
        let typed = set
            .words
            .iter()
            .filter(|(_, word)| !word.observed.is_nothing());
        typed.map(|(offset, _)| *offset).collect()
    });
    typed.collect()
}

impl TypeMap {
    /// Gives bit ranges to a stored integer constant. A constant that overwrites floats counts as floats
    /// (`memset` lowered to an integer store). A constant with the bits of a number counts as floats in
    /// caller-visible memory without evidence: zeros in the shadow are correct for a float and harmless
    /// otherwise.
    pub(super) fn seed_constant(&mut self, memory: &AliasSets, constant: &StoredConstant) {
        let StoredConstant {
            node,
            place,
            number,
        } = *constant;
        let nothing_known =
            self.visible[place.class.index()] && self.type_at(memory, place).is_nothing();
        let taken_for = number.filter(|_| nothing_known);
        for byte in 0..self.nodes.bits(node) / 8 {
            let at = CellRef {
                class: place.class,
                offset_bytes: place.offset_bytes + i64::from(byte),
            };
            let kind = match self.overlaps_floats(memory, at, 1) {
                true => self.type_at(memory, at).float_kind(),
                false => taken_for,
            };
            if let Some(kind) = kind.filter(|k| byte % (k.bits() / 8) == 0) {
                self.nodes
                    .seed_constant(node, byte * 8, LaneKind::Float(kind));
            }
        }
    }

    /// Iterates equations and copies to a fixpoint (step 2).
    pub(super) fn solve_fixpoint(&mut self, memory: &AliasSets, equations: &[Equation]) {
        if memory.copies_are_directed {
            self.iterate(memory, equations, CopyFlow::Forward);
        }
        self.iterate(memory, equations, full_flow(memory));
    }
    /// Applies equations and copies until nothing changes. An equation is applied again only if what it reads has changed
    /// since.
    fn iterate(&mut self, memory: &AliasSets, equations: &[Equation], flow: CopyFlow) {
        let mut applied = vec![Stamp::default(); equations.len()];
        let mut copied = Vec::new();
        let there = 0..equations.len();
        loop {
            let mut news = false;
            for number in there.clone().chain(there.clone().rev()) {
                let equation = &equations[number];
                if self.reads_changes(equation, applied[number]) {
                    applied[number] = self.nodes.now();
                    news |= self.apply(memory, equation);
                }
            }
            if !(self.follow_copies(memory, flow, &mut copied) || news) {
                return;
            }
        }
    }
    /// Returns true if an equation reads bit ranges or cells that have changed since it was applied.
    fn reads_changes(&self, equation: &Equation, applied: Stamp) -> bool {
        let is_new = |node: Node| self.nodes.changed_at(node) > applied;
        match *equation {
            Equation::Link(link) => is_new(link.from) || is_new(link.to),
            Equation::Access {
                node,
                place,
                doubted,
                ..
            } => {
                let cells = match doubted {
                    Some(_) => self.cells_changed_at,
                    None => self.set_changed_at[place.class.index()],
                };
                is_new(node) || cells > applied
            }
            Equation::Address { result, term } => is_new(result) || is_new(term),
        }
    }
    /// Applies an equation. Returns true if a bit range or a type is new.
    fn apply(&mut self, memory: &AliasSets, equation: &Equation) -> bool {
        match *equation {
            Equation::Link(link) => self.nodes.join(link),
            Equation::Access {
                node,
                place,
                tagged,
                doubted,
                stores_address,
            } => {
                let doubted = doubted
                    .filter(|_| !(stores_address && self.nodes.has_address_arithmetic(node)));
                let is_float = doubted.is_some_and(|(func, ptr)| {
                    let mut targets = memory.targets(func, ptr).iter();
                    targets.any(|place| {
                        self.is_float_under_name(memory, *place, self.nodes.bits(node))
                    })
                });
                let tagged = if is_float { CellType::NOTHING } else { tagged };
                let is_new = stores_address && self.stores_address(memory, node, place);
                self.access(memory, node, place, tagged) || is_new
            }
            Equation::Address { result, term } => self.flow_to_term(result, term),
        }
    }
    /// Propagates types along all byte copies whose ends have changed since. `copied` has the time of the last propagation
    /// per pair of ends. Returns true if a type is new.
    fn follow_copies(
        &mut self,
        memory: &AliasSets,
        flow: CopyFlow,
        copied: &mut Vec<Stamp>,
    ) -> bool {
        let mut news = false;
        let mut pair = 0;
        for copy in memory.copies() {
            for (&from, &to) in
                (copy.from.iter()).flat_map(|from| copy.to.iter().map(move |to| (from, to)))
            {
                if pair == copied.len() {
                    copied.push(Stamp::default());
                }
                pair += 1;
                let changed = |end: CellRef| self.set_changed_at[end.class.index()];
                if changed(from).max(changed(to)) <= copied[pair - 1] {
                    continue;
                }
                copied[pair - 1] = self.nodes.now();
                let size = copy.size_bytes;
                news |= self.copy(memory, (from, to), size, CellFilter::All);
                news |= match flow {
                    CopyFlow::Forward => false,
                    CopyFlow::Inferred => self.copy(memory, (to, from), size, CellFilter::Inferred),
                    CopyFlow::Symmetric => self.copy(memory, (to, from), size, CellFilter::All),
                };
            }
        }
        news
    }
    /// Records that the cells of an alias set, or their evidence, have changed.
    fn set_changed(&mut self, class: AliasSetId) {
        let now = self.nodes.tick();
        self.set_changed_at[class.index()] = now;
        self.cells_changed_at = now;
    }
    /// Returns true if the program's own memory holds floats where an access names an integer: numbers that move as words
    /// under an integer's name (`std::vector<uint64_t>`), or unions of C++.
    pub(crate) fn is_float_under_name(
        &self,
        memory: &AliasSets,
        place: CellRef,
        bits: u32,
    ) -> bool {
        let is_alone = self.types[place.class.index()].len() <= 1;
        let alone = is_alone.then(|| self.type_at(memory, place));
        let exact = self.evidence[place.class.index()].get(&place.offset_bytes);
        let mut seen = exact.map(|seen| seen.effective()).into_iter().chain(alone);
        // Nodes of containers may lie over list heads, and a number of a node over a count of the head.
        let may_be_node = self.types_of_set(place.class).has_pointer();
        !self.is_visible(place.class)
            && !may_be_node
            && seen.any(|seen| seen.floats().any(|kind| kind.bits() == bits))
    }
    /// Applies a load or store of the integer at `node`. Bits also used as a float are a float, regardless
    /// of the TBAA name of the access.
    fn access(&mut self, memory: &AliasSets, node: Node, place: CellRef, tagged: CellType) -> bool {
        let is_float = |lane: &BitRange| matches!(lane.kind, LaneKind::Float(_));
        if tagged.has_integer() && !self.nodes.lanes(node).iter().any(is_float) {
            return self.access_integer(memory, node, place);
        }
        let mut news = false;
        for byte in 0..self.nodes.bits(node).div_ceil(8).min(ACCESS_MAX) {
            let at = CellRef {
                class: place.class,
                offset_bytes: place.offset_bytes + i64::from(byte),
            };
            let seen = match tagged.is_nothing() {
                true => self.type_for_access(memory, at, node),
                false if byte == 0 => tagged,
                false => CellType::NOTHING,
            };
            for kind in lane_kinds(seen) {
                if byte % bit_ranges::kind_bytes(kind) == 0 {
                    news |= self.nodes.add(node, byte * 8, kind);
                }
            }
        }
        for lane in self.nodes.lanes(node).to_vec() {
            if lane.bit.is_multiple_of(8) {
                let at = CellRef {
                    offset_bytes: place.offset_bytes + i64::from(lane.bit / 8),
                    ..place
                };
                news |= self.note(memory, at, seen_of(lane.kind));
            }
        }
        news
    }
    /// Applies a load or store of a declared integer. The integer is no float, but may be an address.
    fn access_integer(&mut self, memory: &AliasSets, node: Node, place: CellRef) -> bool {
        let named = self.evidence[place.class.index()].get(&place.offset_bytes);
        let named = named.copied().unwrap_or_default();
        let pointer = LaneKind::Pointer;
        let whole = self.nodes.bits(node) == 8 * bit_ranges::kind_bytes(pointer);
        let mut news = whole
            && named.has_pointer()
            && !named.has_float()
            && !self.nodes.is_integral(node)
            && self.nodes.add(node, 0, pointer);
        let first = BitRange {
            bit: 0,
            kind: pointer,
        };
        if self.nodes.lanes(node).contains(&first) {
            news |= self.note(memory, place, seen_of(pointer));
        }
        news
    }
    /// Returns the type of a cell as seen by an integer access. If a fold mixes cells of a structure, the type
    /// at the unreduced offset decides.
    fn type_for_access(&self, memory: &AliasSets, at: CellRef, node: Node) -> CellType {
        let seen = self.type_at(memory, at);
        let exact = memory.get(at.class).fold_at(at.offset_bytes).is_none();
        if seen.is_nothing() || exact && seen.is_single() {
            return seen;
        }
        let named = self.evidence[at.class.index()].get(&at.offset_bytes);
        let named = named.map_or(CellType::NOTHING, |s| s.effective());
        match (named.has_float(), self.nodes.is_integral(node)) {
            (true, _) => named,
            (false, true) => CellType::NOTHING,
            (false, false) => seen,
        }
    }
    /// Propagates types from one block to an equal block, into the cells that `filter` selects.
    fn copy(
        &mut self,
        memory: &AliasSets,
        (from, to): (CellRef, CellRef),
        size: Option<u64>,
        filter: CellFilter,
    ) -> bool {
        let goal = memory.get(to.class);
        let block = self.block_cells(memory, from, size);
        let goal_period = goal.block_period(to.offset_bytes, size);
        let mut news = self.copy_evidence(memory, (from, to), size, filter);
        for (distance, seen) in block.list {
            let mut repeats = 1;
            // A copy of unknown size may fill the whole period of the destination.
            let (length, most) = match size {
                Some(size) => (Some(size), 65),
                None => (goal_period, REPEATS_MAX),
            };
            if let (Some(period), Some(length)) = (block.period, length)
                && block.period != goal_period
            {
                let whole = length.saturating_sub(distance);
                repeats = whole.div_ceil(period).clamp(1, most) as i64;
            }
            for k in 0..repeats {
                let step = distance as i64 + k * block.period.unwrap_or(0) as i64;
                if repeats > 1 && step % seen.granularity_bytes() != 0 {
                    continue;
                }
                let offset = goal.normalize_offset(to.offset_bytes.wrapping_add(step));
                let is_far = size.is_none() && offset.saturating_abs() > self.offset_max;
                if is_far || !self.is_selected(memory, (to.class, offset), &seen, filter) {
                    continue;
                }
                let cells = &mut self.types[to.class.index()];
                let count = cells.len();
                let is_new = cells.entry(offset).or_default().add(&seen);
                news |= is_new;
                if is_new || cells.len() > count {
                    self.set_changed(to.class);
                }
                if filter == CellFilter::All {
                    self.set_own(to.class, offset, seen);
                }
            }
        }
        news
    }
    /// Copies the evidence at unreduced offsets. Only copies of known size qualify: with unknown sizes,
    /// offsets could grow without bound on cycles of copies.
    fn copy_evidence(
        &mut self,
        memory: &AliasSets,
        (from, to): (CellRef, CellRef),
        size: Option<u64>,
        filter: CellFilter,
    ) -> bool {
        let Some(size) = size.and_then(|s| i64::try_from(s).ok()) else {
            // Not an error: the cells at normalised offsets are copied regardless.
            return false;
        };
        let goal = memory.get(to.class);
        let range = from.offset_bytes..from.offset_bytes.saturating_add(size);
        let found: Vec<(i64, CellType)> = (self.evidence[from.class.index()].range(range))
            .map(|(offset, seen)| (offset - from.offset_bytes + to.offset_bytes, *seen))
            .filter(|(offset, seen)| {
                let cell = (to.class, goal.normalize_offset(*offset));
                self.is_selected(memory, cell, seen, filter)
            })
            .collect();
        let evidence = &mut self.evidence[to.class.index()];
        let count = evidence.len();
        let mut news = false;
        for (offset, seen) in found {
            news |= evidence.entry(offset).or_default().add(&seen);
        }
        if news || evidence.len() > count {
            self.set_changed(to.class);
        }
        news
    }
    /// Returns true if a copy writes a type to a cell. A pointer at the other end makes integers in the cell addresses, if
    /// points-to finds addresses in the cell.
    fn is_selected(
        &self,
        memory: &AliasSets,
        (class, offset_bytes): (AliasSetId, i64),
        seen: &CellType,
        filter: CellFilter,
    ) -> bool {
        let place = CellRef {
            class,
            offset_bytes,
        };
        let holds_addresses = || {
            let is_pointer = seen.has_pointer() && !seen.has_float();
            is_pointer
                && !memory.pointee(place).is_empty()
                && !self.type_at(memory, place).has_float()
        };
        match filter {
            CellFilter::All => true,
            CellFilter::Inferred => {
                !self.own_cells[class.index()].contains(&offset_bytes) || holds_addresses()
            }
        }
    }
    /// Records that a cell, by normalised offset, has a type that does not come from the destination of a copy.
    fn set_own(&mut self, class: AliasSetId, offset: i64, seen: CellType) {
        if let Some(own) = self.own_cells.get_mut(class.index())
            && !seen.is_nothing()
            && own.insert(offset)
        {
            self.set_changed(class);
        }
    }
    /// Records a type for the cell at a location. Returns true if the type is new.
    pub(super) fn note(&mut self, memory: &AliasSets, place: CellRef, seen: CellType) -> bool {
        let offset = memory.get(place.class).normalize_offset(place.offset_bytes);
        self.set_own(place.class, offset, seen);
        let evidence = &mut self.evidence[place.class.index()];
        let cells = &mut self.types[place.class.index()];
        let count = evidence.len() + cells.len();
        let in_evidence = evidence.entry(place.offset_bytes).or_default().add(&seen);
        let in_cell = cells.entry(offset).or_default().add(&seen);
        let is_larger = evidence.len() + cells.len() > count;
        if in_evidence || in_cell || is_larger {
            self.set_changed(place.class);
        }
        in_evidence || in_cell
    }
    /// Marks cells as integers if integer accesses without bit ranges use them as numbers or are too short
    /// for floats. A similar access to a cell with floats marks the value as conflicting.
    ///
    /// A value in the program's own memory that all accesses use as an integer is a number, too: `m = n` and a call that
    /// reads `m` as a number make the caller's `n` a number. The cells that such values come from are marked in turn.
    pub(super) fn mark_integers(&mut self, memory: &AliasSets, equations: &[Equation]) {
        while self.mark_integers_once(memory, equations) {}
        self.follow_copies(memory, full_flow(memory), &mut Vec::new());
    }
    /// Returns true if a value is newly known as a number.
    fn mark_integers_once(&mut self, memory: &AliasSets, equations: &[Equation]) -> bool {
        let mut news = false;
        for equation in equations {
            let (node, place, tagged) = match *equation {
                Equation::Access {
                    node,
                    place,
                    tagged,
                    ..
                } => (node, place, tagged),
                Equation::Link(link) => {
                    news |= self.nodes.join(link);
                    continue;
                }
                Equation::Address { .. } => continue,
            };
            if !self.nodes.lanes(node).is_empty() {
                continue;
            }
            if self.is_own_integer(memory, place) {
                news |= self.nodes.set_integral(node);
            }
            let number = self.nodes.is_integral(node) || self.nodes.bits(node) < 32;
            if tagged.has_integer() || number {
                self.note(memory, place, CellType::INTEGER);
            } else if self.type_at(memory, place).has_float() {
                self.nodes.mark_conflicting(node);
            }
        }
        news
    }
    /// Returns true if accesses see an integer and nothing else in a cell of the program's own memory.
    fn is_own_integer(&self, memory: &AliasSets, place: CellRef) -> bool {
        !self.is_visible(place.class) && self.type_at(memory, place) == CellType::INTEGER
    }
}
