//! Serial projection: the sequential equivalent of a parallel op.
//!
//! Loops run in order, a team has one rank, tasks run at the spawn.

use crate::cost::model::CallCosts;
use crate::emit::reduction_combine;
use crate::emit::reduction_combine::copied_value;
use gradus_edit::{ValueMap, clone_ops_within, inline_region};
use gradus_ir::externals::{ExternalFn, OpenMpFn};
use gradus_ir::{Access, Atomicity, Body, Builder, Flags, FuncId, Op, OpKind, Region, Unit, Value};
use std::collections::HashSet;

/// The maximum constant work, in simple operations, of a loop that loses its independence before
/// differentiation.
const TINY_WORK_MAX: u64 = 1_000;

/// Replaces a parallel op by its serial projection; nested parallel ops remain.
pub(crate) fn lower(unit: &mut Unit, body: &mut Body, op: Op) {
    let region = body.op_regions(op).first().copied();
    let mut b = Builder::new(unit, body);
    b.set_insertion_before(op);
    b.loc = b.body.ops[op].loc;
    match (b.body.kind(op).clone(), region) {
        (OpKind::ParFor { .. }, Some(_)) => drop(par_for_to_nest(&mut b, op)),
        (OpKind::ShareFor { .. }, Some(region)) => {
            let trips = b.body.operand(op, 0);
            let (_, inner) = b.for_(trips, &[]);
            let index = b.body.region_params(inner)[0];
            move_region(&mut b, region, inner, &[index]);
            b.body.erase(op);
        }
        (OpKind::Spmd { dims, .. }, Some(region)) => {
            let extents: Vec<Value> = b.body.operands(op).collect();
            let mut params = Vec::new();
            for number in [0, 1] {
                for extent in &extents[..dims as usize] {
                    let ty = b.body.ty(*extent);
                    params.push(b.int(ty, number));
                }
            }
            inline_region(&mut b, op, region, &params);
        }
        (_, Some(region)) => inline_region(&mut b, op, region, &[]),
        (_, None) => b.body.erase(op),
    }
}

/// Returns the first parallel op without an enclosing parallel op.
pub(crate) fn outermost_parallel_op(body: &Body) -> Option<Op> {
    body.walk(body.root())
        .find(|op| body.kind(*op).is_parallel())
}

/// Returns true for the query "is the current task final".
pub(crate) fn is_final_query(unit: &Unit, func: FuncId) -> bool {
    unit.known(func) == Some(ExternalFn::OpenMp(OpenMpFn::InFinal))
}

/// Returns true if final tasks are observable in the serial projections of the mutually recursive `functions`:
/// reachable code contains the query, spawns, or is unknown.
pub(crate) fn depends_on_final(unit: &Unit, functions: &[FuncId]) -> bool {
    let mut known: HashSet<FuncId> = functions.iter().copied().collect();
    let mut open: Vec<(FuncId, bool)> = functions.iter().map(|func| (*func, true)).collect();
    while let Some((func, projected)) = open.pop() {
        let Some(body) = unit.functions[func].body.as_deref() else {
            return true;
        };
        for op in body.walk(body.root()) {
            let makes =
                body.kind(op).is_parallel() && !matches!(body.kind(op), OpKind::Critical(_));
            if makes && !projected {
                return true;
            }
            if body.kind(op).call_info().is_none() {
                continue;
            }
            match unit.callee(body, op) {
                Some(callee) if is_final_query(unit, callee) => return true,
                Some(callee) if unit.known(callee).is_some() => {}
                Some(callee) => open.extend(known.insert(callee).then_some((callee, false))),
                None => return true,
            }
        }
    }
    false
}

/// Moves the ops of `from` to the empty region `to`, with `params` as parameters.
fn move_region(b: &mut Builder<'_>, from: Region, to: Region, params: &[Value]) {
    let old = b.body.region_params(from).to_vec();
    for (param, value) in old.into_iter().zip(params) {
        b.body.replace_uses(param, *value);
    }
    b.body.move_ops(from, to);
}

