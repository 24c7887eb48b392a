//! Addresses from arithmetic: what `addr`, casts and integer ops say about pointers.
//!
//! Strides bound how far a place may move: `p + 8·i` keeps the words of eight bytes apart, also where the
//! front end has written `8·i` as a shift. Distances and alignments are no addresses.

use crate::constraints::Reader;
use crate::linear;
use crate::memory::Origin;
use gradus_ir::{BinaryOp, CastOp, Flags, Op, OpKind, Value};

impl Reader<'_, '_> {
    pub(crate) fn addr(&mut self, op: Op) {
        let (body, unit) = (self.body, self.unit());
        if body.has_uses(body.result(op)) && self.is_measured(body.result(op)) {
            return;
        }
        if linear::is_bare_address(unit, body, body.operand(op, 0)) {
            // A number as an address: what it steps by is the address, if one of the numbers is.
            for index in body.operands(op).skip(1) {
                if let Some(target) = self.target(index) {
                    self.solver.classes.step(target, 1);
                    self.points(body.result(op), target);
                }
            }
        }
        let Some(base) = self.target(body.operand(op, 0)) else {
            return;
        };
        if let OpKind::Addr { source } = *body.kind(op) {
            self.solver.see_source(base, source);
        }
        match unit.layout.address(unit, body, op) {
            Some(address) => {
                for &(index, stride) in &address.terms {
                    let stride = stride.saturating_mul(self.factor(index));
                    self.solver.classes.step(base, stride);
                }
                self.points(body.result(op), base.plus(address.offset));
            }
            None => {
                self.solver.classes.step(base, 1);
                self.points(body.result(op), base);
            }
        }
    }
    /// A number that divides an integer, as far as its definition shows.
    fn factor(&self, value: Value) -> i64 {
        let Some(op) = self.body.def_op(value) else {
            return 1;
        };
        let OpKind::Binary(binary) = self.body.kind(op) else {
            return 1;
        };
        let flags = self.body.ops[op].flags;
        match (
            binary,
            self.body.as_int(self.unit(), self.body.operand(op, 1)),
        ) {
            (BinaryOp::Shl, Some(by @ 0..32)) => 1 << by,
            (BinaryOp::Mul, Some(by @ 1..0x1_0000)) if flags.has(Flags::NSW) => by,
            (BinaryOp::And, Some(mask)) if mask != 0 => 1 << mask.trailing_zeros().min(32),
            _ => 1,
        }
    }
    pub(crate) fn cast(&mut self, op: Op, cast: CastOp) {
        let (from, to) = (self.body.operand(op, 0), self.body.result(op));
        let lost = matches!(cast, CastOp::IntToPtr) && self.target(from).is_none();
        if lost {
            let object = self.solver.object(Origin::Elsewhere(self.func, op));
            self.points(to, object);
        } else {
            for target in self.targets(from).into_iter().flatten() {
                self.points(to, target);
            }
        }
    }
    /// Integers that may be addresses: sums with constants keep their offset, other arithmetic loses
    /// it, products and quotients are no addresses.
    pub(crate) fn binary(&mut self, op: Op, binary: BinaryOp) {
        let body = self.body;
        if !self.solver.holds_address(body.ty(body.result(op))) || binary.is_float() {
            return;
        }
        let (a, b) = (body.operand(op, 0), body.operand(op, 1));
        let (a_int, b_int) = (body.as_int(self.unit(), a), body.as_int(self.unit(), b));
        let (base, offset) = match (binary, a_int, b_int) {
            (BinaryOp::Add, None, Some(n)) => (a, n),
            (BinaryOp::Add, Some(n), None) => (b, n),
            (BinaryOp::Sub, None, Some(n)) => (a, n.wrapping_neg()),
            (BinaryOp::Mul | BinaryOp::UDiv | BinaryOp::SDiv, ..) => return,
            (BinaryOp::URem | BinaryOp::SRem, ..) => return,
            _ if self.is_measured(body.result(op)) => return,
            _ => {
                for value in [a, b] {
                    if let Some(target) = self.target(value) {
                        self.solver.classes.step(target, 1);
                        self.points(body.result(op), target);
                    }
                }
                return;
            }
        };
        if let Some(target) = self.target(base) {
            self.points(body.result(op), target.plus(offset));
        }
    }
    /// Whether an integer is only compared, divided or multiplied: a distance or an alignment, no address.
    fn is_measured(&self, value: Value) -> bool {
        use BinaryOp::{AShr, LShr, Mul, SDiv, SRem, UDiv, URem};
        self.body.uses(value).all(|at| match self.body.kind(at.op) {
            OpKind::ICmp(_) | OpKind::Cast(CastOp::SIToFP | CastOp::UIToFP) => true,
            OpKind::Binary(AShr | LShr | Mul | SDiv | SRem | UDiv | URem) => true,
            OpKind::Addr { .. } => at.index > 0,
            _ => false,
        })
    }
}
