//! Guards: if-converted code must not contribute adjoints that its source would never compute.
//!
//! `x != 0 ? y/x : 0` arrives as an unconditional division and a `select`. If the select takes the other
//! operand, the quotient's adjoint is 0, and 0 · ∞ would be NaN. A value that is used only through selects or
//! masked stores is *guarded* by their conditions: its reversal accumulates `guard ? adjoint · ∂ : 0`. If the
//! condition is unavailable, the guard is `adjoint != 0`. Examples are selects behind selects, uses in loops
//! and arms, values that leave an arm and are guarded or carried outside, and single lanes.

use crate::calculus;
use crate::emit::masked_ops::match_masked_access;
use crate::reverse::reverse_pass::ReversePass;
use crate::reverse::undef_lanes::UndefLanes;
use gradus_ir::externals::{ExternalFn, MaskedFn};
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{BinaryOp, FloatPredicate, Op, OpKind, Type, Use, Value};
use std::collections::HashMap;

/// A condition under which a value is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Guard {
    /// The value or its negation.
    Condition { condition: Value, when: bool },
    /// An unavailable condition: if it is false, the adjoint is zero.
    NonzeroAdjoint,
    /// No condition on the value, but the value leaves an iteration. An optimiser may have computed it ahead,
    /// in an arm, for the next iteration, which may not use it.
    Carried,
}

/// Guards of values, memoised; an empty list means unguarded.
#[derive(Debug, Default)]
pub(super) struct Guards {
    memo: HashMap<Value, Vec<Guard>>,
    /// Per value: true if the value may be infinite or NaN although all its inputs are finite.
    unbounded: HashMap<Value, bool>,
    pub undef: UndefLanes,
}

/// Limit on the length of a disjunction; beyond the limit, the guard is `adjoint != 0`.
const DISJUNCTION_MAX: usize = 4;

impl ReversePass<'_, '_, '_, '_> {
    /// Emits the guard of a value with the given adjoint; `None` if the value is unguarded.
    pub(super) fn emit_guard(&mut self, value: Value, seed: Value) -> Option<Value> {
        if is_planted(Mutant::GuardLost) {
            return None;
        }
        let guards = self.guards_of(value);
        let mut any: Option<Value> = None;
        for guard in guards {
            let condition = match guard {
                Guard::NonzeroAdjoint => {
                    let ty = self.out.body.ty(seed);
                    self.out.unit.types.float_kind(ty)?;
                    let zero = self.out.build().zero(ty);
                    self.out.build().fcmp(FloatPredicate::Une, seed, zero)
                }
                Guard::Carried => return None,
                Guard::Condition { condition, when } => {
                    let condition = self.primal(condition);
                    match when {
                        true => condition,
                        false => {
                            let ty = self.out.body.ty(condition);
                            let ones = self.out.build().int(ty, -1);
                            self.out.build().binary(BinaryOp::Xor, condition, ones)
                        }
                    }
                }
            };
            any = Some(match any {
                Some(old) => self.out.build().binary(BinaryOp::Or, old, condition),
                None => condition,
            });
        }
        any
    }

    /// Returns the disjunction of the conditions under which a value is used, from the guards of its users.
    fn guards_of(&mut self, value: Value) -> Vec<Guard> {
        let body = self.facts.body;
        let mut work = vec![value];
        while let Some(&at) = work.last() {
            if self.guards.memo.contains_key(&at) {
                work.pop();
                continue;
            }
            let waiting: Vec<Value> = body
                .uses(at)
                .filter(|u| body.parent(u.op) == body.region_of(at))
                .filter_map(|u| self.dependent_result(u))
                .filter(|v| !self.guards.memo.contains_key(v))
                .collect();
            if waiting.is_empty() {
                let guards = self.combine(at);
                self.guards.memo.insert(at, guards);
                work.pop();
            } else {
                work.extend(waiting);
            }
        }
        self.guards.memo.get(&value).cloned().unwrap_or_default()
    }

    /// Returns the result whose guards apply to a use: the op's result that depends on the operand.
    fn dependent_result(&self, at: Use) -> Option<Value> {
        let body = self.facts.body;
        match body.kind(at.op) {
            OpKind::Select => (at.index > 0).then(|| body.result(at.op)),
            OpKind::Yield => {
                let branch = self.branch_of_yield(at.op)?;
                body.results(branch).get(at.index as usize).copied()
            }
            _ => self
                .is_used_only_by_result(at.op)
                .then(|| body.result(at.op)),
        }
    }

    fn combine(&self, value: Value) -> Vec<Guard> {
        let mut all: Vec<Guard> = Vec::new();
        for at in self.facts.body.uses(value) {
            let Some(through) = self.guard_of_use(value, at) else {
                continue;
            };
            if through.is_empty() {
                return Vec::new();
            }
            for guard in through {
                if let Guard::Condition { condition, when } = guard
                    && all.contains(&Guard::Condition {
                        condition,
                        when: !when,
                    })
                {
                    return Vec::new();
                }
                if !all.contains(&guard) {
                    all.push(guard);
                }
            }
        }
        if all.contains(&Guard::Carried) {
            return vec![Guard::Carried];
        }
        let ty = |guard: &Guard| match guard {
            Guard::Condition { condition, .. } => Some(self.facts.body.ty(*condition)),
            Guard::NonzeroAdjoint | Guard::Carried => None,
        };
        let mixed = all.iter().any(|guard| ty(guard) != ty(&all[0]));
        match all.len() > DISJUNCTION_MAX || mixed || all.contains(&Guard::NonzeroAdjoint) {
            true => vec![Guard::NonzeroAdjoint],
            false => all,
        }
    }

