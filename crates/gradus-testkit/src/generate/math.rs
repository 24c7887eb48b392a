//! The math functions called by IR programs, each with arguments in a smooth domain and of moderate size.

use super::Writer;

/// The domain of an argument.
#[derive(Clone, Copy)]
enum Domain {
    /// Between −1 and 1.
    Tame,
    /// Between −0.9 and 0.9.
    Inner,
    /// From 0.5 to 1.5.
    Positive,
    /// From 1.5 to 2.5.
    OverOne,
    /// A small integer.
    Int,
}

use Domain::{Inner, Int, OverOne, Positive, Tame};

// table
const FUNCTIONS: &[(&str, &[Domain])] = &[
    ("sin", &[Tame]),
    ("cos", &[Tame]),
    ("tan", &[Inner]),
    ("asin", &[Inner]),
    ("acos", &[Inner]),
    ("atan", &[Tame]),
    ("atan2", &[Tame, Positive]),
    ("sinh", &[Tame]),
    ("cosh", &[Tame]),
    ("tanh", &[Tame]),
    ("asinh", &[Tame]),
    ("acosh", &[OverOne]),
    ("atanh", &[Inner]),
    ("exp", &[Tame]),
    ("exp2", &[Tame]),
    ("exp10", &[Inner]),
    ("expm1", &[Tame]),
    ("log", &[Positive]),
    ("log2", &[Positive]),
    ("log10", &[Positive]),
    ("log1p", &[Inner]),
    ("llvm.sqrt.f64", &[Positive]),
    ("cbrt", &[Positive]),
    ("pow", &[Positive, Tame]),
    ("llvm.powi.f64.i32", &[Tame, Int]),
    ("hypot", &[Tame, Positive]),
    ("llvm.fabs.f64", &[Tame]),
    ("copysign", &[Tame, Tame]),
    ("fmin", &[Tame, Tame]),
    ("fmax", &[Tame, Tame]),
    ("fdim", &[Tame, Tame]),
    ("floor", &[OverOne]),
    ("ceil", &[OverOne]),
    ("llvm.trunc.f64", &[OverOne]),
    ("rint", &[OverOne]),
    ("round", &[OverOne]),
    ("fma", &[Tame, Tame, Tame]),
    ("llvm.fmuladd.f64", &[Tame, Tame, Tame]),
    ("fmod", &[Tame, Positive]),
    ("remainder", &[Tame, OverOne]),
    ("erf", &[Tame]),
    ("erfc", &[Tame]),
    ("tgamma", &[OverOne]),
    ("lgamma", &[OverOne]),
    ("j0", &[Tame]),
    ("j1", &[Tame]),
    ("y0", &[OverOne]),
    ("ldexp", &[Tame, Int]),
];

/// Returns the names of all functions.
pub(crate) fn math_names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.iter().map(|(name, _)| *name)
}

/// Returns the declarations.
pub(super) fn declarations() -> String {
    let line = |(name, domains): &(&str, &[Domain])| {
        let types: Vec<&str> = domains
            .iter()
            .map(|d| if matches!(d, Int) { "i32" } else { "f64" })
            .collect();
        format!("declare @{name}({}) -> f64\n", types.join(", "))
    };
    FUNCTIONS.iter().map(line).collect()
}

/// Emits a call of a random function.
pub(super) fn math_call(writer: &mut Writer) {
    let (name, domains) = *writer.random.pick(FUNCTIONS);
    let arguments: Vec<String> = domains.iter().map(|d| argument(writer, *d)).collect();
    let value = writer.value(format!("call @{name}({})", arguments.join(", ")));
    writer.floats.push(value);
}

fn argument(writer: &mut Writer, domain: Domain) -> String {
    if let Int = domain {
        let int = writer.int();
        let low = writer.value(format!("and {int}, 3"));
        return writer.value(format!("trunc {low} -> i32"));
    }
    let number = writer.float();
    let tame = writer.bounded(&number);
    match domain {
        Tame | Int => tame,
        Inner => writer.value(format!("fmul {tame}, 0.9")),
        Positive | OverOne => {
            let square = writer.value(format!("fmul {tame}, {tame}"));
            let least = if matches!(domain, Positive) { 0.5 } else { 1.5 };
            writer.value(format!("fadd {square}, {least:?}"))
        }
    }
}
