//! Descriptor analysis: derives the rank, element type and attribute of a Fortran descriptor from the
//! stores into it.

use crate::host::ffi::{function_of, name_of, users_of};
use crate::prepare::fortran::type_info::Type;
use llvm_sys::LLVMOpcode;
use llvm_sys::LLVMTypeKind::*;
use llvm_sys::LLVMValueKind;
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use llvm_sys::target::*;

/// A member of a descriptor: its struct index and byte offset.
#[derive(Clone, Copy)]
struct Member {
    index: u32,
    at: u64,
}

const RANK: Member = Member { index: 3, at: 20 };
const ELEMENT: Member = Member { index: 4, at: 21 };
/// 0 for a variable that is neither allocatable nor a pointer.
const ATTRIBUTE: Member = Member { index: 5, at: 22 };
/// The address of the type's table follows the bounds; `index` is for rank 0. `at` is its offset without
/// bounds.
const TABLE: Member = Member { index: 7, at: 24 };
const TABLE_AFTER_BOUNDS: u32 = 8;

/// The bytes of a descriptor without bounds, and of the bounds of one dimension.
const SCALAR_BYTES: u64 = 24;
const BOUNDS_BYTES: u64 = 24;

/// All stores into a descriptor.
#[derive(Default)]
pub(super) struct StoredMembers {
    /// Byte offsets and stored values.
    stored: Vec<(u64, LLVMValueRef)>,
    /// The length in bytes of a descriptor that is copied from unknown memory.
    copied: Option<u64>,
    /// Byte ranges, from start to end, that are filled by memory intrinsics, for example with bounds.
    filled: Vec<(u64, u64)>,
    /// The library functions that receive the descriptor, without the prefix `_FortranA`.
    handed: Vec<String>,
}

impl StoredMembers {
    /// Collects the stores into a local or global variable; `None` for an argument or an unknown store.
    ///
    /// # Safety
    /// `variable` is a live value of a module.
    pub(super) unsafe fn in_variable(variable: LLVMValueRef) -> Option<StoredMembers> {
        let is_argument = unsafe { !LLVMIsAArgument(variable).is_null() };
        match is_argument {
            true => None,
            false => unsafe { StoredMembers::collect(vec![(variable, 0)]) },
        }
    }

    /// Collects the stores into a variable, or into the source of its only copy.
    ///
    /// # Safety
    /// `variable` is a live value of a module.
    pub(super) unsafe fn in_variable_or_copy(variable: LLVMValueRef) -> Option<StoredMembers> {
        unsafe {
            let left = StoredMembers::in_variable(variable)?;
            if left.copied.is_none() {
                return Some(left);
            }
            let mut sources = Vec::new();
            for user in users_of(variable) {
                if !LLVMIsAMemCpyInst(user).is_null() && LLVMGetOperand(user, 0) == variable {
                    sources.push(LLVMGetOperand(user, 1));
                }
            }
            match sources[..] {
                [source] => StoredMembers::in_variable(source),
                _ => None,
            }
        }
    }

    /// Collects the stores into a variable, also into a dummy argument by its callers in the module. All
    /// callers pass the same rank and type of an allocatable, so the callers of the module suffice.
    ///
    /// # Safety
    /// `variable` is a live value of a module.
    pub(super) unsafe fn in_dummy_argument(variable: LLVMValueRef) -> Option<StoredMembers> {
        let mut seen = Vec::new();
        let mut pending = vec![variable];
        while let Some(variable) = pending.pop() {
            if !seen.contains(&variable) {
                seen.push(variable);
                unsafe { add_passed_by_callers(variable, &mut pending) };
            }
        }
        unsafe { StoredMembers::collect(seen.into_iter().map(|variable| (variable, 0)).collect()) }
    }

