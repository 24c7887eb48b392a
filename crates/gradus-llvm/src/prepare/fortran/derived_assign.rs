//! Expands assignments of variables of derived types with allocatable components (`a = b`, `a = made(x)`).
//!
//! The scalar fields are copied. Each allocatable component is reallocated and assigned if the source
//! component is allocated, and freed otherwise. Arrays of such types, types with final procedures or
//! defined assignment, and components that are pointers, polymorphic, or of derived types themselves stay
//! calls. Semantics: Fortran 2018, 10.2.1.3 (13).

use super::assignments::assign_text;
use crate::prepare::fortran::descriptor_analysis::StoredMembers;
use crate::prepare::fortran::element_layout::Element;
use crate::prepare::fortran::runtime_library::{DESCRIPTOR, RuntimeReplacement, each_dimension};
use crate::prepare::fortran::type_info::AllocatableComponent;
use llvm_sys::core::LLVMGetOperand;
use llvm_sys::prelude::LLVMValueRef;
use std::collections::BTreeSet;

/// Matches such an assignment, if its descriptors are known.
///
/// # Safety
/// `call` is a live call of `_FortranAAssign`.
pub(super) unsafe fn match_component_assign(call: LLVMValueRef) -> Option<RuntimeReplacement> {
    unsafe {
        let side = |number| {
            let left = StoredMembers::in_variable_or_copy(LLVMGetOperand(call, number))?;
            let is_one = left.is_variable() && left.rank()? == 0 && left.has_declared_type(false);
            is_one.then(|| left.derived()?.copy_layout_with_allocatables())?
        };
        let (element, held) = side(1)?;
        let same = side(0)? == (element.clone(), held.clone());
        (same && !held.is_empty()).then_some(RuntimeReplacement::AssignHeld { element, held })
    }
}

pub(super) fn name(element: &Element, held: &[AllocatableComponent]) -> String {
    let component = |held: &AllocatableComponent| {
        format!("_{}_{}_{}", held.offset, held.element.name(), held.rank)
    };
    let components: String = held.iter().map(component).collect();
    format!("assign_{}_held{components}", element.name())
}

/// Text of the function for `to = from`.
pub(super) fn text(name: &str, element: &Element, held: &[AllocatableComponent]) -> String {
    let (mut declared, mut defined) = (BTreeSet::new(), String::new());
    let mut calls = String::new();
    for (number, component) in held.iter().enumerate() {
        let own = format!("{name}_{number}");
        let assign = assign_text(
            &format!("{own}_whole"),
            &component.element,
            component.rank,
            false,
        );
        for line in (assign + &component_text(&own, component.rank)).lines() {
            match line.starts_with("declare") {
                true => _ = declared.insert(line.to_string()),
                false => defined += &(line.replace("define void", "define internal void") + "\n"),
            }
        }
        let offset = component.offset;
        calls += &format!(
            "  %to.{number} = getelementptr i8, ptr %t, i64 {offset}
  %from.{number} = getelementptr i8, ptr %f, i64 {offset}
  call void @{own}(ptr %to.{number}, ptr %from.{number})
"
        );
    }
    let declared: String = declared.into_iter().map(|line| line + "\n").collect();
    let copied = element.text("%t", "%f");
    format!(
        "{declared}{defined}
define void @{name}(ptr %to, ptr %from) {{
  %t = load ptr, ptr %to
  %f = load ptr, ptr %from
  %itself = icmp eq ptr %t, %f
  br i1 %itself, label %done, label %copy
copy:
{copied}{calls}  br label %done
done:
  ret void
}}
"
    )
}

/// Text of the function that assigns a component, allocated or not; the target gets the bounds of the
/// source.
fn component_text(name: &str, rank: u64) -> String {
    let bounds = each_dimension(rank, |d| {
        format!(
            "  %lower.from.{d} = getelementptr {DESCRIPTOR}, ptr %from, i32 0, i32 7, i64 {d}, i64 0
  %lower.{d} = load i64, ptr %lower.from.{d}
  %lower.to.{d} = getelementptr {DESCRIPTOR}, ptr %to, i32 0, i32 7, i64 {d}, i64 0
  store i64 %lower.{d}, ptr %lower.to.{d}
"
        )
    });
    format!(
        "define void @{name}(ptr %to, ptr %from) {{
  %source = load ptr, ptr %from
  %none = icmp eq ptr %source, null
  br i1 %none, label %free, label %assign
free:
  %old = load ptr, ptr %to
  call void @free(ptr %old)
  store ptr null, ptr %to
  ret void
assign:
  call void @{name}_whole(ptr %to, ptr %from)
{bounds}  ret void
}}
"
    )
}
