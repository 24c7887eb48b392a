//! Linearised replay: a run with the control flow of an earlier run. Comparisons return the recorded results.
//! Smooth functions, products and quotients may be replaced by tangents (lines and planes) at the recorded
//! operands.
//!
//! Slopes are measured by central differences of the primal function, without derivative formulas. Finite
//! differences of a linearised program are thus independent of the step size. Finite differences of the
//! original program are inaccurate for some functions: the sine of a large multiple oscillates within any
//! step, and an iterated chaotic map doubles the distance of two points in each iteration.

use crate::state::machine::Machine;
use crate::trap::{Eval, TrapKind, fault};
use crate::values::value::Value;
use gradus_ir::BinaryOp;
use gradus_ir::externals::MathFn;

/// The treatment of smooth operations in a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayMode {
    /// Evaluated exactly.
    Exact,
    /// Linearised at the recorded operands.
    Linearized,
}

/// One event of a recorded run.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayStep(Kind);

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    /// The result of a comparison.
    Comparison(Value),
    /// A smooth operation and the operands.
    Bend(SmoothOp, [f64; 3]),
}

/// A smooth operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum SmoothOp {
    /// A function of up to three numbers.
    Call(MathFn),
    /// A product or quotient.
    Arithmetic(BinaryOp),
}

/// The recording state of a machine.
#[derive(Debug, Default)]
pub(crate) enum ReplayState {
    /// Neither records nor replays.
    #[default]
    Off,
    /// Records.
    Recording(Vec<ReplayStep>),
    /// Replays a recorded run.
    Replaying(std::vec::IntoIter<ReplayStep>, ReplayMode),
}

impl Machine<'_> {
    /// Starts recording comparisons and smooth operations.
    pub fn start_recording(&mut self) {
        self.replay = ReplayState::Recording(Vec::new());
    }
    /// Returns the events recorded since [`Machine::start_recording`].
    pub fn recorded_steps(self) -> Vec<ReplayStep> {
        match self.replay {
            ReplayState::Recording(all) => all,
            _ => Vec::new(),
        }
    }
    /// Starts a replay of an earlier run: comparisons return the recorded results regardless of the operands;
    /// control flow therefore equals the earlier run's control flow.
    pub fn start_replay(&mut self, earlier: Vec<ReplayStep>, curves: ReplayMode) {
        self.replay = ReplayState::Replaying(earlier.into_iter(), curves);
    }
    /// Returns whether a replay has consumed all recorded events.
    pub fn has_replayed_all(&self) -> bool {
        matches!(&self.replay, ReplayState::Replaying(rest, _) if rest.len() == 0)
    }
}

impl ReplayState {
    /// Returns the result of a comparison whose evaluated result is `own`.
    pub fn comparison_result(&mut self, own: Value) -> Eval<Value> {
        match self {
            ReplayState::Off => Ok(own),
            ReplayState::Recording(all) => {
                all.push(ReplayStep(Kind::Comparison(own.clone())));
                Ok(own)
            }
            ReplayState::Replaying(rest, _) => match rest.next() {
                Some(ReplayStep(Kind::Comparison(earlier))) => Ok(earlier),
                _ => diverged("a comparison"),
            },
        }
    }

    /// Returns whether the machine neither records nor replays.
    pub fn is_off(&self) -> bool {
        matches!(self, ReplayState::Off)
    }

    /// Returns the result of a smooth operation at `x`; `None` if the interpreter does not implement the
    /// function.
    pub fn smooth_result(
        &mut self,
        bend: SmoothOp,
        x: [f64; 3],
        function: &dyn Fn([f64; 3]) -> Option<f64>,
    ) -> Eval<Option<f64>> {
        if self.is_off() || !is_smooth(bend) {
            return Ok(function(x));
        }
        match self {
            ReplayState::Off => Ok(function(x)),
            ReplayState::Recording(all) => {
                all.push(ReplayStep(Kind::Bend(bend, x)));
                Ok(function(x))
            }
            ReplayState::Replaying(rest, curves) => match rest.next() {
                Some(ReplayStep(Kind::Bend(of, at))) if of == bend => Ok(match curves {
                    ReplayMode::Exact => function(x),
                    ReplayMode::Linearized => tangent_plane(bend, at, x, function),
                }),
                _ => diverged("a function"),
            },
        }
    }
}

fn diverged<T>(what: &str) -> Eval<T> {
    let text = format!("the run diverges from the recorded run at {what}");
    fault(TrapKind::BadCall, text)
}

/// Evaluates at `x` the tangent plane of a function at `at`.
fn tangent_plane(
    bend: SmoothOp,
    at: [f64; 3],
    x: [f64; 3],
    function: &dyn Fn([f64; 3]) -> Option<f64>,
) -> Option<f64> {
    let mut value = function(at)?;
    for i in (0..x.len()).filter(|&i| x[i] != at[i]) {
        let aside = difference_step(bend, i, at[i]);
        let (mut below, mut above) = (at, at);
        (below[i], above[i]) = (at[i] - aside, at[i] + aside);
        let slope = (function(above)? - function(below)?) / (above[i] - below[i]);
        value += slope * (x[i] - at[i]);
    }
    Some(value)
}

/// Returns half the step of the central difference in operand `i`. The step leaves enough significant digits
/// and is equal on both sides. For steep functions and functions with a boundary at zero, the step is
/// relative to the distance from zero.
fn difference_step(bend: SmoothOp, i: usize, at: f64) -> f64 {
    use MathFn::*;
    const NEAR: f64 = 1.0 / 8192.0;
    match bend {
        SmoothOp::Call(
            Log | Log2 | Log10 | Sqrt | Rsqrt | Cbrt | Tgamma | Lgamma | Y0 | Y1 | Pow,
        ) => NEAR * at.abs().min(1.0),
        SmoothOp::Arithmetic(BinaryOp::FDiv) if i == 1 => NEAR * at.abs(),
        SmoothOp::Arithmetic(_) => NEAR * at.abs().max(1.0),
        SmoothOp::Call(_) => NEAR.max(2.0 * (at.abs().next_up() - at.abs())),
    }
}

/// Returns whether an operation is differentiable on the whole domain.
fn is_smooth(bend: SmoothOp) -> bool {
    use MathFn::*;
    let SmoothOp::Call(id) = bend else {
        return true;
    };
    match id {
        Sin | Cos | Tan | Sinpi | Cospi | Tanpi | Asin | Acos | Atan => true,
        Asinpi | Acospi | Atanpi | Atan2pi | Exp2m1 | Exp10m1 | Log2p1 | Log10p1 => true,
        Sinh | Cosh | Tanh | Asinh | Acosh | Atanh => true,
        Exp | Exp2 | Exp10 | Expm1 | Log | Log2 | Log10 | Log1p | Sqrt | Rsqrt | Cbrt => true,
        Erf | Erfc | Tgamma | Lgamma | J0 | J1 | Y0 | Y1 => true,
        Pow | Atan2 | Hypot | Fma | Fmuladd => true,
        // Any other function is evaluated exactly, which is right for kinks and steps.
        _ => false,
    }
}
