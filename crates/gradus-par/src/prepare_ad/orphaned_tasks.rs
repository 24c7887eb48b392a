//! Orphaned tasks ([`Flags::ORPHANED_TASK`]): tasks in functions without an enclosing parallel region.
//!
//! A run-time query decides if a parallel region executes the function. Without a region, the creating thread
//! runs the tasks undeferred, in order.
//!
//! The query is resolved before differentiation, because a derivative calls the callees of its primal. A
//! function reachable outside of all regions loses its tasks; any other function is treated as if inside of a
//! region. A caller of a derivative in a region gets the version without tasks.

use gradus_ir::externals::OpenMpFn;
use gradus_ir::{AttrSet, Body, Builder, Flags, FuncId, IntPredicate, Op, OpKind, Unit, Value};
use std::collections::HashSet;

/// Emits the query for an enclosing parallel region at the builder's position.
pub(crate) fn is_in_region(b: &mut Builder<'_>) -> Value {
    compare_region_state(b, IntPredicate::Ne, IN_NO_REGION)
}

/// Emits the query for a region that shares loops: a rank of a team runs its loops alone, but shares its tasks.
pub(crate) fn shares_loops(b: &mut Builder<'_>) -> Value {
    compare_region_state(b, IntPredicate::Eq, IN_REGION_WITHOUT_RANKS)
}

/// The runtime's replies: no region; a region without ranks of a team.
const IN_NO_REGION: i128 = 0;
const IN_REGION_WITHOUT_RANKS: i128 = 1;

fn compare_region_state(b: &mut Builder<'_>, is: IntPredicate, what: i128) -> Value {
    let int = b.unit.types.int(32);
    let ty = b.unit.types.func(int, Vec::new());
    let ask = b.unit.declare("gr_in_region", ty, AttrSet::default());
    let call = b.call(ask, &[]);
    let answer = b.body.result(call);
    let what = b.int(int, what);
    b.icmp(is, answer, what)
}

/// Resolves orphaned tasks of `functions`; external code calls `entries` outside of all regions.
pub fn resolve_orphans(unit: &mut Unit, functions: &[FuncId], entries: &[FuncId]) {
    let outside = reached_outside(unit, entries);
    for &func in functions {
        let Some(mut body) = unit.functions[func].body.take() else {
            continue;
        };
        let ops: Vec<Op> = body.walk(body.root()).collect();
        for op in ops {
            resolve_orphan_op(unit, &mut body, op, outside.contains(&func));
        }
        unit.functions[func].body = Some(body);
    }
}

fn resolve_orphan_op(unit: &mut Unit, body: &mut Body, op: Op, outside: bool) {
    let b = &mut Builder::new(unit, body);
    match (b.body.kind(op), b.unit.openmp_callee(b.body, op)) {
        (OpKind::Spawn { .. }, _) if b.body.ops[op].flags.has(Flags::ORPHANED_TASK) => {
            b.body.ops[op].flags = Flags::NONE;
            if outside {
                let task = b.body.op_regions(op)[0];
                gradus_edit::inline_region(b, op, task, &[]);
            }
        }
        (_, Some(OpenMpFn::InRegion | OpenMpFn::BeginRegion)) => {
            let (old, int) = (b.body.result(op), b.unit.types.int(32));
            let answer = match outside {
                true => IN_NO_REGION,
                false => IN_REGION_WITHOUT_RANKS,
            };
            let answer = b.int(int, answer);
            b.body.replace_uses(old, answer);
            b.body.erase(op);
        }
        (_, Some(OpenMpFn::EndRegion)) => b.body.erase(op),
        _ => {}
    }
}

/// Returns the functions reachable from `entries` without a region around a call, including functions whose
/// address is taken.
fn reached_outside(unit: &Unit, entries: &[FuncId]) -> HashSet<FuncId> {
    let mut found: HashSet<FuncId> = entries.iter().copied().collect();
    add_reachable(unit, &mut found, |body| {
        referenced_functions(unit, body, &ops_by_region(unit, body).outside)
    });
    found
}

/// Returns the functions reachable from parallel regions, and functions with a team inside of a region. A
/// nested team has one rank, unless several levels may be active.
pub fn reachable_from_regions(unit: &Unit) -> HashSet<FuncId> {
    let mut found = HashSet::new();
    for (func, function) in unit.functions.iter() {
        let Some(body) = function.body.as_deref() else {
            continue;
        };
        let inside = ops_by_region(unit, body).inside;
        let is_team = |op: &Op| matches!(body.kind(*op), OpKind::Spmd { .. });
        found.extend(inside.iter().any(is_team).then_some(func));
        found.extend(referenced_functions(unit, body, &inside));
    }
    add_reachable(unit, &mut found, |body| {
        referenced_functions(unit, body, &body.walk(body.root()).collect::<Vec<Op>>())
    });
    found
}

