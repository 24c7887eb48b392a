//! Memory functions: allocation, deallocation, copies and fills of C, C++ and Rust, and the two functions of
//! a derivative's tape stack.

use super::{Effects, ExternalFn, ExternalInfo, Row};

/// A memory function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MemoryFn {
    /// `… → ptr`: an allocator of the program; the payload is the number of the size argument.
    UserAllocator(u8),
    /// `size → ptr`, null on failure.
    Malloc,
    /// `count, size → ptr` to zeros, null on failure.
    Calloc,
    /// `ptr, size → ptr`, null on failure.
    Realloc,
    /// `ptr`.
    Free,
    /// `*ptr, alignment, size → error`.
    PosixMemalign,
    /// `alignment, size → ptr`, null on failure; also `memalign`.
    AlignedAlloc,
    /// `text → ptr` to a copy, null on failure.
    Strdup,
    /// `size → ptr`; throws on failure.
    New,
    /// `size, nothrow → ptr`, null on failure.
    NewNothrow,
    /// `size, alignment → ptr`; throws on failure.
    NewAligned,
    /// `size, alignment, nothrow → ptr`, null on failure.
    NewAlignedNothrow,
    /// `ptr, …` with optional size, alignment, nothrow.
    Delete,
    /// `size, alignment → ptr`, null on failure.
    RustAlloc,
    /// `size, alignment → ptr` to zeros, null on failure.
    RustAllocZeroed,
    /// `ptr, old size, alignment, new size → ptr`, null on failure.
    RustRealloc,
    /// `ptr, size, alignment`.
    RustDealloc,
    /// C's `to, from, size → to`; source and destination do not overlap.
    Memcpy,
    /// LLVM's `to, from, size, volatile`; source and destination are equal or disjoint.
    MemcpyIntrinsic,
    /// C's `to, from, size → to`; source and destination may overlap.
    Memmove,
    /// LLVM's `to, from, size, volatile`; source and destination may overlap.
    MemmoveIntrinsic,
    /// C's `to, byte, size → to`.
    Memset,
    /// LLVM's `to, byte, size, volatile`.
    MemsetIntrinsic,
    /// `to, size`: fills with zeros.
    Bzero,
    /// `to, from, size → to + size`; source and destination do not overlap.
    Mempcpy,
    /// `from, to, size`; source and destination may overlap.
    Bcopy,
    /// `ptr → size` of the block.
    UsableSize,
    /// `stack, size → ptr` to a new block on the tape stack of a derivative.
    TapePush,
    /// `stack, ptr`: pops the block at `ptr` and all later blocks.
    TapeRelease,
}

/// The symbol of [`MemoryFn::TapePush`].
pub const TAPE_PUSH: &str = "__gradus1_tape_push";
/// The symbol of [`MemoryFn::TapeRelease`].
pub const TAPE_RELEASE: &str = "__gradus1_tape_release";

/// The op name of allocations that a derivative makes for itself. Allocations of the program never have the
/// name.
pub const DERIVATIVE_BLOCK_NAME: &str = "gradus.block";

/// The size of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocationSize {
    /// The value of an argument, in bytes.
    Argument(u8),
    /// The product of two arguments, in bytes.
    Product(u8, u8),
    /// Not determined by the arguments.
    Unknown,
}

/// The properties of an allocation function's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// The size in bytes.
    pub size: AllocationSize,
    /// The argument with the alignment in bytes.
    pub align: Option<u8>,
    /// True if the memory is zeroed.
    pub zeroed: bool,
    /// The argument with the old block, which the new block replaces (`realloc`).
    pub replaces: Option<u8>,
    /// True if failure returns null; otherwise failure throws.
    pub null_on_failure: bool,
    /// The matching deallocation function.
    pub deallocator: MemoryFn,
}