    /// Collects the stores into a descriptor in front of a call, in its block and after any other call
    /// except calls that set bounds. flang rewrites the descriptor of a pointer in front of each
    /// allocation.
    ///
    /// # Safety
    /// `call` is a live call, and `variable` a value of its function.
    pub(super) unsafe fn before(call: LLVMValueRef, variable: LLVMValueRef) -> StoredMembers {
        let mut left = StoredMembers::default();
        unsafe {
            let (base, start) = base_of(variable);
            let place = |address| {
                let (other, at) = base_of(address);
                (other == base).then(|| at.wrapping_sub(start))
            };
            let mut at = LLVMGetPreviousInstruction(call);
            while !at.is_null() {
                if !LLVMIsAStoreInst(at).is_null() {
                    let place = place(LLVMGetOperand(at, 1));
                    if let Some(offset) = place.and_then(|at| u64::try_from(at).ok()) {
                        left.stored.push((offset, LLVMGetOperand(at, 0)));
                    }
                } else if !LLVMIsAMemIntrinsic(at).is_null() {
                    let bytes = constant_int(LLVMGetOperand(at, 2));
                    match place(LLVMGetOperand(at, 0)).map(u64::try_from) {
                        None => {}
                        Some(Ok(from)) if from >= SCALAR_BYTES => {
                            let bytes = bytes.unwrap_or(u64::MAX);
                            left.filled.push((from, from.saturating_add(bytes)));
                        }
                        Some(_) => break,
                    }
                } else if !LLVMIsACallInst(at).is_null()
                    && LLVMIsAIntrinsicInst(at).is_null()
                    && name_of(LLVMGetCalledValue(at)) != "_FortranAPointerSetBounds"
                {
                    break;
                }
                at = LLVMGetPreviousInstruction(at);
            }
        }
        left
    }

    /// Collects the stores to addresses, each with its offset in the variable.
    unsafe fn collect(mut pending: Vec<(LLVMValueRef, u64)>) -> Option<StoredMembers> {
        let mut left = StoredMembers::default();
        let mut seen = Vec::new();
        while let Some((address, offset)) = pending.pop() {
            if !seen.contains(&address) {
                seen.push(address);
                unsafe { left.add(address, offset, &mut pending)? };
            }
        }
        Some(left)
    }

    /// Adds the stores to an address at byte `offset` of the variable.
    unsafe fn add(
        &mut self,
        address: LLVMValueRef,
        offset: u64,
        pending: &mut Vec<(LLVMValueRef, u64)>,
    ) -> Option<()> {
        unsafe {
            if is_global(address) {
                let contents = LLVMGetInitializer(address);
                self.stored.push((0, contents));
                self.add_uses(address);
                return (!contents.is_null()).then_some(());
            }
            if !is_local(address) && LLVMIsAArgument(address).is_null() {
                return None;
            }
            self.add_uses(address);
            for user in users_of(address) {
                let is_target = |operand| LLVMGetOperand(user, operand) == address;
                if !LLVMIsAStoreInst(user).is_null() && is_target(1) {
                    self.stored.push((offset, LLVMGetOperand(user, 0)));
                } else if !LLVMIsAMemIntrinsic(user).is_null() && is_target(0) {
                    let source = LLVMGetOperand(user, 1);
                    let is_copy = !LLVMIsAMemCpyInst(user).is_null() && offset == 0;
                    match is_copy {
                        true if is_global(source) || is_local(source) => pending.push((source, 0)),
                        true => self.copied = Some(constant_int(LLVMGetOperand(user, 2))?),
                        false if offset >= SCALAR_BYTES => {
                            let bytes = constant_int(LLVMGetOperand(user, 2))?;
                            self.filled.push((offset, offset.checked_add(bytes)?));
                        }
                        false => return None,
                    }
                } else if !LLVMIsAGetElementPtrInst(user).is_null() {
                    pending.push((user, offset.checked_add(gep_offset(user)?)?));
                }
            }
            Some(())
        }
    }

    /// Adds the library functions that receive an address.
    unsafe fn add_uses(&mut self, address: LLVMValueRef) {
        unsafe {
            for user in users_of(address) {
                if !LLVMIsACallInst(user).is_null() {
                    let name = name_of(LLVMGetCalledValue(user));
                    if let Some(name) = name.strip_prefix("_FortranA") {
                        self.handed.push(name.to_owned());
                    }
                }
            }
        }
    }

