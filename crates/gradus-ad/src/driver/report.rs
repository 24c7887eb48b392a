//! Report of one derivative: active values, saved values with reasons, and cost.

use crate::analysis::body_facts::BodyFacts;
use crate::analysis::forward_value::{Availability, Node, defining_region};
use crate::analysis::program_facts::ProgramFacts;
use crate::emit::parallel_loops::ParallelLoop;
use crate::tape::plan::{SaveLocation, TapePlan};
use crate::tape::remat::source;
use gradus_ir::externals::{ExternalFn, IntFn};
use gradus_ir::{BinaryOp, Body, Definition, Op, OpKind, Region, SourceSpan, Unit, Value};
use std::collections::HashMap;

/// A value saved on the tape.
#[derive(Clone, Debug, PartialEq)]
pub struct SavedValue {
    /// Source location of the definition.
    pub span: Option<SourceSpan>,
    /// Description of the value.
    pub description: String,
    /// Bytes per save.
    pub bytes: u64,
    /// Number of saves: the trip counts of the loops in which the value varies, outermost first, in the
    /// program's terms.
    pub trip_counts: Vec<String>,
    /// Total bytes, by the plan's estimate of trip counts.
    pub total_bytes: f64,
    /// Save location: `slot`, `array` or `frame`.
    pub place: &'static str,
    /// Reason for saving instead of recomputing.
    pub reason: String,
}

/// Decisions about one derivative.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Symbol of the primal.
    pub function: String,
    /// Number of active float values, and of all float values.
    pub active_values: (usize, usize),
    /// Values saved on the tape.
    pub saved: Vec<SavedValue>,
    /// Static count of arithmetic ops and math calls in the primal and in the derivative.
    pub ops: (usize, usize),
    /// The counts of `ops` weighted with the trip counts of enclosing loops, by the plan's estimate.
    pub runs: (f64, f64),
    /// Number of pointers whose activity is tested at run time.
    pub runtime_activity_tests: usize,
    /// Recomputed loops, and whether the forward pass omits the loop.
    pub recomputed_loops: Vec<(Option<SourceSpan>, bool)>,
    /// Parallel loops of the reverse pass.
    pub parallel: Vec<ParallelLoop>,
    /// True if a run-time alias check chooses between two versions.
    pub versions: bool,
    /// Bytes of the first block of the augmented primal's tape.
    pub block_bytes: Option<u64>,
    /// True if no value is active and no active value is written to memory: the derivative is zero.
    pub is_zero: bool,
    /// True if all outputs behind arguments lie in blocks that the function allocates: a combined gradient
    /// then receives no cotangents.
    pub lacks_cotangents: bool,
}

impl Report {
    /// Creates an empty report.
    pub(crate) fn new(unit: &Unit, func: gradus_ir::FuncId) -> Report {
        Report {
            function: unit.functions[func].name.clone(),
            ..Report::default()
        }
    }

    /// Creates the report of a derivative.
    pub(crate) fn of(
        unit: &Unit,
        closure: &ProgramFacts,
        facts: &BodyFacts<'_>,
        (plan, derivative): (&TapePlan, &Body),
    ) -> Report {
        let body = facts.body;
        let numbers = body
            .walk(body.root())
            .flat_map(|op| body.results(op))
            .filter(|v| unit.types.float_kind(body.ty(**v)).is_some());
        let (mut active, mut all, mut asked) = (0, 0, 0);
        for &value in numbers {
            all += 1;
            active += usize::from(facts.is_active(value));
        }
        for op in body.walk(body.root()) {
            asked += body
                .results(op)
                .iter()
                .filter(|v| facts.shadow_may_be_primal(**v))
                .count();
        }
        let (own, derived) = (
            count_arithmetic(unit, body),
            count_arithmetic(unit, derivative),
        );
        Report {
            function: unit.functions[facts.func].name.clone(),
            active_values: (active, all),
            saved: plan
                .saved
                .iter()
                .map(|node| saved_value(unit, facts, plan, *node))
                .collect(),
            ops: (own.0, derived.0),
            runs: (own.1, derived.1),
            runtime_activity_tests: asked,
            recomputed_loops: (facts.recomputed_loops().keys())
                .map(|lp| {
                    (
                        unit.span(body.ops[*lp].loc),
                        plan.skipped_loops.contains(lp),
                    )
                })
                .collect(),
            parallel: Vec::new(),
            versions: false,
            block_bytes: None,
            is_zero: is_zero_derivative(closure, facts),
            lacks_cotangents: false,
        }
    }
}

