//! Guards: if-converted code must not bring back what its source never ran.
//!
//! `x != 0 ? y/x : 0` reaches us as a division that always runs and a `select`. Where the select
//! takes the other side, the quotient's adjoint is 0, and 0 · ∞ would be NaN. A value that reaches
//! the rest of the program through selects, or lanes of masked stores, only is *guarded* by their conditions; undoing its op
//! adds `guard ? adjoint · ∂ : 0`.

use super::return_sweep::ReturnSweep;
use crate::masked::masked_access;
use gradus_ir::known::{Known, MaskedFn};
use gradus_ir::{BinaryOp, Op, OpKind, Use, Value};
use std::collections::HashMap;

/// A condition under which a value matters: it or its negation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Guard {
    condition: Value,
    when: bool,
}

/// Guards of values, found so far; an empty list means unguarded.
#[derive(Debug, Default)]
pub(super) struct Guards {
    known: HashMap<Value, Vec<Guard>>,
}

/// Longer disjunctions are given up: the value counts as unguarded.
const LONGEST: usize = 4;

impl ReturnSweep<'_, '_, '_, '_> {
    /// The condition, as a value of the derivative, under which a value matters; `None` for always.
    pub(super) fn guard(&mut self, value: Value) -> Option<Value> {
        let guards = self.guards_of(value);
        let mut any: Option<Value> = None;
        for guard in guards {
            let mut condition = self.primal(guard.condition);
            if !guard.when {
                let ty = self.out.body.ty(condition);
                let ones = self.out.build().int(ty, -1);
                condition = self.out.build().binary(BinaryOp::Xor, condition, ones);
            }
            any = Some(match any {
                Some(old) => self.out.build().binary(BinaryOp::Or, old, condition),
                None => condition,
            });
        }
        any
    }

    /// The disjunction of the conditions under which a value is used, from its users' guards.
    fn guards_of(&mut self, value: Value) -> Vec<Guard> {
        let body = self.facts.body;
        let mut work = vec![value];
        while let Some(&at) = work.last() {
            if self.guards.known.contains_key(&at) {
                work.pop();
                continue;
            }
            let waiting: Vec<Value> = body
                .uses(at)
                .filter(|u| body.parent(u.op) == body.region_of(at))
                .filter(|u| self.passes_on(u.op))
                .map(|u| body.result(u.op))
                .filter(|v| !self.guards.known.contains_key(v))
                .collect();
            if waiting.is_empty() {
                let guards = self.combine(at);
                self.guards.known.insert(at, guards);
                work.pop();
            } else {
                work.extend(waiting);
            }
        }
        self.guards.known.get(&value).cloned().unwrap_or_default()
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
                let ty = |guard: &Guard| self.facts.body.ty(guard.condition);
                if all.first().is_some_and(|first| ty(first) != ty(&guard)) {
                    return Vec::new();
                }
                if all.contains(&Guard {
                    when: !guard.when,
                    ..guard
                }) {
                    return Vec::new();
                }
                if !all.contains(&guard) {
                    all.push(guard);
                }
            }
        }
        if all.len() > LONGEST { Vec::new() } else { all }
    }

    /// Under which conditions a use matters: an empty list for always, `None` for never.
    fn guard_of_use(&self, value: Value, at: Use) -> Option<Vec<Guard>> {
        let body = self.facts.body;
        if body.parent(at.op) != body.region_of(value) {
            return Some(self.guard_of_arm(value, at).into_iter().collect());
        }
        match body.kind(at.op) {
            OpKind::Select if at.index > 0 => Some(vec![Guard {
                condition: body.operand(at.op, 0),
                when: at.index == 1,
            }]),
            OpKind::Call(_) if self.mask_of_store(at).is_some() => {
                let guard = |condition| Guard {
                    condition,
                    when: true,
                };
                Some(self.mask_of_store(at).map(guard).into_iter().collect())
            }
            _ if self.passes_on(at.op) => {
                let result = body.result(at.op);
                self.facts
                    .active(result)
                    .then(|| self.guards.known.get(&result).cloned().unwrap_or_default())
            }
            OpKind::ICmp(_) | OpKind::FCmp(_) => None,
            _ => Some(Vec::new()),
        }
    }

    /// The mask of a masked store, where this use is what it stores: other lanes do not matter.
    fn mask_of_store(&self, at: Use) -> Option<Value> {
        let access = masked_access(self.out.unit, self.facts.body, at.op)?;
        let stores = matches!(
            access.function,
            MaskedFn::Store | MaskedFn::Scatter | MaskedFn::CompressStore
        );
        (stores && access.data_index == at.index as usize).then_some(access.mask)
    }

    /// Whether an op's operands matter only where its result does.
    fn passes_on(&self, op: Op) -> bool {
        match self.facts.body.kind(op) {
            OpKind::Binary(_) | OpKind::FNeg | OpKind::Cast(_) => true,
            OpKind::Call(_) => {
                let callee = self.out.unit.callee(self.facts.body, op);
                let known = callee.and_then(|func| self.out.unit.known(func));
                matches!(known, Some(Known::Math(_)))
            }
            _ => false,
        }
    }

    /// A use inside an arm of an `if` that stands beside the value's op.
    fn guard_of_arm(&self, value: Value, at: Use) -> Option<Guard> {
        let body = self.facts.body;
        let home = body.region_of(value);
        let mut region = body.parent(at.op)?;
        loop {
            let owner = body.owner(region)?;
            if body.parent(owner) == home {
                let first = matches!(body.kind(owner), OpKind::If)
                    .then(|| body.op_regions(owner)[0] == region)?;
                return Some(Guard {
                    condition: body.operand(owner, 0),
                    when: first,
                });
            }
            region = body.parent(owner)?;
        }
    }
}
