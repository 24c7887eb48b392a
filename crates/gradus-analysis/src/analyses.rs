//! The analysis manager: caches call graphs, effects and alias sets across passes.
//!
//! [`Analyses`] keeps the answers of [`CallGraph::of`], [`Effects::of`] and [`AliasSets::of`]. An answer is valid as
//! long as everything that its computation read is unchanged; there is no invalidation by passes. Each answer therefore
//! carries its [`Dependencies`]:
//!
//! - the state of each function that the answer reads: body stamp ([`Body::version`]), attributes, linkage, type,
//!   name and origin;
//! - the facts of the unit besides functions ([`Unit::facts_version`]): variables and statements of the program;
//! - for a call graph with an indirect call, the state of all functions of the program and the number of variables:
//!   such a call reaches every function whose address the unit takes.
//!
//! A body that a pass has taken out has no stamp. The state then says so, and the answer is reused only while that
//! body, too, is out: to the analyses, a function without a body is an external function.
//!
//! Effects depend on the call graph that orders their computation. The graph is a part of the key: effects over a
//! graph older than the bodies are not the effects over the graph of the present bodies. Alias sets have the same key.
//! The derivatives of one function in both modes, and the search for its outputs, share alias sets.
//!
//! After an edit, effects are computed again for the changed functions, and for those that meet other effects at a call
//! (`memory/summary_reuse.rs`).
//!
//! With [`Verification::Recompute`] each cached answer is computed again and compared. A difference is an internal
//! error in [`Analyses::take_findings`].

use crate::call_graph::{CallGraph, Callee};
use crate::memory::effects::Effects;
use crate::memory::summary_reuse::{self, EarlierEffects};
use crate::points_to::alias_sets::AliasSets;
use gradus_ir::{
    AttrsId, Body, BodyVersion, Code, Diagnostic, Entity, FactsVersion, FuncId, Linkage, TypeId,
    Unit,
};
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

/// Maximum number of cached call graphs, and of cached effects.
const ENTRIES_MAX: usize = 32;

/// Maximum number of cached alias sets: an answer may need hundreds of megabytes.
const ALIAS_SETS_MAX: usize = 2;

/// Treatment of cached answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verification {
    /// A cached answer is returned.
    #[default]
    Off,
    /// A cached answer is compared with a new one.
    Recompute,
}

/// What points-to analysis assumes of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Aliasing {
    /// Nothing, unless the analysis is too much work otherwise ([`AliasSets::of`]).
    #[default]
    Any,
    /// The aliasing rules of its language ([`AliasSets::by_aliasing_rules`]).
    Rules,
}

impl Aliasing {
    fn alias_sets(self, unit: &Unit, closure: &CallGraph) -> AliasSets {
        match self {
            Aliasing::Any => AliasSets::of(unit, closure),
            Aliasing::Rules => AliasSets::by_aliasing_rules(unit, closure),
        }
    }
}

/// Cached call graphs, effects and alias sets of the bodies of a compilation.
///
/// The facts of a unit have a stamp that no other unit shares, except copies. An answer is therefore never reused for
/// another program.
#[derive(Debug, Default)]
pub struct Analyses {
    verification: Verification,
    aliasing: Aliasing,
    /// True if an answer, cached or dropped, assumed less of the program than [`Aliasing::Rules`] lets it.
    has_assumed_less: bool,
    call_graphs: VecDeque<Entry<Vec<FuncId>, CallGraph>>,
    effects: VecDeque<Entry<Rc<CallGraph>, Effects>>,
    alias_sets: VecDeque<Entry<Rc<CallGraph>, AliasSets>>,
    findings: Vec<Diagnostic>,
}

/// A cached answer.
#[derive(Debug)]
struct Entry<Key, Answer> {
    key: Key,
    dependencies: Dependencies,
    answer: Rc<Answer>,
}

