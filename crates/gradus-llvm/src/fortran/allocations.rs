//! `ALLOCATE` and `DEALLOCATE`, written out as what they do.
//!
//! Where a statement has a `SOURCE`, a `MOLD` or a `STAT`, or the variable is of a derived type, flang sets the bounds of
//! each dimension (`_FortranAAllocatableSetBounds`, or `…ApplyMold`, which takes those of a variable), then allocates
//! (`_FortranAAllocatableAllocate`), and fills where there is a source (`…AllocateSource`). A variable of a derived type
//! begins with the values of its type, and what its components have is freed before its own memory
//! (`_FortranAAllocatableDeallocate`). A statement that fails gives its state, or ends the program. Left as they are:
//! statements with an `ERRMSG`, and variables that may be polymorphic.

use super::assignments::copy_text;
use super::descriptors::{Left, number};
use super::elements::Element;
use super::pointers;
use super::types::{Initial, Type};
use super::written::{DESCRIPTOR, Written, before, bounds, described, each};
use crate::host::Host;
use gradus_ir::Diagnostic;
use llvm_sys::core::*;
use llvm_sys::prelude::*;

/// The states that flang-rt 22 gives where a variable has memory already, where it has none, and where there is none.
const ALLOCATED: u32 = 12;
const NOT_ALLOCATED: u32 = 11;
const NO_MEMORY: u32 = 16;

/// What an allocation makes: its rank, its bytes for each element, and the type, where it is a derived one.
pub(super) type Made = (u64, u64, Option<Type>);

impl Host {
    /// Writes out allocations without a source, and deallocations.
    ///
    /// # Errors
    /// LLVM's complaint about what is written.
    pub(super) fn write_out_allocations(&mut self) -> Result<(), Diagnostic> {
        for call in self.calls_of("_FortranAAllocatableAllocate", 7) {
            unsafe {
                let state = gives_state(call, 2, 3);
                self.write_out_allocation(call, made(call), state, false)?;
            }
        }
        for call in self.calls_of("_FortranAAllocatableDeallocate", 5) {
            unsafe {
                let Some((rank, bytes, ty)) = made(call) else {
                    continue;
                };
                let offsets = ty.map_or(Some(Vec::new()), |ty| ty.to_free());
                if let (Some(state), Some(offsets)) = (gives_state(call, 1, 2), offsets) {
                    let dense = Some(bytes);
                    self.free_components(call, Written::Release { rank, dense }, &offsets)?;
                    self.replace(Written::Delete { state }, &[call])?;
                }
            }
        }
        Ok(())
    }

