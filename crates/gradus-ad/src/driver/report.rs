//! Report of one derivative: active values, saved values with reasons, and cost.

use crate::analysis::body_facts::{BodyFacts, Clobber};
use crate::analysis::forward_value::{Availability, Node, defining_region};
use crate::analysis::program_facts::ProgramFacts;
use crate::emit::parallel_loops::ParallelLoop;
use crate::tape::plan::{SaveLocation, TapePlan};
use crate::tape::remat::source;
use gradus_ir::externals::{ExternalFn, IntFn};
use gradus_ir::{BinaryOp, Body, Definition, LocId, Op, OpKind, Region, SourceSpan, Unit, Value};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

/// A value saved on the tape.
#[derive(Clone, Debug, PartialEq)]
pub struct SavedValue {
    /// Source location of the definition.
    pub span: Option<SourceSpan>,
    /// Description of the value.
    pub description: String,
    /// Bytes per save.
    pub bytes: u64,
    /// The loops in which the value varies, outermost first; the product of the trip counts is the number of
    /// saves.
    pub loops: Vec<SavingLoop>,
    /// Total bytes, by the plan's estimate of trip counts.
    pub total_bytes: f64,
    /// Save location: `slot`, `array` or `frame`.
    pub place: &'static str,
    /// Reason for saving instead of recomputing.
    pub reason: SaveReason,
    /// The reason as text, with the clobbering op.
    pub reason_text: String,
    /// Source location of the op that overwrites or frees the memory, for a clobbered load.
    pub clobber: Option<SourceSpan>,
}

/// A dimension of the saves of a value: a loop, or the length of a copied array.
#[derive(Clone, Debug, PartialEq)]
pub struct SavingLoop {
    /// Source location of the loop; `None` for the length of an array.
    pub span: Option<SourceSpan>,
    /// The trip count in the program's terms.
    pub trips: String,
    /// The plan's estimate of the trip count.
    pub estimate: f64,
}

/// The reason for which a value is saved instead of recomputed. Reports in JSON hold the variant's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SaveReason {
    /// A later op may overwrite the memory.
    Overwritten,
    /// A later op may free the memory.
    Freed,
    /// The caller may change the memory between the passes.
    CallerWrites,
    /// The load cannot be repeated.
    UnrepeatableLoad,
    /// Recomputation costs more.
    CheaperToSave,
    /// Calls are not recomputed.
    Call,
    /// The address of a stack allocation.
    StackAddress,
    /// The result of a loop.
    LoopResult,
    /// The result of a branch.
    BranchResult,
    /// A value that changes in each iteration.
    LoopCarried,
    /// Known only in the forward pass, such as a trip count or a callee's tape.
    ForwardPassOnly,
    /// Not recomputable for another reason.
    NotRecomputable,
}

impl SaveReason {
    /// Returns the reason as text, without the clobbering op.
    fn text(self) -> &'static str {
        match self {
            SaveReason::Overwritten => "overwritten later",
            SaveReason::Freed => "freed later",
            SaveReason::CallerWrites => "the caller may overwrite the memory",
            SaveReason::UnrepeatableLoad => "the load cannot be repeated",
            SaveReason::CheaperToSave => "cheaper to save than to recompute",
            SaveReason::Call => "calls are not recomputed",
            SaveReason::StackAddress => "address of a stack allocation",
            SaveReason::LoopResult => "result of a loop",
            SaveReason::BranchResult => "result of a branch",
            SaveReason::LoopCarried => "changes in each iteration",
            SaveReason::ForwardPassOnly => "known only in the forward pass",
            SaveReason::NotRecomputable => "not recomputable",
        }
    }
}

