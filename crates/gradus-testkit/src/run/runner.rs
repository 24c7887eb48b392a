//! Runs case pages: the common checks, and the contents of each page.

use crate::run::call_spec::{Call, CallOutcome, number_text, run_call};
use crate::run::case_page::{Page, Step};
use crate::run::compare::same_outcome;
use gradus_interp::{Options, Value};
use gradus_ir::{Diagnostic, FloatKind, Type, TypeId, Unit, parse, print, verify};
use std::path::Path;

/// A pass's own check of a call: program before, program after, the call. Returns the text for `## values`,
/// or a sentence with the failure.
pub type Check = Box<dyn Fn(&Unit, &Unit, &Call) -> Result<String, String>>;

/// The effect of a pass on meaning.
enum Meaning {
    Same,
    Derived(Check),
}

type Run<'p> = dyn Fn(&mut Unit, &[String]) -> Result<Meaning, Vec<Diagnostic>> + 'p;

/// A pass that pages can name.
pub struct Pass<'p> {
    name: &'static str,
    run: Box<Run<'p>>,
}

impl<'p> Pass<'p> {
    /// Creates a pass that preserves the behaviour of every function. `run` takes the unit and the options
    /// after the pass's name.
    pub fn same(
        name: &'static str,
        run: impl Fn(&mut Unit, &[String]) -> Result<(), Vec<Diagnostic>> + 'p,
    ) -> Self {
        Pass {
            name,
            run: Box::new(move |unit, words| run(unit, words).map(|()| Meaning::Same)),
        }
    }

    /// Creates a pass that emits new code, with its check: differentiation, for example.
    pub fn derived(
        name: &'static str,
        run: impl Fn(&mut Unit, &[String]) -> Result<Check, Vec<Diagnostic>> + 'p,
    ) -> Self {
        Pass {
            name,
            run: Box::new(move |unit, words| run(unit, words).map(Meaning::Derived)),
        }
    }
}

/// Runs all pages of a folder. With `GRADUS_BLESS` in the environment, the generated sections of passing
/// pages are rewritten. `GRADUS_CASES` selects pages by a part of the name. Returns the number of pages.
///
/// # Errors
/// The failures, page by page.
pub fn check_pages(folder: impl AsRef<Path>, passes: &[Pass]) -> Result<usize, String> {
    let folder = folder.as_ref();
    let entries =
        std::fs::read_dir(folder).map_err(|e| format!("cannot read {}: {e}", folder.display()))?;
    let mut paths: Vec<_> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "md"));
    paths.sort();
    let wanted = std::env::var("GRADUS_CASES").unwrap_or_default();
    let bless = std::env::var_os("GRADUS_BLESS").is_some();
    let mut wrong = Vec::new();
    let mut count = 0;
    for path in paths {
        let name = path
            .file_name()
            .map(|n| n.to_string_lossy().into_owned())
            .unwrap_or_default();
        if !name.contains(&wanted) {
            continue;
        }
        count += 1;
        if let Err(message) = check_file(&path, passes, bless) {
            wrong.push(format!("{name}: {message}"));
        }
    }
    match wrong.is_empty() {
        true => Ok(count),
        false => Err(format!("\n{}", wrong.join("\n\n"))),
    }
}

fn check_file(path: &Path, passes: &[Pass], bless: bool) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("cannot read the page: {e}"))?;
    let page = Page::parse(&text)?;
    let (output, values) = check_page(&page, passes)?;
    let fresh = page.with_results(&output, &values);
    if bless {
        return match fresh == text {
            true => Ok(()),
            false => std::fs::write(path, fresh).map_err(|e| format!("cannot write the page: {e}")),
        };
    }
    if page.shows_output || !page.output.is_empty() {
        difference("out", &page.output, output.trim_end())?;
    }
    difference("values", &page.values, values.trim_end())
}

/// Checks that a section equals the page's. The error has the first different line.
fn difference(section: &str, shown: &str, own: &str) -> Result<(), String> {
    if shown == own {
        return Ok(());
    }
    let end = "(nothing)";
    let mut lines = (shown.lines(), own.lines());
    let mut number = 0;
    loop {
        number += 1;
        let (a, b) = (lines.0.next(), lines.1.next());
        if a != b || (a.is_none() && b.is_none()) {
            return Err(format!(
                "section `## {section}` differs from the page at line {number} of the section:\n  page  {}\n  now   {}\nIf the new text is correct, set GRADUS_BLESS=1 and review the diff.",
                a.unwrap_or(end),
                b.unwrap_or(end)
            ));
        }
    }
}

/// Runs a page's passes and checks. Returns the texts for `## out` and `## values`.
///
/// # Errors
/// The failure.
pub fn check_page(page: &Page, passes: &[Pass]) -> Result<(String, String), String> {
    let before = parse(&page.input, "page").map_err(|d| diagnostic_text(&d))?;
    check_round_trip(&before, "before the passes")?;
    let calls: Result<Vec<Call>, String> = page.calls.iter().map(|c| Call::parse(c)).collect();
    let calls = calls?;
    let mut after = before.clone();
    let mut check = None;
    for step in &page.steps {
        match run_step(step, passes, &mut after)? {
            Ok(Meaning::Same) => {}
            Ok(Meaning::Derived(own)) => check = Some(own),
            Err(findings) => return Ok((refusal(&findings), String::new())),
        }
        check_round_trip(&after, &format!("after `{}`", step.name))?;
    }
    let mut values = Vec::new();
    for (call, text) in calls.iter().zip(&page.calls) {
        let value = check_same_outcome(&before, &after, call, page.tolerance);
        let mut line = value.map_err(|e| format!("{text}: {e}"))?;
        if let Some(check) = &check {
            line = check(&before, &after, call).map_err(|e| format!("{text}: {e}"))?;
        }
        values.push(line);
    }
    Ok((print(&after), values.join("\n")))
}