    /// Writes out an allocation of what is described, of what points or not, where that and whether it gives its state
    /// are known.
    ///
    /// # Safety
    /// `call` is a live call of this module, and what it makes of a type of it.
    pub(super) unsafe fn write_out_allocation(
        &mut self,
        call: LLVMValueRef,
        made: Option<Made>,
        state: Option<bool>,
        points: bool,
    ) -> Result<(), Diagnostic> {
        let (Some((rank, bytes, ty)), Some(state)) = (made, state) else {
            // Not an error: the call stays one of the library.
            return Ok(());
        };
        let new = New {
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

    /// Allocates in place of a call, and writes what the elements begin with.
    unsafe fn allocate(
        &mut self,
        call: LLVMValueRef,
        new: New,
        initial: &[Initial],
    ) -> Result<(), Diagnostic> {
        let function = self.function_of(Written::New(new))?;
        let fill = |bytes| Written::Fill {
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

/// What the first operand of an allocation or deallocation describes.
unsafe fn made(call: LLVMValueRef) -> Option<Made> {
    unsafe { what(&Left::in_dummy(LLVMGetOperand(call, 0))?) }
}

/// What is described by what is left in a descriptor.
///
/// # Safety
/// It is of a live module.
pub(super) unsafe fn what(left: &Left) -> Option<Made> {
    unsafe {
        let (rank, code) = (left.rank()?, left.element()?);
        match Element::of(code) {
            Some(element) => Some((rank, element.size(), None)),
            None if left.is_of_its_type(true) => {
                let ty = left.derived()?;
                Some((rank, ty.size()?, Some(ty)))
            }
            None => None,
        }
    }
}

/// Whether a statement gives its state; `None` where it also gives a message.
///
/// # Safety
/// `call` is a live call with these operands.
pub(super) unsafe fn gives_state(call: LLVMValueRef, state: u32, message: u32) -> Option<bool> {
    unsafe {
        let gives = number(LLVMGetOperand(call, state))? != 0;
        (!gives || LLVMIsNull(LLVMGetOperand(call, message)) != 0).then_some(gives)
    }
}

/// The bounds that a call sets.
///
/// # Safety
/// `call` is a live call of `_FortranAAllocatableSetBounds`.
pub(super) unsafe fn set_bounds(call: LLVMValueRef) -> Option<Written> {
    let dimension = unsafe { number(LLVMGetOperand(call, 1))? };
    let points = false;
    Some(Written::Bounds { dimension, points })
}

/// The bounds that a call takes from a variable, if that is no scalar.
///
/// # Safety
/// `call` is a live call of `_FortranAAllocatableApplyMold`.
pub(super) unsafe fn mold(call: LLVMValueRef) -> Option<Written> {
    unsafe {
        let (rank, element) = described(call, 0)?;
        let (of, source) = described(call, 1)?;
        let fits = source == element && (of == rank || of == 0);
        fits.then_some(Written::Mold { rank: of })
    }
}

/// What is allocated and filled.
///
/// # Safety
/// `call` is a live call of `_FortranAAllocatableAllocateSource`.
pub(super) unsafe fn allocation(call: LLVMValueRef) -> Option<Written> {
    unsafe {
        let (rank, element) = described(call, 0)?;
        let (of, source) = described(call, 1)?;
        let fits = source == element && (of == rank || of == 0);
        let new = New {
            bytes: element.size(),
            rank,
            state: gives_state(call, 2, 3)?,
            points: false,
        };
        fits.then_some(Written::Allocate {
            new,
            element,
            spread: of < rank,
        })
    }
}

/// The number of elements is not negative, and what has none begins at 1; what is allocated keeps its own, but what
/// points gets other memory.
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

/// The bounds of a variable as a function; what is allocated keeps its own.
pub(super) fn mold_text(name: &str, rank: u64) -> String {
    let taken = each(rank, |d| {
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

/// What a statement does that fails: it gives its state, or ends the program.
fn failed(state: bool, gives: u32) -> String {
    match state {
        true => format!("  ret i32 {gives}\n"),
        false => "  call void @abort()\n  unreachable\n".into(),
    }
}

/// An allocation: of so many bytes for each element; whether what fails gives its state, and whether it is of what
/// points, which may lead anywhere before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct New {
    pub(super) bytes: u64,
    pub(super) rank: u64,
    pub(super) state: bool,
    pub(super) points: bool,
}

impl New {
    /// What functions that differ by it have in their names.
    pub(super) fn name(self) -> String {
        let how = |is: bool, yes: &'static str| if is { yes } else { "" };
        let (state, points) = (how(self.state, "_state"), how(self.points, "_pointer"));
        format!("{}{state}{points}", self.rank)
    }

    /// Sets the strides of what gets memory by its bounds, and allocates that; the rest follows the label `fill`.
    fn memory(self, name: &str) -> String {
        let (rank, size) = (self.rank, self.bytes.to_string());
        let strides = each(rank, |d| {
            let dense = before("all", d, &size);
            format!(
                "  %all.{d} = mul i64 {dense}, %n.{d}
  %stride.at.{d} = getelementptr {DESCRIPTOR}, ptr %to, i32 0, i32 7, i64 {d}, i64 2
  store i64 {dense}, ptr %stride.at.{d}
"
            )
        });
        let (shape, whole) = (bounds(rank, "to", 1, "n"), before("all", rank, &size));
        let free_only = match self.points {
            true => String::new(),
            false => format!(
                "  %old = load ptr, ptr %to
  %taken = icmp ne ptr %old, null
  br i1 %taken, label %wrong, label %shape
wrong:
{}shape:
",
                failed(self.state, ALLOCATED)
            ),
        };
        let allocator = match self.points {
            true => pointers::payload(name),
            false => "malloc".into(),
        };
        let checked = match self.state {
            true => format!(
                "  %none = icmp eq ptr %new, null
  br i1 %none, label %without, label %fill
without:
{}",
                failed(true, NO_MEMORY)
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

    /// What its function calls.
    fn called(self, name: &str) -> String {
        let payload = match self.points {
            true => pointers::payload_text(name),
            false => String::new(),
        };
        format!(
            "declare ptr @malloc(i64)
declare void @abort()
declare i64 @llvm.smax.i64(i64, i64)
{payload}"
        )
    }

    /// The allocation without a source as a function.
    pub(super) fn text(self, name: &str) -> String {
        let (called, memory) = (self.called(name), self.memory(name));
        format!(
            "{called}define i32 @{name}(ptr %to) {{
{memory}  store ptr %new, ptr %to
  ret i32 0
}}
"
        )
    }

    /// The allocation with a source as a function.
    pub(super) fn text_with_source(self, name: &str, element: &Element, spread: bool) -> String {
        let (rank, size) = (self.rank, self.bytes.to_string());
        let apart = match spread {
            true => String::new(),
            false => bounds(rank, "from", 2, "f"),
        };
        let given = each(rank, |d| {
            let dense = before("all", d, &size);
            let from = if spread {
                "0".into()
            } else {
                format!("%f.{d}")
            };
            format!(", i64 {dense}, i64 {from}, i64 %n.{d}")
        });
        let (called, memory) = (self.called(name), self.memory(name));
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

/// The deallocation as a function.
pub(super) fn delete_text(name: &str, state: bool) -> String {
    let failed = failed(state, NOT_ALLOCATED);
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
