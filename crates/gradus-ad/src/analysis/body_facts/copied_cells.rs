//! Memory cells of copies and fills: the type of each copied cell, and the period of the cells.
//!
//! `shadow/typed_copy.rs` emits the copy in shadow memory and its reversal from the cells.

use super::BodyFacts;
use gradus_analysis::{CopiedWord, CopyKind, Period};
use gradus_ir::{Code, Diagnostic, Op, Unit, Value};

/// Limit on the number of memory cells that a copy expands to, in total or per period.
const CELLS_MAX: usize = 256;

/// The memory cells of a copy.
#[derive(Debug)]
pub struct TypedCopy {
    /// All cells, or the head and the first period, in order.
    pub cells: Vec<CopiedWord>,
    /// Period of the cells, up to the size of the copy.
    pub period: Option<Period>,
    /// True if the two ends may overlap.
    pub overlap: bool,
}

impl BodyFacts<'_> {
    /// Returns the kinds of memory cells that a copy or fill moves.
    pub fn copy_kind(&self, op: Op) -> CopyKind {
        self.copies.get(&op).cloned().unwrap_or(CopyKind::Unknown)
    }
    /// Returns the memory cells of a copy of mixed types. A short copy of constant size is expanded to all
    /// cells; otherwise the result holds the head before the first period, and one period. Returns `None` if
    /// the cells are too many, if the copy has no period, or if an overlapping copy has a head before the
    /// first period.
    pub fn word_copy(&self, unit: &Unit, op: Op, bytes: Value, overlap: bool) -> Option<TypedCopy> {
        let CopyKind::Cells { words, period } = self.copy_kind(op) else {
            return None;
        };
        let size = self.body.as_int(unit, bytes);
        let all = size.and_then(|size| expanded_cells(&words, period, u64::try_from(size).ok()?));
        let (words, period) = match (all, period) {
            (Some(all), _) => (all, None),
            (None, Some(period)) if words.len() <= CELLS_MAX && period.bytes > 0 => {
                (words, Some(period))
            }
            _ => return None,
        };
        if overlap && period.is_some_and(|period| period.from_bytes > 0) {
            return None;
        }
        Some(TypedCopy {
            cells: words,
            period,
            overlap,
        })
    }
    /// Returns the diagnostic for a byte copy of unknown memory types.
    pub fn unknown_copy_error(&self, unit: &Unit, op: Op) -> Diagnostic {
        Diagnostic::error(
            Code::UnknownMemoryType,
            "cannot determine whether the copied bytes are floats or pointers",
        )
        .at(unit.span(self.body.ops[op].loc), "copied here")
        .help("copy member by member, or access the memory through its own type")
    }
    /// Returns true if a fill may overwrite pointers.
    pub fn may_fill_pointers(&self, op: Op) -> bool {
        !matches!(self.copy_kind(op), CopyKind::Floats(_) | CopyKind::Nothing)
    }
}

/// Expands the cells of a copy of `size` bytes, period by period; `None` if the cells are too many.
fn expanded_cells(
    words: &[CopiedWord],
    period: Option<Period>,
    size: u64,
) -> Option<Vec<CopiedWord>> {
    let (from, period) = match period {
        Some(period) => (period.from_bytes, period.bytes.max(1)),
        None => (size, 1),
    };
    let (head, repeated) = words.split_at(words.partition_point(|word| word.offset_bytes < from));
    let there = |word: &&CopiedWord| word.offset_bytes < size;
    let mut all: Vec<CopiedWord> = head.iter().filter(there).copied().collect();
    if repeated.is_empty() {
        return Some(all);
    }
    for start in (0..size.saturating_sub(from)).step_by(period as usize) {
        for word in repeated {
            let offset_bytes = start + word.offset_bytes;
            all.extend((offset_bytes < size).then_some(CopiedWord {
                offset_bytes,
                ..*word
            }));
        }
        if all.len() > CELLS_MAX {
            return None;
        }
    }
    Some(all)
}
