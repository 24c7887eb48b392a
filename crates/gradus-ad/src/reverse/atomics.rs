//! Atomics in the reverse pass of parallel loops.
//!
//! Parallel loops arrive as serial loops with independent iterations, and the reversed loop is independent
//! too. The adjoint of memory that one iteration wrote is private to the iteration. Adjoints of memory that
//! several iterations read are accumulated, atomically unless the add is exclusive (`body_facts/exclusive_adds.rs`).
//! Each iteration has separate tape memory.
//!
//! A callee in an iteration has a concurrent variant ([`Variant::concurrent`](crate::Variant)), whose adds
//! are atomic except to private memory. Any other construct makes the reversed loop serial.

use crate::analysis::body_facts::is_allocated_in_iteration;
use crate::emit::builder::MemorySpace;
use crate::emit::parallel_loops::ParallelLoop;
use crate::reverse::reverse_pass::ReversePass;
use gradus_ir::externals::ExternalFn;
use gradus_ir::{
    Access, Atomicity, Body, Builder, Flags, FloatKind, FuncId, Op, OpKind, RmwOp, Type, TypeId,
    Unit, Value,
};
use std::collections::HashSet;

/// Flags that the reversal inherits from a parallel loop.
const PARALLEL_FLAGS: Flags = Flags(Flags::INDEPENDENT.0 | Flags::ALLOWS_EQUAL_WRITES.0);

impl ReversePass<'_, '_, '_, '_> {
    /// Returns true if the insertion point lies in a reversed loop whose iterations may run concurrently.
    pub(super) fn is_in_concurrent_loop(&self) -> bool {
        let mut open = self.loops.iter().map(|open| open.reversed);
        open.any(|mirror| self.out.body.is_independent(mirror))
    }

    /// Returns true if the insertion point lies in a concurrent reversed loop of two iterations. One thread
    /// may run both, with derivatives that never run concurrently.
    pub(super) fn is_in_two_way_fork(&self) -> bool {
        let (unit, body) = (&self.out.unit, self.facts.body);
        self.loops.iter().any(|open| {
            self.out.body.is_independent(open.reversed)
                && body.as_int(unit, body.operand(open.op, 0)) == Some(2)
        })
    }

    /// Returns true if other iterations or other runs of the derivative may add to the same shadow memory
    /// concurrently.
    pub(super) fn may_conflict(&self) -> bool {
        self.variant.concurrent || self.is_in_concurrent_loop()
    }

    /// Returns true if concurrent iterations may have written an equal value to an address. Exactly one of
    /// them then takes the adjoint.
    pub(super) fn may_share_location(&self, ptr: Value) -> bool {
        self.sharing_loops()
            .any(|lp| !is_allocated_in_iteration(self.out.unit, self.facts.body, lp, ptr))
    }

    /// Returns the enclosing concurrent loops whose iterations may write equal values to one location.
    fn sharing_loops(&self) -> impl Iterator<Item = Op> {
        let open = self.loops.iter().filter(|open| {
            let shares = self.out.body.ops[open.reversed]
                .flags
                .has(Flags::ALLOWS_EQUAL_WRITES);
            shares && self.out.body.is_independent(open.reversed)
        });
        open.map(|open| open.op)
    }

    /// Returns true if a call of a memory function accesses only memory that the current iteration allocated.
    fn is_iteration_private(&self, op: Op) -> bool {
        let (unit, body) = (&self.out.unit, self.facts.body);
        let at_once = self
            .loops
            .iter()
            .filter(|open| self.out.body.is_independent(open.reversed));
        let mut at_once = at_once.map(|open| open.op);
        let mut pointers = unit.call_args(body, op);
        pointers.retain(|arg| unit.types.is_ptr(body.ty(*arg)));
        let own = |lp: Op| {
            pointers
                .iter()
                .all(|ptr| is_allocated_in_iteration(unit, body, lp, *ptr))
        };
        !self.variant.concurrent && at_once.all(own)
    }

    /// Emits an atomic exchange: reads the adjoint in shadow memory and leaves zero.
    pub(super) fn atomic_exchange(&mut self, ty: TypeId, shadow: Value) -> Value {
        let zero = self.out.build().zero(ty);
        let access = self.relaxed_access(self.align_bytes(ty));
        let kind = OpKind::AtomicRmw(RmwOp::Xchg, access);
        let taken = self.out.build().value(kind, &[shadow, zero], ty);
        self.mark_loop_local_atomic(taken);
        let op = self.out.body.def_op(taken);
        self.out.atomics.extend(op.map(|op| (op, 1)));
        taken
    }

