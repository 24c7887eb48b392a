//! Compiler hints and queries: intrinsics without computation of the program.

use super::{Effects, ExternalFn, Row};

/// Offsets in bytes of the pointers in a `va_list`: the argument areas of x86-64 (8, 16) and AArch64 (0, 8, 16).
pub const VA_LIST_POINTERS: [i64; 3] = [0, 8, 16];
/// Size of the largest `va_list` in bytes (AArch64).
pub const VA_LIST_BYTES: u64 = 32;

/// A hint to the compiler or a query of the compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CompilerIntrinsic {
    /// `(size,) ptr`: start of the memory's lifetime.
    LifetimeStart,
    /// `(size,) ptr`: end of the memory's lifetime.
    LifetimeEnd,
    /// `size, ptr → token`: the memory is invariant from here on.
    InvariantStart,
    /// `token, size, ptr`.
    InvariantEnd,
    /// `ptr → ptr`: another invariant-group view of the object.
    InvariantGroup,
    /// `condition`.
    Assume,
    /// `value, expected → value`.
    Expect,
    /// `ptr, …`: prefetch.
    Prefetch,
    /// `→ ptr`.
    StackSave,
    /// `ptr`: frees the dynamic allocas since the save.
    StackRestore,
    /// Debug information.
    Debug,
    /// `ptr, … → size`.
    ObjectSize,
    /// `value → i1`.
    IsConstant,
    /// Declares an alias scope.
    NoaliasScopeDecl,
    /// A side effect without operation; must not be removed.
    SideEffect,
    /// No operation.
    DoNothing,
    /// `value, … → value`: an annotation of the source.
    Annotation,
    /// `ptr, …`: an annotation of a variable.
    VarAnnotation,
    /// Ends the program.
    Trap,
    /// A debugger breakpoint; execution may continue.
    DebugTrap,
    /// Addresses of the machine's stack frames.
    Frame,
    /// A hardware counter.
    Counter,
    /// `ptr → ptr`: the calling thread's copy of a thread-local variable.
    ThreadlocalAddress,
    /// The number of an exception type.
    TypeId,
    /// `ptr`: keeps a value live.
    FakeUse,
    /// True if an optional runtime check is enabled.
    RuntimeCheck,
    /// The floating-point environment.
    FloatEnvironment,
    /// Starts the argument list of a variadic function.
    VaStart,
    /// Ends the argument list.
    VaEnd,
    /// Copies the argument list.
    VaCopy,
}

/// Replaces `llvm.threadlocal.address` in programs with parallel code during compilation: the address of the
/// calling thread's copy of a variable. Each thread must compute the address anew.
pub const THREAD_LOCAL_ADDRESS: &str = "gradus.own.address";

impl CompilerIntrinsic {
    /// Returns whether the result is the first argument. Compiler queries (`llvm.is.constant`,
    /// `llvm.objectsize`) are excluded: the result may differ between program points.
    pub fn returns_argument(self) -> bool {
        matches!(
            self,
            CompilerIntrinsic::Expect
                | CompilerIntrinsic::InvariantGroup
                | CompilerIntrinsic::Annotation
        )
    }
}

const NOTHING: Effects = Effects::PURE.inactive();

