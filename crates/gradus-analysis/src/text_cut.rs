//! Text round trips: `snprintf` writes a number, `strtod` reads it. Derivatives do not follow the number.
//!
//! A number that is read from text and that active outputs depend on has the derivative zero. Where the
//! same closure makes text of numbers that depend on active inputs, a diagnostic names each such reading. The
//! analysis cannot tell which text is read: the program may copy it, or write it to a file and read it again. Text
//! in memory may reach any reading. Text of a stream counts only if a stream is read. No diagnostic names readings
//! of memory that the closure never writes (constants, the environment, arguments of the program), or numbers
//! written to the terminal. An unknown callee counts as a reading if it receives memory or a stream that active
//! numbers were written to.

use crate::activity::{ClassFacts, Facts};
use crate::closure::Callee;
use crate::flow::{ValueAccess, call_result, value_accesses};
use crate::memory::{ClassId, Origin};
use gradus_ir::known::{Effects, Known, SystemFn, TextFn, is_stream_variable, is_text_object};
use gradus_ir::{Body, Code, ConstKind, Diagnostic, FuncId, Op, OpKind, Unit, Value};
use std::collections::HashSet;

/// An op and whose it is.
type Site<'u> = (FuncId, &'u Body, Op);

/// The longest chain of `stream << a << b` that the analysis follows.
const CHAIN_MAX: usize = 256;

/// The ways of numbers in and out of text, in the order of the program.
#[derive(Default)]
struct Ways<'u> {
    /// Active numbers become text in memory.
    to_memory: Vec<Site<'u>>,
    /// Active numbers become text of a stream, or are written to it as they are.
    to_stream: Vec<Site<'u>>,
    /// The memory that these numbers are written to.
    goals: HashSet<ClassId>,
    /// A stream is read.
    from_stream: bool,
    /// Numbers that matter are read.
    wanted: Vec<Site<'u>>,
    /// Floats that matter are results of unknown callees.
    unknown: Vec<Site<'u>>,
}

/// Returns a warning for each such reading. The pipeline turns it into an error unless it is allowed.
pub(crate) fn findings(facts: Facts<'_>, classes: &ClassFacts) -> Vec<Diagnostic> {
    let mut ways = Ways::default();
    for (func, body) in facts.closure.bodies(facts.unit) {
        for op in body.walk(body.root()) {
            ways.meet(facts, classes, (func, body, op));
        }
    }
    let stream = ways.to_stream.first().filter(|_| ways.from_stream);
    let written = ways.to_memory.first().or(stream).copied();
    let mut told: Vec<Diagnostic> = Vec::new();
    if let Some(written) = written {
        let texts = Texts::of(facts);
        let read = ways
            .wanted
            .iter()
            .filter(|site| texts.may_reach(facts, **site));
        told.extend(read.map(|site| warning(facts, *site, written)));
    }
    let any = ways.to_memory.first().or(ways.to_stream.first());
    if let Some(written) = any {
        let handed = |site: &&Site<'_>| {
            let args = facts.unit.call_args(site.1, site.2);
            args.into_iter().any(|arg| {
                (facts.memory.class(site.0, arg)).is_some_and(|c| ways.goals.contains(&c))
            })
        };
        let read = ways.unknown.iter().filter(handed);
        told.extend(read.map(|site| warning(facts, *site, *written)));
    }
    told
}

