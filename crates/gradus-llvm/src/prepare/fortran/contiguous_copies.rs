//! Expands flang's copies of non-contiguous array arguments (copy-in, copy-out).
//!
//! If a callee requires contiguous elements, flang tests the argument (`_FortranAIsContiguous`), passes a
//! copy (`_FortranACopyInAssign`) and copies the elements back (`_FortranACopyOutAssign`, whose first
//! argument is null if the callee only reads).

use super::assignments::copy_text;
use crate::prepare::fortran::descriptor_analysis::StoredMembers;
use crate::prepare::fortran::element_layout::Element;
use crate::prepare::fortran::runtime_library::{
    DESCRIPTOR, RuntimeReplacement, described_intrinsic, each_dimension, load_bounds_text,
    previous_dimension,
};
use llvm_sys::core::*;
use llvm_sys::prelude::*;

/// Matches a contiguity test.
///
/// # Safety
/// `call` is a live call of `_FortranAIsContiguous`.
pub(super) unsafe fn match_is_contiguous(call: LLVMValueRef) -> Option<RuntimeReplacement> {
    let rank = unsafe { StoredMembers::in_variable(LLVMGetOperand(call, 0))?.rank()? };
    Some(RuntimeReplacement::Contiguous { rank })
}

/// Matches a copy-in. The descriptor of a derived-type copy would have to name the type, so derived types
/// stay calls.
///
/// # Safety
/// `call` is a live call of `_FortranACopyInAssign`.
pub(super) unsafe fn match_copy_in(call: LLVMValueRef) -> Option<RuntimeReplacement> {
    let (rank, element) = unsafe { described_intrinsic(call, 1)? };
    Some(RuntimeReplacement::CopyIn { element, rank })
}

/// Matches a copy-out.
///
/// # Safety
/// `call` is a live call of `_FortranACopyOutAssign`.
pub(super) unsafe fn match_copy_out(call: LLVMValueRef) -> Option<RuntimeReplacement> {
    unsafe {
        if LLVMIsNull(LLVMGetOperand(call, 0)) != 0 {
            return Some(RuntimeReplacement::Drop);
        }
        let (rank, element) = described_intrinsic(call, 0)?;
        Some(RuntimeReplacement::CopyOut { element, rank })
    }
}

/// Text of the contiguity test. Empty arrays are contiguous; the stride of a dimension of extent 1 does not
/// matter.
pub(super) fn contiguous_text(name: &str, rank: u64) -> String {
    let (extents, strides) = (
        load_bounds_text(rank, "of", 1, "n"),
        load_bounds_text(rank, "of", 2, "f"),
    );
    let dense = each_dimension(rank, |d| {
        let (bytes, so_far) = (
            previous_dimension("bytes", d, "%length"),
            previous_dimension("dense", d, "true"),
        );
        let (none, empty) = (
            previous_dimension("none", d, "false"),
            format!("%empty.{d}"),
        );
        format!(
            "  %fits.{d} = icmp eq i64 %f.{d}, {bytes}
  %one.{d} = icmp eq i64 %n.{d}, 1
  %either.{d} = or i1 %fits.{d}, %one.{d}
  %dense.{d} = and i1 {so_far}, %either.{d}
  %bytes.{d} = mul i64 {bytes}, %n.{d}
  {empty} = icmp eq i64 %n.{d}, 0
  %none.{d} = or i1 {none}, {empty}
"
        )
    });
    let (all, none) = (
        previous_dimension("dense", rank, "true"),
        previous_dimension("none", rank, "false"),
    );
    format!(
        "define i1 @{name}(ptr %of) {{
  %length.at = getelementptr {DESCRIPTOR}, ptr %of, i32 0, i32 1
  %length = load i64, ptr %length.at
{extents}{strides}{dense}  %is = or i1 {all}, {none}
  ret i1 %is
}}
"
    )
}

/// Text of the copy-in: the copy is allocatable and has the bounds of the array.
pub(super) fn copy_in_text(name: &str, element: &Element, rank: u64) -> String {
    let size = element.size().to_string();
    let shape = load_bounds_text(rank, "from", 0, "lower")
        + &load_bounds_text(rank, "from", 1, "n")
        + &load_bounds_text(rank, "from", 2, "f");
    let filled = each_dimension(rank, |d| {
        let dense = previous_dimension("all", d, &size);
        let put = |member: u32, value: &str| {
            format!(
                "  %put.{member}.{d} = getelementptr {DESCRIPTOR}, ptr %to, i32 0, i32 7, i64 {d}, i64 {member}
  store i64 {value}, ptr %put.{member}.{d}
"
            )
        };
        format!("  %all.{d} = mul i64 {dense}, %n.{d}\n")
            + &put(0, &format!("%lower.{d}"))
            + &put(1, &format!("%n.{d}"))
            + &put(2, &dense)
    });
    let member = |index: u32, ty: &str| {
        format!(
            "  %get.{index} = getelementptr {DESCRIPTOR}, ptr %from, i32 0, i32 {index}
  %member.{index} = load {ty}, ptr %get.{index}
  %put.{index} = getelementptr {DESCRIPTOR}, ptr %to, i32 0, i32 {index}
  store {ty} %member.{index}, ptr %put.{index}
"
        )
    };
    let members: String = [(1, "i64"), (2, "i32"), (3, "i8"), (4, "i8"), (6, "i8")]
        .map(|(index, ty)| member(index, ty))
        .concat();
    let given = each_dimension(rank, |d| {
        let dense = previous_dimension("all", d, &size);
        format!(", i64 {dense}, i64 %f.{d}, i64 %n.{d}")
    });
    let (copy, whole) = (
        copy_text(name, element, rank),
        previous_dimension("all", rank, &size),
    );
    format!(
        "declare ptr @malloc(i64)
declare i64 @llvm.smax.i64(i64, i64)
{copy}
define void @{name}(ptr %to, ptr %from) {{
  %source = load ptr, ptr %from
{shape}{filled}{members}  %attribute = getelementptr {DESCRIPTOR}, ptr %to, i32 0, i32 5
  store i8 2, ptr %attribute
  %bytes = call i64 @llvm.smax.i64(i64 {whole}, i64 1)
  %new = call ptr @malloc(i64 %bytes)
  call void @{name}_copy(ptr %new, ptr %source{given})
  store ptr %new, ptr %to
  ret void
}}
"
    )
}

/// Text of the copy-out into the array's elements; frees the copy.
pub(super) fn copy_out_text(name: &str, element: &Element, rank: u64) -> String {
    let shape = load_bounds_text(rank, "to", 1, "n")
        + &load_bounds_text(rank, "to", 2, "t")
        + &load_bounds_text(rank, "from", 2, "f");
    let given = each_dimension(rank, |d| format!(", i64 %t.{d}, i64 %f.{d}, i64 %n.{d}"));
    let copy = copy_text(name, element, rank);
    format!(
        "declare void @free(ptr)
{copy}
define void @{name}(ptr %to, ptr %from) {{
  %target = load ptr, ptr %to
  %copy = load ptr, ptr %from
{shape}  call void @{name}_copy(ptr %target, ptr %copy{given})
  call void @free(ptr %copy)
  store ptr null, ptr %from
  ret void
}}
"
    )
}

/// Text of the copy-out after read-only use: frees the copy only.
pub(super) fn drop_text(name: &str) -> String {
    format!(
        "declare void @free(ptr)
define void @{name}(ptr %to, ptr %from) {{
  %copy = load ptr, ptr %from
  call void @free(ptr %copy)
  store ptr null, ptr %from
  ret void
}}
"
    )
}
