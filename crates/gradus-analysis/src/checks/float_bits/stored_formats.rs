//! Float formats in local memory: finds reads of stored doubles as single-precision floats, and the
//! reverse.
//!
//! The bits of a float, read in another format, are a different number without a derivative rule. The
//! analysis covers local variables and blocks written by the call graph alone. A read is refused if the
//! call graph stores floats at the location, but none of the format read. Memory that holds both formats at
//! different times, such as a union or a reused block, is not refused.
//!
//! Step 1 records the cells written by stores. Step 2 follows byte copies, whose cells may lie at any
//! offset of the target. Step 3 checks each read of an active float.

use crate::call_graph::Callee;
use crate::checks::finding::Finding;
use crate::checks::float_bits::diagnostic;
use crate::checks::float_bits::reasons::Reason;
use crate::checks::request::RequestFacts;
use crate::memory::value_accesses::{ValueAccess, value_accesses};
use crate::points_to::alias_sets::{AliasSetId, CellRef, MemoryOrigin};
use crate::type_analysis::bit_ranges::kind_bytes;
use crate::type_analysis::type_map::{BitRange, LaneKind};
use crate::view::View;
use gradus_ir::externals::{Effects, ExternalFn};
use gradus_ir::{Body, FloatKind, FuncId, Op};
use std::collections::{HashMap, HashSet};

/// A float in an alias set: offset in bytes, and format.
type Cell = (i64, FloatKind);

/// The floats stored by a call graph.
#[derive(Default)]
struct StoredFloats {
    cells: HashMap<AliasSetId, HashSet<Cell>>,
    /// Formats that byte copies bring, at any offset.
    copied: HashMap<AliasSetId, HashSet<FloatKind>>,
    /// Alias sets that code outside the call graph may write.
    externally_writable: HashSet<AliasSetId>,
}

/// Refuses reads of active floats in a format that is never stored at the location.
pub(crate) fn check(request: &RequestFacts<'_>) -> Vec<Finding> {
    let (facts, classes) = (request.facts, request.classes);
    let stored = StoredFloats::of(facts);
    let mut found = Vec::new();
    for (func, body) in facts.closure.bodies(facts.unit) {
        for op in body.walk(body.root()) {
            let mut told = false;
            value_accesses(facts.unit, body, op, |access| {
                let ValueAccess::Load { ptr, value } = access else {
                    // Not an error: a store reads no memory.
                    return;
                };
                let matters =
                    classes.value_varied(func, value) && classes.value_useful(func, value);
                let targets = facts.memory.targets(func, ptr);
                let mut lanes = facts.words.lanes(func, value).iter();
                told |= matters && lanes.any(|lane| stored.has_other_format(facts, targets, *lane));
            });
            if told {
                let error = diagnostic(facts.unit, (func, body, op), Reason::OtherFormat);
                found.push(Finding::without_position(error));
            }
        }
    }
    found
}

/// Returns the float in a bit range of a value at a location.
fn float(lane: BitRange, place: CellRef) -> Option<Cell> {
    match lane.kind {
        LaneKind::Float(kind) => {
            let distance = i64::from(lane.bit / 8);
            Some((place.offset_bytes.saturating_add(distance), kind))
        }
        LaneKind::Pointer => None,
    }
}

impl StoredFloats {
    fn of(facts: View<'_>) -> StoredFloats {
        let mut stored = StoredFloats::default();
        for (id, class) in facts.memory.alias_sets() {
            let own = |origin: &MemoryOrigin| {
                matches!(origin, MemoryOrigin::Alloca(..) | MemoryOrigin::Heap(..))
            };
            if class.escaped || !class.origins.iter().all(own) {
                stored.externally_writable.insert(id);
            }
        }
        for (func, body) in facts.closure.bodies(facts.unit) {
            for op in body.walk(body.root()) {
                value_accesses(facts.unit, body, op, |access| {
                    if let ValueAccess::Store { ptr, value } = access {
                        let lanes = facts.words.lanes(func, value);
                        for place in facts.memory.targets(func, ptr) {
                            let cells = stored.cells.entry(place.class).or_default();
                            cells.extend(lanes.iter().filter_map(|lane| float(*lane, *place)));
                        }
                    }
                });
                stored.call(facts, func, body, op);
            }
        }
        stored.follow_copies(facts);
        stored
    }
    /// Marks memory as open if a function without a body may write it. Memory functions are modelled as
    /// copies and fills, and markers write no memory.
    fn call(&mut self, facts: View<'_>, func: FuncId, body: &Body, op: Op) {
        let unit = facts.unit;
        let effects = match facts.closure.callee(unit, body, op) {
            Some(Callee::Inside(_)) | None => return,
            Some(Callee::Outside(callee))
                if matches!(
                    unit.known(callee),
                    Some(ExternalFn::Memory(_) | ExternalFn::Marker(_))
                ) =>
            {
                return;
            }
            Some(Callee::Outside(callee)) => unit.known_effects(callee),
            Some(Callee::Indirect(_) | Callee::Foreign) => None,
        };
        let writes = effects.unwrap_or(Effects::UNKNOWN).writes;
        for (index, arg) in unit.call_args(body, op).into_iter().enumerate() {
            if writes.argument(index) {
                self.externally_writable
                    .extend(facts.memory.alias_sets_of(func, arg));
            }
        }
    }
    fn follow_copies(&mut self, facts: View<'_>) {
        let size = |stored: &StoredFloats| {
            let copied: usize = stored.copied.values().map(HashSet::len).sum();
            copied + stored.externally_writable.len()
        };
        loop {
            let before = size(self);
            let copies = facts.memory.copies().iter();
            for (from, to) in copies.flat_map(|copy| copy.flows()) {
                if self.externally_writable.contains(&from) {
                    self.externally_writable.insert(to);
                }
                let own = self
                    .cells
                    .get(&from)
                    .into_iter()
                    .flatten()
                    .map(|cell| cell.1);
                let before = self.copied.get(&from).into_iter().flatten().copied();
                let kinds: Vec<FloatKind> = own.chain(before).collect();
                self.copied.entry(to).or_default().extend(kinds);
            }
            if size(self) == before {
                return;
            }
        }
    }
    /// Returns true if floats are stored in a bit range of the memory at `targets`, but none has the format of
    /// the bit range. Memory that external code may write can hold any format.
    fn has_other_format(&self, facts: View<'_>, targets: &[CellRef], lane: BitRange) -> bool {
        let is_open = |target: &CellRef| self.externally_writable.contains(&target.class);
        let LaneKind::Float(kind) = lane.kind else {
            // Not an error: a pointer has no format.
            return false;
        };
        if targets.iter().any(is_open) {
            return false;
        }
        let mut kinds = HashSet::new();
        for target in targets {
            self.add_formats(facts, *target, lane, &mut kinds);
        }
        !kinds.is_empty() && !kinds.contains(&kind)
    }
    /// Adds the formats of the floats stored in a bit range at a location.
    fn add_formats(
        &self,
        facts: View<'_>,
        place: CellRef,
        lane: BitRange,
        kinds: &mut HashSet<FloatKind>,
    ) {
        let set = facts.memory.get(place.class);
        let access = |(at, kind): Cell| (at, i64::from(kind_bytes(LaneKind::Float(kind))));
        let cells = self.cells.get(&place.class).into_iter().flatten();
        if let Some(own) = float(lane, place) {
            let met = cells.filter(|cell| set.may_overlap(access(own), access(**cell)));
            kinds.extend(met.map(|cell| cell.1));
        }
        kinds.extend(self.copied.get(&place.class).into_iter().flatten());
    }
}
