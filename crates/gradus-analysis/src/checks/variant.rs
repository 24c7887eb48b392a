//! Checks of a variant: of the ops of one function, with the activity of its arguments.
//!
//! An op refused in two variants yields equal diagnostics, which the pipeline merges.

use crate::activity::memory::{MemoryActivity, ShadowPresence};
use crate::activity::values::{BodyActivity, Variant};
use crate::call_graph::Callee;
use crate::cfg::no_return::NoReturnRegions;
use crate::checks::finding::{Finding, at};
use crate::checks::unknown_callees::attribute_to_unknown_callees;
use crate::checks::{Run, run_checks};
use crate::memory::value_accesses::{ValueAccess, value_accesses};
use crate::points_to::alias_sets::AliasSetId;
use crate::types::lattice;
use crate::view::View;
use gradus_ir::externals::ExternalFn;
use gradus_ir::{Body, Code, Diagnostic, FuncId, Op, OpKind, Value};
use std::collections::HashSet;

/// The analysis results of a variant.
pub(crate) struct VariantFacts<'a> {
    pub facts: View<'a>,
    pub classes: &'a MemoryActivity,
    pub activity: &'a BodyActivity,
    pub func: FuncId,
    pub body: &'a Body,
    /// True if the front end names the types of the body's accesses.
    pub names_accesses: bool,
    /// The ops outside of no-return regions, in source order. Positions of findings are positions in this list.
    ops: Vec<Op>,
    /// The calls among the ops.
    calls: Vec<CallFacts>,
    /// The memory accesses by value of the ops, each with the position of its op.
    accesses: Vec<(usize, ValueAccess)>,
}

/// A call or invoke.
pub(crate) struct CallFacts {
    position: usize,
    pub op: Op,
    pub callee: Callee,
    pub args: Vec<Value>,
    /// True if an argument depends on active inputs.
    pub varied: bool,
    /// True if an argument is active.
    pub active: bool,
    /// True if an argument points to active memory.
    pub shadowed: bool,
}

impl CallFacts {
    /// Returns true if the call may read or write numbers that depend on active inputs.
    pub fn works_on_active_values(&self) -> bool {
        self.varied || self.shadowed
    }
}

