//! flang's destruction of variables of derived types, written out as what it does.
//!
//! At the end of a scope `_FortranADestroy(descriptor)` frees the allocatable components of a variable. What they
//! are stands in a constant table of the type, which the descriptor names: so the call becomes `free` of each
//! component's address, which derivatives know. Left as they are: types with procedures of finalisation, arrays
//! of derived types with something to free, allocatable components of derived types, which may be polymorphic, and descriptors that are not made in the function itself. The tables
//! are those of flang-rt 22 (`__fortran_type_info`: derived types and components; `flang/Runtime/type-info.h`).

use super::descriptors::{Left, constant_part, number};
use crate::ffi::c_string;
use crate::host::Host;
use llvm_sys::LLVMValueKind;
use llvm_sys::core::*;
use llvm_sys::prelude::*;

/// The members of a type's table: the descriptor of its components, and whether nothing is to be destroyed, or
/// finalised.
const COMPONENTS: u32 = 6;
const NOTHING_TO_DESTROY: u32 = 12;
const NOTHING_TO_FINALISE: u32 = 13;

/// The members of a component's entry: its kind, what it holds, its rank, its place, and the descriptor that names
/// its own type.
const GENRE: u32 = 1;
const CATEGORY: u32 = 2;
const COMPONENT_RANK: u32 = 4;
const OFFSET: u32 = 6;
const DERIVED: u32 = 8;
const GENRE_DATA: u64 = 1;
const GENRE_ALLOCATABLE: u64 = 3;
const GENRE_AUTOMATIC: u64 = 4;
/// Integers, unsigned ones, reals, complex numbers, characters and logicals come first. What is of a derived type may
/// be polymorphic: what its type frees and finalises is known when the program runs.
const CATEGORY_DERIVED: u64 = 6;

impl Host {
    /// Writes the calls out.
    pub(super) fn write_out_destructions(&mut self) {
        for call in self.calls_of("_FortranADestroy", 1) {
            unsafe {
                let descriptor = LLVMGetOperand(call, 0);
                let offsets = scalar_type(descriptor).and_then(|table| to_free(table, 0));
                if let Some(offsets) = offsets {
                    self.free_components(call, descriptor, &offsets);
                }
            }
        }
    }

    /// Frees what lies at these places of the described variable, in place of a call.
    ///
    /// # Safety
    /// `call` is an instruction of this module, `descriptor` its operand.
    unsafe fn free_components(
        &self,
        call: LLVMValueRef,
        descriptor: LLVMValueRef,
        offsets: &[u64],
    ) {
        unsafe {
            let ptr = LLVMPointerTypeInContext(self.ctx, 0);
            let (byte, long) = (
                LLVMInt8TypeInContext(self.ctx),
                LLVMInt64TypeInContext(self.ctx),
            );
            let mut given = [ptr];
            let ty = LLVMFunctionType(LLVMVoidTypeInContext(self.ctx), given.as_mut_ptr(), 1, 0);
            let name = c_string("free");
            let mut free = LLVMGetNamedFunction(self.module, name.as_ptr());
            if free.is_null() {
                free = LLVMAddFunction(self.module, name.as_ptr(), ty);
            }
            let unnamed = c_string("");
            let build = LLVMCreateBuilderInContext(self.ctx);
            LLVMPositionBuilderBefore(build, call);
            let variable = LLVMBuildLoad2(build, ptr, descriptor, unnamed.as_ptr());
            for offset in offsets {
                let mut index = [LLVMConstInt(long, *offset, 0)];
                let place = LLVMBuildGEP2(
                    build,
                    byte,
                    variable,
                    index.as_mut_ptr(),
                    1,
                    unnamed.as_ptr(),
                );
                let mut block = [LLVMBuildLoad2(build, ptr, place, unnamed.as_ptr())];
                LLVMBuildCall2(build, ty, free, block.as_mut_ptr(), 1, unnamed.as_ptr());
                LLVMBuildStore(build, LLVMConstNull(ptr), place);
            }
            LLVMDisposeBuilder(build);
            LLVMInstructionEraseFromParent(call);
        }
    }
}