/// Cost and activity of a source line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LineCost {
    /// Estimated number of executed operations in the primal.
    pub primal: f64,
    /// Estimated number of executed operations in the derivative.
    pub derivative: f64,
    /// Number of active float values.
    pub active: usize,
    /// Number of float values.
    pub floats: usize,
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
    /// Cost and activity by file and line of the user; ops without a line are left out.
    pub lines: BTreeMap<(String, u32), LineCost>,
    /// Number of pointers whose activity is tested at run time.
    pub runtime_activity_tests: usize,
    /// True if the derivative holds only for a program that keeps the aliasing rules of its language
    /// ([`AliasSets::assumes_aliasing_rules`]).
    pub assumes_aliasing_rules: bool,
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
            ArithmeticCount::of(unit, body),
            ArithmeticCount::of(unit, derivative),
        );
        Report {
            function: unit.functions[facts.func].name.clone(),
            active_values: (active, all),
            saved: plan
                .saved
                .iter()
                .map(|node| saved_value(unit, facts, plan, *node))
                .collect(),
            ops: (own.ops, derived.ops),
            runs: (own.total, derived.total),
            lines: line_costs(unit, facts, &own, &derived),
            runtime_activity_tests: asked,
            assumes_aliasing_rules: closure.memory.assumes_aliasing_rules(),
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
    let (reason, clobber) = match source(unit, facts, node) {
        Availability::Recompute { .. } => (SaveReason::CheaperToSave, None),
        _ => reason_for_saving(facts, node),
    };
    let load = match node {
        Node::Primal(value) | Node::Shadow(value) => facts.body.def_op(value),
        Node::Snapshot(number) => facts.snapshots[number].loads.first().copied(),
        _ => None,
    };
    let reason_text = match (reason, load) {
        (SaveReason::Overwritten | SaveReason::Freed, Some(load)) => {
            facts.describe_clobber(unit, load)
        }
        _ => reason.text().to_string(),
    };
    let place = match plan.locations.get(&node) {
        Some(SaveLocation::Array(_) | SaveLocation::BlockElement(_)) => "array",
        Some(SaveLocation::Frame(..)) => "frame",
        _ => "slot",
    };
    let bytes = facts.saved_bytes(unit, node, facts.width as u32);
    let varying = defining_region(facts, node).map_or(Vec::new(), |region| {
        facts.loops_within_recomputed(region, facts.varying_loops(node))
    });
    let mut loops: Vec<SavingLoop> = varying
        .iter()
        .map(|l| SavingLoop {
            span: unit.span(facts.body.ops[*l].loc),
            trips: trip_count_text(unit, facts, *l),
            estimate: facts.estimated_trip_count(unit, *l),
        })
        .collect();
    let runs = |loops: &[Op]| -> f64 {
        loops
            .iter()
            .map(|l| facts.estimated_trip_count(unit, *l))
            .product()
    };
    let mut total_bytes = bytes as f64 * runs(&varying);
    if let Node::Snapshot(number) = node {
        let all = runs(&facts.varying_loops(node));
        let length = 8.0 * facts.snapshot_float_count(unit, number) / all;
        loops.push(SavingLoop {
            span: None,
            trips: "array length".to_string(),
            estimate: length / (bytes as f64).max(1.0),
        });
        total_bytes = length * runs(&varying);
    }
    SavedValue {
        span: unit.span(facts.location(node)),
        description: what,
        bytes,
        loops,
        total_bytes,
        place,
        reason,
        reason_text,
        clobber: clobber.and_then(|op| unit.span(facts.body.ops[op].loc)),
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

/// Returns the reason for saving a value that cannot be recomputed, and the op that clobbers a load.
fn reason_for_saving(facts: &BodyFacts<'_>, node: Node) -> (SaveReason, Option<Op>) {
    let value = match node {
        Node::Primal(value) | Node::Shadow(value) => value,
        Node::Snapshot(number) => return clobber_reason(facts, facts.snapshots[number].loads[0]),
        _ => return (SaveReason::ForwardPassOnly, None),
    };
    let Some(op) = facts.body.def_op(value) else {
        return (SaveReason::LoopCarried, None);
    };
    let reason = match facts.body.kind(op) {
        OpKind::Load(_) => return clobber_reason(facts, op),
        OpKind::Call(_) => SaveReason::Call,
        OpKind::Alloca(_) => SaveReason::StackAddress,
        OpKind::For { .. } | OpKind::Loop { .. } => SaveReason::LoopResult,
        OpKind::If | OpKind::Switch(_) => SaveReason::BranchResult,
        _ => SaveReason::NotRecomputable,
    };
    (reason, None)
}

fn clobber_reason(facts: &BodyFacts<'_>, load: Op) -> (SaveReason, Option<Op>) {
    match facts.clobber_of(load) {
        Some(Clobber::Overwritten(op)) => (SaveReason::Overwritten, Some(op)),
        Some(Clobber::Freed(op)) => (SaveReason::Freed, Some(op)),
        Some(Clobber::CallerWrites) => (SaveReason::CallerWrites, None),
        None => (SaveReason::UnrepeatableLoad, None),
    }
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

/// The arithmetic ops and math calls of a body.
struct ArithmeticCount {
    /// The static count.
    ops: usize,
    /// The count weighted with the plan's estimate of trip counts, by source location.
    runs: HashMap<Option<LocId>, f64>,
    /// The sum of `runs`, in program order.
    total: f64,
}

impl ArithmeticCount {
    fn of(unit: &Unit, body: &Body) -> ArithmeticCount {
        let mut weights: HashMap<Region, f64> = HashMap::from([(body.root(), 1.0)]);
        let mut counted = ArithmeticCount {
            ops: 0,
            runs: HashMap::new(),
            total: 0.0,
        };
        for op in body.walk(body.root()) {
            let weight = body.parent(op).and_then(|r| weights.get(&r).copied());
            let weight = weight.unwrap_or(1.0);
            for &region in body.op_regions(op) {
                weights.insert(
                    region,
                    weight * crate::analysis::body_facts::estimate_trip_count(unit, body, op),
                );
            }
            let counts = match body.kind(op) {
                OpKind::Binary(op) => op.is_float(),
                OpKind::FNeg => true,
                OpKind::Call(_) => {
                    matches!(unit.known_callee(body, op), Some(ExternalFn::Math(_)))
                }
                _ => false,
            };
            if counts {
                counted.ops += 1;
                counted.total += weight;
                *counted.runs.entry(body.ops[op].loc).or_default() += weight;
            }
        }
        counted
    }
}

/// Returns cost and activity by line of the user.
fn line_costs(
    unit: &Unit,
    facts: &BodyFacts<'_>,
    primal: &ArithmeticCount,
    derivative: &ArithmeticCount,
) -> BTreeMap<(String, u32), LineCost> {
    let body = facts.body;
    let mut by_location: HashMap<Option<LocId>, LineCost> = HashMap::new();
    for op in body.walk(body.root()) {
        let is_float = |v: &&Value| unit.types.float_kind(body.ty(**v)).is_some();
        for &value in body.results(op).iter().filter(is_float) {
            let line = by_location.entry(body.ops[op].loc).or_default();
            line.floats += 1;
            line.active += usize::from(facts.is_active(value));
        }
    }
    for (loc, runs) in &primal.runs {
        by_location.entry(*loc).or_default().primal += runs;
    }
    for (loc, runs) in &derivative.runs {
        by_location.entry(*loc).or_default().derivative += runs;
    }
    // A fixed order: sums of floats depend on it.
    let mut by_location: Vec<_> = by_location.into_iter().collect();
    by_location.sort_by_key(|(loc, _)| *loc);
    let mut lines: BTreeMap<(String, u32), LineCost> = BTreeMap::new();
    for (loc, cost) in by_location {
        let Some(span) = unit.span(loc) else {
            continue;
        };
        let span = span.called_at.as_deref().unwrap_or(&span);
        let line = lines.entry((span.file.clone(), span.line)).or_default();
        line.primal += cost.primal;
        line.derivative += cost.derivative;
        line.active += cost.active;
        line.floats += cost.floats;
    }
    lines
}
