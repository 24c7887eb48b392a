//! Report of one derivative: active values, saved values with reasons, and cost.

use crate::analysis::body_facts::{Facts, is_independent};
use crate::analysis::program_facts::ClosureFacts;
use crate::tape::plan::{Home, Plan};
use crate::tape::remat::{Node, Source, home_region, source};
use gradus_ir::externals::{ExternalFn, IntFn};
use gradus_ir::{BinaryOp, Body, Definition, Op, OpKind, Region, SourceSpan, Unit, Value};
use std::collections::HashMap;

/// A value saved on the tape.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// Source location of the definition.
    pub span: Option<SourceSpan>,
    /// Description of the value.
    pub what: String,
    /// Bytes per save.
    pub bytes: u64,
    /// Number of saves: the trip counts of the loops in which the value varies, outermost first, in the
    /// program's terms.
    pub times: Vec<String>,
    /// Total bytes, by the plan's estimate of trip counts.
    pub total_bytes: f64,
    /// Save location: `slot`, `array` or `frame`.
    pub place: &'static str,
    /// Reason for saving instead of recomputing.
    pub why: String,
}

/// A parallel loop in the reverse pass, or a whole function that such a loop calls.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParallelLoop {
    /// Source location of the loop; `None` for a function.
    pub span: Option<SourceSpan>,
    /// The reversed loop, valid until the derivative is transformed.
    pub(crate) mirror: Option<Op>,
    /// Lines of the loads with plain adjoint accumulation, and of the loads with atomic accumulation.
    pub adds: [Vec<u32>; 2],
    /// Lines of the loads with privatised accumulation per chunk, and of the loads with two-phase
    /// accumulation (even chunks, then odd chunks).
    pub in_parts: [Vec<u32>; 2],
    /// Number of reductions of adjoints of floats defined outside.
    pub sums: usize,
    /// True if the iterations run concurrently.
    pub at_once: bool,
}

/// Decisions about one derivative.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Symbol of the primal.
    pub function: String,
    /// Number of active float values, and of all float values.
    pub active_values: (usize, usize),
    /// Values saved on the tape.
    pub kept: Vec<Kept>,
    /// Static count of arithmetic ops and math calls in the primal and in the derivative.
    pub ops: (usize, usize),
    /// The counts of `ops` weighted with the trip counts of enclosing loops, by the plan's estimate.
    pub runs: (f64, f64),
    /// Number of pointers whose activity is tested at run time.
    pub asked_at_run_time: usize,
    /// Recomputed loops, and whether the forward pass omits the loop.
    pub replayed: Vec<(Option<SourceSpan>, bool)>,
    /// Parallel loops of the reverse pass.
    pub parallel: Vec<ParallelLoop>,
    /// True if a run-time alias check chooses between two versions.
    pub versions: bool,
    /// Bytes of the first block of the augmented primal's tape.
    pub block_bytes: Option<u64>,
    /// True if no value is active and no active value is written to memory: the derivative is zero.
    pub idle: bool,
    /// True if all outputs behind arguments lie in blocks that the function allocates: a combined gradient
    /// then receives no cotangents.
    pub unseeded: bool,
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
        closure: &ClosureFacts,
        facts: &Facts<'_>,
        (plan, derivative): (&Plan, &Body),
    ) -> Report {
        let body = facts.body;
        let numbers = body
            .walk(body.root())
            .flat_map(|op| body.results(op))
            .filter(|v| unit.types.float_kind(body.ty(**v)).is_some());
        let (mut active, mut all, mut asked) = (0, 0, 0);
        for &value in numbers {
            all += 1;
            active += usize::from(facts.active(value));
        }
        for op in body.walk(body.root()) {
            asked += body
                .results(op)
                .iter()
                .filter(|v| facts.shadow_may_be_primal(**v))
                .count();
        }
        let (own, derived) = (arithmetic(unit, body), arithmetic(unit, derivative));
        Report {
            function: unit.functions[facts.func].name.clone(),
            active_values: (active, all),
            kept: plan
                .kept
                .iter()
                .map(|node| kept(unit, facts, plan, *node))
                .collect(),
            ops: (own.0, derived.0),
            runs: (own.1, derived.1),
            asked_at_run_time: asked,
            replayed: (facts.all_replayed().keys())
                .map(|lp| (unit.span(body.ops[*lp].loc), plan.idle.contains(lp)))
                .collect(),
            parallel: Vec::new(),
            versions: false,
            block_bytes: None,
            idle: is_idle(closure, facts),
            unseeded: false,
        }
    }
}

impl Report {
    /// Records the loops of the reverse pass that remain independent once all derivatives are built.
    pub fn settle(&mut self, derivative: &Body) {
        for one in &mut self.parallel {
            let Some(mirror) = one.mirror else {
                one.at_once = true;
                continue;
            };
            one.at_once = is_independent(derivative, mirror);
            if !one.at_once {
                let atomic = std::mem::take(&mut one.adds[1]);
                one.adds[0].extend(atomic);
            }
            one.sums = derivative.operand_count(mirror).saturating_sub(1);
        }
    }
}

impl Report {
    /// Records that the adds of loads on `lines` are no longer atomic: `way` 0 for privatised accumulation, 1
    /// for two-phase accumulation.
    pub fn settle_adds(&mut self, lines: &[u32], way: usize) {
        for line in lines {
            for one in self.parallel.iter_mut().filter(|one| one.at_once) {
                let at = one.adds[1].iter().position(|other| other == line);
                if let Some(at) = at {
                    let line = one.adds[1].remove(at);
                    one.in_parts[way].push(line);
                    break;
                }
            }
        }
    }
}