/// The table of the type of which a descriptor describes one variable; `None` where that is not plain.
unsafe fn scalar_type(descriptor: LLVMValueRef) -> Option<LLVMValueRef> {
    unsafe {
        let left = Left::in_variable(descriptor)?;
        let table = left.table()?;
        let is_table = LLVMGetValueKind(table) == LLVMValueKind::LLVMGlobalVariableValueKind;
        (left.rank()? == 0 && is_table).then_some(table)
    }
}

/// Where in a variable of a type, which begins at `start`, addresses lie that its destruction frees.
unsafe fn to_free(table: LLVMValueRef, start: u64) -> Option<Vec<u64>> {
    unsafe {
        let contents = constant_contents(table)?;
        if number(constant_part(contents, NOTHING_TO_FINALISE)?)? == 0 {
            return None;
        }
        if number(constant_part(contents, NOTHING_TO_DESTROY)?)? != 0 {
            return Some(Vec::new());
        }
        let entries = constant_part(constant_part(contents, COMPONENTS)?, 0)?;
        let entries = constant_contents(entries)?;
        let count = LLVMGetArrayLength2(LLVMTypeOf(entries)) as u32;
        let mut offsets = Vec::new();
        for index in 0..count {
            offsets.extend(freed_component(constant_part(entries, index)?, start)?);
        }
        Some(offsets)
    }
}

/// What an entry says of a component.
pub(super) struct Component {
    genre: u64,
    category: u64,
    pub(super) rank: u64,
    /// How far in a variable of the type it lies.
    pub(super) offset: u64,
    /// The table of its own type, where that is a derived one.
    pub(super) derived: Option<LLVMValueRef>,
}

impl Component {
    /// # Safety
    /// `entry` is a live constant.
    pub(super) unsafe fn read(entry: LLVMValueRef) -> Option<Component> {
        unsafe {
            let own = |index| constant_part(entry, index);
            let derived = constant_part(own(DERIVED)?, 0)?;
            Some(Component {
                genre: number(own(GENRE)?)?,
                category: number(own(CATEGORY)?)?,
                rank: number(own(COMPONENT_RANK)?)?,
                offset: number(own(OFFSET)?)?,
                derived: (LLVMIsNull(derived) == 0).then_some(derived),
            })
        }
    }

    /// Whether it lies in the variable itself.
    pub(super) fn is_data(&self) -> bool {
        self.genre == GENRE_DATA
    }
}

unsafe fn freed_component(entry: LLVMValueRef, start: u64) -> Option<Vec<u64>> {
    unsafe {
        let component = Component::read(entry)?;
        let at = start + component.offset;
        match (component.genre, component.derived) {
            (GENRE_DATA, Some(derived)) => {
                let inner = to_free(derived, at)?;
                (component.rank == 0 || inner.is_empty()).then_some(inner)
            }
            (GENRE_ALLOCATABLE, derived) => {
                let is_plain = derived.is_none() && component.category < CATEGORY_DERIVED;
                is_plain.then(|| vec![at])
            }
            (GENRE_AUTOMATIC, _) => None,
            _ => Some(Vec::new()),
        }
    }
}

/// What a constant variable holds.
///
/// # Safety
/// `variable` is a live value.
pub(super) unsafe fn constant_contents(variable: LLVMValueRef) -> Option<LLVMValueRef> {
    unsafe {
        let is_variable = LLVMGetValueKind(variable) == LLVMValueKind::LLVMGlobalVariableValueKind;
        if !is_variable || LLVMIsGlobalConstant(variable) == 0 {
            return None;
        }
        let contents = LLVMGetInitializer(variable);
        (!contents.is_null()).then_some(contents)
    }
}
