//! Reversal of memory ops: a load accumulates into shadow memory, a store moves the adjoint out of shadow
//! memory.

use crate::emit::builder::{Lanes, MemorySpace, widen};
use crate::emit::masked_ops::{MaskedAccess, match_masked_access};
use crate::reverse::reverse_pass::ReversePass;
use crate::shadow::integer_words::{IntegerStore, ShadowWords};
use crate::shadow::reverse_copy;
use crate::shadow::tangent_ops;
use crate::shadow::word_copy::{WordCopy, word_copy_function};
use crate::tape::segments;
use gradus_analysis::CopyKind;
use gradus_ir::externals::{MaskedFn, MemoryFn};
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{AttrSet, FloatKind, FuncId, IntPredicate, Op, OpKind, RmwOp, Type, TypeId, Value};

impl ReversePass<'_, '_, '_, '_> {
    /// Reverses `x = *p`: `*p_shadow += x_adj`.
    pub(super) fn undo_load(&mut self, op: Op) {
        let body = self.facts.body;
        let (result, ptr) = (body.result(op), body.operand(op, 0));
        if !self.facts.is_active(result) || !self.facts.has_shadow(ptr) {
            return;
        }
        let Some(seeds) = self.take_adjoint(result) else {
            // Not an error: no adjoint was accumulated, and it is zero.
            return;
        };
        let shadows = self.shadows_of(ptr);
        for (lane, (&shadow, &seed)) in shadows.iter().zip(&seeds).enumerate() {
            let guard = self.activity_test(ptr, lane);
            self.when(guard, &[], |pass| {
                let ty = pass.facts.body.ty(result);
                let atomic = pass.may_conflict() && !pass.facts.add_is_exclusive(op);
                pass.record_accumulation(op, atomic);
                if atomic {
                    pass.emit_atomic_add(op, ty, shadow, seed);
                    return None;
                }
                let old = pass.shadow_load(op, ty, shadow);
                let sum = match is_planted(Mutant::LoadReplacesAdjoint) {
                    true => seed,
                    false => {
                        tangent_ops::accumulate_in_memory(pass.out, pass.facts, result, old, seed)
                    }
                };
                pass.shadow_store(op, sum, shadow);
                None
            });
        }
    }

    /// Reverses `*p = x`: `x_adj += *p_shadow; *p_shadow = 0`. The shadow of a pointer becomes zero where floats precede
    /// it.
    pub(super) fn undo_store(&mut self, op: Op) {
        let body = self.facts.body;
        let (value, ptr) = (body.operand(op, 0), body.operand(op, 1));
        if !self.facts.has_shadow(ptr) {
            return;
        }
        let is_integer = self.facts.is_integer_in_words(op);
        if is_integer || !self.facts.holds_float(self.out.unit, value) {
            if self
                .facts
                .clears_shadow_in_reverse(self.out.unit, op, value)
            {
                self.clear_shadow(op, ptr, body.ty(value));
            }
            if is_integer {
                self.undo_integer_in_words(op, ptr);
            }
            return;
        }
        let ty = body.ty(value);
        let shadows = self.shadows_of(ptr);
        let mut lanes = Lanes::new();
        for (lane, &shadow) in shadows.iter().enumerate() {
            let guard = self.activity_test(ptr, lane);
            let taken = self.when(guard, &[ty], |pass| {
                if pass.may_share_location(ptr) {
                    return Some(pass.atomic_exchange(ty, shadow));
                }
                let adjoint = pass.shadow_load(op, ty, shadow);
                let zero = pass.out.build().zero(ty);
                if !is_planted(Mutant::StoreKeepsAdjoint) {
                    pass.shadow_store(op, zero, shadow);
                }
                Some(adjoint)
            });
            lanes.extend(taken);
        }
        self.accumulate_adjoint(value, lanes);
    }

    /// Zeroes the shadow of the words that receive an integer. An adjoint means that the program read a part of the
    /// integer as a part of a float.
    fn undo_integer_in_words(&mut self, op: Op, ptr: Value) {
        let words = ShadowWords::of(self.facts, self.out.unit, op);
        for (lane, shadow) in self.shadows_of(ptr).into_iter().enumerate() {
            let guard = self.activity_test(ptr, lane);
            self.when(guard, &[], |pass| {
                words.store_integer(pass.out, shadow, IntegerStore::Back);
                None
            });
        }
    }