    /// Marks a reversed loop as parallel. Records it for the report unless an enclosing loop is recorded.
    pub(super) fn mark_parallel(&mut self, op: Op, mirror: Op) {
        self.out.body.ops[mirror].flags = self.facts.body.ops[op].flags.and(PARALLEL_FLAGS);
        if self
            .loops
            .iter()
            .any(|open| self.recorded_loop(Some(open.reversed)).is_some())
        {
            return;
        }
        self.out.parallel.push(ParallelLoop {
            span: self.out.unit.span(self.facts.body.ops[op].loc),
            reversed_loop: Some(mirror),
            ..ParallelLoop::default()
        });
    }

    /// Records an accumulation in a parallel loop, or in a function that such a loop calls.
    pub(super) fn record_accumulation(&mut self, load: Op, atomic: bool) {
        let loops = self.loops.iter();
        let of_loop = loops
            .filter_map(|open| self.recorded_loop(Some(open.reversed)))
            .next();
        let at = match of_loop.or_else(|| self.recorded_loop(None)) {
            Some(at) => at,
            None if !self.variant.concurrent => return,
            None => {
                self.out.parallel.push(ParallelLoop::default());
                self.out.parallel.len() - 1
            }
        };
        let span = self.out.unit.span(self.facts.body.ops[load].loc);
        let line = span.map_or(0, |span| span.line);
        self.out.parallel[at].adds[usize::from(atomic)].push(line);
    }

    fn recorded_loop(&self, mirror: Option<Op>) -> Option<usize> {
        let mut parallel = self.out.parallel.iter();
        parallel.position(|one| one.reversed_loop == mirror)
    }

    /// Runs before the reversal of an op. If the reversal could conflict with concurrent iterations, the
    /// enclosing loops become serial, and a concurrent derivative becomes exclusive.
    pub(super) fn keep_or_drop_independence(&mut self, op: Op) {
        if !self.may_conflict() || self.may_run_concurrently(op) {
            return;
        }
        if self.variant.concurrent && !self.out.exclusive {
            self.out.exclusive = true;
            self.out.exclusive_cause = self.facts.body.ops[op].loc;
        }
        for open in &self.loops {
            let flags = &mut self.out.body.ops[open.reversed].flags;
            *flags = flags.without(Flags::INDEPENDENT);
        }
    }

    fn may_run_concurrently(&self, op: Op) -> bool {
        let body = self.facts.body;
        match body.kind(op) {
            OpKind::Load(access) if access.is_plain() => {
                self.facts.add_is_exclusive(op) || self.has_atomic_add(body.result(op))
            }
            OpKind::Store(access) => {
                let value = body.operand(op, 0);
                let aligned = self.align_bytes(body.ty(value)) <= access.align_bytes;
                let taken = !self.may_share_location(body.operand(op, 1))
                    || !self.facts.holds_float(self.out.unit, value)
                    || aligned && self.has_atomic_add(value);
                access.is_plain() && taken
            }
            // The adjoint of an atomic sum is only read.
            OpKind::AtomicRmw(..) => true,
            OpKind::Call(_) => self.call_may_run_concurrently(op),
            OpKind::Alloca(_)
            | OpKind::If
            | OpKind::Switch(_)
            | OpKind::For { .. }
            | OpKind::Loop { .. } => true,
            _ => gradus_edit::is_pure(self.out.unit, body, op),
        }
    }

    /// Returns true if the reversal of a call may run concurrently. Functions of the program have a variant
    /// with atomic adds; [`settle`] decides later whether the variant may run concurrently.
    fn call_may_run_concurrently(&self, op: Op) -> bool {
        if gradus_edit::is_pure(self.out.unit, self.facts.body, op) {
            return true;
        }
        let callee = self.out.unit.callee(self.facts.body, op);
        match callee.and_then(|func| self.out.unit.known(func)) {
            Some(ExternalFn::Math(_) | ExternalFn::Marker(_) | ExternalFn::Integer(_)) => true,
            Some(ExternalFn::Memory(function)) => {
                function.allocation().is_some() || function.frees() || self.is_iteration_private(op)
            }
            Some(_) => false,
            None => {
                let by_name = self.facts.pointer_targets(op).is_none();
                self.facts.is_active_call(op) && by_name && self.sharing_loops().next().is_none()
            }
        }
    }

    /// Returns true if an atomic add exists for the adjoint of a loaded value.
    fn has_atomic_add(&self, value: Value) -> bool {
        let ty = self.facts.body.ty(value);
        let float = matches!(
            self.out.unit.types.get(ty),
            Type::Float(FloatKind::F64 | FloatKind::F32)
        );
        float && self.facts.float_bit_ranges(value).is_none()
    }

    fn align_bytes(&self, ty: TypeId) -> u32 {
        self.out.unit.layout.align_bytes(self.out.unit, ty) as u32
    }

    fn relaxed_access(&self, align_bytes: u32) -> Access {
        Access {
            order: Atomicity::Monotonic,
            ..Access::plain(align_bytes)
        }
    }

    /// Marks an atomic access as conflicting only with iterations of this derivative's loops, unless the
    /// derivative itself runs concurrently.
    fn mark_loop_local_atomic(&mut self, old: Value) {
        if !self.variant.concurrent {
            self.out
                .build()
                .set_flags(old, Flags::ATOMIC_ACROSS_ITERATIONS);
        }
    }

