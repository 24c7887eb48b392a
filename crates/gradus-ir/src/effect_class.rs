//! Effect classes of ops: the column of the op tables that says whether an op may be removed, duplicated or moved.

/// The effects of an op besides the results, without knowledge of the operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EffectClass {
    /// No effect: the op may be duplicated, speculated or removed.
    Pure,
    /// No effect, but some operands are undefined behaviour: the op must not be speculated.
    Traps,
    /// Allocates fresh memory.
    Allocates,
    /// Reads memory.
    Reads,
    /// Writes memory.
    Writes,
    /// Reads and writes memory.
    ReadsWrites,
    /// Orders memory accesses of threads.
    Orders,
    /// The callee's effects.
    Calls,
    /// The effects of the op's regions.
    Regions,
    /// Terminates a region.
    Terminates,
    /// The effects that the host states for the op; arbitrary effects if the host states none.
    Unknown,
}