    /// Zeroes the shadow of a stored value.
    fn clear_shadow(&mut self, op: Op, ptr: Value, ty: TypeId) {
        for (lane, shadow) in self.shadows_of(ptr).into_iter().enumerate() {
            let guard = self.activity_test(ptr, lane);
            self.when(guard, &[], |pass| {
                let zero = pass.out.build().zero(ty);
                pass.shadow_store(op, zero, shadow);
                None
            });
        }
    }

    /// Reverses atomic `*p += x` and `*p -= x`: `x_adj += *p_shadow`, or `x_adj -= *p_shadow`; the shadow is
    /// unchanged.
    pub(super) fn undo_atomic_sum(&mut self, op: Op) {
        let body = self.facts.body;
        let (ptr, value) = (body.operand(op, 0), body.operand(op, 1));
        if !self.facts.has_shadow(ptr) || !self.facts.is_active(value) {
            return;
        }
        let ty = body.ty(value);
        let takes = matches!(body.kind(op), OpKind::AtomicRmw(RmwOp::FSub, _));
        let mut lanes = Lanes::new();
        for (lane, shadow) in self.shadows_of(ptr).into_iter().enumerate() {
            let guard = self.activity_test(ptr, lane);
            let adjoint = self.when(guard, &[ty], |pass| {
                let adjoint = pass.shadow_load(op, ty, shadow);
                Some(match takes {
                    true => pass.out.build().fneg(adjoint),
                    false => adjoint,
                })
            });
            lanes.extend(adjoint);
        }
        self.accumulate_adjoint(value, lanes);
    }

    fn shadow_load(&mut self, op: Op, ty: TypeId, shadow: Value) -> Value {
        let value = self.out.load(
            ty,
            shadow,
            MemorySpace::Shadow,
            self.facts.body.ops[op].meta,
        );
        if let Some(new) = self.out.body.def_op(value) {
            self.out.set_align(new, self.align_of(op));
        }
        value
    }

    fn shadow_store(&mut self, op: Op, value: Value, shadow: Value) {
        let new = self.out.store(
            value,
            shadow,
            MemorySpace::Shadow,
            self.facts.body.ops[op].meta,
        );
        self.out.set_align(new, self.align_of(op));
    }

    fn align_of(&self, op: Op) -> u32 {
        match self.facts.body.kind(op) {
            OpKind::Load(access) | OpKind::Store(access) | OpKind::AtomicRmw(_, access) => {
                access.align_bytes
            }
            _ => 1,
        }
    }

    /// Emits the activity test of a pointer: its shadow differs from the primal. Returns `None` if no test is
    /// required.
    fn activity_test(&mut self, ptr: Value, lane: usize) -> Option<Value> {
        if !self.facts.shadow_may_be_primal(ptr) || is_planted(Mutant::RuntimeActivityCheckMissing)
        {
            return None;
        }
        let start = self.facts.address_base(ptr);
        let (own, shadow) = (self.primal(start), self.shadows_of(start)[lane]);
        Some(self.out.build().icmp(IntPredicate::Ne, shadow, own))
    }

    /// Runs `make` under a condition, or unconditionally. The result is zero if the condition fails.
    fn when(
        &mut self,
        guard: Option<Value>,
        result: &[TypeId],
        make: impl FnOnce(&mut Self) -> Option<Value>,
    ) -> Option<Value> {
        let Some(guard) = guard else {
            return make(self);
        };
        let (op, yes, no) = self.out.build().if_(guard, result);
        let outside = std::mem::replace(&mut self.out.insertion_point, (yes, None));
        let value = make(self);
        self.out.build().yield_(value.as_slice());
        self.out.insertion_point = (no, None);
        let zero = result.first().map(|ty| self.out.build().zero(*ty));
        self.out.build().yield_(zero.as_slice());
        self.out.insertion_point = outside;
        self.out.body.results(op).first().copied()
    }

    /// Frees the memory of an alloca that lies on the heap.
    pub(super) fn undo_alloca(&mut self, op: Op) {
        if self.facts.is_on_heap(op) {
            self.free_shadow_and_block(op, true);
        }
    }

    /// Frees the shadow of a block, if the derivative owns it, and the block itself `with_primal`.
    fn free_shadow_and_block(&mut self, op: Op, with_primal: bool) {
        let body = self.facts.body;
        let block = match body.kind(op) {
            OpKind::Alloca(_) => Some(body.result(op)),
            _ => self.facts.call_result(op),
        };
        let Some(result) = block else {
            // Not an error: the program does not use the block's address.
            return;
        };
        let free = gradus_edit::declare_free(self.out.unit);
        let frees = !self.facts.outlives_call(op) && !is_planted(Mutant::ShadowNotFreed);
        if self.facts.has_shadow(result) && frees {
            for shadow in self.shadows_of(result) {
                self.out.build().call(free, &[shadow]);
            }
        }
        if with_primal {
            let block = self.primal(result);
            self.out.build().call(free, &[block]);
        }
    }

