//! Dependency sets in place of tangents: the sets of results of float ops.
//!
//! All ops that move floats treat a set like a tangent. This file emits the sets of the ops that compute: the result of
//! a float op depends on the inputs of each operand whose partial derivative is not zero everywhere. A select of floats
//! by a comparison of active floats depends on the inputs of both operands. Other selects and control flow count as
//! executed.

use super::ForwardPass;
use crate::calculus;
use crate::emit::builder::Lanes;
use crate::shadow::dependency_sets;
use crate::variant::{Mode, Tangents};
use gradus_ir::{CastOp, Code, Diagnostic, Op, OpKind, RmwOp, Type, TypeId, Value};
use std::collections::HashSet;

/// The ops of a condition that are searched for active floats; a longer condition counts as decided by active floats.
const CONDITION_OPS_MAX: usize = 100;

impl ForwardPass<'_, '_, '_, '_> {
    /// Returns true if the companions of floats are dependency sets.
    pub(super) fn has_dependency_sets(&self) -> bool {
        self.variant.mode == Mode::Forward && self.variant.tangents == Tangents::Dependencies
    }

    /// Emits the union of the sets of both operands of a select, as the set of the result, if the select is on floats and
    /// active floats decide. Returns false for other selects.
    pub(super) fn unite_selected(&mut self, op: Op) -> bool {
        let result = self.facts.body.result(op);
        let ty = self.facts.body.ty(result);
        let is_float = self.out.unit.types.float_kind(ty).is_some();
        if !is_float || !self.is_decided_by_floats(self.facts.body.operand(op, 0)) {
            return false;
        }
        if !dependency_sets::has_sets(self.out.unit, ty) {
            self.refuse_sets(op);
            return true;
        }
        let operands = [1, 2].map(|i| self.facts.body.operand(op, i));
        let sets = operands.map(|v| self.companion(v));
        let lanes = (0..self.facts.width).map(|lane| self.union_at(&sets, lane, ty));
        let lanes = lanes.collect();
        self.companions.insert(result, lanes);
        true
    }

    /// Returns true if a condition is computed from active floats, by ops in the body without memory or control flow.
    fn is_decided_by_floats(&self, condition: Value) -> bool {
        let body = self.facts.body;
        let (mut seen, mut work) = (HashSet::new(), vec![condition]);
        while let Some(value) = work.pop() {
            if self.facts.is_active(value) || seen.len() > CONDITION_OPS_MAX {
                return true;
            }
            let Some(op) = body.def_op(value).filter(|op| seen.insert(*op)) else {
                continue;
            };
            if body.op_regions(op).is_empty() && !matches!(body.kind(op), OpKind::Load(_)) {
                work.extend(body.operands(op));
            }
        }
        false
    }

    /// Emits the union of the sets of one batch element.
    fn union_at(&mut self, sets: &[Lanes], lane: usize, ty: TypeId) -> Value {
        let none = self.out.build().zero(ty);
        let all = sets.iter().map(|lanes| lanes[lane]);
        all.fold(none, |all, set| dependency_sets::union(self.out, all, set))
    }

