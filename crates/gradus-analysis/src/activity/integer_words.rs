//! Words of run-time kind that hold an integer at some times: the program stores one, and none of its bits come from
//! an active float.

use crate::activity::memory::MemoryActivity;
use crate::points_to::alias_sets::{AliasSetId, CellRef};
use crate::view::View;
use gradus_ir::{FuncId, Op, OpKind};
use std::collections::HashSet;

/// Cells that receive integers, by normalised offset.
pub(super) type IntegerCells = HashSet<(AliasSetId, i64)>;

/// Returns the cells that receive integers.
pub(super) fn integer_cells(facts: View<'_>, classes: &MemoryActivity) -> IntegerCells {
    let mut found = IntegerCells::new();
    for (func, body) in facts.closure.bodies(facts.unit) {
        for op in body.walk(body.root()) {
            let OpKind::Store(_) = body.kind(op) else {
                continue;
            };
            let value = body.operand(op, 0);
            let is_integer = facts.unit.types.int_bits(body.ty(value)).is_some()
                && !classes.value_varied(func, value)
                && !classes.is_bitwise_tainted(func, value);
            // A zero may belong to a float.
            if is_integer && body.as_int(facts.unit, value) != Some(0) {
                let targets = facts.memory.targets(func, body.operand(op, 1));
                found.extend(targets.iter().map(|place| cell(facts, *place)));
            }
        }
    }
    found
}

fn cell(facts: View<'_>, place: CellRef) -> (AliasSetId, i64) {
    let class = facts.memory.get(place.class);
    (place.class, class.normalize_offset(place.offset_bytes))
}

impl MemoryActivity {
    /// Returns true for a load at the start of a word that holds a double at some times, and an integer at others.
    pub(crate) fn may_be_integer_word(&self, facts: View<'_>, (func, op): (FuncId, Op)) -> bool {
        let body = facts.unit.functions[func].body.as_deref();
        let Some((body, OpKind::Load(_))) = body.map(|body| (body, body.kind(op))) else {
            // Not an error: the op is no load.
            return false;
        };
        let targets = facts.memory.targets(func, body.operand(op, 0));
        let words = facts.words;
        words.integer_in_words(facts.unit, facts.memory, (func, op))
            && targets
                .iter()
                .all(|place| words.begins_word(facts.memory, *place))
            && (targets.iter()).any(|place| self.receives_integers(cell(facts, *place)))
    }
}
