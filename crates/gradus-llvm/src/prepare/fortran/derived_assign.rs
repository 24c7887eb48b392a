//! Expands assignments of variables of derived types with allocatable components (`a = b`, `a = made(x)`).
//!
//! The scalar fields are copied. Each allocatable component is reallocated and assigned if the source
//! component is allocated, and freed otherwise. Arrays must be different variables. Types with final procedures or defined assignment, and
//! components that are pointers, polymorphic, or allocatable of derived types stay calls. Semantics: Fortran
//! 2018, 10.2.1.3 (13).

use crate::prepare::fortran::descriptor_analysis::StoredMembers;
use crate::prepare::fortran::specialise::{Constant, Specialisation};
use crate::prepare::fortran::type_info::AllocatableComponent;
use llvm_sys::core::LLVMGetOperand;
use llvm_sys::prelude::LLVMValueRef;

/// Returns the rank, the layout of the scalar fields, and the assignments of the components.
///
/// # Safety
/// `call` is a live call of `_FortranAAssign`.
pub(super) unsafe fn constants(call: LLVMValueRef) -> Option<Vec<Constant>> {
    unsafe {
        let side = |number| {
            let left = StoredMembers::in_variable_or_copy(LLVMGetOperand(call, number))?;
            let is_declared = left.is_variable() && left.has_declared_type(false);
            let layout = is_declared.then(|| left.derived()?.copy_layout_with_allocatables())??;
            Some((left.rank()?, layout, left.base_object()))
        };
        let ((rank, (element, held), from), (other, layout, to)) = (side(1)?, side(0)?);
        let is_apart = rank == 0 || from.is_some() && to.is_some() && from != to;
        let same = is_apart && rank == other && layout == (element.clone(), held.clone());
        let is_held = !held.is_empty();
        let components = held.into_iter().map(assign_component).collect();
        let constants = vec![
            Constant::Number(rank),
            Constant::Element(element),
            Constant::Components(components),
        ];
        (same && is_held).then_some(constants)
    }
}

fn assign_component(held: AllocatableComponent) -> (u64, Specialisation) {
    let constants = vec![Constant::Number(held.rank), Constant::Element(held.element)];
    let body = "assign_component";
    (held.offset, Specialisation { body, constants })
}
