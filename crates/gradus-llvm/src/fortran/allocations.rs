//! `ALLOCATE` with a `SOURCE`, written out as what it does.
//!
//! flang sets the bounds of each dimension (`_FortranAAllocatableSetBounds`), then allocates and fills
//! (`_FortranAAllocatableAllocateSource`). A statement with `STAT` is left as it is: what it gives where it fails is
//! the library's. Without, it ends the program where the variable has memory already.

use super::assignments::copy_text;
use super::descriptors::number;
use super::written::{DESCRIPTOR, Element, Written, before, bounds, described, each};
use llvm_sys::core::*;
use llvm_sys::prelude::*;

/// The bounds that a call sets.
///
/// # Safety
/// `call` is a live call of `_FortranAAllocatableSetBounds`.
pub(super) unsafe fn set_bounds(call: LLVMValueRef) -> Option<Written> {
    let dimension = unsafe { number(LLVMGetOperand(call, 1))? };
    Some(Written::Bounds { dimension })
}

/// What is allocated and filled.
///
/// # Safety
/// `call` is a live call of `_FortranAAllocatableAllocateSource`.
pub(super) unsafe fn allocation(call: LLVMValueRef) -> Option<Written> {
    unsafe {
        let (rank, element) = described(call, 0)?;
        let (of, source) = described(call, 1)?;
        let gives_state = number(LLVMGetOperand(call, 2))? != 0;
        let fits = source == element && (of == rank || of == 0);
        (fits && !gives_state).then_some(Written::Allocate {
            element,
            rank,
            spread: of < rank,
        })
    }
}

/// The number of elements is not negative, and what has none begins at 1.
pub(super) fn bounds_text(name: &str, dimension: u64) -> String {
    let place = |member: u32| {
        format!("getelementptr {DESCRIPTOR}, ptr %of, i32 0, i32 7, i64 {dimension}, i64 {member}")
    };
    let (lower, extent) = (place(0), place(1));
    format!(
        "define void @{name}(ptr %of, i32 %dimension, i64 %lower, i64 %upper) {{
  %some = icmp sge i64 %upper, %lower
  %span = sub i64 %upper, %lower
  %count = add i64 %span, 1
  %first = select i1 %some, i64 %lower, i64 1
  %extent = select i1 %some, i64 %count, i64 0
  %lower.at = {lower}
  store i64 %first, ptr %lower.at
  %extent.at = {extent}
  store i64 %extent, ptr %extent.at
  ret void
}}
"
    )
}

/// The allocation as a function.
pub(super) fn allocate_text(name: &str, element: Element, rank: u64, spread: bool) -> String {
    let size = element.size().to_string();
    let apart = match spread {
        true => String::new(),
        false => bounds(rank, "from", 2, "f"),
    };
    let strides = each(rank, |d| {
        let dense = before("all", d, &size);
        format!(
            "  %all.{d} = mul i64 {dense}, %n.{d}
  %stride.at.{d} = getelementptr {DESCRIPTOR}, ptr %to, i32 0, i32 7, i64 {d}, i64 2
  store i64 {dense}, ptr %stride.at.{d}
"
        )
    });
    let given = each(rank, |d| {
        let dense = before("all", d, &size);
        let from = if spread {
            "0".into()
        } else {
            format!("%f.{d}")
        };
        format!(", i64 {dense}, i64 {from}, i64 %n.{d}")
    });
    let (shape, copy) = (bounds(rank, "to", 1, "n"), copy_text(name, element, rank));
    let whole = before("all", rank, &size);
    format!(
        "declare ptr @malloc(i64)
declare void @abort()
declare i64 @llvm.smax.i64(i64, i64)
{copy}
define i32 @{name}(ptr %to, ptr %from) {{
entry:
  %old = load ptr, ptr %to
  %taken = icmp ne ptr %old, null
  br i1 %taken, label %wrong, label %fill
wrong:
  call void @abort()
  unreachable
fill:
  %source = load ptr, ptr %from
{shape}{apart}{strides}  %bytes = call i64 @llvm.smax.i64(i64 {whole}, i64 1)
  %new = call ptr @malloc(i64 %bytes)
  call void @{name}_copy(ptr %new, ptr %source{given})
  store ptr %new, ptr %to
  ret i32 0
}}
"
    )
}
