//! Sentinels: constants that ranks of a team write at per-rank locations, and that reveal only the ranks
//! present.
//!
//! A program may count sentinels later, and thereby learn the number of threads without a query. A one-rank
//! team of a derivative writes one sentinel, next to sentinels of all ranks from an earlier run. An initial
//! value of a sum or another result is no sentinel: the rank overwrites the location with a non-constant.

use crate::thread_count::queries::rank_values;
use crate::thread_count::taint::{TaintContext, TaintFlow};
use gradus_analysis::{CallGraph, Effects};
use gradus_ir::externals::{ExternalFn, MemoryFn};
use gradus_ir::{Body, Definition, FuncId, LocId, Op, OpKind, Unit, Value};
use std::collections::HashSet;

/// A sentinel's address and type class (float or not).
pub(crate) struct Sentinel {
    pub(crate) op: Op,
    pub(crate) ptr: Value,
    pub(crate) floats: bool,
}

/// Returns the sentinels written in a body.
pub(crate) fn sentinels_of_body(
    unit: &Unit,
    body: &Body,
    context: &TaintContext<'_>,
    ranks: &TaintFlow<'_>,
) -> Vec<Sentinel> {
    let all = body.walk(body.root()).filter_map(|op| {
        let (ptr, value) = written_value(unit, body, op)?;
        let is_own = ranks.is_tainted(ptr) && !varies_with_loop(body, ptr);
        is_own.then_some((op, ptr, value))
    });
    let all: Vec<(Op, Value, Value)> = all.collect();
    let is_result = |(_, _, value): &&(Op, Value, Value)| !context.is_of_constants(*value);
    let results: Vec<Value> = all
        .iter()
        .filter(is_result)
        .map(|(_, ptr, _)| *ptr)
        .collect();
    let is_mark = |(_, ptr, value): &(Op, Value, Value)| {
        let begins = results
            .iter()
            .any(|result| is_same_address(body, *result, *ptr));
        !begins && context.is_of_constants(*value)
    };
    let marks = all.into_iter().filter(is_mark);
    let mark = |(op, ptr, value): (Op, Value, Value)| Sentinel {
        op,
        ptr,
        floats: context.is_float(value),
    };
    marks.map(mark).collect()
}

/// Returns the address and value that `op` writes, for stores, atomics and `memset`.
fn written_value(unit: &Unit, body: &Body, op: Op) -> Option<(Value, Value)> {
    match body.kind(op) {
        OpKind::Store(_) => Some((body.operand(op, 1), body.operand(op, 0))),
        OpKind::AtomicRmw(..) => Some((body.operand(op, 0), body.operand(op, 1))),
        OpKind::Call(_) => {
            let known = unit.known_callee(body, op)?;
            let fills = ExternalFn::Memory(MemoryFn::Memset);
            let fills = known == fills || known == ExternalFn::Memory(MemoryFn::MemsetIntrinsic);
            let args = unit.call_args(body, op);
            fills.then(|| Some((*args.first()?, *args.get(1)?)))?
        }
        _ => None,
    }
}

/// Returns true if the address varies with a loop: the rank determines the start of an array chunk, and any
/// number of ranks writes the whole array.
fn varies_with_loop(body: &Body, ptr: Value) -> bool {
    let is_loop = |kind: &OpKind| {
        let shared = matches!(kind, OpKind::ShareFor { .. } | OpKind::ParFor { .. });
        shared || kind.is_loop()
    };
    let mut seen = HashSet::from([ptr]);
    let mut work = vec![ptr];
    while let Some(value) = work.pop() {
        match body.values[value].def {
            Definition::Param(region, _) => {
                if body
                    .owner(region)
                    .is_some_and(|owner| is_loop(body.kind(owner)))
                {
                    return true;
                }
            }
            Definition::Result(op, _) => {
                let operands = body.operands(op).filter(|operand| seen.insert(*operand));
                work.extend(operands);
            }
            Definition::Const(_) => {}
        }
    }
    false
}

/// Returns true if two addresses are structurally equal.
fn is_same_address(body: &Body, one: Value, other: Value) -> bool {
    if one == other {
        return true;
    }
    match (body.values[one].def, body.values[other].def) {
        (Definition::Result(one, 0), Definition::Result(other, 0)) => {
            matches!(body.kind(one), OpKind::Addr { .. })
                && body.kind(one) == body.kind(other)
                && body.operands(one).eq(body.operands(other))
        }
        _ => false,
    }
}

/// Returns function and location of each sentinel in external memory, written by ranks of teams in bodies that
/// satisfy `loses`, or by callees that receive the rank.
pub(crate) fn external_sentinels(
    unit: &Unit,
    closure: &CallGraph,
    effects: &Effects,
    loses: &dyn Fn(&(FuncId, &Body)) -> bool,
) -> Vec<(FuncId, Option<LocId>)> {
    let asking = closure.bodies(unit).filter_map(|(func, body)| {
        let ranks = rank_values(unit, body);
        let is_one = loses(&(func, body)) || crate::thread_count::queries::queries_rank(unit, body);
        (is_one && !ranks.is_empty()).then_some((func, ranks))
    });
    let mut work: Vec<(FuncId, Vec<Value>)> = asking.collect();
    let mut seen: HashSet<(FuncId, usize)> = HashSet::new();
    let mut found = Vec::new();
    while let Some((func, ranks)) = work.pop() {
        let Some(body) = unit.functions[func].body.as_deref() else {
            continue;
        };
        let context = TaintContext::of(unit, func, body, effects);
        let followed = TaintFlow::of(&context, &ranks);
        for mark in sentinels_of_body(unit, body, &context, &followed) {
            let place = (func, body.ops[mark.op].loc);
            if !context.is_private(mark.ptr) && !found.contains(&place) {
                found.push(place);
            }
        }
        for op in body.walk(body.root()) {
            let callee = unit.callee(body, op);
            let Some((callee, code)) = callee.and_then(|f| {
                let code = unit.functions[f].body.as_deref()?;
                Some((f, code))
            }) else {
                continue;
            };
            let args = unit.call_args(body, op).into_iter().enumerate();
            for (index, _) in args.filter(|(_, arg)| followed.is_tainted(*arg)) {
                if let Some(param) = code.params().get(index)
                    && seen.insert((callee, index))
                {
                    work.push((callee, vec![*param]));
                }
            }
        }
    }
    found
}