    /// Releases a block of another derivative's tape, and its shadows, which were pushed after the block.
    /// Pushes are reversed in LIFO order, and the stack holds no younger blocks. If the stack leaves the
    /// function, the reverse pass of the other derivative, executed by the enclosing forward pass, has
    /// already released the block; the shadows are heap blocks.
    fn undo_push(&mut self, op: Op) {
        let args = self.out.unit.call_args(self.facts.body, op);
        if !self.facts.tape_stack_is_local(args[0]) {
            return self.free_shadow_and_block(op, false);
        }
        let (state, block) = (
            self.primal(args[0]),
            self.primal(self.facts.body.result(op)),
        );
        let release = segments::functions(self.out.unit).release;
        self.out.build().call(release, &[state, block]);
    }

    pub(super) fn undo_memory_call(&mut self, op: Op, function: MemoryFn) {
        if function == MemoryFn::TapePush {
            return self.undo_push(op);
        }
        if function.allocation().is_some() {
            let deferred = self.facts.deferred_free_of(op);
            self.free_shadow_and_block(op, false);
            if let Some(free) = deferred.filter(|_| !is_planted(Mutant::DeferredFreeLost)) {
                self.emit_deferred_free(op, free);
            }
            return;
        }
        match function {
            MemoryFn::MemcpyIntrinsic
            | MemoryFn::MemmoveIntrinsic
            | MemoryFn::Memcpy
            | MemoryFn::Memmove
            | MemoryFn::Mempcpy
            | MemoryFn::Bcopy => self.undo_copy(op, function),
            MemoryFn::MemsetIntrinsic | MemoryFn::Memset | MemoryFn::Bzero => self.undo_fill(op),
            _ => {}
        }
    }

    /// Emits the deferred `free` of the block that `op` allocates.
    fn emit_deferred_free(&mut self, op: Op, free: Op) {
        let body = self.facts.body;
        let operands: Vec<Value> = body.operands(free).map(|v| self.primal(v)).collect();
        debug_assert!(
            body.operands(free)
                .any(|v| Some(v) == self.facts.call_result(op)),
            "the free releases the block of this allocation"
        );
        self.out
            .build()
            .op(body.kind(free).clone(), &operands, &[], 0);
    }

    /// Reverses a copy: the adjoints of the copy move to the original.
    fn undo_copy(&mut self, op: Op, function: MemoryFn) {
        let args = self.out.unit.call_args(self.facts.body, op);
        let (to, from) = match function {
            MemoryFn::Bcopy => (args[1], args[0]),
            _ => (args[0], args[1]),
        };
        if !self.facts.has_shadow(to) {
            return;
        }
        let overlap = function.may_overlap();
        let back = match self.facts.copy_kind(op) {
            CopyKind::Floats(kind) => {
                reverse_copy::reverse_copy_function(self.out.unit, kind, overlap)
            }
            CopyKind::Words => word_copy_function(self.out.unit, WordCopy::Back, overlap),
            CopyKind::Nothing | CopyKind::Pointers => return,
            CopyKind::Cells { .. } => {
                return self.undo_copied_words(op, function, [to, from, args[2]]);
            }
            CopyKind::Unknown => return self.refuse_copy(op),
        };
        let bytes = self.primal(args[2]);
        let bytes = widen(self.out, bytes);
        let to_shadows = self.shadows_of(to);
        let from_shadows = match self.facts.has_shadow(from) {
            true => self.shadows_of(from),
            false => Lanes::new(),
        };
        for (lane, &to_shadow) in to_shadows.iter().enumerate() {
            let guard = self.activity_test(to, lane);
            let source = from_shadows.get(lane).copied();
            self.when(guard, &[], |pass| {
                match source {
                    Some(source) => {
                        let real = pass.activity_test(from, lane);
                        pass.move_adjoints_back(back, [to_shadow, source, bytes], real)
                    }
                    None => pass.out.zero_bytes(to_shadow, bytes, MemorySpace::Shadow),
                }
                None
            });
        }
    }

