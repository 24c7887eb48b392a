//! Expands flang's incremental array constructors, such as `[a*r + v, w]`.
//!
//! `_FortranAInitArrayConstructorVector(vector, to, …)` begins a constructor. The array of `to` has either
//! memory of the final extent, or no memory yet and grows.
//! `_FortranAPushArrayConstructorValue(vector, from)` appends the elements of an array,
//! `_FortranAPushArrayConstructorSimpleScalar(vector, from)` a scalar. The vector is a stack variable of at
//! least four words: in the expansion the address of `to`, the number of elements, the capacity, and
//! whether the array grows. Either all calls of a vector are expanded, or none. Semantics: Fortran 2018,
//! 7.8.

use super::assignments::copy_text;
use crate::host::ffi::{name_of, users_of};
use crate::host::module::Host;
use crate::prepare::fortran::descriptor_analysis::StoredMembers;
use crate::prepare::fortran::element_layout::Element;
use crate::prepare::fortran::runtime_library::{
    DESCRIPTOR, RuntimeReplacement, described_operand, each_dimension, load_bounds_text,
    previous_dimension,
};
use gradus_ir::Diagnostic;
use llvm_sys::core::*;
use llvm_sys::prelude::*;

const BEGIN: &str = "_FortranAInitArrayConstructorVector";
const PUSH: &str = "_FortranAPushArrayConstructorValue";
const PUSH_SCALAR: &str = "_FortranAPushArrayConstructorSimpleScalar";

impl Host {
    /// Expands the calls.
    ///
    /// # Errors
    /// LLVM's message if a replacement function cannot be parsed or linked.
    pub(super) fn expand_constructors(&mut self) -> Result<(), Diagnostic> {
        for begin in self.calls_of(BEGIN, 5) {
            let calls = unsafe { match_constructor(begin) };
            for (call, written) in calls.into_iter().flatten() {
                self.replace_calls(written, &[call])?;
            }
        }
        Ok(())
    }
}

/// Matches all calls of the vector that `begin` initialises.
unsafe fn match_constructor(
    begin: LLVMValueRef,
) -> Option<Vec<(LLVMValueRef, RuntimeReplacement)>> {
    unsafe {
        let (vector, own_length) = (LLVMGetOperand(begin, 0), LLVMGetOperand(begin, 2));
        if LLVMIsAAllocaInst(vector).is_null() || LLVMIsNull(own_length) == 0 {
            return None;
        }
        let mut calls = vec![(begin, RuntimeReplacement::Begin)];
        for user in users_of(vector) {
            if user != begin {
                calls.push((user, match_push(begin, user)?));
            }
        }
        Some(calls)
    }
}

/// Matches a call that appends to the vector of `begin`.
unsafe fn match_push(begin: LLVMValueRef, call: LLVMValueRef) -> Option<RuntimeReplacement> {
    unsafe {
        if LLVMIsACallInst(call).is_null() {
            return None;
        }
        match name_of(LLVMGetCalledValue(call)).as_str() {
            PUSH => {
                let (rank, element) = described_operand(call, 1)?;
                Some(RuntimeReplacement::Push { element, rank })
            }
            PUSH_SCALAR => {
                let to = StoredMembers::in_variable_or_copy(LLVMGetOperand(begin, 1))?;
                let element = Element::of(to.element()?)?;
                Some(RuntimeReplacement::PushScalar { element })
            }
            _ => None,
        }
    }
}

/// Text of the function that begins a vector.
pub(super) fn begin_text(name: &str) -> String {
    format!(
        "define void @{name}(ptr %vector, ptr %to) {{
  %count.at = getelementptr i64, ptr %vector, i64 1
  %capacity.at = getelementptr i64, ptr %vector, i64 2
  %grows.at = getelementptr i64, ptr %vector, i64 3
  %base = load ptr, ptr %to
  %none = icmp eq ptr %base, null
  %n.at = getelementptr {DESCRIPTOR}, ptr %to, i32 0, i32 7, i64 0, i64 1
  %n = load i64, ptr %n.at
  %capacity = select i1 %none, i64 0, i64 %n
  %grows = zext i1 %none to i64
  store ptr %to, ptr %vector
  store i64 0, ptr %count.at
  store i64 %capacity, ptr %capacity.at
  store i64 %grows, ptr %grows.at
  ret void
}}
"
    )
}

