//! Parallel loops undone.
//!
//! They come as serial loops whose iterations are independent, and the reversed loop is independent
//! again: what an iteration wrote, no other touched, so its adjoint is its own; what several read, they
//! add to, by atomic adds where it cannot be shown that only one does (`facts/own_adds.rs`); each
//! iteration has its own place on the tape. A function that an iteration calls has a derivative for that
//! ([`Variant::concurrent`](crate::Variant)), whose adds are atomic but for those to its own memory. What
//! is not of these kinds makes the reversed loop a serial one.

use super::return_sweep::ReturnSweep;
use crate::facts::{is_independent, is_of_iteration};
use crate::out::Space;
use crate::report::ParallelLoop;
use gradus_ir::known::Known;
use gradus_ir::{
    Access, Atomicity, Body, Builder, Flags, FloatKind, FuncId, Op, OpKind, RmwOp, Type, TypeId,
    Unit, Value,
};
use std::collections::HashSet;

/// What a parallel loop's reversal is, too.
const OF_PARALLEL: Flags = Flags(Flags::INDEPENDENT.0 | Flags::SHARING.0);

impl ReturnSweep<'_, '_, '_, '_> {
    /// Whether the present place is in a reversed loop whose iterations may run at once.
    pub(super) fn is_parallel(&self) -> bool {
        let mut open = self.loops.iter().map(|open| open.mirror);
        open.any(|mirror| is_independent(&self.out.body, mirror))
    }

    /// Whether the present place is in a reversed loop of two iterations that may run at once: it may be run by one
    /// thread, too, with derivatives that nothing runs beside.
    pub(super) fn is_fork(&self) -> bool {
        let (unit, body) = (&self.out.unit, self.facts.body);
        self.loops.iter().any(|open| {
            is_independent(&self.out.body, open.mirror)
                && body.as_int(unit, body.operand(open.op, 0)) == Some(2)
        })
    }

    /// Whether other iterations or other runs of this derivative may add to the same shadow memory at
    /// the same time.
    pub(super) fn meets_others(&self) -> bool {
        self.variant.concurrent || self.is_parallel()
    }

    /// Whether iterations that may run at once may have written the same to the place of an address. One of
    /// them takes the adjoint then.
    pub(super) fn may_share(&self, ptr: Value) -> bool {
        self.sharing()
            .any(|lp| !is_of_iteration(self.out.unit, self.facts.body, lp, ptr))
    }

    /// The loops around the present place whose iterations may run at once and write the same to one place.
    fn sharing(&self) -> impl Iterator<Item = Op> {
        let open = self.loops.iter().filter(|open| {
            let shares = self.out.body.ops[open.mirror].flags.has(Flags::SHARING);
            shares && is_independent(&self.out.body, open.mirror)
        });
        open.map(|open| open.op)
    }

    /// Whether all that a call of a memory function touches is the present iteration's own.
    fn is_own_memory(&self, op: Op) -> bool {
        let (unit, body) = (&self.out.unit, self.facts.body);
        let at_once = self
            .loops
            .iter()
            .filter(|open| is_independent(&self.out.body, open.mirror));
        let mut at_once = at_once.map(|open| open.op);
        let mut pointers = unit.call_args(body, op);
        pointers.retain(|arg| unit.types.is_ptr(body.ty(*arg)));
        let own = |lp: Op| {
            pointers
                .iter()
                .all(|ptr| is_of_iteration(unit, body, lp, *ptr))
        };
        !self.variant.concurrent && at_once.all(own)
    }

    /// Takes what a shadow holds and leaves zero, at once.
    pub(super) fn take_atomically(&mut self, ty: TypeId, shadow: Value) -> Value {
        let zero = self.out.build().zero(ty);
        let access = self.one_at_a_time(self.align_bytes(ty));
        let kind = OpKind::AtomicRmw(RmwOp::Xchg, access);
        let taken = self.out.build().value(kind, &[shadow, zero], ty);
        self.mark_between(taken);
        let op = self.out.body.def_op(taken);
        self.out.atomics.extend(op.map(|op| (op, 1)));
        taken
    }

