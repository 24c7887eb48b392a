//! Vector intrinsics: reductions, masked loads and stores.

use crate::bytecode::code::CallSite;
use crate::externals::{Outcome, defined_arg};
use crate::memory::check_alignment;
use crate::state::machine::Machine;
use crate::state::races::AccessKind;
use crate::trap::{Eval, TrapKind, fault};
use crate::values::arith::{apply_rmw, binary};
use crate::values::value::Value;
use crate::values::value_layout::{Num, Shape};
use gradus_ir::externals::{MaskedFn, ReduceFn};
use gradus_ir::{BinaryOp, RmwOp};

impl Machine<'_> {
    pub(crate) fn reduce(
        &mut self,
        id: ReduceFn,
        site: &CallSite,
        args: &[Value],
    ) -> Eval<Outcome> {
        let vector = args.len().saturating_sub(1);
        let Some((num, len)) = lanes(site, vector) else {
            return fault(TrapKind::BadCall, "a reduction of a non-vector");
        };
        let mut elements = (0..len).map(|i| args[vector].lane(i));
        let start = match vector {
            0 => elements.next().unwrap_or(Value::Poison),
            _ => args[0].clone(),
        };
        let arith = |op: BinaryOp, a: &Value, b: &Value| binary(op, num, site.flags, a, b);
        let total = elements.try_fold(start, |a, b| match id {
            ReduceFn::Fadd => arith(BinaryOp::FAdd, &a, &b),
            ReduceFn::Fmul => arith(BinaryOp::FMul, &a, &b),
            ReduceFn::Add => arith(BinaryOp::Add, &a, &b),
            ReduceFn::Mul => arith(BinaryOp::Mul, &a, &b),
            ReduceFn::And => arith(BinaryOp::And, &a, &b),
            ReduceFn::Or => arith(BinaryOp::Or, &a, &b),
            ReduceFn::Xor => arith(BinaryOp::Xor, &a, &b),
            ReduceFn::Smax => apply_rmw(RmwOp::Max, num, &a, &b),
            ReduceFn::Smin => apply_rmw(RmwOp::Min, num, &a, &b),
            ReduceFn::Umax => apply_rmw(RmwOp::UMax, num, &a, &b),
            ReduceFn::Umin => apply_rmw(RmwOp::UMin, num, &a, &b),
            ReduceFn::Fmax => apply_rmw(RmwOp::FMax, num, &a, &b),
            ReduceFn::Fmin => apply_rmw(RmwOp::FMin, num, &a, &b),
            ReduceFn::Fmaximum => apply_rmw(RmwOp::FMaximum, num, &a, &b),
            ReduceFn::Fminimum => apply_rmw(RmwOp::FMinimum, num, &a, &b),
        })?;
        Ok(Outcome::Value(total))
    }

    pub(crate) fn masked(
        &mut self,
        id: MaskedFn,
        site: &CallSite,
        args: &[Value],
    ) -> Eval<Outcome> {
        use MaskedFn::*;
        let stores = matches!(id, Store | Scatter | CompressStore);
        // Operand order: the stored vector (stores only), the pointer, an alignment (older form only), the
        // mask, the pass-through value (loads only).
        let pointer = usize::from(stores);
        let older = matches!(site.arg_shapes.get(pointer + 1), Some(Some(Shape::Num(_))));
        let align = if older {
            defined_arg(args, pointer + 1)?.max(1)
        } else {
            1
        };
        let mask = pointer + 1 + usize::from(older);
        let shape = match stores {
            true => lanes(site, 0),
            false => site
                .result
                .as_ref()
                .and_then(|(_, s)| Some((s.num()?, s.lanes()?))),
        };
        let (Some((num, len)), Some(mask_value)) = (shape, args.get(mask)) else {
            return fault(TrapKind::BadCall, "a masked access of a non-vector");
        };
        let stride = u64::from(num.bits().div_ceil(8));
        let lane_shape = Shape::Num(num);
        let mut loaded = Vec::new();
        let mut used = 0;
        let mut traced = Vec::new();
        for i in 0..len {
            let Value::Bits(wanted) = mask_value.lane(i) else {
                return fault(TrapKind::Undefined, "a mask is undefined");
            };
            if wanted & 1 == 0 {
                loaded.push(
                    args.get(mask + 1)
                        .map_or(Value::Poison, |other| other.lane(i)),
                );
                continue;
            }
            let address = match (id, &args[pointer]) {
                (Gather | Scatter, many) => defined_arg(&[many.lane(i)], 0)?,
                (ExpandLoad | CompressStore, base) => {
                    used += 1;
                    defined_arg(std::slice::from_ref(base), 0)?.wrapping_add((used - 1) * stride)
                }
                (_, base) => {
                    defined_arg(std::slice::from_ref(base), 0)?.wrapping_add(i as u64 * stride)
                }
            };
            if i == 0 || matches!(id, Gather | Scatter) {
                check_alignment(address, align)?;
            }
            let kind = match stores {
                true => AccessKind::Write,
                false => AccessKind::Read,
            };
            self.check_access(address, stride, kind)?;
            // The pointer is the address of lane 0.
            if i == 0 || matches!(id, Gather | Scatter) {
                traced.push(address);
            }
            match stores {
                true => lane_shape.store(&mut self.memory, address, &args[0].lane(i))?,
                false => loaded.push(lane_shape.load(&self.memory, address)?),
            }
        }
        for address in traced {
            self.trace_argument(pointer, address);
        }
        Ok(match stores {
            true => Outcome::Nothing,
            false => Outcome::Value(Value::Elements(loaded.into())),
        })
    }
}

/// Returns element type and length of a vector argument.
fn lanes(site: &CallSite, index: usize) -> Option<(Num, usize)> {
    let shape = site.arg_shapes.get(index)?.as_ref()?;
    Some((shape.num()?, shape.lanes()?))
}
