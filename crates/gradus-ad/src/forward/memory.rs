//! Memory operations of the forward pass: allocates shadows of allocations, and stores shadow pointers next
//! to pointers; in forward mode also tangents next to floats.

use super::ForwardPass;
use crate::analysis::body_facts::AlternatingMemory;
use crate::analysis::body_facts::word_offsets::WORD_BYTES;
use crate::emit::builder::{Lanes, MemorySpace, widen};
use crate::emit::libc;
use crate::shadow::integer_words::{IntegerStore, ShadowWords};
use crate::shadow::typed_copy::FloatCopy;
use crate::shadow::word_copy::{WordCopy, word_copy_function};
use crate::tape::segments;
use gradus_analysis::CopyKind;
use gradus_ir::externals::MemoryFn;
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{IntPredicate, Op, OpKind, Value};

impl ForwardPass<'_, '_, '_, '_> {
    /// Emits an alloca. If the reverse pass requires memory beyond the lifetime of the stack frame, the
    /// memory lies on the heap, and the reverse pass frees it.
    pub(super) fn alloca(&mut self, op: Op) {
        let body = self.facts.body;
        let result = body.result(op);
        let OpKind::Alloca(info) = body.kind(op) else {
            return self.ice(Some(op), "the op is not an alloca");
        };
        let info = *info;
        let bytes = self.alloca_bytes(op, info.ty);
        let on_heap = self.facts.is_on_heap(op);
        if on_heap {
            let block = libc::private_block(&mut self.out.build(), bytes);
            self.values.insert(result, block);
        } else {
            self.clone_plain(op);
        }
        if !self.has_companion(result) {
            return;
        }
        let mut lanes = Lanes::new();
        for _ in 0..self.facts.width {
            let shadow = match on_heap {
                true => libc::zeroed_private_block(self.out, bytes),
                false => self.zeroed_alloca(op, info, bytes),
            };
            lanes.push(shadow);
        }
        self.companions.insert(result, lanes);
    }

    fn alloca_bytes(&mut self, op: Op, ty: gradus_ir::TypeId) -> Value {
        let size = self.out.unit.layout.size_bytes(self.out.unit, ty);
        let count = self.value(self.facts.body.operand(op, 0));
        let count = widen(self.out, count);
        let size = self.out.build().i64(size as i64);
        match self.out.body.as_int(self.out.unit, count) {
            Some(1) => size,
            _ => self.out.build().mul(count, size),
        }
    }

    fn zeroed_alloca(&mut self, op: Op, info: gradus_ir::AllocaInfo, bytes: Value) -> Value {
        let count = self.value(self.facts.body.operand(op, 0));
        let ptr = self.facts.body.ty(self.facts.body.result(op));
        let shadow = match self.facts.word_offset(op) {
            None => self.out.build().value(OpKind::Alloca(info), &[count], ptr),
            Some(offset) => self.alloca_with_words_at(info, count, offset),
        };
        if !is_planted(Mutant::StackShadowNotZeroed) {
            self.out.zero_bytes(shadow, bytes, MemorySpace::Shadow);
        }
        shadow
    }

    /// Emits an alloca for a shadow, and returns its start: the words begin `offset` bytes behind, aligned.
    fn alloca_with_words_at(
        &mut self,
        mut info: gradus_ir::AllocaInfo,
        count: Value,
        offset: u32,
    ) -> Value {
        let unit = &mut *self.out.unit;
        let bytes = unit.layout.size_bytes(unit, info.ty) + WORD_BYTES as u64;
        let byte = unit.types.int(8);
        info.ty = unit.types.array(byte, bytes);
        info.align_bytes = WORD_BYTES as u32;
        let ptr = unit.types.ptr();
        let room = self.out.build().value(OpKind::Alloca(info), &[count], ptr);
        let before = self.out.build().i64(WORD_BYTES - i64::from(offset));
        self.out.build().byte_addr(room, before)
    }

