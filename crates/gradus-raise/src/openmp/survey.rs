//! Survey of OpenMP constructs: functions with constructs, reachability, and rejections.

use crate::Orphans;
use crate::openmp::assemble::Assembled;
use crate::openmp::{parallel_region, thread_num};
use crate::reach::{Reach, calls_unknown, may_call_waiting, may_spin, rereads_in_loop};
use crate::report::{Construct, Outcome, Reason, RegionRecord, reason};
use crate::runtime_calls::{RuntimeCalls, span_of};
use crate::thread_private::is_allocation;
use gradus_ir::externals::{OpenMpFn, differentiation_call, is_cpp_text_function};
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{Body, ConstKind, FuncId, Global, Linkage, Op, OpKind, SourceSpan, Symbol, Unit};
use std::collections::{BTreeSet, HashMap, HashSet};

/// The facts of a function with a body.
#[derive(Debug, Default)]
struct FunctionFacts {
    /// Functions called or referenced, sorted.
    references: BTreeSet<FuncId>,
    /// Functions referenced other than as a callee.
    addresses_taken: BTreeSet<FuncId>,
    /// The constructs of the function.
    constructs: Vec<Construct>,
    /// The regions begun by the function: outlined function, location and source function.
    regions: Vec<(FuncId, Option<SourceSpan>, String)>,
    /// The functions of its tasks.
    entries: Vec<FuncId>,
    /// Referenced functions that their compiler marks for inlining.
    wrapped: Vec<FuncId>,
    /// True if the function calls the runtime for a construct.
    holds: bool,
    /// True if the function queries rank or size, or shares work between ranks.
    distinguishes_ranks: bool,
    /// True if the function has worksharing of an enclosing team in a caller.
    shares_callers_team: bool,
    /// True if the function calls code without a body and without a known name.
    calls_unknown: bool,
    /// True if the function calls code that may wait for another thread.
    calls_waiting: bool,
    /// True if a loop of the function spins on memory written by another thread.
    spins: bool,
    /// True if the function has atomic updates or locks.
    updates_or_locks: bool,
    /// True if the function allocates heap memory.
    allocates: bool,
    /// The reason why the function must remain unchanged.
    rejected: Option<Reason>,
    /// The reason why regions that reach the function must remain, although the function may begin other
    /// regions: it uses a `threadprivate` variable of the library.
    uses_threadprivate: Option<Reason>,
}

/// The facts of a unit.
#[derive(Debug)]
pub(super) struct Survey<'a> {
    seen: HashMap<FuncId, FunctionFacts>,
    order: Vec<FuncId>,
    /// Functions that are the code of a region or task.
    parts: HashSet<FuncId>,
    /// Functions with code outside of regions.
    orphaned: HashSet<FuncId>,
    /// Regions that remain, by outlined function, with the reason.
    unraised_regions: HashMap<FuncId, Reason>,
    /// The treatment of functions with worksharing of a caller's team.
    orphans: &'a Orphans,
}

