//! Calls in the forward sweep.

use super::ForwardSweep;
use crate::node::Node;
use crate::out::Lanes;
use crate::variant::{Mode, ParamRole, ResultRole, Variant};
use gradus_ir::known::{Known, MarkerFn};
use gradus_ir::{FuncId, Op, Value};

impl ForwardSweep<'_, '_, '_, '_> {
    pub(super) fn call(&mut self, op: Op) {
        let body = self.facts.body;
        let callee = self.out.unit.callee(body, op);
        let known = callee.and_then(|f| self.out.unit.known(f));
        match known {
            Some(Known::Memory(function)) => self.memory_call(op, function),
            Some(Known::Marker(MarkerFn::LifetimeStart | MarkerFn::LifetimeEnd)) => {}
            Some(Known::Math(_)) => {
                self.clone_plain(op);
                self.beside(op);
            }
            Some(Known::Reduce(_)) => {
                self.clone_plain(op);
                self.reduce_beside(op);
            }
            _ => match callee.filter(|_| self.facts.is_active_call(op)) {
                Some(callee) => self.active_call(op, callee),
                None => {
                    self.clone_plain(op);
                    self.inactive_result(op);
                }
            },
        }
    }

    /// A pointer that comes from an inactive call is its own shadow.
    fn inactive_result(&mut self, op: Op) {
        for &result in self.facts.body.results(op) {
            if self.has_companion(result) {
                let lanes = Lanes::from_elem(self.value(result), self.facts.width);
                self.companions.insert(result, lanes);
            }
        }
    }

    fn reduce_beside(&mut self, op: Op) {
        let result = self.facts.body.result(op);
        if self.has_companion(result) {
            self.tangent(op);
        }
    }

    /// A call of a function with a body, on active values: its derivative is called instead.
    fn active_call(&mut self, op: Op, callee: FuncId) {
        if !self.forward_mode() && self.facts.redo_call(op) {
            self.clone_plain(op);
            return;
        }
        let mode = match self.forward_mode() {
            true => Mode::Forward,
            false => Mode::Augmented,
        };
        let variant = self
            .facts
            .call_variant(self.out.unit, op, callee, mode, self.variant);
        let signature = variant.signature(self.out.unit);
        let func = variant.declare(self.out.unit);
        self.needs.push(variant.clone());
        let actual = self.out.unit.call_args(self.facts.body, op);
        let mut args: Vec<Value> = Vec::new();
        for (role, _) in &signature.params {
            match *role {
                ParamRole::Primal(number) => args.push(self.value(actual[number])),
                ParamRole::Shadow(number, lane) => {
                    let lanes = self.companion(actual[number]);
                    args.push(lanes[lane as usize]);
                }
                ParamRole::Cotangent(_) | ParamRole::Tape => {}
            }
        }
        let call = self.out.build().call(func, &args);
        self.call_results(op, call, &signature.results, &variant);
    }

    fn call_results(
        &mut self,
        op: Op,
        call: Op,
        roles: &[(ResultRole, gradus_ir::TypeId)],
        variant: &Variant,
    ) {
        let result = self.facts.body.results(op).first().copied();
        let mut companions = Lanes::new();
        for (number, (role, _)) in roles.iter().enumerate() {
            let whole = self.out.body.result(call);
            let part = match roles.len() {
                1 => whole,
                _ => self.out.build().extract(whole, &[number as u32]),
            };
            match role {
                ResultRole::Tape => {
                    self.keep_node(Node::CalleeTape(op), Lanes::from_elem(part, 1));
                }
                ResultRole::Primal => {
                    if let Some(result) = result {
                        self.values.insert(result, part);
                    }
                }
                ResultRole::Shadow(_) => companions.push(part),
                ResultRole::Adjoint(..) => {}
            }
        }
        if let Some(result) = result.filter(|_| companions.len() == variant.width as usize) {
            self.companions.insert(result, companions);
        }
    }
}