    /// Emits a store, and the store of the shadow pointer or the tangent.
    pub(super) fn store(&mut self, op: Op) {
        if !self.facts.is_dead_store(op) {
            self.clone_plain(op);
        }
        let body = self.facts.body;
        let (value, ptr) = (body.operand(op, 0), body.operand(op, 1));
        let OpKind::Store(access) = body.kind(op) else {
            return self.ice(Some(op), "the op is not a store");
        };
        let stores_pointer = self.facts.holds_pointer(self.out.unit, value)
            && !is_planted(Mutant::ShadowPointerNotStored);
        let stores_tangent = self.forward_mode()
            && self.facts.holds_float(self.out.unit, value)
            && !is_planted(Mutant::TangentNotStored);
        if self.facts.has_shadow(ptr) && self.facts.is_integer_in_words(op) {
            return self.store_integer_in_words(op, ptr);
        }
        let clears = !stores_pointer
            && (self.facts.clears_address_word(op) || self.clears_shadow_pointer(op, value));
        if !self.facts.has_shadow(ptr) || !(stores_pointer || stores_tangent || clears) {
            return;
        }
        let shadows = self.companion(ptr);
        let values = match clears {
            true => {
                let zero = self.out.build().zero(body.ty(value));
                Lanes::from_elem(zero, shadows.len())
            }
            false => self.companion(value),
        };
        for (lane, (&shadow, &beside)) in shadows.iter().zip(&values).enumerate() {
            let guard = self.activity_test(ptr, lane);
            self.when(guard, |pass| {
                let meta = body.ops[op].meta;
                let new = pass.out.store(beside, shadow, MemorySpace::Shadow, meta);
                pass.out.set_align(new, access.align_bytes);
                pass.drop_self_alias_scopes(new, ptr);
            });
        }
    }

    /// Ends the lives of the address or the tangent in the shadow of a word that receives an integer.
    fn store_integer_in_words(&mut self, op: Op, ptr: Value) {
        let how = match self.forward_mode() {
            true => IntegerStore::Tangent,
            false => IntegerStore::Address,
        };
        let words = ShadowWords::of(self.facts, self.out.unit, op);
        for (lane, shadow) in self.companion(ptr).into_iter().enumerate() {
            let guard = self.activity_test(ptr, lane);
            self.when(guard, |pass| words.store_integer(pass.out, shadow, how));
        }
    }

    /// Returns true if a store of a float may end the life of an address in shadow memory, which then becomes an adjoint.
    pub(super) fn clears_shadow_pointer(&mut self, op: Op, value: Value) -> bool {
        // The adjoint of an inactive float reaches nothing.
        let is_active_float =
            self.facts.holds_float(self.out.unit, value) && self.facts.is_active(value);
        if self.forward_mode() || !is_active_float {
            return false;
        }
        match self.facts.alternating_memory(op) {
            None => false,
            Some(AlternatingMemory::Own) => !is_planted(Mutant::ShadowPointerNotCleared),
            Some(AlternatingMemory::Caller) => {
                if !self.facts.holds_doubles(self.out.unit, value) {
                    let finding = self.facts.alternating_memory_error(self.out.unit, op);
                    self.findings.push(finding);
                }
                false
            }
        }
    }

    /// Emits an atomic sum, and the atomic sum of the tangent in the shadow. The memory of other atomic
    /// accesses has no shadow.
    pub(super) fn atomic_sum(&mut self, op: Op) {
        self.clone_plain(op);
        let body = self.facts.body;
        let (ptr, value) = (body.operand(op, 0), body.operand(op, 1));
        let float = self.facts.holds_float(self.out.unit, value);
        if !self.forward_mode() || !float || !self.facts.has_shadow(ptr) {
            return;
        }
        let shadows = self.companion(ptr);
        let tangents = self.companion(value);
        for (lane, (&shadow, &tangent)) in shadows.iter().zip(&tangents).enumerate() {
            let guard = self.activity_test(ptr, lane);
            self.when(guard, |pass| {
                if pass.has_dependency_sets() {
                    return pass.unite_atomically(op, shadow, tangent);
                }
                let (kind, ty) = (body.kind(op).clone(), body.ty(value));
                pass.out.build().value(kind, &[shadow, tangent], ty);
            });
        }
    }

    /// Emits the activity test of a pointer: its shadow differs from the primal. Returns `None` if no test is
    /// required.
    pub(super) fn activity_test(&mut self, ptr: Value, lane: usize) -> Option<Value> {
        if !self.facts.shadow_may_be_primal(ptr) || is_planted(Mutant::RuntimeActivityCheckMissing)
        {
            return None;
        }
        let start = self.facts.address_base(ptr);
        let (own, shadow) = (self.value(start), self.companion(start)[lane]);
        Some(self.out.build().icmp(IntPredicate::Ne, shadow, own))
    }

