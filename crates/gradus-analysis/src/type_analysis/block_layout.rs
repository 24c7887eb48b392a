//! Block layout: derives the contents of copied memory from the types of its cells.
//!
//! [`block`] reads a list of cells at normalised offsets. If an indexed array and the structure around it share
//! a fold, the fold mixes the structure's cells. [`resolve`] then returns to the unreduced offsets of the
//! accesses:
//!
//! 1. A period is guessed from the strides.
//! 2. Cells stay at their accessed or declared offsets.
//! 3. Arrays extend in both directions from the indexed element until a cell of a different type begins.
//! 4. The guess is accepted only if every cell has exactly one type.
//!
//! Arrays extend only if a declaration names the cells around them; otherwise an untouched cell would join
//! the array. A structure with a flexible array member has a head, and its period begins after the head.

use crate::points_to::alias_sets::{AliasSets, CellRef};
use crate::type_analysis::bit_ranges;
use crate::type_analysis::type_map::{CopiedWord, CopyKind, LaneKind, Period};
use crate::types::lattice::CellType;
use gradus_ir::Entity;
use std::collections::BTreeMap;

/// Maximal number of periods tried.
const PERIODS_MAX: usize = 4;

/// Maximal number of cells of an alias set, and minimal stride of the folds around a block, for a layout.
const WORDS_MAX: usize = 4096;
const STRIDE_MIN: u64 = 4;

/// Maximal size of a block in bytes for a layout by cells.
const BLOCK_MAX: u64 = 1 << 16;

/// The cells of one period, by their distance from the start.
type PeriodLayout = BTreeMap<u64, CellType>;

/// Returns the common contents of the equal blocks at `ends`, from the accesses in `evidence`. Returns
/// `None` if the accesses do not imply a unique layout.
pub(crate) fn resolve(
    memory: &AliasSets,
    evidence: &[BTreeMap<i64, CellType>],
    ends: &[CellRef],
    size: Option<u64>,
) -> Option<CopyKind> {
    let plain = |end: &CellRef| {
        let mut folds = memory.get(end.class).folds_at(end.offset_bytes);
        folds.all(|fold| fold.stride >= STRIDE_MIN)
            && evidence[end.class.index()].len() <= WORDS_MAX
    };
    if !ends.iter().all(plain) {
        return None;
    }
    let strides = ends.iter().flat_map(|end| &memory.get(end.class).strides);
    let mut periods: Vec<u64> = strides.map(|(_, stride)| *stride).collect();
    periods.sort_unstable_by(|a, b| b.cmp(a));
    periods.dedup();
    periods.retain(|period| *period != 0);
    periods.truncate(PERIODS_MAX);
    let blocks = BlockLayout {
        memory,
        evidence,
        ends,
        size,
        has_head: false,
    };
    let alike = periods
        .iter()
        .find_map(|period| blocks.contents_with_period(*period));
    let whole = || size.and_then(|_| blocks.contents_with_period(0));
    let behind_head = || {
        let head = blocks.head_bytes()?;
        (periods.iter()).find_map(|period| blocks.contents_with_head(head, *period))
    };
    alike.or_else(whole).or_else(behind_head)
}

/// Blocks with equal contents.
#[derive(Clone, Copy)]
struct BlockLayout<'a> {
    memory: &'a AliasSets,
    /// Per alias set: types of the cells at unreduced offsets.
    evidence: &'a [BTreeMap<i64, CellType>],
    ends: &'a [CellRef],
    size: Option<u64>,
    /// True if memory before `ends` belongs to another part of the object.
    has_head: bool,
}