/// Text of the function that appends the elements of an array.
pub(super) fn push_text(name: &str, element: &Element, rank: u64) -> String {
    let counted = each_dimension(rank, |d| {
        format!(
            "  %sum.{d} = mul i64 {}, %n.{d}\n",
            previous_dimension("sum", d, "1")
        )
    });
    let given = each_dimension(rank, |d| {
        let dense = previous_dimension("all", d, &element.size().to_string());
        format!(", i64 {dense}, i64 %f.{d}, i64 %n.{d}")
    });
    let dense = each_dimension(rank, |d| {
        let so_far = previous_dimension("all", d, &element.size().to_string());
        format!("  %all.{d} = mul i64 {so_far}, %n.{d}\n")
    });
    let shape = load_bounds_text(rank, "from", 1, "n")
        + &load_bounds_text(rank, "from", 2, "f")
        + &counted
        + &dense;
    let more = previous_dimension("sum", rank, "1");
    let body = format!(
        "  %source = load ptr, ptr %from
  call void @{name}_copy(ptr %place, ptr %source{given})
"
    );
    copy_text(name, element, rank) + &append_text(name, element, (&shape, &more), &body)
}

/// Text of the function that appends a scalar.
pub(super) fn push_scalar_text(name: &str, element: &Element) -> String {
    append_text(name, element, ("", "1"), &element.text("%place", "%from"))
}

/// Text of a function that reserves space for `more` elements, counted by `shape`, and writes the elements
/// by `body` from `%place` on.
fn append_text(name: &str, element: &Element, (shape, more): (&str, &str), body: &str) -> String {
    let size = element.size();
    let grown = copy_text(&format!("{name}_grown"), element, 1);
    let put = |member: u32, value: &str| {
        format!(
            "  %put.{member}.at = getelementptr {DESCRIPTOR}, ptr %to, i32 0, i32 7, i64 0, i64 {member}
  store i64 {value}, ptr %put.{member}.at
"
        )
    };
    let extent = [put(0, "1"), put(1, "%need"), put(2, &size.to_string())].concat();
    format!(
        "declare ptr @malloc(i64)
declare void @free(ptr)
declare i64 @llvm.smax.i64(i64, i64)
{grown}
define void @{name}(ptr %vector, ptr %from) {{
  %to = load ptr, ptr %vector
  %count.at = getelementptr i64, ptr %vector, i64 1
  %capacity.at = getelementptr i64, ptr %vector, i64 2
  %grows.at = getelementptr i64, ptr %vector, i64 3
  %count = load i64, ptr %count.at
  %capacity = load i64, ptr %capacity.at
  %grows = load i64, ptr %grows.at
{shape}  %need = add i64 %count, {more}
  store i64 %need, ptr %count.at
  %is.whole = icmp eq i64 %grows, 0
  br i1 %is.whole, label %append, label %grow
grow:
  %old = load ptr, ptr %to
{extent}  %fits = icmp sle i64 %need, %capacity
  br i1 %fits, label %append, label %move
move:
  %twice = mul i64 %capacity, 2
  %more.capacity = call i64 @llvm.smax.i64(i64 %twice, i64 %need)
  %bytes = mul i64 %more.capacity, {size}
  %new = call ptr @malloc(i64 %bytes)
  call void @{name}_grown_copy(ptr %new, ptr %old, i64 {size}, i64 {size}, i64 %count)
  call void @free(ptr %old)
  store ptr %new, ptr %to
  store i64 %more.capacity, ptr %capacity.at
  br label %append
append:
  %base = load ptr, ptr %to
  %behind = mul i64 %count, {size}
  %place = getelementptr i8, ptr %base, i64 %behind
{body}  ret void
}}
"
    )
}