    /// Runs `make` under a condition, or unconditionally.
    pub(super) fn when(&mut self, guard: Option<Value>, make: impl FnOnce(&mut Self)) {
        let Some(guard) = guard else {
            return make(self);
        };
        let (_, yes, no) = self.out.build().if_(guard, &[]);
        let outside = std::mem::replace(&mut self.out.insertion_point, (yes, None));
        make(self);
        self.out.build().yield_(&[]);
        self.out.insertion_point = (no, None);
        self.out.build().yield_(&[]);
        self.out.insertion_point = outside;
    }

    /// Emits a call of a known memory function.
    pub(super) fn memory_call(&mut self, op: Op, function: MemoryFn) {
        match function {
            MemoryFn::Free | MemoryFn::Delete | MemoryFn::RustDealloc => self.free(op),
            MemoryFn::Realloc | MemoryFn::RustRealloc => self.reallocate(op),
            MemoryFn::TapePush => self.push(op),
            MemoryFn::TapeRelease if !self.forward_mode() => self.release(op),
            _ if function.allocation().is_some() => {
                self.clone_plain(op);
                if let Some(result) = self.facts.call_result(op)
                    && self.has_companion(result)
                {
                    let lanes = self.allocate_shadow_blocks(op, function);
                    self.companions.insert(result, lanes);
                }
            }
            MemoryFn::MemcpyIntrinsic
            | MemoryFn::MemmoveIntrinsic
            | MemoryFn::Memcpy
            | MemoryFn::Memmove
            | MemoryFn::Mempcpy
            | MemoryFn::Bcopy => self.copy(op, function),
            MemoryFn::MemsetIntrinsic | MemoryFn::Memset | MemoryFn::Bzero => self.fill(op),
            MemoryFn::PosixMemalign => {
                self.clone_plain(op);
                if self.facts.has_shadow(self.facts.body.operand(op, 1)) {
                    self.refuse(op);
                }
            }
            _ => {
                self.clone_plain(op);
            }
        }
    }

    /// Emits an allocation on another derivative's tape stack. The shadows follow on the stack, and a release
    /// of the primal block releases them too. If the release precedes the reverse pass, the shadows are heap
    /// blocks.
    fn push(&mut self, op: Op) {
        let result = self.facts.body.result(op);
        self.clone_plain(op);
        if !self.has_companion(result) {
            return;
        }
        let args = self.out.unit.call_args(self.facts.body, op);
        if !self.forward_mode() && !self.facts.tape_stack_is_local(args[0]) {
            let lanes = self.allocate_shadow_blocks(op, MemoryFn::TapePush);
            self.companions.insert(result, lanes);
            return;
        }
        let (stack, bytes) = (self.value(args[0]), self.value(args[1]));
        let push = segments::functions(self.out.unit).push;
        let mut lanes = Lanes::new();
        for _ in 0..self.facts.width {
            let call = self.out.build().call(push, &[stack, bytes]);
            let shadow = self.out.body.result(call);
            self.out.zero_bytes(shadow, bytes, MemorySpace::Shadow);
            lanes.push(shadow);
        }
        self.companions.insert(result, lanes);
    }

    /// Drops releases on a local stack: the reverse pass reverses the pushes and releases the blocks in LIFO
    /// order.
    fn release(&mut self, op: Op) {
        let args = self.out.unit.call_args(self.facts.body, op);
        if !self.facts.tape_stack_is_local(args[0]) {
            self.clone_plain(op);
        }
    }

    /// Allocates zeroed blocks of the size that an allocation requests.
    fn allocate_shadow_blocks(&mut self, op: Op, function: MemoryFn) -> Lanes {
        let args = self.out.unit.call_args(self.facts.body, op);
        let Some(factors) = (function.allocation()).and_then(|a| libc::size_factors(a.size, &args))
        else {
            self.refuse(op);
            return Lanes::new();
        };
        let factors: Lanes = factors.into_iter().map(|v| self.value(v)).collect();
        let mut bytes = libc::emit_product(self.out, &factors);
        if matches!(function, MemoryFn::Malloc | MemoryFn::Calloc)
            && let Some(block) = self.facts.call_result(op)
        {
            let block = self.value(block);
            bytes = libc::usable_bytes(self.out, block, bytes);
        }
        if let Some(block) = self.facts.call_result(op)
            && self.is_compared_with_null(block)
        {
            let block = self.value(block);
            bytes = libc::bytes_unless_null(self.out, block, bytes);
        }
        (0..self.facts.width)
            .map(|_| libc::zeroed_private_block(self.out, bytes))
            .collect()
    }

