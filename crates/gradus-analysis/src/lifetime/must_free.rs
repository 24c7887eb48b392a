//! Blocks that are always freed by the call that allocates them.
//!
//! A free of some block of an alias set is no proof for a particular block: a growing workspace frees its
//! predecessor. Required is a free after the allocation, on every path, of the block's pointer or of a
//! pointer loaded after the block's address was stored. Null checks of the pointer may enclose the free, and
//! loops and branches that the allocation implies (`loops::count_expressions`). If the allocating function has
//! no such free, all of its callers must.

use crate::loops::count_expressions::{Count, count_of, in_caller, is_nonzero, nonzero_around};
use crate::points_to::alias_sets::{AliasSetId, CellRef, MemoryOrigin};
use crate::view::View;
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{Body, Definition, FuncId, Op, OpKind, Region, Value};
use std::collections::{HashMap, HashSet};

/// Maximal call depth of the search.
const DEPTH_MAX: usize = 6;

/// Returns the calls that may free blocks, by alias set.
pub(crate) fn frees(facts: View<'_>) -> HashMap<AliasSetId, Vec<(FuncId, Op)>> {
    let mut frees: HashMap<AliasSetId, Vec<(FuncId, Op)>> = HashMap::new();
    for (func, body) in facts.closure.bodies(facts.unit) {
        for op in body.walk(body.root()) {
            for class in freed_by(facts, func, body, op) {
                frees.entry(class).or_default().push((func, op));
            }
        }
    }
    frees
}

/// Returns the pointer that `op` frees.
fn freed_pointer(facts: View<'_>, body: &Body, op: Op) -> Option<Value> {
    let callee = facts.unit.callee(body, op)?;
    let argument = facts.unit.known_effects(callee)?.frees?;
    let args = facts.unit.call_args(body, op);
    args.get(usize::from(argument)).copied()
}

/// Returns the alias sets with a block that `op` may free.
fn freed_by(facts: View<'_>, func: FuncId, body: &Body, op: Op) -> Vec<AliasSetId> {
    let freed = freed_pointer(facts, body, op);
    freed.map_or_else(Vec::new, |freed| facts.memory.alias_sets_of(func, freed))
}

/// Returns true if `op` frees the block to which a pointer variable points at that time. An element of an array of
/// pointers is no proof: the block may lie in another element.
fn frees_block_of_variable(facts: View<'_>, func: FuncId, body: &Body, op: Op) -> bool {
    let freed = freed_pointer(facts, body, op);
    let load = freed.and_then(|freed| body.def_op(freed));
    let load = load.filter(|load| matches!(body.kind(*load), OpKind::Load(_)));
    load.is_some_and(|load| {
        let places = facts.memory.targets(func, body.operand(load, 0));
        let is_single_cell = |place: &CellRef| {
            let holder = facts.memory.get(place.class);
            let is_variable = matches!(holder.origins.as_slice(), [MemoryOrigin::Global(_)]);
            is_variable
                && !holder
                    .folds
                    .iter()
                    .any(|fold| fold.contains(place.offset_bytes))
        };
        places.len() == 1 && places.iter().all(is_single_cell)
    })
}

/// Returns the calls among `sites` that are a proof for the blocks of `class`: their pointer leads to blocks of this
/// allocation site only, or comes from the variable that holds the block. Other calls may free another block instead.
fn sites_of_only(facts: View<'_>, class: AliasSetId, sites: &[(FuncId, Op)]) -> Vec<(FuncId, Op)> {
    let origins = &facts.memory.get(class).origins;
    let is_own = |freed: &AliasSetId| facts.memory.get(*freed).origins == *origins;
    let is_only = |(func, op): &&(FuncId, Op)| {
        let body = facts.unit.functions[*func].body.as_deref();
        body.is_some_and(|body| {
            freed_by(facts, *func, body, *op).iter().all(is_own)
                || frees_block_of_variable(facts, *func, body, *op)
        })
    };
    sites.iter().filter(is_only).copied().collect()
}