impl MemoryFn {
    /// Returns whether source and destination may overlap without being equal.
    pub fn may_overlap(self) -> bool {
        use MemoryFn::{Bcopy, Memmove, MemmoveIntrinsic};
        matches!(self, Memmove | MemmoveIntrinsic | Bcopy)
    }
    /// Returns the properties of the returned block; `None` if the function returns no block
    /// ([`MemoryFn::PosixMemalign`] stores the block's address through a pointer).
    pub fn allocation(self) -> Option<Allocation> {
        use AllocationSize::{Argument, Product, Unknown};
        use MemoryFn::*;
        let block = |size, align, zeroed, replaces, null_on_failure, freed_by| {
            Some(Allocation {
                size,
                align,
                zeroed,
                replaces,
                null_on_failure,
                deallocator: freed_by,
            })
        };
        match self {
            UserAllocator(size) => block(Argument(size), None, false, None, true, Free),
            Malloc => block(Argument(0), None, false, None, true, Free),
            Calloc => block(Product(0, 1), None, true, None, true, Free),
            Realloc => block(Argument(1), None, false, Some(0), true, Free),
            AlignedAlloc => block(Argument(1), Some(0), false, None, true, Free),
            Strdup => block(Unknown, None, false, None, true, Free),
            New => block(Argument(0), None, false, None, false, Delete),
            NewNothrow => block(Argument(0), None, false, None, true, Delete),
            NewAligned => block(Argument(0), Some(1), false, None, false, Delete),
            NewAlignedNothrow => block(Argument(0), Some(1), false, None, true, Delete),
            RustAlloc => block(Argument(0), Some(1), false, None, true, RustDealloc),
            RustAllocZeroed => block(Argument(0), Some(1), true, None, true, RustDealloc),
            RustRealloc => block(Argument(3), Some(2), false, Some(0), true, RustDealloc),
            TapePush => block(Argument(1), None, false, None, false, TapeRelease),
            Free | PosixMemalign | Delete | RustDealloc | Memcpy | MemcpyIntrinsic | Memmove
            | MemmoveIntrinsic | Memset | MemsetIntrinsic | Bzero | Mempcpy | Bcopy
            | UsableSize | TapeRelease => None,
        }
    }

    /// Returns whether the function only frees a block.
    pub fn frees(self) -> bool {
        matches!(
            self,
            MemoryFn::Free | MemoryFn::Delete | MemoryFn::RustDealloc
        )
    }

    /// Returns whether the function operates on a tape stack. The table's effects take precedence over the
    /// function's body: each push is a separate allocation, although all pushes share one body.
    pub fn is_tape(self) -> bool {
        matches!(self, MemoryFn::TapePush | MemoryFn::TapeRelease)
    }
}

const COPY: Effects = Effects::PURE.reading(&[1]).writing(&[0]);
const FILL: Effects = Effects::PURE.writing(&[0]);
const REPLACE: Effects = Effects::PURE.reading(&[0]).freeing(0).allocating();

