//! From words to blocks: what a stretch of memory holds, for copies of bytes.
//!
//! [`block`] reads a list of words whose offsets are reduced by a class's modulus. Where a structure
//! holds an array that is indexed, that modulus is the array's stride and mixes the structure's words;
//! [`resolve`] then goes back to the offsets as the accesses named them: a period is guessed from the
//! strides, words stay where they were seen or declared, arrays run on from where they were indexed until
//! another word begins, and the guess stands only if every word comes out as one kind. Arrays run on only
//! where some declaration names the words around them: else a word that nobody touches would be theirs.
//! A structure that ends in an array of any length has a head, and its period begins behind that.

use crate::lanes;
use crate::memory::{Memory, MemoryPlace};
use crate::seen::Seen;
use crate::words::{CopiedWord, CopyKind, LaneKind, Period};
use gradus_ir::Entity;
use std::collections::BTreeMap;

/// The most periods that are tried.
const PERIODS_MAX: usize = 4;

/// The most words of a class that are laid out, and the least modulus of a class that has a layout.
const WORDS_MAX: usize = 4096;
const MODULUS_MIN: u64 = 4;

/// The longest block that is laid out word by word.
const BLOCK_MAX: u64 = 1 << 16;

/// The words of one period, by their distance from the start.
type Map = BTreeMap<u64, Seen>;

/// What blocks at `ends` that are alike hold, by the accesses in `evidence`; `None` where they do not
/// show one layout.
pub(crate) fn resolve(
    memory: &Memory,
    evidence: &[BTreeMap<i64, Seen>],
    ends: &[MemoryPlace],
    size: Option<u64>,
) -> Option<CopyKind> {
    let plain = |end: &MemoryPlace| {
        let modulus = memory.get(end.class).modulus_bytes;
        (modulus == 0 || modulus >= MODULUS_MIN) && evidence[end.class.index()].len() <= WORDS_MAX
    };
    if !ends.iter().all(plain) {
        return None;
    }
    let strides = ends.iter().flat_map(|end| &memory.get(end.class).steps);
    let mut periods: Vec<u64> = strides.map(|(_, stride)| *stride).collect();
    periods.sort_unstable_by(|a, b| b.cmp(a));
    periods.dedup();
    periods.retain(|period| *period != 0);
    periods.truncate(PERIODS_MAX);
    let blocks = Blocks {
        memory,
        evidence,
        ends,
        size,
        has_head: false,
    };
    let alike = periods.iter().find_map(|period| blocks.repeated(*period));
    let whole = || size.and_then(|_| blocks.repeated(0));
    let behind_head = || {
        let head = blocks.head()?;
        (periods.iter()).find_map(|period| blocks.with_head(head, *period))
    };
    alike.or_else(whole).or_else(behind_head)
}

/// Blocks that are alike.
#[derive(Clone, Copy)]
struct Blocks<'a> {
    memory: &'a Memory,
    /// What accesses took the words of each class for.
    evidence: &'a [BTreeMap<i64, Seen>],
    ends: &'a [MemoryPlace],
    size: Option<u64>,
    /// Whether what lies before `ends` belongs to something else.
    has_head: bool,
}

