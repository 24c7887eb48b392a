//! Calling contexts: copies of small functions per call site.
//!
//! A function with several callers has one set of constraints for all of them; a pointer parameter then leads to the
//! arguments of every caller, and an allocation is one object for every caller. [`Instances`] gives each call site of a
//! small function, up to a depth, an instance of its own: constraints, nodes and objects. All other callers share one
//! instance.

use crate::call_graph::{CallGraph, Callee};
use crate::points_to::inclusion::objects::Context;
use gradus_ir::{FuncId, Op, Unit};
use std::collections::{HashMap, HashSet};

/// Maximal number of ops of a function with instances per call site.
const OPS_MAX: usize = 300;

/// Maximal number of nested instances per call site.
const DEPTH_MAX: u32 = 3;

/// Ops of all instances per op of the call graph, beyond [`OPS_FREE`].
const GROWTH_MAX: usize = 3;

/// Ops of instances that are always permitted.
const OPS_FREE: usize = 20_000;

/// A function in a calling context.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Instance {
    pub func: FuncId,
    depth: u32,
}

/// The instances of a call graph. An index is a [`Context`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Instances {
    pub list: Vec<Instance>,
    shared: HashMap<FuncId, Context>,
    callees: HashMap<(Context, Op), Context>,
}

impl Instances {
    /// Chooses the instances of a call graph.
    pub fn of(unit: &Unit, closure: &CallGraph) -> Instances {
        let ops = |func: FuncId| {
            let body = unit.functions[func].body.as_deref();
            body.map_or(0, |body| body.ops.len())
        };
        let total: usize = closure.functions().iter().map(|&func| ops(func)).sum();
        let mut budget = OPS_FREE + GROWTH_MAX * total;
        // Indirect calls lead to shared instances, and end a chain of instances.
        let recursive = closure.directly_recursive();
        let is_small = |func: FuncId| ops(func) <= OPS_MAX && !recursive.contains(&func);
        let mut found = Instances::default();
        // Every other function is small and has a caller.
        let entries = closure.address_taken().iter().chain(closure.roots());
        let entries: HashSet<FuncId> = entries.copied().collect();
        for &func in closure.functions() {
            if entries.contains(&func) || !is_small(func) {
                found.shared(func);
            }
        }
        let mut next = 0;
        while next < found.list.len() {
            let (context, instance) = (Context(next as u32), found.list[next]);
            next += 1;
            for site in closure.calls_in(instance.func) {
                let Callee::Inside(func) = site.callee else {
                    continue;
                };
                // The only call of a function in a shared instance needs no instance of its own.
                let several = instance.depth > 0 || closure.calls_of(func).len() > 1;
                let fits = instance.depth < DEPTH_MAX && ops(func) <= budget;
                let own = is_small(func) && several && fits;
                let callee = match own {
                    true => {
                        budget -= ops(func);
                        found.push(func, instance.depth + 1)
                    }
                    false => found.shared(func),
                };
                found.callees.insert((context, site.op), callee);
            }
        }
        found
    }
    fn push(&mut self, func: FuncId, depth: u32) -> Context {
        self.list.push(Instance { func, depth });
        Context(self.list.len() as u32 - 1)
    }
    /// Returns the instance that serves indirect calls and call sites without an instance of their own.
    fn shared(&mut self, func: FuncId) -> Context {
        if let Some(&context) = self.shared.get(&func) {
            return context;
        }
        let context = self.push(func, 0);
        self.shared.insert(func, context);
        context
    }
    /// Returns the shared instance of a function, if it has one.
    pub fn shared_of(&self, func: FuncId) -> Option<Context> {
        self.shared.get(&func).copied()
    }
    /// Returns the instance that a direct call in an instance calls.
    pub fn callee(&self, context: Context, op: Op) -> Option<Context> {
        self.callees.get(&(context, op)).copied()
    }
}
