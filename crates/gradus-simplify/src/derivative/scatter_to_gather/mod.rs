//! Scatter-to-gather transformation: adds of neighbouring iterations to one location are combined into a
//! single add.
//!
//! The adjoint of `y[i] = f(x[i-1], x[i], x[i+1])` adds to three neighbours per iteration. Each location is
//! loaded and stored three times, in three iterations, which prevents vectorisation. The transformed loop
//! carries the pending sum of a location in registers until the last iteration that adds to the location.
//! Each location is then loaded and stored once. A location that waits for n iterations needs n carried
//! values (a delay line with taps), which vectorisers handle as fixed-order recurrences.
//!
//! 1. Find the adds in an innermost `for` without branches: load, add and store of one location, with the
//!    `reassoc` flag. Adjoint accumulation has no source order.
//! 2. Group adds whose addresses differ by a constant number of loop steps (`plan`). Adds commute wherever
//!    they point, hence only other accesses of the loop must not alias the delayed locations: by alias
//!    analysis, or by a run-time test.
//! 3. If only adds, to memory or to a carried sum, are dependences between iterations, their order is free. A
//!    loop that runs backwards through memory, as in the reverse pass, is reversed; before that, whole nests
//!    are (`loop_reversal`).
//! 4. Emit the new loop (`build`). The old loop executes if the test fails or the trip count is below the
//!    longest delay.
//!
//! Source: Hückelheim et al., *Automatic differentiation for adjoint stencil loops* (2019). Departure: the
//! original shifts whole loops, which requires remainder loops for the edges of every dimension and
//! recomputes each contribution for each neighbour.

mod build;
mod loop_reversal;
mod plan;

use gradus_analysis::{Alias, PassContext};
use gradus_ir::{BinaryOp, Body, Flags, Op, OpKind, Region, Unit, Value};

/// Maximum number of ops in the loop.
const OPS_MAX: usize = 600;
/// Maximum distance in ops from the load of an add to its store.
const ADD_DISTANCE_MAX: usize = 32;

/// Transforms every profitable loop; returns whether there were any.
pub(crate) fn run(unit: &mut Unit, body: &mut Body, facts: &PassContext) -> bool {
    scatter_to_gather(unit, body, facts) > 0
}

/// Transforms every profitable loop; returns the number of transformed loops.
pub fn scatter_to_gather(unit: &mut Unit, body: &mut Body, facts: &PassContext) -> usize {
    let loops = scatter_loops(unit, body);
    if loops.is_empty() {
        return 0;
    }
    let nests: Vec<loop_reversal::Nest> = {
        let alias = Alias::new(unit, facts.function, body, facts.effects, facts.alias);
        loop_reversal::plan_nests(&alias, facts)
    };
    for nest in &nests {
        loop_reversal::reverse_nest(unit, body, nest);
    }
    let plans: Vec<plan::GatherPlan> = {
        let alias = Alias::new(unit, facts.function, body, facts.effects, facts.alias);
        let plans = loops.into_iter();
        plans
            .filter_map(|(lp, adds)| plan::plan(&alias, facts, lp, &adds))
            .collect()
    };
    for plan in &plans {
        build::apply_plan(unit, body, plan);
    }
    plans.len()
}

/// Returns whether a body has a loop that adds to memory.
pub fn has_scatter_loops(unit: &Unit, body: &Body) -> bool {
    !scatter_loops(unit, body).is_empty()
}

/// Add to memory.
#[derive(Clone, Copy, Debug)]
struct Add {
    load: Op,
    sum: Op,
    store: Op,
    /// Added value.
    addend: Value,
    ptr: Value,
}

/// Returns the innermost loops without branches and calls that contain adds, with their adds.
fn scatter_loops(unit: &Unit, body: &Body) -> Vec<(Op, Vec<Add>)> {
    let mut found = Vec::new();
    for op in body.walk(body.root()) {
        // Carried values would create dependences between independent iterations.
        if !matches!(body.kind(op), OpKind::For { .. }) || body.is_independent(op) {
            continue;
        }
        let region = body.op_regions(op)[0];
        if !has_only_plain_ops(unit, body, region) {
            continue;
        }
        let adds: Vec<Add> = body
            .ops_in(region)
            .filter_map(|store| match_add(unit, body, region, store))
            .collect();
        if !adds.is_empty() {
            found.push((op, adds));
        }
    }
    found
}

/// Returns whether a region contains only plain accesses and pure ops, and ends in a yield.
fn has_only_plain_ops(unit: &Unit, body: &Body, region: Region) -> bool {
    let mut left = OPS_MAX;
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

/// Returns the add that ends in `store`, if any.
fn match_add(unit: &Unit, body: &Body, region: Region, store: Op) -> Option<Add> {
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
    let mut between = body.ops_after(load).take(ADD_DISTANCE_MAX);
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
        addend: part,
        ptr,
    })
}
