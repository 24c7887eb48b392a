//! Order of host generators: numbers of the subsequences in round-robin order, as specified by cuRAND's
//! manual.

/// A sequence with a jump to the next subsequence.
pub(super) trait Sequence: Copy {
    /// Precomputed data of the jump.
    type Far;
    fn far() -> Self::Far;
    fn next_subsequence(&mut self, far: &Self::Far);
    fn next(&mut self) -> u32;
}

/// Round-robin order: number n of the output is number n / `count` of subsequence n mod `count`.
pub(super) struct RoundRobin<S: Sequence> {
    /// States of the subsequences used so far.
    states: Vec<S>,
    /// Start of the next subsequence.
    next_start: S,
    far: S::Far,
    count: usize,
    current: usize,
    /// Number of subsequences that start one number further than the others.
    ahead_by_one: usize,
}

impl<S: Sequence> RoundRobin<S> {
    /// Starts at `offset`; `at` skips numbers of a single subsequence.
    pub(super) fn new(count: usize, offset: u64, at: impl FnOnce(u64) -> S) -> RoundRobin<S> {
        let current = (offset % count as u64) as usize;
        RoundRobin {
            states: Vec::new(),
            next_start: at(offset / count as u64),
            far: S::far(),
            count,
            current,
            ahead_by_one: current,
        }
    }

    /// The next number of the current subsequence.
    pub(super) fn next(&mut self) -> u32 {
        while self.states.len() <= self.current {
            let mut own = self.next_start;
            if self.states.len() < self.ahead_by_one {
                own.next();
            }
            self.states.push(own);
            self.next_start.next_subsequence(&self.far);
        }
        self.states[self.current].next()
    }

    /// Proceeds to the next subsequence.
    pub(super) fn advance(&mut self) {
        self.current = (self.current + 1) % self.count;
    }
}
