//! Text round trips (GRD0040): `snprintf` writes a number, `strtod` reads it. Derivatives do not follow the number.
//!
//! A number read from text has a zero derivative, even if active outputs depend on it. If the same call
//! graph writes active numbers as text, a diagnostic names each such read. The analysis cannot decide which
//! text is read: the program may copy it, or write it to a file and read the file. Rules:
//!
//! - Text in memory may reach any read.
//! - Text of a stream counts only if a stream is read or a file is mapped, or if the call graph opens
//!   streams with text in memory (`open_memstream`, `std::ostringstream`).
//! - Reads of memory that the call graph never writes (constants, the environment, program arguments) and
//!   writes to the terminal are not reported.
//! - An unknown callee counts as a read if it receives memory or a stream with active numbers, and as a
//!   stream write if it receives memory with active numbers.
//!
//! `text_in_lists.rs` handles variadic wrappers, `text_digits.rs` numbers that the program assembles from
//! digits.

mod text_digits;
mod text_in_lists;

use crate::activity::flow_graph::Flow;
use crate::activity::memory::MemoryActivity;
use crate::call_graph::Callee;
use crate::checks::finding::Finding;
use crate::checks::request::RequestFacts;
use crate::memory::value_accesses::{ValueAccess, value_accesses};
use crate::points_to::alias_sets::{AliasSetId, CellRef, MemoryOrigin};
use crate::view::View;
use gradus_ir::externals::{
    Effects, ExternalFn, SystemFn, TextFn, is_cpp_text_function, is_stream_variable,
    is_string_stream, reads_address_lists,
};
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{Body, Code, ConstKind, Diagnostic, FuncId, Op, OpKind, Unit, Value};
use std::collections::HashSet;

/// A function, its body and an op.
type Site<'u> = (FuncId, &'u Body, Op);

/// The longest chain of `stream << a << b` that the analysis follows.
const CHAIN_MAX: usize = 256;

/// Flows of numbers into and out of text, in program order.
#[derive(Default)]
struct TextFlows<'u> {
    /// Active numbers become text in memory.
    to_memory: Vec<Site<'u>>,
    /// Active numbers become text of a stream or are written to the stream in binary.
    to_stream: Vec<Site<'u>>,
    /// Memory and streams that receive active numbers.
    receivers: HashSet<AliasSetId>,
    /// Memory with the text of active numbers.
    text: HashSet<AliasSetId>,
    /// Memory of the streams that receive active numbers.
    streams: HashSet<AliasSetId>,
    /// Memory into which streams are read.
    read: HashSet<AliasSetId>,
    /// Text moves from the alias sets of the first list to the alias sets of the second.
    moves: Vec<(Vec<AliasSetId>, Vec<AliasSetId>)>,
    /// A stream is read, or a file is mapped.
    from_stream: bool,
    /// The text of streams may lie in memory.
    memory_stream: bool,
    /// Reads of useful numbers.
    useful_reads: Vec<Site<'u>>,
    /// Reads of integers that may become useful numbers.
    integer_reads: Vec<Site<'u>>,
    /// Unknown callees that may return or store useful numbers.
    unknown_reads: Vec<Site<'u>>,
    /// Variadic argument lists with active numbers.
    active_lists: HashSet<AliasSetId>,
    /// Variadic argument lists with addresses of useful numbers.
    wanted_lists: HashSet<AliasSetId>,
}

