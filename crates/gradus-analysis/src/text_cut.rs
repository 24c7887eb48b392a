//! Numbers that go through text: `snprintf` here, `strtod` there. Derivatives do not follow them.
//!
//! A number that is read from text and that active outputs depend on has the derivative zero. Where the
//! same closure makes text of numbers that depend on active inputs, that is probably not meant: such
//! readings are told. Which text is read cannot be said, since it may be copied, written to a file and
//! read again; text in memory may reach any reading, a stream's text only where a stream is read.

use crate::activity::{ClassFacts, Facts};
use gradus_ir::known::{Effects, Known, SystemFn, TextFn, is_text_object};
use gradus_ir::{Body, Code, Diagnostic, FuncId, Op, Value};

/// An op and whose it is.
type Site<'u> = (FuncId, &'u Body, Op);

/// The ways of numbers in and out of text, in the order of the program.
#[derive(Default)]
struct Ways<'u> {
    /// Active numbers become text in memory.
    to_memory: Vec<Site<'u>>,
    /// Active numbers become text of a stream, or are written to it as they are.
    to_stream: Vec<Site<'u>>,
    /// A stream is read.
    from_stream: bool,
    /// Numbers that matter are read.
    wanted: Vec<Site<'u>>,
}

/// A warning for each such reading.
pub(crate) fn findings(facts: Facts<'_>, classes: &ClassFacts) -> Vec<Diagnostic> {
    let mut ways = Ways::default();
    for (func, body) in facts.closure.bodies(facts.unit) {
        for op in body.walk(body.root()) {
            ways.meet(facts, classes, (func, body, op));
        }
    }
    let stream = ways.to_stream.first().filter(|_| ways.from_stream);
    let Some(written) = ways.to_memory.first().or(stream) else {
        return Vec::new();
    };
    let told = ways
        .wanted
        .iter()
        .map(|site| warning(facts, *site, *written));
    told.collect()
}

impl<'u> Ways<'u> {
    fn meet(&mut self, facts: Facts<'u>, classes: &ClassFacts, site: Site<'u>) {
        let (func, body, op) = site;
        let unit = facts.unit;
        let Some(callee) = unit.callee(body, op) else {
            return;
        };
        let Some(known) = unit.known(callee) else {
            return;
        };
        let args = unit.call_args(body, op);
        let effects = unit.known_effects(callee).unwrap_or(Effects::UNKNOWN);
        match known {
            Known::System(SystemFn::PrintToMemory | SystemFn::Print | SystemFn::Send) => {
                if !args.iter().any(|arg| varies(facts, classes, func, *arg)) {
                    return;
                }
                let in_memory = known == Known::System(SystemFn::PrintToMemory)
                    || is_text_object(&unit.functions[callee].name);
                match in_memory {
                    true => self.to_memory.push(site),
                    false if known == Known::System(SystemFn::Send) => self.to_stream.push(site),
                    false if effects.writes.arguments != 0 => self.to_stream.push(site),
                    false => {}
                }
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
            Known::Text(TextFn::ToFloat) => {
                let result = crate::flow::call_result(body, op);
                if result.is_some_and(|result| classes.value_useful(func, result)) {
                    self.wanted.push(site);
                }
            }
            _ => {}
        }
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
    Diagnostic::warning(Code::ZeroDerivative, message)
        .in_function(name)
        .at(place(read), "read here")
        .at(place(written), "active numbers are written here")
        .help("pass the number itself; where it is another number that is read, nothing is to be done")
}
