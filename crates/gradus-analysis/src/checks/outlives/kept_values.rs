//! Values that a variable keeps from one call to the next (GRD0033, a warning): a static cache of the last result. The
//! derivative takes the contents at its start as constants, so that a value of an earlier call has no derivative.
//!
//! A walk over each body, callees first, finds the loads of active floats that no store precedes. Loops count as run, and
//! a store to any part of a variable counts as a store to all of it: arrays for intermediate results cause no warning. The
//! arms of a branch count if all of them store.

use crate::activity::memory::{MemoryActivity, ShadowPresence};
use crate::call_graph::Callee;
use crate::checks::finding::Finding;
use crate::checks::request::RequestFacts;
use crate::memory::value_accesses::{ValueAccess, value_accesses};
use crate::points_to::alias_sets::{AliasSetId, MemoryOrigin};
use crate::view::View;
use gradus_ir::{Body, Code, Diagnostic, FuncId, Op, OpKind, Region};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The accesses of a function to variables that may keep values.
#[derive(Clone, Debug, Default)]
struct Accesses {
    /// Loads that no store precedes: the first per alias set.
    early_loads: BTreeMap<AliasSetId, (FuncId, Op)>,
    /// The alias sets that the function stores to on every path.
    stored: BTreeSet<AliasSetId>,
}

/// Warns of variables that keep values: one finding per variable.
pub(crate) fn check(request: &RequestFacts<'_>) -> Vec<Finding> {
    let (facts, classes) = (request.facts, request.classes);
    let kept: BTreeSet<AliasSetId> = facts
        .memory
        .alias_sets()
        .map(|(class, _)| class)
        .filter(|class| may_keep_values(facts, classes, *class))
        .collect();
    if kept.is_empty() {
        return Vec::new();
    }
    let mut walk = Walk {
        facts,
        classes,
        kept,
        known: HashMap::new(),
    };
    let found = walk.function(request.root);
    let loads = found.early_loads.into_iter();
    loads
        .filter_map(|(class, site)| warning(facts, class, site))
        .map(Finding::without_position)
        .collect()
}

/// Returns true for a variable of the program's own that the differentiated code fills with active floats.
fn may_keep_values(facts: View<'_>, classes: &MemoryActivity, class: AliasSetId) -> bool {
    let origins = &facts.memory.get(class).origins;
    let is_variable = |origin: &MemoryOrigin| matches!(origin, MemoryOrigin::Global(global) if !facts.unit.globals[*global].constant);
    !origins.is_empty()
        && origins.iter().all(is_variable)
        && classes.state(class) != ShadowPresence::Inactive
        && classes.is_written(class)
        && classes.is_varied(class)
        && classes.is_useful(class)
        && facts.words.types_of_set(class).has_float()
}

struct Walk<'a> {
    facts: View<'a>,
    classes: &'a MemoryActivity,
    kept: BTreeSet<AliasSetId>,
    /// Finished functions, and functions in work, without accesses.
    known: HashMap<FuncId, Accesses>,
}

impl<'a> Walk<'a> {
    fn function(&mut self, func: FuncId) -> Accesses {
        if let Some(found) = self.known.get(&func) {
            return found.clone();
        }
        self.known.insert(func, Accesses::default());
        let mut found = Accesses::default();
        if let Some(body) = self.facts.unit.functions[func].body.as_deref() {
            self.region(func, body, body.root(), &mut found);
        }
        self.known.insert(func, found.clone());
        found
    }

    fn region(&mut self, func: FuncId, body: &'a Body, region: Region, found: &mut Accesses) {
        for op in body.ops_in(region) {
            self.op(func, body, op, found);
        }
    }

    fn op(&mut self, func: FuncId, body: &'a Body, op: Op, found: &mut Accesses) {
        self.values(func, body, op, found);
        if let OpKind::Call(_) | OpKind::Invoke(_) = body.kind(op) {
            self.call(func, body, op, found);
        }
        let regions = body.op_regions(op).to_vec();
        let is_branch = matches!(body.kind(op), OpKind::If | OpKind::Switch(_));
        if !is_branch {
            for region in regions {
                self.region(func, body, region, found);
            }
            return;
        }
        let mut common: Option<BTreeSet<AliasSetId>> = None;
        for region in regions {
            let mut arm = found.clone();
            self.region(func, body, region, &mut arm);
            found.early_loads = arm.early_loads;
            common = Some(match common {
                None => arm.stored,
                Some(stored) => stored.intersection(&arm.stored).copied().collect(),
            });
        }
        found.stored.extend(common.unwrap_or_default());
    }

    fn values(&self, func: FuncId, body: &Body, op: Op, found: &mut Accesses) {
        let facts = self.facts;
        value_accesses(facts.unit, body, op, |access| {
            let (ValueAccess::Load { ptr, value } | ValueAccess::Store { ptr, value }) = access;
            let reads = matches!(access, ValueAccess::Load { .. })
                && facts.words.carries_float(func, value)
                && self.classes.value_useful(func, value);
            for place in facts.memory.targets(func, ptr) {
                if !self.kept.contains(&place.class) {
                    continue;
                }
                if matches!(access, ValueAccess::Store { .. }) {
                    found.stored.insert(place.class);
                } else if reads && !found.stored.contains(&place.class) {
                    found.early_loads.entry(place.class).or_insert((func, op));
                }
            }
        });
        for copy in facts
            .memory
            .copies()
            .iter()
            .filter(|copy| copy.at == (func, op))
        {
            found.stored.extend(copy.to.iter().map(|to| to.class));
        }
    }

    fn call(&mut self, func: FuncId, body: &Body, op: Op, found: &mut Accesses) {
        let callees = match self.facts.closure.callee(self.facts.unit, body, op) {
            Some(Callee::Inside(callee)) => vec![callee],
            Some(Callee::Indirect(_)) => self.facts.memory.callees(func, op).to_vec(),
            _ => Vec::new(),
        };
        for callee in callees {
            let inner = self.function(callee);
            for (class, site) in inner.early_loads {
                if !found.stored.contains(&class) {
                    found.early_loads.entry(class).or_insert(site);
                }
            }
            found.stored.extend(inner.stored);
        }
    }
}

fn warning(facts: View<'_>, class: AliasSetId, (func, op): (FuncId, Op)) -> Option<Diagnostic> {
    let unit = facts.unit;
    let body = unit.functions[func].body.as_deref()?;
    let Some(MemoryOrigin::Global(global)) = facts.memory.get(class).origins.first() else {
        unreachable!("only variables keep values");
    };
    let name = &unit.globals[*global].name;
    let message = format!(
        "`{name}` keeps active values from one call to the next, and a value of an earlier call has no derivative"
    );
    Some(
        Diagnostic::warning(Code::Outlives, message)
            .in_function(unit.functions[func].display_name())
            .at(
                unit.span(body.ops[op].loc),
                "may be read before this call writes it",
            )
            .help("reset the variable before each derivative, or compute the value in each call"),
    )
}
