//! The keywords of the call interface, as data: calls, registrations, markers, attributes, metadata, hooks.
//!
//! The recognisers read the table, the manual prints the table (`docs/reference/interface-words.md`), and a test walks
//! all rows. A name of the interface without a row is refused by name and never treated as an ordinary
//! external.

use super::differentiation::EntryMode;

/// A marker: a global variable or a metadata string whose name configures a differentiation call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Marker {
    /// The next argument is inactive.
    Const,
    /// A shadow or tangent follows the next argument.
    Dup,
    /// Like `Dup`; the primal contents are dead after the call.
    DupNoNeed,
    /// The next argument's adjoint is returned.
    Out,
    /// Like `Dup`; the byte stride between the shadows of a batch comes first.
    DupStrided,
    /// Like `DupNoNeed`; the byte stride between the shadows of a batch comes first.
    DupNoNeedStrided,
    /// The batch width follows.
    Width,
    /// The primal's result is returned too, before all other results.
    PrimalReturn,
    /// The result is inactive.
    ConstReturn,
    /// The result is active.
    ActiveReturn,
    /// Products with a zero seed are zero.
    StrongZero,
    /// A permission or statement that does not affect derivatives.
    NoEffect,
    /// The primal's result is not returned.
    NoReturn,
    /// The result is a pointer; the pointer's shadow is returned too.
    DupReturn,
    /// All shadows follow after all arguments.
    Interleave,
    /// The reverse pass does not free the tape.
    NoFree,
    /// No code overwrites the pointee of the next argument between forward pass and reverse pass.
    NotOverwritten,
    /// The tape follows.
    Tape,
    /// The size of the tape's memory in bytes follows.
    Allocated,
    /// The size of a structure in bytes follows; the next argument is the structure's address.
    ByReference,
    /// A keyword of the interface without support in Gradus.
    Unsupported(&'static str),
}

impl Marker {
    /// Returns whether the marker states the activity of an argument.
    pub fn is_activity(self) -> bool {
        use Marker::*;
        matches!(
            self,
            Const | Dup | DupNoNeed | Out | DupStrided | DupNoNeedStrided
        )
    }

    /// Returns the keyword without the prefix: `dup`.
    pub fn word(self) -> &'static str {
        let own = |keyword: &&Keyword| keyword.kind == KeywordKind::Marker(self);
        KEYWORDS
            .iter()
            .find(own)
            .map_or("", |keyword| keyword.keyword)
    }
}

/// The meaning of a registration, a global variable whose initialiser is read at compile time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Registration {
    /// A function, its augmented primal, its reverse pass.
    Gradient,
    /// A function and its forward-mode derivative.
    Derivative,
    /// Functions without derivatives.
    Inactive,
    /// Variables without derivatives.
    InactiveGlobal,
    /// A function and the name of an equivalent external function.
    Like,
    /// An allocator.
    Allocation,
    /// A permission that derivatives do not need.
    Hint,
    /// A keyword of the interface without support in Gradus.
    Unsupported,
}

/// The meaning of an attribute of a function, variable or call, or of metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AttributeMeaning {
    /// The function, variable or call carries no derivative.
    Inactive,
    /// Neither the instruction nor its result carries a derivative.
    InactiveInstruction,
    /// The function is equivalent to the external function named by the text.
    Like,
    /// The augmented primal of the function.
    Augmented,
    /// The reverse pass of the function.
    Gradient,
    /// The forward-mode derivative of the function.
    Derivative,
    /// A permission or statement that does not affect derivatives.
    Hint,
    /// A keyword of the interface without support in Gradus.
    Unsupported,
}

/// The code that a call of the interface stands for, in the primal and in derivatives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallRewrite {
    /// None: the call is a hint.
    Drop,
    /// The first argument.
    FirstArgument,
    /// A call of the first argument with the other arguments, without a derivative.
    Inactive,
}

/// The kind of a keyword, with the meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeywordKind {
    /// A call, recognised by a substring of the callee's name.
    Call(EntryMode),
    /// A call that stands for other code, recognised by a substring of the callee's name.
    Rewrite(CallRewrite),
    /// A global variable, recognised by a substring of the name.
    Registration(Registration),
    /// A marker.
    Marker(Marker),
    /// An attribute: `annotate` in C and C++, or a string attribute in LLVM IR.
    Attribute(AttributeMeaning),
    /// Metadata in LLVM IR.
    Metadata(AttributeMeaning),
    /// A function defined by the program and called by Enzyme.
    Hook,
    /// A header.
    Header,
    /// A macro.
    Macro,
    /// An option in build files.
    Option,
}

