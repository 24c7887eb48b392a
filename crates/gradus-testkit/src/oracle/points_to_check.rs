//! Checks the points-to analysis: each address that the interpreter observes lies in a target of the pointer.
//!
//! The interpreter records the object and the offset of each executed access. The analysis is sound for a run if
//! some target of the pointer stands for the object, and the target's offset equals the observed offset under the
//! normalisation of the target's alias set. `memory_check.rs` applies the check to memory programs.
//!
//! Note [Alias sets without an allocation site]
//! Memory behind arguments of a root, memory of external functions and the contents of foreign memory have no
//! allocation site in the program. Their alias sets stand for memory of the machine's user, and for escaped objects:
//! unknown code can store the address of an escaped object anywhere. Offsets in such alias sets have no common origin
//! with the object, and are not compared. Arguments of a root may lead to common memory, and the alias sets behind them
//! are distinct: an object that the program stores in such memory may be found through any of them.

use crate::run::call_spec::{Argument, Call, run_call};
use gradus_analysis::{AliasSetId, AliasSets, CallGraph, CellRef, MemoryOrigin};
use gradus_interp::{AllocationSite, Options, TracedAccess, TrapKind};
use gradus_ir::{FuncId, Op, OpPrinter, Unit};
use std::collections::BTreeSet;

/// Runs calls of a unit, and compares each executed access and indirect call with the points-to analysis of the called
/// functions. Returns the number of compared accesses and indirect calls.
///
/// # Errors
/// A call that does not run; or the accesses outside of the analysed targets, one per line.
pub fn check_points_to(unit: &Unit, calls: &[Call]) -> Result<usize, String> {
    let mut roots = BTreeSet::new();
    for call in calls {
        roots.insert(call.ordered_arguments(unit)?.0);
    }
    let roots: Vec<FuncId> = roots.into_iter().collect();
    let check = PointsToCheck {
        unit,
        sets: AliasSets::of(unit, &CallGraph::of(unit, &roots)),
    };
    let mut count = 0;
    let mut wrong = BTreeSet::new();
    for call in calls {
        count += check.call(call, &mut wrong)?;
    }
    match wrong.is_empty() {
        true => Ok(count),
        false => Err(wrong.into_iter().collect::<Vec<_>>().join("\n")),
    }
}

/// Compares a trace with alias sets.
pub(super) struct PointsToCheck<'u> {
    pub unit: &'u Unit,
    pub sets: AliasSets,
}

