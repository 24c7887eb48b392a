//! Memory accesses by value: loads, stores, atomics, masked accesses and results behind pointers; results of calls.
//!
//! `lifetime/`, `activity/` and `checks/` read the accesses of each op. `effects.rs` describes accesses by extent
//! instead.

use gradus_ir::externals::{ExternalFn, MaskedFn, MultiResultMathFn};
use gradus_ir::{Body, Op, OpKind, Unit, Value};

/// A read or a write of memory by value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueAccess {
    /// Reads `value` from memory behind `ptr`.
    Load {
        /// The address.
        ptr: Value,
        /// The value read.
        value: Value,
    },
    /// Writes `value` to memory behind `ptr`.
    Store {
        /// The address.
        ptr: Value,
        /// The value written.
        value: Value,
    },
}

/// Visits the memory accesses by value of an op: loads, stores, atomics, masked accesses, and results of
/// math functions behind pointers. Byte copies are excluded.
pub fn value_accesses(unit: &Unit, body: &Body, op: Op, mut touch: impl FnMut(ValueAccess)) {
    let operand = |i: usize| body.operand(op, i);
    match body.kind(op) {
        OpKind::Load(_) => touch(ValueAccess::Load {
            ptr: operand(0),
            value: body.result(op),
        }),
        OpKind::Store(_) => touch(ValueAccess::Store {
            ptr: operand(1),
            value: operand(0),
        }),
        OpKind::AtomicRmw(..) => {
            let (ptr, value) = (operand(0), operand(1));
            touch(ValueAccess::Store { ptr, value });
            let value = body.result(op);
            touch(ValueAccess::Load { ptr, value });
        }
        OpKind::CmpXchg { .. } => {
            let (ptr, value) = (operand(0), operand(2));
            touch(ValueAccess::Store { ptr, value });
            let value = body.result(op);
            touch(ValueAccess::Load { ptr, value });
        }
        OpKind::Call(_) | OpKind::Invoke(_) => {
            let Some(known) = unit.known_callee(body, op) else {
                // Not an error: only known functions access memory by value.
                return;
            };
            let args = unit.call_args(body, op);
            match (known, args.as_slice()) {
                (
                    ExternalFn::Masked(MaskedFn::Load | MaskedFn::Gather | MaskedFn::ExpandLoad),
                    [ptr, ..],
                ) => touch(ValueAccess::Load {
                    ptr: *ptr,
                    value: body.result(op),
                }),
                (ExternalFn::Masked(_), [value, ptr, ..]) => touch(ValueAccess::Store {
                    ptr: *ptr,
                    value: *value,
                }),
                (ExternalFn::MathOut(MultiResultMathFn::Sincos), [value, a, b]) => {
                    for ptr in [*a, *b] {
                        let value = *value;
                        touch(ValueAccess::Store { ptr, value });
                    }
                }
                (ExternalFn::MathOut(MultiResultMathFn::Modf), [value, ptr]) => {
                    touch(ValueAccess::Store {
                        ptr: *ptr,
                        value: *value,
                    })
                }
                _ => {}
            }
        }
        _ => {}
    }
}

/// Returns the call's result as visible to later ops. For an invoke, that value is the op's result through
/// which region 0 yields its parameter.
pub fn visible_call_result(body: &Body, op: Op) -> Option<Value> {
    match body.kind(op) {
        OpKind::Invoke(_) => {
            let region = *body.op_regions(op).first()?;
            let param = body.region_params(region).first()?;
            let end = body.last(region)?;
            let at = body.operands(end).position(|value| value == *param)?;
            body.results(op).get(at).copied()
        }
        _ => body.call_result(op),
    }
}
