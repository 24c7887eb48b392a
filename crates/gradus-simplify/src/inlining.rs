//! Inlining of functions before parallel regions are outlined, and before differentiation.
//!
//! An outlined region gets its captures through memory. Facts of the caller (constants, known callees,
//! allocation sites) must be in the body before outlining. Functions with parallel ops are therefore
//! inlined into their callers while loops are still ops: short functions everywhere, longer functions with
//! a single caller only, as LLVM does for serial code. Functions hardly longer than a call (accessors
//! returning addresses, allocators) are inlined at every call ([`inline_small_functions`]), because calls hide the
//! accessed object.
//!
//! Place in the flow: gradus-pipeline calls the functions here between two rounds of simplification.

use gradus_analysis::{CallGraph, Nest};
use gradus_edit::{inline_call, is_pure};
use gradus_ir::externals::lookup;
use gradus_ir::{AttrSet, AttrValue, Body, FuncId, Linkage, Op, OpKind, Unit};
use std::collections::{HashMap, HashSet};

/// Function attributes on the target machine and on permitted code generation.
const TARGET_ATTRIBUTES: &[&str] = &[
    "target-cpu",
    "target-features",
    "denormal-fp-math",
    "denormal-fp-math-f32",
    "no-builtins",
    "nobuiltin",
    "noimplicitfloat",
    "null_pointer_is_valid",
    "optforfuzzing",
    "safestack",
    "sanitize_address",
    "sanitize_hwaddress",
    "sanitize_memory",
    "sanitize_memtag",
    "sanitize_thread",
    "sanitize_realtime",
    "shadowcallstack",
    "speculative_load_hardening",
];

/// A function of at most this many ops is inlined at every call; a longer function only if called once.
const SHORT_OPS: usize = 150;
/// A function with more than one inlined callee does not grow beyond this many ops.
const LONG_OPS: usize = 20_000;
/// A function of at most this many ops, without loops, is hardly longer than a call.
const SMALL_OPS: usize = 24;
/// A straight-line function of at most this many ops is inlined into calling loops before differentiation.
const STRAIGHT_OPS: usize = 256;
/// The bits of `memory(…)` for reads, and for writes.
const READS: u64 = 0x55;
const WRITES: u64 = 0xaa;

/// Inlines those of `functions` that have parallel ops, callees first, into `callers` and into each other.
/// Returns the callers with such calls: their bodies are new, or the calls may be moved.
pub fn inline_parallel_functions(
    unit: &mut Unit,
    closure: &CallGraph,
    functions: &[FuncId],
    callers: &[FuncId],
) -> Vec<FuncId> {
    let forking: HashSet<FuncId> = functions
        .iter()
        .copied()
        .filter(|func| has_parallel_ops(unit, *func))
        .collect();
    let mut changed = Vec::new();
    let order = closure.components().iter().flat_map(|c| &c.functions);
    for &caller in order {
        let asked = callers.contains(&caller);
        if !asked && !functions.contains(&caller) {
            continue;
        }
        let Some(mut body) = unit.functions[caller].body.take() else {
            continue;
        };
        let calls: Vec<(Op, FuncId)> = body
            .walk(body.root())
            .filter_map(|op| Some((op, unit.callee(&body, op)?)))
            .filter(|(_, callee)| forking.contains(callee))
            .collect();
        for &(op, callee) in &calls {
            let here = match asked {
                true => calls.iter().filter(|(_, other)| *other == callee).count(),
                false => call_count(closure, callee),
            };
            if !asked && !may_inline_at(&body, op) {
                continue;
            }
            if let Some(code) = inlinable_body(unit, callee, here) {
                let _stays_a_call = inline_call(unit, &mut body, op, callee, &code);
            }
        }
        unit.functions[caller].body = Some(body);
        if asked && !calls.is_empty() {
            changed.push(caller);
        }
    }
    changed
}

/// Returns the number of calls of a function in the closure; an address-taken function counts two more.
fn call_count(closure: &CallGraph, func: FuncId) -> usize {
    let taken = closure.address_taken().contains(&func);
    closure.calls_of(func).len() + if taken { 2 } else { 0 }
}

/// Returns true if a function may be inlined at `op` of a function with parallel ops. Inside a parallel
/// region, regions of the callee would look nested.
fn may_inline_at(body: &Body, op: Op) -> bool {
    let owner = |op: &Op| body.owner(body.parent(*op)?);
    let mut around = std::iter::successors(owner(&op), owner);
    !around.any(|op| body.kind(op).is_parallel()) && body.walk(body.root()).count() <= LONG_OPS
}