    /// The iterations of a reversed loop may run at once; notes it for the report, where it stands in no
    /// other such loop.
    pub(super) fn mark_parallel(&mut self, op: Op, mirror: Op) {
        self.out.body.ops[mirror].flags = self.facts.body.ops[op].flags.and(OF_PARALLEL);
        if self
            .loops
            .iter()
            .any(|open| self.noted(Some(open.mirror)).is_some())
        {
            return;
        }
        self.out.parallel.push(ParallelLoop {
            span: self.out.unit.span(self.facts.body.ops[op].loc),
            mirror: Some(mirror),
            ..ParallelLoop::default()
        });
    }

    /// Notes an add of a parallel loop, or of a function that one calls.
    pub(super) fn note_add(&mut self, load: Op, atomic: bool) {
        let loops = self.loops.iter();
        let of_loop = loops
            .filter_map(|open| self.noted(Some(open.mirror)))
            .next();
        let at = match of_loop.or_else(|| self.noted(None)) {
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

    fn noted(&self, mirror: Option<Op>) -> Option<usize> {
        let mut parallel = self.out.parallel.iter();
        parallel.position(|one| one.mirror == mirror)
    }

    /// Before an op is undone: where undoing it could meet others, the loops around it become serial,
    /// and a derivative that others may run beside runs alone.
    pub(super) fn keep_independence(&mut self, op: Op) {
        if !self.meets_others() || self.stays_apart(op) {
            return;
        }
        if self.variant.concurrent && !self.out.exclusive {
            self.out.exclusive = true;
            self.out.alone_for = self.facts.body.ops[op].loc;
        }
        for open in &self.loops {
            let flags = &mut self.out.body.ops[open.mirror].flags;
            *flags = flags.without(Flags::INDEPENDENT);
        }
    }

    fn stays_apart(&self, op: Op) -> bool {
        let body = self.facts.body;
        match body.kind(op) {
            OpKind::Load(access) if access.is_plain() => {
                self.facts.adds_alone(op) || self.has_atomic_add(body.result(op))
            }
            OpKind::Store(access) => {
                let value = body.operand(op, 0);
                let aligned = self.align_bytes(body.ty(value)) <= access.align_bytes;
                let taken = !self.may_share(body.operand(op, 1))
                    || !self.facts.holds_float(self.out.unit, value)
                    || aligned && self.has_atomic_add(value);
                access.is_plain() && taken
            }
            // What is added up is only read.
            OpKind::AtomicRmw(..) => true,
            OpKind::Call(_) => self.call_stays_apart(op),
            OpKind::Alloca(_)
            | OpKind::If
            | OpKind::Switch(_)
            | OpKind::For { .. }
            | OpKind::Loop { .. } => true,
            _ => gradus_edit::is_pure(self.out.unit, body, op),
        }
    }

    /// Of functions of the program there is a derivative that adds atomically; whether it may run beside
    /// others is only known when it is made ([`settle`]).
    fn call_stays_apart(&self, op: Op) -> bool {
        if gradus_edit::is_pure(self.out.unit, self.facts.body, op) {
            return true;
        }
        let callee = self.out.unit.callee(self.facts.body, op);
        match callee.and_then(|func| self.out.unit.known(func)) {
            Some(Known::Math(_) | Known::Marker(_) | Known::Integer(_)) => true,
            Some(Known::Memory(function)) => {
                function.allocation().is_some() || function.frees() || self.is_own_memory(op)
            }
            Some(_) => false,
            None => {
                let by_name = self.facts.pointer_targets(op).is_none();
                self.facts.is_active_call(op) && by_name && self.sharing().next().is_none()
            }
        }
    }

    /// Whether the adjoint of a loaded value can be added at once, wherever it lies.
    fn has_atomic_add(&self, value: Value) -> bool {
        let ty = self.facts.body.ty(value);
        let float = matches!(
            self.out.unit.types.get(ty),
            Type::Float(FloatKind::F64 | FloatKind::F32)
        );
        float && self.facts.lanes(value).is_none()
    }

    fn align_bytes(&self, ty: TypeId) -> u32 {
        self.out.unit.layout.align_bytes(self.out.unit, ty) as u32
    }

    fn one_at_a_time(&self, align_bytes: u32) -> Access {
        Access {
            order: Atomicity::Monotonic,
            ..Access::plain(align_bytes)
        }
    }

    /// Says of an atomic access that it meets only what runs in the loops of this derivative, unless others run
    /// beside it.
    fn mark_between(&mut self, old: Value) {
        if !self.variant.concurrent {
            self.out.build().set_flags(old, Flags::BETWEEN);
        }
    }

    /// `*shadow += seed` where other iterations may add at the same time.
    pub(super) fn add_atomically(&mut self, op: Op, ty: TypeId, shadow: Value, seed: Value) {
        let align_bytes = match self.facts.body.kind(op) {
            OpKind::Load(access) => access.align_bytes,
            _ => 1,
        };
        let access = self.one_at_a_time(align_bytes.min(self.align_bytes(ty)));
        let kind = OpKind::AtomicRmw(RmwOp::FAdd, access);
        let old = self.out.build().value(kind, &[shadow, seed], ty);
        self.mark_between(old);
        if let Some(new) = self.out.body.def_op(old) {
            let meta = self.facts.body.ops[op].meta;
            self.out.mark_access(new, meta, Space::Shadow);
            self.out.atomics.push((new, align_bytes));
        }
    }
}

/// A derivative that was made, as far as others beside it go.
#[derive(Clone, Debug)]
pub struct Beside {
    /// The function.
    pub func: FuncId,
    /// Whether it is made to run beside others.
    pub concurrent: bool,
    /// Whether it must not, all the same.
    pub exclusive: bool,
    /// Its atomic accesses to shadow memory, and the bytes to which each place is known to be aligned.
    pub atomics: Vec<(Op, u32)>,
}

/// Takes the word of independence from loops of finished derivatives whose iterations share what the
/// primal's did not: the tape's stack, and the plain adds of other derivatives. What then meets no others
/// adds plainly. Returns the derivatives that may run concurrently.
pub(crate) fn settle(unit: &mut Unit, made: &[Beside]) -> HashSet<FuncId> {
    let apart = apart(unit, made);
    for one in made {
        let Some(mut body) = unit.functions[one.func].body.take() else {
            continue;
        };
        let loops: Vec<Op> = body
            .walk(body.root())
            .filter(|op| is_independent(&body, *op))
            .collect();
        for op in loops {
            let region = body.op_regions(op)[0];
            let mut callees = body.walk(region).filter_map(|op| unit.callee(&body, op));
            if callees.any(|callee| shares_state(unit, callee) && !apart.contains(&callee)) {
                let flags = &mut body.ops[op].flags;
                *flags = flags.without(Flags::INDEPENDENT);
            }
        }
        if !one.concurrent || !apart.contains(&one.func) {
            for &(op, align_bytes) in &one.atomics {
                add_plainly(unit, &mut body, op, align_bytes);
            }
        }
        unit.functions[one.func].body = Some(body);
    }
    apart
}

/// Makes an atomic access a plain one, if it stands in no loop whose iterations may run at once.
fn add_plainly(unit: &mut Unit, body: &mut Body, op: Op, align_bytes: u32) {
    let around = |op: &Op| body.owner(body.parent(*op)?);
    let meets = std::iter::successors(around(&op), around).any(|op| is_independent(body, op));
    if meets || body.parent(op).is_none() {
        return;
    }
    let OpKind::AtomicRmw(_, access) = &mut body.ops[op].kind else {
        // Not an error: a pass has removed the access, or made it plain.
        return;
    };
    access.align_bytes = align_bytes;
    gradus_edit::make_plain(&mut Builder::new(unit, body), op);
}

/// The derivatives that may run beside others: those that are not exclusive, and call no other that is.
fn apart(unit: &Unit, made: &[Beside]) -> HashSet<FuncId> {
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
                    shares_state(unit, callee) && !is_tape(unit, callee) && !apart.contains(&callee)
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

/// Whether an emitted function works on memory that the iterations of a loop share.
fn shares_state(unit: &Unit, func: FuncId) -> bool {
    unit.functions[func].name.starts_with("__gradus1_")
}

/// Returns true if a function works on a tape. Each run of a derivative has its own tape.
fn is_tape(unit: &Unit, func: FuncId) -> bool {
    unit.functions[func].name.starts_with("__gradus1_tape_")
}