/// Returns the alias sets whose blocks are always freed. `frees` lists the calls that may free blocks, by alias
/// set.
pub(crate) fn always_freed_sets(
    facts: View<'_>,
    frees: &HashMap<AliasSetId, Vec<(FuncId, Op)>>,
) -> HashSet<AliasSetId> {
    let surely = |(class, sites): (&AliasSetId, &Vec<(FuncId, Op)>)| {
        let sites = sites_of_only(facts, *class, sites);
        let search = FreeSearch {
            facts,
            sites: &sites,
            freeing: freeing_functions(facts, &sites),
        };
        let made = facts.memory.get(*class).origins.iter();
        let made = made.filter_map(|origin| match origin {
            MemoryOrigin::Heap(func, op) => Some((*func, *op)),
            _ => None,
        });
        let mut made = made.peekable();
        (made.peek().is_some() && made.all(|(func, op)| search.is_freed_after(func, op, &[], 0)))
            .then_some(*class)
    };
    frees.iter().filter_map(surely).collect()
}

struct FreeSearch<'a> {
    facts: View<'a>,
    sites: &'a [(FuncId, Op)],
    /// The functions that free such blocks, directly or in callees.
    freeing: HashSet<FuncId>,
}

/// A function on the way to a free.
#[derive(Clone, Copy)]
struct Frame<'a> {
    func: FuncId,
    /// Expressions that are not zero if the allocation takes place.
    allocated: &'a [Count],
    /// The function's parameters in the terms of `allocated`; absent in the function that `allocated`
    /// refers to.
    args: Option<&'a [Count]>,
}

/// Returns the functions that contain a site, directly or in callees.
fn freeing_functions(facts: View<'_>, sites: &[(FuncId, Op)]) -> HashSet<FuncId> {
    let mut work: Vec<FuncId> = sites.iter().map(|(func, _)| *func).collect();
    let mut found = HashSet::new();
    while let Some(func) = work.pop() {
        if found.insert(func) {
            work.extend(facts.closure.calls_of(func).iter().map(|call| call.caller));
        }
    }
    found
}

