//! Run-time schedule of loops (`schedule(runtime)`): from `OMP_SCHEDULE`, or from `omp_set_schedule`
//! ([`crate::omp::schedule`]), which inside a team applies to that team. The default is `static`, as in LLVM's
//! library.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Schedule kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Static,
    Dynamic,
    Guided,
}

/// A schedule. Chunk 0 means the default: a single static share per rank, or one iteration per dynamic
/// chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Schedule {
    pub(crate) kind: Kind,
    pub(crate) chunk: i64,
}

/// The `monotonic` modifier bit of `omp_sched_t`.
const MONOTONIC: u32 = 1 << 31;

impl Schedule {
    /// Decodes OpenMP's number of a kind.
    pub(crate) fn from_number(kind: u32, chunk: i32) -> Option<Schedule> {
        let kind = match kind & !MONOTONIC {
            1 | 4 => Kind::Static,
            2 => Kind::Dynamic,
            3 => Kind::Guided,
            _ => return None,
        };
        let chunk = i64::from(chunk.max(0));
        Some(Schedule { kind, chunk })
    }

    /// Parses `OMP_SCHEDULE`: `[modifier:]kind[,chunk]`.
    fn parse(text: &str) -> Option<Schedule> {
        let text = text.to_ascii_lowercase();
        let kind = text.rsplit(':').next()?;
        let (kind, chunk) = kind.split_once(',').unwrap_or((kind, "0"));
        let number = match kind.trim() {
            "static" => 1,
            "dynamic" => 2,
            "guided" => 3,
            "auto" => 4,
            _ => return None,
        };
        Schedule::from_number(number, chunk.trim().parse().ok()?)
    }

    fn from_bits(bits: u64) -> Schedule {
        let kind = [Kind::Static, Kind::Dynamic, Kind::Guided][(bits & 3) as usize % 3];
        let chunk = (bits >> 2) as i64;
        Schedule { kind, chunk }
    }

    pub(crate) fn to_bits(self) -> u64 {
        (self.chunk as u64) << 2 | self.kind as u64
    }
}

/// A schedule that is read and set atomically.
#[derive(Debug)]
pub(crate) struct AtomicSchedule(pub(crate) AtomicU64);

impl AtomicSchedule {
    /// The schedule outside teams.
    pub(crate) fn outside() -> AtomicSchedule {
        AtomicSchedule(AtomicU64::new(outside().load(Ordering::Relaxed)))
    }

    pub(crate) fn get(&self) -> Schedule {
        Schedule::from_bits(self.0.load(Ordering::Relaxed))
    }
}

/// The schedule outside teams, as bits.
pub(crate) fn outside() -> &'static AtomicU64 {
    static OUTSIDE: OnceLock<AtomicU64> = OnceLock::new();
    OUTSIDE.get_or_init(|| {
        let asked = std::env::var("OMP_SCHEDULE").ok();
        let asked = asked.and_then(|text| Schedule::parse(&text));
        AtomicU64::new(asked.map_or(0, Schedule::to_bits))
    })
}

#[cfg(test)]
mod tests {
    use super::{Kind, Schedule};

    #[test]
    fn parses_omp_schedule() {
        for (text, kind, chunk) in [
            ("static", Kind::Static, 0),
            ("Dynamic, 4", Kind::Dynamic, 4),
            ("nonmonotonic:guided,7", Kind::Guided, 7),
            ("auto", Kind::Static, 0),
        ] {
            let read = Schedule::parse(text).expect(text);
            assert_eq!(read, Schedule { kind, chunk }, "{text}");
            assert_eq!(Schedule::from_bits(read.to_bits()), read, "{text}");
        }
        for text in ["", "fast", "static,x", "dynamic;3"] {
            assert_eq!(Schedule::parse(text), None, "{text}");
        }
    }
}
