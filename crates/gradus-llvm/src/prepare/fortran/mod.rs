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
mod contiguous_copies;
mod derived_assign;
mod descriptor_analysis;
mod element_layout;
mod finalize;
mod initialize;
mod intrinsics;
mod pointers;
mod runtime_library;
mod type_info;

use crate::host::module::Host;
use crate::prepare::fortran::runtime_library::RuntimeReplacement;
use gradus_ir::Diagnostic;
use llvm_sys::prelude::LLVMModuleRef;
pub(crate) use pointers::is_allocator;

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
    /// LLVM's message if a replacement function cannot be parsed or linked.
    pub fn write_out_fortran(&mut self) -> Result<(), Diagnostic> {
        // SAFETY: the module is live.
        unsafe { gr_name_internal_procedures(self.module) };
        self.expand_destructions()?;
        self.expand_initialisations()?;
        self.expand_calls("_FortranAAssign", 4, |call| unsafe {
            assignments::match_assign(call)
        })?;
        self.expand_move_alloc()?;
        self.expand_calls("_FortranAAllocatableApplyMold", 3, |call| unsafe {
            allocations::match_mold(call)
        })?;
        self.expand_calls("_FortranAAllocatableSetBounds", 4, |call| unsafe {
            allocations::set_bounds(call)
        })?;
        self.expand_calls("_FortranAAllocatableAllocateSource", 6, |call| unsafe {
            allocations::match_allocate_source(call)
        })?;
        self.expand_allocations()?;
        self.expand_pointer_statements()?;
        self.expand_calls("_FortranAIsContiguous", 1, |call| unsafe {
            contiguous_copies::match_is_contiguous(call)
        })?;
        self.expand_calls("_FortranACopyInAssign", 4, |call| unsafe {
            contiguous_copies::match_copy_in(call)
        })?;
        self.expand_calls("_FortranACopyOutAssign", 4, |call| unsafe {
            contiguous_copies::match_copy_out(call)
        })?;
        self.expand_constructors()?;
        self.expand_calls("_FortranASpacing8", 1, |_| {
            Some(RuntimeReplacement::Spacing)
        })?;
        self.expand_calls("_FortranANorm2_8", 4, |call| unsafe {
            intrinsics::match_norm2(call)
        })?;
        for (kind, real) in [(4, "float"), (8, "double")] {
            for (how, floored) in [("Mod", false), ("Modulo", true)] {
                let name = format!("_FortranA{how}Real{kind}");
                self.expand_calls(&name, 4, |_| {
                    Some(RuntimeReplacement::Remainder { real, floored })
                })?;
            }
        }
        Ok(())
    }
}