    /// Emits the set of the result of a float op: the union over the operands with a partial derivative.
    pub(super) fn unite_by_rule(&mut self, op: Op, rule: &calculus::Rule) {
        let body = self.facts.body;
        let result = body.result(op);
        let result_ty = body.ty(result);
        let operands = rule.float_args().filter(|i| !rule.zero(*i));
        let operands = operands.map(|i| body.operand(op, rule.operand(i)));
        let operands: Vec<Value> = operands.filter(|v| self.facts.is_active(*v)).collect();
        let Some(&first) = operands.first() else {
            let zero = self.out.build().zero(result_ty);
            let lanes = Lanes::from_elem(zero, self.facts.width);
            self.companions.insert(result, lanes);
            return;
        };
        let ty = body.ty(first);
        let members = self.members(result_ty);
        let converts = matches!(body.kind(op), OpKind::Cast(CastOp::FPExt | CastOp::FPTrunc));
        let has_sets = dependency_sets::has_sets(self.out.unit, ty);
        let fits = members.iter().all(|(_, member)| match converts {
            true => dependency_sets::has_sets(self.out.unit, *member),
            false => *member == ty,
        });
        if !has_sets || !fits || operands.iter().any(|v| body.ty(*v) != ty) {
            return self.refuse_sets(op);
        }
        let sets: Vec<Lanes> = operands.iter().map(|v| self.companion(*v)).collect();
        let mut lanes = Lanes::new();
        for lane in 0..self.facts.width {
            let all = self.union_at(&sets, lane, ty);
            let mut whole = match members.as_slice() {
                [(None, member)] => dependency_sets::convert(self.out, all, *member),
                _ => self.out.build().zero(result_ty),
            };
            for (number, _) in &members {
                if let Some(number) = number {
                    whole = self.out.build().insert(whole, all, &[*number]);
                }
            }
            lanes.push(whole);
        }
        self.companions.insert(result, lanes);
    }

    /// Refuses an op on a type without sets.
    fn refuse_sets(&mut self, op: Op) {
        let what = self.facts.describe(self.out.unit, op);
        let span = self.out.unit.span(self.facts.body.ops[op].loc);
        let message = format!("dependency sets do not support the type of this {what}");
        let refused = Diagnostic::error(Code::NoDerivative, message);
        let refused = refused.at(span, "half precision, or vectors of unknown length");
        let help = "use `float` or `double` for this value, or dense Jacobians and Hessians";
        self.findings.push(refused.help(help));
    }

    /// Returns the float members of a result: the result itself, or the members of a structure by number.
    fn members(&self, ty: TypeId) -> Vec<(Option<u32>, TypeId)> {
        let types = &self.out.unit.types;
        let Type::Struct { fields, .. } = types.get(ty) else {
            return vec![(None, ty)];
        };
        let fields = (0..).zip(fields).map(|(number, ty)| (Some(number), *ty));
        fields
            .filter(|(_, ty)| types.float_kind(*ty).is_some())
            .collect()
    }

    /// Emits the set of the result of a reduction over the lanes of a vector: the union over all lanes.
    pub(super) fn unite_vector_lanes(&mut self, op: Op) {
        let body = self.facts.body;
        let result = body.result(op);
        let ty = body.ty(result);
        let args = self.out.unit.call_args(body, op);
        if !self.facts.is_active(result) || args.iter().any(|v| !self.has_sets_like(*v, ty)) {
            return self.tangent(op);
        }
        let mut lanes = Lanes::new();
        for lane in 0..self.facts.width {
            let mut all = self.out.build().zero(ty);
            for &arg in &args {
                let set = self.tangent_of(arg, lane);
                let set = dependency_sets::union_of_lanes(self.out, set);
                all = dependency_sets::union(self.out, all, set);
            }
            lanes.push(all);
        }
        self.companions.insert(result, lanes);
    }

    /// Returns true if a value is a float, or a vector of floats, of type `elem` with sets.
    fn has_sets_like(&self, value: Value, elem: TypeId) -> bool {
        let ty = self.facts.body.ty(value);
        self.out.unit.types.scalar(ty) == elem && dependency_sets::has_sets(self.out.unit, ty)
    }

    /// Emits the union of a set in shadow memory and the set of `value`, atomically.
    pub(super) fn unite_atomically(&mut self, op: Op, shadow: Value, set: Value) {
        let OpKind::AtomicRmw(_, access) = self.facts.body.kind(op) else {
            return self.ice(Some(op), "the op is not an atomic update");
        };
        let set = dependency_sets::bits_of(self.out, set);
        let ty = self.out.body.ty(set);
        let kind = OpKind::AtomicRmw(RmwOp::Or, *access);
        self.out.build().value(kind, &[shadow, set], ty);
    }
}
