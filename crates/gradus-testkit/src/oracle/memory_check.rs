//! Checks the points-to analyses on memory programs, against the interpreter and against each other.
//!
//! 1. Each executed access and indirect call lies in the targets by inclusion, by inclusion with TBAA tags, and by
//!    unification.
//! 2. Accesses that may overlap by inclusion may overlap by unification; the same holds for escapes and callees. A
//!    difference is a fault of one analysis, or the one by inclusion is less precise at this place.
//!
//! The interpreter runs unknown code (`hidden_…`), the analyses see declarations.

use crate::oracle::points_to_check::PointsToCheck;
use gradus_analysis::{AliasSetId, AliasSets, CallGraph, Callee, CellRef, MemoryOrigin};
use gradus_interp::{AllocationSite, Machine, Options, TracedAccess, Value as RunValue};
use gradus_ir::externals::{ExternalFn, MemoryFn};
use gradus_ir::{FuncId, Op, OpKind, Unit, Value};
use std::collections::BTreeSet;

/// The start of the names of unknown code and of its variables.
const HIDDEN: &str = "hidden_";

/// Maximal number of accesses whose pairs are compared.
const ACCESSES_MAX: usize = 150;

/// The result of a check.
#[derive(Clone, Debug, Default)]
pub struct MemoryFindings {
    /// The number of compared accesses and indirect calls.
    pub compared: usize,
    /// The executed accesses and calls outside of the analysed targets.
    pub unsound: BTreeSet<String>,
    /// The classes of differences between the analyses, with an example of each.
    pub wider: Vec<(String, String)>,
    /// The kind of trap that ended the program.
    pub trap: Option<String>,
}

/// Runs `@hidden_main` of a memory program, and checks the analyses of `@f`. The analysis by unification knows no bits of
/// addresses; a program that assembles addresses is checked without it.
///
/// # Errors
/// A program without these functions.
pub fn check_memory_program(
    mut unit: Unit,
    assembles_addresses: bool,
) -> Result<MemoryFindings, String> {
    let main = unit.function("hidden_main").ok_or("no `@hidden_main`")?;
    let root = unit.function("f").ok_or("no `@f`")?;
    let options = Options {
        max_steps: 200_000,
        max_calls: 1000,
        trace_accesses: true,
        ..Options::default()
    };
    let mut machine = Machine::with_options(&unit, options);
    let outcome = machine.call_function(main, &[RunValue::i64(1)]);
    let trap = outcome.err().map(|trap| format!("{:?}", trap.kind));
    let Some(trace) = machine.access_trace().cloned() else {
        unreachable!("the option is set");
    };
    drop(machine);
    for func in unit.functions.ids().collect::<Vec<_>>() {
        let function = &mut unit.functions[func];
        if function.name.starts_with(HIDDEN) {
            function.body = None;
            function.defined = false;
        }
    }
    let closure = CallGraph::of(&unit, &[root]);
    let mut findings = MemoryFindings {
        trap,
        ..MemoryFindings::default()
    };
    let exact = AliasSets::of(&unit, &closure);
    let coarse = AliasSets::by_unification(&unit, &closure);
    let comparison = Comparison {
        unit: &unit,
        closure: &closure,
        exact: &exact,
        coarse: &coarse,
    };
    if !assembles_addresses {
        findings.wider = comparison.differences();
    }
    let mut analyses = vec![("inclusion", exact)];
    if !unit.tbaa_types.is_empty() {
        let by_tags = AliasSets::by_aliasing_rules(&unit, &closure);
        analyses.push(("inclusion by tags", by_tags));
    }
    if !assembles_addresses {
        analyses.push(("unification", coarse));
    }
    for (name, sets) in analyses {
        let check = PointsToCheck { unit: &unit, sets };
        let mut wrong = BTreeSet::new();
        for access in trace.accesses() {
            let visible = visible_access(&unit, access);
            // A set by unification does not record that it also stands for memory behind an argument.
            if name == "unification" && visible.site == AllocationSite::External {
                continue;
            }
            if closure.contains(access.func) {
                check.access(visible, &BTreeSet::new(), &mut wrong);
            } else if !is_hidden(&unit, access.func) {
                wrong.insert(format!(
                    "function `{}` is unreachable",
                    unit.functions[access.func].name
                ));
            }
            findings.compared += 1;
        }
        for &call in trace.indirect_calls() {
            // Initial functions bound the callees by unification.
            if name == "unification" && is_hidden(&unit, call.2) {
                continue;
            }
            if closure.contains(call.0) {
                check.indirect_call(call, &mut wrong);
            }
        }
        let named = wrong.into_iter().map(|text| format!("{name}: {text}"));
        findings.unsound.extend(named);
    }
    Ok(findings)
}