fn run_step(
    step: &Step,
    passes: &[Pass],
    unit: &mut Unit,
) -> Result<Result<Meaning, Vec<Diagnostic>>, String> {
    let pass = passes.iter().find(|p| p.name == step.name);
    let pass = pass.ok_or(format!("unknown pass `{}`", step.name))?;
    Ok((pass.run)(unit, &step.words))
}

/// Checks that a unit passes the verifier and survives printing and parsing.
fn check_round_trip(unit: &Unit, when: &str) -> Result<(), String> {
    let findings = verify(unit);
    if !findings.is_empty() {
        let list: Vec<String> = findings.iter().map(diagnostic_text).collect();
        return Err(format!(
            "{when}, the verifier rejects the program:\n{}\n{}",
            list.join("\n"),
            print(unit)
        ));
    }
    let text = print(unit);
    let again =
        parse(&text, "printed").map_err(|d| format!("{when}: {}\n{text}", diagnostic_text(&d)))?;
    match print(&again) == text {
        true => Ok(()),
        false => Err(format!(
            "{when}, printing and parsing do not round-trip:\n{text}"
        )),
    }
}

fn diagnostic_text(finding: &Diagnostic) -> String {
    let notes = finding.notes.join("; ");
    match notes.is_empty() {
        true => finding.to_string(),
        false => format!("{finding}; {notes}"),
    }
}

/// Formats a refusal for a page.
fn refusal(findings: &[Diagnostic]) -> String {
    let lines: Vec<String> = findings
        .iter()
        .map(|f| match &f.help {
            Some(help) => format!("refused: {f}\n  help: {help}"),
            None => format!("refused: {f}"),
        })
        .collect();
    lines.join("\n")
}

/// Compares a call after the passes with the call before. Returns the line of values.
fn check_same_outcome(
    before: &Unit,
    after: &Unit,
    call: &Call,
    tolerance: f64,
) -> Result<String, String> {
    let (func, _) = call.ordered_arguments(before)?;
    let result = before.result_type(before.functions[func].ty);
    let (machine, ran) = run_call(before, call, Options::default())?;
    let orders: &[Option<u64>] = match is_parallel(before) {
        true => &[None, Some(1), Some(77)],
        false => &[None],
    };
    for &random_order in orders {
        let options = Options {
            random_order,
            check_edges: true,
            ..Options::default()
        };
        let (machine_after, ran_after) = run_call(after, call, options)?;
        // Reordered sums round differently.
        let tolerance = if random_order.is_some() {
            tolerance.max(1e-12)
        } else {
            tolerance
        };
        let sides = ((&machine, &ran), (&machine_after, &ran_after));
        same_outcome(before, result, sides.0, sides.1, tolerance)?;
    }
    Ok(line(before, result, &machine, &ran))
}

fn is_parallel(unit: &Unit) -> bool {
    unit.functions.iter().any(|(_, function)| {
        let body = function.body.as_ref();
        body.is_some_and(|body| body.walk(body.root()).any(|op| body.kind(op).is_parallel()))
    })
}

/// Formats `value 10   x [1 2 3]`: the result, and the arrays that changed.
fn line(
    unit: &Unit,
    result: Option<TypeId>,
    machine: &gradus_interp::Machine,
    ran: &CallOutcome,
) -> String {
    let mut parts = Vec::new();
    if let Ok(Some(value)) = &ran.outcome {
        parts.push(format!("value {}", value_text(unit, result, value)));
    }
    for (position, array, address) in &ran.arrays {
        let Some(bytes) = machine.snapshot(*address) else {
            continue;
        };
        let old: Vec<Option<u8>> = array.bytes().into_iter().map(Some).collect();
        if bytes != old {
            parts.push(format!("argument {position} {}", array.contents(&bytes)));
        }
    }
    if !machine.output().is_empty() {
        parts.push(format!(
            "printed {:?}",
            String::from_utf8_lossy(machine.output())
        ));
    }
    match parts.is_empty() {
        true => "returns".into(),
        false => parts.join("   "),
    }
}

fn value_text(unit: &Unit, ty: Option<TypeId>, value: &Value) -> String {
    let own = ty.map(|ty| unit.types.get(ty));
    match (value, own) {
        (Value::Bits(bits), Some(Type::Float(FloatKind::F64))) => {
            number_text(f64::from_bits(*bits))
        }
        (Value::Bits(bits), Some(Type::Float(FloatKind::F32))) => {
            number_text(f64::from(f32::from_bits(*bits as u32)))
        }
        (Value::Bits(bits), Some(Type::Int(width @ 2..=64))) => {
            (((bits << (64 - width)) as i64) >> (64 - width)).to_string()
        }
        (Value::Bits(0), Some(Type::Ptr(_))) => "null".into(),
        (Value::Bits(_), Some(Type::Ptr(_))) => "an address".into(),
        (Value::Bits(bits), _) => bits.to_string(),
        (Value::Elements(members), _) => {
            let texts: Vec<String> = members
                .iter()
                .enumerate()
                .map(|(i, member)| {
                    let inner = ty.and_then(|ty| unit.types.field(ty, i as u32));
                    value_text(unit, inner, member)
                })
                .collect();
            format!("({})", texts.join(" "))
        }
        (Value::Wide(bits), _) => format!("{:#x}", **bits),
        (Value::Undef { .. }, _) => "undefined".into(),
        (Value::Poison, _) => "poison".into(),
    }
}
