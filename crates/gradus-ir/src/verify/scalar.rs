//! Verifier rules of scalar and vector ops (V014 to V019) and of flags (V027).

use super::{Rule, Verifier};
use crate::scalar_table::WidthChange;
use crate::{CastOp, Flags, FloatKind, NumberFormat, Op, OpKind, Type, TypeId};

impl Verifier<'_> {
    pub(super) fn scalar(&mut self, op: Op, kind: &OpKind) {
        use OpKind::*;
        let a = self.operand_type(op, 0);
        match kind {
            Binary(binary) => {
                let same = a == self.operand_type(op, 1);
                let fits = if binary.is_float() {
                    self.is_float(a)
                } else {
                    self.is_int(a)
                };
                self.require(
                    same && fits,
                    Rule::Arithmetic,
                    op,
                    "the operands have different types, or the operation does not support the type",
                );
            }
            FNeg => {
                let fits = self.is_float(a);
                self.require(
                    fits,
                    Rule::Arithmetic,
                    op,
                    "the operand of a negation is not floating-point",
                );
            }
            Cast(cast) => {
                let fits = self.cast_fits(*cast, a, self.result_type(op));
                self.require(
                    fits,
                    Rule::CastFits,
                    op,
                    "the cast does not support this pair of types",
                );
            }
            ICmp(_) => {
                let fits = self.is_int(a) || self.unit.types.is_ptr(a);
                let fits = fits && a == self.operand_type(op, 1);
                self.require(
                    fits,
                    Rule::CompareFits,
                    op,
                    "the operands are not integers or pointers of one type",
                );
            }
            FCmp(_) => {
                let fits = self.is_float(a) && a == self.operand_type(op, 1);
                self.require(
                    fits,
                    Rule::CompareFits,
                    op,
                    "the operands are not floating-point values of one type",
                );
            }
            Select => self.select(op),
            ExtractElement | InsertElement | Shuffle(_) => self.lane_op(op, kind),
            ExtractValue(path) => self.member(op, path, None),
            InsertValue(path) => self.member(op, path, Some(self.operand_type(op, 1))),
            Freeze => {}
            _ => unreachable!("the walk passes scalar ops only"),
        }
    }

    fn select(&mut self, op: Op) {
        let (c, a) = (self.operand_type(op, 0), self.operand_type(op, 1));
        let truth = self.unit.types.int_bits(c) == Some(1);
        let lanes = !self.is_vector(c) || self.lanes(c) == self.lanes(a);
        let fits = truth && lanes && a == self.operand_type(op, 2);
        self.require(
            fits,
            Rule::SelectFits,
            op,
            "the condition is not `i1`, the lane counts differ, or the values have different types",
        );
    }

    fn cast_fits(&self, cast: CastOp, from: TypeId, to: TypeId) -> bool {
        let types = &self.unit.types;
        if cast == CastOp::BitCast {
            return self.bitcast_fits(from, to);
        }
        let row = cast.row();
        let fits = |ty, format| match format {
            NumberFormat::Int => types.int_bits(ty).is_some(),
            NumberFormat::Float => types.float_kind(ty).is_some(),
            NumberFormat::Ptr => types.is_ptr(ty),
            NumberFormat::Bits => false,
        };
        let bits = |ty| {
            types
                .int_bits(ty)
                .or(types.float_kind(ty).map(FloatKind::bits))
        };
        let width = match row.width {
            WidthChange::Narrower => bits(from) > bits(to),
            WidthChange::Wider => bits(from) < bits(to),
            WidthChange::Equal => bits(from) == bits(to),
            WidthChange::Any => from != to,
        };
        let kinds = fits(from, row.from) && fits(to, row.to) && width;
        kinds && self.lanes(from) == self.lanes(to)
    }

    /// Checks a bitcast: equal widths; pointers convert to pointers only.
    fn bitcast_fits(&self, from: TypeId, to: TypeId) -> bool {
        let first_class = |ty| {
            !matches!(
                self.ty(ty),
                Type::Void | Type::Func { .. } | Type::Struct { .. } | Type::Array { .. }
            )
        };
        let layout = &self.unit.layout;
        let bits = |ty| match *self.ty(ty) {
            Type::Int(bits) => u64::from(bits),
            Type::Vector { elem, len, .. } => match *self.ty(elem) {
                Type::Int(bits) => u64::from(bits) * u64::from(len),
                _ => layout.store_bytes(self.unit, ty) * 8,
            },
            _ => layout.store_bytes(self.unit, ty) * 8,
        };
        let scaled = |ty| self.lanes(ty).is_some_and(|(_, scalable)| scalable);
        let pointers = self.unit.types.is_ptr(from) == self.unit.types.is_ptr(to);
        first_class(from)
            && first_class(to)
            && bits(from) == bits(to)
            && scaled(from) == scaled(to)
            && pointers
    }

    fn lane_op(&mut self, op: Op, kind: &OpKind) {
        let vector = self.operand_type(op, 0);
        let Some((len, scalable)) = self.lanes(vector) else {
            return self.fail(Rule::LaneFits, op, "the first operand is not a vector");
        };
        let elem = self.unit.types.scalar(vector);
        let fits = match kind {
            OpKind::ExtractElement => self.is_scalar_int(self.operand_type(op, 1)),
            OpKind::InsertElement => {
                self.operand_type(op, 1) == elem && self.is_scalar_int(self.operand_type(op, 2))
            }
            OpKind::Shuffle(mask) => {
                let lane = |m: &i32| *m >= -1 && i64::from(*m) < 2 * i64::from(len);
                let equal = mask.iter().all(|m| *m == mask[0] && *m <= 0);
                self.operand_type(op, 1) == vector
                    && !mask.is_empty()
                    && mask.iter().all(lane)
                    && (!scalable || equal)
            }
            _ => true,
        };
        self.require(
            fits,
            Rule::LaneFits,
            op,
            "an operand has the wrong type, or a lane number is out of range",
        );
    }

    fn member(&mut self, op: Op, path: &[u32], put: Option<TypeId>) {
        let inside = |ty: TypeId, index: &u32| match self.ty(ty) {
            Type::Struct { .. } | Type::Array { .. } => self.unit.types.field(ty, *index),
            _ => None,
        };
        let start = Some(self.operand_type(op, 0));
        let end = path.iter().fold(start, |ty, index| inside(ty?, index));
        let fits = !path.is_empty() && end.is_some() && (put.is_none() || put == end);
        self.require(
            fits,
            Rule::MemberFits,
            op,
            "the path selects no member, or the inserted value has another type",
        );
    }

    // ---- flags -----------------------------------------------------------------------------

    pub(super) fn flags_fit(&mut self, op: Op, kind: &OpKind) {
        let flags = self.body.ops[op].flags;
        if flags != Flags::NONE && flags.without(allowed_flags(kind)) != Flags::NONE {
            self.fail(
                Rule::FlagFits,
                op,
                "the op has a flag that the op does not support",
            );
        }
    }
}