    /// Returns whether the variable has its declared type and is not polymorphic. A polymorphic variable
    /// receives its type at allocation, is allocated by the same calls as a variable of declared type, and
    /// is deallocated by a separate function.
    pub(super) fn has_declared_type(&self, allocated: bool) -> bool {
        let handed = |to: &str| self.handed.iter().any(|name| name == to);
        let varies = |name: &String| name.contains("Polymorphic") || name.contains("InitDerived");
        if self.handed.iter().any(varies) {
            return false;
        }
        let as_another = handed("AllocatableApplyMold") || handed("AllocatableAllocateSource");
        let is_variable =
            unsafe { self.agreed_value(|offset, value| stored_byte(ATTRIBUTE, offset, value)) };
        handed("AllocatableDeallocate")
            || handed("PointerDeallocate")
            || is_variable == Some(0)
            || allocated && !as_another
    }

    /// Returns whether the described variable is neither allocatable nor a pointer.
    pub(super) unsafe fn is_variable(&self) -> bool {
        unsafe {
            self.agreed_value(|offset, value| stored_byte(ATTRIBUTE, offset, value)) == Some(0)
        }
    }

    /// Returns the local or global variable that the descriptor describes, or a part of which.
    pub(super) unsafe fn base_object(&self) -> Option<LLVMValueRef> {
        if self.copied.is_some() {
            return None;
        }
        unsafe {
            let stored = self.agreed_value(|offset, value| base_address(offset, value))?;
            let (base, _) = base_of(stored);
            let is_variable = !LLVMIsAAllocaInst(base).is_null() || is_global(base);
            is_variable.then_some(base)
        }
    }

    /// Returns the derived type of the variable.
    pub(super) unsafe fn derived(&self) -> Option<Type> {
        unsafe { Type::of(self.table()?) }
    }

    /// Returns the rank of the variable.
    pub(super) unsafe fn rank(&self) -> Option<u64> {
        let dimensions = |bytes: u64| {
            let bounds = bytes.checked_sub(SCALAR_BYTES)?;
            (bounds % BOUNDS_BYTES == 0).then_some(bounds / BOUNDS_BYTES)
        };
        match self.copied {
            Some(bytes) => dimensions(bytes),
            None => unsafe { self.agreed_value(|offset, value| stored_byte(RANK, offset, value)) },
        }
    }

    /// Returns the type code of the elements.
    pub(super) unsafe fn element(&self) -> Option<u64> {
        match self.copied {
            Some(_) => None,
            None => unsafe {
                self.agreed_value(|offset, value| stored_byte(ELEMENT, offset, value))
            },
        }
    }

    /// Returns the table of the variable's derived type.
    unsafe fn table(&self) -> Option<LLVMValueRef> {
        unsafe {
            let rank = self.rank()?;
            let at = table_offset(rank);
            let is_filled = |&(from, to): &(u64, u64)| from <= at && at < to;
            match self.copied.is_some() || self.filled.iter().any(is_filled) {
                true => None,
                false => self.agreed_value(|offset, value| table(rank, offset, value)),
            }
        }
    }

    /// Returns the value on which all stores agree; `None` if a store is unknown or two stores differ.
    fn agreed_value<T: PartialEq>(
        &self,
        told: impl Fn(u64, LLVMValueRef) -> StoreEffect<T>,
    ) -> Option<T> {
        let mut found = None;
        for &(offset, value) in &self.stored {
            match told(offset, value) {
                StoreEffect::Nothing => {}
                StoreEffect::This(what) if found.as_ref().is_none_or(|other| *other == what) => {
                    found = Some(what);
                }
                StoreEffect::This(_) | StoreEffect::Unknown => return None,
            }
        }
        found
    }
}

/// Returns whether a value is a `getelementptr`, as an instruction or as a constant.
unsafe fn is_gep(value: LLVMValueRef) -> bool {
    unsafe {
        !LLVMIsAGetElementPtrInst(value).is_null()
            || !LLVMIsAConstantExpr(value).is_null()
                && LLVMGetConstOpcode(value) == LLVMOpcode::LLVMGetElementPtr
    }
}

/// Returns the base of an address and the byte offset from the base.
unsafe fn base_of(address: LLVMValueRef) -> (LLVMValueRef, i64) {
    let (mut base, mut offset) = (address, 0i64);
    unsafe {
        while is_gep(base)
            && let Some(bytes) = gep_offset(base)
        {
            offset = offset.wrapping_add_unsigned(bytes);
            base = LLVMGetOperand(base, 0);
        }
    }
    (base, offset)
}

