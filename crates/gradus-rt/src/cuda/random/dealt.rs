//! In which order generators on the host deal out the numbers of their subsequences, one after the other in turn, as
//! cuRAND's manual says.

/// A sequence in which one can go one subsequence ahead.
pub(super) trait Sequence: Copy {
    /// What goes ahead.
    type Far;
    fn far() -> Self::Far;
    fn next_subsequence(&mut self, far: &Self::Far);
    fn next(&mut self) -> u32;
}

/// The number at place n is number n / `count` of subsequence n mod `count`.
pub(super) struct Dealt<S: Sequence> {
    /// Those that had a turn.
    states: Vec<S>,
    /// Where the next one begins.
    ahead: S,
    far: S::Far,
    count: usize,
    turn: usize,
    /// So many are one number further than the others at first.
    further: usize,
}

impl<S: Sequence> Dealt<S> {
    /// Begins `offset` numbers ahead; `at` goes ahead in one subsequence.
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

    /// The next number of the subsequence whose turn it is.
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

    /// Ends the turn.
    pub(super) fn pass(&mut self) {
        self.turn = (self.turn + 1) % self.count;
    }
}
