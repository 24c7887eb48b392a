//! Pointer arithmetic: alias-set constraints of `addr`, casts and integer ops.
//!
//! Strides bound the movement of a pointer: `p + 8·i` keeps cells of eight bytes separate, also if the
//! front end wrote `8·i` as a shift. Pointer differences and alignments are not addresses.

use crate::points_to::alias_set_solver::{Solver, UnresolvedPolicy};
use crate::points_to::alias_sets::MemoryOrigin;
use crate::points_to::constraints::ConstraintBuilder;
use crate::points_to::union_find::{NodeOffset, gcd};
use crate::scev::poly;
use gradus_ir::externals::ExternalFn;
use gradus_ir::{BinaryOp, Body, CastOp, Flags, Op, OpKind, Unit, Value};
use std::collections::HashSet;

/// A pointer moved by a pointer difference: `result = base + (to - from)`.
#[derive(Clone, Copy)]
pub(crate) struct OffsetConstraint {
    pub result: NodeOffset,
    pub base: NodeOffset,
    pub to: NodeOffset,
    pub from: NodeOffset,
}

/// Maximal depth of the definitions inspected by [`ConstraintBuilder::multiple_of`].
const STEPS_DEPTH: u32 = 8;

/// Maximal number of pending sums in [`is_never_an_address`].
const SUMS_MAX: usize = 16;

/// The integers `constant + multiple · n` for all integers n.
#[derive(Clone, Copy)]
struct AffineConstant {
    constant: i64,
    multiple: i64,
}

impl AffineConstant {
    const ANY: AffineConstant = AffineConstant::of(1);

    const fn of(multiple: i64) -> AffineConstant {
        AffineConstant {
            constant: 0,
            multiple,
        }
    }
    fn plus(self, by: i64) -> AffineConstant {
        AffineConstant {
            constant: self.constant.wrapping_add(by),
            ..self
        }
    }
    /// Returns the sums of one member of each set.
    fn sum(self, other: AffineConstant) -> AffineConstant {
        let multiple = gcd(self.multiple.unsigned_abs(), other.multiple.unsigned_abs());
        AffineConstant {
            constant: self.constant.wrapping_add(other.constant),
            multiple: i64::try_from(multiple).unwrap_or(1),
        }
    }
    fn times(self, by: i64) -> AffineConstant {
        match (self.constant.checked_mul(by), self.multiple.checked_mul(by)) {
            (Some(constant), Some(multiple)) if multiple != i64::MIN => AffineConstant {
                constant,
                multiple: multiple.abs(),
            },
            _ => AffineConstant::ANY,
        }
    }
}

impl Solver<'_> {
    /// Applies the recorded pointer differences. Within one alias set, a difference is known up to the
    /// modulus, also in an array of structures. Between two alias sets, a difference is any number of
    /// bytes, or leads from the base to the other alias set.
    ///
    /// A location may exist only through its own difference: the end of a regrown vector is as far from its
    /// begin as the earlier end was. The earliest end was null, like its begin.
    pub(crate) fn solve_offsets(&mut self, unknown: UnresolvedPolicy) {
        let outside = match unknown {
            UnresolvedPolicy::AssumeZero => self.externally_accessible(),
            UnresolvedPolicy::Defer | UnresolvedPolicy::Escape => HashSet::new(),
        };
        for OffsetConstraint {
            result,
            base,
            to,
            from,
        } in self.offset_constraints.clone()
        {
            let (to, from) = (self.classes.find_raw(to), self.classes.find_raw(from));
            if to.node == from.node {
                let modulus = self.classes.content(to).modulus;
                self.classes.add_stride(base, modulus as i64);
                let distance = to.offset.wrapping_sub(from.offset);
                self.classes.unify(result, base.plus(distance));
                continue;
            }
            let is_null = |place: NodeOffset| {
                let content = self.classes.root_content(place.node);
                content.origins.is_empty() && !outside.contains(&place.node)
            };
            match unknown {
                UnresolvedPolicy::AssumeZero if is_null(to) => self.classes.unify(result, base),
                UnresolvedPolicy::Defer | UnresolvedPolicy::AssumeZero => {}
                UnresolvedPolicy::Escape => {
                    self.classes.add_stride(base, 1);
                    self.classes.unify(result, base);
                    // The sum `p + (q - p)` is `q`.
                    if self.classes.find_raw(base).node == from.node {
                        self.classes.unify(result, to);
                    }
                }
            }
        }
    }

    /// Returns the nodes in which external code may have stored addresses.
    fn externally_accessible(&mut self) -> HashSet<u32> {
        let is_outside = |origin: &MemoryOrigin| {
            !matches!(
                origin,
                MemoryOrigin::Alloca(..) | MemoryOrigin::Heap(..) | MemoryOrigin::Function(_)
            )
        };
        let mut work = Vec::new();
        for node in 0..self.classes.len() as u32 {
            let root = self.classes.find_raw(NodeOffset { node, offset: 0 }).node;
            let content = self.classes.root_content(root);
            if root == node && (content.escaped || content.origins.iter().any(is_outside)) {
                work.push(root);
            }
        }
        let mut seen = HashSet::new();
        while let Some(root) = work.pop() {
            if seen.insert(root) {
                let cells = self.classes.root_content(root).cells.values();
                let points: Vec<NodeOffset> = cells.filter_map(|cell| cell.target).collect();
                work.extend(points.into_iter().map(|at| self.classes.find_raw(at).node));
            }
        }
        seen
    }
}

