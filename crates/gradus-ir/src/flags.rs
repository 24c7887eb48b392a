//! The flags of ops: LLVM's flags and facts that Gradus adds.

/// The flags of an op as a bit set: LLVM's flags and Gradus's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(pub u32);

#[allow(missing_docs)]
impl Flags {
    pub const NONE: Flags = Flags(0);
    pub const NUW: Flags = Flags(1);
    pub const NSW: Flags = Flags(1 << 1);
    pub const EXACT: Flags = Flags(1 << 2);
    pub const DISJOINT: Flags = Flags(1 << 3);
    pub const NNEG: Flags = Flags(1 << 4);
    pub const SAMESIGN: Flags = Flags(1 << 5);
    pub const INBOUNDS: Flags = Flags(1 << 6);
    pub const NUSW: Flags = Flags(1 << 7);
    pub const REASSOC: Flags = Flags(1 << 8);
    pub const NNAN: Flags = Flags(1 << 9);
    pub const NINF: Flags = Flags(1 << 10);
    pub const NSZ: Flags = Flags(1 << 11);
    pub const ARCP: Flags = Flags(1 << 12);
    pub const CONTRACT: Flags = Flags(1 << 13);
    pub const AFN: Flags = Flags(1 << 14);
    /// On a `for`: no plain access of one iteration conflicts with a plain write of another iteration. An
    /// edit must preserve the property when it inserts an access.
    pub const INDEPENDENT: Flags = Flags(1 << 15);
    /// On a parallel loop or an [`Flags::INDEPENDENT`] `for`: several iterations may write one location if
    /// the written values are equal, as threads of a GPU do.
    pub const ALLOWS_EQUAL_WRITES: Flags = Flags(1 << 16);
    /// On a `for`: do not vectorise the loop.
    pub const NO_VECTORIZE: Flags = Flags(1 << 17);
    /// On an atomic read-modify-write: only other iterations of the enclosing parallel loops may conflict.
    /// The access may become plain if the iterations do not run concurrently.
    pub const ATOMIC_ACROSS_ITERATIONS: Flags = Flags(1 << 18);
    /// On a grid: threads wait for each other in loops and run as cooperative threads, each with a private
    /// stack.
    pub const COOPERATIVE_THREADS: Flags = Flags(1 << 19);
    /// On a `for`: do not unroll the body if the trip count is unknown. The program's own loop states the
    /// trip count only through a division.
    pub const NO_RUNTIME_UNROLL: Flags = Flags(1 << 20);
    /// On a loop: a parallel-loop intrinsic of the program applies to this loop, not to an inner loop.
    pub const HAS_PARALLEL_INTRINSIC: Flags = Flags(1 << 21);
    /// On a task: no parallel region of the function encloses the task. If no region of a caller encloses the
    /// task either, the creating thread runs the task.
    pub const ORPHANED_TASK: Flags = Flags(1 << 22);
    /// The fast-math flags inherited by adjoint arithmetic (see `inherit.rs` of gradus-ad).
    pub const FAST_ALGEBRA: Flags =
        Flags(Flags::REASSOC.0 | Flags::ARCP.0 | Flags::CONTRACT.0 | Flags::AFN.0);
    /// All fast-math flags.
    pub const FAST: Flags =
        Flags(Flags::FAST_ALGEBRA.0 | Flags::NNAN.0 | Flags::NINF.0 | Flags::NSZ.0);
    /// Each single flag and LLVM's or Gradus's name, in printing order.
    pub const NAMES: &[(Flags, &str)] = &[
        (Flags::NUW, "nuw"),
        (Flags::NSW, "nsw"),
        (Flags::EXACT, "exact"),
        (Flags::DISJOINT, "disjoint"),
        (Flags::NNEG, "nneg"),
        (Flags::SAMESIGN, "samesign"),
        (Flags::INBOUNDS, "inbounds"),
        (Flags::NUSW, "nusw"),
        (Flags::REASSOC, "reassoc"),
        (Flags::NNAN, "nnan"),
        (Flags::NINF, "ninf"),
        (Flags::NSZ, "nsz"),
        (Flags::ARCP, "arcp"),
        (Flags::CONTRACT, "contract"),
        (Flags::AFN, "afn"),
        (Flags::INDEPENDENT, "independent"),
        (Flags::ALLOWS_EQUAL_WRITES, "sharing"),
        (Flags::NO_VECTORIZE, "scalar"),
        (Flags::ATOMIC_ACROSS_ITERATIONS, "between"),
        (Flags::COOPERATIVE_THREADS, "turns"),
        (Flags::NO_RUNTIME_UNROLL, "rolled"),
        (Flags::HAS_PARALLEL_INTRINSIC, "marked"),
        (Flags::ORPHANED_TASK, "orphan"),
    ];

    /// Returns whether all flags of `other` are set.
    pub fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
    /// Returns the union.
    #[must_use]
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
    /// Returns the intersection.
    #[must_use]
    pub fn and(self, other: Flags) -> Flags {
        Flags(self.0 & other.0)
    }
    /// Returns the flags without the flags of `other`.
    #[must_use]
    pub fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }
}
