//! Expands calls of flang's runtime library into IR that differentiation handles.
//!
//! Allocatable variables are passed to the library as descriptors: structs with an address, a type, a rank,
//! and the bounds of each dimension (`CFI_cdesc_t` of the Fortran standard, with flang's additions). The
//! contents of a descriptor are derived from the stores of the function itself ([`descriptor_analysis`]). If the
//! stores are inconclusive, the call stays, and differentiation refuses active memory that depends on the
//! call.

mod allocations;
mod array_constructors;
mod assignments;
mod calls;
mod derived_assign;
mod descriptor_analysis;
mod element_layout;
mod finalize;
mod initialize;
mod pointers;
mod reductions;
mod specialise;
mod transformational;
mod type_info;

pub(crate) use specialise::remove_target_attributes;

use crate::host::module::Host;
use gradus_ir::Diagnostic;
use llvm_sys::prelude::LLVMModuleRef;
pub(crate) use pointers::{is_allocator, is_specialised};

unsafe extern "C" {
    fn gr_name_internal_procedures(module: LLVMModuleRef);
}

impl Host {
    /// Expands calls of flang's runtime library: allocation and deallocation, assignments to allocatable
    /// variables and to arrays that may overlap, `MOVE_ALLOC`, copies for contiguous arguments, array
    /// constructors, initialisation, destruction, and numeric functions. Internal procedures passed as
    /// arguments are called by name.
    ///
    /// # Errors
    /// LLVM's message if a body cannot be specialised or linked.
    pub fn write_out_fortran(&mut self) -> Result<(), Diagnostic> {
        // SAFETY: the module is live.
        unsafe { gr_name_internal_procedures(self.module) };
        self.expand_destructions()?;
        self.expand_initialisations()?;
        self.expand_calls(calls::ASSIGNMENTS)?;
        self.expand_move_alloc()?;
        self.expand_calls(calls::BOUNDS)?;
        self.expand_allocations()?;
        self.expand_pointer_statements()?;
        self.expand_calls(calls::COPIES)?;
        self.expand_constructors()?;
        self.expand_calls(calls::TRANSFORMATIONAL)?;
        self.expand_calls(calls::REDUCTIONS)?;
        self.expand_calls(calls::NUMERIC)?;
        Ok(())
    }
}