/// Adds the values that callers pass for an argument.
unsafe fn add_passed_by_callers(argument: LLVMValueRef, pending: &mut Vec<LLVMValueRef>) {
    unsafe {
        if LLVMIsAArgument(argument).is_null() {
            return;
        }
        let function = LLVMGetParamParent(argument);
        let is_it = |&at: &u32| LLVMGetParam(function, at) == argument;
        let Some(index) = (0..LLVMCountParams(function)).find(is_it) else {
            unreachable!("an argument is one of its function's parameters");
        };
        for user in users_of(function) {
            let is_call = !LLVMIsACallInst(user).is_null() && LLVMGetCalledValue(user) == function;
            if is_call && index < LLVMGetNumArgOperands(user) {
                pending.push(LLVMGetOperand(user, index));
            }
        }
    }
}

fn is_global(value: LLVMValueRef) -> bool {
    unsafe { !LLVMIsAGlobalVariable(value).is_null() }
}

/// Returns whether an address is an alloca or a `getelementptr` instruction.
fn is_local(value: LLVMValueRef) -> bool {
    unsafe { !LLVMIsAAllocaInst(value).is_null() || !LLVMIsAGetElementPtrInst(value).is_null() }
}

/// The effect of a store on a member.
enum StoreEffect<T> {
    /// The store does not cover the member.
    Nothing,
    This(T),
    Unknown,
}

impl<T> From<Option<T>> for StoreEffect<T> {
    fn from(found: Option<T>) -> StoreEffect<T> {
        found.map_or(StoreEffect::Unknown, StoreEffect::This)
    }
}

/// Returns the one-byte member that a store writes, also within a wider store.
unsafe fn stored_byte(member: Member, offset: u64, value: LLVMValueRef) -> StoreEffect<u64> {
    unsafe {
        let ty = LLVMTypeOf(value);
        let kind = LLVMGetTypeKind(ty);
        if kind == LLVMStructTypeKind {
            let byte = is_descriptor(ty)
                .then(|| struct_member(value, member.index))
                .flatten();
            return byte.and_then(|byte| constant_int(byte)).into();
        }
        let bits = |ty| u64::from(LLVMGetIntTypeWidth(ty));
        let is_number = |ty| LLVMGetTypeKind(ty) == LLVMIntegerTypeKind;
        let bytes = match kind {
            LLVMIntegerTypeKind => bits(ty) / 8,
            LLVMVectorTypeKind if is_number(LLVMGetElementType(ty)) => {
                u64::from(LLVMGetVectorSize(ty)) * bits(LLVMGetElementType(ty)) / 8
            }
            _ => 8,
        };
        if offset > member.at || offset + bytes <= member.at {
            return StoreEffect::Nothing;
        }
        let inside = member.at - offset;
        match kind {
            LLVMIntegerTypeKind if bytes <= 8 => {
                constant_int(value).map(|n| n >> (8 * inside) & 0xff).into()
            }
            LLVMVectorTypeKind if bytes == u64::from(LLVMGetVectorSize(ty)) => {
                constant_part(value, inside as u32)
                    .and_then(|byte| constant_int(byte))
                    .into()
            }
            _ => StoreEffect::Unknown,
        }
    }
}

/// Returns whether a struct type is a descriptor: an address, a size, a version, and four bytes.
unsafe fn is_descriptor(ty: LLVMTypeRef) -> bool {
    const BITS: [u32; 6] = [64, 32, 8, 8, 8, 8];
    unsafe {
        let member = |index| LLVMStructGetTypeAtIndex(ty, index);
        let is = |(index, bits)| {
            let member = member(index);
            LLVMGetTypeKind(member) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(member) == bits
        };
        LLVMCountStructElementTypes(ty) > BITS.len() as u32
            && LLVMGetTypeKind(member(0)) == LLVMPointerTypeKind
            && (1..).zip(BITS).all(is)
    }
}

/// Returns the offset of the address of the type's table in a descriptor.
fn table_offset(rank: u64) -> u64 {
    TABLE.at + rank * BOUNDS_BYTES
}

