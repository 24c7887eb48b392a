//! Vector intrinsics: lane reductions, and masked loads and stores.

use super::{Effects, ExternalFn, Row};

/// A reduction of a vector's lanes to a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ReduceFn {
    /// `start, vector → start + Σ`, in order unless reassociation is allowed.
    Fadd,
    /// `start, vector → start · Π`, in order unless reassociation is allowed.
    Fmul,
    /// The minimum, as [`super::MathFn::Minnum`].
    Fmin,
    /// The maximum, as [`super::MathFn::Maxnum`].
    Fmax,
    /// The minimum, as [`super::MathFn::Minimum`].
    Fminimum,
    /// The maximum, as [`super::MathFn::Maximum`].
    Fmaximum,
    /// Sum of integers.
    Add,
    /// Product of integers.
    Mul,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// The signed maximum.
    Smax,
    /// The signed minimum.
    Smin,
    /// The unsigned maximum.
    Umax,
    /// The unsigned minimum.
    Umin,
}

/// Masked loads and stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MaskedFn {
    /// `ptr, mask, pass-through → vector`; the older form has an alignment between `ptr` and `mask`.
    Load,
    /// `vector, ptr, mask`; the older form has an alignment between `ptr` and `mask`.
    Store,
    /// `ptrs, mask, pass-through → vector`; the older form has an alignment between `ptrs` and `mask`.
    Gather,
    /// `vector, ptrs, mask`; the older form has an alignment between `ptrs` and `mask`.
    Scatter,
    /// `ptr, mask, pass-through → vector` from consecutive elements.
    ExpandLoad,
    /// `vector, ptr, mask` to consecutive elements.
    CompressStore,
}

/// The name stem of the float sum reduction.
pub(crate) const SUM: &str = "llvm.vector.reduce.fadd";

// table
pub(super) const ROWS: &[Row] = &[
    float(&[SUM], ReduceFn::Fadd),
    float(&["llvm.vector.reduce.fmul"], ReduceFn::Fmul),
    float(&["llvm.vector.reduce.fmin"], ReduceFn::Fmin),
    float(&["llvm.vector.reduce.fmax"], ReduceFn::Fmax),
    float(&["llvm.vector.reduce.fminimum"], ReduceFn::Fminimum),
    float(&["llvm.vector.reduce.fmaximum"], ReduceFn::Fmaximum),
    int(&["llvm.vector.reduce.add"], ReduceFn::Add),
    int(&["llvm.vector.reduce.mul"], ReduceFn::Mul),
    int(&["llvm.vector.reduce.and"], ReduceFn::And),
    int(&["llvm.vector.reduce.or"], ReduceFn::Or),
    int(&["llvm.vector.reduce.xor"], ReduceFn::Xor),
    int(&["llvm.vector.reduce.smax"], ReduceFn::Smax),
    int(&["llvm.vector.reduce.smin"], ReduceFn::Smin),
    int(&["llvm.vector.reduce.umax"], ReduceFn::Umax),
    int(&["llvm.vector.reduce.umin"], ReduceFn::Umin),
    masked(
        &["llvm.masked.load"],
        MaskedFn::Load,
        Effects::PURE.reading(&[0]),
    ),
    masked(
        &["llvm.masked.store"],
        MaskedFn::Store,
        Effects::PURE.writing(&[1]),
    ),
    masked(
        &["llvm.masked.gather"],
        MaskedFn::Gather,
        Effects::PURE.reading(&[0]),
    ),
    masked(
        &["llvm.masked.scatter"],
        MaskedFn::Scatter,
        Effects::PURE.writing(&[1]),
    ),
    masked(
        &["llvm.masked.expandload"],
        MaskedFn::ExpandLoad,
        Effects::PURE.reading(&[0]),
    ),
    masked(
        &["llvm.masked.compressstore"],
        MaskedFn::CompressStore,
        Effects::PURE.writing(&[1]),
    ),
];

const fn float(names: &'static [&'static str], id: ReduceFn) -> Row {
    Row {
        names,
        known: ExternalFn::Reduce(id),
        effects: Effects::PURE,
    }
}
const fn int(names: &'static [&'static str], id: ReduceFn) -> Row {
    Row {
        names,
        known: ExternalFn::Reduce(id),
        effects: Effects::PURE.inactive(),
    }
}
const fn masked(names: &'static [&'static str], id: MaskedFn, effects: Effects) -> Row {
    Row {
        names,
        known: ExternalFn::Masked(id),
        effects,
    }
}
