//! The report of one derivative: what is active, what the tape keeps and why, what it costs.

use crate::closure_facts::ClosureFacts;
use crate::facts::{Facts, is_independent};
use crate::node::{Node, Source, home_region, source};
use crate::tape::plan::{Home, Plan};
use gradus_ir::known::{IntFn, Known};
use gradus_ir::{BinaryOp, Body, Definition, Op, OpKind, Region, SourceSpan, Unit, Value};
use std::collections::HashMap;

/// A value that the tape keeps.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// Where it is computed.
    pub span: Option<SourceSpan>,
    /// What it is.
    pub what: String,
    /// Bytes of one.
    pub bytes: u64,
    /// How often there is one: the lengths of the loops it varies in, outermost first, in the
    /// program's words.
    pub times: Vec<String>,
    /// All bytes of it, by the estimate of trip counts that the plan was made with.
    pub total_bytes: f64,
    /// Where it lies: `slot`, `array`, `frame`.
    pub place: &'static str,
    /// Why it could not be recomputed.
    pub why: String,
}

/// A parallel loop in the return sweep, or all of it in a function that such a loop calls.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParallelLoop {
    /// Where the loop stands; `None` for a function.
    pub span: Option<SourceSpan>,
    /// The reversed loop, as long as the derivative stays as it was made.
    pub(crate) mirror: Option<Op>,
    /// The lines of the loads whose adjoints are added by plain adds, and by atomic ones.
    pub adds: [Vec<u32>; 2],
    /// The lines of the loads whose adjoints parts of the loop add up for themselves, and of those that parts add
    /// plainly as neighbours take turns.
    pub in_parts: [Vec<u32>; 2],
    /// How many adjoints of numbers from outside are summed up.
    pub sums: usize,
    /// Whether its iterations run at once.
    pub at_once: bool,
}

/// What was decided about one derivative.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// The symbol of the primal.
    pub function: String,
    /// How many numbers are active, and how many there are.
    pub active_values: (usize, usize),
    /// What the tape keeps.
    pub kept: Vec<Kept>,
    /// Arithmetic ops and math calls of the primal and of the derivative, as they stand in the text.
    pub ops: (usize, usize),
    /// The same, each times the iterations of the loops around it, by the plan's estimate.
    pub runs: (f64, f64),
    /// Pointers whose activity is asked at run time.
    pub asked_at_run_time: usize,
    /// The loops whose iterations are run again in the return sweep, and whether the forward sweep leaves
    /// them out.
    pub replayed: Vec<(Option<SourceSpan>, bool)>,
    /// The parallel loops of the return sweep.
    pub parallel: Vec<ParallelLoop>,
    /// Whether a test at run time picks between two bodies.
    pub versions: bool,
    /// The bytes of the first block of an augmented run's tape.
    pub block_bytes: Option<u64>,
    /// True if no value is active and no active value is written to memory: the derivative is zero.
    pub idle: bool,
    /// True if all outputs lie in blocks that the function allocates, where a gradient by one call finds no cotangents.
    pub unseeded: bool,
}

impl Report {
    /// A report that says nothing yet.
    pub(crate) fn new(unit: &Unit, func: gradus_ir::FuncId) -> Report {
        Report {
            function: unit.functions[func].name.clone(),
            ..Report::default()
        }
    }

    /// The report of a derivative.
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
    /// Notes which loops of the return sweep kept their independence when all derivatives were there.
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
    /// Notes that adds of loads on these lines are atomic no more: `way` 0 where they go to sums of parts of their
    /// loops, 1 where parts take turns.
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

/// Returns true if a function has no active value, and neither it nor a callee writes active values to memory. An
/// active value of a callee comes from an active argument or ends in an active result of the call, unless memory
/// passes it on.
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

/// How often a loop runs, in the program's words: a number, an argument's name, or the line of the loop.
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

/// The text of a trip count: a constant, an argument, or one of them and a constant more or less.
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
                Known::Integer(IntFn::Smax | IntFn::Umax) => {
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

/// How many arithmetic ops and math calls a body holds, and how many run, with loops of unknown
/// length taken as the plan takes them.
fn arithmetic(unit: &Unit, body: &Body) -> (usize, f64) {
    let mut weights: HashMap<Region, f64> = HashMap::from([(body.root(), 1.0)]);
    let (mut count, mut runs) = (0, 0.0);
    for op in body.walk(body.root()) {
        let weight = body.parent(op).and_then(|r| weights.get(&r).copied());
        let weight = weight.unwrap_or(1.0);
        for &region in body.op_regions(op) {
            weights.insert(region, weight * crate::facts::trips(unit, body, op));
        }
        let counts = match body.kind(op) {
            OpKind::Binary(op) => op.is_float(),
            OpKind::FNeg => true,
            OpKind::Call(_) => matches!(
                unit.callee(body, op).and_then(|f| unit.known(f)),
                Some(Known::Math(_))
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
