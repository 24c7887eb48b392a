//! Inlines functions with synchronisation, worksharing or rank queries into teams, before differentiation.
//!
//! Barrier fission splits a team at the barriers in its own body; a barrier inside a callee stays out of reach.
//! Place in the flow: before [`crate::team_to_rank_code`].

use gradus_edit::inline_call;
use gradus_ir::{Body, FuncId, Op, Unit};
use std::collections::HashSet;

/// Maximum depth of nested calls to inline.
const CALL_DEPTH_MAX: usize = 3;
/// Maximum number of ops of an inlined function.
const INLINED_OPS_MAX: usize = 6000;

/// Inlines the callees in `waiting` into a team. `waiting` is the result of [`crate::functions_that_wait`].
pub fn inline_into_team(
    unit: &mut Unit,
    body: &mut Body,
    func: FuncId,
    team: Op,
    waiting: &HashSet<FuncId>,
) {
    for _ in 0..CALL_DEPTH_MAX {
        let calls = body.walk(body.op_regions(team)[0]).filter_map(|op| {
            let callee = unit.callee(body, op)?;
            (callee != func && waiting.contains(&callee)).then_some((op, callee))
        });
        let calls: Vec<(Op, FuncId)> = calls.collect();
        let taken = calls.into_iter().filter(|&(call, callee)| {
            let code = unit.functions[callee].body.as_deref().cloned();
            let short = code.filter(|code| code.walk(code.root()).nth(INLINED_OPS_MAX).is_none());
            short.is_some_and(|code| inline_call(unit, body, call, callee, &code).is_ok())
        });
        if taken.count() == 0 {
            return;
        }
    }
}