impl Analyses {
    /// Creates a manager without answers.
    pub fn new(verification: Verification, aliasing: Aliasing) -> Analyses {
        Analyses {
            verification,
            aliasing,
            ..Analyses::default()
        }
    }

    /// Returns the call graph of `roots`.
    pub fn call_graph(&mut self, unit: &Unit, roots: &[FuncId]) -> Rc<CallGraph> {
        let is_valid = |entry: &Entry<Vec<FuncId>, CallGraph>| {
            entry.key == roots && entry.dependencies.hold(unit)
        };
        if let Some(known) = find(&mut self.call_graphs, is_valid) {
            if self.verification == Verification::Recompute && *known != CallGraph::of(unit, roots)
            {
                self.report("call graph", unit, roots);
            }
            return known;
        }
        let answer = Rc::new(CallGraph::of(unit, roots));
        let dependencies = Dependencies::of_call_graph(unit, &answer);
        let entry = Entry {
            key: roots.to_vec(),
            dependencies,
            answer: Rc::clone(&answer),
        };
        add(&mut self.call_graphs, entry, ENTRIES_MAX);
        answer
    }

    /// Returns the effects over the call graph of `roots`.
    pub fn effects(&mut self, unit: &Unit, roots: &[FuncId]) -> Rc<Effects> {
        let closure = self.call_graph(unit, roots);
        self.effects_over(unit, &closure)
    }

    /// Returns the effects over a call graph, which may be older than the bodies.
    pub fn effects_over(&mut self, unit: &Unit, closure: &Rc<CallGraph>) -> Rc<Effects> {
        let is_valid = |entry: &Entry<Rc<CallGraph>, Effects>| {
            Rc::ptr_eq(&entry.key, closure) && entry.dependencies.hold(unit)
        };
        if let Some(known) = find(&mut self.effects, is_valid) {
            if self.verification == Verification::Recompute && *known != Effects::of(unit, closure)
            {
                self.report("effects", unit, closure.roots());
            }
            return known;
        }
        let answer = Rc::new(self.new_effects(unit, closure));
        let dependencies = Dependencies::of_effects(unit, closure);
        let entry = Entry {
            key: Rc::clone(closure),
            dependencies,
            answer: Rc::clone(&answer),
        };
        add(&mut self.effects, entry, ENTRIES_MAX);
        answer
    }

    /// Computes effects. Functions whose bodies and callees are as in a cached answer keep their summaries.
    fn new_effects(&mut self, unit: &Unit, closure: &Rc<CallGraph>) -> Effects {
        let shares_most = |entry: &&Entry<Rc<CallGraph>, Effects>| {
            let functions = closure.functions().iter();
            let shared = functions.filter(|func| entry.key.contains(**func));
            entry.dependencies.facts == unit.facts_version()
                && 2 * shared.count() >= closure.functions().len()
        };
        let Some(entry) = self.effects.iter().rev().find(shares_most) else {
            // Not an error: no cached answer is about these functions.
            return Effects::of(unit, closure);
        };
        let state_of = |func| entry.dependencies.state_of(func);
        let earlier = EarlierEffects {
            graph: &entry.key,
            effects: &entry.answer,
            is_unchanged: &|func| state_of(func).is_some_and(|state| state.holds(unit, func)),
            keeps_interface: &|func| {
                state_of(func).is_some_and(|state| state.keeps_interface(unit, func))
            },
        };
        let answer = summary_reuse::effects(unit, closure, &earlier);
        if self.verification == Verification::Recompute && answer != Effects::of(unit, closure) {
            self.report("summaries", unit, closure.roots());
        }
        answer
    }