fn has_parallel_ops(unit: &Unit, func: FuncId) -> bool {
    let body = unit.functions[func].body.as_deref();
    body.is_some_and(|b| b.walk(b.root()).any(|op| b.kind(op).is_parallel()))
}

/// Returns the body of a function if a caller with `calls` calls may inline it.
fn inlinable_body(unit: &Unit, func: FuncId, calls: usize) -> Option<Body> {
    let function = &unit.functions[func];
    let attrs = unit.attrs(function.attrs);
    let body = function.body.as_deref()?;
    let own = matches!(function.linkage, Linkage::Internal | Linkage::LinkOnceOdr);
    let recurs = body
        .walk(body.root())
        .any(|op| unit.callee(body, op) == Some(func));
    let tasks = body
        .walk(body.root())
        .any(|op| matches!(body.kind(op), OpKind::Scope | OpKind::Spawn { .. }));
    let short = calls == 1 || body.walk(body.root()).count() <= SHORT_OPS;
    let fits = own && short && !recurs && !tasks && attrs.function("noinline").is_none();
    fits.then(|| body.clone())
}

/// Inlines the small functions of a closure into `functions`. Returns the functions with new bodies.
pub fn inline_small_functions(
    unit: &mut Unit,
    closure: &CallGraph,
    functions: &[FuncId],
) -> Vec<FuncId> {
    let mut small: HashMap<FuncId, Box<Body>> = HashMap::new();
    for component in closure.components().iter().filter(|c| !c.recursive) {
        for &func in &component.functions {
            if let Some(mut code) = small_inlinable_body(unit, func) {
                inline_small_calls(unit, &mut code, &small);
                if code.walk(code.root()).count() <= SMALL_OPS {
                    small.insert(func, code);
                }
            }
        }
    }
    let mut changed = Vec::new();
    for &caller in functions {
        let Some(mut body) = unit.functions[caller].body.take() else {
            continue;
        };
        if inline_small_calls(unit, &mut body, &small) {
            changed.push(caller);
        }
        unit.functions[caller].body = Some(body);
    }
    changed
}

/// Inlines calls of small functions. Returns true if any call was inlined.
fn inline_small_calls(
    unit: &mut Unit,
    body: &mut Body,
    small: &HashMap<FuncId, Box<Body>>,
) -> bool {
    let calls: Vec<(Op, FuncId)> = body
        .walk(body.root())
        .filter_map(|op| Some((op, unit.callee(body, op)?)))
        .collect();
    let mut any = false;
    for (op, callee) in calls {
        if let Some(code) = small.get(&callee) {
            any |= inline_call(unit, body, op, callee, code).is_ok();
        }
    }
    any
}

/// Inlines straight-line functions called in loops of `functions`, callees first. A call that is not
/// inlined needs a separate tape block per iteration. Functions for which `kept` holds stay calls.
pub fn inline_straight_line_functions(
    unit: &mut Unit,
    closure: &CallGraph,
    functions: &[FuncId],
    kept: impl Fn(FuncId) -> bool,
) {
    inline_into_loops(unit, closure, functions, |unit, callee| {
        let code = inlinable_body_where(unit, callee, STRAIGHT_OPS, is_arithmetic);
        code.filter(|_| !kept(callee))
    });
}

/// Inlines short functions with parallel ops at calls in loops of a closure, callees first. The loop then
/// shows its iterations' memory accesses. Returns the functions with new bodies.
pub fn inline_parallel_functions_in_loops(
    unit: &mut Unit,
    closure: &CallGraph,
    functions: &[FuncId],
) -> Vec<FuncId> {
    inline_into_loops(unit, closure, closure.functions(), |unit, callee| {
        let forking = functions.contains(&callee) && has_parallel_ops(unit, callee);
        let code = forking.then(|| inlinable_body(unit, callee, 2)).flatten();
        code.map(Box::new)
    })
}

/// Returns true if `func` may be inlined into `caller`: equal target attributes, no `noinline`, no
/// `optnone`.
pub fn has_equal_target_attributes(unit: &Unit, caller: FuncId, func: FuncId) -> bool {
    let attrs = |func: FuncId| unit.attrs(unit.functions[func].attrs);
    let (into, from) = (attrs(caller), attrs(func));
    let stays_a_call = from.function("noinline").is_some() || into.function("optnone").is_some();
    let mut machine = TARGET_ATTRIBUTES.iter();
    !stays_a_call && machine.all(|name| into.function(name) == from.function(name))
}