/// Replaces a `par.for` by a loop nest, one loop per index, last index innermost; reductions become carried
/// values. Returns the loops, outermost first.
pub(crate) fn par_for_to_nest(b: &mut Builder<'_>, op: Op) -> Vec<Op> {
    let OpKind::ParFor { dims, .. } = *b.body.kind(op) else {
        unreachable!("callers lower parallel loops only");
    };
    let dims = dims as usize;
    let operands: Vec<Value> = b.body.operands(op).collect();
    let reductions = reduction_combine::reductions(b.unit, b.body, op);
    let mut totals = operands[dims..].to_vec();
    let inside = b.body.op_regions(op)[0];
    let apart = is_independent(b.body, inside) && !may_pass_values_on(b.body, inside);
    let flags = match apart && !is_tiny(b.unit, b.body, op) {
        true => b.body.ops[op].flags.with(Flags::INDEPENDENT),
        false => Flags::NONE,
    };
    let mut loops = Vec::new();
    let mut indices = Vec::new();
    for &extent in &operands[..dims] {
        let (nest, region) = b.for_(extent, &totals);
        b.body.ops[nest].flags = flags;
        let params = b.body.region_params(region).to_vec();
        indices.push(params[0]);
        totals = params[1..].to_vec();
        loops.push((nest, region));
        b.set_insertion_end(region);
    }
    let Some(&(outer, _)) = loops.first() else {
        unreachable!("a verified parallel loop has a dimension");
    };
    let region = b.body.op_regions(op)[0];
    let inner = b.region();
    move_region(b, region, inner, &indices);
    let mut ends = Vec::new();
    if let Some(end) = b.body.yield_of(inner) {
        let given: Vec<Value> = b.body.operands(end).collect();
        b.body.erase(end);
        for (reduction, (total, value)) in reductions.iter().zip(totals.iter().zip(given)) {
            ends.push(combined(b, reduction, *total, value));
        }
        b.yield_(&ends);
    }
    for pair in loops.windows(2).rev() {
        let results = b.body.results(pair[1].0).to_vec();
        b.set_insertion_end(pair[0].1);
        b.yield_(&results);
    }
    let results = b.body.results(op).to_vec();
    for (index, result) in results.into_iter().enumerate() {
        let total = b.body.results(outer)[index];
        b.body.replace_uses(result, total);
    }
    b.body.erase(op);
    loops.into_iter().map(|(nest, _)| nest).collect()
}

/// Returns true if the iterations of a parallel loop stay independent in one shared frame: no private slots and
/// no locks.
pub(crate) fn is_independent(body: &Body, region: Region) -> bool {
    let shares = |op: Op| matches!(body.kind(op), OpKind::Alloca(_) | OpKind::Critical(_));
    !body.walk(region).any(shares)
}

/// Returns true if the whole loop is too small for a fork in any derivative. Adjoint accumulations of the loop
/// can then be plain adds.
fn is_tiny(unit: &Unit, body: &Body, op: Op) -> bool {
    let OpKind::ParFor { dims, .. } = *body.kind(op) else {
        return false;
    };
    let region = body.op_regions(op)[0];
    let number = |count: Value| body.as_int(unit, count).and_then(|n| u64::try_from(n).ok());
    let counted = |inner: Op| match body.kind(inner) {
        OpKind::Loop { .. } => false,
        OpKind::For { .. } | OpKind::ParFor { .. } => number(body.operand(inner, 0)).is_some(),
        _ => true,
    };
    let extents = body.operands(op).take(dims as usize).map(number);
    let runs = extents.reduce(|a, b| a?.checked_mul(b?)).flatten();
    let work = CallCosts::default().region(unit, body, region);
    let steady = work.terms.is_empty() && body.walk(region).all(counted);
    let all = runs.and_then(|runs| runs.checked_mul(work.fixed));
    steady && all.is_some_and(|all| all <= TINY_WORK_MAX)
}

/// Returns true if an iteration may wait for a result of another iteration, e.g. the last block of a kernel
/// that counts finished blocks and reads all results. The iterations have an order, which the reverse must
/// follow.
fn may_pass_values_on(body: &Body, region: Region) -> bool {
    body.walk(region).any(|op| may_wait(body, op))
}

/// Returns true if a thread may wait at `op` for another thread, or release another thread.
pub(crate) fn may_wait(body: &Body, op: Op) -> bool {
    let orders = |access: &Access| access.order > Atomicity::Monotonic;
    match body.kind(op) {
        OpKind::Fence { .. } => true,
        OpKind::Load(access) => !access.is_plain(),
        OpKind::AtomicRmw(_, access) | OpKind::CmpXchg { access, .. } => orders(access),
        _ => false,
    }
}

/// Like [`crate::emit::reduction_combine::Reduction::combine`], within one body.
fn combined(
    b: &mut Builder<'_>,
    reduction: &reduction_combine::Reduction,
    a: Value,
    x: Value,
) -> Value {
    let Some(region) = reduction.region else {
        return reduction.combine(b, &Body::new(&[]), &mut ValueMap::new(), a, x);
    };
    let params = b.body.region_params(region).to_vec();
    let mut map = ValueMap::zip(&params, &[a, x]);
    clone_ops_within(region, b, &mut map);
    let end = b.body.last(region);
    match end.filter(|end| matches!(b.body.kind(*end), OpKind::Yield)) {
        Some(end) => map.get_or_same(b.body.operand(end, 0)),
        // The combining region is no-return: nothing reads the value.
        None => a,
    }
}

/// Returns the copies of the values yielded by a region of another body.
pub(crate) fn copied_yields(
    b: &mut Builder<'_>,
    source: &Body,
    map: &ValueMap,
    region: Region,
) -> Option<Vec<Value>> {
    let end = source.yield_of(region)?;
    let values: Vec<Value> = source.operands(end).collect();
    Some(
        values
            .into_iter()
            .map(|v| copied_value(b, source, map, v))
            .collect(),
    )
}
