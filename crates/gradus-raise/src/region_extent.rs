//! Region markers: begin and end of a parallel region without ranks, for tasks and regions in callees.
//!
//! A task is deferred only inside of a region; outside of all regions only one thread exists. A nested region
//! has one thread, unless several levels may be active. A function may be called from inside and outside, hence
//! the runtime is queried and must know. Teams register themselves. A region folded to the code of one thread
//! with parallel loops calls `gr_region` and `gr_region_end`.

use crate::reach::{Reach, calls_unknown};
use gradus_ir::{AttrSet, Body, Builder, FuncId, Op, OpKind, Region, Unit, Value};

/// Adds region markers to a team that may reach functions with tasks or regions.
pub(crate) fn mark_region_extent(unit: &mut Unit, body: &mut Body, team: Op, reach: &Reach) {
    let region = body.op_regions(team)[0];
    let (Some(first), Some(end)) = (body.first(region), body.last(region)) else {
        unreachable!("a verified region has a terminator");
    };
    let yields = matches!(body.kind(end), OpKind::Yield);
    if !yields || !may_reach_tasks_or_regions(unit, body, region, reach) {
        return;
    }
    let mut b = Builder::new(unit, body);
    b.loc = b.body.ops[team].loc;
    b.set_insertion_before(first);
    let before = emit_region_begin(&mut b);
    b.set_insertion_before(end);
    let finish = declare_marker(&mut b, "gr_region_end", false);
    b.call(finish, &[before]);
}

/// Returns true if a region calls code that may create tasks or begin regions.
pub(crate) fn may_reach_tasks_or_regions(
    unit: &Unit,
    body: &Body,
    region: Region,
    reach: &Reach,
) -> bool {
    let may = |op: Op| {
        let kind = body.kind(op);
        let reaches = |func| {
            reach.with_tasks_or_regions.contains(&func) || reach.reaching_unknown.contains(&func)
        };
        kind.call_info().is_some()
            && (calls_unknown(unit, body, op) || unit.callee(body, op).is_some_and(reaches))
    };
    body.walk(region).any(may)
}

fn emit_region_begin(b: &mut Builder) -> Value {
    let begin = declare_marker(b, "gr_region", true);
    let call = b.call(begin, &[]);
    b.body.result(call)
}

fn declare_marker(b: &mut Builder, name: &str, begins: bool) -> FuncId {
    let (void, int) = (b.unit.types.void(), b.unit.types.int(32));
    let ty = match begins {
        true => b.unit.types.func(int, Vec::new()),
        false => b.unit.types.func(void, vec![int]),
    };
    b.unit.declare(name, ty, AttrSet::default())
}
