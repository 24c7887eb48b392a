//! Constraints of address arithmetic: `addr`, casts and integer ops.
//!
//! An integer is an address only if an address flows into it: from `ptrtoint`, or from a cell that holds one. Shifted
//! addresses are bits of addresses ([`NodeKind::Part`]). Differences, bits below an alignment, other products and
//! quotients are neither.

use crate::points_to::inclusion::build::BodyBuilder;
use crate::points_to::inclusion::constraints::{Constraint, NodeId, NodeKind, Step};
use crate::points_to::inclusion::objects::ObjectKey;
use crate::points_to::pointer_arith::is_never_an_address;
use crate::points_to::union_find::gcd;
use crate::scev::poly;
use gradus_ir::{
    BinaryOp, Body, CastOp, ConstKind, Definition, Flags, Op, OpKind, Region, Type, TypeId, Unit,
    Value,
};
use std::collections::BTreeSet;

/// Maximal depth of the definitions inspected by [`BodyBuilder::multiple_of`].
const DEPTH_MAX: u32 = 8;

/// Maximal number of constants of [`BodyBuilder::constants_of`].
const CONSTANTS_MAX: usize = 16;

/// `and` with a constant below this value keeps the bits below an alignment, not an address.
const LOW_BITS_MAX: i64 = 1 << 16;

/// The integers `constant + multiple · n` for all integers n, or for all n ≥ 0 if `forward`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Progression {
    constant: i64,
    multiple: i64,
    forward: bool,
}

impl Progression {
    const ANY: Progression = Progression::of(1);

    const fn of(multiple: i64) -> Progression {
        Progression {
            constant: 0,
            multiple,
            forward: false,
        }
    }
    fn plus(self, by: i64) -> Progression {
        match self.constant.checked_add(by) {
            Some(constant) => Progression { constant, ..self },
            None => Progression::ANY,
        }
    }
    /// Returns the sums of one member of each progression.
    fn sum(self, other: Progression) -> Progression {
        let multiple = gcd(self.multiple.unsigned_abs(), other.multiple.unsigned_abs());
        let Some(constant) = self.constant.checked_add(other.constant) else {
            return Progression::ANY;
        };
        Progression {
            constant,
            multiple: i64::try_from(multiple).unwrap_or(1),
            forward: self.forward && other.forward,
        }
    }
    fn times(self, by: i64) -> Progression {
        match (self.constant.checked_mul(by), self.multiple.checked_mul(by)) {
            (Some(constant), Some(multiple)) if multiple != i64::MIN => Progression {
                constant,
                multiple: multiple.abs(),
                forward: self.forward && by > 0,
            },
            _ => Progression::ANY,
        }
    }
    /// Returns the members that are at least 0.
    fn unsigned(self) -> Progression {
        match self.forward || self.multiple == 0 {
            true => self,
            false => Progression {
                constant: self.constant.rem_euclid(self.multiple),
                forward: true,
                ..self
            },
        }
    }
}

/// Decomposition of an `addr` op: constant offset, variable terms, and the array member around each term.
struct Movement {
    offset: i64,
    terms: Vec<Term>,
}

struct Term {
    index: Value,
    stride: i64,
    /// Start and end of the array member of a structure, relative to the base. The end is absent for the last member.
    array: Option<(i64, Option<i64>)>,
}

/// Decomposes an `addr` op like [`gradus_ir::Layout::address`], with the array members on the path.
fn movement(unit: &Unit, body: &Body, op: Op, source: TypeId) -> Option<Movement> {
    if matches!(
        unit.types.get(body.ty(body.result(op))),
        Type::Vector { .. }
    ) {
        return None;
    }
    let mut found = Movement {
        offset: 0,
        terms: Vec::new(),
    };
    let (mut ty, mut array) = (source, None);
    for (depth, index) in body.operands(op).skip(1).enumerate() {
        let constant = body.as_int(unit, index);
        if depth > 0 {
            if let Type::Struct { fields, .. } = unit.types.get(ty) {
                let field = usize::try_from(constant?).ok()?;
                let start = unit.layout.field_offset_bytes(unit, ty, field as u64);
                found.offset = found.offset.wrapping_add(start as i64);
                ty = *fields.get(field)?;
                array = member_extent(unit, ty, found.offset);
                continue;
            }
            ty = match unit.types.get(ty) {
                Type::Array { elem, .. } | Type::Vector { elem, .. } => *elem,
                _ => return None,
            };
        }
        let stride = unit.layout.size_bytes(unit, ty) as i64;
        match constant {
            Some(n) => found.offset = found.offset.wrapping_add(n.wrapping_mul(stride)),
            None if stride == 0 => {}
            None => found.terms.push(Term {
                index,
                stride,
                array,
            }),
        }
    }
    Some(found)
}