/// Returns true if a function has no active value, and neither the function nor a callee writes active values
/// to memory. An active value of a callee comes from an active argument or reaches an active result, unless
/// it passes through memory.
fn is_idle(closure: &ClosureFacts, facts: &Facts<'_>) -> bool {
    let body = facts.body;
    let mut params = body.params().iter();
    let mut results = body.walk(body.root()).flat_map(|op| body.results(op));
    !closure.writes_active_memory()
        && !params.any(|param| facts.active(*param))
        && !results.any(|value| facts.active(*value))
}

fn kept(unit: &Unit, facts: &Facts<'_>, plan: &Plan, node: Node) -> Kept {
    let what = match node {
        Node::Primal(value) => describe(unit, facts, value),
        Node::Shadow(value) => format!("shadow of {}", describe(unit, facts, value)),
        Node::Count(_) => "number of iterations".to_string(),
        Node::CalleeTape(_) => "tape of a call".to_string(),
        Node::Base(_) => "address of a tape array".to_string(),
        Node::Room(_) => "room of a short tape array".to_string(),
        Node::Snapshot(number) => {
            format!("snapshot for {} loads", facts.snapshots[number].loads.len())
        }
        Node::SnapshotBlock(_) => "address of a snapshot".to_string(),
        Node::LastFrame(_) => "frame of the last iteration".to_string(),
    };
    let why = match source(unit, facts, node) {
        Source::Recompute { .. } => "cheaper to keep than to compute again".to_string(),
        _ => why_not_again(unit, facts, node),
    };
    let place = match plan.homes.get(&node) {
        Some(Home::Array(_) | Home::Block(_)) => "array",
        Some(Home::Frame(..)) => "frame",
        _ => "slot",
    };
    let bytes = facts.kept_bytes(unit, node, facts.width as u32);
    let loops = home_region(facts, node).map_or(Vec::new(), |region| {
        facts.within_replay(region, facts.varying_loops(node))
    });
    let mut times: Vec<String> = loops.iter().map(|l| length(unit, facts, *l)).collect();
    let runs = |loops: &[Op]| -> f64 { loops.iter().map(|l| facts.trips(unit, *l)).product() };
    let mut total_bytes = bytes as f64 * runs(&loops);
    if let Node::Snapshot(number) = node {
        times.push("the array".to_string());
        let all = runs(&facts.varying_loops(node));
        total_bytes = 8.0 * facts.snapshot_numbers(unit, number) * runs(&loops) / all;
    }
    Kept {
        span: unit.span(facts.location(node)),
        what,
        bytes,
        times,
        total_bytes,
        place,
        why,
    }
}

fn describe(unit: &Unit, facts: &Facts<'_>, value: gradus_ir::Value) -> String {
    match facts.body.def_op(value) {
        Some(op) => match &facts.body.ops[op].name {
            Some(name) => format!("{name} ({})", facts.describe(unit, op)),
            None => facts.describe(unit, op),
        },
        None => "a carried value".to_string(),
    }
}

fn why_not_again(unit: &Unit, facts: &Facts<'_>, node: Node) -> String {
    let value = match node {
        Node::Primal(value) | Node::Shadow(value) => value,
        Node::Snapshot(number) => return facts.loss_of(unit, facts.snapshots[number].loads[0]),
        _ => return "it is known only while it runs".to_string(),
    };
    let Some(op) = facts.body.def_op(value) else {
        return "each iteration changes it".to_string();
    };
    let why = match facts.body.kind(op) {
        OpKind::Load(_) => return facts.loss_of(unit, op),
        OpKind::Call(_) => "a call is not made twice",
        OpKind::Alloca(_) => "the address of an allocation",
        OpKind::For { .. } | OpKind::Loop { .. } => "the result of a loop",
        OpKind::If | OpKind::Switch(_) => "the result of a branch",
        _ => "it cannot be computed again",
    };
    why.to_string()
}

/// Returns the trip count of a loop in the program's terms: a constant, an argument's name, or the line of
/// the loop.
fn length(unit: &Unit, facts: &Facts<'_>, at: Op) -> String {
    let by_line = || match unit.span(facts.body.ops[at].loc) {
        Some(span) => format!("iterations of line {}", span.line),
        None => "iterations".to_string(),
    };
    match facts.body.kind(at) {
        OpKind::For { .. } => named(unit, facts, facts.body.operand(at, 0)).unwrap_or_else(by_line),
        _ => by_line(),
    }
}

/// Returns the text of a trip count: a constant, an argument, or an argument plus a constant.
fn named(unit: &Unit, facts: &Facts<'_>, value: Value) -> Option<String> {
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
            OpKind::Call(_) => match unit.callee(body, op).and_then(|f| unit.known(f))? {
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
fn arithmetic(unit: &Unit, body: &Body) -> (usize, f64) {
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
            OpKind::Call(_) => matches!(
                unit.callee(body, op).and_then(|f| unit.known(f)),
                Some(ExternalFn::Math(_))
            ),
            _ => false,
        };
        if counts {
            count += 1;
            runs += weight;
        }
    }
    (count, runs)
}