    /// Returns true if the program compares an address with others: a null address may lead to another path.
    fn is_compared_with_null(&self, block: Value) -> bool {
        let body = self.facts.body;
        let mut uses = body.uses(block);
        uses.any(|at| matches!(body.kind(at.op), OpKind::ICmp(_)))
    }

    /// Emits a `free`, unless it is deferred to the reverse pass.
    fn free(&mut self, op: Op) {
        let ptr = self.facts.body.operand(op, 1);
        if !self.forward_mode() && self.facts.is_deferred_free(op) {
            return;
        }
        let companions = self.has_companion(ptr).then(|| self.companion(ptr));
        self.clone_plain(op);
        // On a no-return path, no reverse pass will free the shadow.
        let now = self.forward_mode() || self.facts.is_on_noreturn_path(op);
        if let (true, Some(shadows)) = (now, companions) {
            for (lane, shadow) in shadows.into_iter().enumerate() {
                let guard = self.activity_test(ptr, lane);
                self.when(guard, |pass| {
                    let free = gradus_edit::declare_free(pass.out.unit);
                    pass.out.build().call(free, &[shadow]);
                });
            }
        }
    }

    fn reallocate(&mut self, op: Op) {
        let result = self.facts.body.result(op);
        if self.has_companion(result) {
            self.refuse(op);
        }
        self.clone_plain(op);
    }

    /// Emits a byte copy, and the copy of shadow pointers and tangents.
    fn copy(&mut self, op: Op, function: MemoryFn) {
        self.clone_plain(op);
        let body = self.facts.body;
        let args = self.out.unit.call_args(body, op);
        let (to, from) = match function {
            MemoryFn::Bcopy => (args[1], args[0]),
            _ => (args[0], args[1]),
        };
        if let Some(&result) = body.results(op).first()
            && self.has_companion(result)
        {
            let lanes = match function {
                MemoryFn::Mempcpy => {
                    let bytes = self.value(args[2]);
                    let lanes = self.companion(to);
                    lanes
                        .iter()
                        .map(|&l| self.out.build().byte_addr(l, bytes))
                        .collect()
                }
                _ => self.companion(to),
            };
            self.companions.insert(result, lanes);
        }
        if !self.facts.has_shadow(to) {
            return;
        }
        match self.facts.copy_kind(op) {
            CopyKind::Nothing => {}
            CopyKind::Floats(_) if !self.forward_mode() => {}
            CopyKind::Cells { .. } => self.copy_shadow_cells(op, function, [to, from, args[2]]),
            CopyKind::Words => self.copy_shadow_words(op, function, [to, from, args[2]]),
            CopyKind::Unknown => {
                let finding = self.facts.unknown_copy_error(self.out.unit, op);
                self.findings.push(finding);
            }
            CopyKind::Floats(_) | CopyKind::Pointers => self.copy_shadow(op, to, from, args[2]),
        }
    }

    /// Emits a typed copy of shadow memory: pointers, and in forward mode tangents. If the source is
    /// inactive, its pointers are their own shadows, and its floats have zero tangents.
    fn copy_shadow_cells(&mut self, op: Op, function: MemoryFn, [to, from, bytes]: [Value; 3]) {
        let overlap = function.may_overlap();
        let Some(copy) = (self.facts).word_copy(self.out.unit, op, bytes, overlap) else {
            let finding = self.facts.unknown_copy_error(self.out.unit, op);
            self.findings.push(finding);
            return;
        };
        let bytes = self.value(bytes);
        let (to_shadows, from_shadows) = (self.companion(to), self.companion(from));
        for (lane, (&to_shadow, &from_shadow)) in to_shadows.iter().zip(&from_shadows).enumerate() {
            let guard = self.activity_test(to, lane);
            self.when(guard, |pass| {
                let numbers = match (pass.forward_mode(), pass.facts.has_shadow(from)) {
                    (false, _) => FloatCopy::Skip,
                    (true, false) => FloatCopy::Zero,
                    (true, true) => FloatCopy::Tangents(pass.activity_test(from, lane)),
                };
                copy.make(pass.out, to_shadow, from_shadow, bytes, numbers);
            });
        }
    }

