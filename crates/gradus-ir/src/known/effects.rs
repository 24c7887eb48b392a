//! What an outside function does to memory and control, as data.

/// Classes of memory that a function reads or writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Places {
    /// Bit `i`: memory that pointer argument `i` points into, at any distance.
    pub arguments: u16,
    /// `errno` and its kin: integers that math functions set aside (`signgam`).
    pub errno: bool,
    /// Memory that the program has no pointer to: the allocator's, the file table, the clock, the
    /// generator of random numbers.
    pub inaccessible: bool,
    /// Any memory that the program can reach.
    pub any: bool,
}

impl Places {
    /// No memory.
    pub const NONE: Places = Places {
        arguments: 0,
        errno: false,
        inaccessible: false,
        any: false,
    };
    /// All memory.
    pub const ALL: Places = Places {
        arguments: u16::MAX,
        errno: true,
        inaccessible: true,
        any: true,
    };
    /// Whether there are none.
    pub const fn is_none(self) -> bool {
        self.arguments == 0 && !self.errno && !self.inaccessible && !self.any
    }
    /// Whether memory behind argument `index` is among them.
    pub const fn argument(self, index: usize) -> bool {
        self.any || (index < 16 && self.arguments >> index & 1 == 1)
    }
    /// The places of both.
    #[must_use]
    pub const fn or(self, other: Places) -> Places {
        Places {
            arguments: self.arguments | other.arguments,
            errno: self.errno || other.errno,
            inaccessible: self.inaccessible || other.inaccessible,
            any: self.any || other.any,
        }
    }
}

/// What an outside function does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Effects {
    /// Memory that it may read.
    pub reads: Places,
    /// Memory that it may write.
    pub writes: Places,
    /// Whether the result is the address of fresh memory, or null.
    pub allocates: bool,
    /// The argument whose memory it frees.
    pub frees: Option<u8>,
    /// The argument that the result is, or points into.
    pub returns_argument: Option<u8>,
    /// Bit `i`: it keeps pointer argument `i` beyond the call.
    pub captures: u16,
    /// Whether an exception may leave it.
    pub may_throw: bool,
    /// Whether it always comes back.
    pub returns: bool,
    /// Whether it may come back more than once.
    pub returns_twice: bool,
    /// Whether it calls functions that it was given.
    pub calls_back: bool,
    /// Whether it may wait for what another thread does, through a file, a pipe or a lock, and so take any time.
    pub waits: bool,
    /// Whether its result carries no derivative and it writes no memory that could carry one.
    pub inactive: bool,
}

/// Bits of arguments.
pub(super) const fn args(list: &[u8]) -> u16 {
    let (mut bits, mut i) = (0u16, 0);
    while i < list.len() {
        bits |= 1 << list[i];
        i += 1;
    }
    bits
}

impl Effects {
    /// A function of its arguments' values alone.
    pub const PURE: Effects = Effects {
        reads: Places::NONE,
        writes: Places::NONE,
        allocates: false,
        frees: None,
        returns_argument: None,
        captures: 0,
        may_throw: false,
        returns: true,
        returns_twice: false,
        calls_back: false,
        waits: false,
        inactive: false,
    };
    /// What is not known: everything.
    pub const UNKNOWN: Effects = Effects {
        reads: Places::ALL,
        writes: Places::ALL,
        captures: u16::MAX,
        may_throw: true,
        returns: false,
        calls_back: true,
        waits: true,
        ..Effects::PURE
    };

    /// Whether it neither reads nor writes memory, and comes back.
    pub const fn is_pure(self) -> bool {
        self.reads.is_none() && self.writes.is_none() && self.returns && !self.may_throw
    }
    /// That of both.
    #[must_use]
    pub fn or(self, other: Effects) -> Effects {
        let same = |a: Option<u8>, b: Option<u8>| if a == b { a } else { None };
        Effects {
            reads: self.reads.or(other.reads),
            writes: self.writes.or(other.writes),
            allocates: self.allocates && other.allocates,
            frees: self.frees.or(other.frees),
            returns_argument: same(self.returns_argument, other.returns_argument),
            captures: self.captures | other.captures,
            may_throw: self.may_throw || other.may_throw,
            returns: self.returns && other.returns,
            returns_twice: self.returns_twice || other.returns_twice,
            calls_back: self.calls_back || other.calls_back,
            waits: self.waits || other.waits,
            inactive: self.inactive && other.inactive,
        }
    }

    /// Reading the memory behind these arguments too.
    #[must_use]
    pub(super) const fn reading(mut self, list: &[u8]) -> Effects {
        self.reads.arguments |= args(list);
        self
    }
    /// Writing the memory behind these arguments too.
    #[must_use]
    pub(super) const fn writing(mut self, list: &[u8]) -> Effects {
        self.writes.arguments |= args(list);
        self
    }
    /// Setting errno too.
    #[must_use]
    pub(super) const fn errno(mut self) -> Effects {
        self.writes.errno = true;
        self
    }
    /// Reading and writing memory that the program cannot reach too.
    #[must_use]
    pub(super) const fn hidden(mut self) -> Effects {
        self.reads.inaccessible = true;
        self.writes.inaccessible = true;
        self
    }
    /// Giving fresh memory.
    #[must_use]
    pub(super) const fn fresh(mut self) -> Effects {
        self.allocates = true;
        self.hidden()
    }
    /// Freeing the memory behind an argument.
    #[must_use]
    pub(super) const fn freeing(mut self, argument: u8) -> Effects {
        self.frees = Some(argument);
        self.writes.arguments |= 1 << argument;
        self.hidden()
    }
    /// Giving an argument back.
    #[must_use]
    pub(super) const fn giving(mut self, argument: u8) -> Effects {
        self.returns_argument = Some(argument);
        self
    }
    /// Keeping these pointer arguments.
    #[must_use]
    pub(super) const fn keeping(mut self, list: &[u8]) -> Effects {
        self.captures |= args(list);
        self
    }
    /// Possibly throwing.
    #[must_use]
    pub(super) const fn throwing(mut self) -> Effects {
        self.may_throw = true;
        self
    }
    /// Not coming back, or not always.
    #[must_use]
    pub(super) const fn leaving(mut self) -> Effects {
        self.returns = false;
        self
    }
    /// Possibly waiting for what another thread does.
    #[must_use]
    pub(super) const fn waiting(mut self) -> Effects {
        self.waits = true;
        self
    }
    /// Carrying no derivative.
    #[must_use]
    pub(super) const fn inactive(mut self) -> Effects {
        self.inactive = true;
        self
    }
}
