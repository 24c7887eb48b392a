//! Variadic arguments that are structures in memory (`byval`): the callee reads a copy, to which no float flows.

use crate::activity::memory::MemoryActivity;
use crate::view::View;
use gradus_ir::{Body, FuncId, Op};

/// Returns true if a call passes a structure with varied floats behind its first `named` arguments.
pub(crate) fn is_varied(
    facts: View<'_>,
    classes: &MemoryActivity,
    (func, body, op): (FuncId, &Body, Op),
    named: usize,
) -> bool {
    let attrs = body.kind(op).call_info().and_then(|info| info.attrs);
    let attrs = attrs.map(|id| facts.unit.attrs(id));
    let args = facts.unit.call_args(body, op).into_iter().enumerate();
    args.skip(named).any(|(index, arg)| {
        attrs.is_some_and(|attrs| attrs.param(index, "byval").is_some())
            && facts
                .memory
                .may_point_into(func, arg, |class| classes.is_varied(class))
    })
}
