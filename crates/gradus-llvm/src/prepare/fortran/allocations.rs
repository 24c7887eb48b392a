//! Expands flang's runtime calls for `ALLOCATE` and `DEALLOCATE` of allocatable variables.
//!
//! flang calls the runtime for statements with `SOURCE`, `MOLD` or `STAT`, and for variables of derived
//! types. The calls set the bounds of each dimension (`_FortranAAllocatableSetBounds`, or `…ApplyMold`,
//! which copies the bounds of a variable), allocate (`_FortranAAllocatableAllocate`), and copy the source
//! (`…AllocateSource`). Allocation initialises a variable of a derived type with the default values of the
//! type. Deallocation (`_FortranAAllocatableDeallocate`) frees the allocatable components before the
//! variable's own memory. A failing statement returns its `STAT` value, or ends the program. Statements
//! with an `ERRMSG` and possibly polymorphic variables stay calls.

use super::assignments::copy_text;
use super::pointers;
use crate::host::module::Host;
use crate::prepare::fortran::descriptor_analysis::{StoredMembers, constant_int};
use crate::prepare::fortran::element_layout::Element;
use crate::prepare::fortran::runtime_library::{
    DESCRIPTOR, RuntimeReplacement, described_operand, each_dimension, load_bounds_text,
    previous_dimension,
};
use crate::prepare::fortran::type_info::{DefaultValue, Type};
use gradus_ir::Diagnostic;
use llvm_sys::core::*;
use llvm_sys::prelude::*;

/// The `STAT` values of flang-rt 22: already allocated, not allocated, out of memory.
const ALLOCATED: u32 = 12;
const NOT_ALLOCATED: u32 = 11;
const NO_MEMORY: u32 = 16;

/// An allocation: rank, element size in bytes, and the derived type, if the element has one.
pub(super) type AllocationShape = (u64, u64, Option<Type>);

impl Host {
    /// Expands allocations without a source, and deallocations.
    ///
    /// # Errors
    /// LLVM's message if a replacement function cannot be parsed or linked.
    pub(super) fn expand_allocations(&mut self) -> Result<(), Diagnostic> {
        for call in self.calls_of("_FortranAAllocatableAllocate", 7) {
            unsafe {
                let state = returns_stat(call, 2, 3);
                self.expand_allocation(call, describe_first_operand(call), state, false)?;
            }
        }
        for call in self.calls_of("_FortranAAllocatableDeallocate", 5) {
            unsafe {
                let Some((rank, bytes, ty)) = describe_first_operand(call) else {
                    continue;
                };
                let offsets = ty.map_or(Some(Vec::new()), |ty| ty.freed_offsets());
                if let (Some(state), Some(offsets)) = (returns_stat(call, 1, 2), offsets) {
                    let dense = Some(bytes);
                    self.free_components(
                        call,
                        RuntimeReplacement::Release { rank, dense },
                        &offsets,
                    )?;
                    self.replace_calls(RuntimeReplacement::Delete { state }, &[call])?;
                }
            }
        }
        Ok(())
    }

    /// Expands an allocation of a described variable, if its description and its use of `STAT` are known.
    /// `points` is true for a pointer.
    ///
    /// # Safety
    /// `call` is a live call of the module, and the type in `made` belongs to the same module.
    pub(super) unsafe fn expand_allocation(
        &mut self,
        call: LLVMValueRef,
        made: Option<AllocationShape>,
        state: Option<bool>,
        points: bool,
    ) -> Result<(), Diagnostic> {
        let (Some((rank, bytes, ty)), Some(state)) = (made, state) else {
            // Not an error: the call stays a library call.
            return Ok(());
        };
        let new = Allocation {
            bytes,
            rank,
            state,
            points,
        };
        unsafe {
            match ty.map_or(Some(Vec::new()), |ty| self.initial_values(ty)) {
                Some(initial) => self.allocate(call, new, &initial),
                None => Ok(()),
            }
        }
    }

    /// Replaces a call by an allocation and the default initialisation of the elements.
    unsafe fn allocate(
        &mut self,
        call: LLVMValueRef,
        new: Allocation,
        initial: &[DefaultValue],
    ) -> Result<(), Diagnostic> {
        let function = self.runtime_function(RuntimeReplacement::New(new))?;
        let fill = |bytes| RuntimeReplacement::Fill {
            rank: new.rank,
            bytes,
            dense: Some(new.bytes),
        };
        unsafe {
            let state = self.call_before(call, function, &[LLVMGetOperand(call, 0)]);
            self.fill(call, Some(state), initial, fill)?;
            LLVMReplaceAllUsesWith(call, state);
            LLVMInstructionEraseFromParent(call);
        }
        Ok(())
    }
}

/// Returns the description of the first operand of an allocation or deallocation.
unsafe fn describe_first_operand(call: LLVMValueRef) -> Option<AllocationShape> {
    unsafe { describe(&StoredMembers::in_dummy_argument(LLVMGetOperand(call, 0))?) }
}

