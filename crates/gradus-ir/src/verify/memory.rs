//! Verifier rules of memory ops: V020 to V023.

use super::{Rule, Verifier};
use crate::{Access, Atomicity, Op, OpKind, RmwOp, Type, TypeId};

impl Verifier<'_> {
    pub(super) fn memory(&mut self, op: Op, kind: &OpKind) {
        use OpKind::*;
        match kind {
            Alloca(info) => {
                let count = self.is_scalar_int(self.operand_type(op, 0));
                let sized = self.has_size(info.ty);
                self.require(
                    count && sized,
                    Rule::Pointer,
                    op,
                    "the count is not an integer, or the allocated type has no size",
                );
                self.alignment(op, info.align_bytes);
            }
            Load(access) => {
                self.through_pointer(op, 0, self.result_type(op));
                self.access(op, access);
                let allowed =
                    !matches!(access.order, Atomicity::Release | Atomicity::AcquireRelease);
                self.require(
                    allowed,
                    Rule::Order,
                    op,
                    "a load cannot have release ordering",
                );
                self.atomic_type(op, access, self.result_type(op));
            }
            Store(access) => {
                self.through_pointer(op, 1, self.operand_type(op, 0));
                self.access(op, access);
                let allowed =
                    !matches!(access.order, Atomicity::Acquire | Atomicity::AcquireRelease);
                self.require(
                    allowed,
                    Rule::Order,
                    op,
                    "a store cannot have acquire ordering",
                );
                self.atomic_type(op, access, self.operand_type(op, 0));
            }
            Addr { source } => self.address(op, *source),
            AtomicRmw(rmw, access) => {
                let ty = self.operand_type(op, 1);
                self.through_pointer(op, 0, ty);
                self.access(op, access);
                let fits = self.rmw_fits(*rmw, ty) && access.order >= Atomicity::Monotonic;
                self.require(
                    fits,
                    Rule::Order,
                    op,
                    "the operation does not support the type, or the ordering is weaker than `monotonic`",
                );
            }
            CmpXchg {
                access, failure, ..
            } => self.exchange(op, access, *failure),
            Fence { order, .. } => {
                let fits = *order >= Atomicity::Acquire;
                self.require(
                    fits,
                    Rule::Order,
                    op,
                    "the ordering of a fence is weaker than `acquire` and `release`",
                );
            }
            _ => {}
        }
    }

    fn through_pointer(&mut self, op: Op, pointer: usize, ty: TypeId) {
        let fits = self.is_scalar_ptr(self.operand_type(op, pointer)) && self.has_size(ty);
        self.require(
            fits,
            Rule::Pointer,
            op,
            "the address is not a pointer, or the accessed type has no size",
        );
    }

    fn access(&mut self, op: Op, access: &Access) {
        self.alignment(op, access.align_bytes);
    }

    fn alignment(&mut self, op: Op, align_bytes: u32) {
        let fits = align_bytes.is_power_of_two();
        self.require(
            fits,
            Rule::Alignment,
            op,
            &format!("the alignment is {align_bytes}"),
        );
    }

    fn atomic_type(&mut self, op: Op, access: &Access, ty: TypeId) {
        let scalar = matches!(
            self.ty(ty),
            Type::Int(_) | Type::Float(_) | Type::Ptr(_) | Type::Vector { .. }
        );
        let fits = access.order == Atomicity::NotAtomic || scalar;
        self.require(
            fits,
            Rule::Order,
            op,
            "the type of an atomic access is neither a scalar nor a vector",
        );
    }

    fn exchange(&mut self, op: Op, access: &Access, failure: Atomicity) {
        let ty = self.operand_type(op, 1);
        self.through_pointer(op, 0, ty);
        self.access(op, access);
        let types = self.is_scalar_int(ty) || self.is_scalar_ptr(ty);
        let orders = access.order >= Atomicity::Monotonic
            && matches!(
                failure,
                Atomicity::Monotonic | Atomicity::Acquire | Atomicity::SequentiallyConsistent
            );
        let fits = types && orders && ty == self.operand_type(op, 2);
        self.require(
            fits,
            Rule::Order,
            op,
            "the values are not integers or pointers of one type, or an ordering is not permitted",
        );
    }

    fn rmw_fits(&self, rmw: RmwOp, ty: TypeId) -> bool {
        use RmwOp::*;
        match rmw {
            Xchg => {
                self.is_scalar_int(ty)
                    || self.is_scalar_ptr(ty)
                    || matches!(self.ty(ty), Type::Float(_))
            }
            FAdd | FSub | FMax | FMin | FMaximum | FMinimum => self.is_float(ty),
            Add | Sub | And | Nand | Or | Xor | Max | Min | UMax | UMin | UIncWrap | UDecWrap
            | USubCond | USubSat => self.is_scalar_int(ty),
        }
    }

    /// Checks base, first index over the source type, and one index per nesting level.
    fn address(&mut self, op: Op, source: TypeId) {
        let body = self.body;
        let base = self.unit.types.is_ptr(self.operand_type(op, 0));
        let indices = (1..body.operand_count(op)).all(|i| self.is_int(self.operand_type(op, i)));
        if !base || !indices || !self.has_size(source) {
            return self.fail(
                Rule::AddressFits,
                op,
                "the base is not a pointer, an index is not an integer, or the source type has no size",
            );
        }
        let lanes: Vec<_> = body
            .operands(op)
            .filter_map(|v| self.lanes(body.ty(v)))
            .collect();
        if lanes.windows(2).any(|pair| pair[0] != pair[1]) {
            return self.fail(
                Rule::AddressFits,
                op,
                "the vector operands have different lane counts",
            );
        }
        let mut ty = source;
        for index in body.operands(op).skip(2) {
            let inner = match self.ty(ty) {
                Type::Array { elem, .. } | Type::Vector { elem, .. } => Some(*elem),
                Type::Struct { fields, .. } => {
                    let field = self.field_index(index);
                    field.and_then(|i| fields.get(i).copied())
                }
                _ => None,
            };
            match inner {
                Some(inner) => ty = inner,
                None => {
                    return self.fail(
                        Rule::AddressFits,
                        op,
                        "an index selects no element of the indexed type",
                    );
                }
            }
        }
    }

    /// Returns the value of a constant index or of a splat index.
    fn field_index(&self, index: crate::Value) -> Option<usize> {
        if let Some(n) = self.body.as_int(self.unit, index) {
            return usize::try_from(n).ok();
        }
        let constant = self.unit.constant(self.body.as_const(index)?);
        match &constant.kind {
            crate::ConstKind::Zero => Some(0),
            crate::ConstKind::Aggregate(members) => {
                let first = *members.first()?;
                match self.unit.constant(first).kind {
                    crate::ConstKind::Int(n) if members.iter().all(|m| *m == first) => {
                        usize::try_from(n).ok()
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }
}
