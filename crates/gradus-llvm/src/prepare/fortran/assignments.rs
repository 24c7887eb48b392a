//! Expands flang's array assignments and `MOVE_ALLOC`.
//!
//! flang emits `_FortranAAssign(to, from, …)` for `a = …` if `a` is allocatable, or if the right-hand side
//! may overlap `a`. A replacement function exists for each rank and element type:
//!
//! ```text
//! to is allocatable, and not allocated or of another shape:
//!     memory of the shape of `from` is allocated and filled, the old memory of `to` is freed
//! the two overlap:    through a temporary copy
//! else:               element by element
//! ```
//!
//! `_FortranAMoveAlloc(to, from, …)` frees the old memory of `to` and transfers the memory of `from`.
//! Accesses through both variables then alias, although flang's TBAA tags deny it. Elements of derived
//! types with allocatable components and of characters, and descriptors of unknown contents stay calls,
//! except for the scalars of [`derived_assign`]. Semantics: Fortran 2018, 10.2.1.3 and 16.9.137; bounds
//! as set by flang-rt 22.

use crate::host::ffi::{functions_of, instructions_in};
use crate::host::module::Host;
use crate::prepare::fortran::calls::described_operand;
use crate::prepare::fortran::descriptor_analysis::StoredMembers;
use crate::prepare::fortran::element_layout::Element;
use crate::prepare::fortran::specialise::{Constant, Specialisation};
use gradus_ir::Diagnostic;
use llvm_sys::core::*;
use llvm_sys::prelude::*;

/// Returns the rank, the element, and whether a scalar is assigned to each element.
///
/// # Safety
/// `call` is a live call of `_FortranAAssign`.
pub(super) unsafe fn constants(call: LLVMValueRef) -> Option<Vec<Constant>> {
    unsafe {
        let (rank, element) = described_operand(call, 1)?;
        let to = described_operand(call, 0);
        if to.as_ref().is_some_and(|(_, other)| *other != element) {
            return None;
        }
        let (rank, spread) = match (rank, to) {
            (0, Some((rank, _))) => (rank, rank > 0),
            (0, None) => return None,
            (rank, Some((other, _))) if other != rank => return None,
            (rank, _) => (rank, false),
        };
        Some(vec![
            Constant::Number(rank),
            Constant::Element(element),
            Constant::Number(spread.into()),
        ])
    }
}

/// The variable of a `MOVE_ALLOC`.
#[derive(PartialEq)]
struct MoveAlloc {
    rank: u64,
    /// The bytes of an element.
    bytes: u64,
    /// Offsets in each element of the target at which freed addresses are stored.
    freed: Vec<u64>,
}

/// Matches a `MOVE_ALLOC`; `None` if the variable may be polymorphic, or if neither descriptor is known.
unsafe fn match_move_alloc(call: LLVMValueRef) -> Option<MoveAlloc> {
    unsafe {
        if LLVMIsNull(LLVMGetOperand(call, 2)) == 0 {
            return None;
        }
        let side = |side| describe_moved(LLVMGetOperand(call, side));
        match (side(0), side(1)) {
            (Some(to), Some(from)) if to != from => None,
            (to, from) => to.or(from),
        }
    }
}

unsafe fn describe_moved(descriptor: LLVMValueRef) -> Option<MoveAlloc> {
    unsafe {
        let left = StoredMembers::in_dummy_argument(descriptor)?;
        let (bytes, freed) = match Element::of(left.element()?) {
            Some(element) => (element.size(), Vec::new()),
            None => (left.derived()?.size()?, left.derived()?.freed_offsets()?),
        };
        let rank = left.rank()?;
        Some(MoveAlloc { rank, bytes, freed })
    }
}

impl Host {
    /// Drops all TBAA tags: after a move, flang's tags of the two variables contradict the aliasing.
    fn drop_tbaa(&self) {
        unsafe {
            let kind = LLVMGetMDKindIDInContext(self.ctx, c"tbaa".as_ptr(), 4);
            for function in functions_of(self.module) {
                for at in instructions_in(function) {
                    LLVMSetMetadata(at, kind, std::ptr::null_mut());
                }
            }
        }
    }

    /// Expands `MOVE_ALLOC`.
    ///
    /// # Errors
    /// LLVM's message if a replacement function cannot be parsed or linked.
    pub(super) fn expand_move_alloc(&mut self) -> Result<(), Diagnostic> {
        let calls = self.calls_of("_FortranAMoveAlloc", 7);
        // All calls are matched before any is replaced, because the uses of a descriptor are evidence of
        // its type.
        let read = |&call: &LLVMValueRef| Some((call, unsafe { match_move_alloc(call)? }));
        let moves: Vec<_> = calls.iter().filter_map(read).collect();
        if !moves.is_empty() {
            self.drop_tbaa();
        }
        for (call, MoveAlloc { rank, bytes, freed }) in moves {
            unsafe { self.free_components(call, rank, bytes, &freed)? };
            self.replace_calls(&Specialisation::new("move", &[rank]), &[call])?;
        }
        Ok(())
    }
}