/// The compiler's support of a keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Support {
    /// The compiler implements the keyword.
    Honoured,
    /// A hint: no derivative depends on the keyword.
    Hint,
    /// The compiler refuses the keyword by name.
    Refused,
}

/// A keyword of the interface.
#[derive(Clone, Copy, Debug)]
pub struct Keyword {
    /// The keyword, as users write it.
    pub keyword: &'static str,
    /// The kind and meaning.
    pub kind: KeywordKind,
    /// One line for the manual.
    pub description: &'static str,
}

impl Keyword {
    /// Returns the support of the keyword.
    pub fn support(&self) -> Support {
        use EntryMode::*;
        match self.kind {
            KeywordKind::Call(VirtualReverse | Batch | ForwardSplit | Other) => Support::Refused,
            KeywordKind::Call(_) => Support::Honoured,
            KeywordKind::Rewrite(CallRewrite::Drop) => Support::Hint,
            KeywordKind::Rewrite(_) => Support::Honoured,
            KeywordKind::Registration(Registration::Unsupported) => Support::Refused,
            KeywordKind::Registration(Registration::Hint) => Support::Hint,
            KeywordKind::Registration(_) => Support::Honoured,
            KeywordKind::Marker(Marker::Unsupported(_)) => Support::Refused,
            KeywordKind::Marker(Marker::NoEffect) => Support::Hint,
            KeywordKind::Marker(_) => Support::Honoured,
            KeywordKind::Attribute(AttributeMeaning::Unsupported)
            | KeywordKind::Metadata(AttributeMeaning::Unsupported) => Support::Refused,
            KeywordKind::Attribute(AttributeMeaning::Hint)
            | KeywordKind::Metadata(AttributeMeaning::Hint) => Support::Hint,
            KeywordKind::Attribute(_) | KeywordKind::Metadata(_) => Support::Honoured,
            KeywordKind::Macro => Support::Honoured,
            KeywordKind::Hook | KeywordKind::Header => Support::Refused,
            KeywordKind::Option => Support::Hint,
        }
    }
}

const fn word(word: &'static str, means: KeywordKind, says: &'static str) -> Keyword {
    Keyword {
        keyword: word,
        kind: means,
        description: says,
    }
}
const fn call(name: &'static str, mode: EntryMode, says: &'static str) -> Keyword {
    word(name, KeywordKind::Call(mode), says)
}
const fn rewritten(name: &'static str, how: CallRewrite, says: &'static str) -> Keyword {
    word(name, KeywordKind::Rewrite(how), says)
}
const fn marker(name: &'static str, meaning: Marker, says: &'static str) -> Keyword {
    word(name, KeywordKind::Marker(meaning), says)
}
const fn no_marker(name: &'static str, says: &'static str) -> Keyword {
    word(name, KeywordKind::Marker(Marker::Unsupported(name)), says)
}
const fn registration(name: &'static str, meaning: Registration, says: &'static str) -> Keyword {
    word(name, KeywordKind::Registration(meaning), says)
}
const fn attribute(name: &'static str, meaning: AttributeMeaning, says: &'static str) -> Keyword {
    word(name, KeywordKind::Attribute(meaning), says)
}
const fn metadata(name: &'static str, meaning: AttributeMeaning, says: &'static str) -> Keyword {
    word(name, KeywordKind::Metadata(meaning), says)
}

