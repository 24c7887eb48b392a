//! Operands of masked loads and stores, in LLVM's newer and older forms.

use gradus_ir::externals::{ExternalFn, MaskedFn};
use gradus_ir::{Body, Op, Unit, Value};

/// A masked access.
#[derive(Clone, Copy, Debug)]
pub struct MaskedAccess {
    /// The intrinsic.
    pub function: MaskedFn,
    /// The address, or the vector of addresses.
    pub ptr: Value,
    /// Operand index of the address.
    pub ptr_index: usize,
    /// The mask of accessed lanes.
    pub mask: Value,
    /// The pass-through of a load, or the stored value.
    pub data: Value,
    /// Operand index of `data`.
    pub data_index: usize,
}

impl MaskedAccess {
    /// Returns true for a store.
    pub fn is_store(&self) -> bool {
        match self.function {
            MaskedFn::Load | MaskedFn::Gather | MaskedFn::ExpandLoad => false,
            MaskedFn::Store | MaskedFn::Scatter | MaskedFn::CompressStore => true,
        }
    }
}

/// Decomposes a call of a masked load or store. Loads are `ptr, [align,] mask, passthru`, stores are `value,
/// ptr, [align,] mask`.
pub fn match_masked_access(unit: &Unit, body: &Body, op: Op) -> Option<MaskedAccess> {
    let Some(ExternalFn::Masked(function)) = unit.known_callee(body, op) else {
        return None;
    };
    let args = unit.call_args(body, op);
    let last = args.len().checked_sub(1)?;
    let (ptr_index, mask_index, data_index) = match function {
        MaskedFn::Load | MaskedFn::Gather | MaskedFn::ExpandLoad => (0, last - 1, last),
        MaskedFn::Store | MaskedFn::Scatter | MaskedFn::CompressStore => (1, last, 0),
    };
    Some(MaskedAccess {
        function,
        ptr: *args.get(ptr_index)?,
        ptr_index: ptr_index + 1,
        mask: *args.get(mask_index)?,
        data: *args.get(data_index)?,
        data_index: data_index + 1,
    })
}