impl<'a> Survey<'a> {
    pub fn of(unit: &Unit, calls: &RuntimeCalls, orphans: &'a Orphans) -> Survey<'a> {
        let mut survey = Survey {
            seen: HashMap::new(),
            order: Vec::new(),
            parts: HashSet::new(),
            orphaned: HashSet::new(),
            unraised_regions: HashMap::new(),
            orphans,
        };
        for func in unit.functions.ids() {
            if let Some(seen) = collect_facts(unit, calls, func) {
                survey.parts.extend(seen.regions.iter().map(|r| r.0));
                survey.parts.extend(&seen.entries);
                survey.seen.insert(func, seen);
                survey.order.push(func);
            }
        }
        survey.reject_leaked_numbers(unit);
        for seen in survey
            .seen
            .values_mut()
            .filter(|seen| seen.shares_callers_team)
        {
            seen.rejected = seen
                .rejected
                .take()
                .or_else(|| seen.uses_threadprivate.clone());
        }
        let unread = |func: &FuncId| {
            let function = &unit.functions[*func];
            function.defined && function.body.is_none()
        };
        for func in unit.functions.ids().filter(unread) {
            survey
                .seen
                .insert(func, unimported_function_facts(unit, func));
        }
        survey.orphaned = survey.orphaned();
        survey
    }

    /// Rejects the regions whose thread number leaves their code.
    fn reject_leaked_numbers(&mut self, unit: &Unit) {
        let regions = self.seen.values().flat_map(|seen| &seen.regions);
        let targets: BTreeSet<FuncId> = regions.map(|region| region.0).collect();
        for target in targets {
            let inlined = |func| {
                self.parts.contains(&func)
                    || is_always_inline(unit, func) && !self.is_left_to_caller(func)
            };
            if let Some(why) = thread_num::leaked_number(unit, target, &inlined) {
                self.reject(target, why);
            }
        }
    }

    /// Returns the functions outside of regions, and the tasks inlined into them.
    fn orphaned(&self) -> HashSet<FuncId> {
        let own = |func: &FuncId| !self.is_outlined_code(*func);
        let mut open: Vec<FuncId> = self.order.iter().copied().filter(own).collect();
        let mut found: HashSet<FuncId> = open.iter().copied().collect();
        while let Some(func) = open.pop() {
            let seen = &self.seen[&func];
            let is_region = |func: &FuncId| seen.regions.iter().any(|region| region.0 == *func);
            let taken = seen.entries.iter().copied();
            let taken = taken.filter(|func| self.seen.contains_key(func) && !is_region(func));
            open.extend(taken.filter(|func| found.insert(*func)));
        }
        found
    }

    /// Returns the functions with constructs, in the order of the unit.
    pub fn functions(&self) -> Vec<FuncId> {
        let holds = |func: &&FuncId| self.has_constructs(**func);
        self.order.iter().filter(holds).copied().collect()
    }
    /// Returns true if a function calls the runtime for a construct.
    pub fn has_constructs(&self, func: FuncId) -> bool {
        self.seen.get(&func).is_some_and(|seen| seen.holds)
    }
    /// Returns true if a function must remain unchanged.
    pub fn is_rejected(&self, func: FuncId) -> bool {
        self.seen
            .get(&func)
            .is_some_and(|seen| seen.rejected.is_some())
    }
    /// Returns true if a function is the code of a region or task, to be inlined.
    pub fn is_outlined_code(&self, func: FuncId) -> bool {
        self.parts.contains(&func)
    }
    /// Returns true if the function's code may run without an enclosing region.
    pub fn is_orphaned(&self, func: FuncId) -> bool {
        self.orphaned.contains(&func)
    }
    /// Returns true if a function is left to its calling team, which may belong to either library. No function
    /// has known callers only: `alwaysinline` functions are inlined already, except for recursive functions, and any
    /// code may call the others.
    pub fn is_left_to_caller(&self, func: FuncId) -> bool {
        let shares = self
            .seen
            .get(&func)
            .is_some_and(|seen| seen.shares_callers_team);
        let stays = match self.orphans {
            Orphans::Raise => false,
            Orphans::RaiseOf(functions) => !functions.contains(&func),
            Orphans::LeaveUnraised => true,
        };
        let forgotten = is_planted(Mutant::CallerTeamIgnored) && self.is_called_here(func);
        shares && stays && !self.is_outlined_code(func) && !forgotten
    }
    /// Returns true if a function of the unit references `func`.
    fn is_called_here(&self, func: FuncId) -> bool {
        self.seen
            .values()
            .any(|seen| seen.references.contains(&func))
    }
    /// Returns true if a function begins raised regions.
    pub fn has_raised_regions(&self, func: FuncId) -> bool {
        let seen = self.seen.get(&func);
        seen.is_some_and(|seen| {
            seen.regions
                .iter()
                .any(|region| !self.is_region_unraised(region.0))
        })
    }
    /// Returns true if the region of outlined function `func` remains.
    pub fn is_region_unraised(&self, func: FuncId) -> bool {
        self.unraised_regions.contains_key(&func)
    }
    /// Returns the functions that `func` inlines: of regions, of tasks, and wrapped functions.
    pub fn inlined_functions(&self, func: FuncId) -> Vec<FuncId> {
        let Some(seen) = self.seen.get(&func) else {
            return Vec::new();
        };
        let regions = seen.regions.iter().map(|r| r.0);
        let others = seen.entries.iter().chain(&seen.wrapped).copied();
        regions.chain(others).collect()
    }

    /// Rejects a function: it must remain unchanged.
    pub fn reject(&mut self, func: FuncId, why: Reason) {
        if let Some(seen) = self.seen.get_mut(&func) {
            seen.rejected.get_or_insert(why);
        }
    }

    /// Propagates rejections to a fixpoint.
    pub fn settle(&mut self) {
        loop {
            let mut news: Vec<(FuncId, Reason)> = Vec::new();
            let mut kept: Vec<(FuncId, Reason)> = Vec::new();
            for &func in &self.order {
                let seen = &self.seen[&func];
                // A region that remains is still called.
                let is_region = |f: &&FuncId| seen.regions.iter().any(|r| r.0 == **f);
                let wrapped = seen.wrapped.iter().filter(|f| !is_region(f));
                let taken = seen.entries.iter().chain(wrapped);
                let entry = taken
                    .into_iter()
                    .find_map(|e| self.rejection_or_threadprivate(*e));
                if let (None, Some(why)) = (&seen.rejected, entry) {
                    news.push((func, why.clone()));
                }
                // libomp runs tasks left to it, and regions that the tasks begin.
                let left = || {
                    (self.is_left_to_caller(func) && !seen.entries.is_empty())
                        .then(left_with_tasks_reason)
                };
                for (target, ..) in &seen.regions {
                    let held = seen.rejected.clone().or_else(left);
                    let why = held.or_else(|| self.reachable_obstacle(*target));
                    if let Some(why) = why.filter(|_| !self.unraised_regions.contains_key(target)) {
                        kept.push((*target, why));
                    }
                }
            }
            for (target, why) in &kept {
                for reached in self.reachable_from(*target) {
                    if self.has_constructs(reached) && !self.is_rejected(reached) {
                        news.push((reached, why.clone()));
                    }
                }
            }
            if news.is_empty() && kept.is_empty() {
                return;
            }
            self.unraised_regions.extend(kept);
            for (func, why) in news {
                self.reject(func, why);
            }
        }
    }

    fn rejection(&self, func: FuncId) -> Option<&Reason> {
        self.seen.get(&func)?.rejected.as_ref()
    }

    /// Returns the reason why a function cannot be raised code.
    fn rejection_or_threadprivate(&self, func: FuncId) -> Option<&Reason> {
        let owns = || self.seen.get(&func)?.uses_threadprivate.as_ref();
        self.rejection(func).or_else(owns)
    }

    /// Returns the first obstacle reachable from a region's function.
    fn reachable_obstacle(&self, target: FuncId) -> Option<Reason> {
        let reached = self.reachable_from(target);
        reached
            .iter()
            .find_map(|func| self.rejection_or_threadprivate(*func))
            .cloned()
    }

    /// Returns the functions reachable from `from`, beginning with `from`.
    fn reachable_from(&self, from: FuncId) -> Vec<FuncId> {
        let mut found = vec![from];
        let mut known = HashSet::from([from]);
        let mut next = 0;
        while let Some(func) = found.get(next).copied() {
            next += 1;
            let Some(seen) = self.seen.get(&func) else {
                continue;
            };
            found.extend(seen.references.iter().filter(|m| known.insert(**m)));
        }
        found
    }

    /// Returns the call graph summaries.
    pub fn reach(&self, unit: &Unit) -> Reach {
        let speaking = self.functions_reaching(|func| {
            self.seen[&func].distinguishes_ranks || self.is_rejected(func)
        });
        Reach {
            pointer_may_distinguish: self
                .address_taken_functions(unit)
                .any(|func| speaking.contains(&func)),
            distinguishing: speaking,
            with_tasks_or_regions: self.functions_reaching(|func| self.has_constructs(func)),
            reaching_unknown: self.functions_reaching(|func| {
                self.seen[&func].calls_unknown || self.is_rejected(func)
            }),
            waiting: self.functions_reaching(|func| self.seen[&func].calls_waiting),
            spinning: self.functions_reaching(|func| self.seen[&func].spins),
            updating_or_locking: self.functions_reaching(|func| self.seen[&func].updates_or_locks),
            allocating: self.functions_reaching(|func| self.seen[&func].allocates),
        }
    }

    /// Returns the functions that a function pointer may point to, without functions called by the runtime
    /// only.
    fn address_taken_functions<'b>(&'b self, unit: &'b Unit) -> impl Iterator<Item = FuncId> + 'b {
        let targets = unit
            .globals
            .iter()
            .flat_map(|(_, global)| global.initial_symbols());
        let in_memory = targets.filter_map(|target| match target {
            Symbol::Func(func) => Some(func),
            Symbol::Global(_) => None,
        });
        let in_code = self.seen.values().flat_map(|seen| &seen.addresses_taken);
        let all = in_memory.chain(in_code.copied());
        all.filter(|func| !self.is_outlined_code(*func))
    }

    fn functions_reaching(&self, own: impl Fn(FuncId) -> bool) -> HashSet<FuncId> {
        let mut callers: HashMap<FuncId, Vec<FuncId>> = HashMap::new();
        for (&func, seen) in &self.seen {
            for &mentioned in &seen.references {
                callers.entry(mentioned).or_default().push(func);
            }
        }
        let mut open: Vec<FuncId> = self.seen.keys().copied().filter(|f| own(*f)).collect();
        let mut found: HashSet<FuncId> = open.iter().copied().collect();
        while let Some(func) = open.pop() {
            for &caller in callers.get(&func).into_iter().flatten() {
                if found.insert(caller) {
                    open.push(caller);
                }
            }
        }
        found
    }

    /// Returns the functions with the code of a region or task: the outlined function and the inner functions
    /// that compilers emit for debuggers and mark for inlining.
    fn inner_functions(&self, part: FuncId) -> Vec<FuncId> {
        let mut found = Vec::new();
        let mut open = vec![part];
        while let Some(func) = open.pop() {
            let Some(seen) = self.seen.get(&func).filter(|_| !found.contains(&func)) else {
                continue;
            };
            found.push(func);
            let is_region = |func: &FuncId| seen.regions.iter().any(|region| region.0 == *func);
            open.extend(seen.wrapped.iter().filter(|func| !is_region(func)));
        }
        found
    }

    /// Returns the outcome of every region, in the order of the unit.
    pub fn records(&self, unit: &Unit, done: &Assembled) -> Vec<RegionRecord> {
        let mut records = Vec::new();
        let parts = self
            .parts
            .iter()
            .flat_map(|part| self.inner_functions(*part));
        let parts: HashSet<FuncId> = parts.collect();
        for &func in &self.order {
            let seen = &self.seen[&func];
            for (target, span, name) in &seen.regions {
                let code = self.inner_functions(*target).into_iter();
                let constructs = code.flat_map(|func| self.seen[&func].constructs.clone());
                records.push(RegionRecord {
                    function: name.clone(),
                    span: span.clone(),
                    outcome: match self.unraised_regions.get(target) {
                        Some(why) => Outcome::Unraised(why.clone()),
                        None if done.folded.contains(&(func, *target)) => Outcome::Loops,
                        None => {
                            Outcome::Team(done.with_distinct_ranks.get(&(func, *target)).cloned())
                        }
                    },
                    constructs: constructs.collect(),
                });
            }
            let in_regions = parts.contains(&func) && !self.is_orphaned(func);
            if seen.constructs.is_empty() || self.is_outlined_code(func) || in_regions {
                continue;
            }
            let function = &unit.functions[func];
            let name = function.display_name();
            records.push(RegionRecord {
                function: name.to_string(),
                span: seen.constructs.first().and_then(|c| c.span.clone()),
                outcome: match &seen.rejected {
                    Some(why) => Outcome::Unraised(why.clone()),
                    None if self.is_left_to_caller(func) => Outcome::LeftToCaller,
                    None => Outcome::Orphan,
                },
                constructs: seen.constructs.clone(),
            });
        }
        records
    }
}

/// Returns the facts of a defined function without an imported body. A function that import omits because no
/// derivative requires it (text output, code on no-return paths) counts as unknown code; any other function is
/// rejected.
fn unimported_function_facts(unit: &Unit, func: FuncId) -> FunctionFacts {
    if unit.is_user_declared(func) || is_cpp_text_function(&unit.functions[func].name) {
        return FunctionFacts {
            calls_unknown: true,
            allocates: true,
            ..FunctionFacts::default()
        };
    }
    let reason = Reason {
        text: "a function reached from the region cannot be imported".into(),
        span: unit.functions[func].span.clone(),
    };
    FunctionFacts {
        rejected: Some(reason),
        ..FunctionFacts::default()
    }
}

/// Returns the reason why regions remain in a function left, with its tasks, to its calling team.
fn left_with_tasks_reason() -> Reason {
    Reason {
        text: "the enclosing function creates tasks and contains worksharing of the calling team"
            .into(),
        span: None,
    }
}

/// Collects the facts of a function.
fn collect_facts(unit: &Unit, calls: &RuntimeCalls, func: FuncId) -> Option<FunctionFacts> {
    let body = unit.functions[func].body.as_ref()?;
    let mut seen = FunctionFacts::default();
    for op in body.walk(body.root()) {
        for (index, value) in body.operands(op).enumerate() {
            let Some(id) = body.as_const(value) else {
                continue;
            };
            match unit.constant(id).kind {
                ConstKind::Func(other) => {
                    let is_called = index == 0 && body.kind(op).call_info().is_some();
                    if !is_called && !is_derivative_request(unit, body, op) {
                        seen.addresses_taken.insert(other);
                    }
                    if seen.references.insert(other) && is_always_inline(unit, other) {
                        seen.wrapped.push(other);
                    }
                }
                ConstKind::Global { global, .. } => {
                    if unit.globals[global].thread_local {
                        let text = "a `threadprivate` or `thread_local` variable is used";
                        seen.rejected.get_or_insert(reason(unit, body, op, text));
                    }
                    let table = Some(&unit.globals[global]).filter(|table| table.constant);
                    let targets = table.into_iter().flat_map(Global::initial_symbols);
                    seen.references
                        .extend(targets.filter_map(|target| match target {
                            Symbol::Func(func) => Some(func),
                            Symbol::Global(_) => None,
                        }));
                }
                _ => {}
            }
        }
        // Compiler-generated task functions call functions passed to them.
        seen.calls_unknown |= !is_always_inline(unit, func) && calls_unknown(unit, body, op);
        seen.calls_waiting |= may_call_waiting(unit, body, op) || rereads_in_loop(unit, body, op);
        seen.spins |= may_spin(unit, body, op);
        let locks = calls.id(unit, body, op) == Some(OpenMpFn::Critical);
        let updates = matches!(
            body.kind(op),
            OpKind::AtomicRmw(..) | OpKind::CmpXchg { .. }
        );
        seen.updates_or_locks |= locks || updates;
        seen.allocates |= is_allocation(unit, body, op);
        let Some(id) = calls.id(unit, body, op) else {
            continue;
        };
        seen.holds |= !id.is_query_or_setting();
        seen.distinguishes_ranks |= depends_on_ranks(id);
        seen.shares_callers_team |= depends_on_ranks(id) && !id.is_query_or_setting();
        if let Some(text) = call_obstacle(unit, body, op, id) {
            let place = match id {
                OpenMpFn::ThreadPrivate => &mut seen.uses_threadprivate,
                _ => &mut seen.rejected,
            };
            place.get_or_insert(reason(unit, body, op, text));
        }
        let span = span_of(unit, body, op);
        if let Some(name) = construct_name(id) {
            seen.constructs.push(Construct {
                name,
                span: span.clone(),
            });
        }
        let args = unit.call_args(body, op);
        match id {
            OpenMpFn::Fork | OpenMpFn::ForkIf => {
                match parallel_region::outlined_function(unit, body, op) {
                    Some(target) => seen.regions.push((target, span, function_name(unit, func))),
                    None => {
                        let text = "the outlined function of a parallel region is unknown";
                        seen.rejected.get_or_insert(reason(unit, body, op, text));
                    }
                }
            }
            OpenMpFn::TaskAlloc => {
                let entry = args.get(5).and_then(|v| body.as_function(unit, *v));
                seen.entries.extend(entry);
            }
            _ => {}
        }
    }
    Some(seen)
}

/// Returns true if `op` requests a derivative.
fn is_derivative_request(unit: &Unit, body: &Body, op: Op) -> bool {
    let callee = unit.callee(body, op);
    callee.is_some_and(|func| differentiation_call(&unit.functions[func].name).is_some())
}

/// Returns true for a function that its compiler generated for inlining.
pub(super) fn is_always_inline(unit: &Unit, func: FuncId) -> bool {
    let function = &unit.functions[func];
    let attrs = unit.attrs(function.attrs);
    function.linkage == Linkage::Internal && attrs.function("alwaysinline").is_some()
}

fn function_name(unit: &Unit, func: FuncId) -> String {
    let function = &unit.functions[func];
    let name = function.display_name();
    name.split(".omp_outlined")
        .next()
        .unwrap_or(name)
        .to_string()
}

/// Returns the reason why a call forbids raising, if any.
fn call_obstacle(unit: &Unit, body: &Body, call: Op, id: OpenMpFn) -> Option<String> {
    let text = match id {
        OpenMpFn::Lock => "an OpenMP lock is used",
        OpenMpFn::Ordered => "`ordered` is used",
        OpenMpFn::Depend => "dependences between tasks or iterations are used",
        OpenMpFn::Cancel => "cancellation is used",
        OpenMpFn::ThreadPrivate => "a `threadprivate` or `thread_local` variable is used",
        OpenMpFn::Target => "`teams` or `target` is used",
        OpenMpFn::TaskReduction => "a task reduction is used",
        OpenMpFn::Other => {
            let name = &unit.functions[unit.callee(body, call)?].name;
            return Some(format!(
                "the unknown OpenMP runtime function `{name}` is called"
            ));
        }
        _ => return None,
    };
    Some(text.to_owned())
}

/// Returns true if the call has a different meaning in a team of one rank: ranks are distinguished, or meet.
fn depends_on_ranks(id: OpenMpFn) -> bool {
    matches!(
        id,
        OpenMpFn::ThreadNum
            | OpenMpFn::NumThreads
            | OpenMpFn::InParallel
            | OpenMpFn::Level
            | OpenMpFn::AncestorInfo
            | OpenMpFn::StaticInit
            | OpenMpFn::DispatchInit
            | OpenMpFn::Reduce
            | OpenMpFn::ReduceNowait
            | OpenMpFn::Barrier
            | OpenMpFn::Single
            | OpenMpFn::Master
            | OpenMpFn::Masked
            | OpenMpFn::CopyPrivate
    )
}

/// Returns the source name of the construct that a call begins.
fn construct_name(id: OpenMpFn) -> Option<&'static str> {
    Some(match id {
        OpenMpFn::StaticInit => "for",
        OpenMpFn::DispatchInit => "for (dynamic)",
        OpenMpFn::Reduce | OpenMpFn::ReduceNowait => "reduction",
        OpenMpFn::Barrier => "barrier",
        OpenMpFn::Single => "single",
        OpenMpFn::Master => "master",
        OpenMpFn::Masked => "masked",
        OpenMpFn::Critical => "critical",
        OpenMpFn::TaskAlloc => "task",
        OpenMpFn::TaskWait => "taskwait",
        OpenMpFn::TaskGroup => "taskgroup",
        OpenMpFn::TaskLoop => "taskloop",
        OpenMpFn::Flush => "flush",
        OpenMpFn::Ordered => "ordered",
        OpenMpFn::Depend => "depend",
        OpenMpFn::Cancel => "cancel",
        OpenMpFn::Target => "target",
        OpenMpFn::TaskReduction => "task reduction",
        _ => return None,
    })
}