    fn move_adjoints_back(&mut self, back: FuncId, args: [Value; 3], real: Option<Value>) {
        let clear = |pass: &mut Self| pass.out.zero_bytes(args[0], args[2], MemorySpace::Shadow);
        match real {
            None => {
                self.out.build().call(back, &args);
            }
            Some(real) => {
                let (_, yes, no) = self.out.build().if_(real, &[]);
                let outside = std::mem::replace(&mut self.out.insertion_point, (yes, None));
                self.out.build().call(back, &args);
                self.out.build().yield_(&[]);
                self.out.insertion_point = (no, None);
                clear(self);
                self.out.build().yield_(&[]);
                self.out.insertion_point = outside;
            }
        }
    }

    /// Reverses a fill with a constant: the previous contents have no influence, and their adjoint is zero.
    fn undo_fill(&mut self, op: Op) {
        let args = self.out.unit.call_args(self.facts.body, op);
        let kind = self.facts.copy_kind(op);
        if !self.facts.has_shadow(args[0]) || matches!(kind, CopyKind::Pointers | CopyKind::Nothing)
        {
            return;
        }
        if is_planted(Mutant::FillKeepsAdjoints) {
            return;
        }
        let length = if args.len() > 2 { args[2] } else { args[1] };
        let bytes = self.primal(length);
        let bytes = widen(self.out, bytes);
        for (lane, shadow) in self.shadows_of(args[0]).into_iter().enumerate() {
            let guard = self.activity_test(args[0], lane);
            self.when(guard, &[], |pass| {
                pass.out.zero_bytes(shadow, bytes, MemorySpace::Shadow);
                None
            });
        }
    }

    /// Reverses a typed copy: adjoints of floats move back one by one. The forward pass has copied the
    /// pointers.
    fn undo_copied_words(&mut self, op: Op, function: MemoryFn, [to, from, bytes]: [Value; 3]) {
        let overlap = function.may_overlap();
        let Some(copy) = (self.facts).word_copy(self.out.unit, op, bytes, overlap) else {
            return self.refuse_copy(op);
        };
        let bytes = self.primal(bytes);
        let to_shadows = self.shadows_of(to);
        let from_shadows = match self.facts.has_shadow(from) {
            true => self.shadows_of(from).into_iter().map(Some).collect(),
            false => vec![None; self.facts.width],
        };
        for (lane, (&to_shadow, from_shadow)) in to_shadows.iter().zip(from_shadows).enumerate() {
            let guard = self.activity_test(to, lane);
            self.when(guard, &[], |pass| {
                let real = from_shadow.and_then(|_| pass.activity_test(from, lane));
                copy.undo(pass.out, to_shadow, from_shadow, bytes, real);
                None
            });
        }
    }

    fn refuse_copy(&mut self, op: Op) {
        let finding = self.facts.unknown_copy_error(self.out.unit, op);
        self.findings.push(finding);
    }

    /// Reverses a masked access. A masked load accumulates into the loaded lanes and into the pass-through
    /// value; a masked store moves adjoints out of the stored lanes.
    pub(super) fn undo_masked(&mut self, op: Op) {
        let Some(access) = match_masked_access(self.out.unit, self.facts.body, op) else {
            return self.refuse(op);
        };
        if !self.facts.has_shadow(access.ptr) {
            return self.undo_lanes_not_read(op, access);
        }
        match access.function {
            MaskedFn::Load => self.undo_masked_load(op, access),
            MaskedFn::Store => self.undo_masked_store(op, access),
            _ => self.refuse(op),
        }
    }

    /// Reverses a masked load of inactive memory: only the pass-through lanes have adjoints.
    fn undo_lanes_not_read(&mut self, op: Op, access: MaskedAccess) {
        let body = self.facts.body;
        let Some(&result) = body.results(op).first() else {
            // Not an error: a masked store to inactive memory moves no adjoint.
            return;
        };
        let Some(seeds) = self.take_adjoint(result) else {
            // Not an error: no adjoint was accumulated, and it is zero.
            return;
        };
        if access.function != MaskedFn::Load {
            return self.refuse(op);
        }
        let mask = self.primal(access.mask);
        let mut otherwise = Lanes::new();
        for &seed in &seeds {
            let zero = self.out.build().zero(body.ty(result));
            otherwise.push(self.out.build().select(mask, zero, seed));
        }
        if !is_planted(Mutant::MaskedPassThroughLost) {
            self.accumulate_adjoint(access.data, otherwise);
        }
    }