/// Adds the functions reachable by `called` to `found`.
fn add_reachable(unit: &Unit, found: &mut HashSet<FuncId>, called: impl Fn(&Body) -> Vec<FuncId>) {
    let mut open: Vec<FuncId> = found.iter().copied().collect();
    while let Some(func) = open.pop() {
        if let Some(body) = unit.functions[func].body.as_deref() {
            open.extend(called(body).into_iter().filter(|func| found.insert(*func)));
        }
    }
}

/// Returns the functions referenced by `ops`.
fn referenced_functions(unit: &Unit, body: &Body, ops: &[Op]) -> Vec<FuncId> {
    let values = ops.iter().flat_map(|op| body.operands(*op));
    values
        .filter_map(|value| body.as_function(unit, value))
        .collect()
}

/// The ops of a body by enclosing region. A parallel region is a team, a loop, or rank-free code between region
/// markers.
#[derive(Default)]
struct OpsByRegion {
    /// Ops without an enclosing team or region markers.
    outside: Vec<Op>,
    /// Ops inside of any parallel region.
    inside: Vec<Op>,
}

fn ops_by_region(unit: &Unit, body: &Body) -> OpsByRegion {
    use OpKind::{ParFor, ShareFor, Spmd};
    let mut parts = OpsByRegion::default();
    let mut open = vec![body.root()];
    while let Some(region) = open.pop() {
        let mut depth = 0;
        for op in body.ops_in(region) {
            match unit.openmp_callee(body, op) {
                Some(OpenMpFn::BeginRegion) => depth += 1,
                Some(OpenMpFn::EndRegion) => depth -= 1,
                _ => {}
            }
            let nested = body.op_regions(op).iter().flat_map(|r| body.walk(*r));
            if depth > 0 {
                parts.inside.extend([op].into_iter().chain(nested));
                continue;
            }
            let kind = body.kind(op);
            if matches!(kind, ParFor { .. } | ShareFor { .. } | Spmd { .. }) {
                parts.inside.extend(nested);
            }
            if !matches!(body.kind(op), Spmd { .. }) {
                parts.outside.push(op);
                open.extend(body.op_regions(op));
            }
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::resolve_orphans;
    use gradus_ir::{Flags, FuncId, OpKind, Unit, parse, verify};

    const TASKS: &str = "declare @gr_in_region() -> i32
        declare @gr_region() -> i32
        declare @gr_region_end(i32) -> void
        func @tasks(%p: ptr) {
        scope { spawn orphan { store 1, %p yield } sync yield }
        %n = call @gr_in_region()
        store %n, %p
        return }";

    /// Resolves orphans in a unit; `f`, which has this code, is called from outside.
    fn resolved_unit(code: &str) -> Unit {
        let text = format!("{TASKS}\n func @f(%p: ptr) {{ {code} return }}");
        let mut unit = parse(&text, "program").unwrap_or_else(|e| panic!("{e} {:?}", e.labels));
        let functions: Vec<FuncId> = unit.functions.ids().collect();
        let f = unit.function("f").expect("it is there");
        resolve_orphans(&mut unit, &functions, &[f]);
        assert!(verify(&unit).is_empty(), "{:?}", verify(&unit));
        unit
    }

    /// Returns the number of tasks and asserts that no task is an orphan.
    fn spawns(unit: &Unit) -> usize {
        let mut count = 0;
        for body in unit.functions.iter().filter_map(|(_, f)| f.body.as_deref()) {
            for op in body.walk(body.root()) {
                count += usize::from(matches!(body.kind(op), OpKind::Spawn { .. }));
                assert!(!body.ops[op].flags.has(Flags::ORPHANED_TASK));
            }
        }
        count
    }

    #[test]
    fn tasks_survive_if_region_only() {
        let inside = "%b = call @gr_region() call @tasks(%p) call @gr_region_end(%b)";
        assert_eq!(spawns(&resolved_unit(inside)), 1);
        let team = "spmd team 2 { |%r: i64, %s: i64| call @tasks(%p) yield }";
        assert_eq!(spawns(&resolved_unit(team)), 1);
        assert_eq!(spawns(&resolved_unit("call @tasks(%p)")), 0);
        assert_eq!(
            spawns(&resolved_unit(&format!("{inside} call @tasks(%p)"))),
            0
        );
    }
}
