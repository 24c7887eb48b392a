//! flang's initialisation of variables of derived types, written out as what it does.
//!
//! Where a type's components have initial values, `_FortranAInitialize(descriptor)` writes them into each element of a
//! variable that is an array. What they are stands in constant tables, as for [`super::destructions`]: so the call
//! becomes one copy of a constant for each component, which derivatives know. Left as they are: types with components
//! that can be allocated, that point, or that are procedures, and descriptors that are not made in the function itself.

use super::descriptors::{Left, constant_part, number};
use super::destructions::{Component, constant_contents};
use super::written::{Written, bounds, nest};
use crate::ffi::NO_NAME;
use crate::host::Host;
use gradus_ir::Diagnostic;
use llvm_sys::LLVMOpcode::LLVMPtrToInt;
use llvm_sys::core::*;
use llvm_sys::debuginfo::{LLVMInstructionGetDebugLoc, LLVMInstructionSetDebugLoc};
use llvm_sys::prelude::*;
use llvm_sys::target::*;

/// The members of a type's table: the descriptors of its components, and of its procedures; and whether nothing is to
/// be initialised.
const COMPONENTS: u32 = 6;
const PROCEDURES: u32 = 7;
const NOTHING_TO_INITIALISE: u32 = 11;

/// The member of a component's entry that has the address of its initial value.
const INITIAL: u32 = 11;

/// A value that each element of a variable begins with.
struct Initial {
    /// How far in an element it lies.
    offset: u64,
    bytes: u64,
    /// The constant.
    value: LLVMValueRef,
}

impl Host {
    /// Writes the calls out.
    ///
    /// # Errors
    /// LLVM's complaint about what is written.
    pub(super) fn write_out_initialisations(&mut self) -> Result<(), Diagnostic> {
        for call in self.calls_of("_FortranAInitialize", 3) {
            unsafe {
                if let Some((rank, initial)) = self.initial_values(LLVMGetOperand(call, 0)) {
                    for initial in initial {
                        self.fill(call, rank, &initial)?;
                    }
                    LLVMInstructionEraseFromParent(call);
                }
            }
        }
        Ok(())
    }

    /// The rank of a described variable, and what its elements begin with.
    ///
    /// # Safety
    /// `descriptor` is a live value of this module.
    unsafe fn initial_values(&self, descriptor: LLVMValueRef) -> Option<(u64, Vec<Initial>)> {
        unsafe {
            let left = Left::in_variable(descriptor)?;
            let mut found = Vec::new();
            self.add_initial(left.table()?, 0, &mut found)?;
            Some((left.rank()?, found))
        }
    }

    /// Adds what a variable of a type begins with which lies at `start`; `None` where that is not plain.
    unsafe fn add_initial(
        &self,
        table: LLVMValueRef,
        start: u64,
        found: &mut Vec<Initial>,
    ) -> Option<()> {
        unsafe {
            let contents = constant_contents(table)?;
            if number(constant_part(contents, NOTHING_TO_INITIALISE)?)? != 0 {
                return Some(());
            }
            let procedures = constant_part(constant_part(contents, PROCEDURES)?, 7)?;
            if number(constant_part(constant_part(procedures, 0)?, 1)?)? != 0 {
                return None;
            }
            let entries = constant_part(constant_part(contents, COMPONENTS)?, 0)?;
            let entries = constant_contents(entries)?;
            for index in 0..LLVMGetArrayLength2(LLVMTypeOf(entries)) as u32 {
                let entry = constant_part(entries, index)?;
                let component = Component::read(entry).filter(|component| component.is_data())?;
                let offset = start.checked_add(component.offset)?;
                match (initial(entry)?, component.derived) {
                    (Some(value), _) => {
                        let layout = LLVMGetModuleDataLayout(self.module);
                        let bytes = LLVMABISizeOfType(layout, LLVMGlobalGetValueType(value));
                        found.push(Initial {
                            offset,
                            bytes,
                            value,
                        });
                    }
                    (None, Some(inner)) => {
                        let before = found.len();
                        self.add_initial(inner, offset, found)?;
                        if component.rank != 0 && found.len() > before {
                            return None;
                        }
                    }
                    (None, None) => {}
                }
            }
            Some(())
        }
    }

    /// Copies an initial value into each element, in front of the call.
    unsafe fn fill(
        &mut self,
        call: LLVMValueRef,
        rank: u64,
        initial: &Initial,
    ) -> Result<(), Diagnostic> {
        let bytes = initial.bytes;
        let function = self.function_of(Written::Fill { rank, bytes })?;
        unsafe {
            let long = LLVMInt64TypeInContext(self.ctx);
            let offset = LLVMConstInt(long, initial.offset, 0);
            let mut given = [LLVMGetOperand(call, 0), offset, initial.value];
            let build = LLVMCreateBuilderInContext(self.ctx);
            LLVMPositionBuilderBefore(build, call);
            let ty = LLVMGlobalGetValueType(function);
            let made = LLVMBuildCall2(build, ty, function, given.as_mut_ptr(), 3, NO_NAME);
            LLVMInstructionSetDebugLoc(made, LLVMInstructionGetDebugLoc(call));
            LLVMDisposeBuilder(build);
        }
        Ok(())
    }
}

/// The constant that a component begins with, if there is one; `None` outside where that is not plain.
unsafe fn initial(entry: LLVMValueRef) -> Option<Option<LLVMValueRef>> {
    unsafe {
        let address = constant_part(constant_part(entry, INITIAL)?, 0)?;
        if LLVMIsNull(address) != 0 {
            return Some(None);
        }
        let is_expression = !LLVMIsAConstantExpr(address).is_null();
        if !is_expression || LLVMGetConstOpcode(address) != LLVMPtrToInt {
            return None;
        }
        let value = LLVMGetOperand(address, 0);
        constant_contents(value)?;
        Some(Some(value))
    }
}

/// The function that fills: a constant of so many bytes goes into each element, `offset` behind its beginning.
pub(super) fn fill_text(name: &str, rank: u64, bytes: u64) -> String {
    let shape = bounds(rank, "of", 1, "n") + &bounds(rank, "of", 2, "t");
    let filled = nest(rank, &[("to", "t")], |at| {
        format!(
            "  call void @llvm.memcpy.p0.p0.i64(ptr {}, ptr %from, i64 {bytes}, i1 false)\n",
            at[0]
        )
    });
    format!(
        "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define void @{name}(ptr %of, i64 %offset, ptr %from) {{
entry:
  %first = load ptr, ptr %of
  %to = getelementptr i8, ptr %first, i64 %offset
{shape}{filled}  ret void
}}
"
    )
}