    fn undo_masked_load(&mut self, op: Op, access: MaskedAccess) {
        let body = self.facts.body;
        let result = body.result(op);
        let Some(seeds) = self.take_adjoint(result) else {
            // Not an error: no adjoint was accumulated, and it is zero.
            return;
        };
        let ty = body.ty(result);
        let mask = self.primal(access.mask);
        let shadows = self.shadows_of(access.ptr);
        let mut otherwise = Lanes::new();
        for (lane, (&shadow, &seed)) in shadows.iter().zip(&seeds).enumerate() {
            let guard = self.activity_test(access.ptr, lane);
            let zero = self.out.build().zero(ty);
            self.when(guard, &[], |pass| {
                let wanted = pass.out.build().select(mask, seed, zero);
                let old = pass.masked_shadow_load(shadow, mask, zero);
                let sum = tangent_ops::accumulate_floats(pass.out, old, wanted);
                pass.masked_shadow_store(sum, shadow, mask);
                None
            });
            otherwise.push(self.out.build().select(mask, zero, seed));
        }
        self.accumulate_adjoint(access.data, otherwise);
    }

    fn undo_masked_store(&mut self, op: Op, access: MaskedAccess) {
        let ty = self.facts.body.ty(access.data);
        if (self.facts).clears_shadow_in_reverse(self.out.unit, op, access.data) {
            return self.clear_masked_shadow(access);
        }
        if self.out.unit.types.float_kind(ty).is_none() {
            // Not an error: integers and pointers have no adjoint.
            return;
        }
        let mask = self.primal(access.mask);
        let shadows = self.shadows_of(access.ptr);
        let mut taken = Lanes::new();
        for (lane, &shadow) in shadows.iter().enumerate() {
            let guard = self.activity_test(access.ptr, lane);
            taken.extend(self.when(guard, &[ty], |pass| {
                let zero = pass.out.build().zero(ty);
                let adjoint = pass.masked_shadow_load(shadow, mask, zero);
                pass.masked_shadow_store(zero, shadow, mask);
                Some(adjoint)
            }));
        }
        self.accumulate_adjoint(access.data, taken);
    }

    /// Zeroes the shadows of the stored lanes of pointers.
    fn clear_masked_shadow(&mut self, access: MaskedAccess) {
        let mask = self.primal(access.mask);
        let mut ty = self.out.unit.types.float(FloatKind::F64);
        if let Type::Vector { len, .. } = *(self.out.unit.types).get(self.out.body.ty(mask)) {
            ty = self.out.unit.types.vector(ty, len);
        }
        for (lane, shadow) in self.shadows_of(access.ptr).into_iter().enumerate() {
            let guard = self.activity_test(access.ptr, lane);
            self.when(guard, &[], |pass| {
                let zero = pass.out.build().zero(ty);
                pass.masked_shadow_store(zero, shadow, mask);
                None
            });
        }
    }

    /// Emits `select(mask, *shadow, otherwise)` by LLVM's masked load.
    fn masked_shadow_load(&mut self, shadow: Value, mask: Value, otherwise: Value) -> Value {
        let ty = self.out.body.ty(otherwise);
        let func = masked_function(self.out, ty, mask, true);
        let call = self.out.build().call(func, &[shadow, mask, otherwise]);
        self.out.mark_access(call, None, MemorySpace::Shadow);
        self.out.body.result(call)
    }

    fn masked_shadow_store(&mut self, value: Value, shadow: Value, mask: Value) {
        let ty = self.out.body.ty(value);
        let func = masked_function(self.out, ty, mask, false);
        let call = self.out.build().call(func, &[value, shadow, mask]);
        self.out.mark_access(call, None, MemorySpace::Shadow);
    }
}

/// Declares LLVM's masked load or store of a vector type.
fn masked_function(
    out: &mut crate::emit::builder::DerivativeBuilder<'_>,
    ty: TypeId,
    mask: Value,
    load: bool,
) -> FuncId {
    let mask_ty = out.body.ty(mask);
    let ptr = out.unit.types.ptr();
    let (lanes, element) = match *out.unit.types.get(ty) {
        Type::Vector { len, elem, .. } => (len, elem),
        _ => (1, ty),
    };
    let bits = out
        .unit
        .types
        .float_kind(element)
        .map_or(64, FloatKind::bits);
    let how = if load { "load" } else { "store" };
    let name = format!("llvm.masked.{how}.v{lanes}f{bits}.p0");
    let signature = match load {
        true => out.unit.types.func(ty, vec![ptr, mask_ty, ty]),
        false => {
            let void = out.unit.types.void();
            out.unit.types.func(void, vec![ty, ptr, mask_ty])
        }
    };
    out.unit.declare(&name, signature, AttrSet::default())
}