    /// Returns the alias sets of a call graph.
    pub fn alias_sets(&mut self, unit: &Unit, closure: &Rc<CallGraph>) -> Rc<AliasSets> {
        let is_valid = |entry: &Entry<Rc<CallGraph>, AliasSets>| {
            Rc::ptr_eq(&entry.key, closure) && entry.dependencies.hold(unit)
        };
        if let Some(known) = find(&mut self.alias_sets, is_valid) {
            let known = known.with_types_of(unit);
            if self.verification == Verification::Recompute
                && *known != self.aliasing.alias_sets(unit, closure)
            {
                self.report("alias sets", unit, closure.roots());
            }
            return known;
        }
        let answer = Rc::new(self.aliasing.alias_sets(unit, closure));
        self.has_assumed_less |= answer.may_assume_more();
        let dependencies = Dependencies::of_alias_sets(unit, closure);
        let entry = Entry {
            key: Rc::clone(closure),
            dependencies,
            answer: Rc::clone(&answer),
        };
        add(&mut self.alias_sets, entry, ALIAS_SETS_MAX);
        answer
    }

    /// Returns true if some cached alias sets assume nothing of the program, and an answer would change if the alias sets
    /// assumed the aliasing rules.
    pub fn may_assume_more(&self) -> bool {
        let mut known = self.alias_sets.iter().map(|entry| &entry.answer);
        self.has_assumed_less && known.any(|sets| !sets.assumes_aliasing_rules())
    }

    /// Removes and returns the internal errors on cached answers that differed from new ones.
    pub fn take_findings(&mut self) -> Vec<Diagnostic> {
        std::mem::take(&mut self.findings)
    }

    fn report(&mut self, what: &str, unit: &Unit, roots: &[FuncId]) {
        let name = |func: &FuncId| unit.functions[*func].name.as_str();
        let names: Vec<&str> = roots.iter().map(name).collect();
        let message = format!(
            "internal error: the cached {what} of {} is outdated",
            names.join(", ")
        );
        let finding = Diagnostic::error(Code::CompilerDied, message)
            .help("this is a bug in Gradus: please report this message with the program");
        self.findings.push(finding);
    }
}

/// Returns the first valid answer and marks the answer as the latest one.
fn find<Key, Answer>(
    entries: &mut VecDeque<Entry<Key, Answer>>,
    is_valid: impl Fn(&Entry<Key, Answer>) -> bool,
) -> Option<Rc<Answer>> {
    let at = entries.iter().rposition(is_valid)?;
    let entry = entries.remove(at)?;
    let answer = Rc::clone(&entry.answer);
    entries.push_back(entry);
    Some(answer)
}

/// Adds an answer and drops the answer that was unused for longest.
fn add<Key, Answer>(
    entries: &mut VecDeque<Entry<Key, Answer>>,
    entry: Entry<Key, Answer>,
    entries_max: usize,
) {
    if entries.len() == entries_max {
        entries.pop_front();
    }
    entries.push_back(entry);
}

/// Everything that the computation of an answer read.
#[derive(Debug)]
struct Dependencies {
    facts: FactsVersion,
    functions: Vec<(FuncId, FunctionState)>,
    /// For answers that depend on all functions of the program: the number of variables.
    variables: Option<usize>,
}

/// The state of a function that the analyses read.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FunctionState {
    /// `None`: the function has no body in the unit, or a pass has taken the body out.
    body: Option<BodyVersion>,
    name: String,
    ty: TypeId,
    attrs: AttrsId,
    linkage: Linkage,
    defined: bool,
    derived_from: Option<FuncId>,
}

impl FunctionState {
    fn of(unit: &Unit, func: FuncId) -> FunctionState {
        let function = &unit.functions[func];
        FunctionState {
            body: function.body.as_deref().map(Body::version),
            name: function.name.clone(),
            ty: function.ty,
            attrs: function.attrs,
            linkage: function.linkage,
            defined: function.defined,
            derived_from: function.derived_from,
        }
    }

    /// Returns true if the function has this state. Compares without a copy of the name.
    fn holds(&self, unit: &Unit, func: FuncId) -> bool {
        self.body == unit.functions[func].body.as_deref().map(Body::version)
            && self.keeps_interface(unit, func)
    }

