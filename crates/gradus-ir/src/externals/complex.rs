//! Complex functions of the C library and of compiler runtimes. The calling convention passes the parts one
//! by one, in a vector or behind a pointer.

use super::{Effects, ExternalFn, Row};

/// A complex function.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ComplexFn {
    Mul,
    Div,
    Arg,
    Sqrt,
    Exp,
    Log,
    Pow,
    Sin,
    Cos,
    Tan,
    Sinh,
    Cosh,
    Tanh,
    Asin,
    Acos,
    Atan,
    Asinh,
    Acosh,
    Atanh,
}

impl ComplexFn {
    /// Returns the C function for binary64 with the parts passed one by one; `None` if only the compiler's
    /// runtime has such a function.
    pub fn c_name(self) -> Option<&'static str> {
        let row = ROWS
            .iter()
            .find(|row| row.known == ExternalFn::Complex(self))?;
        row.names
            .first()
            .copied()
            .filter(|name| name.starts_with('c'))
    }
}

// table
pub(super) const ROWS: &[Row] = &[
    row(
        &["__muldc3", "__mulsc3", "__mulxc3"],
        ComplexFn::Mul,
        Effects::PURE,
    ),
    row(
        &["__divdc3", "__divsc3", "__divxc3"],
        ComplexFn::Div,
        Effects::PURE,
    ),
    row(&["carg", "cargf"], ComplexFn::Arg, Effects::PURE.errno()),
    row(&["csqrt", "csqrtf"], ComplexFn::Sqrt, Effects::PURE.errno()),
    row(&["cexp", "cexpf"], ComplexFn::Exp, Effects::PURE.errno()),
    row(&["clog", "clogf"], ComplexFn::Log, Effects::PURE.errno()),
    row(&["cpow", "cpowf"], ComplexFn::Pow, Effects::PURE.errno()),
    row(&["csin", "csinf"], ComplexFn::Sin, Effects::PURE.errno()),
    row(&["ccos", "ccosf"], ComplexFn::Cos, Effects::PURE.errno()),
    row(&["ctan", "ctanf"], ComplexFn::Tan, Effects::PURE.errno()),
    row(&["csinh", "csinhf"], ComplexFn::Sinh, Effects::PURE.errno()),
    row(&["ccosh", "ccoshf"], ComplexFn::Cosh, Effects::PURE.errno()),
    row(&["ctanh", "ctanhf"], ComplexFn::Tanh, Effects::PURE.errno()),
    row(&["casin", "casinf"], ComplexFn::Asin, Effects::PURE.errno()),
    row(&["cacos", "cacosf"], ComplexFn::Acos, Effects::PURE.errno()),
    row(&["catan", "catanf"], ComplexFn::Atan, Effects::PURE.errno()),
    row(
        &["casinh", "casinhf"],
        ComplexFn::Asinh,
        Effects::PURE.errno(),
    ),
    row(
        &["cacosh", "cacoshf"],
        ComplexFn::Acosh,
        Effects::PURE.errno(),
    ),
    row(
        &["catanh", "catanhf"],
        ComplexFn::Atanh,
        Effects::PURE.errno(),
    ),
];

const fn row(names: &'static [&'static str], id: ComplexFn, effects: Effects) -> Row {
    Row {
        names,
        known: ExternalFn::Complex(id),
        effects,
    }
}
