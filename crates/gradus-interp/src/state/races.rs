//! Data race detection. A race: two concurrent strands access a common byte, at least one access is a write,
//! the accesses are not both atomic, and no common lock protects both.
//!
//! The run has one serial order; concurrency follows from the program's fork structure. One run therefore
//! finds all races of the executed accesses, independent of the order. Each active fork (the iterations of a
//! `par.for`, the tasks of a scope, the ranks of an `spmd` between two barriers) records the accesses per
//! strand and 8-byte word. Code of the creating strand between its tasks runs after the spawns of earlier
//! tasks and before the spawns of later tasks: the detector compares such code with the earlier tasks only.

use crate::state::machine::Machine;
use crate::trap::{Eval, TrapKind, fault};
use crate::values::value::{Address, Value};
use std::collections::HashMap;

/// The strand that spawns the tasks of a fork, as a strand number of the fork.
const SPAWNER: u64 = 0;

/// The kind of a memory access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessKind {
    Read,
    Write,
    AtomicRead,
    AtomicWrite,
}

impl AccessKind {
    pub fn load(atomic: bool) -> Self {
        if atomic {
            AccessKind::AtomicRead
        } else {
            AccessKind::Read
        }
    }
    pub fn store(atomic: bool) -> Self {
        if atomic {
            AccessKind::AtomicWrite
        } else {
            AccessKind::Write
        }
    }
    fn writes(self) -> bool {
        matches!(self, AccessKind::Write | AccessKind::AtomicWrite)
    }
    fn is_atomic(self) -> bool {
        matches!(self, AccessKind::AtomicRead | AccessKind::AtomicWrite)
    }
}

/// A recorded access to some bytes of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AccessRecord {
    strand: u64,
    touch: AccessKind,
    bytes: u8,
    /// The locks acquired inside the fork.
    locks: Vec<u64>,
}

impl AccessRecord {
    fn races_with(&self, other: &AccessRecord) -> bool {
        self.strand != other.strand
            && self.bytes & other.bytes != 0
            && (self.touch.writes() || other.touch.writes())
            && !(self.touch.is_atomic() && other.touch.is_atomic())
            && !self.locks.iter().any(|lock| other.locks.contains(lock))
    }
}

/// A set of concurrent strands.
#[derive(Debug)]
struct Fork {
    /// The call depth at the fork; 0 for a fork into ranks.
    frames: usize,
    /// The running strand.
    strand: u64,
    /// The number of tasks so far.
    tasks: u64,
    /// True if inner tasks run undeferred.
    serial: bool,
    words: HashMap<u64, Vec<AccessRecord>>,
}

#[derive(Debug)]
struct Lock {
    name: u64,
    frames: usize,
    /// The number of active forks at the acquisition.
    forks: usize,
}

/// The active forks, the held locks and the recorded accesses.
#[derive(Debug, Default)]
pub(crate) struct Races {
    forks: Vec<Fork>,
    locks: Vec<Lock>,
}

impl Races {
    /// Begins a fork into concurrent strands.
    pub fn fork(&mut self, frames: usize) {
        self.begin(frames, false);
    }
    fn begin(&mut self, frames: usize, serial: bool) {
        self.forks.push(Fork {
            frames,
            strand: SPAWNER,
            tasks: 0,
            serial,
            words: HashMap::new(),
        });
    }
    /// Ends the innermost fork: all strands have ended.
    pub fn join(&mut self) {
        self.forks.pop();
    }
    /// Switches the innermost fork to strand `strand`, counted from 0.
    pub fn switch_strand(&mut self, strand: u64) {
        if let Some(fork) = self.forks.last_mut() {
            fork.strand = strand + 1;
        }
    }
    /// Handles a barrier or sync of the innermost fork: forgets all recorded accesses.
    pub fn synchronize(&mut self) {
        if let Some(fork) = self.forks.last_mut() {
            fork.words.clear();
        }
    }