    /// Returns true if the function has this state, except for the contents of the body.
    fn keeps_interface(&self, unit: &Unit, func: FuncId) -> bool {
        let function = &unit.functions[func];
        self.body.is_some() == function.body.is_some()
            && self.name == function.name
            && self.ty == function.ty
            && self.attrs == function.attrs
            && self.linkage == function.linkage
            && self.defined == function.defined
            && self.derived_from == function.derived_from
    }
}

impl Dependencies {
    /// Returns what a call graph depends on: its functions, callees without a body, address-taken functions.
    fn of_call_graph(unit: &Unit, graph: &CallGraph) -> Dependencies {
        let mut read = named_functions(graph);
        let sites = || graph.functions().iter().flat_map(|f| graph.calls_in(*f));
        let is_indirect = sites().any(|site| matches!(site.callee, Callee::Indirect(_)));
        if is_indirect {
            read.extend(program_functions(unit));
        }
        Dependencies::new(unit, read, is_indirect.then(|| unit.globals.len()))
    }

    /// Returns what effects depend on: the functions of the graph, and the callees of the present bodies.
    fn of_effects(unit: &Unit, graph: &CallGraph) -> Dependencies {
        let mut read = named_functions(graph);
        for (_, body) in graph.bodies(unit) {
            let ops = body.walk(body.root());
            read.extend(ops.filter_map(|op| unit.callee(body, op)));
        }
        Dependencies::new(unit, read, None)
    }

    /// Returns what alias sets depend on: what the call graph and effects depend on.
    fn of_alias_sets(unit: &Unit, graph: &CallGraph) -> Dependencies {
        let mut own = Dependencies::of_effects(unit, graph);
        let of_graph = Dependencies::of_call_graph(unit, graph);
        own.functions.extend(of_graph.functions);
        own.functions.sort_unstable_by_key(|(func, _)| *func);
        own.functions.dedup_by_key(|(func, _)| *func);
        own.variables = of_graph.variables;
        own
    }

    fn new(unit: &Unit, read: BTreeSet<FuncId>, variables: Option<usize>) -> Dependencies {
        let functions = read.into_iter();
        Dependencies {
            facts: unit.facts_version(),
            functions: functions
                .map(|func| (func, FunctionState::of(unit, func)))
                .collect(),
            variables,
        }
    }

    /// Returns the state of a function, if the answer depends on it.
    fn state_of(&self, func: FuncId) -> Option<&FunctionState> {
        let place = self.functions.binary_search_by_key(&func, |(own, _)| *own);
        place.ok().map(|at| &self.functions[at].1)
    }

    /// Returns true if nothing has changed.
    fn hold(&self, unit: &Unit) -> bool {
        self.facts == unit.facts_version()
            && self.functions.iter().all(|(func, state)| {
                func.index() < unit.functions.len() && state.holds(unit, *func)
            })
            && self
                .variables
                .is_none_or(|count| count == unit.globals.len() && self.has_all(unit))
    }

    /// Returns true if the dependencies list every function of the program.
    fn has_all(&self, unit: &Unit) -> bool {
        program_functions(unit).all(|func| self.state_of(func).is_some())
    }
}

/// Returns the functions that a call graph names.
fn named_functions(graph: &CallGraph) -> BTreeSet<FuncId> {
    let sites = graph.functions().iter().flat_map(|f| graph.calls_in(*f));
    let callees = sites.filter_map(|site| match site.callee {
        Callee::Inside(func) | Callee::Outside(func) => Some(func),
        Callee::Indirect(_) | Callee::Foreign => None,
    });
    let functions = [graph.roots(), graph.functions(), graph.address_taken()];
    let functions = functions.into_iter().flatten().copied();
    functions.chain(callees).collect()
}

/// Returns the functions whose bodies are searched for addresses of functions: all except derived ones.
fn program_functions(unit: &Unit) -> impl Iterator<Item = FuncId> {
    let functions = unit.functions.iter();
    let own = functions.filter(|(_, function)| function.derived_from.is_none());
    own.map(|(func, _)| func)
}

#[cfg(test)]
mod tests;
