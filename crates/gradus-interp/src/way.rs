//! Runs that take the way of an earlier one: what its comparisons gave is given again, and smooth functions,
//! products and quotients may be the straight lines and planes that touch them where it came to them.
//!
//! The slopes are measured at the function, by two values beside the point; no formula of a derivative is in
//! them. Differences of a program where nothing is bent see slopes that they do not see else: of the sine of
//! a large multiple, which goes up and down many times within any step, or of a map that is taken again and
//! again and doubles with each time how far two points are apart.

use crate::machine::Machine;
use crate::trap::{Eval, TrapKind, fault};
use crate::value::Value;
use gradus_ir::BinaryOp;
use gradus_ir::known::MathFn;

/// What smooth functions are in a run that follows another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Curves {
    /// Themselves.
    Kept,
    /// Straight lines and planes.
    Straight,
}

/// A part of the way that a run took.
#[derive(Clone, Debug, PartialEq)]
pub struct Step(Kind);

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    /// What a comparison gave.
    Decision(Value),
    /// Where the run came to something bent.
    Bend(Bend, [f64; 3]),
}

/// What is bent, and smooth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Bend {
    /// A function, of up to three numbers.
    Call(MathFn),
    /// A product, or a quotient.
    Arithmetic(BinaryOp),
}

/// What a run has to do with an earlier one.
#[derive(Debug, Default)]
pub(crate) enum Way {
    /// Nothing.
    #[default]
    Own,
    /// It is the earlier one.
    Noted(Vec<Step>),
    /// It follows.
    Given(std::vec::IntoIter<Step>, Curves),
}

impl Machine<'_> {
    /// From now on, the way that the program takes is noted.
    pub fn note_way(&mut self) {
        self.way = Way::Noted(Vec::new());
    }
    /// The way since [`Machine::note_way`].
    pub fn noted_way(self) -> Vec<Step> {
        match self.way {
            Way::Noted(all) => all,
            _ => Vec::new(),
        }
    }
    /// From now on, comparisons give what they gave in an earlier run, whatever their operands are: the
    /// program takes the way that it took then.
    pub fn follow_way(&mut self, earlier: Vec<Step>, curves: Curves) {
        self.way = Way::Given(earlier.into_iter(), curves);
    }
    /// Whether a run that was to follow an earlier one has come to the end of its way.
    pub fn followed_all(&self) -> bool {
        matches!(&self.way, Way::Given(rest, _) if rest.len() == 0)
    }
}

impl Way {
    /// What a comparison gives that finds `own`.
    pub fn decided(&mut self, own: Value) -> Eval<Value> {
        match self {
            Way::Own => Ok(own),
            Way::Noted(all) => {
                all.push(Step(Kind::Decision(own.clone())));
                Ok(own)
            }
            Way::Given(rest, _) => match rest.next() {
                Some(Step(Kind::Decision(earlier))) => Ok(earlier),
                _ => astray("a comparison"),
            },
        }
    }

    /// Whether nothing is to be noted, and nothing is given.
    pub fn is_own(&self) -> bool {
        matches!(self, Way::Own)
    }

    /// What something bent gives at `x`; nothing where the interpreter does not know it.
    pub fn bent(
        &mut self,
        bend: Bend,
        x: [f64; 3],
        function: &dyn Fn([f64; 3]) -> Option<f64>,
    ) -> Eval<Option<f64>> {
        if self.is_own() || !is_smooth(bend) {
            return Ok(function(x));
        }
        match self {
            Way::Own => Ok(function(x)),
            Way::Noted(all) => {
                all.push(Step(Kind::Bend(bend, x)));
                Ok(function(x))
            }
            Way::Given(rest, curves) => match rest.next() {
                Some(Step(Kind::Bend(of, at))) if of == bend => Ok(match curves {
                    Curves::Kept => function(x),
                    Curves::Straight => plane(bend, at, x, function),
                }),
                _ => astray("a function"),
            },
        }
    }
}

fn astray<T>(what: &str) -> Eval<T> {
    let text = format!("{what} that the earlier run had not");
    fault(TrapKind::BadCall, text)
}

/// The plane that touches a function at a point, at `x`.
fn plane(
    bend: Bend,
    at: [f64; 3],
    x: [f64; 3],
    function: &dyn Fn([f64; 3]) -> Option<f64>,
) -> Option<f64> {
    let mut value = function(at)?;
    for i in (0..x.len()).filter(|&i| x[i] != at[i]) {
        let aside = aside(bend, i, at[i]);
        let (mut below, mut above) = (at, at);
        (below[i], above[i]) = (at[i] - aside, at[i] + aside);
        let slope = (function(above)? - function(below)?) / (above[i] - below[i]);
        value += slope * (x[i] - at[i]);
    }
    Some(value)
}

/// How far from a point the slope by number `i` is measured: where the values have digits to spare, at the
/// same distance to both sides, and, of functions that are steep or end at zero, by far not so far away as
/// that.
fn aside(bend: Bend, i: usize, at: f64) -> f64 {
    use MathFn::*;
    const NEAR: f64 = 1.0 / 8192.0;
    match bend {
        Bend::Call(Log | Log2 | Log10 | Sqrt | Rsqrt | Cbrt | Tgamma | Lgamma | Y0 | Y1 | Pow) => {
            NEAR * at.abs().min(1.0)
        }
        Bend::Arithmetic(BinaryOp::FDiv) if i == 1 => NEAR * at.abs(),
        Bend::Arithmetic(_) => NEAR * at.abs().max(1.0),
        Bend::Call(_) => NEAR.max(2.0 * (at.abs().next_up() - at.abs())),
    }
}

/// Whether a function has a slope wherever it is defined.
fn is_smooth(bend: Bend) -> bool {
    use MathFn::*;
    let Bend::Call(id) = bend else {
        return true;
    };
    match id {
        Sin | Cos | Tan | Sinpi | Cospi | Tanpi | Asin | Acos | Atan => true,
        Sinh | Cosh | Tanh | Asinh | Acosh | Atanh => true,
        Exp | Exp2 | Exp10 | Expm1 | Log | Log2 | Log10 | Log1p | Sqrt | Rsqrt | Cbrt => true,
        Erf | Erfc | Tgamma | Lgamma | J0 | J1 | Y0 | Y1 => true,
        Pow | Atan2 | Hypot | Fma | Fmuladd => true,
        _ => false,
    }
}
