//! Reversal of linear ops, which move values without arithmetic: adjoints move in the opposite direction.

use crate::emit::builder::Lanes;
use crate::reverse::reverse_pass::ReversePass;
use crate::shadow::tangent_ops;
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{BinaryOp, CastOp, Op, OpKind, TypeId, Value};

impl ReversePass<'_, '_, '_, '_> {
    pub(super) fn undo_linear(&mut self, op: Op) {
        let body = self.facts.body;
        let result = body.result(op);
        if !self.facts.is_active(result) {
            return;
        }
        let Some(seeds) = self.take_adjoint(result) else {
            // Not an error: no adjoint was accumulated, and it is zero.
            return;
        };
        match body.kind(op).clone() {
            OpKind::Select => self.undo_select(op, &seeds),
            OpKind::Freeze => self.accumulate_adjoint(body.operand(op, 0), seeds),
            OpKind::ExtractElement => self.undo_extract_element(op, &seeds),
            OpKind::InsertElement => self.undo_insert_element(op, &seeds),
            OpKind::Shuffle(mask) => self.undo_shuffle(op, &mask, &seeds),
            OpKind::ExtractValue(path) => {
                let whole = body.operand(op, 0);
                let ty = body.ty(whole);
                let parts = seeds.iter().map(|&seed| {
                    let zero = self.out.build().zero(ty);
                    self.out.build().insert(zero, seed, &path)
                });
                let parts = parts.collect();
                self.accumulate_adjoint(whole, parts);
            }
            OpKind::InsertValue(path) => self.undo_insert_value(op, &path, &seeds),
            _ => self.ice(Some(op), "the op is not linear"),
        }
    }

    fn undo_select(&mut self, op: Op, seeds: &[Value]) {
        let body = self.facts.body;
        let (yes, no) = (body.operand(op, 1), body.operand(op, 2));
        if !self.facts.is_active(yes) && !self.facts.is_active(no) {
            return;
        }
        let asked = body.operand(op, 0);
        let mut condition = self.primal(asked);
        if self.guards.undef.is_any_undef(self.out.unit, body, asked) {
            let truth = self.out.body.ty(condition);
            condition = self.out.build().value(OpKind::Freeze, &[condition], truth);
        }
        let ty = body.ty(yes);
        let zero = self.out.build().zero(ty);
        let share = |to: Value, taken: bool, pass: &mut Self| {
            if !pass.facts.is_active(to) {
                return;
            }
            let lanes = seeds.iter().map(|&seed| match taken {
                true => pass.out.build().select(condition, seed, zero),
                false => pass.out.build().select(condition, zero, seed),
            });
            let lanes = lanes.collect();
            pass.accumulate_adjoint(to, lanes);
        };
        share(yes, true, self);
        share(no, false, self);
    }

    fn undo_extract_element(&mut self, op: Op, seeds: &[Value]) {
        let (vector, index) = (
            self.facts.body.operand(op, 0),
            self.facts.body.operand(op, 1),
        );
        let index = match is_planted(Mutant::ExtractedLaneZero) {
            true => self.out.build().i64(0),
            false => self.primal(index),
        };
        let ty = self.facts.body.ty(vector);
        let mut lanes = Lanes::new();
        for &seed in seeds {
            let zero = self.out.build().zero(ty);
            lanes.push(
                self.out
                    .build()
                    .value(OpKind::InsertElement, &[zero, seed, index], ty),
            );
        }
        self.accumulate_adjoint(vector, lanes);
    }

    fn undo_insert_element(&mut self, op: Op, seeds: &[Value]) {
        let body = self.facts.body;
        let (vector, element) = (body.operand(op, 0), body.operand(op, 1));
        let index = self.primal(body.operand(op, 2));
        let (ty, scalar) = (body.ty(vector), body.ty(element));
        let (mut of_element, mut of_vector) = (Lanes::new(), Lanes::new());
        for &seed in seeds {
            let mut b = self.out.build();
            of_element.push(b.value(OpKind::ExtractElement, &[seed, index], scalar));
            let zero = b.zero(scalar);
            of_vector.push(match is_planted(Mutant::InsertKeepsElementAdjoint) {
                true => seed,
                false => b.value(OpKind::InsertElement, &[seed, zero, index], ty),
            });
        }
        self.accumulate_adjoint(element, of_element);
        self.accumulate_adjoint(vector, of_vector);
    }