impl ConstraintBuilder<'_, '_> {
    pub(crate) fn addr(&mut self, op: Op) {
        let (body, unit) = (self.body, self.unit());
        if body.has_uses(body.result(op)) && is_never_an_address(self.unit(), body, body.result(op))
        {
            return;
        }
        if poly::is_address_without_object(unit, body, body.operand(op, 0)) {
            // A number as base: the pointer is among the indices, if any index holds an address.
            for index in body.operands(op).skip(1) {
                if let Some(target) = self.target(index) {
                    self.solver.classes.add_stride(target, 1);
                    self.add_pointee(body.result(op), target);
                }
            }
        }
        let Some(base) = self.target(body.operand(op, 0)) else {
            // Not an error: the address is null or undefined.
            return;
        };
        if let OpKind::Addr { source } = *body.kind(op) {
            self.solver.note_struct_source(base, source);
        }
        match unit.layout.address(unit, body, op) {
            Some(address) => {
                let (mut moved, mut offset) = (None, address.offset);
                for &(index, own_stride) in &address.terms {
                    match self.pointer_difference(index) {
                        Some(distance) if own_stride == 1 && moved.is_none() => {
                            moved = Some(distance)
                        }
                        _ => {
                            let steps = self.multiple_of(index, STEPS_DEPTH);
                            let stride = own_stride.saturating_mul(steps.multiple);
                            offset = offset.wrapping_add(own_stride.wrapping_mul(steps.constant));
                            self.solver.classes.add_stride(base, stride);
                        }
                    }
                }
                let base = base.plus(offset);
                let Some((to, from)) = moved else {
                    return self.add_pointee(body.result(op), base);
                };
                let result = self.solver.classes.new_node();
                let moved = OffsetConstraint {
                    result,
                    base,
                    to,
                    from,
                };
                self.solver.offset_constraints.push(moved);
                self.add_pointee(body.result(op), result);
            }
            None => {
                self.solver.classes.add_stride(base, 1);
                self.add_pointee(body.result(op), base);
            }
        }
    }
    /// Returns the two pointers whose difference is `value`.
    fn pointer_difference(&mut self, value: Value) -> Option<(NodeOffset, NodeOffset)> {
        let op = self.body.def_op(value)?;
        if !matches!(self.body.kind(op), OpKind::Binary(BinaryOp::Sub)) {
            return None;
        }
        let mut place = |number: usize| {
            let cast = self.body.def_op(self.body.operand(op, number))?;
            match self.body.kind(cast) {
                OpKind::Cast(CastOp::PtrToInt) => self.target(self.body.operand(cast, 0)),
                _ => None,
            }
        };
        Some((place(0)?, place(1)?))
    }
    /// Decomposes an integer into a constant and a multiple, up to `depth` definitions.
    fn multiple_of(&self, value: Value, depth: u32) -> AffineConstant {
        let Some(op) = self.body.def_op(value).filter(|_| depth > 0) else {
            return AffineConstant::ANY;
        };
        let flags = self.body.ops[op].flags;
        let of = |index: usize| self.multiple_of(self.body.operand(op, index), depth - 1);
        match *self.body.kind(op) {
            OpKind::Cast(CastOp::SExt) => of(0),
            OpKind::Cast(CastOp::ZExt) if flags.has(Flags::NNEG) => of(0),
            OpKind::Binary(binary) => {
                let by = self.body.as_int(self.unit(), self.body.operand(op, 1));
                let wide = self.unit().types.int_bits(self.body.ty(value)) >= Some(64);
                match (binary, by) {
                    (BinaryOp::Or, Some(by)) if flags.has(Flags::DISJOINT) => of(0).plus(by),
                    (BinaryOp::Add, Some(by)) if wide || flags.has(Flags::NSW) => of(0).plus(by),
                    (BinaryOp::Sub, Some(by)) if wide || flags.has(Flags::NSW) => {
                        of(0).plus(by.wrapping_neg())
                    }
                    (BinaryOp::Add, None) if flags.has(Flags::NSW) => of(0).sum(of(1)),
                    (BinaryOp::Shl, Some(by @ 0..32)) if flags.has(Flags::NSW) => {
                        of(0).times(1 << by)
                    }
                    (BinaryOp::Shl, Some(by @ 0..32)) => AffineConstant::of(1 << by),
                    // Addresses wrap like 64-bit integers.
                    (BinaryOp::Mul, Some(by))
                        if (1..0x1_0000).contains(&by.unsigned_abs())
                            && (wide || flags.has(Flags::NSW)) =>
                    {
                        of(0).times(by)
                    }
                    (BinaryOp::And, Some(mask)) if mask != 0 => {
                        AffineConstant::of(1 << mask.trailing_zeros().min(32))
                    }
                    _ => AffineConstant::ANY,
                }
            }
            _ => AffineConstant::ANY,
        }
    }
    pub(crate) fn cast(&mut self, op: Op, cast: CastOp) {
        let (from, to) = (self.body.operand(op, 0), self.body.result(op));
        let lost = matches!(cast, CastOp::IntToPtr) && self.target(from).is_none();
        if lost {
            let object = self.solver.object(MemoryOrigin::External(self.func, op));
            self.add_pointee(to, object);
        } else {
            for target in self.targets(from).into_iter().flatten() {
                self.add_pointee(to, target);
            }
        }
    }
    /// Adds the constraints of integer ops on possible addresses. A sum with a constant keeps the offset;
    /// other arithmetic loses the offset. Products, quotients and remainders are not addresses.
    pub(crate) fn binary(&mut self, op: Op, binary: BinaryOp) {
        let body = self.body;
        if !self.solver.holds_address(body.ty(body.result(op))) || binary.is_float() {
            return;
        }
        let (a, b) = (body.operand(op, 0), body.operand(op, 1));
        let (a_int, b_int) = (body.as_int(self.unit(), a), body.as_int(self.unit(), b));
        let is_wide = self.unit().types.int_bits(body.ty(a)) > Some(64);
        let (base, offset) = match (binary, a_int, b_int) {
            // An integer of several words holds addresses at multiples of a word.
            (BinaryOp::Shl | BinaryOp::LShr, ..) if is_wide => (a, 0),
            (BinaryOp::Add, None, Some(n)) => (a, n),
            (BinaryOp::Add, Some(n), None) => (b, n),
            (BinaryOp::Sub, None, Some(n)) => (a, n.wrapping_neg()),
            (BinaryOp::Mul | BinaryOp::UDiv | BinaryOp::SDiv, ..) => return,
            (BinaryOp::URem | BinaryOp::SRem, ..) => return,
            _ if is_never_an_address(self.unit(), body, body.result(op)) => return,
            _ => {
                for value in [a, b] {
                    if let Some(target) = self.target(value) {
                        self.solver.classes.add_stride(target, 1);
                        self.add_pointee(body.result(op), target);
                    }
                }
                return;
            }
        };
        if let Some(target) = self.target(base) {
            self.add_pointee(body.result(op), target.plus(offset));
        }
    }
}