impl BlockLayout<'_> {
    /// Returns the contents under the assumption of a period of `period` bytes; 0 means no repetition.
    fn contents_with_period(&self, period: u64) -> Option<CopyKind> {
        let extent = match (period, self.size) {
            (0, size) => size?,
            (period, _) => period,
        };
        if extent > BLOCK_MAX {
            return None;
        }
        let (mut map, mut inside, mut declared) = (PeriodLayout::new(), PeriodLayout::new(), false);
        for end in self.ends {
            for (&offset, seen) in &self.evidence[end.class.index()] {
                let Some(at) = self.distance(end, offset, period, extent) else {
                    continue;
                };
                declared |= seen.is_declared();
                // An access of one cell does not contradict the declaration of another cell.
                let seen = seen.effective();
                map.entry(at).or_default().add(&seen);
                if offset >= end.offset_bytes {
                    inside.entry(at).or_default().add(&seen);
                }
            }
        }
        // Cells before the start may belong to a head outside the period. They must agree with the period.
        let is_told = |(at, seen): (&u64, &CellType)| {
            let within = inside.get(at).copied().map(only_kind);
            self.size.is_some_and(|size| *at >= size) || within == Some(only_kind(*seen))
        };
        if !map.iter().all(is_told) || map.values().any(|seen| only_kind(*seen).is_err()) {
            return None;
        }
        for end in self.ends {
            for &(offset, stride) in &self.memory.get(end.class).strides {
                if period != 0 && stride.is_multiple_of(period) {
                    continue;
                }
                let next = offset.wrapping_add_unsigned(stride);
                let [first, next] = [offset, next].map(|at| self.distance(end, at, period, extent));
                if are_distinct(&map, first, next, stride) {
                    return None;
                }
                for at in [first, next].into_iter().flatten().filter(|_| declared) {
                    extend_array(&mut map, at, stride, extent);
                }
            }
        }
        let list: Vec<(u64, CellType)> = map.into_iter().collect();
        match block(&list, period, self.size, true) {
            CopyKind::Unknown => None,
            kind => Some(kind),
        }
    }

    /// Returns the distance of an offset from the start of its period, if the offset lies in a period.
    fn distance(&self, end: &CellRef, offset: i64, period: u64, extent: u64) -> Option<u64> {
        let plain = offset.wrapping_sub(end.offset_bytes);
        let distance = match period {
            0 => u64::try_from(plain).ok()?,
            _ if self.has_head && plain < 0 => return None,
            period => plain.rem_euclid(period as i64) as u64,
        };
        (distance < extent).then_some(distance)
    }

    /// Returns the start of the only indexed array, if the array does not begin at the start. Cells before
    /// the array do not repeat. A second array among them would have an unknown end.
    fn head_bytes(&self) -> Option<u64> {
        let distances = self.ends.iter().flat_map(|end| {
            let steps = self.memory.get(end.class).strides.iter();
            steps.map(|(offset, _)| offset.wrapping_sub(end.offset_bytes))
        });
        u64::try_from(distances.min()?)
            .ok()
            .filter(|head| *head > 0)
    }

    /// Returns the contents under the assumption of a non-repeating head of `head` bytes before the period.
    fn contents_with_head(&self, head: u64, period: u64) -> Option<CopyKind> {
        let behind = |end: &CellRef| CellRef {
            offset_bytes: end.offset_bytes.wrapping_add_unsigned(head),
            ..*end
        };
        let ends: Vec<CellRef> = self.ends.iter().map(behind).collect();
        let tail = BlockLayout {
            ends: &ends,
            size: self.size.map(|size| size.saturating_sub(head)),
            has_head: true,
            ..*self
        };
        let tail = tail.contents_with_period(period)?;
        let size = Some(head);
        let mut words = cells_of(BlockLayout { size, ..*self }.contents_with_period(0)?, head)?;
        words.extend(cells_of(tail, period)?.into_iter().map(|word| CopiedWord {
            offset_bytes: word.offset_bytes + head,
            ..word
        }));
        if words.is_empty() {
            return Some(CopyKind::Nothing);
        }
        let period = Some(Period {
            from_bytes: head,
            bytes: period,
        });
        Some(CopyKind::Cells { words, period })
    }
}

/// Returns the cells of a block or of one period of it.
fn cells_of(kind: CopyKind, bytes: u64) -> Option<Vec<CopiedWord>> {
    let kind = match kind {
        CopyKind::Cells { words, .. } => return Some(words),
        CopyKind::Floats(kind) => LaneKind::Float(kind),
        CopyKind::Pointers => LaneKind::Pointer,
        CopyKind::Nothing => return Some(Vec::new()),
        CopyKind::Words | CopyKind::Unknown => return None,
    };
    let starts = (0..bytes).step_by(bit_ranges::kind_bytes(kind) as usize);
    let word = |offset_bytes| CopiedWord { offset_bytes, kind };
    Some(starts.map(word).collect())
}

/// Returns true if an indexed array would have a single element, because a different cell begins at the
/// next element.
fn are_distinct(map: &PeriodLayout, first: Option<u64>, next: Option<u64>, stride: u64) -> bool {
    let (Some(first), Some(next)) = (first, next) else {
        return false;
    };
    let Some(&seen) = map.get(&first).filter(|seen| !seen.is_nothing()) else {
        return false;
    };
    !has_room_for(map, next, seen, word_bytes(first, seen).min(stride))
}

/// Returns true if the `bytes` bytes from `start` overlap no cell, except a cell of the type `seen` at
/// `start`.
fn has_room_for(map: &PeriodLayout, start: u64, seen: CellType, bytes: u64) -> bool {
    let mut range = map.range(start.saturating_sub(15)..start + bytes);
    !range.any(|(&other, &there)| {
        let meets = other + word_bytes(other, there) > start;
        meets && !there.is_nothing() && (other != start || only_kind(there) != only_kind(seen))
    })
}