/// Returns the extent of an array member at `start`: the memory that a variable index reaches, including the elements
/// of nested arrays. An array of at most one element may be flexible: the memory behind the structure belongs to it.
fn member_extent(unit: &Unit, ty: TypeId, start: i64) -> Option<(i64, Option<i64>)> {
    let Type::Array { len, .. } = *unit.types.get(ty) else {
        // Not an error: the member is no array.
        return None;
    };
    let size = i64::try_from(unit.layout.size_bytes(unit, ty)).ok()?;
    Some((start, (len > 1).then_some(start.checked_add(size)?)))
}

/// Returns true if an op computes the next value of the loop-carried pointer that is its base.
fn is_increment(body: &Body, op: Op) -> bool {
    let Definition::Param(region, _) = body.values[body.operand(op, 0)].def else {
        // Not an error: the base is no loop-carried value.
        return false;
    };
    let is_loop = body
        .owner(region)
        .is_some_and(|owner| body.kind(owner).is_loop());
    let result = body.result(op);
    let end = body.last(region).filter(|_| is_loop);
    end.is_some_and(|end| body.operands(end).any(|value| value == result))
}

/// Returns true if a value is the index of a loop; indices start at 0 and ascend.
fn is_loop_index(body: &Body, value: Value) -> bool {
    let Definition::Param(region, index) = body.values[value].def else {
        // Not an error: the value is no region parameter.
        return false;
    };
    let owner = body.owner(region);
    owner.is_some_and(|op| match body.kind(op) {
        OpKind::For { .. } | OpKind::ShareFor { .. } => index == 0,
        OpKind::ParFor { dims, .. } => {
            index < *dims && body.op_regions(op).first() == Some(&region)
        }
        _ => false,
    })
}

/// Returns true for a product or quotient that is no shift. Programs compute hashes of addresses with them, and no
/// address is computed from a hash.
fn is_hash(unit: &Unit, body: &Body, op: Op, binary: BinaryOp) -> bool {
    let is_product = matches!(binary, BinaryOp::Mul | BinaryOp::UDiv | BinaryOp::SDiv);
    let operands = body.operands(op);
    let mut constants = operands.filter_map(|value| body.as_int(unit, value));
    is_product && !constants.any(|by| by.unsigned_abs().is_power_of_two())
}

