//! The operands of masked loads and stores, in LLVM's newer and older forms.

use gradus_ir::known::{Known, MaskedFn};
use gradus_ir::{Body, Op, Unit, Value};

/// A masked access.
#[derive(Clone, Copy, Debug)]
pub struct MaskedAccess {
    /// Which.
    pub function: MaskedFn,
    /// The address or addresses.
    pub ptr: Value,
    /// Where in the operand list the address stands.
    pub ptr_index: usize,
    /// Which lanes are accessed.
    pub mask: Value,
    /// What a load gives in the other lanes, or what a store writes.
    pub data: Value,
    /// Where in the operand list that stands.
    pub data_index: usize,
}

/// Takes a call of a masked load or store apart. Loads are `ptr, [align,] mask, otherwise`, stores
/// `value, ptr, [align,] mask`.
pub fn masked_access(unit: &Unit, body: &Body, op: Op) -> Option<MaskedAccess> {
    let Some(Known::Masked(function)) = unit.callee(body, op).and_then(|f| unit.known(f)) else {
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