impl Blocks<'_> {
    /// What they hold if their words repeat after `period` bytes; after none where that is 0.
    fn repeated(&self, period: u64) -> Option<CopyKind> {
        let extent = match (period, self.size) {
            (0, size) => size?,
            (period, _) => period,
        };
        if extent > BLOCK_MAX {
            return None;
        }
        let (mut map, mut inside, mut declared) = (Map::new(), Map::new(), false);
        for end in self.ends {
            for (&offset, seen) in &self.evidence[end.class.index()] {
                let Some(at) = self.distance(end, offset, period, extent) else {
                    continue;
                };
                declared |= seen.is_declared();
                // What one word was taken for does not speak against what another one is declared to be.
                let seen = seen.settled();
                map.entry(at).or_default().add(&seen);
                if offset >= end.offset_bytes {
                    inside.entry(at).or_default().add(&seen);
                }
            }
        }
        // What lies before may be a head, which is no part of the period: it must say nothing else.
        let is_told = |(at, seen): (&u64, &Seen)| {
            let within = inside.get(at).copied().map(only_kind);
            self.size.is_some_and(|size| *at >= size) || within == Some(only_kind(*seen))
        };
        if !map.iter().all(is_told) || map.values().any(|seen| only_kind(*seen).is_err()) {
            return None;
        }
        for end in self.ends {
            for &(offset, stride) in &self.memory.get(end.class).steps {
                if period != 0 && stride.is_multiple_of(period) {
                    continue;
                }
                let next = offset.wrapping_add_unsigned(stride);
                let [first, next] = [offset, next].map(|at| self.distance(end, at, period, extent));
                if are_told_apart(&map, first, next, stride) {
                    return None;
                }
                for at in [first, next].into_iter().flatten().filter(|_| declared) {
                    run_on(&mut map, at, stride, extent);
                }
            }
        }
        let list: Vec<(u64, Seen)> = map.into_iter().collect();
        match block(&list, period, self.size, true) {
            CopyKind::Unknown => None,
            kind => Some(kind),
        }
    }

    /// How far an offset lies from the start of a period, where it is in one.
    fn distance(&self, end: &MemoryPlace, offset: i64, period: u64, extent: u64) -> Option<u64> {
        let plain = offset.wrapping_sub(end.offset_bytes);
        let distance = match period {
            0 => u64::try_from(plain).ok()?,
            _ if self.has_head && plain < 0 => return None,
            period => plain.rem_euclid(period as i64) as u64,
        };
        (distance < extent).then_some(distance)
    }

    /// Where the only array begins that is indexed, other than at the start. Words before it stand once; were
    /// there an array among them, it could not be told how far that goes.
    fn head(&self) -> Option<u64> {
        let distances = self.ends.iter().flat_map(|end| {
            let steps = self.memory.get(end.class).steps.iter();
            steps.map(|(offset, _)| offset.wrapping_sub(end.offset_bytes))
        });
        u64::try_from(distances.min()?)
            .ok()
            .filter(|head| *head > 0)
    }

    /// What they hold if their first `head` bytes stand once, before what repeats.
    fn with_head(&self, head: u64, period: u64) -> Option<CopyKind> {
        let behind = |end: &MemoryPlace| MemoryPlace {
            offset_bytes: end.offset_bytes.wrapping_add_unsigned(head),
            ..*end
        };
        let ends: Vec<MemoryPlace> = self.ends.iter().map(behind).collect();
        let tail = Blocks {
            ends: &ends,
            size: self.size.map(|size| size.saturating_sub(head)),
            has_head: true,
            ..*self
        };
        let tail = tail.repeated(period)?;
        let size = Some(head);
        let mut words = words_of(Blocks { size, ..*self }.repeated(0)?, head)?;
        words.extend(words_of(tail, period)?.into_iter().map(|word| CopiedWord {
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
        Some(CopyKind::Words { words, period })
    }
}

/// The words of a block, or of one period of it.
fn words_of(kind: CopyKind, bytes: u64) -> Option<Vec<CopiedWord>> {
    let kind = match kind {
        CopyKind::Words { words, .. } => return Some(words),
        CopyKind::Floats(kind) => LaneKind::Float(kind),
        CopyKind::Pointers => LaneKind::Pointer,
        CopyKind::Nothing => return Some(Vec::new()),
        CopyKind::Unknown => return None,
    };
    let starts = (0..bytes).step_by(lanes::kind_bytes(kind) as usize);
    let word = |offset_bytes| CopiedWord { offset_bytes, kind };
    Some(starts.map(word).collect())
}

/// Whether what is indexed would be an array of one word: where the next one lies, another begins.
fn are_told_apart(map: &Map, first: Option<u64>, next: Option<u64>, stride: u64) -> bool {
    let (Some(first), Some(next)) = (first, next) else {
        return false;
    };
    let Some(&seen) = map.get(&first).filter(|seen| !seen.is_nothing()) else {
        return false;
    };
    !is_free_for(map, next, seen, word_bytes(first, seen).min(stride))
}

/// Whether no other word than one that is known to be `seen` begins or goes on in the bytes from `start`.
fn is_free_for(map: &Map, start: u64, seen: Seen, bytes: u64) -> bool {
    let mut range = map.range(start.saturating_sub(15)..start + bytes);
    !range.any(|(&other, &there)| {
        let meets = other + word_bytes(other, there) > start;
        meets && !there.is_nothing() && (other != start || only_kind(there) != only_kind(seen))
    })
}

/// An array is indexed from `at` in steps of `stride`: its words are alike as far as no other begins.
fn run_on(map: &mut Map, at: u64, stride: u64, extent: u64) {
    let Some(&seen) = map.get(&at) else {
        // Not an error: nothing is known of the word with which the array begins.
        return;
    };
    let bytes = word_bytes(at, seen).min(stride);
    let mut next = at + stride;
    while next + bytes <= extent && is_free_for(map, next, seen, bytes) {
        map.insert(next, seen);
        next += stride;
    }
    let mut before = at;
    while before >= stride && is_free_for(map, before - stride, seen, bytes) {
        before -= stride;
        map.insert(before, seen);
    }
}

/// The size of a word that is known to be `seen`; that of an integer is at least four.
fn word_bytes(at: u64, seen: Seen) -> u64 {
    match only_kind(seen) {
        Ok(Some(kind)) => u64::from(lanes::kind_bytes(kind)),
        _ => 4 - at % 4,
    }
}

/// What a word that is known to be `seen` may carry.
pub(crate) fn lane_kinds(seen: Seen) -> impl Iterator<Item = LaneKind> {
    let pointer = seen.has_pointer().then_some(LaneKind::Pointer);
    seen.floats().map(LaneKind::Float).chain(pointer)
}

/// What a word is that carries a lane.
pub(crate) fn seen_of(kind: LaneKind) -> Seen {
    match kind {
        LaneKind::Float(kind) => Seen::float(kind),
        LaneKind::Pointer => Seen::POINTER,
    }
}

/// The only kind that a word is known to be: `Ok(None)` where it carries nothing, `Err` where it is
/// taken for several.
fn only_kind(seen: Seen) -> Result<Option<LaneKind>, ()> {
    let mut kinds = lane_kinds(seen);
    match (kinds.next(), kinds.next()) {
        (None, _) => Ok(None),
        (Some(kind), None) if !seen.has_integer() || kind == LaneKind::Pointer => Ok(Some(kind)),
        _ => Err(()),
    }
}

/// The kind of a block whose words `list` are known, by their distance from its start; they repeat
/// after `modulus` bytes where that is not 0. `shown`: whether words that nothing is known of may
/// still matter to someone outside.
pub(crate) fn block(
    list: &[(u64, Seen)],
    modulus: u64,
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
    if words
        .windows(2)
        .any(|w| w[0].offset_bytes + u64::from(lanes::kind_bytes(w[0].kind)) > w[1].offset_bytes)
    {
        return CopyKind::Unknown;
    }
    let known_end = list.iter().map(|(at, _)| at + 4).max().unwrap_or(0);
    let extent = match modulus {
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
    let bytes = u64::from(lanes::kind_bytes(first.kind));
    let side_by_side = words
        .iter()
        .enumerate()
        .all(|(i, w)| w.kind == first.kind && w.offset_bytes == i as u64 * bytes)
        && (words.len() as u64 * bytes >= extent)
        && (modulus == 0 || bytes.is_multiple_of(modulus) || modulus.is_multiple_of(bytes));
    match first.kind {
        LaneKind::Float(kind) if side_by_side => CopyKind::Floats(kind),
        LaneKind::Pointer if side_by_side => CopyKind::Pointers,
        _ if modulus != 0 && modulus < bytes => CopyKind::Unknown,
        _ if modulus == 0 && size.is_none() => CopyKind::Unknown,
        _ => CopyKind::Words {
            words,
            period: (modulus != 0).then_some(Period {
                from_bytes: 0,
                bytes: modulus,
            }),
        },
    }
}

/// Whether four aligned bytes of the block might be a float of which nothing is known; four bytes after
/// an integer, up to the next multiple of eight, pass as padding.
fn has_gap(list: &[(u64, Seen)], extent: u64) -> bool {
    let mut end = 0;
    for &(at, seen) in list.iter().filter(|(_, seen)| !seen.is_nothing()) {
        if at >= end + 4 {
            return true;
        }
        let bytes = match only_kind(seen) {
            Ok(Some(kind)) => u64::from(lanes::kind_bytes(kind)),
            _ => 8 - at % 8,
        };
        end = end.max(at + bytes);
    }
    extent >= end + 4
}