impl BodyBuilder<'_, '_> {
    pub(super) fn addr(&mut self, op: Op) {
        let (body, unit) = (self.body, self.builder.unit);
        if body.has_uses(body.result(op)) && is_never_an_address(unit, body, body.result(op)) {
            // Only compared: no access needs the pointer, and its distance would fold the object.
            return;
        }
        let Some(result) = self.node(body.result(op)) else {
            unreachable!("the result of an address computation is a pointer");
        };
        if poly::is_address_without_object(unit, body, body.operand(op, 0)) {
            // A number as base: the pointer is among the indices, if any index holds an address.
            for index in body.operands(op).skip(1) {
                for from in self.nodes(index).into_iter().flatten() {
                    self.move_anywhere(result, from);
                }
            }
        }
        let Some(base) = self.node(body.operand(op, 0)) else {
            unreachable!("the base of an address computation is a pointer");
        };
        let OpKind::Addr { source } = *body.kind(op) else {
            unreachable!("the op is an address computation");
        };
        if let Type::Struct { .. } = unit.types.get(source) {
            let sources = &mut self.builder.program.evidence.sources;
            sources.push((base, source));
        }
        match movement(unit, body, op, source) {
            Some(movement) if movement.terms.is_empty() && is_increment(body, op) => {
                self.move_by_steps(result, base, movement.offset);
            }
            Some(movement) => self.move_by(op, result, base, movement),
            None => self.move_anywhere(result, base),
        }
    }
    /// Adds `result = base + movement`, one node per variable term.
    fn move_by(&mut self, op: Op, result: NodeId, base: NodeId, movement: Movement) {
        // `at` is `base` moved by the terms before and by `applied` bytes.
        let (mut at, mut applied) = (base, 0i64);
        let mut offset = movement.offset;
        let is_unsigned = self.body.ops[op].flags.has(Flags::NUW);
        for term in movement.terms {
            let next = self.builder.program.node();
            if term.stride == 1
                && let Some((to, from)) = self.pointer_difference(term.index)
            {
                self.builder.program.push(Constraint::Difference {
                    result: next,
                    base: at,
                    to,
                    from,
                });
                at = next;
                continue;
            }
            let moved = |at: i64| at.wrapping_sub(applied);
            if let Some(indices) = self.constants_of(term.index, DEPTH_MAX) {
                for index in indices {
                    self.builder.program.push(Constraint::Copy {
                        to: next,
                        from: at,
                        bytes: moved(offset).wrapping_add(index.wrapping_mul(term.stride)),
                    });
                }
                (at, applied) = (next, offset);
                continue;
            }
            let bounds = self
                .indices_below(op, term.index)
                .filter(|_| term.stride > 0);
            let bounds = bounds.and_then(|count| {
                let bytes = count.checked_mul(term.stride)?;
                Some((offset, Some(offset.checked_add(bytes)?)))
            });
            let steps = self.multiple_of(term.index, DEPTH_MAX).times(term.stride);
            let steps = if is_unsigned { steps.unsigned() } else { steps };
            if steps.multiple == 0 {
                offset = offset.wrapping_add(steps.constant);
                continue;
            }
            self.builder.program.push(Constraint::Moved {
                to: next,
                from: at,
                step: Step {
                    offset: moved(offset),
                    index: steps.constant,
                    stride: steps.multiple.unsigned_abs(),
                    forward: steps.forward,
                    passes_end: false,
                    array: term
                        .array
                        .or(bounds)
                        .map(|(start, end)| (moved(start), end.map(moved))),
                    in_fortran: self.in_fortran(),
                },
            });
            (at, applied) = (next, offset);
        }
        self.builder.program.push(Constraint::Copy {
            to: result,
            from: at,
            bytes: offset.wrapping_sub(applied),
        });
    }
    /// Adds `result = base + n · bytes` for the increment of a loop-carried pointer.
    fn move_by_steps(&mut self, result: NodeId, base: NodeId, bytes: i64) {
        if bytes == 0 {
            return self.builder.program.copy(result, base);
        }
        self.builder.program.push(Constraint::Moved {
            to: result,
            from: base,
            step: Step {
                offset: 0,
                index: 0,
                stride: bytes.unsigned_abs(),
                passes_end: true,
                forward: bytes > 0,
                array: None,
                in_fortran: false,
            },
        });
    }
    /// Returns true in a procedure that flang compiled: its symbols begin with `_Q`.
    fn in_fortran(&self) -> bool {
        self.builder.unit.functions[self.func]
            .name
            .starts_with("_Q")
    }
    /// Adds `to = from + any number of bytes`.
    fn move_anywhere(&mut self, to: NodeId, from: NodeId) {
        self.builder.program.push(Constraint::Moved {
            to,
            from,
            step: Step {
                offset: 0,
                index: 0,
                stride: 1,
                forward: false,
                passes_end: false,
                array: None,
                in_fortran: false,
            },
        });
    }
    /// Returns the two pointers whose difference is `value`.
    fn pointer_difference(&mut self, value: Value) -> Option<(NodeId, NodeId)> {
        let op = self.body.def_op(value)?;
        if !matches!(self.body.kind(op), OpKind::Binary(BinaryOp::Sub)) {
            return None;
        }
        let mut node = |number: usize| {
            let cast = self.body.def_op(self.body.operand(op, number))?;
            match self.body.kind(cast) {
                OpKind::Cast(CastOp::PtrToInt) => self.node(self.body.operand(cast, 0)),
                _ => None,
            }
        };
        Some((node(0)?, node(1)?))
    }
    /// Returns the values of an integer that is one of a few constants by the path of execution: an optimiser turns
    /// accesses of different members on different paths into one access at such an offset.
    fn constants_of(&self, value: Value, depth: u32) -> Option<BTreeSet<i64>> {
        let (body, unit) = (self.body, self.builder.unit);
        if let Some(constant) = body.as_int(unit, value) {
            return Some(BTreeSet::from([constant]));
        }
        if let Some(id) = body.as_const(value) {
            // An access at an undefined offset is never made.
            let is_undefined =
                matches!(unit.constant(id).kind, ConstKind::Undef | ConstKind::Poison);
            return is_undefined.then(BTreeSet::new);
        }
        let op = body.def_op(value).filter(|_| depth > 0)?;
        let sources: Vec<Value> = match body.kind(op) {
            OpKind::Select => vec![body.operand(op, 1), body.operand(op, 2)],
            OpKind::If | OpKind::Switch(_) => {
                let number = body
                    .results(op)
                    .iter()
                    .position(|result| *result == value)?;
                let yielded = |region: &Region| Some(*body.yielded(*region)?.get(number)?);
                body.op_regions(op).iter().filter_map(yielded).collect()
            }
            _ => return None,
        };
        let mut found = BTreeSet::new();
        for source in sources {
            found.append(&mut self.constants_of(source, depth - 1)?);
        }
        (1..=CONSTANTS_MAX).contains(&found.len()).then_some(found)
    }
    /// Decomposes an integer into a constant and a multiple, up to `depth` definitions.
    fn multiple_of(&self, value: Value, depth: u32) -> Progression {
        let (body, unit) = (self.body, self.builder.unit);
        let Some(op) = body.def_op(value).filter(|_| depth > 0) else {
            return Progression {
                forward: is_loop_index(body, value),
                ..Progression::ANY
            };
        };
        let flags = body.ops[op].flags;
        let of = |index: usize| self.multiple_of(body.operand(op, index), depth - 1);
        match *body.kind(op) {
            OpKind::Cast(CastOp::SExt) => of(0),
            OpKind::Cast(CastOp::ZExt) if flags.has(Flags::NNEG) => of(0),
            // A zero-extended integer of at most 32 bits is not negative.
            OpKind::Cast(CastOp::ZExt) => Progression {
                forward: true,
                ..Progression::ANY
            },
            OpKind::Binary(binary) => {
                let by = body.as_int(unit, body.operand(op, 1));
                let wide = unit.types.int_bits(body.ty(value)) >= Some(64);
                let exact = wide || flags.has(Flags::NSW);
                match (binary, by) {
                    (BinaryOp::Or, Some(by)) if flags.has(Flags::DISJOINT) => of(0).plus(by),
                    (BinaryOp::Add, Some(by)) if exact => of(0).plus(by),
                    (BinaryOp::Sub, Some(by)) if exact => of(0).plus(by.wrapping_neg()),
                    (BinaryOp::Add, None) if flags.has(Flags::NSW) => of(0).sum(of(1)),
                    (BinaryOp::Shl, Some(by @ 0..32)) if flags.has(Flags::NSW) => {
                        of(0).times(1 << by)
                    }
                    (BinaryOp::Shl, Some(by @ 0..32)) => Progression::of(1 << by),
                    // Addresses wrap like 64-bit integers.
                    (BinaryOp::Mul, Some(by))
                        if (1..0x1_0000).contains(&by.unsigned_abs()) && exact =>
                    {
                        of(0).times(by)
                    }
                    (BinaryOp::And, Some(mask)) if mask != 0 => Progression {
                        forward: mask > 0,
                        ..Progression::of(1 << mask.trailing_zeros().min(32))
                    },
                    _ => Progression::ANY,
                }
            }
            _ => Progression::ANY,
        }
    }
    pub(super) fn cast(&mut self, op: Op, cast: CastOp) {
        let (from, to) = (self.body.operand(op, 0), self.body.result(op));
        match cast {
            CastOp::IntToPtr => {
                let key = ObjectKey::Returned(self.func, op, self.context);
                let object = self.builder.objects.of(key);
                self.copy_any(from, to);
                let source = self.node(from);
                let source = source.unwrap_or_else(|| self.builder.program.node());
                for node in self.nodes(to).into_iter().flatten() {
                    self.builder.program.push(Constraint::Otherwise {
                        node,
                        from: source,
                        object,
                    });
                }
            }
            CastOp::Trunc
            | CastOp::ZExt
            | CastOp::SExt
            | CastOp::PtrToInt
            | CastOp::PtrToAddr
            | CastOp::BitCast
            | CastOp::AddrSpaceCast => self.copy_any(from, to),
            // The bits of the result are not those of the operand.
            CastOp::FPTrunc
            | CastOp::FPExt
            | CastOp::FPToUI
            | CastOp::FPToSI
            | CastOp::UIToFP
            | CastOp::SIToFP => {}
        }
    }
    fn copy_bits_of_operands(&mut self, op: Op) {
        for value in self.body.operands(op) {
            self.copy_bits(value, self.body.result(op));
        }
    }
    /// Adds the constraints of integer ops on possible addresses. A sum with a constant keeps the offset;
    /// a sum of two variables and a rounded address lose it.
    pub(super) fn binary(&mut self, op: Op, binary: BinaryOp) {
        let (body, unit) = (self.body, self.builder.unit);
        let (a, b) = (body.operand(op, 0), body.operand(op, 1));
        match self.builder.kind(body.ty(body.result(op))) {
            _ if binary.is_float() || is_hash(unit, body, op, binary) => return,
            None => return,
            Some(NodeKind::Part) => {
                self.copy_any(a, body.result(op));
                return self.copy_any(b, body.result(op));
            }
            Some(NodeKind::Word | NodeKind::Pointer) => {}
        }
        let (a_int, b_int) = (body.as_int(unit, a), body.as_int(unit, b));
        let moved = match (binary, a_int, b_int) {
            // An integer of several words holds addresses at multiples of a word.
            (BinaryOp::Shl | BinaryOp::LShr, ..) if unit.types.int_bits(body.ty(a)) > Some(64) => {
                Some((a, 0))
            }
            (BinaryOp::Add, None, Some(n)) => Some((a, n)),
            (BinaryOp::Add, Some(n), None) => Some((b, n)),
            (BinaryOp::Sub, None, Some(n)) => Some((a, n.wrapping_neg())),
            (BinaryOp::And, _, Some(mask)) if (0..LOW_BITS_MAX).contains(&mask) => return,
            (BinaryOp::And, Some(mask), _) if (0..LOW_BITS_MAX).contains(&mask) => return,
            (BinaryOp::Add | BinaryOp::Sub | BinaryOp::And | BinaryOp::Or, ..) => None,
            (BinaryOp::Xor, Some(_), _) | (BinaryOp::Xor, _, Some(_)) => None,
            (BinaryOp::URem | BinaryOp::SRem, _, Some(by)) if by < LOW_BITS_MAX => return,
            // The exclusive or of two addresses is no address, and neither is a hash or a product.
            _ => return self.copy_bits_of_operands(op),
        };
        if moved.is_none() && is_never_an_address(unit, body, body.result(op)) {
            if let BinaryOp::And | BinaryOp::Or | BinaryOp::Xor = binary {
                self.copy_bits_of_operands(op);
            }
            return;
        }
        let Some(result) = self.node(body.result(op)) else {
            unreachable!("the result may hold an address");
        };
        match moved {
            Some((base, bytes)) => {
                if let Some(from) = self.node(base) {
                    let copy = Constraint::Copy {
                        to: result,
                        from,
                        bytes,
                    };
                    self.builder.program.push(copy);
                }
            }
            None => {
                let operands = if binary == BinaryOp::Sub { 1 } else { 2 };
                for &value in &[a, b][..operands] {
                    for from in self.nodes(value).into_iter().flatten() {
                        self.move_anywhere(result, from);
                    }
                }
            }
        }
    }
}