/// Warns of reads of such numbers. The pipeline turns the warning into an error unless it is allowed.
pub(super) fn check(request: &RequestFacts<'_>) -> Vec<Finding> {
    let (facts, classes, flow) = (request.facts, request.classes, request.classes.flow());
    if is_planted(Mutant::NumbersThroughTextUnnoticed) {
        return Vec::new();
    }
    let mut ways = TextFlows {
        active_lists: text_in_lists::lists_with_argument(facts, |func, arg| {
            is_varied_argument(facts, classes, func, arg)
        }),
        wanted_lists: text_in_lists::lists_with_argument(facts, |func, arg| {
            reaches(facts, func, arg, Depth::Near, |class| {
                classes.is_useful(class)
            })
        }),
        ..TextFlows::default()
    };
    for (func, body) in facts.closure.bodies(facts.unit) {
        for op in body.walk(body.root()) {
            ways.visit_op(facts, classes, (func, body, op));
        }
    }
    let returns = ways.from_stream || ways.memory_stream;
    let stream = ways.to_stream.first().filter(|_| returns);
    let written = ways.to_memory.first().or(stream).copied();
    let mut told: Vec<Diagnostic> = Vec::new();
    if let Some(written) = written {
        let texts = WrittenText::of(facts);
        let read = ways
            .useful_reads
            .iter()
            .filter(|site| texts.may_reach(facts, **site));
        told.extend(read.map(|site| warning(facts, *site, written)));
        let converted = ways.conversions(facts, classes, flow, &texts);
        told.extend((converted.iter()).map(|site| warning(facts, *site, written)));
    }
    let any = ways.to_memory.first().or(ways.to_stream.first());
    if let Some(written) = any {
        let handed = |site: &&Site<'_>| {
            let args = facts.unit.call_args(site.1, site.2);
            args.into_iter().any(|arg| {
                (facts.memory).may_point_into(site.0, arg, |set| ways.receivers.contains(&set))
            })
        };
        let read = ways.unknown_reads.iter().filter(handed);
        told.extend(read.map(|site| warning(facts, *site, *written)));
    }
    told.into_iter().map(Finding::without_position).collect()
}

