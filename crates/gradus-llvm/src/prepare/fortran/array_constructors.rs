//! Expands flang's incremental array constructors, such as `[a*r + v, w]`.
//!
//! `_FortranAInitArrayConstructorVector(vector, to, …)` begins a constructor. The array of `to` has either
//! memory of the final extent, or no memory yet and grows.
//! `_FortranAPushArrayConstructorValue(vector, from)` appends the elements of an array,
//! `_FortranAPushArrayConstructorSimpleScalar(vector, from)` a scalar. The vector is a stack variable of at
//! least four words: in the expansion the address of `to`, the number of elements, the capacity, and
//! whether the array grows. Either all calls of a vector are expanded, or none. Semantics: Fortran 2018,
//! 7.8.

use crate::host::ffi::{name_of, users_of};
use crate::host::module::Host;
use crate::prepare::fortran::calls::described_operand;
use crate::prepare::fortran::descriptor_analysis::StoredMembers;
use crate::prepare::fortran::element_layout::Element;
use crate::prepare::fortran::specialise::{Constant, Specialisation};
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
                self.replace_calls(&written, &[call])?;
            }
        }
        Ok(())
    }
}

/// Matches all calls of the vector that `begin` initialises.
unsafe fn match_constructor(begin: LLVMValueRef) -> Option<Vec<(LLVMValueRef, Specialisation)>> {
    unsafe {
        let (vector, own_length) = (LLVMGetOperand(begin, 0), LLVMGetOperand(begin, 2));
        if LLVMIsAAllocaInst(vector).is_null() || LLVMIsNull(own_length) == 0 {
            return None;
        }
        let mut calls = vec![(begin, Specialisation::new("begin_vector", &[]))];
        for user in users_of(vector) {
            if user != begin {
                calls.push((user, match_push(begin, user)?));
            }
        }
        Some(calls)
    }
}

/// Matches a call that appends to the vector of `begin`.
unsafe fn match_push(begin: LLVMValueRef, call: LLVMValueRef) -> Option<Specialisation> {
    unsafe {
        if LLVMIsACallInst(call).is_null() {
            return None;
        }
        match name_of(LLVMGetCalledValue(call)).as_str() {
            PUSH => {
                let (rank, element) = described_operand(call, 1)?;
                Some(Specialisation {
                    body: "push_array",
                    constants: vec![Constant::Number(rank), Constant::Element(element)],
                })
            }
            PUSH_SCALAR => {
                let to = StoredMembers::in_variable_or_copy(LLVMGetOperand(begin, 1))?;
                let element = Element::of(to.element()?)?;
                Some(Specialisation {
                    body: "push_scalar",
                    constants: vec![Constant::Element(element)],
                })
            }
            _ => None,
        }
    }
}
