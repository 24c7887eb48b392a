//! Intrinsics that state something or ask the compiler: no computation of the program's own.

use super::{Effects, Known, Row};

/// A statement to, or a question of, the compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MarkerFn {
    /// `(size,) ptr`: the memory begins to live.
    LifetimeStart,
    /// `(size,) ptr`: the memory's life ends.
    LifetimeEnd,
    /// `size, ptr → token`: the memory does not change.
    InvariantStart,
    /// `token, size, ptr`.
    InvariantEnd,
    /// `ptr → ptr`: another view of the same object.
    InvariantGroup,
    /// `condition`.
    Assume,
    /// `value, expected → value`.
    Expect,
    /// `ptr, …`: fetch soon.
    Prefetch,
    /// `→ ptr`.
    StackSave,
    /// `ptr`: dynamic allocations since the save die.
    StackRestore,
    /// Debug information.
    Debug,
    /// `ptr, … → size`.
    ObjectSize,
    /// `value → i1`.
    IsConstant,
    /// Declares an alias scope anew.
    NoaliasScopeDecl,
    /// Nothing, but may not be removed.
    SideEffect,
    /// Nothing.
    DoNothing,
    /// `value, … → value`: an annotation of the source.
    Annotation,
    /// `ptr, …`: an annotation of a variable.
    VarAnnotation,
    /// Ends the program.
    Trap,
    /// Stops in a debugger, and may go on.
    DebugTrap,
    /// Addresses of the machine's frames.
    Frame,
    /// A counter of the machine.
    Counter,
    /// `ptr → ptr`: the thread's own copy of a thread-local variable.
    ThreadlocalAddress,
    /// Number of a type of exception.
    TypeId,
    /// `ptr`: keeps a value alive.
    FakeUse,
    /// Whether an optional check is made.
    RuntimeCheck,
    /// The floating-point environment of the machine.
    FloatEnvironment,
    /// Begins the arguments of a variadic function.
    VaStart,
    /// Ends them.
    VaEnd,
    /// Copies where they stand.
    VaCopy,
}

/// The name under which programs with parallel code ask for a thread's own copy of a variable, while they are worked
/// on: each thread asks for itself.
pub const OWN_ADDRESS: &str = "gradus.own.address";

impl MarkerFn {
    /// Whether its result is its first argument, whatever else it says of it. What asks the compiler
    /// (`llvm.is.constant`, `llvm.objectsize`) is not one: the same question may have another answer in
    /// another place.
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
    // The same, where the code around it may be another thread's later.
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
