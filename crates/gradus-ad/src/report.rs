//! The report of one derivative: what is active, what the tape keeps and why, what it costs.

use crate::facts::Facts;
use crate::node::{Node, Source, home_region, source};
use crate::tape::plan::{Home, Plan};
use gradus_ir::{Body, OpKind, SourceSpan, Unit};

/// A value that the tape keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Where it is computed.
    pub span: Option<SourceSpan>,
    /// What it is.
    pub what: String,
    /// Bytes of one.
    pub bytes: u64,
    /// In how many nested loops there is one for each iteration.
    pub loops: usize,
    /// Where it lies: `slot`, `array`, `frame`.
    pub place: &'static str,
    /// Why it could not be recomputed.
    pub why: String,
}

/// What was decided about one derivative.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The symbol of the primal.
    pub function: String,
    /// How many numbers are active, and how many there are.
    pub active_values: (usize, usize),
    /// What the tape keeps.
    pub kept: Vec<Kept>,
    /// Arithmetic ops of the primal and of the derivative, as they stand in the text.
    pub ops: (usize, usize),
    /// Pointers whose activity is asked at run time.
    pub asked_at_run_time: usize,
    /// Whether a test at run time picks between two bodies.
    pub versions: bool,
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
    pub(crate) fn of(unit: &Unit, facts: &Facts<'_>, plan: &Plan, derivative: &Body) -> Report {
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
        Report {
            function: unit.functions[facts.func].name.clone(),
            active_values: (active, all),
            kept: plan
                .kept
                .iter()
                .map(|node| kept(unit, facts, plan, *node))
                .collect(),
            ops: (count_arithmetic(body), count_arithmetic(derivative)),
            asked_at_run_time: asked,
            versions: false,
        }
    }
}

fn kept(unit: &Unit, facts: &Facts<'_>, plan: &Plan, node: Node) -> Kept {
    let what = match node {
        Node::Primal(value) => describe(unit, facts, value),
        Node::Shadow(value) => format!("shadow of {}", describe(unit, facts, value)),
        Node::Count(_) => "number of iterations".to_string(),
        Node::CalleeTape(_) => "tape of a call".to_string(),
        Node::Base(_) => "address of a tape array".to_string(),
        Node::Snapshot(number) => {
            format!("snapshot for {} loads", facts.snapshots[number].loads.len())
        }
        Node::SnapshotBlock(_) => "address of a snapshot".to_string(),
        Node::LastFrame(_) => "frame of the last iteration".to_string(),
    };
    let why = match source(unit, facts, node) {
        Source::Recompute { .. } => "cheaper to keep than to compute again".to_string(),
        _ => why_not_again(facts, node),
    };
    let place = match plan.homes.get(&node) {
        Some(Home::Array(_)) => "array",
        Some(Home::Frame(..)) => "frame",
        _ => "slot",
    };
    Kept {
        span: unit.span(facts.location(node)),
        what,
        bytes: facts.kept_bytes(unit, node, facts.width as u32),
        loops: home_region(facts, node).map_or(0, |_| facts.varying_loops(node).len()),
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
        None => "a value carried from iteration to iteration".to_string(),
    }
}

fn why_not_again(facts: &Facts<'_>, node: Node) -> String {
    let value = match node {
        Node::Primal(value) | Node::Shadow(value) => value,
        _ => return "it is known only while it runs".to_string(),
    };
    let why = match facts.body.def_op(value).map(|op| facts.body.kind(op)) {
        Some(OpKind::Load(_)) => "what it was loaded from is overwritten or freed later",
        Some(OpKind::Call(_)) => "a call is not made twice",
        Some(OpKind::Alloca(_)) => "the address of an allocation",
        Some(OpKind::For { .. } | OpKind::Loop { .. }) => "the result of a loop",
        Some(OpKind::If | OpKind::Switch(_)) => "the result of a branch",
        None => "carried from iteration to iteration",
        _ => "it cannot be computed again",
    };
    why.to_string()
}

fn count_arithmetic(body: &Body) -> usize {
    body.walk(body.root())
        .filter(|op| match body.kind(*op) {
            OpKind::Binary(op) => op.is_float(),
            OpKind::FNeg => true,
            _ => false,
        })
        .count()
}
