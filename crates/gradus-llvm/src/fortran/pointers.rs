//! What points, and has memory of its own: `ALLOCATE` and `DEALLOCATE`, written out as what they do.
//!
//! As [`super::allocations`], with these differences: what is allocated may have led anywhere before, and flang describes
//! it anew in front of the statement, so that rank and type are read off there. The library writes a word behind the
//! memory that it gives, and refuses to free what has none; ours does so, too, in a function that derivatives take for
//! an allocator ([`PAYLOAD`]). Where the type of what is freed is not seen, it is looked at when the program runs
//! ([`plain_text`]). Left as they are: statements with an `ERRMSG`, and what may be polymorphic.

use super::allocations::{New, gives_state, what};
use super::descriptors::{Left, number};
use super::written::{WRITTEN, Written, described};
use crate::host::Host;
use gradus_ir::Diagnostic;
use llvm_sys::core::*;
use llvm_sys::prelude::*;

/// How the names of the functions end that give memory.
const PAYLOAD: &str = "_payload";

impl Host {
    /// Writes out the statements.
    ///
    /// # Errors
    /// LLVM's complaint about what is written.
    pub(super) fn write_out_pointers(&mut self) -> Result<(), Diagnostic> {
        for call in self.calls_of("_FortranAPointerAllocate", 6) {
            unsafe {
                let left = Left::before(call, LLVMGetOperand(call, 0));
                self.write_out_allocation(call, what(&left), gives_state(call, 1, 2), true)?;
            }
        }
        self.write_out("_FortranAPointerAllocateSource", 6, |call| unsafe {
            with_source(call)
        })?;
        self.write_out("_FortranAPointerSetBounds", 4, |call| unsafe {
            let dimension = number(LLVMGetOperand(call, 1))?;
            Some(Written::Bounds {
                dimension,
                points: true,
            })
        })?;
        for call in self.calls_of("_FortranAPointerDeallocate", 5) {
            unsafe { self.unpoint(call)? };
        }
        Ok(())
    }

    /// Frees in place of a call, with what the components have.
    unsafe fn unpoint(&mut self, call: LLVMValueRef) -> Result<(), Diagnostic> {
        unsafe {
            let Some(state) = gives_state(call, 1, 2) else {
                // Not an error: the call stays one of the library.
                return Ok(());
            };
            let left = Left::in_dummy(LLVMGetOperand(call, 0));
            match left.and_then(|left| what(&left)) {
                None => {
                    let plain = self.function_of(Written::Plain)?;
                    self.call_before(call, plain, &[LLVMGetOperand(call, 0)]);
                }
                Some((rank, bytes, ty)) => {
                    let offsets = ty.map_or(Some(Vec::new()), |ty| ty.to_free());
                    let Some(offsets) = offsets else {
                        // Not an error: the call stays one of the library.
                        return Ok(());
                    };
                    let dense = Some(bytes);
                    self.free_components(call, Written::Release { rank, dense }, &offsets)?;
                }
            }
            self.replace(Written::Delete { state }, &[call])
        }
    }
}

/// Whether a function of ours gives memory as an allocator does.
pub(crate) fn is_payload(name: &str) -> bool {
    name.starts_with(WRITTEN) && name.ends_with(PAYLOAD)
}

/// What is allocated and filled.
unsafe fn with_source(call: LLVMValueRef) -> Option<Written> {
    unsafe {
        let left = Left::before(call, LLVMGetOperand(call, 0));
        let (rank, bytes, _) = what(&left)?;
        let (of, element) = described(call, 1)?;
        let fits = element.size() == bytes && (of == rank || of == 0);
        let new = New {
            bytes,
            rank,
            state: gives_state(call, 2, 3)?,
            points: true,
        };
        fits.then_some(Written::Allocate {
            new,
            element,
            spread: of < rank,
        })
    }
}

/// The function that gives memory to the function `name`.
pub(super) fn payload(name: &str) -> String {
    format!("{name}{PAYLOAD}")
}

/// That function: behind the memory, where the next word begins, stand the bits of its address, turned over
/// (flang-rt 22, `pointer.cpp`).
pub(super) fn payload_text(name: &str) -> String {
    let payload = payload(name);
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

/// The function that ends the program unless freeing takes no more than memory: what is described is of no derived
/// type, or its table says that nothing is to be destroyed and finalised.
pub(super) fn plain_text(name: &str) -> String {
    const DERIVED: u32 = 42;
    const NOTHING_TO_DESTROY: u32 = 430;
    const NOTHING_TO_FINALISE: u32 = 431;
    let said = "gradus: `deallocate` of a pointer to a type that frees more than its memory, where that type is not seen";
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