impl<'u> TextFlows<'u> {
    fn visit_op(&mut self, facts: View<'u>, classes: &MemoryActivity, site: Site<'u>) {
        let (func, body, op) = site;
        let callee = facts.closure.callee(facts.unit, body, op);
        if let Some(Callee::Inside(callee) | Callee::Outside(callee)) = callee {
            self.memory_stream |= is_string_stream(&facts.unit.functions[callee].name);
        }
        match callee {
            Some(Callee::Outside(callee)) => self.call(facts, classes, site, callee),
            Some(Callee::Inside(callee))
                if is_cpp_text_function(&facts.unit.functions[callee].name) =>
            {
                self.call(facts, classes, site, callee);
            }
            // libstdc++ calls `strtod` indirectly.
            Some(Callee::Indirect(_)) => {
                for &callee in facts.memory.callees(func, op) {
                    self.call(facts, classes, site, callee);
                }
            }
            _ => {}
        }
    }
    fn call(&mut self, facts: View<'u>, classes: &MemoryActivity, site: Site<'u>, callee: FuncId) {
        let (func, body, op) = site;
        let unit = facts.unit;
        let result = body.call_result(op);
        let matters = result.is_some_and(|result| classes.value_useful(func, result));
        match unit.known(callee) {
            None if unit.functions[callee].body.is_none() => {
                self.record_unknown_call(facts, classes, site, matters);
            }
            Some(ExternalFn::System(
                known @ (SystemFn::PrintToMemory | SystemFn::Print | SystemFn::WriteDescriptor),
            )) => self.write(facts, classes, site, (callee, known)),
            Some(ExternalFn::System(SystemFn::Read)) => self.read(facts, classes, site, callee),
            Some(ExternalFn::System(SystemFn::Map)) => self.map(facts, classes, site),
            Some(ExternalFn::System(SystemFn::MemoryStream)) => self.memory_stream = true,
            Some(ExternalFn::Text(TextFn::ToFloat | TextFn::ToInt)) if matters => {
                self.useful_reads.push(site);
            }
            Some(ExternalFn::Text(TextFn::ToInt)) => self.integer_reads.push(site),
            Some(ExternalFn::Text(
                TextFn::Strcpy | TextFn::Strncpy | TextFn::Strcat | TextFn::Strncat,
            )) => {
                let args = unit.call_args(body, op);
                let sets = |index: usize| {
                    let arg = args.get(index).copied();
                    arg.map_or_else(Vec::new, |arg| facts.memory.alias_sets_of(func, arg))
                };
                self.moves.push((sets(1), sets(0)));
            }
            _ => {}
        }
    }
    /// Records a call of an unknown function as a read, a stream write, or both.
    fn record_unknown_call(
        &mut self,
        facts: View<'_>,
        classes: &MemoryActivity,
        site: Site<'u>,
        gives_number: bool,
    ) {
        let args = facts.unit.call_args(site.1, site.2);
        let leads = |test: &dyn Fn(AliasSetId) -> bool| {
            (args.iter()).any(|arg| reaches(facts, site.0, *arg, Depth::Any, test))
        };
        if gives_number || leads(&|class| classes.is_useful(class)) {
            self.unknown_reads.push(site);
        }
        if leads(&|class| classes.is_varied(class)) {
            self.to_stream.push(site);
        }
    }
    fn write(
        &mut self,
        facts: View<'_>,
        classes: &MemoryActivity,
        site: Site<'u>,
        (callee, known): (FuncId, SystemFn),
    ) {
        let (func, body, op) = site;
        let unit = facts.unit;
        let args = unit.call_args(body, op);
        let name = unit.functions[callee].name.as_str();
        let is_object = is_cpp_text_function(name);
        let effects = unit.known_effects(callee).unwrap_or(Effects::UNKNOWN);
        let written: Vec<AliasSetId> = (args.iter().enumerate())
            .filter(|(index, _)| effects.writes.argument(*index))
            .flat_map(|(_, arg)| reachable_memory(facts, func, *arg, Depth::Any))
            .collect();
        if is_object {
            let behind = args
                .iter()
                .flat_map(|arg| reachable_memory(facts, func, *arg, Depth::Any));
            let result = body.call_result(op).into_iter();
            let result = result.flat_map(|value| facts.memory.alias_sets_of(func, value));
            let to = written.iter().copied().chain(result).collect();
            self.moves.push((behind.collect(), to));
        }
        let is_active = |(index, arg): (usize, &Value)| {
            if !effects.reads.argument(index) && facts.words.carries_pointer(func, *arg) {
                // Not an error: the text goes there.
                return false;
            }
            let is_active_list = |class| self.active_lists.contains(&class);
            is_varied_argument(facts, classes, func, *arg)
                || facts.memory.may_point_into(func, *arg, is_active_list)
                || reads_address_lists(name)
                    && reaches(facts, func, *arg, Depth::Any, |class| {
                        classes.is_varied(class)
                    })
        };
        if !args.iter().enumerate().any(is_active) || is_terminal_output(unit, body, known, &args) {
            return;
        }
        match known == SystemFn::PrintToMemory || is_object {
            true => {
                self.to_memory.push(site);
                self.text.extend(&written);
            }
            false if known == SystemFn::WriteDescriptor || effects.writes.arguments != 0 => {
                self.to_stream.push(site);
                self.streams.extend(&written);
            }
            false => return,
        }
        let goals = args
            .iter()
            .filter(|arg| facts.words.carries_pointer(func, **arg));
        let goals = goals.filter(|arg| !is_varied_argument(facts, classes, func, **arg));
        self.receivers
            .extend(goals.flat_map(|arg| facts.memory.alias_sets_of(func, *arg)));
    }
    fn read(&mut self, facts: View<'_>, classes: &MemoryActivity, site: Site<'u>, callee: FuncId) {
        let (func, body, op) = site;
        self.from_stream = true;
        self.integer_reads.push(site);
        let depth = match reads_address_lists(&facts.unit.functions[callee].name) {
            true => Depth::Any,
            false => Depth::Near,
        };
        let args = facts.unit.call_args(body, op);
        let is_wanted = |arg: &Value| {
            let is_wanted_list = |class| self.wanted_lists.contains(&class);
            reaches(facts, func, *arg, depth, |class| classes.is_useful(class))
                || facts.memory.may_point_into(func, *arg, is_wanted_list)
        };
        if args.iter().any(is_wanted) {
            self.useful_reads.push(site);
        }
        let into = args
            .iter()
            .flat_map(|arg| reachable_memory(facts, func, *arg, depth));
        self.read.extend(into);
    }
    /// Records a mapped file: stores to the mapping are written to the file.
    fn map(&mut self, facts: View<'_>, classes: &MemoryActivity, site: Site<'u>) {
        let (func, body, op) = site;
        let mapping = body.call_result(op);
        let sets = mapping.map_or_else(Vec::new, |value| facts.memory.alias_sets_of(func, value));
        if sets.is_empty() || is_anonymous_mapping(facts.unit, body, op) {
            // Not an error: the mapping is anonymous or is never accessed.
            return;
        }
        self.from_stream = true;
        self.read.extend(&sets);
        if sets.iter().any(|class| classes.is_useful(*class)) {
            self.useful_reads.push(site);
        }
        if sets.iter().any(|class| classes.is_varied(*class)) {
            self.to_stream.push(site);
        }
    }
    /// Returns useful conversions to floats of integers that the program reads from text of active numbers.
    fn conversions(
        &self,
        facts: View<'u>,
        classes: &MemoryActivity,
        flow: &Flow,
        texts: &WrittenText,
    ) -> Vec<Site<'u>> {
        let mut text = self.text.clone();
        if !self.to_stream.is_empty() {
            text.extend(&self.read);
        }
        if self.memory_stream {
            text.extend(&self.streams);
        }
        let copies = facts.memory.copies().iter();
        let sets = |ends: &[CellRef]| ends.iter().map(|end| end.class).collect();
        let copies = copies.map(|copy| (sets(&copy.from), sets(&copy.to)));
        let moves: Vec<_> = copies.chain(self.moves.iter().cloned()).collect();
        loop {
            let before = text.len();
            for (from, to) in &moves {
                if from.iter().any(|class| text.contains(class)) {
                    text.extend(to);
                }
            }
            if text.len() == before {
                break;
            }
        }
        let read = self.integer_reads.iter().filter(|site| {
            let callee = facts.unit.callee(site.1, site.2);
            let known = callee.and_then(|f| facts.unit.known(f));
            match known {
                Some(ExternalFn::System(_)) => !self.to_stream.is_empty(),
                _ => texts.may_reach(facts, **site),
            }
        });
        let results = read.filter_map(|site| Some((site.0, site.1.call_result(site.2)?)));
        let results: Vec<(FuncId, Value)> = results.collect();
        text_digits::text_conversions(facts, classes, flow, &text, &results)
    }
}

