//! External functions with known semantics: one row each, with names, id and memory effects.
//!
//! An external function's name occurs as a string in this folder only; other code matches on [`ExternalFn`].
//! [`lookup`] maps a symbol to the id; `known_functions/` maps a function of a unit with a matching signature. A
//! name without a row is an unknown callee with arbitrary effects.
//!
//! Rows are grouped in one file per family.
//!
//! # Invariants
//!
//! Tested by a walk over all rows:
//! - Names are unique.
//! - Each name's id has effects.
//! - A function that is inactive by nature writes no memory that may hold floats.

mod blas;
mod compiler_hints;
mod complex;
mod differentiation;
mod effects;
pub(crate) mod exceptions;
mod fortran;
mod gpu;
mod integer;
mod intrinsic;
mod keyword_lookup;
mod math;
mod memory;
mod openmp;
mod parallel_intrinsics;
pub(crate) mod system;
#[cfg(test)]
mod tests;
mod text;
mod threads;
pub(crate) mod vector;
mod words;

pub use crate::externals::blas::{
    BLAS_BODY_PREFIX, BLAS_PREFIX, BlasInterface, blas_advice, blas_interface,
};
pub use crate::externals::compiler_hints::{
    CompilerIntrinsic, THREAD_LOCAL_ADDRESS, VA_LIST_BYTES, VA_LIST_POINTERS,
};
pub use crate::externals::parallel_intrinsics::ParallelIntrinsic;
pub use complex::ComplexFn;
pub use differentiation::{Entry, EntryMode, call_rewrite, differentiation_call};
pub use effects::{Effects, MemoryClasses};
pub use exceptions::ExceptionFn;
pub use gpu::{
    CALL_SITE_PREFIX, DEVICE_PREFIX, ENTRY_PREFIX, GpuFn, KERNEL_PREFIX, LAUNCH_PREFIX,
    LOCAL_DEVICE_PREFIX, RUN_PREFIX, SHARED_DYNAMIC_PREFIX, SHARED_PREFIX, VARIABLE_PREFIX,
};
pub use integer::IntFn;
pub use keyword_lookup::{
    attribute_named, interface_keyword, is_hook, is_reserved, marker_named, metadata_named,
    registration_named, registration_part,
};
pub use math::{MathFn, MultiResultMathFn};
pub use memory::{
    Allocation, AllocationSize, DERIVATIVE_BLOCK_NAME, MemoryFn, TAPE_PUSH, TAPE_RELEASE,
};
pub use openmp::OpenMpFn;
pub use system::{
    QUERY_SYMBOL, SystemFn, is_cpp_text_function, is_stream_variable, is_string_stream,
    reads_address_lists,
};
pub use text::TextFn;
pub use threads::{is_signal_function, is_thread_function};
pub use vector::{MaskedFn, ReduceFn};
pub use words::{
    AttributeMeaning, CallRewrite, KEYWORDS, Keyword, KeywordKind, Marker, Registration, Support,
};

use std::collections::HashMap;
use std::sync::LazyLock;

/// An external function with known semantics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ExternalFn {
    /// A math function with one result.
    Math(MathFn),
    /// A math function with two results: behind pointers (libm) or as a structure (LLVM).
    MathOut(MultiResultMathFn),
    /// A complex function.
    Complex(ComplexFn),
    /// Integer arithmetic.
    Integer(IntFn),
    /// A reduction of a vector's lanes.
    Reduce(ReduceFn),
    /// Masked loads and stores.
    Masked(MaskedFn),
    /// Allocates, frees, copies or fills memory.
    Memory(MemoryFn),
    /// String and byte functions, and conversions of text to numbers.
    Text(TextFn),
    /// Compiler hints and queries; no computation.
    Marker(CompilerIntrinsic),
    /// Input, output, process, clock, random numbers, environment.
    System(SystemFn),
    /// The runtime of C++ exceptions and of Rust panics.
    Exception(ExceptionFn),
    /// The OpenMP runtime.
    OpenMp(OpenMpFn),
    /// Fork-join parallelism: the parallel intrinsics of `gradus/parallel.h`.
    Fork(ParallelIntrinsic),
    /// MPI.
    Mpi,
    /// CUDA and HIP runtime functions without a row.
    Gpu,
    /// Thread indices, barriers and warp functions of kernels, and launches.
    Kernel(GpuFn),
    /// A function of the program stated to be inactive ([`crate::Unit::declare_inactive`]).
    Inactive,
}

/// The prefix of the functions of a tape stack.
pub(crate) const TAPE: &str = "__gradus1_tape_";

/// Effects of an inactive function: arbitrary, except on memory that carries derivatives.
pub(crate) const INACTIVE: Effects = Effects::UNKNOWN.inactive();

/// A table row: names, id, effects.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    names: &'static [&'static str],
    known: ExternalFn,
    effects: Effects,
}

/// The signature of a function, as far as checked: `f` float, `i` integer, `p` pointer, `s` structure, `v`
/// void.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// One letter per parameter.
    pub params: &'static str,
    /// The letter of the result.
    pub result: char,
}

/// Semantics of an external function: id, effects and signature.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExternalInfo {
    /// The id.
    pub known: ExternalFn,
    /// The memory effects.
    pub effects: Effects,
    /// The signature, if checked.
    pub shape: Option<Shape>,
}

/// Rows indexed by name (`llvm.` intrinsics by stem) and by id.
pub(crate) struct Index {
    symbols: HashMap<String, ExternalInfo>,
    intrinsics: HashMap<&'static str, ExternalInfo>,
    effects: HashMap<ExternalFn, Effects>,
}