impl<'a> VariantFacts<'a> {
    fn of(
        facts: View<'a>,
        classes: &'a MemoryActivity,
        variant: &Variant,
        activity: &'a BodyActivity,
    ) -> VariantFacts<'a> {
        let Some(body) = facts.unit.functions[variant.func].body.as_deref() else {
            unreachable!("the function of a variant has a body");
        };
        let lost = NoReturnRegions::of(facts.unit, body);
        let ops = body.walk(body.root());
        let mut results = VariantFacts {
            facts,
            classes,
            activity,
            func: variant.func,
            body,
            names_accesses: lattice::has_tbaa_names(facts.unit, body),
            ops: ops.filter(|op| !lost.contains(body, *op)).collect(),
            calls: Vec::new(),
            accesses: Vec::new(),
        };
        for (position, &op) in results.ops.iter().enumerate() {
            value_accesses(facts.unit, body, op, |access| {
                results.accesses.push((position, access));
            });
        }
        let ops = results.ops.iter().enumerate();
        results.calls = ops
            .filter_map(|(position, op)| results.call(position, *op))
            .collect();
        results
    }

    fn call(&self, position: usize, op: Op) -> Option<CallFacts> {
        let (OpKind::Call(_) | OpKind::Invoke(_)) = self.body.kind(op) else {
            // Not an error: the op is no call.
            return None;
        };
        let args = self.facts.unit.call_args(self.body, op);
        Some(CallFacts {
            position,
            op,
            callee: self.facts.closure.callee(self.facts.unit, self.body, op)?,
            varied: args.iter().any(|v| self.activity.varied(*v)),
            active: args.iter().any(|v| self.activity.active(*v)),
            shadowed: args.iter().any(|v| self.points_to_active(*v)),
            args,
        })
    }

    /// Returns the findings at ops.
    pub fn at_ops<D: IntoIterator<Item = Diagnostic>>(
        &self,
        diagnose: impl Fn(Op) -> D,
    ) -> Vec<Finding> {
        let ops = self.ops.iter().enumerate();
        ops.flat_map(|(position, op)| placed(position, diagnose(*op)))
            .collect()
    }
    /// Returns the findings at calls.
    pub fn at_calls<D: IntoIterator<Item = Diagnostic>>(
        &self,
        diagnose: impl Fn(&CallFacts) -> D,
    ) -> Vec<Finding> {
        let calls = self.calls.iter();
        calls
            .flat_map(|call| placed(call.position, diagnose(call)))
            .collect()
    }
    /// Returns the findings at calls of external functions that Gradus knows.
    pub fn at_known_calls<D: IntoIterator<Item = Diagnostic>>(
        &self,
        diagnose: impl Fn(&CallFacts, ExternalFn) -> Option<D>,
    ) -> Vec<Finding> {
        self.at_calls(|call| {
            let known = match call.callee {
                Callee::Outside(callee) => self.facts.unit.known(callee),
                Callee::Inside(_) | Callee::Indirect(_) | Callee::Foreign => None,
            };
            let found = known.and_then(|known| diagnose(call, known));
            found.into_iter().flatten()
        })
    }
    /// Returns the findings at memory accesses by value.
    pub fn at_accesses<D: IntoIterator<Item = Diagnostic>>(
        &self,
        diagnose: impl Fn(Op, ValueAccess) -> D,
    ) -> Vec<Finding> {
        let accesses = self.accesses.iter();
        accesses
            .flat_map(|(position, access)| {
                placed(*position, diagnose(self.ops[*position], *access))
            })
            .collect()
    }

    /// Returns an error at an op.
    pub fn error(&self, op: Op, code: Code, message: impl Into<String>) -> Diagnostic {
        at(self.facts.unit, self.func, self.body, op, code, message)
    }

    /// Returns the active results of an op. The result of an invoke comes from its normal path.
    pub fn active_results(&self, op: Op) -> impl Iterator<Item = Value> {
        let of_invoke = match self.body.kind(op) {
            OpKind::Invoke(_) => self.body.call_result(op),
            _ => None,
        };
        let results = self.body.results(op).iter().copied().chain(of_invoke);
        results.filter(|value| self.activity.active(*value))
    }
    /// Returns true if `has` holds for an alias set that `ptr` may point into.
    pub fn may_point_into(&self, ptr: Value, has: impl FnMut(AliasSetId) -> bool) -> bool {
        self.facts.memory.may_point_into(self.func, ptr, has)
    }
    /// Returns true if memory behind `ptr` may carry derivatives of floats.
    pub fn points_to_active(&self, ptr: Value) -> bool {
        let floats = self.may_point_into(ptr, |class| self.reaches_floats(class));
        floats && self.activity.shadow(ptr).is_some()
    }
    /// Returns true if an alias set has a shadow and is not known to hold integers only.
    pub fn reaches_floats(&self, class: AliasSetId) -> bool {
        let seen = self.facts.words.types_of_set(class);
        let only_integers = seen.has_integer() && !seen.has_float() && !seen.has_pointer();
        !only_integers && self.classes.state(class) != ShadowPresence::Inactive
    }
}

fn placed(
    position: usize,
    list: impl IntoIterator<Item = Diagnostic>,
) -> impl Iterator<Item = Finding> {
    list.into_iter().map(move |diagnostic| Finding {
        position,
        diagnostic,
    })
}

/// Returns the reasons against differentiating a variant, without duplicates. Empty if there are none.
pub fn variant_findings(
    facts: View<'_>,
    classes: &MemoryActivity,
    variant: &Variant,
    activity: &BodyActivity,
) -> Vec<Diagnostic> {
    let results = VariantFacts::of(facts, classes, variant, activity);
    let list = run_checks(|run| match run {
        Run::Variant(check) => check(&results),
        Run::Request(_) => Vec::new(),
    });
    let mut list = distinct(list);
    attribute_to_unknown_callees(facts, classes, &mut list);
    list
}

/// Removes duplicate diagnostics and keeps the order.
fn distinct(list: impl IntoIterator<Item = Diagnostic>) -> Vec<Diagnostic> {
    let mut seen = HashSet::new();
    list.into_iter()
        .filter(|d| {
            let label = d.labels.first().map(|l| l.span.clone());
            seen.insert((d.code, label, d.message.clone(), d.function.clone()))
        })
        .collect()
}
