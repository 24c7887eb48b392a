//! What flang leaves to its run-time library, written out as what it does, so that derivatives know it.
//!
//! Variables that are allocated while a program runs are handed to the library by descriptors: structures with an
//! address, a type, a rank, and the bounds of each dimension (`CFI_cdesc_t` of the Fortran standard, with what
//! flang adds to it). What a descriptor describes is read off what the function itself stores there
//! ([`descriptors`]); where that does not tell, a call is left as it is, and refused if active memory depends on it.

mod allocations;
mod assignments;
mod constructions;
mod copies;
mod descriptors;
mod destructions;
mod elements;
mod held_assignments;
mod initialisations;
mod numbers;
mod pointers;
mod types;
mod written;

use crate::host::Host;
use gradus_ir::Diagnostic;
use llvm_sys::prelude::LLVMModuleRef;
pub(crate) use pointers::is_payload;
use written::Written;

unsafe extern "C" {
    fn gr_name_internal_procedures(module: LLVMModuleRef);
}

impl Host {
    /// Writes out the calls of flang's run-time library that allocate, move and free memory, assignments to
    /// allocatable variables and of arrays that may overlap, `ALLOCATE` with a `SOURCE`, `MOVE_ALLOC`, copies for
    /// code that takes elements to stand side by side, array constructors, initialisations and destructions, and
    /// functions of numbers. Internal procedures that are handed on are called by their names.
    ///
    /// # Errors
    /// LLVM's complaint about what is written.
    pub fn write_out_fortran(&mut self) -> Result<(), Diagnostic> {
        // SAFETY: the module is live.
        unsafe { gr_name_internal_procedures(self.module) };
        self.write_out_destructions()?;
        self.write_out_initialisations()?;
        self.write_out("_FortranAAssign", 4, |call| unsafe {
            assignments::assignment(call)
        })?;
        self.write_out_movements()?;
        self.write_out("_FortranAAllocatableApplyMold", 3, |call| unsafe {
            allocations::mold(call)
        })?;
        self.write_out("_FortranAAllocatableSetBounds", 4, |call| unsafe {
            allocations::set_bounds(call)
        })?;
        self.write_out("_FortranAAllocatableAllocateSource", 6, |call| unsafe {
            allocations::allocation(call)
        })?;
        self.write_out_allocations()?;
        self.write_out_pointers()?;
        self.write_out("_FortranAIsContiguous", 1, |call| unsafe {
            copies::question(call)
        })?;
        self.write_out("_FortranACopyInAssign", 4, |call| unsafe {
            copies::copied_in(call)
        })?;
        self.write_out("_FortranACopyOutAssign", 4, |call| unsafe {
            copies::copied_out(call)
        })?;
        self.write_out_constructions()?;
        self.write_out("_FortranASpacing8", 1, |_| Some(Written::Spacing))?;
        self.write_out("_FortranANorm2_8", 4, |call| unsafe { numbers::norm(call) })?;
        for (kind, real) in [(4, "float"), (8, "double")] {
            for (how, floored) in [("Mod", false), ("Modulo", true)] {
                let name = format!("_FortranA{how}Real{kind}");
                self.write_out(&name, 4, |_| Some(Written::Remainder { real, floored }))?;
            }
        }
        Ok(())
    }
}