impl<'u> Ways<'u> {
    fn meet(&mut self, facts: Facts<'u>, classes: &ClassFacts, site: Site<'u>) {
        let (func, body, op) = site;
        match facts.closure.callee(facts.unit, body, op) {
            Some(Callee::Outside(callee)) => self.call(facts, classes, site, callee),
            Some(Callee::Inside(callee)) if is_text_object(&facts.unit.functions[callee].name) => {
                self.call(facts, classes, site, callee);
            }
            // libstdc++ calls `strtod` in this way.
            Some(Callee::Indirect(_)) => {
                for &callee in facts.memory.callees(func, op) {
                    self.call(facts, classes, site, callee);
                }
            }
            _ => {}
        }
    }
    fn call(&mut self, facts: Facts<'u>, classes: &ClassFacts, site: Site<'u>, callee: FuncId) {
        let (func, body, op) = site;
        let unit = facts.unit;
        let matters = |op| {
            let result = call_result(body, op);
            result.is_some_and(|result| classes.value_useful(func, result))
        };
        let Some(known) = unit.known(callee) else {
            if unit.functions[callee].body.is_none() && matters(op) {
                self.unknown.push(site);
            }
            return;
        };
        let args = unit.call_args(body, op);
        let effects = unit.known_effects(callee).unwrap_or(Effects::UNKNOWN);
        match known {
            Known::System(SystemFn::PrintToMemory | SystemFn::Print | SystemFn::Send) => {
                let active = args.iter().any(|arg| varies(facts, classes, func, *arg));
                if !active || args.first().is_some_and(|to| is_terminal(unit, body, *to)) {
                    return;
                }
                let in_memory = known == Known::System(SystemFn::PrintToMemory)
                    || is_text_object(&unit.functions[callee].name);
                match in_memory {
                    true => self.to_memory.push(site),
                    false if known == Known::System(SystemFn::Send) => self.to_stream.push(site),
                    false if effects.writes.arguments != 0 => self.to_stream.push(site),
                    false => return,
                }
                let goals = args
                    .iter()
                    .filter(|arg| facts.words.carries_pointer(func, **arg));
                let goals = goals.filter(|arg| !varies(facts, classes, func, **arg));
                self.goals
                    .extend(goals.filter_map(|arg| facts.memory.class(func, *arg)));
            }
            Known::System(SystemFn::Read) => {
                self.from_stream = true;
                let useful = |arg: &Value| {
                    let class = facts.memory.class(func, *arg);
                    class.is_some_and(|class| classes.is_useful(class))
                        && facts.words.carries_pointer(func, *arg)
                };
                if args.iter().any(useful) {
                    self.wanted.push(site);
                }
            }
            Known::Text(TextFn::ToFloat) if matters(op) => self.wanted.push(site),
            _ => {}
        }
    }
}

/// Returns true if the output is the terminal: `stdout`, `stderr`, `std::cout` and the like, Fortran's unit 6.
fn is_terminal(unit: &Unit, body: &Body, mut to: Value) -> bool {
    let variable = |value: Value| {
        let constant = body.as_const(value).map(|id| &unit.constant(id).kind);
        match constant {
            Some(ConstKind::Global { global, .. }) => Some(unit.globals[*global].name.as_str()),
            _ => None,
        }
    };
    for _ in 0..CHAIN_MAX {
        if let Some(name) = variable(to) {
            return matches!(name, "_ZSt4cout" | "_ZSt4cerr" | "_ZSt4clog");
        }
        let Some(op) = body.def_op(to) else {
            return false;
        };
        match body.kind(op) {
            OpKind::Load(_) => {
                return variable(body.operand(op, 0)).is_some_and(is_stream_variable);
            }
            OpKind::Call(_) | OpKind::Invoke(_) => {
                let args = unit.call_args(body, op);
                let (Some(callee), Some(&first)) = (unit.callee(body, op), args.first()) else {
                    return false;
                };
                let name = &unit.functions[callee].name;
                if name.starts_with("_FortranAioBeginExternal") {
                    return matches!(body.as_int(unit, first), Some(-1 | 0 | 6));
                }
                let gives = unit.known_effects(callee).and_then(|e| e.returns_argument);
                if gives != Some(0) {
                    return false;
                }
                to = first;
            }
            _ => return false,
        }
    }
    false
}

/// The memory into which a closure may write text.
struct Texts {
    written: HashSet<ClassId>,
}