// table
pub(super) const ROWS: &[Row] = &[
    row(
        &["malloc", "valloc"],
        MemoryFn::Malloc,
        Effects::PURE.allocating().errno(),
    ),
    row(
        &["__gr_device_malloc"],
        MemoryFn::Malloc,
        Effects::PURE.allocating().inaccessible(),
    ),
    row(
        &["__gr_device_free"],
        MemoryFn::Free,
        Effects::PURE.freeing(0).inaccessible(),
    ),
    row(
        &["calloc"],
        MemoryFn::Calloc,
        Effects::PURE.allocating().errno(),
    ),
    row(&["realloc"], MemoryFn::Realloc, REPLACE.errno()),
    row(&["free", "cfree"], MemoryFn::Free, Effects::PURE.freeing(0)),
    row(
        &["posix_memalign"],
        MemoryFn::PosixMemalign,
        Effects::PURE.writing(&[0]).inaccessible(),
    ),
    row(
        &["aligned_alloc", "memalign"],
        MemoryFn::AlignedAlloc,
        Effects::PURE.allocating().errno(),
    ),
    row(
        &["strdup", "__strdup", "strndup"],
        MemoryFn::Strdup,
        Effects::PURE.reading(&[0]).allocating().errno(),
    ),
    row(
        &["_Znwm", "_Znam", "_Znwj", "_Znaj"],
        MemoryFn::New,
        Effects::PURE.allocating().throwing(),
    ),
    row(
        &["_ZnwmRKSt9nothrow_t", "_ZnamRKSt9nothrow_t"],
        MemoryFn::NewNothrow,
        Effects::PURE.allocating(),
    ),
    row(
        &["_ZnwmSt11align_val_t", "_ZnamSt11align_val_t"],
        MemoryFn::NewAligned,
        Effects::PURE.allocating().throwing(),
    ),
    row(
        &[
            "_ZnwmSt11align_val_tRKSt9nothrow_t",
            "_ZnamSt11align_val_tRKSt9nothrow_t",
        ],
        MemoryFn::NewAlignedNothrow,
        Effects::PURE.allocating(),
    ),
    row(
        &[
            "_ZdlPv",
            "_ZdaPv",
            "_ZdlPvm",
            "_ZdaPvm",
            "_ZdlPvj",
            "_ZdaPvj",
            "_ZdlPvSt11align_val_t",
            "_ZdaPvSt11align_val_t",
            "_ZdlPvmSt11align_val_t",
            "_ZdaPvmSt11align_val_t",
            "_ZdlPvRKSt9nothrow_t",
            "_ZdaPvRKSt9nothrow_t",
            "_ZdlPvSt11align_val_tRKSt9nothrow_t",
            "_ZdaPvSt11align_val_tRKSt9nothrow_t",
        ],
        MemoryFn::Delete,
        Effects::PURE.freeing(0),
    ),
    row(
        &["__rust_alloc"],
        MemoryFn::RustAlloc,
        Effects::PURE.allocating(),
    ),
    row(
        &["__rust_alloc_zeroed"],
        MemoryFn::RustAllocZeroed,
        Effects::PURE.allocating(),
    ),
    row(&["__rust_realloc"], MemoryFn::RustRealloc, REPLACE),
    row(
        &["__rust_dealloc"],
        MemoryFn::RustDealloc,
        Effects::PURE.freeing(0),
    ),
    row(
        &["memcpy", "__memcpy_chk"],
        MemoryFn::Memcpy,
        COPY.returning_argument(0),
    ),
    row(
        &["llvm.memcpy", "llvm.memcpy.inline"],
        MemoryFn::MemcpyIntrinsic,
        COPY,
    ),
    row(
        &["memmove", "__memmove_chk"],
        MemoryFn::Memmove,
        COPY.returning_argument(0),
    ),
    row(&["llvm.memmove"], MemoryFn::MemmoveIntrinsic, COPY),
    row(
        &["memset", "__memset_chk"],
        MemoryFn::Memset,
        FILL.returning_argument(0),
    ),
    row(
        &["llvm.memset", "llvm.memset.inline"],
        MemoryFn::MemsetIntrinsic,
        FILL,
    ),
    row(&["bzero", "explicit_bzero"], MemoryFn::Bzero, FILL),
    row(
        &["mempcpy", "__mempcpy_chk"],
        MemoryFn::Mempcpy,
        COPY.returning_argument(0),
    ),
    row(
        &["bcopy"],
        MemoryFn::Bcopy,
        Effects::PURE.reading(&[0]).writing(&[1]),
    ),
    row(
        &["malloc_usable_size"],
        MemoryFn::UsableSize,
        Effects::PURE.inaccessible().inactive(),
    ),
    row(
        &[TAPE_PUSH],
        MemoryFn::TapePush,
        Effects::PURE.reading(&[0]).writing(&[0]).allocating(),
    ),
    row(
        &[TAPE_RELEASE],
        MemoryFn::TapeRelease,
        Effects::PURE.reading(&[0]).writing(&[0]).freeing(1),
    ),
];

const fn row(names: &'static [&'static str], id: MemoryFn, effects: Effects) -> Row {
    Row {
        names,
        known: ExternalFn::Memory(id),
        effects,
    }
}

/// Recognises Rust's allocator under the mangled names of newer compilers:
/// `_RNvCs…_7___rustc12___rust_alloc`.
pub(super) fn by_pattern(name: &str) -> Option<ExternalInfo> {
    let tail = name.strip_prefix("_RNvC").and_then(|rest| {
        let at = rest.find("7___rustc")?;
        Some(rest[at + "7___rustc".len()..].trim_start_matches(|c: char| c.is_ascii_digit()))
    })?;
    let plain = tail.strip_prefix('_')?;
    let row = ROWS.iter().find(|r| r.names == [plain])?;
    Some(ExternalInfo {
        known: row.known,
        effects: row.effects,
        shape: None,
    })
}
