//! Scatter loops become gather loops: adds that neighbouring iterations make to one place are made once.
//!
//! The adjoint of `y[i] = f(x[i-1], x[i], x[i+1])` adds to three neighbours in every iteration; each place
//! is read and written three times, in three iterations, and no compiler may run such iterations side
//! by side. Here what goes to a place is carried along in registers until the last iteration that adds to
//! it: one read and one write of each place. One value is carried for each iteration that a place waits: the
//! sum of what goes there so far (a delay line with taps), which vectorisers understand (fixed-order
//! recurrences).
//!
//! 1. In an innermost `for` without branches, find the adds: load, sum, store of one place, where the sum
//!    may be regrouped (`reassoc`: adjoints are added up in no order that anybody wrote).
//! 2. Put those together whose addresses differ by a constant number of steps of the loop (`plan`).
//!    Adds may pass each other wherever they point, so only the loop's other accesses must stay away from
//!    what is delayed: known from alias analysis, or tested before the loop.
//! 3. Where only adds, to memory or to a carried sum, go from iteration to iteration, their order is free: a
//!    loop that runs backwards through memory, as return sweeps do, is turned round; before that, whole nests
//!    are (`nests`).
//! 4. Write the loop anew (`build`), the old one beside it where the test fails or the loop has fewer
//!    iterations than the longest delay.
//!
//! The scatter-to-gather step of adjoint stencils is that of Hückelheim et al., *Automatic
//! differentiation for adjoint stencil loops* (2019); it shifts whole loops instead, which needs loops
//! for the edges of every dimension and computes each part anew for each neighbour.

mod build;
mod nests;
mod plan;

use crate::Facts;
use gradus_analysis::Alias;
use gradus_ir::{BinaryOp, Body, Flags, Op, OpKind, Region, Unit, Value};

/// How many ops a loop may have that is looked at.
const OPS: usize = 600;
/// How far from its load the store of an add may stand.
const REACH: usize = 32;

/// Gathers in every loop where it pays; says whether there was one.
pub(crate) fn run(unit: &mut Unit, body: &mut Body, facts: &Facts) -> bool {
    gather(unit, body, facts) > 0
}

/// Gathers in every loop where it pays; gives the number of loops.
pub fn gather(unit: &mut Unit, body: &mut Body, facts: &Facts) -> usize {
    let loops = scatter_loops(unit, body);
    if loops.is_empty() {
        return 0;
    }
    let nests: Vec<nests::Nest> = {
        let alias = Alias::new(unit, facts.function, body, facts.effects, facts.alias);
        nests::plan_all(&alias, facts)
    };
    for nest in &nests {
        nests::apply(unit, body, nest);
    }
    let plans: Vec<plan::Plan> = {
        let alias = Alias::new(unit, facts.function, body, facts.effects, facts.alias);
        let plans = loops.into_iter();
        plans
            .filter_map(|(lp, adds)| plan::plan(&alias, facts, lp, &adds))
            .collect()
    };
    for plan in &plans {
        build::apply(unit, body, plan);
    }
    plans.len()
}

/// Whether a body has a loop that adds to memory.
pub fn scatters(unit: &Unit, body: &Body) -> bool {
    !scatter_loops(unit, body).is_empty()
}

/// An add to memory.
#[derive(Clone, Copy, Debug)]
struct Add {
    load: Op,
    sum: Op,
    store: Op,
    /// What is added.
    part: Value,
    ptr: Value,
}

/// The innermost loops without branches and calls that hold adds, with these.
fn scatter_loops(unit: &Unit, body: &Body) -> Vec<(Op, Vec<Add>)> {
    let mut found = Vec::new();
    for op in body.walk(body.root()) {
        // What is carried to the next iteration would tie independent ones together.
        let tied = !body.ops[op].flags.has(Flags::INDEPENDENT);
        if !(tied && matches!(body.kind(op), OpKind::For { .. })) {
            continue;
        }
        let region = body.op_regions(op)[0];
        if !is_plain(unit, body, region) {
            continue;
        }
        let adds: Vec<Add> = body
            .ops_in(region)
            .filter_map(|store| add(unit, body, region, store))
            .collect();
        if !adds.is_empty() {
            found.push((op, adds));
        }
    }
    found
}

/// Whether a region holds plain accesses and pure ops, and ends by going on.
fn is_plain(unit: &Unit, body: &Body, region: Region) -> bool {
    let mut left = OPS;
    body.ops_in(region).all(|op| {
        left = left.saturating_sub(1);
        left > 0
            && match body.kind(op) {
                OpKind::Load(access) | OpKind::Store(access) => access.is_plain(),
                OpKind::Yield => true,
                _ => gradus_edit::is_pure(unit, body, op),
            }
    })
}

/// The add that a store ends, if it ends one.
fn add(unit: &Unit, body: &Body, region: Region, store: Op) -> Option<Add> {
    if !matches!(body.kind(store), OpKind::Store(_)) {
        return None;
    }
    let (total, ptr) = (body.operand(store, 0), body.operand(store, 1));
    let sum = body.def_op(total)?;
    let regroups = body.ops[sum].flags.has(Flags::REASSOC);
    if !matches!(body.kind(sum), OpKind::Binary(BinaryOp::FAdd)) || !regroups {
        return None;
    }
    let only_use = |v: Value| body.uses(v).nth(1).is_none();
    let (load, part) = [(0, 1), (1, 0)].into_iter().find_map(|(old, new)| {
        let old = body.operand(sum, old);
        let load = body.def_op(old)?;
        let reads = matches!(body.kind(load), OpKind::Load(_)) && body.operand(load, 0) == ptr;
        let own = body.parent(load) == Some(region) && body.parent(sum) == Some(region);
        (reads && own && only_use(old)).then(|| (load, body.operand(sum, new)))
    })?;
    let mut between = std::iter::successors(body.next(load), |op| body.next(*op)).take(REACH);
    let undisturbed = loop {
        match between.next() {
            Some(op) if op == store => break true,
            Some(op) if gradus_edit::is_pure(unit, body, op) => {}
            _ => break false,
        }
    };
    (undisturbed && only_use(total)).then_some(Add {
        load,
        sum,
        store,
        part,
        ptr,
    })
}