    /// Returns the conditions of a use: an empty list for always, `None` for never.
    fn guard_of_use(&self, value: Value, at: Use) -> Option<Vec<Guard>> {
        let body = self.facts.body;
        if body.parent(at.op) != body.region_of(value) {
            return Some(vec![Guard::NonzeroAdjoint]);
        }
        let of_result = || {
            let result = self.dependent_result(at)?;
            let guards = self.guards.memo.get(&result);
            let guards = guards.cloned().unwrap_or_default();
            self.facts.is_active(result).then_some(guards)
        };
        match body.kind(at.op) {
            OpKind::Select if at.index > 0 => match of_result()?.as_slice() {
                [] | [Guard::Carried] => Some(vec![Guard::Condition {
                    condition: body.operand(at.op, 0),
                    when: at.index == 1 || is_planted(Mutant::GuardNotNegated),
                }]),
                _ => Some(vec![Guard::NonzeroAdjoint]),
            },
            OpKind::Call(_) if self.mask_of_store(at).is_some() => {
                let guard = |condition| Guard::Condition {
                    condition,
                    when: true,
                };
                Some(self.mask_of_store(at).map(guard).into_iter().collect())
            }
            OpKind::ICmp(_) | OpKind::FCmp(_) => None,
            // An optimiser may compute a value ahead, in an arm, and a later select may discard it.
            OpKind::Yield if self.branch_of_yield(at.op).is_some() => match of_result()?.is_empty()
            {
                true => Some(Vec::new()),
                false => Some(vec![Guard::NonzeroAdjoint]),
            },
            OpKind::Yield | OpKind::Repeat => Some(vec![Guard::Carried]),
            // Unused lanes have a zero adjoint.
            OpKind::ExtractElement | OpKind::InsertElement | OpKind::Shuffle(_) => {
                let whole = body.ty(value);
                let vector = matches!(self.out.unit.types.get(whole), Type::Vector { .. });
                Some(if vector {
                    vec![Guard::NonzeroAdjoint]
                } else {
                    Vec::new()
                })
            }
            _ if self.is_used_only_by_result(at.op) => of_result(),
            _ => Some(Vec::new()),
        }
    }

    /// Returns the branch whose arm a yield terminates.
    fn branch_of_yield(&self, end: Op) -> Option<Op> {
        let body = self.facts.body;
        let owner = body.parent_op(end);
        owner.filter(|op| matches!(body.kind(*op), OpKind::If | OpKind::Switch(_)))
    }

    /// Returns the mask of a masked store if the use is the stored value: masked-out lanes are unused.
    fn mask_of_store(&self, at: Use) -> Option<Value> {
        let access = match_masked_access(self.out.unit, self.facts.body, at.op)?;
        let stores = matches!(
            access.function,
            MaskedFn::Store | MaskedFn::Scatter | MaskedFn::CompressStore
        );
        (stores && access.data_index == at.index as usize).then_some(access.mask)
    }

    /// Returns true if the operands of an op are used only through its result.
    fn is_used_only_by_result(&self, op: Op) -> bool {
        let body = self.facts.body;
        match body.kind(op) {
            OpKind::Binary(_) | OpKind::FNeg | OpKind::Cast(_) => true,
            OpKind::Call(_) => {
                let known = self.out.unit.callee(body, op);
                let known = known.and_then(|f| self.out.unit.known(f));
                matches!(known, Some(ExternalFn::Math(_)))
            }
            _ => false,
        }
    }

    /// Returns true if a value may be infinite or NaN although all its inputs are finite: the result of a
    /// division, or a value computed from one.
    pub(super) fn may_be_unbounded(&mut self, value: Value) -> bool {
        let body = self.facts.body;
        let mut work = vec![value];
        while let Some(&at) = work.last() {
            let rule = body
                .def_op(at)
                .and_then(|def| Some((def, calculus::rule(self.out.unit, body, def)?)));
            let Some((def, rule)) = rule.filter(|_| !self.guards.unbounded.contains_key(&at))
            else {
                self.guards.unbounded.entry(at).or_insert(false);
                work.pop();
                continue;
            };
            let operands = rule
                .float_args()
                .map(|i| body.operand(def, rule.operand(i)));
            let operands: Vec<Value> = operands.collect();
            let next = operands
                .iter()
                .find(|v| !self.guards.unbounded.contains_key(v));
            match next {
                Some(next) if !rule.result_maybe_infinite() => work.push(*next),
                _ => {
                    let known = &self.guards.unbounded;
                    let any = operands.iter().any(|v| known.get(v) == Some(&true));
                    let own = rule.result_maybe_infinite() || any;
                    self.guards.unbounded.insert(at, own);
                    work.pop();
                }
            }
        }
        self.guards.unbounded.get(&value) == Some(&true)
    }
}