/// Returns true if a value is a distance or an alignment and not an address. The only uses are
/// comparisons, divisions, products, shifts, truncations, casts to float, address indices and, for
/// integers, arguments of memory functions. A sum or difference with a constant may lie between.
pub(crate) fn is_never_an_address(unit: &Unit, body: &Body, value: Value) -> bool {
    use BinaryOp::{AShr, Add, LShr, Mul, SDiv, SRem, Shl, Sub, UDiv, URem};
    let is_constant = |value| body.as_int(unit, value).is_some();
    let mut work = vec![value];
    while let Some(value) = work.pop() {
        let is_integer = !unit.types.is_ptr(body.ty(value));
        for at in body.uses(value) {
            let measures = match body.kind(at.op) {
                OpKind::ICmp(_) => true,
                OpKind::Cast(CastOp::SIToFP | CastOp::UIToFP | CastOp::Trunc) => true,
                OpKind::Binary(AShr | LShr | Mul | SDiv | SRem | Shl | UDiv | URem) => true,
                OpKind::Binary(Add | Sub) if work.len() < SUMS_MAX => {
                    work.push(body.result(at.op));
                    body.operands(at.op).any(is_constant)
                }
                OpKind::Addr { .. } => at.index > 0,
                OpKind::Call(_) | OpKind::Invoke(_) if is_integer => {
                    let callee = unit.callee(body, at.op);
                    let known = callee.and_then(|func| unit.known(func));
                    matches!(known, Some(ExternalFn::Memory(_)))
                }
                _ => false,
            };
            if !measures {
                return false;
            }
        }
    }
    true
}