impl PointsToCheck<'_> {
    /// Checks a call, and adds the violations to `wrong`.
    fn call(&self, call: &Call, wrong: &mut BTreeSet<String>) -> Result<usize, String> {
        let options = Options {
            max_steps: 20_000_000,
            trace_accesses: true,
            ..Options::default()
        };
        let (machine, outcome) = run_call(self.unit, call, options)?;
        if let Err(trap) = outcome.outcome
            && trap.kind != TrapKind::Unsupported
        {
            return Err(format!("the program itself traps: {trap}"));
        }
        let Some(trace) = machine.access_trace() else {
            unreachable!("the option is set");
        };
        let passed = self.passed_symbols(call)?;
        for &access in trace.accesses() {
            self.access(access, &passed, wrong);
        }
        for &call in trace.indirect_calls() {
            self.indirect_call(call, wrong);
        }
        Ok(trace.accesses().len() + trace.indirect_calls().len())
    }

    /// Checks an access; `passed` holds the sites of the symbols among the arguments.
    pub fn access(
        &self,
        access: TracedAccess,
        passed: &BTreeSet<AllocationSite>,
        wrong: &mut BTreeSet<String>,
    ) {
        if !self.is_sound(&access, passed) {
            wrong.insert(self.access_text(&access));
        }
    }

    /// Checks an indirect call: caller, op and callee.
    pub fn indirect_call(
        &self,
        (func, op, callee): (FuncId, Op, FuncId),
        wrong: &mut BTreeSet<String>,
    ) {
        let known = self.sets.callees(func, op).contains(&callee);
        if !known && !self.sets.may_call_unknown(func, op) {
            let name = &self.unit.functions[callee].name;
            let place = self.op_text(func, op);
            wrong.insert(format!("{place}: calls `{name}`, not among the callees"));
        }
    }

    /// Returns the sites of the symbols among a call's arguments.
    fn passed_symbols(&self, call: &Call) -> Result<BTreeSet<AllocationSite>, String> {
        let (_, arguments) = call.ordered_arguments(self.unit)?;
        let sites = arguments.iter().filter_map(|argument| match argument {
            Argument::Symbol(name) => Some(match self.unit.symbol(name)? {
                gradus_ir::Symbol::Func(func) => AllocationSite::Function(func),
                gradus_ir::Symbol::Global(global) => AllocationSite::Global(global),
            }),
            _ => None,
        });
        Ok(sites.collect())
    }

    /// Returns true if some target of the pointer stands for the accessed memory.
    fn is_sound(&self, access: &TracedAccess, passed: &BTreeSet<AllocationSite>) -> bool {
        let targets = self.sets.targets(access.func, access.pointer);
        targets.iter().any(|target| {
            let set = self.sets.get(target.class);
            let start = self.start(access.site, target.class);
            let observed = set.normalize_offset(start.wrapping_add(access.offset_bytes));
            let own = origin(access.site).is_some_and(|origin| set.origins.contains(&origin));
            if own && observed == set.normalize_offset(target.offset_bytes) {
                return true;
            }
            self.is_without_site(target.class)
                && match access.site {
                    AllocationSite::User | AllocationSite::External => true,
                    AllocationSite::ByValue(..) => set.origins.is_empty(),
                    site => {
                        passed.contains(&site)
                            || self.has_escaped(site)
                            || self.is_reachable_from_outside(site)
                    }
                }
        })
    }

    /// Returns the offset of the start of a site's objects in an alias set. Alias sets by unification have objects with
    /// different starts.
    fn start(&self, site: AllocationSite, set: AliasSetId) -> i64 {
        let start = match site {
            AllocationSite::Alloca(func, op) | AllocationSite::Heap(func, op) => {
                let body = self.unit.functions[func].body.as_ref();
                let result = body
                    .and_then(|body| body.call_result(op).or(body.results(op).first().copied()));
                let targets = result.map_or(&[][..], |result| self.sets.targets(func, result));
                let mut starts = targets.iter().filter(|target| target.class == set);
                // The result of `realloc` may also be the old block, at any offset.
                let first = starts.next().copied();
                first.filter(|_| starts.next().is_none())
            }
            AllocationSite::Global(global) => self.sets.global(global),
            _ => None,
        };
        start.map_or(0, |start| start.offset_bytes)
    }

    /// See Note [Alias sets without an allocation site].
    fn is_without_site(&self, set: AliasSetId) -> bool {
        let origins = &self.sets.get(set).origins;
        let foreign = |origin: &MemoryOrigin| {
            matches!(
                origin,
                MemoryOrigin::Argument(..) | MemoryOrigin::External(..) | MemoryOrigin::Unknown
            )
        };
        origins.is_empty() || origins.iter().any(foreign)
    }

    /// Returns true if an alias set of the site's objects is reachable from memory without a site.
    fn is_reachable_from_outside(&self, site: AllocationSite) -> bool {
        let Some(own) = origin(site) else {
            // Not an error: no alias set stands for the site.
            return false;
        };
        let sets = self.sets.alias_sets().map(|(id, _)| id);
        let mut work: Vec<AliasSetId> = sets.filter(|id| self.is_without_site(*id)).collect();
        let mut seen: BTreeSet<AliasSetId> = work.iter().copied().collect();
        while let Some(set) = work.pop() {
            if self.sets.get(set).origins.contains(&own) {
                return true;
            }
            let pointees = self.sets.pointees(set).into_iter();
            work.extend(pointees.filter(|id| seen.insert(*id)));
        }
        false
    }

    /// Returns true if an alias set of the site's objects escapes.
    fn has_escaped(&self, site: AllocationSite) -> bool {
        let mut sets = self.sets.alias_sets();
        sets.any(|(id, set)| {
            self.sets.escaped(id) && origin(site).is_some_and(|own| set.origins.contains(&own))
        })
    }

    fn access_text(&self, access: &TracedAccess) -> String {
        let target = |target: &CellRef| {
            let set = self.sets.get(target.class);
            let (offset, escaped) = (target.offset_bytes, set.escaped);
            format!(
                "{:?}{offset:+} folds {:?} escaped {escaped}",
                set.origins, set.folds
            )
        };
        let targets = self.sets.targets(access.func, access.pointer).iter();
        let targets: Vec<String> = targets.map(target).collect();
        format!(
            "{}: accesses {:?}{:+}, escaped {}; targets: [{}]",
            self.op_text(access.func, access.op),
            access.site,
            access.offset_bytes,
            self.has_escaped(access.site),
            targets.join(", ")
        )
    }

    fn op_text(&self, func: FuncId, op: Op) -> String {
        let function = &self.unit.functions[func];
        let Some(body) = &function.body else {
            unreachable!("a running function has a body");
        };
        let line = OpPrinter::new(self.unit, body, &function.param_names).line(op);
        format!("`{}`: `{}`", function.name, line.trim())
    }
}

/// Returns the origin of a site's objects in alias sets.
fn origin(site: AllocationSite) -> Option<MemoryOrigin> {
    match site {
        AllocationSite::Alloca(func, op) => Some(MemoryOrigin::Alloca(func, op)),
        AllocationSite::Heap(func, op) => Some(MemoryOrigin::Heap(func, op)),
        AllocationSite::Global(global) => Some(MemoryOrigin::Global(global)),
        AllocationSite::Function(func) => Some(MemoryOrigin::Function(func)),
        AllocationSite::ByValue(..) | AllocationSite::External | AllocationSite::User => None,
    }
}