    /// Begins a task. A task `beside` the spawner is a strand of its own; inner tasks of a `serial` task run
    /// undeferred.
    pub fn task(&mut self, frames: usize, beside: bool, serial: bool) {
        let mut inside = serial;
        if let Some(fork) = self.forks.last_mut() {
            inside |= fork.serial;
            if beside && !fork.serial {
                fork.tasks += 1;
                fork.strand = fork.tasks;
            }
        }
        self.begin(frames, inside);
    }
    /// Ends the innermost task.
    pub fn task_end(&mut self) {
        self.join();
        if let Some(fork) = self.forks.last_mut() {
            fork.strand = SPAWNER;
        }
    }

    /// Acquires a lock.
    pub fn lock(&mut self, name: u64, frames: usize) {
        let forks = self.forks.len();
        self.locks.push(Lock {
            name,
            frames,
            forks,
        });
    }

    /// Releases the last acquired lock.
    pub fn unlock(&mut self) {
        self.locks.pop();
    }

    /// Unwinds forks and locks begun by the calls above the first `frames` frames, after an exception.
    pub fn unwind_to(&mut self, frames: usize) {
        while self.forks.last().is_some_and(|fork| fork.frames > frames) {
            self.forks.pop();
        }
        let rank = self.forks.iter().rposition(|fork| fork.frames == 0);
        let outside = rank.map_or(0, |at| at + 1);
        let stays = |lock: &Lock| lock.forks < outside || lock.frames <= frames;
        self.locks.retain(stays);
    }

    /// Records an access; returns the address of the first racing word, if any.
    pub fn record_access(&mut self, address: u64, size: u64, touch: AccessKind) -> Option<u64> {
        let mut at = address;
        let end = address.saturating_add(size);
        while at < end {
            let word = at / 8;
            let next = ((word + 1) * 8).min(end);
            let bytes = (((1u16 << (next - at)) - 1) << (at % 8)) as u8;
            for (depth, fork) in self.forks.iter_mut().enumerate() {
                let locks = self.locks.iter().filter(|lock| lock.forks > depth);
                let entry = AccessRecord {
                    strand: fork.strand,
                    touch,
                    bytes,
                    locks: locks.map(|lock| lock.name).collect(),
                };
                if fork.check_and_record(word, entry) {
                    return Some(word * 8);
                }
            }
            at = next;
        }
        None
    }
}

impl Fork {
    /// Returns whether an access races with a recorded access of another strand; records the access
    /// otherwise.
    fn check_and_record(&mut self, word: u64, entry: AccessRecord) -> bool {
        if entry.strand == SPAWNER {
            let known = self.words.get(&word);
            return known.is_some_and(|known| known.iter().any(|e| e.races_with(&entry)));
        }
        let known = self.words.entry(word).or_default();
        if known.iter().any(|e| e.races_with(&entry)) {
            return true;
        }
        let alike = |e: &&AccessRecord| {
            let covers = e.bytes & entry.bytes == entry.bytes;
            covers && e.touch == entry.touch && e.locks == entry.locks
        };
        // Two alike entries of different strands suffice: any later racing access races with at least one of
        // the two.
        let own = known.iter().filter(alike).any(|e| e.strand == entry.strand);
        if !own && known.iter().filter(alike).count() < 2 {
            known.push(entry);
        }
        false
    }
}

impl Machine<'_> {
    /// Checks and records an access if race detection is enabled.
    #[inline(always)]
    pub(crate) fn check_access(&mut self, address: u64, size: u64, touch: AccessKind) -> Eval<()> {
        match &mut self.races {
            None => Ok(()),
            Some(races) => match races.record_access(address, size, touch) {
                None => Ok(()),
                Some(word) => fault(
                    TrapKind::Race,
                    format!(
                        "data race between parallel strands on the {size} bytes at {:#x}",
                        word.max(address)
                    ),
                ),
            },
        }
    }

    /// Stores a result of an external function through a pointer.
    pub(crate) fn store_result(&mut self, address: u64, size: usize, value: &Value) -> Eval<()> {
        self.check_access(address, size as u64, AccessKind::Write)?;
        self.memory.write(address, size, value)
    }

    /// Records the deallocation of a block as a write to the whole block.
    pub(crate) fn record_free(&mut self, block: Address) -> Eval<()> {
        let size = self.memory.size(block).unwrap_or(0);
        self.check_access(block.0, size, AccessKind::Write)
    }
}