/// Returns the flags permitted on an op. Fast-math flags of phis are on structured ops.
fn allowed_flags(kind: &OpKind) -> Flags {
    match kind {
        OpKind::Binary(op) => op.row().flags,
        OpKind::Cast(op) => op.row().flags,
        OpKind::ICmp(_) => Flags::SAMESIGN,
        OpKind::Addr { .. } => Flags::INBOUNDS.with(Flags::NUSW).with(Flags::NUW),
        OpKind::FNeg | OpKind::FCmp(_) | OpKind::Select | OpKind::Call(_) | OpKind::Invoke(_) => {
            Flags::FAST
        }
        OpKind::If | OpKind::Switch(_) => Flags::FAST,
        OpKind::Loop { .. } => Flags::FAST.with(Flags::HAS_PARALLEL_INTRINSIC),
        OpKind::For { .. } => (Flags::FAST.with(Flags::NO_VECTORIZE))
            .with(Flags::INDEPENDENT)
            .with(Flags::ALLOWS_EQUAL_WRITES)
            .with(Flags::NO_RUNTIME_UNROLL)
            .with(Flags::HAS_PARALLEL_INTRINSIC),
        OpKind::ParFor { .. } => Flags::ALLOWS_EQUAL_WRITES,
        OpKind::Spmd { .. } => Flags::COOPERATIVE_THREADS,
        OpKind::Spawn { .. } => Flags::ORPHANED_TASK,
        OpKind::AtomicRmw(..) => Flags::ATOMIC_ACROSS_ITERATIONS,
        OpKind::Foreign(_) => Flags(u32::MAX),
        _ => Flags::NONE,
    }
}
