//! Expands flang's runtime calls for `ALLOCATE` and `DEALLOCATE` of pointers.
//!
//! See [`super::allocations`]; pointers differ in three ways. A pointer may have any previous target, and
//! flang rewrites its descriptor in front of the statement, so rank and type are derived from the stores
//! there. The library stores a footer word after the allocated memory and refuses to free memory without a
//! footer. The expansion does the same, in a function that differentiation treats as an allocator
//! ([`ALLOCATOR_SUFFIX`]). If the type of freed memory is unknown, the type is checked at run time ([`plain_memory_check_text`]).
//! Statements with an `ERRMSG` and possibly polymorphic pointers stay calls.

use super::allocations::{Allocation, describe, returns_stat};
use crate::host::module::Host;
use crate::prepare::fortran::descriptor_analysis::{StoredMembers, constant_int};
use crate::prepare::fortran::runtime_library::{
    RUNTIME_PREFIX, RuntimeReplacement, described_operand,
};
use gradus_ir::Diagnostic;
use llvm_sys::core::*;
use llvm_sys::prelude::*;

/// Suffix of the names of the allocating functions.
const ALLOCATOR_SUFFIX: &str = "_payload";

impl Host {
    /// Expands the statements.
    ///
    /// # Errors
    /// LLVM's message if a replacement function cannot be parsed or linked.
    pub(super) fn expand_pointer_statements(&mut self) -> Result<(), Diagnostic> {
        for call in self.calls_of("_FortranAPointerAllocate", 6) {
            unsafe {
                let left = StoredMembers::before(call, LLVMGetOperand(call, 0));
                self.expand_allocation(call, describe(&left), returns_stat(call, 1, 2), true)?;
            }
        }
        self.expand_calls("_FortranAPointerAllocateSource", 6, |call| unsafe {
            match_allocate_source(call)
        })?;
        self.expand_calls("_FortranAPointerSetBounds", 4, |call| unsafe {
            let dimension = constant_int(LLVMGetOperand(call, 1))?;
            Some(RuntimeReplacement::Bounds {
                dimension,
                points: true,
            })
        })?;
        for call in self.calls_of("_FortranAPointerDeallocate", 5) {
            unsafe { self.expand_deallocation(call)? };
        }
        Ok(())
    }

    /// Replaces a deallocation by code that frees the components and the memory.
    unsafe fn expand_deallocation(&mut self, call: LLVMValueRef) -> Result<(), Diagnostic> {
        unsafe {
            let Some(state) = returns_stat(call, 1, 2) else {
                // Not an error: the call stays a library call.
                return Ok(());
            };
            let left = StoredMembers::in_dummy_argument(LLVMGetOperand(call, 0));
            match left.and_then(|left| describe(&left)) {
                None => {
                    let plain = self.runtime_function(RuntimeReplacement::Plain)?;
                    self.call_before(call, plain, &[LLVMGetOperand(call, 0)]);
                }
                Some((rank, bytes, ty)) => {
                    let offsets = ty.map_or(Some(Vec::new()), |ty| ty.freed_offsets());
                    let Some(offsets) = offsets else {
                        // Not an error: the call stays a library call.
                        return Ok(());
                    };
                    let dense = Some(bytes);
                    self.free_components(
                        call,
                        RuntimeReplacement::Release { rank, dense },
                        &offsets,
                    )?;
                }
            }
            self.replace_calls(RuntimeReplacement::Delete { state }, &[call])
        }
    }
}

/// Returns whether a generated function acts as an allocator.
pub(crate) fn is_allocator(name: &str) -> bool {
    name.starts_with(RUNTIME_PREFIX) && name.ends_with(ALLOCATOR_SUFFIX)
}

/// Matches an allocation with a source.
///
/// # Safety
/// `call` is a live call of `_FortranAPointerAllocateSource`.
unsafe fn match_allocate_source(call: LLVMValueRef) -> Option<RuntimeReplacement> {
    unsafe {
        let left = StoredMembers::before(call, LLVMGetOperand(call, 0));
        let (rank, bytes, _) = describe(&left)?;
        let (of, element) = described_operand(call, 1)?;
        let fits = element.size() == bytes && (of == rank || of == 0);
        let new = Allocation {
            bytes,
            rank,
            state: returns_stat(call, 2, 3)?,
            points: true,
        };
        fits.then_some(RuntimeReplacement::Allocate {
            new,
            element,
            spread: of < rank,
        })
    }
}

/// Returns the name of the allocator of the function `name`.
pub(super) fn allocator_name(name: &str) -> String {
    format!("{name}{ALLOCATOR_SUFFIX}")
}

/// Text of the allocator: the footer in the next aligned word after the memory holds the complement of the
/// address (flang-rt 22, `pointer.cpp`).
pub(super) fn allocator_text(name: &str) -> String {
    let payload = allocator_name(name);
    format!(
        "define internal noalias ptr @{payload}(i64 %bytes) noinline {{
entry:
  %up = add i64 %bytes, 7
  %behind = and i64 %up, -8
  %all = add i64 %behind, 8
  %new = call ptr @malloc(i64 %all)
  %none = icmp eq ptr %new, null
  br i1 %none, label %done, label %mark
mark:
  %at = getelementptr i8, ptr %new, i64 %behind
  %bits = ptrtoint ptr %new to i64
  %turned = xor i64 %bits, -1
  store i64 %turned, ptr %at
  br label %done
done:
  ret ptr %new
}}
"
    )
}

/// Text of the function that ends the program unless the deallocation frees plain memory only: the type is
/// not derived, or its table states that nothing is to be destroyed and finalised.
pub(super) fn plain_memory_check_text(name: &str) -> String {
    const DERIVED: u32 = 42;
    const NOTHING_TO_DESTROY: u32 = 430;
    const NOTHING_TO_FINALISE: u32 = 431;
    let said = "gradus: cannot expand `deallocate`: the object has finalization or allocatable components, and the compiler does not see the type";
    let bytes = said.len() + 2;
    format!(
        "@{name}_said = private constant [{bytes} x i8] c\"{said}\\0A\\00\"
declare i32 @dprintf(i32, ptr, ...)
declare void @abort()
define i32 @{name}(ptr %of) noinline {{
entry:
  %code.at = getelementptr i8, ptr %of, i64 21
  %code = load i8, ptr %code.at
  %derived = icmp eq i8 %code, {DERIVED}
  br i1 %derived, label %type, label %plain
type:
  %rank.at = getelementptr i8, ptr %of, i64 20
  %rank = load i8, ptr %rank.at
  %dimensions = zext i8 %rank to i64
  %bounds = mul i64 %dimensions, 24
  %table.offset = add i64 %bounds, 24
  %table.at = getelementptr i8, ptr %of, i64 %table.offset
  %table = load ptr, ptr %table.at
  %destroy.at = getelementptr i8, ptr %table, i64 {NOTHING_TO_DESTROY}
  %destroy = load i8, ptr %destroy.at
  %finalise.at = getelementptr i8, ptr %table, i64 {NOTHING_TO_FINALISE}
  %finalise = load i8, ptr %finalise.at
  %both = and i8 %destroy, %finalise
  %nothing = icmp ne i8 %both, 0
  br i1 %nothing, label %plain, label %more
more:
  %told = call i32 (i32, ptr, ...) @dprintf(i32 2, ptr @{name}_said)
  call void @abort()
  unreachable
plain:
  ret i32 0
}}
"
    )
}