impl Texts {
    fn of(facts: Facts<'_>) -> Texts {
        let mut texts = Texts {
            written: HashSet::new(),
        };
        for (func, body) in facts.closure.bodies(facts.unit) {
            for op in body.walk(body.root()) {
                value_accesses(facts.unit, body, op, |access| {
                    if let ValueAccess::Store { ptr, .. } = access {
                        texts.note(facts, func, ptr, false);
                    }
                });
                texts.call(facts, (func, body, op));
            }
        }
        texts
            .written
            .extend(facts.memory.copies().iter().map(|copy| copy.to.class));
        texts
    }
    fn call(&mut self, facts: Facts<'_>, (func, body, op): Site<'_>) {
        let unit = facts.unit;
        let effects = match facts.closure.callee(unit, body, op) {
            Some(Callee::Inside(_)) | None => return,
            Some(Callee::Outside(callee)) => unit.known_effects(callee),
            Some(Callee::Indirect(_) | Callee::Foreign) => None,
        };
        let writes = effects.unwrap_or(Effects::UNKNOWN).writes;
        for (index, arg) in unit.call_args(body, op).into_iter().enumerate() {
            if writes.argument(index) {
                self.note(facts, func, arg, true);
            }
        }
    }
    /// Records the memory behind a pointer and, if `beyond` is set, all memory reachable from there.
    fn note(&mut self, facts: Facts<'_>, func: FuncId, ptr: Value, beyond: bool) {
        let places = facts.memory.places(func, ptr).iter().flatten();
        let mut work: Vec<ClassId> = places.map(|place| place.class).collect();
        while let Some(class) = work.pop() {
            if self.written.insert(class) && beyond {
                work.extend(facts.memory.stored(class));
            }
        }
    }
    /// Returns true if a reading may read text that the closure made.
    fn may_reach(&self, facts: Facts<'_>, (func, body, op): Site<'_>) -> bool {
        let callee = facts.unit.callee(body, op);
        if let Some(Known::System(_)) = callee.and_then(|f| facts.unit.known(f)) {
            return true;
        }
        let args = facts.unit.call_args(body, op);
        let class = args
            .first()
            .and_then(|text| facts.memory.class(func, *text));
        class.is_none_or(|class| {
            let origins = &facts.memory.get(class).origins;
            self.written.contains(&class) || !origins.iter().all(|o| is_given(facts, o))
        })
    }
}

/// Returns true if memory exists before the closure runs: that of an argument, a variable or the environment. The
/// result of any other function may be text of its own.
fn is_given(facts: Facts<'_>, origin: &Origin) -> bool {
    match *origin {
        // Memory that external code can reach holds the program's text, too: that code received none of the
        // closure's.
        Origin::Argument(..) | Origin::Global(_) | Origin::Unseen => true,
        Origin::Elsewhere(func, op) => {
            let body = facts.unit.functions[func].body.as_deref();
            let callee = body.and_then(|body| facts.unit.callee(body, op));
            callee.is_some_and(|f| {
                let name = facts.unit.functions[f].name.as_str();
                matches!(name, "getenv" | "secure_getenv")
            })
        }
        Origin::Alloca(..) | Origin::Heap(..) | Origin::Function(_) => false,
    }
}

/// Whether an argument is, or leads to, a number that depends on active inputs.
fn varies(facts: Facts<'_>, classes: &ClassFacts, func: FuncId, arg: Value) -> bool {
    let behind = facts.memory.class(func, arg);
    classes.value_varied(func, arg)
        || facts.words.carries_pointer(func, arg)
            && behind.is_some_and(|class| classes.is_varied(class))
}

fn warning(facts: Facts<'_>, read: Site<'_>, written: Site<'_>) -> Diagnostic {
    let unit = facts.unit;
    let place = |site: Site<'_>| unit.span(site.1.ops[site.2].loc);
    let function = &unit.functions[read.0];
    let name = function.source_name.as_ref().unwrap_or(&function.name);
    let message = "a number that is read from text or a file has the derivative zero, and active numbers are written to such";
    Diagnostic::warning(Code::TextRoundTrip, message)
        .in_function(name)
        .at(place(read), "read here")
        .at(place(written), "active numbers are written here")
        .help("pass the number itself; where it is another number that is read, or zero is meant, `--allow=text-round-trip` makes this a warning")
}