impl<'a> FreeSearch<'a> {
    fn body(&self, func: FuncId) -> Option<&'a Body> {
        self.facts.unit.functions[func].body.as_deref()
    }

    /// Returns true if the block allocated by `op`, directly or in a callee, is freed before `func` ends or
    /// by its callers. `inner` are expressions of callees that the allocation implies to be not zero.
    fn is_freed_after(&self, func: FuncId, op: Op, inner: &[Count], depth: usize) -> bool {
        let Some(body) = self.body(func).filter(|_| depth < DEPTH_MAX) else {
            return false;
        };
        let later = AfterOp::of(body, op);
        let mut allocated = nonzero_around(self.facts.unit, func, body, op);
        allocated.extend_from_slice(inner);
        let frame = Frame {
            func,
            allocated: &allocated,
            args: None,
        };
        let here = |free: &Op| {
            later.contains(*free)
                && self.frees(frame, *free, Some(&later), depth)
                && self.is_on_all_paths(frame, body, *free, body.parent(op))
                && !(self.sites.contains(&(func, *free))
                    && may_free_earlier_iteration(body, op, *free))
        };
        if body.walk(body.root()).any(|free| here(&free)) {
            return true;
        }
        let calls = self.facts.closure.calls_of(func);
        let by_address = self.facts.closure.address_taken().contains(&func);
        !calls.is_empty()
            && !by_address
            && (calls.iter()).all(|call| {
                let given = self.arguments(call.caller, call.op, None);
                let counts: Vec<Count> = (allocated.iter())
                    .filter_map(|count| in_caller(count, &given))
                    .collect();
                self.is_freed_after(call.caller, call.op, &counts, depth + 1)
            })
    }

    /// Returns the expressions of a call's arguments; `args` are those of the calling function's parameters.
    fn arguments(&self, func: FuncId, call: Op, args: Option<&[Count]>) -> Vec<Count> {
        let (unit, Some(body)) = (self.facts.unit, self.body(func)) else {
            // Not an error: a declaration contains no call.
            return Vec::new();
        };
        let given = unit.call_args(body, call).into_iter();
        given
            .map(|value| count_of(unit, func, body, value, args))
            .collect()
    }

    /// Returns true if an op frees such a block, directly or in a callee. `later` restricts frees to
    /// pointers obtained after the allocation.
    fn frees(&self, frame: Frame<'_>, op: Op, later: Option<&AfterOp<'_>>, depth: usize) -> bool {
        let func = frame.func;
        let (unit, Some(body)) = (self.facts.unit, self.body(func)) else {
            return false;
        };
        let Some(callee) = unit.callee(body, op) else {
            return false;
        };
        let args = unit.call_args(body, op);
        let is_new = |value: Value| later.is_none_or(|later| later.is_obtained_later(value));
        if self.sites.contains(&(func, op)) {
            let freed = unit.known_effects(callee).and_then(|known| known.frees);
            return freed.is_some_and(|i| is_new(args[usize::from(i)]));
        }
        let may_free = depth < DEPTH_MAX && self.freeing.contains(&callee);
        let Some(inner) = self.body(callee).filter(|_| may_free) else {
            return false;
        };
        // The callee's own loads follow the allocation; its arguments must be new.
        let given = AfterOp::all_but_params(inner, |number| {
            args.get(number).is_some_and(|arg| is_new(*arg))
        });
        let params = self.arguments(func, op, frame.args);
        let frame = Frame {
            func: callee,
            args: Some(&params),
            ..frame
        };
        let mut ops = inner.walk(inner.root());
        ops.any(|op| {
            self.frees(frame, op, Some(&given), depth + 1)
                && self.is_on_all_paths(frame, inner, op, Some(inner.root()))
        })
    }

    /// Returns true if control in the region `from` always reaches `op`, in the region or after it.
    fn is_on_all_paths(&self, frame: Frame<'_>, body: &Body, op: Op, from: Option<Region>) -> bool {
        let (mut at, Some(from)) = (body.parent(op), from) else {
            return false;
        };
        while let Some(region) = at {
            if body.is_inside(from, region) {
                return true;
            }
            let Some(owner) = body.owner(region) else {
                return false;
            };
            let passes = match body.kind(owner) {
                OpKind::Loop { .. } => true,
                OpKind::For { .. } => {
                    is_planted(Mutant::FreeInEmptyLoopCounted)
                        || self.follows_from_allocation(frame, body, body.operand(owner, 0))
                }
                OpKind::If => {
                    let condition = body.operand(owner, 0);
                    self.is_null_check(body, condition, op)
                        || body.op_regions(owner)[0] == region
                            && self.follows_from_allocation(frame, body, condition)
                }
                _ => false,
            };
            if !passes {
                return false;
            }
            at = body.parent(owner);
        }
        false
    }

    /// Returns true if a trip count or a condition is not zero whenever the allocation took place.
    fn follows_from_allocation(&self, frame: Frame<'_>, body: &Body, value: Value) -> bool {
        let value = count_of(self.facts.unit, frame.func, body, value, frame.args);
        is_nonzero(&value, frame.allocated)
    }

    /// Returns true if a condition compares an argument of the op `given` with null.
    fn is_null_check(&self, body: &Body, condition: Value, given: Op) -> bool {
        let Some(op) = body.def_op(condition) else {
            return false;
        };
        let is_null = |value: Value| body.is_null(self.facts.unit, value);
        let args = self.facts.unit.call_args(body, given);
        let is_given = |value: Value| args.iter().any(|arg| is_equal(body, *arg, value));
        matches!(body.kind(op), OpKind::ICmp(_))
            && body.operands(op).any(is_null)
            && body.operands(op).any(is_given)
    }
}

/// Returns true if a free shares a loop with the allocation and may free a block of an earlier iteration.
/// The freed pointer is then loaded from a location other than the store of the new block.
fn may_free_earlier_iteration(body: &Body, made: Op, free: Op) -> bool {
    let mut loops = body.ancestors(free).filter(|op| body.kind(*op).is_loop());
    let holds = |lp: Op| body.is_ancestor(lp, made);
    let store = last_address_store(body, made);
    let is_this = |value: Value| {
        let read = body.def_op(value);
        body.results(made).contains(&value)
            || read.is_some_and(|read| {
                store != made
                    && matches!(body.kind(read), OpKind::Load(_))
                    && is_equal(body, body.operand(read, 0), body.operand(store, 1))
            })
    };
    loops.any(holds) && !body.operands(free).any(is_this)
}

