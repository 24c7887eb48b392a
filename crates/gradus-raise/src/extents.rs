//! Where a region without ranks begins and ends, for the tasks and regions of functions which it calls.
//!
//! A task is another thread's work only where a region runs; outside of all there is one thread. A region in a region
//! has one thread, unless several levels may be active. A function may be
//! called from both, so that the run-time library is asked, and told: by teams of their own accord, and by
//! `gr_region` and `gr_region_end` where a region has become the code of one thread, with parallel loops in it.

use crate::fold::Reach;
use crate::openmp::calls_unseen;
use gradus_ir::{AttrSet, Body, Builder, FuncId, Op, OpKind, Region, Unit, Value};

/// Has the code of a team say where it begins and ends, if it may come to functions that make tasks or begin regions.
pub(crate) fn mark(unit: &mut Unit, body: &mut Body, team: Op, reach: &Reach) {
    let region = body.op_regions(team)[0];
    let (Some(first), Some(end)) = (body.first(region), body.last(region)) else {
        unreachable!("a verified region has a terminator");
    };
    let yields = matches!(body.kind(end), OpKind::Yield);
    if !yields || !may_work(unit, body, region, reach) {
        return;
    }
    let mut b = Builder::new(unit, body);
    b.loc = b.body.ops[team].loc;
    b.at_op(first);
    let before = begin(&mut b);
    b.at_op(end);
    let finish = declared(&mut b, "gr_region_end", false);
    b.call(finish, &[before]);
}

/// Whether the code of a region calls what may make tasks or begin regions.
pub(crate) fn may_work(unit: &Unit, body: &Body, region: Region, reach: &Reach) -> bool {
    let may = |op: Op| {
        let kind = body.kind(op);
        let reaches = |func| reach.working.contains(&func) || reach.unseen.contains(&func);
        kind.call_info().is_some()
            && (calls_unseen(unit, body, op) || unit.callee(body, op).is_some_and(reaches))
    };
    body.walk(region).any(may)
}

fn begin(b: &mut Builder) -> Value {
    let begin = declared(b, "gr_region", true);
    let call = b.call(begin, &[]);
    b.body.result(call)
}

fn declared(b: &mut Builder, name: &str, begins: bool) -> FuncId {
    let (void, int) = (b.unit.types.void(), b.unit.types.int(32));
    let ty = match begins {
        true => b.unit.types.func(int, Vec::new()),
        false => b.unit.types.func(void, vec![int]),
    };
    b.unit.declare(name, ty, AttrSet::default())
}