// table
pub(super) const ROWS: &[Row] = &[
    row(
        &["llvm.lifetime.start"],
        CompilerIntrinsic::LifetimeStart,
        NOTHING.writing(&[0, 1]),
    ),
    row(
        &["llvm.lifetime.end"],
        CompilerIntrinsic::LifetimeEnd,
        NOTHING.writing(&[0, 1]),
    ),
    row(
        &["llvm.invariant.start"],
        CompilerIntrinsic::InvariantStart,
        NOTHING.inaccessible(),
    ),
    row(
        &["llvm.invariant.end"],
        CompilerIntrinsic::InvariantEnd,
        NOTHING.inaccessible(),
    ),
    row(
        &["llvm.launder.invariant.group", "llvm.strip.invariant.group"],
        CompilerIntrinsic::InvariantGroup,
        Effects::PURE.returning_argument(0),
    ),
    row(
        &["llvm.assume", "llvm.experimental.guard"],
        CompilerIntrinsic::Assume,
        NOTHING.inaccessible(),
    ),
    row(
        &["llvm.expect", "llvm.expect.with.probability"],
        CompilerIntrinsic::Expect,
        Effects::PURE,
    ),
    row(
        &["llvm.prefetch"],
        CompilerIntrinsic::Prefetch,
        NOTHING.inaccessible(),
    ),
    row(
        &["llvm.stacksave"],
        CompilerIntrinsic::StackSave,
        NOTHING.inaccessible(),
    ),
    row(
        &["llvm.stackrestore"],
        CompilerIntrinsic::StackRestore,
        NOTHING.inaccessible(),
    ),
    row(
        &[
            "llvm.dbg.declare",
            "llvm.dbg.value",
            "llvm.dbg.assign",
            "llvm.dbg.label",
            "llvm.pseudoprobe",
        ],
        CompilerIntrinsic::Debug,
        NOTHING,
    ),
    row(&["llvm.objectsize"], CompilerIntrinsic::ObjectSize, NOTHING),
    row(
        &["llvm.is.constant"],
        CompilerIntrinsic::IsConstant,
        NOTHING,
    ),
    row(
        &["llvm.experimental.noalias.scope.decl"],
        CompilerIntrinsic::NoaliasScopeDecl,
        NOTHING.inaccessible(),
    ),
    row(
        &["llvm.sideeffect"],
        CompilerIntrinsic::SideEffect,
        NOTHING.inaccessible(),
    ),
    row(&["llvm.donothing"], CompilerIntrinsic::DoNothing, NOTHING),
    row(
        &["llvm.annotation", "llvm.ptr.annotation"],
        CompilerIntrinsic::Annotation,
        Effects::PURE.returning_argument(0),
    ),
    row(
        &["llvm.var.annotation", "llvm.codeview.annotation"],
        CompilerIntrinsic::VarAnnotation,
        NOTHING.inaccessible(),
    ),
    row(
        &["llvm.trap", "llvm.ubsantrap"],
        CompilerIntrinsic::Trap,
        NOTHING.inaccessible().no_return(),
    ),
    row(
        &["llvm.debugtrap"],
        CompilerIntrinsic::DebugTrap,
        NOTHING.inaccessible(),
    ),
    row(
        &[
            "llvm.frameaddress",
            "llvm.returnaddress",
            "llvm.addressofreturnaddress",
            "llvm.sponentry",
        ],
        CompilerIntrinsic::Frame,
        NOTHING,
    ),
    row(
        &["llvm.readcyclecounter", "llvm.readsteadycounter"],
        CompilerIntrinsic::Counter,
        NOTHING.inaccessible(),
    ),
    row(
        &["llvm.threadlocal.address"],
        CompilerIntrinsic::ThreadlocalAddress,
        Effects::PURE.returning_argument(0),
    ),
    // The hint above, for code that may later run on another thread.
    row(
        &[THREAD_LOCAL_ADDRESS],
        CompilerIntrinsic::ThreadlocalAddress,
        Effects::PURE.inaccessible().returning_argument(0),
    ),
    row(&["llvm.eh.typeid.for"], CompilerIntrinsic::TypeId, NOTHING),
    row(
        &["llvm.fake.use"],
        CompilerIntrinsic::FakeUse,
        NOTHING.inaccessible(),
    ),
    row(
        &["llvm.allow.runtime.check", "llvm.allow.ubsan.check"],
        CompilerIntrinsic::RuntimeCheck,
        NOTHING.inaccessible(),
    ),
    row(
        &[
            "llvm.get.rounding",
            "llvm.set.rounding",
            "fegetround",
            "fesetround",
            "feclearexcept",
            "fetestexcept",
            "feraiseexcept",
            "feenableexcept",
            "fedisableexcept",
        ],
        CompilerIntrinsic::FloatEnvironment,
        NOTHING.inaccessible(),
    ),
    row(
        &["llvm.va_start"],
        CompilerIntrinsic::VaStart,
        Effects::PURE.writing(&[0]).inaccessible(),
    ),
    row(
        &["llvm.va_end"],
        CompilerIntrinsic::VaEnd,
        Effects::PURE.writing(&[0]).inaccessible(),
    ),
    row(
        &["llvm.va_copy"],
        CompilerIntrinsic::VaCopy,
        Effects::PURE.reading(&[1]).writing(&[0]).inaccessible(),
    ),
];

const fn row(names: &'static [&'static str], id: CompilerIntrinsic, effects: Effects) -> Row {
    Row {
        names,
        known: ExternalFn::Marker(id),
        effects,
    }
}
