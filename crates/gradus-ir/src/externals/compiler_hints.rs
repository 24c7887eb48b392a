//! Compiler hints and queries: intrinsics without computation of the program.

use super::{Effects, Known, Row};

/// A hint to the compiler or a query of the compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MarkerFn {
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
pub const OWN_ADDRESS: &str = "gradus.own.address";

impl MarkerFn {
    /// Returns whether the result is the first argument. Compiler queries (`llvm.is.constant`,
    /// `llvm.objectsize`) are excluded: the result may differ between program points.
    pub fn gives_its_argument(self) -> bool {
        matches!(
            self,
            MarkerFn::Expect | MarkerFn::InvariantGroup | MarkerFn::Annotation
        )
    }
}

const NOTHING: Effects = Effects::PURE.inactive();

// table
pub(super) const ROWS: &[Row] = &[
    row(
        &["llvm.lifetime.start"],
        MarkerFn::LifetimeStart,
        NOTHING.writing(&[0, 1]),
    ),
    row(
        &["llvm.lifetime.end"],
        MarkerFn::LifetimeEnd,
        NOTHING.writing(&[0, 1]),
    ),
    row(
        &["llvm.invariant.start"],
        MarkerFn::InvariantStart,
        NOTHING.hidden(),
    ),
    row(
        &["llvm.invariant.end"],
        MarkerFn::InvariantEnd,
        NOTHING.hidden(),
    ),
    row(
        &["llvm.launder.invariant.group", "llvm.strip.invariant.group"],
        MarkerFn::InvariantGroup,
        Effects::PURE.giving(0),
    ),
    row(
        &["llvm.assume", "llvm.experimental.guard"],
        MarkerFn::Assume,
        NOTHING.hidden(),
    ),
    row(
        &["llvm.expect", "llvm.expect.with.probability"],
        MarkerFn::Expect,
        Effects::PURE,
    ),
    row(&["llvm.prefetch"], MarkerFn::Prefetch, NOTHING.hidden()),
    row(&["llvm.stacksave"], MarkerFn::StackSave, NOTHING.hidden()),
    row(
        &["llvm.stackrestore"],
        MarkerFn::StackRestore,
        NOTHING.hidden(),
    ),
    row(
        &[
            "llvm.dbg.declare",
            "llvm.dbg.value",
            "llvm.dbg.assign",
            "llvm.dbg.label",
            "llvm.pseudoprobe",
        ],
        MarkerFn::Debug,
        NOTHING,
    ),
    row(&["llvm.objectsize"], MarkerFn::ObjectSize, NOTHING),
    row(&["llvm.is.constant"], MarkerFn::IsConstant, NOTHING),
    row(
        &["llvm.experimental.noalias.scope.decl"],
        MarkerFn::NoaliasScopeDecl,
        NOTHING.hidden(),
    ),
    row(&["llvm.sideeffect"], MarkerFn::SideEffect, NOTHING.hidden()),
    row(&["llvm.donothing"], MarkerFn::DoNothing, NOTHING),
    row(
        &["llvm.annotation", "llvm.ptr.annotation"],
        MarkerFn::Annotation,
        Effects::PURE.giving(0),
    ),
    row(
        &["llvm.var.annotation", "llvm.codeview.annotation"],
        MarkerFn::VarAnnotation,
        NOTHING.hidden(),
    ),
    row(
        &["llvm.trap", "llvm.ubsantrap"],
        MarkerFn::Trap,
        NOTHING.hidden().leaving(),
    ),
    row(&["llvm.debugtrap"], MarkerFn::DebugTrap, NOTHING.hidden()),
    row(
        &[
            "llvm.frameaddress",
            "llvm.returnaddress",
            "llvm.addressofreturnaddress",
            "llvm.sponentry",
        ],
        MarkerFn::Frame,
        NOTHING,
    ),
    row(
        &["llvm.readcyclecounter", "llvm.readsteadycounter"],
        MarkerFn::Counter,
        NOTHING.hidden(),
    ),
    row(
        &["llvm.threadlocal.address"],
        MarkerFn::ThreadlocalAddress,
        Effects::PURE.giving(0),
    ),
    // The hint above, for code that may later run on another thread.
    row(
        &[OWN_ADDRESS],
        MarkerFn::ThreadlocalAddress,
        Effects::PURE.hidden().giving(0),
    ),
    row(&["llvm.eh.typeid.for"], MarkerFn::TypeId, NOTHING),
    row(&["llvm.fake.use"], MarkerFn::FakeUse, NOTHING.hidden()),
    row(
        &["llvm.allow.runtime.check", "llvm.allow.ubsan.check"],
        MarkerFn::RuntimeCheck,
        NOTHING.hidden(),
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
        MarkerFn::FloatEnvironment,
        NOTHING.hidden(),
    ),
    row(
        &["llvm.va_start"],
        MarkerFn::VaStart,
        Effects::PURE.writing(&[0]).hidden(),
    ),
    row(
        &["llvm.va_end"],
        MarkerFn::VaEnd,
        Effects::PURE.writing(&[0]).hidden(),
    ),
    row(
        &["llvm.va_copy"],
        MarkerFn::VaCopy,
        Effects::PURE.reading(&[1]).writing(&[0]).hidden(),
    ),
];

const fn row(names: &'static [&'static str], id: MarkerFn, effects: Effects) -> Row {
    Row {
        names,
        known: Known::Marker(id),
        effects,
    }
}
