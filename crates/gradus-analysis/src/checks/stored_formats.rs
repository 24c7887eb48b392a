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

use crate::activity::memory::MemoryActivity;
use crate::call_graph::Callee;
use crate::checks::fraction;
use crate::memory::value_accesses::{ValueAccess, value_accesses};
use crate::points_to::alias_sets::{AliasSetId, CellRef, MemoryOrigin};
use crate::type_analysis::bit_ranges::kind_bytes;
use crate::type_analysis::type_map::{BitRange, LaneKind};
use crate::view::View;
use gradus_ir::externals::{Effects, ExternalFn};
use gradus_ir::{Body, Diagnostic, FloatKind, FuncId, Op};
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
pub(crate) fn findings(facts: View<'_>, classes: &MemoryActivity) -> Vec<Diagnostic> {
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
                let Some(place) = facts.memory.place(func, ptr) else {
                    // Not an error: the address is null or undefined.
                    return;
                };
                let matters =
                    classes.value_varied(func, value) && classes.value_useful(func, value);
                let mut cells = floats(facts.words.lanes(func, value), place);
                told |=
                    matters && cells.any(|cell| stored.has_other_format(facts, place.class, cell));
            });
            if told {
                found.push(fraction::float_bits_diagnostic(facts.unit, func, body, op));
            }
        }
    }
    found
}

/// Returns the floats among the bit ranges of a value at a location.
fn floats(lanes: &[BitRange], place: CellRef) -> impl Iterator<Item = Cell> {
    lanes.iter().filter_map(move |lane| match lane.kind {
        LaneKind::Float(kind) => Some((
            place.offset_bytes.saturating_add(i64::from(lane.bit / 8)),
            kind,
        )),
        LaneKind::Pointer => None,
    })
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
                        for place in facts.memory.places(func, ptr).iter().flatten() {
                            let cells = stored.cells.entry(place.class).or_default();
                            cells.extend(floats(lanes, *place));
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
                let places = facts.memory.places(func, arg).iter().flatten();
                self.externally_writable
                    .extend(places.map(|place| place.class));
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
            for copy in facts.memory.copies() {
                let (from, to) = (copy.from.class, copy.to.class);
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
    /// Returns true if the floats at a cell all have formats different from the cell's.
    fn has_other_format(&self, facts: View<'_>, class: AliasSetId, (offset, kind): Cell) -> bool {
        if self.externally_writable.contains(&class) {
            return false;
        }
        let modulus = facts.memory.get(class).modulus_bytes as i64;
        let behind = |from: i64, to: i64| match modulus {
            0 => to - from,
            m => (to - from).rem_euclid(m),
        };
        let bytes = |kind| i64::from(kind_bytes(LaneKind::Float(kind)));
        let meets = |cell: &&Cell| {
            let (at, other) = **cell;
            (0..bytes(kind)).contains(&behind(offset, at))
                || (0..bytes(other)).contains(&behind(at, offset))
        };
        let cells = self.cells.get(&class).into_iter().flatten().filter(meets);
        let copied = self.copied.get(&class).into_iter().flatten();
        let kinds: HashSet<FloatKind> = cells.map(|cell| cell.1).chain(copied.copied()).collect();
        !kinds.is_empty() && !kinds.contains(&kind)
    }
}
