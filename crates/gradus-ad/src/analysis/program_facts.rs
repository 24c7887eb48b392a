//! Whole-program facts for one request: analyses of the reachable call graph, run once before any derivative
//! is built.

use crate::variant::{ArgActivity, ResultActivity};
use gradus_analysis::{
    Activity, AliasSetId, AliasSets, Analyses, CallGraph, Effects, MemoryActivity, ShadowState,
    TbaaConflicts, TornWrites, TypeMap, request_findings,
};
use gradus_ir::{Diagnostic, FuncId, GlobalId, Severity, Unit};
use std::collections::BTreeSet;
use std::rc::Rc;

/// The function to differentiate, with the activity of arguments and result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// The function.
    pub func: FuncId,
    /// Activity per parameter.
    pub args: Vec<ArgActivity>,
    /// Activity of the result.
    pub result: ResultActivity,
}

/// Facts about the call graph of a request. The facts are valid as long as no primal is edited.
#[derive(Clone, Debug)]
pub struct ProgramFacts {
    pub(crate) closure: Rc<CallGraph>,
    pub(crate) memory: Rc<AliasSets>,
    pub(crate) retyped: TbaaConflicts,
    pub(crate) memory_cells: TypeMap,
    pub(crate) effects: Rc<Effects>,
    pub(crate) classes: MemoryActivity,
    pub(crate) thrown: TornWrites,
    warnings: Vec<Diagnostic>,
}

impl ProgramFacts {
    /// Analyses the call graph of `root`.
    ///
    /// # Errors
    /// Conflicts in the request's memory: globals that cannot have shadows, and active values in memory that
    /// the request declares inactive.
    pub fn of(
        unit: &Unit,
        analyses: &mut Analyses,
        root: &Root,
    ) -> Result<ProgramFacts, Vec<Diagnostic>> {
        let closure = analyses.call_graph(unit, &[root.func]);
        let memory = analyses.alias_sets(unit, &closure);
        let retyped = TbaaConflicts::of(unit, &closure, &memory);
        let words = TypeMap::of(unit, &closure, &memory);
        let effects = analyses.effects_over(unit, &closure);
        let request = gradus_analysis::Request {
            root: root.func,
            args: root.args.iter().map(|a| requested(*a)).collect(),
            result: root.result != ResultActivity::Const,
        };
        let view = gradus_analysis::View {
            unit,
            closure: &closure,
            memory: &memory,
            words: &words,
        };
        let classes = MemoryActivity::of(view, &request);
        let findings = request_findings(view, &request, &classes);
        if findings.iter().any(|f| f.severity == Severity::Error) {
            return Err(findings);
        }
        let thrown = TornWrites::of(view, &classes, &effects);
        Ok(ProgramFacts {
            closure,
            thrown,
            memory,
            retyped,
            memory_cells: words,
            effects,
            classes,
            warnings: findings,
        })
    }

    /// Returns the warnings of the analyses.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }

    /// Returns the functions of the call graph, callees before callers.
    pub fn functions(&self) -> &[FuncId] {
        self.closure.functions()
    }

    /// Returns true if a global has a shadow in which floats carry derivatives.
    pub(crate) fn carries_floats(&self, unit: &Unit, global: GlobalId) -> bool {
        let class = self.memory.global(global).map(|place| place.class);
        self.classes.global(self.view(unit), global) == ShadowState::Real
            && class.is_some_and(|class| self.classes.holds_active_floats(class))
    }

    /// Returns true if a function of the call graph writes active values to memory.
    pub(crate) fn writes_active_memory(&self) -> bool {
        let mut classes = self.memory.alias_sets().map(|(class, _)| class);
        classes
            .any(|class| self.classes.is_written(class) && self.classes.holds_active_floats(class))
    }

    /// Returns true if the memory of a global may hold pointers.
    pub(crate) fn holds_pointers(&self, global: GlobalId) -> bool {
        let place = self.memory.global(global);
        place.is_some_and(|place| self.memory_cells.types_of_set(place.class).has_pointer())
    }

    /// Returns the alias sets of blocks that variables own ([`gradus_analysis::owned_blocks`]).
    pub(crate) fn owned_blocks(&self, unit: &Unit) -> BTreeSet<AliasSetId> {
        let is_freed = |class| self.classes.is_always_freed(class);
        gradus_analysis::owned_blocks(self.view(unit), is_freed)
    }

    pub(crate) fn view<'a>(&'a self, unit: &'a Unit) -> gradus_analysis::View<'a> {
        gradus_analysis::View {
            unit,
            closure: &self.closure,
            memory: &self.memory,
            words: &self.memory_cells,
        }
    }
}

fn requested(activity: ArgActivity) -> Activity {
    match activity {
        ArgActivity::Const => Activity::Const,
        ArgActivity::Dup | ArgActivity::MaybeDup => Activity::Dup,
        ArgActivity::DupNoNeed => Activity::DupNoNeed,
        ArgActivity::Active => Activity::Out,
    }
}