impl Report {
    /// Records the loops of the reverse pass that remain independent once all derivatives are built.
    pub fn settle(&mut self, derivative: &Body) {
        for one in &mut self.parallel {
            let Some(mirror) = one.reversed_loop else {
                one.is_concurrent = true;
                continue;
            };
            one.is_concurrent = derivative.is_independent(mirror);
            if !one.is_concurrent {
                let atomic = std::mem::take(&mut one.adds[1]);
                one.adds[0].extend(atomic);
            }
            one.reductions = derivative.operand_count(mirror).saturating_sub(1);
        }
    }
}

impl Report {
    /// Records that the adds of loads on `lines` are no longer atomic: `way` 0 for privatised accumulation, 1
    /// for two-phase accumulation.
    pub fn move_atomic_adds(&mut self, lines: &[u32], way: usize) {
        for line in lines {
            for one in self.parallel.iter_mut().filter(|one| one.is_concurrent) {
                let at = one.adds[1].iter().position(|other| other == line);
                if let Some(at) = at {
                    let line = one.adds[1].remove(at);
                    one.privatized_and_two_phase[way].push(line);
                    break;
                }
            }
        }
    }
}

/// Returns true if a function has no active value, and neither the function nor a callee writes active values
/// to memory. An active value of a callee comes from an active argument or reaches an active result, unless
/// it passes through memory.
fn is_zero_derivative(closure: &ProgramFacts, facts: &BodyFacts<'_>) -> bool {
    let body = facts.body;
    let mut params = body.params().iter();
    let mut results = body.walk(body.root()).flat_map(|op| body.results(op));
    !closure.writes_active_memory()
        && !params.any(|param| facts.is_active(*param))
        && !results.any(|value| facts.is_active(*value))
}

fn saved_value(unit: &Unit, facts: &BodyFacts<'_>, plan: &TapePlan, node: Node) -> SavedValue {
    let what = match node {
        Node::Primal(value) => describe(unit, facts, value),
        Node::Shadow(value) => format!("shadow of {}", describe(unit, facts, value)),
        Node::TripCount(_) => "trip count".to_string(),
        Node::CalleeTape(_) => "tape of the callee".to_string(),
        Node::ArrayBase(_) => "address of a tape array".to_string(),
        Node::Room(_) => "tail slot of a short tape array".to_string(),
        Node::Snapshot(number) => {
            format!("snapshot for {} loads", facts.snapshots[number].loads.len())
        }
        Node::SnapshotBlock(_) => "address of a snapshot".to_string(),
        Node::LastFrame(_) => "frame of the last iteration".to_string(),
    };
    let why = match source(unit, facts, node) {
        Availability::Recompute { .. } => "cheaper to save than to recompute".to_string(),
        _ => reason_for_saving(unit, facts, node),
    };
    let place = match plan.locations.get(&node) {
        Some(SaveLocation::Array(_) | SaveLocation::BlockElement(_)) => "array",
        Some(SaveLocation::Frame(..)) => "frame",
        _ => "slot",
    };
    let bytes = facts.saved_bytes(unit, node, facts.width as u32);
    let loops = defining_region(facts, node).map_or(Vec::new(), |region| {
        facts.loops_within_recomputed(region, facts.varying_loops(node))
    });
    let mut times: Vec<String> = loops
        .iter()
        .map(|l| trip_count_text(unit, facts, *l))
        .collect();
    let runs = |loops: &[Op]| -> f64 { loops.iter().map(|l| facts.trips(unit, *l)).product() };
    let mut total_bytes = bytes as f64 * runs(&loops);
    if let Node::Snapshot(number) = node {
        times.push("array length".to_string());
        let all = runs(&facts.varying_loops(node));
        total_bytes = 8.0 * facts.snapshot_float_count(unit, number) * runs(&loops) / all;
    }
    SavedValue {
        span: unit.span(facts.location(node)),
        description: what,
        bytes,
        trip_counts: times,
        total_bytes,
        place,
        reason: why,
    }
}

fn describe(unit: &Unit, facts: &BodyFacts<'_>, value: gradus_ir::Value) -> String {
    match facts.body.def_op(value) {
        Some(op) => match &facts.body.ops[op].name {
            Some(name) => format!("{name} ({})", facts.describe(unit, op)),
            None => facts.describe(unit, op),
        },
        None => "loop-carried value".to_string(),
    }
}