/// Returns the allocation that the stores into a descriptor describe.
///
/// # Safety
/// The stored values belong to a live module.
pub(super) unsafe fn describe(left: &StoredMembers) -> Option<AllocationShape> {
    unsafe {
        let (rank, code) = (left.rank()?, left.element()?);
        match Element::of(code) {
            Some(element) => Some((rank, element.size(), None)),
            None if left.has_declared_type(true) => {
                let ty = left.derived()?;
                Some((rank, ty.size()?, Some(ty)))
            }
            None => None,
        }
    }
}

/// Returns whether a statement returns a `STAT` value; `None` if the statement also returns a message.
///
/// # Safety
/// `call` is a live call with these operands.
pub(super) unsafe fn returns_stat(call: LLVMValueRef, state: u32, message: u32) -> Option<bool> {
    unsafe {
        let gives = constant_int(LLVMGetOperand(call, state))? != 0;
        (!gives || LLVMIsNull(LLVMGetOperand(call, message)) != 0).then_some(gives)
    }
}

/// Matches a call that sets the bounds of a dimension.
///
/// # Safety
/// `call` is a live call of `_FortranAAllocatableSetBounds`.
pub(super) unsafe fn set_bounds(call: LLVMValueRef) -> Option<RuntimeReplacement> {
    let dimension = unsafe { constant_int(LLVMGetOperand(call, 1))? };
    let points = false;
    Some(RuntimeReplacement::Bounds { dimension, points })
}

/// Matches a call that copies the bounds of a variable. A scalar mold leaves the bounds alone.
///
/// # Safety
/// `call` is a live call of `_FortranAAllocatableApplyMold`.
pub(super) unsafe fn match_mold(call: LLVMValueRef) -> Option<RuntimeReplacement> {
    unsafe {
        let (rank, element) = described_operand(call, 0)?;
        let (of, source) = described_operand(call, 1)?;
        let fits = source == element && (of == rank || of == 0);
        fits.then_some(RuntimeReplacement::Mold { rank: of })
    }
}

/// Matches an allocation with a source.
///
/// # Safety
/// `call` is a live call of `_FortranAAllocatableAllocateSource`.
pub(super) unsafe fn match_allocate_source(call: LLVMValueRef) -> Option<RuntimeReplacement> {
    unsafe {
        let (rank, element) = described_operand(call, 0)?;
        let (of, source) = described_operand(call, 1)?;
        let fits = source == element && (of == rank || of == 0);
        let new = Allocation {
            bytes: element.size(),
            rank,
            state: returns_stat(call, 2, 3)?,
            points: false,
        };
        fits.then_some(RuntimeReplacement::Allocate {
            new,
            element,
            spread: of < rank,
        })
    }
}

/// Text of the function that sets the bounds of a dimension. The extent is not negative, and an empty
/// dimension begins at 1. An allocated allocatable keeps its bounds; a pointer is rebound and gets new
/// bounds.
pub(super) fn bounds_text(name: &str, dimension: u64, points: bool) -> String {
    let keeps = !points;
    let place = |member: u32| {
        format!("getelementptr {DESCRIPTOR}, ptr %of, i32 0, i32 7, i64 {dimension}, i64 {member}")
    };
    let (lower, extent) = (place(0), place(1));
    format!(
        "define void @{name}(ptr %of, i32 %dimension, i64 %lower, i64 %upper) {{
entry:
  %old = load ptr, ptr %of
  %some.old = icmp ne ptr %old, null
  %taken = and i1 %some.old, {keeps}
  br i1 %taken, label %done, label %set
set:
  %some = icmp sge i64 %upper, %lower
  %span = sub i64 %upper, %lower
  %count = add i64 %span, 1
  %first = select i1 %some, i64 %lower, i64 1
  %extent = select i1 %some, i64 %count, i64 0
  %lower.at = {lower}
  store i64 %first, ptr %lower.at
  %extent.at = {extent}
  store i64 %extent, ptr %extent.at
  br label %done
done:
  ret void
}}
"
    )
}

/// Text of the function that copies bounds; an allocated allocatable keeps its bounds.
pub(super) fn mold_text(name: &str, rank: u64) -> String {
    let taken = each_dimension(rank, |d| {
        let member = |member: u32| {
            format!(
                "  %get.{member}.{d} = getelementptr {DESCRIPTOR}, ptr %from, i32 0, i32 7, i64 {d}, i64 {member}
  %value.{member}.{d} = load i64, ptr %get.{member}.{d}
  %put.{member}.{d} = getelementptr {DESCRIPTOR}, ptr %to, i32 0, i32 7, i64 {d}, i64 {member}
  store i64 %value.{member}.{d}, ptr %put.{member}.{d}
"
            )
        };
        member(0) + &member(1)
    });
    format!(
        "define void @{name}(ptr %to, ptr %from) {{
entry:
  %old = load ptr, ptr %to
  %taken = icmp ne ptr %old, null
  br i1 %taken, label %done, label %take
take:
{taken}  br label %done
done:
  ret void
}}
"
    )
}