    /// Emits an atomic `*shadow += seed`.
    pub(super) fn emit_atomic_add(&mut self, op: Op, ty: TypeId, shadow: Value, seed: Value) {
        let align_bytes = match self.facts.body.kind(op) {
            OpKind::Load(access) => access.align_bytes,
            _ => 1,
        };
        let access = self.relaxed_access(align_bytes.min(self.align_bytes(ty)));
        let kind = OpKind::AtomicRmw(RmwOp::FAdd, access);
        let old = self.out.build().value(kind, &[shadow, seed], ty);
        self.mark_loop_local_atomic(old);
        if let Some(new) = self.out.body.def_op(old) {
            let meta = self.facts.body.ops[op].meta;
            self.out.mark_access(new, meta, MemorySpace::Shadow);
            self.out.atomics.push((new, align_bytes));
        }
    }
}

/// Concurrency summary of a finished derivative.
#[derive(Clone, Debug)]
pub struct ConcurrencySummary {
    /// The function.
    pub func: FuncId,
    /// True if the derivative is the concurrent variant.
    pub concurrent: bool,
    /// True if the derivative must not run concurrently nevertheless.
    pub exclusive: bool,
    /// Atomic accesses to shadow memory, with the known alignment in bytes.
    pub atomics: Vec<(Op, u32)>,
}

/// Resolves independence and atomics of finished derivatives. A loop becomes serial if its iterations share
/// state that the primal's iterations did not share: the tape stack, or shadow memory of derivatives with
/// plain adds. Atomic accesses without possible conflicts become plain. Returns the derivatives that may run
/// concurrently.
pub(crate) fn settle(unit: &mut Unit, made: &[ConcurrencySummary]) -> HashSet<FuncId> {
    let apart = concurrent_derivatives(unit, made);
    for one in made {
        let Some(mut body) = unit.functions[one.func].body.take() else {
            continue;
        };
        let loops: Vec<Op> = body
            .walk(body.root())
            .filter(|op| body.is_independent(*op))
            .collect();
        for op in loops {
            let region = body.op_regions(op)[0];
            let mut callees = body.walk(region).filter_map(|op| unit.callee(&body, op));
            if callees.any(|callee| accesses_shared_state(unit, callee) && !apart.contains(&callee))
            {
                let flags = &mut body.ops[op].flags;
                *flags = flags.without(Flags::INDEPENDENT);
            }
        }
        if !one.concurrent || !apart.contains(&one.func) {
            for &(op, align_bytes) in &one.atomics {
                make_plain_if_unshared(unit, &mut body, op, align_bytes);
            }
        }
        unit.functions[one.func].body = Some(body);
    }
    apart
}

/// Makes an atomic access plain, unless a concurrent loop encloses it.
fn make_plain_if_unshared(unit: &mut Unit, body: &mut Body, op: Op, align_bytes: u32) {
    let meets = body.ancestors(op).any(|op| body.is_independent(op));
    if meets || body.parent(op).is_none() {
        return;
    }
    let OpKind::AtomicRmw(_, access) = &mut body.ops[op].kind else {
        // Not an error: a pass has removed the access, or made it plain.
        return;
    };
    access.align_bytes = align_bytes;
    gradus_edit::atomic_to_plain(&mut Builder::new(unit, body), op);
}

/// Returns the derivatives that may run concurrently: derivatives that are not exclusive, and call no
/// exclusive ones.
fn concurrent_derivatives(unit: &Unit, made: &[ConcurrencySummary]) -> HashSet<FuncId> {
    let own = made.iter().filter(|one| !one.exclusive);
    let mut apart: HashSet<FuncId> = own.map(|one| one.func).collect();
    loop {
        let calls_other = |func: &FuncId| {
            let body = unit.functions[*func].body.as_ref();
            body.is_some_and(|body| {
                let mut callees = body
                    .walk(body.root())
                    .filter_map(|op| unit.callee(body, op));
                callees.any(|callee| {
                    accesses_shared_state(unit, callee)
                        && !is_tape(unit, callee)
                        && !apart.contains(&callee)
                })
            })
        };
        let lost: Vec<FuncId> = apart.iter().copied().filter(calls_other).collect();
        if lost.is_empty() {
            return apart;
        }
        for func in lost {
            apart.remove(&func);
        }
    }
}

/// Returns true if an emitted function accesses memory that the iterations of a loop share.
fn accesses_shared_state(unit: &Unit, func: FuncId) -> bool {
    unit.functions[func].name.starts_with("__gradus1_")
}

/// Returns true if a function accesses a tape. Each run of a derivative has a separate tape.
fn is_tape(unit: &Unit, func: FuncId) -> bool {
    unit.functions[func].name.starts_with("__gradus1_tape_")
}