    /// Emits a copy of shadow memory whose words only the run knows: addresses, and in forward mode tangents.
    fn copy_shadow_words(&mut self, op: Op, function: MemoryFn, [to, from, bytes]: [Value; 3]) {
        let overlap = function.may_overlap();
        let (to_shadows, from_shadows) = (self.companion(to), self.companion(from));
        let bytes = self.value(bytes);
        let bytes = widen(self.out, bytes);
        for (lane, (&to_shadow, &from_shadow)) in to_shadows.iter().zip(&from_shadows).enumerate() {
            let guard = self.activity_test(to, lane);
            self.when(guard, |pass| {
                let copy = |pass: &mut Self, how| {
                    let copy = word_copy_function(pass.out.unit, how, overlap);
                    let ends = [to_shadow, from_shadow, bytes];
                    pass.out.build().call(copy, &ends);
                };
                if !pass.forward_mode() {
                    return copy(pass, WordCopy::Addresses);
                }
                if !pass.facts.has_shadow(from) {
                    return copy(pass, WordCopy::AddressesAndZeros);
                }
                let has_tangents = pass.activity_test(from, lane);
                pass.clone_with_shadows(op, [(to, to_shadow), (from, from_shadow)]);
                if let Some(has_tangents) = has_tangents {
                    let no = pass.out.build().bool(false);
                    let is_primal = pass.out.build().icmp(IntPredicate::Eq, has_tangents, no);
                    pass.when(Some(is_primal), |pass| {
                        copy(pass, WordCopy::AddressesAndZeros)
                    });
                }
            });
        }
    }

    /// Emits a clone of a memory op in which shadows replace operands.
    fn clone_with_shadows(&mut self, op: Op, shadows: [(Value, Value); 2]) {
        let body = self.facts.body;
        let shadow_of = |value: Value| {
            let mut shadows = shadows.iter();
            shadows.find_map(|(primal, shadow)| (*primal == value).then_some(*shadow))
        };
        let operands: Vec<Value> = body.operands(op).collect();
        let operands: Vec<Value> = operands
            .into_iter()
            .map(|value| shadow_of(value).unwrap_or_else(|| self.value(value)))
            .collect();
        let types: Vec<_> = body.results(op).iter().map(|v| body.ty(*v)).collect();
        let kind = body.kind(op).clone();
        self.out.build().op(kind, &operands, &types, 0);
    }

    /// Emits a copy of shadow memory. Floats from an inactive source have zero tangents.
    fn copy_shadow(&mut self, op: Op, to: Value, from: Value, bytes: Value) {
        let (to_shadows, from_shadows) = (self.companion(to), self.companion(from));
        let bytes = self.value(bytes);
        let source_inactive = !self.facts.has_shadow(from);
        let floats = matches!(self.facts.copy_kind(op), CopyKind::Floats(_));
        for (lane, (&to_shadow, &from_shadow)) in to_shadows.iter().zip(&from_shadows).enumerate() {
            let guard = self.activity_test(to, lane);
            self.when(guard, |pass| {
                if floats && source_inactive {
                    pass.out.zero_bytes(to_shadow, bytes, MemorySpace::Shadow);
                    return;
                }
                pass.clone_with_shadows(op, [(to, to_shadow), (from, from_shadow)]);
            });
        }
    }

    /// Emits a fill; in forward mode also a zero fill of the shadow.
    fn fill(&mut self, op: Op) {
        self.clone_plain(op);
        let body = self.facts.body;
        let args = self.out.unit.call_args(body, op);
        let to = args[0];
        if let Some(&result) = body.results(op).first()
            && self.has_companion(result)
        {
            let lanes = self.companion(to);
            self.companions.insert(result, lanes);
        }
        if !self.facts.has_shadow(to) {
            return;
        }
        let clears_pointers = self.facts.may_fill_pointers(op);
        if matches!(self.facts.copy_kind(op), CopyKind::Unknown) {
            let finding = self.facts.unknown_copy_error(self.out.unit, op);
            self.findings.push(finding);
        }
        if !self.forward_mode() && !clears_pointers {
            return;
        }
        let bytes = self.value(*args.get(2).unwrap_or(&args[args.len() - 1]));
        let bytes = widen(self.out, bytes);
        for (lane, shadow) in self.companion(to).into_iter().enumerate() {
            let guard = self.activity_test(to, lane);
            self.when(guard, |pass| {
                pass.out.zero_bytes(shadow, bytes, MemorySpace::Shadow)
            });
        }
    }
}