/// All keywords of the interface. If one call's name is a prefix of another, the first match counts.
// table
pub const KEYWORDS: &[Keyword] = &[
    call(
        "__enzyme_autodiff",
        EntryMode::Reverse,
        "reverse mode in one call",
    ),
    call(
        "__gradus_autodiff",
        EntryMode::Reverse,
        "reverse mode in one call",
    ),
    call(
        "__gradus_vjp",
        EntryMode::Reverse,
        "reverse mode in one call",
    ),
    call("__enzyme_fwddiff", EntryMode::Forward, "forward mode"),
    call("__gradus_fwddiff", EntryMode::Forward, "forward mode"),
    call("__gradus_jvp", EntryMode::Forward, "forward mode"),
    call(
        "__enzyme_fwdsplit",
        EntryMode::ForwardSplit,
        "a tape holds no tangents",
    ),
    call(
        "__gradus_fwdsplit",
        EntryMode::ForwardSplit,
        "a tape holds no tangents",
    ),
    call(
        "__enzyme_augmentfwd",
        EntryMode::AugmentedForward,
        "augmented primal; returns a tape",
    ),
    call(
        "__gradus_augmentfwd",
        EntryMode::AugmentedForward,
        "augmented primal; returns a tape",
    ),
    call(
        "__enzyme_augmentsize",
        EntryMode::TapeSize,
        "size of a tape in bytes",
    ),
    call(
        "__gradus_augmentsize",
        EntryMode::TapeSize,
        "size of a tape in bytes",
    ),
    call(
        "__enzyme_reverse",
        EntryMode::ReverseSplit,
        "reverse pass; takes a tape",
    ),
    call(
        "__gradus_reverse",
        EntryMode::ReverseSplit,
        "reverse pass; takes a tape",
    ),
    call(
        "__enzyme_virtualreverse",
        EntryMode::VirtualReverse,
        "shadow of a function pointer",
    ),
    call(
        "__enzyme_batch",
        EntryMode::Batch,
        "batches of inputs; forward mode has `enzyme_width`",
    ),
    call(
        "__enzyme_error_estimate",
        EntryMode::Other,
        "rounding-error estimates",
    ),
    call(
        "__enzyme_truncate_mem_func",
        EntryMode::Other,
        "reduced precision",
    ),
    call(
        "__enzyme_truncate_op_func",
        EntryMode::Other,
        "reduced precision",
    ),
    call(
        "__enzyme_truncate_mem_value",
        EntryMode::Other,
        "reduced precision",
    ),
    call(
        "__enzyme_expand_mem_value",
        EntryMode::Other,
        "reduced precision",
    ),
    call("__enzyme_trace", EntryMode::Other, "probabilistic programs"),
    call(
        "__enzyme_condition",
        EntryMode::Other,
        "probabilistic programs",
    ),
    call(
        "__enzyme_likelihood",
        EntryMode::Other,
        "probabilistic programs",
    ),
    call(
        "__enzyme_sample",
        EntryMode::Other,
        "probabilistic programs",
    ),
    call(
        "__enzyme_observe",
        EntryMode::Other,
        "probabilistic programs",
    ),
    call("__enzyme_todense", EntryMode::Other, "sparse derivatives"),
    call(
        "__enzyme_post_sparse_todense",
        EntryMode::Other,
        "sparse derivatives",
    ),
    call(
        "__enzyme_sparse_accumulate",
        EntryMode::Other,
        "sparse derivatives",
    ),
    call("__enzyme_product", EntryMode::Other, "sparse derivatives"),
    call("__enzyme_sum", EntryMode::Other, "sparse derivatives"),
    rewritten(
        "__enzyme_iter",
        CallRewrite::FirstArgument,
        "number of iterations; the second argument is 0",
    ),
    rewritten(
        "__enzyme_call_inactive",
        CallRewrite::Inactive,
        "calls a function without a derivative",
    ),
    call(
        "__enzyme_ignore_derivatives",
        EntryMode::Other,
        "value without a derivative",
    ),
    rewritten(
        "__enzyme_float",
        CallRewrite::Drop,
        "type of memory; Gradus infers types",
    ),
    rewritten(
        "__enzyme_double",
        CallRewrite::Drop,
        "type of memory; Gradus infers types",
    ),
    rewritten(
        "__enzyme_integer",
        CallRewrite::Drop,
        "type of memory; Gradus infers types",
    ),
    rewritten(
        "__enzyme_pointer",
        CallRewrite::Drop,
        "type of memory; Gradus infers types",
    ),
    call(
        "__enzyme_checkpoint_for",
        EntryMode::Other,
        "checkpointed loops",
    ),
    call(
        "__enzyme_checkpoint_while",
        EntryMode::Other,
        "checkpointed loops",
    ),
    call("__enzyme_fixed_point", EntryMode::Other, "fixed points"),
    call("__enzyme_set_fixed_point", EntryMode::Other, "fixed points"),
    call("__enzyme_context", EntryMode::Other, "shadows of variables"),
    call("__enzyme_shadow", EntryMode::Other, "shadows of variables"),
    call(
        "__enzyme_zero_shadows",
        EntryMode::Other,
        "shadows of variables",
    ),
    rewritten(
        "__enzyme_ptr_size_hint",
        CallRewrite::Drop,
        "size of a pointee in bytes; Gradus infers sizes",
    ),
    registration(
        "register_gradient",
        Registration::Gradient,
        "`{f, augmented, reverse}`",
    ),
    registration(
        "register_derivative",
        Registration::Derivative,
        "`{f, jvp}`",
    ),
    registration(
        "register_splitderivative",
        Registration::Unsupported,
        "forward mode with a tape",
    ),
    registration(
        "inactivefn",
        Registration::Inactive,
        "functions without derivatives",
    ),
    registration(
        "inactive_global",
        Registration::InactiveGlobal,
        "variables without derivatives",
    ),
    registration("function_like", Registration::Like, "`{f, \"log1p\"}`"),
    registration(
        "allocation_like",
        Registration::Allocation,
        "`{alloc, size argument, \"…\", free}`",
    ),
    registration("nofree", Registration::Hint, "functions that do not free"),
    registration(
        "shouldrecompute",
        Registration::Hint,
        "functions to recompute",
    ),
    marker("const", Marker::Const, "the argument is inactive"),
    marker(
        "dup",
        Marker::Dup,
        "the argument and the argument's shadow follow",
    ),
    marker(
        "dupnoneed",
        Marker::DupNoNeed,
        "as `dup`; the primal contents of the pointee are dead after the call",
    ),
    marker(
        "out",
        Marker::Out,
        "a floating-point argument; reverse mode returns the adjoint",
    ),
    marker(
        "dupv",
        Marker::DupStrided,
        "as `dup`; the byte stride between the shadows of a batch comes first",
    ),
    marker(
        "dupnoneedv",
        Marker::DupNoNeedStrided,
        "as `dupnoneed`; the byte stride comes first",
    ),
    marker("width", Marker::Width, "batch width"),
    marker(
        "primal_return",
        Marker::PrimalReturn,
        "the call returns the primal's result first",
    ),
    marker(
        "const_return",
        Marker::ConstReturn,
        "the result is inactive",
    ),
    marker(
        "active_return",
        Marker::ActiveReturn,
        "the result is active",
    ),
    marker(
        "dup_return",
        Marker::DupReturn,
        "the call also returns the shadow of the returned pointer",
    ),
    marker(
        "noret",
        Marker::NoReturn,
        "the call does not return the primal's result",
    ),
    marker(
        "strong_zero",
        Marker::StrongZero,
        "products with a zero seed are zero",
    ),
    marker(
        "runtime_activity",
        Marker::NoEffect,
        "run-time activity; Gradus needs no keyword",
    ),
    marker(
        "nofree",
        Marker::NoFree,
        "the call does not free the tape; refused in a reverse pass",
    ),
    marker(
        "not_overwritten",
        Marker::NotOverwritten,
        "no code overwrites the pointee between the two calls",
    ),
    marker(
        "interleave",
        Marker::Interleave,
        "all arguments, then all shadows; stands first or between the groups",
    ),
    marker("tape", Marker::Tape, "the tape follows"),
    marker(
        "allocated",
        Marker::Allocated,
        "the size of the tape's memory in bytes follows",
    ),
    marker(
        "byref",
        Marker::ByReference,
        "the size of a structure in bytes and the address follow",
    ),
    no_marker("vector", "marker of `__enzyme_batch`"),
    no_marker("scalar", "marker of `__enzyme_batch`"),
    no_marker("buffer", "marker of `__enzyme_batch`"),
    no_marker("interface", "probabilistic programs"),
    no_marker("active_rand_var", "probabilistic programs"),
    no_marker("trace", "probabilistic programs"),
    no_marker("duptrace", "probabilistic programs"),
    no_marker("likelihood", "probabilistic programs"),
    no_marker("duplikelihood", "probabilistic programs"),
    no_marker("observations", "probabilistic programs"),
    no_marker("context", "shadows of variables"),
    marker(
        "nocache",
        Marker::NoEffect,
        "contents of the tape; Gradus chooses the saved values",
    ),
    no_marker("scheme", "checkpointed loops"),
    no_marker("checkpoint_region", "checkpointed loops"),
    no_marker("fp_state", "fixed points"),
    no_marker("fp_reduction", "fixed points"),
    no_marker("fp_max_iters", "fixed points"),
    no_marker("fp_control", "fixed points"),
    attribute(
        "inactive",
        AttributeMeaning::Inactive,
        "marks a function, a variable or a call in LLVM IR as inactive",
    ),
    attribute(
        "function_like",
        AttributeMeaning::Like,
        "the function has the derivative of the named function",
    ),
    attribute(
        "math",
        AttributeMeaning::Like,
        "as `enzyme_function_like`, in LLVM IR",
    ),
    attribute(
        "nofree",
        AttributeMeaning::Hint,
        "the function does not free",
    ),
    attribute(
        "shouldrecompute",
        AttributeMeaning::Hint,
        "the function should be recomputed",
    ),
    attribute(
        "notypeanalysis",
        AttributeMeaning::Hint,
        "the function needs no type analysis",
    ),
    attribute(
        "no_escaping_allocation",
        AttributeMeaning::Hint,
        "no allocation of the function escapes",
    ),
    attribute("type", AttributeMeaning::Hint, "the type of memory"),
    attribute(
        "sparse_accumulate",
        AttributeMeaning::Unsupported,
        "sparse derivatives",
    ),
    attribute(
        "shadow",
        AttributeMeaning::Unsupported,
        "the shadow of a variable: pass the variable as an argument instead",
    ),
    attribute(
        "active",
        AttributeMeaning::Unsupported,
        "Gradus determines activity",
    ),
    attribute(
        "inactive_noblock",
        AttributeMeaning::Unsupported,
        "use `enzyme_inactive` on a function",
    ),
    attribute(
        "checkpointing_enable",
        AttributeMeaning::Unsupported,
        "checkpointed loops",
    ),
    attribute(
        "allocator",
        AttributeMeaning::Unsupported,
        "use `__enzyme_allocation_like`",
    ),
    attribute(
        "deallocator",
        AttributeMeaning::Unsupported,
        "use `__enzyme_allocation_like`",
    ),
    attribute(
        "augment",
        AttributeMeaning::Unsupported,
        "use `__enzyme_register_gradient`, or metadata",
    ),
    attribute(
        "gradient",
        AttributeMeaning::Unsupported,
        "use `__enzyme_register_gradient`, or metadata",
    ),
    attribute(
        "derivative",
        AttributeMeaning::Unsupported,
        "use `__enzyme_register_derivative`, or metadata",
    ),
    attribute(
        "splitderivative",
        AttributeMeaning::Unsupported,
        "forward mode with a tape",
    ),
    attribute(
        "inactive_inst",
        AttributeMeaning::Unsupported,
        "use metadata of the instruction",
    ),
    attribute(
        "inactive_val",
        AttributeMeaning::Unsupported,
        "use metadata of the instruction",
    ),
    metadata(
        "inactive",
        AttributeMeaning::Inactive,
        "marks a function, a variable or a call as inactive",
    ),
    metadata(
        "inactive_inst",
        AttributeMeaning::InactiveInstruction,
        "marks an instruction without memory writes as inactive",
    ),
    metadata(
        "inactive_val",
        AttributeMeaning::InactiveInstruction,
        "marks an instruction without memory writes as inactive",
    ),
    metadata(
        "augment",
        AttributeMeaning::Augmented,
        "the augmented primal of a function, with `enzyme_gradient`",
    ),
    metadata(
        "gradient",
        AttributeMeaning::Gradient,
        "the reverse pass of a function, with `enzyme_augment`",
    ),
    metadata(
        "derivative",
        AttributeMeaning::Derivative,
        "the forward-mode derivative of a function",
    ),
    metadata(
        "splitderivative",
        AttributeMeaning::Unsupported,
        "forward mode with a tape",
    ),
    metadata(
        "shadow",
        AttributeMeaning::Unsupported,
        "the shadow of a variable: pass the variable as an argument instead",
    ),
    metadata(
        "active",
        AttributeMeaning::Unsupported,
        "Gradus determines activity",
    ),
    metadata("type", AttributeMeaning::Hint, "the type of memory"),
    word(
        "enzymeLogError",
        KeywordKind::Hook,
        "hook of `__enzyme_error_estimate`",
    ),
    word(
        "enzyme_logError",
        KeywordKind::Hook,
        "hook of `__enzyme_error_estimate`",
    ),
    word(
        "enzymeLogGrad",
        KeywordKind::Hook,
        "hook called for each derivative",
    ),
    word(
        "<enzyme/…>",
        KeywordKind::Header,
        "Enzyme's headers; clang reports a missing file",
    ),
    word(
        "ENZYME_VERSION_MAJOR",
        KeywordKind::Macro,
        "version of the interface, 0; defined by `gradus cc` and `gradus c++`",
    ),
    word(
        "ENZYME_VERSION_MINOR",
        KeywordKind::Macro,
        "version of the interface, 0; defined by `gradus cc` and `gradus c++`",
    ),
    word(
        "ENZYME_VERSION_PATCH",
        KeywordKind::Macro,
        "version of the interface, 200; defined by `gradus cc` and `gradus c++`",
    ),
    word(
        "-fpass-plugin=…",
        KeywordKind::Option,
        "Enzyme's plug-in (also `-fplugin=`, `-load`); ignored with a note",
    ),
    word(
        "-mllvm -enzyme-…",
        KeywordKind::Option,
        "Enzyme's options; ignored with a note",
    ),
];

/// The prefixes of the interface's names. A keyword of [`KEYWORDS`] follows.
pub const PREFIXES: [&str; 2] = ["enzyme_", "gradus_"];