/// Returns the address of the described memory that a store writes.
unsafe fn base_address(offset: u64, value: LLVMValueRef) -> StoreEffect<LLVMValueRef> {
    unsafe {
        match LLVMGetTypeKind(LLVMTypeOf(value)) {
            LLVMStructTypeKind if is_descriptor(LLVMTypeOf(value)) => {
                struct_member(value, 0).into()
            }
            LLVMStructTypeKind => StoreEffect::Unknown,
            _ if offset == 0 => StoreEffect::This(value),
            _ => StoreEffect::Nothing,
        }
    }
}

/// Returns the type table that a store writes.
unsafe fn table(rank: u64, offset: u64, value: LLVMValueRef) -> StoreEffect<LLVMValueRef> {
    unsafe {
        let index = if rank == 0 {
            TABLE.index
        } else {
            TABLE_AFTER_BOUNDS
        };
        match LLVMGetTypeKind(LLVMTypeOf(value)) {
            LLVMStructTypeKind if is_descriptor(LLVMTypeOf(value)) => {
                struct_member(value, index).into()
            }
            LLVMStructTypeKind => StoreEffect::Unknown,
            _ if offset == table_offset(rank) => StoreEffect::This(value),
            _ => StoreEffect::Nothing,
        }
    }
}

/// Returns the module of an instruction or a constant address.
unsafe fn module_of(mut address: LLVMValueRef) -> Option<LLVMModuleRef> {
    unsafe {
        if !LLVMIsAInstruction(address).is_null() {
            let function = function_of(address);
            return Some(LLVMGetGlobalParent(function));
        }
        while !LLVMIsAConstantExpr(address).is_null() {
            address = LLVMGetOperand(address, 0);
        }
        let is_symbol = !LLVMIsAGlobalValue(address).is_null();
        is_symbol.then(|| LLVMGetGlobalParent(address))
    }
}

/// Returns the byte offset of a `getelementptr`; `None` if the offset is not constant.
unsafe fn gep_offset(address: LLVMValueRef) -> Option<u64> {
    unsafe {
        let layout = LLVMGetModuleDataLayout(module_of(address)?);
        let mut ty = LLVMGetGEPSourceElementType(address);
        let far = |count: u64, ty| count.checked_mul(LLVMABISizeOfType(layout, ty));
        let mut sum = far(constant_int(LLVMGetOperand(address, 1))?, ty)?;
        for at in 2..LLVMGetNumOperands(address) as u32 {
            let index = constant_int(LLVMGetOperand(address, at))?;
            let more = if LLVMGetTypeKind(ty) == LLVMStructTypeKind {
                let index = u32::try_from(index).ok()?;
                let more = LLVMOffsetOfElement(layout, ty, index);
                ty = LLVMStructGetTypeAtIndex(ty, index);
                more
            } else {
                ty = LLVMGetElementType(ty);
                far(index, ty)?
            };
            sum = sum.checked_add(more)?;
        }
        Some(sum)
    }
}

/// Returns a member of a struct value: a constant with inserted members.
unsafe fn struct_member(whole: LLVMValueRef, index: u32) -> Option<LLVMValueRef> {
    unsafe {
        let mut whole = whole;
        while !LLVMIsAInsertValueInst(whole).is_null() {
            let is_it = LLVMGetNumIndices(whole) >= 1 && *LLVMGetIndices(whole) == index;
            if is_it {
                return (LLVMGetNumIndices(whole) == 1).then(|| LLVMGetOperand(whole, 1));
            }
            whole = LLVMGetOperand(whole, 0);
        }
        constant_part(whole, index)
    }
}

/// Returns an element of a constant aggregate.
///
/// # Safety
/// `whole` is a live value.
pub(super) unsafe fn constant_part(whole: LLVMValueRef, index: u32) -> Option<LLVMValueRef> {
    unsafe {
        if LLVMIsConstant(whole) == 0 {
            return None;
        }
        let part = LLVMGetAggregateElement(whole, index);
        (!part.is_null()).then_some(part)
    }
}

/// Returns the value of a constant integer.
///
/// # Safety
/// `constant` is a live value.
pub(super) unsafe fn constant_int(constant: LLVMValueRef) -> Option<u64> {
    unsafe {
        let is_number = LLVMGetValueKind(constant) == LLVMValueKind::LLVMConstantIntValueKind;
        is_number.then(|| LLVMConstIntGetZExtValue(constant))
    }
}
