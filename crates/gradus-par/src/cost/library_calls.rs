//! The work of calls of library functions, by the table of external functions.

use super::model::{CALL_WORK, DIVISION_WORK};
use gradus_ir::externals::{ExternalFn, MathFn, MemoryFn};
use gradus_ir::{Body, ConstKind, FloatKind, Op, Unit};

pub(super) const MATH_WORK: u64 = 25;
const VECTOR_WORK: u64 = 4;
pub(super) const ALLOCATION_WORK: u64 = 100;
/// The number of bytes that one operation of a memory copy moves.
const COPY_BYTES_PER_OP: u64 = 16;

/// Returns the work of a call of a known function; `None` if the table states no work.
pub(super) fn library_call_work(
    unit: &Unit,
    body: &Body,
    op: Op,
    known: Option<ExternalFn>,
) -> Option<u64> {
    Some(match known? {
        ExternalFn::Math(id) if is_instruction(id) => 1,
        ExternalFn::Math(MathFn::Sqrt) => DIVISION_WORK,
        // LLVM folds the call to a multiplication.
        ExternalFn::Math(MathFn::Pow | MathFn::Powi) if squares(unit, body, op) => 1,
        ExternalFn::Math(_) | ExternalFn::MathOut(_) => MATH_WORK,
        ExternalFn::Complex(_) => 4 * MATH_WORK,
        ExternalFn::Integer(_) => 1,
        ExternalFn::Reduce(_) | ExternalFn::Masked(_) => VECTOR_WORK,
        ExternalFn::Memory(MemoryFn::UserAllocator(_)) => return None,
        ExternalFn::Memory(id) => memory_work(unit, body, op, id),
        ExternalFn::Marker(_) => 0,
        _ => return None,
    })
}

/// Returns the work of a call that allocates, frees, copies or fills memory.
fn memory_work(unit: &Unit, body: &Body, op: Op, id: MemoryFn) -> u64 {
    use MemoryFn::*;
    let size_argument = match id {
        Memcpy | MemcpyIntrinsic | Memmove | MemmoveIntrinsic | Memset | MemsetIntrinsic
        | Mempcpy | Bcopy => 2,
        Bzero => 1,
        UserAllocator(_) | Malloc | Calloc | Realloc | Free | PosixMemalign | AlignedAlloc
        | Strdup | New | NewNothrow | NewAligned | NewAlignedNothrow | Delete | RustAlloc
        | RustAllocZeroed | RustRealloc | RustDealloc | UsableSize | TapePush | TapeRelease => {
            return ALLOCATION_WORK;
        }
    };
    let size = unit.call_args(body, op).get(size_argument).copied();
    let size = size.and_then(|size| body.as_int(unit, size));
    let size = size.and_then(|bytes| u64::try_from(bytes).ok());
    size.map_or(CALL_WORK, |bytes| 1 + bytes / COPY_BYTES_PER_OP)
}

/// Returns true if the exponent of a power is 2.
fn squares(unit: &Unit, body: &Body, op: Op) -> bool {
    let args = unit.call_args(body, op);
    let Some(&exponent) = args.get(1) else {
        // Not an error: the call is no power.
        return false;
    };
    let two = match unit.types.float_kind(body.ty(exponent)) {
        Some(FloatKind::F64) => u128::from(2.0_f64.to_bits()),
        Some(FloatKind::F32) => u128::from(2.0_f32.to_bits()),
        // Not an error: powers in other formats count in full.
        Some(_) => return false,
        None => return body.as_int(unit, exponent) == Some(2),
    };
    let constant = body.as_const(exponent);
    constant
        .is_some_and(|id| matches!(unit.constant(id).kind, ConstKind::Float(bits) if bits == two))
}

/// Returns true for functions that are one or a few machine instructions.
pub(super) fn is_instruction(id: MathFn) -> bool {
    use MathFn::*;
    matches!(
        id,
        Fma | Fmuladd
            | Fabs
            | Copysign
            | Maxnum
            | Minnum
            | Maximum
            | Minimum
            | MaximumNum
            | MinimumNum
    )
}