/// The index of all rows.
pub(crate) static INDEX: LazyLock<Index> = LazyLock::new(Index::build);

impl Index {
    fn build() -> Index {
        let mut index = Index {
            symbols: HashMap::new(),
            intrinsics: HashMap::new(),
            effects: HashMap::new(),
        };
        for row in rows() {
            index.add_row(row);
        }
        math::add_rows(&mut index);
        index.add_effects(ExternalFn::Inactive, INACTIVE);
        for id in exceptions::WITHOUT_ROW {
            let found = exceptions::no_return_entry(id);
            index.add_effects(found.known, found.effects);
        }
        index
    }
    fn add_row(&mut self, row: &Row) {
        for name in row.names {
            let found = ExternalInfo {
                known: row.known,
                effects: row.effects,
                shape: None,
            };
            match name.strip_prefix("llvm.") {
                Some(stem) => {
                    self.intrinsics.insert(stem, found);
                }
                None => {
                    self.symbols.insert((*name).to_string(), found);
                }
            }
        }
        self.add_effects(row.known, row.effects);
    }
    /// Merges the effects of an id: an id with several rows has the join of all effects.
    fn add_effects(&mut self, known: ExternalFn, effects: Effects) {
        self.effects
            .entry(known)
            .and_modify(|e| *e = e.or(effects))
            .or_insert(effects);
    }
    /// Returns the semantics of the external function `name`.
    pub(crate) fn find(&self, name: &str) -> Option<ExternalInfo> {
        if let Some(rest) = name.strip_prefix("llvm.") {
            return intrinsic::stems(rest).find_map(|stem| self.intrinsics.get(stem).copied());
        }
        let plain = name.strip_prefix('\u{1}').unwrap_or(name);
        self.symbols
            .get(plain)
            .copied()
            .or_else(|| by_prefix(plain))
    }
}

/// Iterates over all rows except the rows of [`MathFn`], which has a separate table.
fn rows() -> impl Iterator<Item = &'static Row> {
    [
        math::OUT_ROWS,
        complex::ROWS,
        integer::ROWS,
        vector::ROWS,
        memory::ROWS,
        text::ROWS,
        compiler_hints::ROWS,
        system::ROWS,
        openmp::ROWS,
        parallel_intrinsics::ROWS,
        gpu::ROWS,
        exceptions::ROWS,
    ]
    .into_iter()
    .flatten()
}

/// Recognises families of functions by prefix or pattern.
fn by_prefix(name: &str) -> Option<ExternalInfo> {
    // table
    const PREFIXES: &[(&str, ExternalFn)] = &[
        ("__kmpc_", ExternalFn::OpenMp(OpenMpFn::Other)),
        ("__tgt_", ExternalFn::OpenMp(OpenMpFn::Target)),
        ("omp_", ExternalFn::OpenMp(OpenMpFn::Other)),
        ("GOMP_", ExternalFn::OpenMp(OpenMpFn::Other)),
        ("MPI_", ExternalFn::Mpi),
        ("PMPI_", ExternalFn::Mpi),
        ("mpi_", ExternalFn::Mpi),
        ("cuda", ExternalFn::Gpu),
        ("cuLaunch", ExternalFn::Gpu),
        ("cuMem", ExternalFn::Gpu),
        ("__cuda", ExternalFn::Gpu),
        ("hip", ExternalFn::Gpu),
        ("__hip", ExternalFn::Gpu),
        ("__nvvm_", ExternalFn::Gpu),
    ];
    let mut prefixes = PREFIXES.iter().chain(gpu::PREFIXES);
    if let Some(&(_, known)) = prefixes.find(|(p, _)| name.starts_with(p)) {
        return Some(ExternalInfo {
            known,
            effects: Effects::UNKNOWN,
            shape: None,
        });
    }
    exceptions::by_pattern(name)
        .or_else(|| memory::by_pattern(name))
        .or_else(|| system::by_pattern(name))
        .or_else(|| system::ubsan_handler(name))
        .or_else(|| fortran::by_pattern(name))
}

/// C library functions by which derivatives report an error and end the program. A program may define
/// functions with these names; every unit that needs the functions knows the program's functions first.
pub const REPORTING_FUNCTIONS: [&str; 3] = ["write", "dprintf", "abort"];

/// Returns the id of the external function `name`; `None` for an unknown callee.
pub fn lookup(name: &str) -> Option<ExternalFn> {
    INDEX.find(name).map(|found| found.known)
}

/// Returns whether a program may define a function with a table name: a name that ISO C does not reserve.
pub fn may_be_user_defined(name: &str) -> bool {
    matches!(lookup(name), Some(ExternalFn::Math(id)) if math::is_unreserved(name, id))
}

/// Returns the effects of the external function `name`. The result is finer than [`ExternalFn::effects`]: LLVM
/// intrinsics do not write errno, unlike the C functions.
pub fn effects(name: &str) -> Option<Effects> {
    INDEX.find(name).map(|found| found.effects)
}

impl ExternalFn {
    /// Returns the effects of the id: the join over all names.
    pub fn effects(self) -> Effects {
        let known = INDEX.effects.get(&self).copied();
        known.unwrap_or(Effects::UNKNOWN)
    }

    /// Returns whether programs take the function's address and the function has a derivative rule instead of
    /// a derivative. gradus-ad first rewrites indirect calls of such a function to direct calls.
    pub fn needs_direct_call(self) -> bool {
        use MemoryFn::{Calloc, Free, Malloc, Realloc};
        matches!(
            self,
            ExternalFn::Math(_) | ExternalFn::Memory(Malloc | Calloc | Realloc | Free)
        )
    }
}
