//! The runtime of C++ exceptions, guards of static variables, and Rust panics.

use super::{Effects, ExternalFn, ExternalInfo, Row};

/// A function of the exception runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ExceptionFn {
    /// `size → ptr` to the exception object.
    Allocate,
    /// `ptr`.
    Free,
    /// Throws or rethrows.
    Throw,
    /// `exception → ptr` to the caught object.
    BeginCatch,
    /// Ends the catch; the caught object may be destroyed.
    EndCatch,
    /// Continues unwinding.
    Resume,
    /// Ends the program.
    Terminate,
    /// Begins or ends the initialisation of a static variable.
    Guard,
    /// Selects the handler of an exception.
    Personality,
    /// A throw helper of the C++ library: out of range, out of memory, bad length.
    LibraryThrow,
    /// The destructor of an exception of the C++ library.
    LibraryDestructor,
    /// A Rust panic.
    Panic,
    /// A no-return function of the program ([`crate::Unit::declare_no_return`]).
    NoReturn,
}

/// The destructors of the base parts of the C++ library's exceptions. A message is the library's memory; the destructor of
/// a base part does not free the object.
const LIBRARY_DESTRUCTORS: &[&str] = &[
    "_ZNSt9exceptionD2Ev",
    "_ZNSt9exceptionD1Ev",
    "_ZNSt11logic_errorD2Ev",
    "_ZNSt11logic_errorD1Ev",
    "_ZNSt12domain_errorD2Ev",
    "_ZNSt12domain_errorD1Ev",
    "_ZNSt16invalid_argumentD2Ev",
    "_ZNSt16invalid_argumentD1Ev",
    "_ZNSt12length_errorD2Ev",
    "_ZNSt12length_errorD1Ev",
    "_ZNSt12out_of_rangeD2Ev",
    "_ZNSt12out_of_rangeD1Ev",
    "_ZNSt13runtime_errorD2Ev",
    "_ZNSt13runtime_errorD1Ev",
    "_ZNSt11range_errorD2Ev",
    "_ZNSt11range_errorD1Ev",
    "_ZNSt14overflow_errorD2Ev",
    "_ZNSt14overflow_errorD1Ev",
    "_ZNSt15underflow_errorD2Ev",
    "_ZNSt15underflow_errorD1Ev",
    "_ZNSt9bad_allocD2Ev",
    "_ZNSt9bad_allocD1Ev",
    "_ZNSt8bad_castD2Ev",
    "_ZNSt8bad_castD1Ev",
];

/// A throw writes the runtime's memory only; a handler may read any memory.
const THROW: Effects = Effects {
    reads: super::MemoryClasses::ALL,
    captures: u16::MAX,
    may_throw: true,
    always_returns: false,
    ..Effects::PURE.inaccessible()
};
const NO_RETURN: Effects = Effects::PURE.inaccessible().no_return().inactive();

// table
pub(super) const ROWS: &[Row] = &[
    row(
        &["__cxa_allocate_exception"],
        ExceptionFn::Allocate,
        Effects::PURE.allocating(),
    ),
    row(
        &["__cxa_free_exception"],
        ExceptionFn::Free,
        Effects::PURE.freeing(0),
    ),
    row(&["__cxa_throw", "__cxa_rethrow"], ExceptionFn::Throw, THROW),
    row(
        LIBRARY_DESTRUCTORS,
        ExceptionFn::LibraryDestructor,
        Effects::PURE.writing(&[0]).inaccessible().inactive(),
    ),
    row(
        &["__cxa_begin_catch", "__cxa_get_exception_ptr"],
        ExceptionFn::BeginCatch,
        Effects::PURE.inaccessible().returning_argument(0),
    ),
    row(
        &["__cxa_end_catch"],
        ExceptionFn::EndCatch,
        Effects::UNKNOWN,
    ),
    row(&["_Unwind_Resume"], ExceptionFn::Resume, THROW),
    row(
        &[
            "_ZSt9terminatev",
            "__clang_call_terminate",
            "__cxa_pure_virtual",
            "__cxa_deleted_virtual",
        ],
        ExceptionFn::Terminate,
        NO_RETURN,
    ),
    row(
        &[
            "__cxa_guard_acquire",
            "__cxa_guard_release",
            "__cxa_guard_abort",
        ],
        ExceptionFn::Guard,
        Effects::PURE
            .reading(&[0])
            .writing(&[0])
            .inaccessible()
            .inactive(),
    ),
    row(
        &[
            "__gxx_personality_v0",
            "rust_eh_personality",
            "__gcc_personality_v0",
        ],
        ExceptionFn::Personality,
        Effects::UNKNOWN,
    ),
];

const fn row(names: &'static [&'static str], id: ExceptionFn, effects: Effects) -> Row {
    Row {
        names,
        known: ExternalFn::Exception(id),
        effects,
    }
}

/// Recognises libstdc++'s `std::__throw_…`, the throws of casts and `typeid`, and Rust's
/// `core::panicking::…`, in any mangling.
pub(super) fn by_pattern(name: &str) -> Option<ExternalInfo> {
    let throws_itself = ["__cxa_bad_cast", "__cxa_bad_typeid"].contains(&name);
    let id = if throws_itself || name.starts_with("_ZSt") && name.contains("__throw_") {
        ExceptionFn::LibraryThrow
    } else if name.starts_with("_ZN4core9panicking")
        || (name.starts_with("_RN") && name.contains("4core9panicking"))
        || (name.starts_with("_RN") && name.contains("_4core") && name.contains("9panicking"))
    {
        ExceptionFn::Panic
    } else {
        return None;
    };
    Some(no_return_entry(id))
}

/// Functions without a row: recognised by prefix, or stated by the program.
pub(super) const WITHOUT_ROW: [ExceptionFn; 3] = [
    ExceptionFn::LibraryThrow,
    ExceptionFn::Panic,
    ExceptionFn::NoReturn,
];

/// Returns the entry of a no-return function: inactive, but the function may read any memory.
pub(crate) const fn no_return_entry(id: ExceptionFn) -> ExternalInfo {
    ExternalInfo {
        known: ExternalFn::Exception(id),
        effects: Effects {
            inactive: true,
            ..THROW
        },
        shape: None,
    }
}
