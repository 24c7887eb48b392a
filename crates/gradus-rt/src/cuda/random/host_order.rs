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
pub(super) struct Dealt<S: Sequence> {
    /// States of the subsequences used so far.
    states: Vec<S>,
    /// Start of the next subsequence.
    ahead: S,
    far: S::Far,
    count: usize,
    turn: usize,
    /// Number of subsequences that start one number further than the others.
    further: usize,
}

impl<S: Sequence> Dealt<S> {
    /// Starts at `offset`; `at` skips numbers of a single subsequence.
    pub(super) fn new(count: usize, offset: u64, at: impl FnOnce(u64) -> S) -> Dealt<S> {
        let turn = (offset % count as u64) as usize;
        Dealt {
            states: Vec::new(),
            ahead: at(offset / count as u64),
            far: S::far(),
            count,
            turn,
            further: turn,
        }
    }

    /// The next number of the current subsequence.
    pub(super) fn next(&mut self) -> u32 {
        while self.states.len() <= self.turn {
            let mut own = self.ahead;
            if self.states.len() < self.further {
                own.next();
            }
            self.states.push(own);
            self.ahead.next_subsequence(&self.far);
        }
        self.states[self.turn].next()
    }

    /// Proceeds to the next subsequence.
    pub(super) fn pass(&mut self) {
        self.turn = (self.turn + 1) % self.count;
    }
}