fn reason_for_saving(unit: &Unit, facts: &BodyFacts<'_>, node: Node) -> String {
    let value = match node {
        Node::Primal(value) | Node::Shadow(value) => value,
        Node::Snapshot(number) => {
            return facts.describe_clobber(unit, facts.snapshots[number].loads[0]);
        }
        _ => return "known only in the forward pass".to_string(),
    };
    let Some(op) = facts.body.def_op(value) else {
        return "changes in each iteration".to_string();
    };
    let why = match facts.body.kind(op) {
        OpKind::Load(_) => return facts.describe_clobber(unit, op),
        OpKind::Call(_) => "calls are not recomputed",
        OpKind::Alloca(_) => "address of a stack allocation",
        OpKind::For { .. } | OpKind::Loop { .. } => "result of a loop",
        OpKind::If | OpKind::Switch(_) => "result of a branch",
        _ => "not recomputable",
    };
    why.to_string()
}

/// Returns the trip count of a loop in the program's terms: a constant, an argument's name, or the line of
/// the loop.
fn trip_count_text(unit: &Unit, facts: &BodyFacts<'_>, at: Op) -> String {
    let by_line = || match unit.span(facts.body.ops[at].loc) {
        Some(span) => format!("iterations of line {}", span.line),
        None => "iterations".to_string(),
    };
    match facts.body.kind(at) {
        OpKind::For { .. } => {
            affine_text(unit, facts, facts.body.operand(at, 0)).unwrap_or_else(by_line)
        }
        _ => by_line(),
    }
}

/// Returns the text of a trip count: a constant, an argument, or an argument plus a constant.
fn affine_text(unit: &Unit, facts: &BodyFacts<'_>, value: Value) -> Option<String> {
    const MOST_STEPS: usize = 16;
    let (body, mut at, mut more) = (facts.body, value, 0i64);
    let with = |name: String, more: i64| match more {
        0 => name,
        n if n < 0 => format!("({name} - {})", n.unsigned_abs()),
        n => format!("({name} + {n})"),
    };
    for _ in 0..MOST_STEPS {
        if let Some(n) = body.as_int(unit, at) {
            return Some(n.wrapping_add(more).to_string());
        }
        if let Definition::Param(region, index) = body.values[at].def {
            let name = unit.functions[facts.func].param_names.get(index as usize)?;
            let is_argument = body.owner(region).is_none();
            return name.clone().filter(|_| is_argument).map(|n| with(n, more));
        }
        let op = body.def_op(at)?;
        let constant = |number: usize| body.as_int(unit, body.operand(op, number));
        at = match body.kind(op) {
            OpKind::Cast(_) => body.operand(op, 0),
            OpKind::Binary(BinaryOp::Add) => {
                more = more.wrapping_add(constant(1)?);
                body.operand(op, 0)
            }
            OpKind::Binary(BinaryOp::Sub) => {
                more = more.wrapping_sub(constant(1)?);
                body.operand(op, 0)
            }
            OpKind::Call(_) => match unit.known_callee(body, op)? {
                ExternalFn::Integer(IntFn::Smax | IntFn::Umax) => {
                    constant(2)?;
                    body.operand(op, 1)
                }
                _ => return None,
            },
            _ => return None,
        };
    }
    None
}

/// Returns the number of arithmetic ops and math calls in a body: static, and weighted with the plan's
/// estimate of trip counts.
fn count_arithmetic(unit: &Unit, body: &Body) -> (usize, f64) {
    let mut weights: HashMap<Region, f64> = HashMap::from([(body.root(), 1.0)]);
    let (mut count, mut runs) = (0, 0.0);
    for op in body.walk(body.root()) {
        let weight = body.parent(op).and_then(|r| weights.get(&r).copied());
        let weight = weight.unwrap_or(1.0);
        for &region in body.op_regions(op) {
            weights.insert(
                region,
                weight * crate::analysis::body_facts::trips(unit, body, op),
            );
        }
        let counts = match body.kind(op) {
            OpKind::Binary(op) => op.is_float(),
            OpKind::FNeg => true,
            OpKind::Call(_) => matches!(unit.known_callee(body, op), Some(ExternalFn::Math(_))),
            _ => false,
        };
        if counts {
            count += 1;
            runs += weight;
        }
    }
    (count, runs)
}