/// Depth to which addresses in memory are followed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    /// Only to the memory behind the argument.
    Near,
    /// Through any number of addresses in memory.
    Any,
}

/// Returns the memory behind an argument.
fn reachable_memory(facts: View<'_>, func: FuncId, arg: Value, depth: Depth) -> Vec<AliasSetId> {
    if !facts.words.carries_pointer(func, arg) {
        return Vec::new();
    }
    let mut list = facts.memory.alias_sets_of(func, arg);
    let mut seen: HashSet<AliasSetId> = list.iter().copied().collect();
    let mut next = 0;
    while depth == Depth::Any
        && let Some(&class) = list.get(next)
    {
        next += 1;
        let stored = facts.memory.pointees(class).into_iter();
        list.extend(stored.filter(|class| seen.insert(*class)));
    }
    list
}

/// Returns true if `has` holds for some memory behind an argument.
fn reaches(
    facts: View<'_>,
    func: FuncId,
    arg: Value,
    depth: Depth,
    has: impl Fn(AliasSetId) -> bool,
) -> bool {
    reachable_memory(facts, func, arg, depth)
        .into_iter()
        .any(has)
}

/// Returns true if a mapping is private and anonymous rather than of a file.
fn is_anonymous_mapping(unit: &Unit, body: &Body, op: Op) -> bool {
    /// Linux's `MAP_ANONYMOUS`, without `MAP_SHARED`.
    const ANONYMOUS: i64 = 0x20;
    const SHARED: i64 = 0x01;
    /// Position of the flags in the six arguments of `mmap`.
    const FLAGS: usize = 3;
    let args = unit.call_args(body, op);
    let flags = args.get(FLAGS).and_then(|arg| body.as_int(unit, *arg));
    args.len() == 6 && flags.is_some_and(|flags| flags & (ANONYMOUS | SHARED) == ANONYMOUS)
}

