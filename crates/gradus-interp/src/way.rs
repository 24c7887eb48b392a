//! Runs that take the way of an earlier one: what its comparisons gave is given again, and smooth functions
//! may be the straight lines that touch them where it called them.
//!
//! The line's slope is measured at the function, by two values beside the point; no formula of a derivative
//! is in it. Differences of a program whose functions are straight see slopes that they do not see else: of
//! the sine of a large multiple, which goes up and down many times within any step.

use crate::machine::Machine;
use crate::trap::{Eval, TrapKind, fault};
use crate::value::Value;
use gradus_ir::known::MathFn;

/// What smooth functions of one number are in a run that follows another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Curves {
    /// Themselves.
    Kept,
    /// Straight lines.
    Straight,
}

/// A part of the way that a run took.
#[derive(Clone, Debug, PartialEq)]
pub struct Step(Kind);

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    /// What a comparison gave.
    Decision(Value),
    /// Where a smooth function was called.
    Call(MathFn, f64),
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

    /// What a function of one number gives at `x`.
    pub fn called(
        &mut self,
        id: MathFn,
        x: f64,
        function: &dyn Fn(f64) -> Option<f64>,
    ) -> Eval<Option<f64>> {
        if !is_smooth(id) {
            return Ok(function(x));
        }
        match self {
            Way::Own => Ok(function(x)),
            Way::Noted(all) => {
                all.push(Step(Kind::Call(id, x)));
                Ok(function(x))
            }
            Way::Given(rest, curves) => match rest.next() {
                Some(Step(Kind::Call(of, at))) if of == id => Ok(match curves {
                    Curves::Kept => function(x),
                    Curves::Straight => line(id, at, x, function),
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

/// The line that touches a function at a point, at `x`.
fn line(id: MathFn, at: f64, x: f64, function: &dyn Fn(f64) -> Option<f64>) -> Option<f64> {
    let aside = aside(id, at);
    let (below, above) = (at - aside, at + aside);
    let slope = (function(above)? - function(below)?) / (above - below);
    Some(function(at)? + slope * (x - at))
}

/// How far from a point the slope is measured: where the values have digits to spare, at the same distance to
/// both sides, and, of functions that are steep or end at zero, by far not so far away as that.
fn aside(id: MathFn, at: f64) -> f64 {
    use MathFn::*;
    const NEAR: f64 = 1.0 / 8192.0;
    match id {
        Log | Log2 | Log10 | Sqrt | Rsqrt | Cbrt | Tgamma | Lgamma | Y0 | Y1 => {
            NEAR * at.abs().min(1.0)
        }
        _ => NEAR.max(2.0 * (at.abs().next_up() - at.abs())),
    }
}

/// Whether a function of one number has a slope wherever it is defined.
fn is_smooth(id: MathFn) -> bool {
    use MathFn::*;
    match id {
        Sin | Cos | Tan | Sinpi | Cospi | Tanpi | Asin | Acos | Atan => true,
        Sinh | Cosh | Tanh | Asinh | Acosh | Atanh => true,
        Exp | Exp2 | Exp10 | Expm1 | Log | Log2 | Log10 | Log1p | Sqrt | Rsqrt | Cbrt => true,
        Erf | Erfc | Tgamma | Lgamma | J0 | J1 | Y0 | Y1 => true,
        _ => false,
    }
}