/// Text of a failing statement: returns the `STAT` value `gives`, or ends the program.
fn failure_text(state: bool, gives: u32) -> String {
    match state {
        true => format!("  ret i32 {gives}\n"),
        false => "  call void @abort()\n  unreachable\n".into(),
    }
}

/// An allocation: bytes per element, rank, whether a failure returns `STAT`, and whether the variable is a
/// pointer, which may have any previous target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Allocation {
    pub(super) bytes: u64,
    pub(super) rank: u64,
    pub(super) state: bool,
    pub(super) points: bool,
}

impl Allocation {
    /// Returns the part of the function name that identifies the allocation.
    pub(super) fn name(self) -> String {
        let how = |is: bool, yes: &'static str| if is { yes } else { "" };
        let (state, points) = (how(self.state, "_state"), how(self.points, "_pointer"));
        format!("{}{state}{points}", self.rank)
    }

    /// Text that computes the strides of a contiguous array, stores them in the descriptor and allocates
    /// the memory; the remaining code follows the label `fill`.
    fn memory_text(self, name: &str) -> String {
        let (rank, size) = (self.rank, self.bytes.to_string());
        let strides = each_dimension(rank, |d| {
            let dense = previous_dimension("all", d, &size);
            format!(
                "  %all.{d} = mul i64 {dense}, %n.{d}
  %stride.at.{d} = getelementptr {DESCRIPTOR}, ptr %to, i32 0, i32 7, i64 {d}, i64 2
  store i64 {dense}, ptr %stride.at.{d}
"
            )
        });
        let (shape, whole) = (
            load_bounds_text(rank, "to", 1, "n"),
            previous_dimension("all", rank, &size),
        );
        let free_only = match self.points {
            true => String::new(),
            false => format!(
                "  %old = load ptr, ptr %to
  %taken = icmp ne ptr %old, null
  br i1 %taken, label %wrong, label %shape
wrong:
{}shape:
",
                failure_text(self.state, ALLOCATED)
            ),
        };
        let allocator = match self.points {
            true => pointers::allocator_name(name),
            false => "malloc".into(),
        };
        let checked = match self.state {
            true => format!(
                "  %none = icmp eq ptr %new, null
  br i1 %none, label %without, label %fill
without:
{}",
                failure_text(true, NO_MEMORY)
            ),
            false => "  br label %fill\n".into(),
        };
        format!(
            "entry:
{free_only}{shape}{strides}  %bytes = call i64 @llvm.smax.i64(i64 {whole}, i64 1)
  %new = call ptr @{allocator}(i64 %bytes)
{checked}fill:
"
        )
    }

    /// Text of the functions that the allocation calls.
    fn declarations_text(self, name: &str) -> String {
        let payload = match self.points {
            true => pointers::allocator_text(name),
            false => String::new(),
        };
        format!(
            "declare ptr @malloc(i64)
declare void @abort()
declare i64 @llvm.smax.i64(i64, i64)
{payload}"
        )
    }

    /// Text of the allocation function without a source.
    pub(super) fn text(self, name: &str) -> String {
        let (called, memory) = (self.declarations_text(name), self.memory_text(name));
        format!(
            "{called}define i32 @{name}(ptr %to) {{
{memory}  store ptr %new, ptr %to
  ret i32 0
}}
"
        )
    }

    /// Text of the allocation function with a source.
    pub(super) fn text_with_source(self, name: &str, element: &Element, spread: bool) -> String {
        let (rank, size) = (self.rank, self.bytes.to_string());
        let apart = match spread {
            true => String::new(),
            false => load_bounds_text(rank, "from", 2, "f"),
        };
        let given = each_dimension(rank, |d| {
            let dense = previous_dimension("all", d, &size);
            let from = if spread {
                "0".into()
            } else {
                format!("%f.{d}")
            };
            format!(", i64 {dense}, i64 {from}, i64 %n.{d}")
        });
        let (called, memory) = (self.declarations_text(name), self.memory_text(name));
        let copy = copy_text(name, element, rank);
        format!(
            "{called}{copy}
define i32 @{name}(ptr %to, ptr %from) {{
{memory}  %source = load ptr, ptr %from
{apart}  call void @{name}_copy(ptr %new, ptr %source{given})
  store ptr %new, ptr %to
  ret i32 0
}}
"
        )
    }
}

/// Text of the deallocation function.
pub(super) fn delete_text(name: &str, state: bool) -> String {
    let failed = failure_text(state, NOT_ALLOCATED);
    format!(
        "declare void @free(ptr)
declare void @abort()
define i32 @{name}(ptr %of) {{
entry:
  %old = load ptr, ptr %of
  %none = icmp eq ptr %old, null
  br i1 %none, label %wrong, label %release
wrong:
{failed}release:
  call void @free(ptr %old)
  store ptr null, ptr %of
  ret i32 0
}}
"
    )
}
