//! Calls that ask for a derivative, recognised by a substring of the callee's name; in Fortran by the name itself.

/// A call that asks for something of a differentiating compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EntryMode {
    /// Forward mode: the tangent of the result.
    Forward,
    /// Reverse mode, both sweeps in one call.
    Reverse,
    /// The forward sweep alone, which leaves a tape.
    AugmentedForward,
    /// The return sweep alone, which takes a tape.
    ReverseSplit,
    /// The size of the tape of a forward sweep.
    TapeSize,
    /// Forward mode that takes the tape of a forward sweep.
    ForwardSplit,
    /// The shadow of a function pointer or of a table of virtual functions.
    VirtualReverse,
    /// Calls of a function on several inputs at once.
    Batch,
    /// Anything else of that interface: error estimates, truncation, probabilistic programs,
    /// sparse derivatives, hints.
    Other,
}

/// A call of the differentiation interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Entry {
    /// What is asked for.
    pub mode: EntryMode,
    /// The name under which the interface knows it.
    pub name: &'static str,
}

// table
const ENTRIES: &[(&str, EntryMode)] = &[
    ("__enzyme_autodiff", EntryMode::Reverse),
    ("__gradus_autodiff", EntryMode::Reverse),
    ("__gradus_vjp", EntryMode::Reverse),
    ("__enzyme_fwddiff", EntryMode::Forward),
    ("__gradus_fwddiff", EntryMode::Forward),
    ("__gradus_jvp", EntryMode::Forward),
    ("__enzyme_fwdsplit", EntryMode::ForwardSplit),
    ("__gradus_fwdsplit", EntryMode::ForwardSplit),
    ("__enzyme_augmentfwd", EntryMode::AugmentedForward),
    ("__gradus_augmentfwd", EntryMode::AugmentedForward),
    ("__enzyme_augmentsize", EntryMode::TapeSize),
    ("__gradus_augmentsize", EntryMode::TapeSize),
    ("__enzyme_reverse", EntryMode::ReverseSplit),
    ("__gradus_reverse", EntryMode::ReverseSplit),
    ("__enzyme_virtualreverse", EntryMode::VirtualReverse),
    ("__enzyme_batch", EntryMode::Batch),
    ("__enzyme_error_estimate", EntryMode::Other),
    ("__enzyme_truncate_", EntryMode::Other),
    ("__enzyme_expand_", EntryMode::Other),
    ("__enzyme_trace", EntryMode::Other),
    ("__enzyme_condition", EntryMode::Other),
    ("__enzyme_likelihood", EntryMode::Other),
    ("__enzyme_sample", EntryMode::Other),
    ("__enzyme_observe", EntryMode::Other),
    ("__enzyme_todense", EntryMode::Other),
    ("__enzyme_post_sparse_todense", EntryMode::Other),
    ("__enzyme_sparse_accumulate", EntryMode::Other),
    ("__enzyme_product", EntryMode::Other),
    ("__enzyme_sum", EntryMode::Other),
    ("__enzyme_iter", EntryMode::Other),
    ("__enzyme_call_inactive", EntryMode::Other),
    ("__enzyme_ignore_derivatives", EntryMode::Other),
    ("__enzyme_float", EntryMode::Other),
    ("__enzyme_double", EntryMode::Other),
    ("__enzyme_integer", EntryMode::Other),
    ("__enzyme_pointer", EntryMode::Other),
    ("__enzyme_checkpoint_", EntryMode::Other),
    ("__enzyme_fixed_point", EntryMode::Other),
    ("__enzyme_set_fixed_point", EntryMode::Other),
];

/// The names of whole functions: Fortran's names end in a line, and none begins with one.
const FORTRAN: [(&str, EntryMode); 2] = [
    ("gradus_vjp_", EntryMode::Reverse),
    ("gradus_jvp_", EntryMode::Forward),
];

/// What a call of a function of that name asks for; `None` where it is no such call.
pub fn differentiation_call(name: &str) -> Option<Entry> {
    let mut entries = ENTRIES.iter().filter(|(key, _)| name.contains(key));
    let mut whole = FORTRAN.iter().filter(|(key, _)| name == *key);
    let &(name, mode) = entries.next().or_else(|| whole.next())?;
    Some(Entry { mode, name })
}
