//! Vectors: reductions of lanes, and loads and stores of some of them.

use super::{Effects, Known, Row};

/// A reduction of a vector's lanes to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ReduceFn {
    /// `start, vector → start + Σ`, in order unless reassociation is allowed.
    Fadd,
    /// `start, vector → start · Π`, in order unless reassociation is allowed.
    Fmul,
    /// The least, as [`super::MathFn::Minnum`].
    Fmin,
    /// The greatest, as [`super::MathFn::Maxnum`].
    Fmax,
    /// The least, as [`super::MathFn::Minimum`].
    Fminimum,
    /// The greatest, as [`super::MathFn::Maximum`].
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
    /// The greatest, signed.
    Smax,
    /// The least, signed.
    Smin,
    /// The greatest, unsigned.
    Umax,
    /// The least, unsigned.
    Umin,
}

/// Loads and stores of some lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MaskedFn {
    /// `ptr, mask, otherwise → vector`; an alignment between `ptr` and `mask` in older form.
    Load,
    /// `vector, ptr, mask`; an alignment between `ptr` and `mask` in older form.
    Store,
    /// `ptrs, mask, otherwise → vector`; an alignment between `ptrs` and `mask` in older form.
    Gather,
    /// `vector, ptrs, mask`; an alignment between `ptrs` and `mask` in older form.
    Scatter,
    /// `ptr, mask, otherwise → vector` from consecutive elements.
    ExpandLoad,
    /// `vector, ptr, mask` to consecutive elements.
    CompressStore,
}

/// The sum of floats.
pub(super) const SUM: &str = "llvm.vector.reduce.fadd";

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
        known: Known::Reduce(id),
        effects: Effects::PURE,
    }
}
const fn int(names: &'static [&'static str], id: ReduceFn) -> Row {
    Row {
        names,
        known: Known::Reduce(id),
        effects: Effects::PURE.inactive(),
    }
}
const fn masked(names: &'static [&'static str], id: MaskedFn, effects: Effects) -> Row {
    Row {
        names,
        known: Known::Masked(id),
        effects,
    }
}