/// Returns true if an output function writes to the terminal.
fn is_terminal_output(unit: &Unit, body: &Body, known: SystemFn, args: &[Value]) -> bool {
    let number = args.first().and_then(|arg| body.as_int(unit, *arg));
    match (known, number) {
        // File descriptors of the standard output and the standard error.
        (SystemFn::WriteDescriptor | SystemFn::Print, Some(1 | 2)) => true,
        (SystemFn::PrintToMemory, _) => false,
        _ => args.iter().any(|arg| is_terminal(unit, body, *arg)),
    }
}

/// Returns true if the output is the terminal: `stdout`, `stderr`, `std::cout` and the like, Fortran's unit
/// 6.
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

/// The memory into which a call graph may write text.
struct WrittenText {
    written: HashSet<AliasSetId>,
}

impl WrittenText {
    fn of(facts: View<'_>) -> WrittenText {
        let mut texts = WrittenText {
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
        let copies = facts.memory.copies().iter();
        texts
            .written
            .extend(copies.flat_map(|copy| &copy.to).map(|to| to.class));
        texts
    }
    fn call(&mut self, facts: View<'_>, (func, body, op): Site<'_>) {
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
    /// Records the memory behind a pointer and, if `beyond` is set, all memory reachable from it.
    fn note(&mut self, facts: View<'_>, func: FuncId, ptr: Value, beyond: bool) {
        let mut work = facts.memory.alias_sets_of(func, ptr);
        while let Some(class) = work.pop() {
            if self.written.insert(class) && beyond {
                work.extend(facts.memory.pointees(class));
            }
        }
    }
    /// Returns true if a read may see text written by the call graph.
    fn may_reach(&self, facts: View<'_>, (func, body, op): Site<'_>) -> bool {
        let callee = facts.unit.callee(body, op);
        if let Some(ExternalFn::System(_)) = callee.and_then(|f| facts.unit.known(f)) {
            return true;
        }
        let args = facts.unit.call_args(body, op);
        let has_other_text = |class: AliasSetId| {
            let origins = &facts.memory.get(class).origins;
            !self.written.contains(&class) && origins.iter().all(|o| predates_call(facts, o))
        };
        args.first()
            .is_none_or(|text| !facts.memory.points_only_into(func, *text, has_other_text))
    }
}

/// Returns true if memory exists before the call graph runs: memory of an argument, a variable or the
/// environment. Memory from any other function may hold text of that function.
fn predates_call(facts: View<'_>, origin: &MemoryOrigin) -> bool {
    match *origin {
        // External memory also holds the program's text; external code received no text of the call graph.
        MemoryOrigin::Argument(..) | MemoryOrigin::Global(_) | MemoryOrigin::Unknown => true,
        MemoryOrigin::External(func, op) => {
            let body = facts.unit.functions[func].body.as_deref();
            let callee = body.and_then(|body| facts.unit.callee(body, op));
            callee.is_some_and(|f| {
                let name = facts.unit.functions[f].name.as_str();
                matches!(name, "getenv" | "secure_getenv")
            })
        }
        MemoryOrigin::Alloca(..) | MemoryOrigin::Heap(..) | MemoryOrigin::Function(_) => false,
    }
}

/// Returns true if an argument is, or directly points to, a number that depends on active inputs.
fn is_varied_argument(facts: View<'_>, classes: &MemoryActivity, func: FuncId, arg: Value) -> bool {
    classes.value_varied(func, arg)
        || classes.is_bitwise_tainted(func, arg)
        || facts.words.carries_pointer(func, arg)
            && (facts.memory).may_point_into(func, arg, |class| classes.is_varied(class))
}

fn warning(facts: View<'_>, read: Site<'_>, written: Site<'_>) -> Diagnostic {
    let unit = facts.unit;
    let place = |site: Site<'_>| unit.span(site.1.ops[site.2].loc);
    let function = &unit.functions[read.0];
    let name = function.display_name();
    let message = "active numbers are written to text or a file, and numbers read from text or a file have the derivative zero";
    Diagnostic::warning(Code::TextRoundTrip, message)
        .in_function(name)
        .at(place(read), "read here")
        .at(place(written), "active numbers are written here")
        .help("pass the number directly; if the numbers are unrelated or the derivative zero is intended, `--allow=text-round-trip` makes this a warning")
}
