//! Effects of external functions on memory and control, as data.

/// Classes of memory that a function reads or writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MemoryClasses {
    /// Bit `i`: memory that pointer argument `i` points into, at any offset.
    pub arguments: u16,
    /// `errno` and similar integers set by math functions (`signgam`).
    pub errno: bool,
    /// Memory inaccessible to the program: the allocator's state, the file table, the clock, the
    /// random-number state.
    pub inaccessible: bool,
    /// Any memory reachable by the program.
    pub any: bool,
}

impl MemoryClasses {
    /// No memory.
    pub const NONE: MemoryClasses = MemoryClasses {
        arguments: 0,
        errno: false,
        inaccessible: false,
        any: false,
    };
    /// All memory.
    pub const ALL: MemoryClasses = MemoryClasses {
        arguments: u16::MAX,
        errno: true,
        inaccessible: true,
        any: true,
    };
    /// Returns whether the set is empty.
    pub const fn is_none(self) -> bool {
        self.arguments == 0 && !self.errno && !self.inaccessible && !self.any
    }
    /// Returns whether the set contains the memory behind argument `index`.
    pub const fn argument(self, index: usize) -> bool {
        self.any || (index < 16 && self.arguments >> index & 1 == 1)
    }
    /// Returns the union.
    #[must_use]
    pub const fn or(self, other: MemoryClasses) -> MemoryClasses {
        MemoryClasses {
            arguments: self.arguments | other.arguments,
            errno: self.errno || other.errno,
            inaccessible: self.inaccessible || other.inaccessible,
            any: self.any || other.any,
        }
    }
}

/// The effects of an external function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Effects {
    /// Memory possibly read.
    pub reads: MemoryClasses,
    /// Memory possibly written.
    pub writes: MemoryClasses,
    /// True if the result is null or the address of fresh memory.
    pub allocates: bool,
    /// The argument whose memory is freed.
    pub frees: Option<u8>,
    /// The argument that the result equals or points into.
    pub returns_argument: Option<u8>,
    /// Bit `i`: pointer argument `i` is captured (retained beyond the call).
    pub captures: u16,
    /// True if an exception may leave the function.
    pub may_throw: bool,
    /// True if the function always returns.
    pub always_returns: bool,
    /// True if the function may return more than once.
    pub returns_twice: bool,
    /// True if the function calls function pointers from its arguments.
    pub has_callbacks: bool,
    /// True if the function may wait for another thread, through a file, a pipe or a lock, for an unbounded
    /// time.
    pub may_block: bool,
    /// True if the result carries no derivative and no written memory can carry one.
    pub inactive: bool,
}

/// Returns the bit mask of argument numbers.
pub(super) const fn args(list: &[u8]) -> u16 {
    let (mut bits, mut i) = (0u16, 0);
    while i < list.len() {
        bits |= 1 << list[i];
        i += 1;
    }
    bits
}

impl Effects {
    /// A function of the argument values alone.
    pub const PURE: Effects = Effects {
        reads: MemoryClasses::NONE,
        writes: MemoryClasses::NONE,
        allocates: false,
        frees: None,
        returns_argument: None,
        captures: 0,
        may_throw: false,
        always_returns: true,
        returns_twice: false,
        has_callbacks: false,
        may_block: false,
        inactive: false,
    };
    /// The effects of an unknown callee: arbitrary.
    pub const UNKNOWN: Effects = Effects {
        reads: MemoryClasses::ALL,
        writes: MemoryClasses::ALL,
        captures: u16::MAX,
        may_throw: true,
        always_returns: false,
        has_callbacks: true,
        may_block: true,
        ..Effects::PURE
    };

    /// Returns whether the function accesses no memory and always returns.
    pub const fn is_pure(self) -> bool {
        self.reads.is_none() && self.writes.is_none() && self.always_returns && !self.may_throw
    }
    /// Returns the join of both effects: any effect of either function is possible.
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
            always_returns: self.always_returns && other.always_returns,
            returns_twice: self.returns_twice || other.returns_twice,
            has_callbacks: self.has_callbacks || other.has_callbacks,
            may_block: self.may_block || other.may_block,
            inactive: self.inactive && other.inactive,
        }
    }

    /// Adds reads of the memory behind the arguments.
    #[must_use]
    pub(super) const fn reading(mut self, list: &[u8]) -> Effects {
        self.reads.arguments |= args(list);
        self
    }
    /// Adds writes to the memory behind the arguments.
    #[must_use]
    pub(super) const fn writing(mut self, list: &[u8]) -> Effects {
        self.writes.arguments |= args(list);
        self
    }
    /// Adds writes to errno.
    #[must_use]
    pub(super) const fn errno(mut self) -> Effects {
        self.writes.errno = true;
        self
    }
    /// Adds reads and writes of inaccessible memory.
    #[must_use]
    pub(super) const fn inaccessible(mut self) -> Effects {
        self.reads.inaccessible = true;
        self.writes.inaccessible = true;
        self
    }
    /// Adds a result that is fresh memory.
    #[must_use]
    pub(crate) const fn allocating(mut self) -> Effects {
        self.allocates = true;
        self.inaccessible()
    }
    /// Adds a free of the memory behind an argument.
    #[must_use]
    pub(super) const fn freeing(mut self, argument: u8) -> Effects {
        self.frees = Some(argument);
        self.writes.arguments |= 1 << argument;
        self.inaccessible()
    }
    /// Sets the argument that the result equals or points into.
    #[must_use]
    pub(super) const fn returning_argument(mut self, argument: u8) -> Effects {
        self.returns_argument = Some(argument);
        self
    }
    /// Adds captures of pointer arguments.
    #[must_use]
    pub(super) const fn capturing(mut self, list: &[u8]) -> Effects {
        self.captures |= args(list);
        self
    }
    /// Adds a possible exception.
    #[must_use]
    pub(super) const fn throwing(mut self) -> Effects {
        self.may_throw = true;
        self
    }
    /// Adds a possible failure to return.
    #[must_use]
    pub(super) const fn no_return(mut self) -> Effects {
        self.always_returns = false;
        self
    }
    /// Adds a possible wait for another thread.
    #[must_use]
    pub(super) const fn blocking(mut self) -> Effects {
        self.may_block = true;
        self
    }
    /// Marks the function as inactive.
    #[must_use]
    pub(super) const fn inactive(mut self) -> Effects {
        self.inactive = true;
        self
    }
}