fn is_hidden(unit: &Unit, func: FuncId) -> bool {
    unit.functions[func].name.starts_with(HIDDEN)
}

/// Returns an access with memory of unknown code as external memory.
fn visible_access(unit: &Unit, access: &TracedAccess) -> TracedAccess {
    let is_unknown = match access.site {
        AllocationSite::Alloca(func, _)
        | AllocationSite::Heap(func, _)
        | AllocationSite::ByValue(func, _)
        | AllocationSite::Function(func) => is_hidden(unit, func),
        AllocationSite::Global(global) => unit.globals[global].name.starts_with(HIDDEN),
        AllocationSite::External | AllocationSite::User => true,
    };
    TracedAccess {
        site: if is_unknown {
            AllocationSite::External
        } else {
            access.site
        },
        ..*access
    }
}

/// An access in the text of the program.
#[derive(Clone, Copy, Debug)]
struct Access {
    func: FuncId,
    op: Op,
    pointer: Value,
    size_bytes: i64,
}

/// The comparison of the two analyses.
struct Comparison<'a> {
    unit: &'a Unit,
    closure: &'a CallGraph,
    exact: &'a AliasSets,
    coarse: &'a AliasSets,
}

impl Comparison<'_> {
    /// Returns the classes of differences, with an example of each.
    fn differences(&self) -> Vec<(String, String)> {
        let mut found: Vec<(String, String)> = Vec::new();
        let mut add = |class: String, example: String| {
            if !found.iter().any(|known| known.0 == class) {
                found.push((class, example));
            }
        };
        let accesses = self.accesses();
        for (index, &a) in accesses.iter().enumerate() {
            for &b in &accesses[..index] {
                let Some(witness) = overlap(self.exact, a, b) else {
                    continue;
                };
                if overlap(self.coarse, a, b).is_none() {
                    let class = self.class_of(witness, a, b);
                    add(class, format!("{} and {}", self.text(a), self.text(b)));
                }
            }
        }
        for (_, set) in self.exact.alias_sets().filter(|(_, set)| set.escaped) {
            for site in set.origins.iter().filter(|site| has_site(site)) {
                let mut sets = self.coarse.alias_sets();
                if !sets.any(|(_, other)| other.escaped && other.origins.contains(site)) {
                    add("escape".into(), format!("{site:?}"));
                }
            }
        }
        for &func in self.closure.functions() {
            for site in self.closure.calls_in(func) {
                if !matches!(site.callee, Callee::Indirect(_))
                    || self.coarse.may_call_unknown(func, site.op)
                {
                    continue;
                }
                if self.exact.may_call_unknown(func, site.op) {
                    add("unknown callee".into(), self.op_text(func, site.op));
                }
                let known = self.coarse.callees(func, site.op);
                let more = self.exact.callees(func, site.op).iter();
                if more.clone().any(|callee| !known.contains(callee)) {
                    add("callee".into(), self.op_text(func, site.op));
                }
            }
        }
        found
    }

    /// Returns the first accesses of the program.
    fn accesses(&self) -> Vec<Access> {
        let mut list = Vec::new();
        for (func, body) in self.closure.bodies(self.unit) {
            for op in body.walk(body.root()) {
                let size = |value| {
                    let ty = body.ty(value);
                    self.unit.layout.store_bytes(self.unit, ty) as i64
                };
                let mut add = |pointer, size_bytes| {
                    list.push(Access {
                        func,
                        op,
                        pointer,
                        size_bytes,
                    });
                };
                match body.kind(op) {
                    OpKind::Load(_) => add(body.operand(op, 0), size(body.result(op))),
                    OpKind::Store(_) => add(body.operand(op, 1), size(body.operand(op, 0))),
                    OpKind::AtomicRmw(..) => add(body.operand(op, 0), size(body.operand(op, 1))),
                    OpKind::Call(_) => {
                        let args = self.unit.call_args(body, op);
                        let callee = self.unit.callee(body, op);
                        let known = callee.and_then(|func| self.unit.known(func));
                        let copies = MemoryFn::Memcpy;
                        let moves = MemoryFn::MemmoveIntrinsic;
                        if let Some(ExternalFn::Memory(memory)) = known
                            && (memory == copies || memory == moves)
                            && let Some(bytes) = body.as_int(self.unit, args[2])
                        {
                            add(args[0], bytes);
                            add(args[1], bytes);
                        }
                    }
                    _ => {}
                }
            }
        }
        list.truncate(ACCESSES_MAX);
        list
    }

    /// Names the way in which two accesses overlap by inclusion alone.
    fn class_of(&self, (at, other): (CellRef, CellRef), a: Access, b: Access) -> String {
        let set = self.exact.get(at.class);
        let place = match set.origins.first() {
            None => "memory behind a cell",
            Some(MemoryOrigin::Argument(..)) => "memory of the caller",
            Some(MemoryOrigin::External(..) | MemoryOrigin::Unknown) => "unknown memory",
            Some(_) => "object",
        };
        let how = match () {
            () if at.class != other.class => "unknown memory meets",
            () if at.offset_bytes == other.offset_bytes => "equal offset in",
            () if set.folds.is_empty() => "near offset in",
            () => "fold of",
        };
        let of = |access: Access| self.coarse.alias_sets_of(access.func, access.pointer);
        let shared = of(a).iter().any(|own| of(b).contains(own));
        let before = match (of(a).is_empty() || of(b).is_empty(), shared) {
            (true, _) => "no target",
            (false, true) => "other offsets",
            (false, false) => "other alias sets",
        };
        format!("{how} {place}, {before}")
    }

    fn text(&self, access: Access) -> String {
        self.op_text(access.func, access.op)
    }
    fn op_text(&self, func: FuncId, op: Op) -> String {
        let function = &self.unit.functions[func];
        let Some(body) = &function.body else {
            unreachable!("a function of the call graph has a body");
        };
        let line = gradus_ir::OpPrinter::new(self.unit, body, &function.param_names).line(op);
        format!("`{}`: `{}`", function.name, line.trim())
    }
}

fn has_site(origin: &MemoryOrigin) -> bool {
    use MemoryOrigin::{Alloca, Argument, External, Function, Global, Heap, Unknown};
    match origin {
        Alloca(..) | Heap(..) | Global(_) => true,
        Argument(..) | External(..) | Unknown | Function(_) => false,
    }
}

/// Returns targets at which two accesses may overlap. Unknown memory overlaps with every escaped object.
fn overlap(sets: &AliasSets, a: Access, b: Access) -> Option<(CellRef, CellRef)> {
    let is_unknown = |id: AliasSetId| {
        let set = sets.get(id);
        set.escaped && set.origins.contains(&MemoryOrigin::Unknown)
    };
    for &at in sets.targets(a.func, a.pointer) {
        for &other in sets.targets(b.func, b.pointer) {
            let set = sets.get(at.class);
            let meets = match at.class == other.class {
                true => set.may_overlap(
                    (at.offset_bytes, a.size_bytes),
                    (other.offset_bytes, b.size_bytes),
                ),
                false => {
                    is_unknown(at.class) && sets.escaped(other.class)
                        || is_unknown(other.class) && sets.escaped(at.class)
                }
            };
            if meets {
                return Some((at, other));
            }
        }
    }
    None
}
