//! Null tests with a known outcome: parameters that are no null pointer at any call.
//!
//! `trans ? trans(ptr, data) : data` gives `data` to the elements of a container only if `trans` is null. Points-to
//! analysis is insensitive to conditions; a container that every caller gives a function would hold its owner.
//!
//! A parameter is not null if no call passes another value than the address of a definition, of a local variable, or a
//! parameter that is not null (greatest fixpoint over the instances).

use crate::call_graph::{CallGraph, Callee};
use crate::points_to::inclusion::contexts::Instances;
use crate::points_to::inclusion::objects::Context;
use gradus_ir::{
    Body, ConstKind, Definition, Flags, IntPredicate, Op, OpKind, Region, Type, Unit, Value,
};
use std::collections::{BTreeSet, HashSet};

/// Maximal number of address computations between a pointer and its definition.
const DEPTH_MAX: u32 = 16;

/// The parameters, by index, that are not null: per instance.
pub(super) struct NonNullParams {
    of: Vec<BTreeSet<usize>>,
}

impl NonNullParams {
    /// Computes the parameters of the instances of a call graph.
    pub fn of(unit: &Unit, closure: &CallGraph, instances: &Instances) -> NonNullParams {
        let entries = closure.address_taken().iter().chain(closure.roots());
        let entries: HashSet<_> = entries.copied().collect();
        let params = |context: Context| -> BTreeSet<usize> {
            let func = instances.list[context.0 as usize].func;
            let is_shared = instances.shared_of(func) == Some(context);
            let body = unit.functions[func].body.as_deref();
            let Some(body) = body.filter(|_| !(is_shared && entries.contains(&func))) else {
                // Not an error: unknown callers may pass null.
                return BTreeSet::new();
            };
            let is_pointer = |&(_, &param): &(usize, &Value)| {
                matches!(unit.types.get(body.ty(param)), Type::Ptr(_))
            };
            let params = body.params().iter().enumerate().filter(is_pointer);
            params.map(|(index, _)| index).collect()
        };
        let contexts = || (0..instances.list.len() as u32).map(Context);
        let mut found = NonNullParams {
            of: contexts().map(params).collect(),
        };
        while contexts().fold(false, |changed, context| {
            found.restrict_callees(unit, closure, instances, context) | changed
        }) {}
        found
    }
    /// Removes the parameters for which the calls of an instance may pass null. Returns true if a set changed.
    fn restrict_callees(
        &mut self,
        unit: &Unit,
        closure: &CallGraph,
        instances: &Instances,
        context: Context,
    ) -> bool {
        let func = instances.list[context.0 as usize].func;
        let Some(body) = unit.functions[func].body.as_deref() else {
            unreachable!("the functions of the call graph have bodies");
        };
        let mut has_changed = false;
        for site in closure.calls_in(func) {
            let (Callee::Inside(_), Some(callee)) =
                (site.callee, instances.callee(context, site.op))
            else {
                continue;
            };
            let args = unit.call_args(body, site.op);
            let mut kept = self.of[callee.0 as usize].clone();
            kept.retain(|&index| {
                let arg = args.get(index);
                arg.is_some_and(|&arg| self.is_not_null(unit, body, context, arg, DEPTH_MAX))
            });
            has_changed |= kept.len() < self.of[callee.0 as usize].len();
            self.of[callee.0 as usize] = kept;
        }
        has_changed
    }
    fn is_not_null(
        &self,
        unit: &Unit,
        body: &Body,
        context: Context,
        value: Value,
        depth: u32,
    ) -> bool {
        match body.values[value].def {
            Definition::Param(region, index) => {
                region == body.root() && self.of[context.0 as usize].contains(&(index as usize))
            }
            // A symbol that is declared alone may be weak, and null.
            Definition::Const(id) => match unit.constant(id).kind {
                ConstKind::Func(func) => unit.functions[func].defined,
                ConstKind::Global { global, offset } => unit.globals[global].defined && offset >= 0,
                _ => false,
            },
            Definition::Result(op, _) => match body.kind(op) {
                OpKind::Alloca(_) => true,
                OpKind::Addr { .. } => {
                    let base = body.operand(op, 0);
                    depth > 0
                        && body.ops[op].flags.has(Flags::INBOUNDS)
                        && self.is_not_null(unit, body, context, base, depth - 1)
                }
                _ => false,
            },
        }
    }
    /// Returns the regions of an instance that run only if such a parameter is null.
    pub fn dead_regions(&self, unit: &Unit, body: &Body, context: Context) -> HashSet<Region> {
        let mut dead = HashSet::new();
        if self.of[context.0 as usize].is_empty() {
            return dead;
        }
        for op in body.walk(body.root()) {
            if let OpKind::If = body.kind(op)
                && let Some(arm) = self.dead_arm(unit, body, context, body.operand(op, 0))
                && let Some(&region) = body.op_regions(op).get(arm)
            {
                dead.insert(region);
            }
        }
        dead
    }
    /// Returns the arm that a condition never selects: 0 if the condition is false, 1 if it is true.
    pub fn dead_arm(
        &self,
        unit: &Unit,
        body: &Body,
        context: Context,
        condition: Value,
    ) -> Option<usize> {
        let test = body.def_op(condition)?;
        let arm = match body.kind(test) {
            OpKind::ICmp(IntPredicate::Eq) => 0,
            OpKind::ICmp(IntPredicate::Ne) => 1,
            _ => return None,
        };
        let (a, b) = (body.operand(test, 0), body.operand(test, 1));
        let tested = match (body.is_null(unit, a), body.is_null(unit, b)) {
            (true, _) => b,
            (_, true) => a,
            (false, false) => return None,
        };
        let is_param = matches!(body.values[tested].def, Definition::Param(region, _) if region == body.root());
        (is_param && self.is_not_null(unit, body, context, tested, 0)).then_some(arm)
    }
}

/// Returns true if an op lies in a dead region.
pub(super) fn is_dead(body: &Body, dead: &HashSet<Region>, op: Op) -> bool {
    let regions = std::iter::successors(body.parent(op), |&region| body.enclosing(region));
    !dead.is_empty() && regions.into_iter().any(|region| dead.contains(&region))
}