    /// Reverses a shuffle: a source lane receives the sum of all result lanes that copy it. The number of
    /// emitted shuffles is the largest number of copies of one source lane.
    fn undo_shuffle(&mut self, op: Op, mask: &[i32], seeds: &[Value]) {
        let body = self.facts.body;
        let sources = [body.operand(op, 0), body.operand(op, 1)];
        let ty = body.ty(sources[0]);
        let gradus_ir::Type::Vector {
            elem,
            len,
            scalable,
        } = *self.out.unit.types.get(ty)
        else {
            return self.ice(Some(op), "the operand of a shuffle is not a vector");
        };
        for (number, &source) in sources.iter().enumerate() {
            if !self.facts.is_active(source) {
                continue;
            }
            let base = number as i32 * len as i32;
            let mut takers: Vec<Vec<i32>> = vec![Vec::new(); len as usize];
            for (lane, &from) in mask.iter().enumerate() {
                if from >= base && from < base + len as i32 {
                    takers[(from - base) as usize].push(lane as i32);
                }
            }
            let rounds = match is_planted(Mutant::DuplicatedLaneOnce) {
                true => 1,
                false => takers.iter().map(Vec::len).max().unwrap_or(0),
            };
            if let Some(lane) = broadcast_lane(&takers, mask.len())
                && self.out.unit.types.float_kind(elem).is_some()
                && !scalable
                && !is_planted(Mutant::DuplicatedLaneOnce)
            {
                let sums = seeds.iter().map(|&seed| self.sum_in_lane(seed, ty, lane));
                let sums = sums.collect();
                self.accumulate_adjoint(source, sums);
                continue;
            }
            let mut lanes = Lanes::new();
            for &seed in seeds {
                let seed_ty = self.out.body.ty(seed);
                let zeros = self.out.build().zero(seed_ty);
                let zero = self.out.build().zero(ty);
                let mut sum = zero;
                for round in 0..rounds {
                    let pick: Box<[i32]> = takers
                        .iter()
                        .map(|t| t.get(round).copied().unwrap_or(mask.len() as i32))
                        .collect();
                    let kind = OpKind::Shuffle(pick);
                    let moved = self.out.build().value(kind, &[seed, zeros], ty);
                    sum = tangent_ops::accumulate(self.out, self.facts, source, sum, moved);
                }
                lanes.push(sum);
            }
            self.accumulate_adjoint(source, lanes);
        }
    }

    /// Returns a vector of type `ty` with the sum of all lanes of `vector` in one lane, and zeros elsewhere.
    fn sum_in_lane(&mut self, vector: Value, ty: TypeId, lane: usize) -> Value {
        let sum = tangent_ops::sum_of_lanes(self.out, vector);
        let zero = self.out.build().zero(ty);
        let lane = self.out.build().i64(lane as i64);
        let kind = OpKind::InsertElement;
        self.out.build().value(kind, &[zero, sum, lane], ty)
    }

    fn undo_insert_value(&mut self, op: Op, path: &[u32], seeds: &[Value]) {
        let body = self.facts.body;
        let (whole, member) = (body.operand(op, 0), body.operand(op, 1));
        let member_ty = body.ty(member);
        let (mut of_member, mut of_whole) = (Lanes::new(), Lanes::new());
        for &seed in seeds {
            let mut b = self.out.build();
            of_member.push(b.extract(seed, path));
            let zero = b.zero(member_ty);
            of_whole.push(b.insert(seed, zero, path));
        }
        self.accumulate_adjoint(member, of_member);
        self.accumulate_adjoint(whole, of_whole);
    }