/// Returns true if two values are identical, or are loads from equal addresses.
fn is_equal(body: &Body, a: Value, b: Value) -> bool {
    let (Some(x), Some(y)) = (body.def_op(a), body.def_op(b)) else {
        return a == b || body.as_const(a).is_some() && body.as_const(a) == body.as_const(b);
    };
    let computes = matches!(body.kind(x), OpKind::Load(_) | OpKind::Addr { .. });
    let alike = || body.kind(x) == body.kind(y) && body.operand_count(x) == body.operand_count(y);
    let operands = || std::iter::zip(body.operands(x), body.operands(y));
    a == b || computes && alike() && operands().all(|(a, b)| is_equal(body, a, b))
}

/// Returns the last op that stores the address allocated by `made`; `made` itself if there is none.
fn last_address_store(body: &Body, made: Op) -> Op {
    let mut work: Vec<Value> = body.results(made).to_vec();
    let mut seen = HashSet::new();
    let mut stores = HashSet::new();
    while let Some(value) = work.pop() {
        if !seen.insert(value) {
            continue;
        }
        for at in body.uses(value) {
            match body.kind(at.op) {
                OpKind::Store(_) if at.index == 0 => {
                    stores.insert(at.op);
                }
                OpKind::Addr { .. } | OpKind::Cast(_) | OpKind::Select => {
                    work.extend(body.results(at.op));
                }
                OpKind::Yield => {
                    let owner = body.parent_op(at.op);
                    work.extend(owner.into_iter().flat_map(|op| body.results(op)));
                }
                _ => {}
            }
        }
    }
    let ops = body.walk(body.root());
    ops.filter(|op| stores.contains(op)).last().unwrap_or(made)
}

/// The ops and parameters that count as later than an allocation.
struct AfterOp<'a> {
    body: &'a Body,
    /// The allocation; `ops` are the ops after it.
    allocation: Option<Op>,
    ops: HashSet<Op>,
    /// The parameters that count as later.
    params: Vec<bool>,
}

impl<'a> AfterOp<'a> {
    fn of(body: &'a Body, made: Op) -> AfterOp<'a> {
        let stored = last_address_store(body, made);
        let ops = body
            .walk(body.root())
            .skip_while(|op| *op != stored)
            .skip(1);
        AfterOp {
            body,
            allocation: Some(made),
            ops: ops.collect(),
            params: vec![false; body.params().len()],
        }
    }
    fn all_but_params(body: &'a Body, is_new: impl Fn(usize) -> bool) -> AfterOp<'a> {
        AfterOp {
            body,
            allocation: None,
            ops: body.walk(body.root()).collect(),
            params: (0..body.params().len()).map(is_new).collect(),
        }
    }
    fn contains(&self, op: Op) -> bool {
        self.ops.contains(&op)
    }
    /// Returns true if a pointer is the allocation's result, or is loaded or returned by a call after it.
    fn is_obtained_later(&self, pointer: Value) -> bool {
        let mut work = vec![pointer];
        let mut seen = HashSet::new();
        while let Some(value) = work.pop() {
            if !seen.insert(value) {
                continue;
            }
            match self.body.values[value].def {
                Definition::Result(op, _) if Some(op) == self.allocation => {}
                Definition::Result(op, _) => match self.body.kind(op) {
                    OpKind::Load(_) | OpKind::Call(_) | OpKind::Invoke(_) if self.contains(op) => {}
                    OpKind::Addr { .. } | OpKind::Cast(_) | OpKind::Freeze => {
                        work.push(self.body.operand(op, 0));
                    }
                    OpKind::If | OpKind::Switch(_) => {
                        work.extend(self.terminator_operands(op, value))
                    }
                    _ => return false,
                },
                Definition::Param(region, number) => match self.body.owner(region) {
                    Some(owner) if self.contains(owner) => {
                        let alike = |v: &Value| self.body.ty(*v) == self.body.ty(value);
                        work.extend(self.body.operands(owner).filter(alike));
                        work.extend(self.terminator_operands(owner, value));
                    }
                    None if self.params.get(number as usize) == Some(&true) => {}
                    _ => return false,
                },
                Definition::Const(_) => {}
            }
        }
        true
    }

    /// Returns the terminator operands of an op's regions that have a value's type.
    fn terminator_operands(&self, op: Op, value: Value) -> Vec<Value> {
        let regions = self.body.op_regions(op).iter();
        let ends = regions.filter_map(|region| self.body.last(*region));
        let values = ends.flat_map(|end| self.body.operands(end));
        values
            .filter(|v| self.body.ty(*v) == self.body.ty(value))
            .collect()
    }
}