/// Extends an array, indexed from `at` with `stride`, in both directions up to the next different cell.
fn extend_array(map: &mut PeriodLayout, at: u64, stride: u64, extent: u64) {
    let Some(&seen) = map.get(&at) else {
        // Not an error: the first cell of the array has no known type.
        return;
    };
    let bytes = word_bytes(at, seen).min(stride);
    let mut next = at + stride;
    while next + bytes <= extent && has_room_for(map, next, seen, bytes) {
        map.insert(next, seen);
        next += stride;
    }
    let mut before = at;
    while before >= stride && has_room_for(map, before - stride, seen, bytes) {
        before -= stride;
        map.insert(before, seen);
    }
}

/// Returns the size in bytes of a cell with type `seen`. An integer extends to the next multiple of four.
fn word_bytes(at: u64, seen: CellType) -> u64 {
    match only_kind(seen) {
        Ok(Some(kind)) => u64::from(bit_ranges::kind_bytes(kind)),
        _ => 4 - at % 4,
    }
}

/// Returns the bit-range types that a cell with type `seen` may carry.
pub(crate) fn lane_kinds(seen: CellType) -> impl Iterator<Item = LaneKind> {
    let pointer = seen.has_pointer().then_some(LaneKind::Pointer);
    seen.floats().map(LaneKind::Float).chain(pointer)
}

/// Returns the cell type for a bit-range type.
pub(crate) fn seen_of(kind: LaneKind) -> CellType {
    match kind {
        LaneKind::Float(kind) => CellType::float(kind),
        LaneKind::Pointer => CellType::POINTER,
    }
}

/// Returns the only type of a cell: `Ok(None)` for neither float nor pointer, `Err` for conflicting types.
fn only_kind(seen: CellType) -> Result<Option<LaneKind>, ()> {
    let mut kinds = lane_kinds(seen);
    match (kinds.next(), kinds.next()) {
        (None, _) => Ok(None),
        (Some(kind), None) if !seen.has_integer() || kind == LaneKind::Pointer => Ok(Some(kind)),
        _ => Err(()),
    }
}

/// Returns the contents of a block from the types of its cells, by distance from the start. The cells
/// repeat after `period` bytes unless `period` is 0. `shown` states that cells without evidence may be
/// observed externally.
pub(crate) fn block(
    list: &[(u64, CellType)],
    period: u64,
    size: Option<u64>,
    shown: bool,
) -> CopyKind {
    let mut words = Vec::new();
    for &(offset_bytes, seen) in list {
        match only_kind(seen) {
            Ok(None) => {}
            Ok(Some(kind)) => words.push(CopiedWord { offset_bytes, kind }),
            Err(()) => return CopyKind::Unknown,
        }
    }
    if words.windows(2).any(|w| {
        w[0].offset_bytes + u64::from(bit_ranges::kind_bytes(w[0].kind)) > w[1].offset_bytes
    }) {
        return CopyKind::Unknown;
    }
    let known_end = list.iter().map(|(at, _)| at + 4).max().unwrap_or(0);
    let extent = match period {
        0 => size.unwrap_or(known_end),
        m => size.map_or(m, |s| s.min(m)),
    };
    let nothing = list.iter().all(|(_, seen)| seen.is_nothing());
    if shown && (has_gap(list, extent) || nothing && size != Some(0)) {
        return CopyKind::Unknown;
    }
    let Some(first) = words.first() else {
        return CopyKind::Nothing;
    };
    let bytes = u64::from(bit_ranges::kind_bytes(first.kind));
    let side_by_side = words
        .iter()
        .enumerate()
        .all(|(i, w)| w.kind == first.kind && w.offset_bytes == i as u64 * bytes)
        && (words.len() as u64 * bytes >= extent)
        && (period == 0 || bytes.is_multiple_of(period) || period.is_multiple_of(bytes));
    match first.kind {
        LaneKind::Float(kind) if side_by_side => CopyKind::Floats(kind),
        LaneKind::Pointer if side_by_side => CopyKind::Pointers,
        _ if period != 0 && period < bytes => CopyKind::Unknown,
        _ if period == 0 && size.is_none() => CopyKind::Unknown,
        _ => CopyKind::Cells {
            words,
            period: (period != 0).then_some(Period {
                from_bytes: 0,
                bytes: period,
            }),
        },
    }
}

/// Returns true if four aligned bytes of the block might be a float without evidence. The bytes between an
/// integer and the next multiple of eight count as padding.
fn has_gap(list: &[(u64, CellType)], extent: u64) -> bool {
    let mut end = 0;
    for &(at, seen) in list.iter().filter(|(_, seen)| !seen.is_nothing()) {
        if at >= end + 4 {
            return true;
        }
        let bytes = match only_kind(seen) {
            Ok(Some(kind)) => u64::from(bit_ranges::kind_bytes(kind)),
            _ => 8 - at % 8,
        };
        end = end.max(at + bytes);
    }
    extent >= end + 4
}
