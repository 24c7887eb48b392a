//! Integer arithmetic: LLVM intrinsics and C library functions.

use super::{Effects, ExternalFn, Row};

/// Integer arithmetic; element-wise on vectors.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum IntFn {
    Smax,
    Smin,
    Umax,
    Umin,
    /// `a, i1 → |a|`.
    Abs,
    /// `a → |a|` of the C library.
    CAbs,
    Ctpop,
    /// `a, i1 → leading zeros`.
    Ctlz,
    /// `a, i1 → trailing zeros`.
    Cttz,
    Bswap,
    Bitreverse,
    Fshl,
    Fshr,
    SaddOverflow,
    UaddOverflow,
    SsubOverflow,
    UsubOverflow,
    SmulOverflow,
    UmulOverflow,
    SaddSat,
    UaddSat,
    SsubSat,
    UsubSat,
    SshlSat,
    UshlSat,
    /// Three-way comparison, signed.
    Scmp,
    /// Three-way comparison, unsigned.
    Ucmp,
    /// `<0, 1, 2 …>`.
    Stepvector,
    /// `base, n → mask` of the lanes `i` with `base + i < n`.
    ActiveLaneMask,
    Vscale,
    /// `ptr, mask → ptr`.
    Ptrmask,
    /// Index of the lowest set bit, counted from 1; 0 for 0.
    Ffs,
    /// Character classification and case conversion of the C library.
    Character,
}

// table
pub(super) const ROWS: &[Row] = &[
    row(&["llvm.smax"], IntFn::Smax),
    row(&["llvm.smin"], IntFn::Smin),
    row(&["llvm.umax"], IntFn::Umax),
    row(&["llvm.umin"], IntFn::Umin),
    row(&["llvm.abs"], IntFn::Abs),
    row(&["abs", "labs", "llabs"], IntFn::CAbs),
    row(&["llvm.ctpop"], IntFn::Ctpop),
    row(&["llvm.ctlz"], IntFn::Ctlz),
    row(&["llvm.cttz"], IntFn::Cttz),
    row(&["llvm.bswap"], IntFn::Bswap),
    row(&["llvm.bitreverse"], IntFn::Bitreverse),
    row(&["llvm.fshl"], IntFn::Fshl),
    row(&["llvm.fshr"], IntFn::Fshr),
    row(&["llvm.sadd.with.overflow"], IntFn::SaddOverflow),
    row(&["llvm.uadd.with.overflow"], IntFn::UaddOverflow),
    row(&["llvm.ssub.with.overflow"], IntFn::SsubOverflow),
    row(&["llvm.usub.with.overflow"], IntFn::UsubOverflow),
    row(&["llvm.smul.with.overflow"], IntFn::SmulOverflow),
    row(&["llvm.umul.with.overflow"], IntFn::UmulOverflow),
    row(&["llvm.sadd.sat"], IntFn::SaddSat),
    row(&["llvm.uadd.sat"], IntFn::UaddSat),
    row(&["llvm.ssub.sat"], IntFn::SsubSat),
    row(&["llvm.usub.sat"], IntFn::UsubSat),
    row(&["llvm.sshl.sat"], IntFn::SshlSat),
    row(&["llvm.ushl.sat"], IntFn::UshlSat),
    row(&["llvm.scmp"], IntFn::Scmp),
    row(&["llvm.ucmp"], IntFn::Ucmp),
    row(&["llvm.stepvector"], IntFn::Stepvector),
    row(&["llvm.get.active.lane.mask"], IntFn::ActiveLaneMask),
    row(&["llvm.vscale"], IntFn::Vscale),
    pointer(&["llvm.ptrmask"], IntFn::Ptrmask),
    row(&["ffs", "ffsl", "ffsll"], IntFn::Ffs),
    row(
        &[
            "isalpha", "isdigit", "isalnum", "isspace", "isupper", "islower", "ispunct", "isprint",
            "isxdigit", "iscntrl", "isgraph", "toupper", "tolower", "isblank",
        ],
        IntFn::Character,
    ),
];

const fn row(names: &'static [&'static str], id: IntFn) -> Row {
    Row {
        names,
        known: ExternalFn::Integer(id),
        effects: Effects::PURE.inactive(),
    }
}

const fn pointer(names: &'static [&'static str], id: IntFn) -> Row {
    Row {
        names,
        known: ExternalFn::Integer(id),
        effects: Effects::PURE.returning_argument(0),
    }
}