    /// Reverses an integer op or bitcast that moves floats in bit ranges.
    pub(super) fn undo_byte_lanes(&mut self, op: Op) {
        let body = self.facts.body;
        let result = body.result(op);
        let kind = body.kind(op).clone();
        let moves = match kind {
            OpKind::Cast(CastOp::BitCast | CastOp::Trunc | CastOp::ZExt) => true,
            OpKind::Binary(BinaryOp::Or | BinaryOp::And | BinaryOp::Shl | BinaryOp::LShr) => true,
            _ => false,
        };
        if !moves {
            return self.refuse(op);
        }
        let Some(seeds) = self.take_adjoint(result) else {
            // Not an error: no adjoint was accumulated, and it is zero.
            return;
        };
        match kind {
            OpKind::Cast(cast) => self.undo_lane_cast(op, cast, &seeds),
            OpKind::Binary(BinaryOp::Or) => {
                for operand in [body.operand(op, 0), body.operand(op, 1)] {
                    self.accumulate_bit_ranges(operand, &seeds);
                }
            }
            OpKind::Binary(BinaryOp::And) => {
                let mask = self.primal(body.operand(op, 1));
                let lanes = seeds
                    .iter()
                    .map(|&seed| self.out.build().binary(BinaryOp::And, seed, mask));
                let lanes = lanes.collect();
                self.accumulate_adjoint(body.operand(op, 0), lanes);
            }
            OpKind::Binary(shift) => {
                let by = self.primal(body.operand(op, 1));
                let back =
                    if (shift == BinaryOp::Shl) != is_planted(Mutant::BitRangeShiftedWrongWay) {
                        BinaryOp::LShr
                    } else {
                        BinaryOp::Shl
                    };
                let lanes = seeds
                    .iter()
                    .map(|&seed| self.out.build().binary(back, seed, by));
                let lanes = lanes.collect();
                self.accumulate_adjoint(body.operand(op, 0), lanes);
            }
            _ => self.ice(Some(op), "the op moves no bit ranges"),
        }
    }

    fn undo_lane_cast(&mut self, op: Op, cast: CastOp, seeds: &[Value]) {
        let operand = self.facts.body.operand(op, 0);
        let ty = self.facts.body.ty(operand);
        let back = match cast {
            CastOp::Trunc => CastOp::ZExt,
            CastOp::ZExt => CastOp::Trunc,
            other => other,
        };
        let lanes = seeds
            .iter()
            .map(|&seed| self.out.build().cast(back, seed, ty));
        let lanes = lanes.collect();
        self.accumulate_adjoint(operand, lanes);
    }

    /// Accumulates into an operand of a disjoint `or` the adjoints of the operand's own bit ranges.
    fn accumulate_bit_ranges(&mut self, operand: Value, seeds: &[Value]) {
        let Some(own) = self.facts.float_bit_ranges(operand).map(<[_]>::to_vec) else {
            // Not an error: an operand without float bit ranges has no adjoint.
            return;
        };
        let ty = self.facts.body.ty(operand);
        let mut lanes = Lanes::new();
        for &seed in seeds {
            let mut sum = self.out.build().zero(ty);
            for lane in &own {
                let float = tangent_ops::extract_bit_range(self.out, lane, seed);
                let placed = tangent_ops::insert_bit_range(self.out, lane, float, ty);
                sum = self.out.build().binary(BinaryOp::Or, sum, placed);
            }
            lanes.push(sum);
        }
        self.accumulate_adjoint(operand, lanes);
    }
}

/// Returns the source lane that all `len` result lanes copy, if `len` exceeds one. `takers` holds the result
/// lanes per source lane.
fn broadcast_lane(takers: &[Vec<i32>], len: usize) -> Option<usize> {
    let lane = takers.iter().position(|of_lane| of_lane.len() == len)?;
    (len > 1).then_some(lane)
}