/// Inlines callees for which `code` returns a body at calls in loops of `callers`, callees first. Returns
/// the functions with new bodies.
fn inline_into_loops(
    unit: &mut Unit,
    closure: &CallGraph,
    callers: &[FuncId],
    code: impl Fn(&Unit, FuncId) -> Option<Box<Body>>,
) -> Vec<FuncId> {
    let mut changed = Vec::new();
    let order = closure.components().iter().flat_map(|c| &c.functions);
    for &caller in order.filter(|func| callers.contains(func)) {
        let Some(mut body) = unit.functions[caller].body.take() else {
            continue;
        };
        let loops = Nest::of(&body);
        let in_loops = body
            .walk(body.root())
            .filter(|op| loops.loop_depth(*op) > 0);
        let calls = in_loops.filter_map(|op| Some((op, unit.callee(&body, op)?)));
        let calls: Vec<(Op, FuncId)> = calls.filter(|(_, func)| *func != caller).collect();
        let mut any = false;
        for (op, callee) in calls {
            let fits = has_equal_target_attributes(unit, caller, callee)
                && (!has_parallel_ops(unit, callee) || may_inline_at(&body, op))
                && body.walk(body.root()).nth(LONG_OPS).is_none();
            if let Some(code) = code(unit, callee).filter(|_| fits) {
                any |= inline_call(unit, &mut body, op, callee, &code).is_ok();
            }
        }
        unit.functions[caller].body = Some(body);
        changed.extend(any.then_some(caller));
    }
    changed
}

/// Returns true if an op is arithmetic, a plain load or a plain store: an op of straight-line code.
fn is_arithmetic(unit: &Unit, body: &Body, op: Op) -> bool {
    match body.kind(op) {
        OpKind::Load(access) | OpKind::Store(access) => access.is_plain(),
        OpKind::Return => true,
        _ => is_pure(unit, body, op),
    }
}

/// Returns the body of a function if the function is small and inlining loses no stated fact.
fn small_inlinable_body(unit: &Unit, func: FuncId) -> Option<Box<Body>> {
    inlinable_body_where(unit, func, SMALL_OPS, |_, body, op| match body.kind(op) {
        OpKind::For { .. } | OpKind::Loop { .. } | OpKind::Alloca(_) => false,
        kind => !kind.is_parallel(),
    })
}

/// Returns the body of a function of at most `most` ops, if `fits` holds for every op and inlining loses no
/// stated fact.
fn inlinable_body_where(
    unit: &Unit,
    func: FuncId,
    most: usize,
    fits: impl Fn(&Unit, &Body, Op) -> bool,
) -> Option<Box<Body>> {
    let function = &unit.functions[func];
    let body = function.body.as_ref()?;
    let ours = function.linkage != Linkage::Interposable
        && lookup(&function.name).is_none()
        && unit.attrs(function.attrs).function("noinline").is_none()
        && !has_stronger_attributes(unit, unit.attrs(function.attrs), body)
        && body.walk(body.root()).nth(most).is_none()
        && body.walk(body.root()).all(|op| fits(unit, body, op));
    ours.then(|| body.clone())
}

/// Returns true if a function's attributes state more than its body shows: `noalias` on a result that no
/// callee allocates, or `memory` effects that the body exceeds.
fn has_stronger_attributes(unit: &Unit, attrs: &AttrSet, body: &Body) -> bool {
    let memory = |attrs: &AttrSet| match attrs.function("memory") {
        Some(AttrValue::Int(bits)) => *bits,
        _ => u64::MAX,
    };
    let stated = memory(attrs);
    let callees = || {
        let calls = body
            .walk(body.root())
            .filter(|op| body.kind(*op).call_info().is_some());
        calls.map(|op| unit.callee(body, op))
    };
    let exceeds = |op: Op| match body.kind(op) {
        OpKind::Load(_) => stated & READS == 0,
        OpKind::Store(_) | OpKind::AtomicRmw(..) | OpKind::CmpXchg { .. } => stated & WRITES == 0,
        _ => false,
    };
    let calls_exceed = callees().any(|callee| {
        let called = callee.map_or(u64::MAX, |f| memory(unit.attrs(unit.functions[f].attrs)));
        stated != u64::MAX && called & !stated != 0
    });
    let allocates = |callee: Option<FuncId>| {
        callee.is_some_and(|f| {
            unit.known_effects(f)
                .is_some_and(|effects| effects.allocates)
                || unit
                    .attrs(unit.functions[f].attrs)
                    .result("noalias")
                    .is_some()
        })
    };
    calls_exceed
        || body.walk(body.root()).any(exceeds)
        || attrs.result("noalias").is_some() && !callees().any(allocates)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_ir::parse;

    const TEXT: &str = "
        attrs 1 = fn(memory = 0)
        declare @malloc(i64) -> ptr
        declare @other(i64) -> i64
        func @fresh(%n: i64) -> ptr internal { %b = mul %n, 8 %p = call @malloc(%b) return %p }
        func @place(%p: ptr, %i: i64) -> ptr internal { %q = addr f64, %p, %i return %q }
        func @number(%p: ptr, %i: i64) -> f64 internal {
          %q = call @place(%p, %i) %v = load %q -> f64 return %v }
        func @constant(%p: ptr) -> f64 internal #1 { %v = load %p -> f64 return %v }
        func @sum(%p: ptr) -> f64 internal {
          %s = for %i < 8 iter(%t = 0.0) {
            %q = addr f64, %p, %i %v = load %q -> f64 %u = fadd %t, %v yield %u }
          return %s }
        func @again(%n: i64) -> i64 internal { %m = sub %n, 1 %r = call @again(%m) return %r }
        func @inner(%p: ptr, %n: i64) internal {
          par.for %i < %n { %q = addr f64, %p, %i store 1.0, %q yield } return }
        func @middle(%p: ptr, %n: i64) internal {
          call @inner(%p, %n)
          par.for %i < %n { %v = call @number(%p, %i) yield } return }
        func @outer(%n: i64) {
          %p = call @fresh(%n) call @middle(%p, %n) %a = call @constant(%p) %s = call @sum(%p)
          %m = call @again(%n) %o = call @other(%m) return }
        func @nested(%p: ptr, %n: i64) {
          par.for %i < %n { call @twice(%p, %n) yield } return }
        func @twice(%p: ptr, %n: i64) internal {
          par.for %i < %n { %q = addr f64, %p, %i store 2.0, %q yield } return }";

    /// Returns the names of a function's callees.
    fn calls(unit: &Unit, name: &str) -> Vec<String> {
        let func = unit.function(name).expect("it is there");
        let body = unit.functions[func].body.as_deref().expect("it has code");
        let callees = body
            .walk(body.root())
            .filter_map(|op| unit.callee(body, op));
        callees.map(|f| unit.functions[f].name.clone()).collect()
    }

    fn unit() -> (Unit, Vec<FuncId>) {
        let unit = parse(TEXT, "program").unwrap_or_else(|e| panic!("{e} {:?}", e.labels));
        let all = unit.functions.iter().filter(|(_, f)| f.body.is_some());
        let all = all.map(|(func, _)| func).collect();
        (unit, all)
    }

    #[test]
    fn parallel_callee_chain_is_inlined() {
        let (mut unit, all) = unit();
        let closure = CallGraph::of(&unit, &all);
        let outer = unit.function("outer").expect("it is there");
        let forking: Vec<FuncId> = all
            .iter()
            .copied()
            .filter(|f| has_parallel_ops(&unit, *f))
            .collect();
        assert_eq!(
            inline_parallel_functions(&mut unit, &closure, &forking, &[outer]),
            [outer]
        );
        assert!(!calls(&unit, "middle").contains(&"inner".to_string()));
        assert!(!calls(&unit, "outer").contains(&"middle".to_string()));
        // Nested regions stay in separate functions.
        assert_eq!(calls(&unit, "nested"), ["twice"]);
    }

    #[test]
    fn small_functions_are_inlined() {
        let (mut unit, all) = unit();
        let closure = CallGraph::of(&unit, &all);
        let of = |unit: &Unit, name: &str| unit.function(name).expect("it is there");
        let callers = [of(&unit, "outer"), of(&unit, "middle"), of(&unit, "again")];
        assert_eq!(
            inline_small_functions(&mut unit, &closure, &callers),
            callers[..2]
        );
        assert_eq!(calls(&unit, "middle"), ["inner"]);
        // A loop, a recursive function, a function with stronger attributes than its body, and parallel ops
        // stay calls.
        assert_eq!(
            calls(&unit, "outer"),
            ["malloc", "middle", "constant", "sum", "again", "other"]
        );
    }
}
