//! The report of a run, as text: what is active, what the tape keeps and why, what it costs.

use crate::requests::source_arguments;
use crate::worklist::Made;
use gradus_ad::{ArgActivity, Kept, Mode, ResultActivity};
use gradus_ir::{SourceSpan, Unit};
use std::fmt::Write;

/// The report on these roots: for each, all functions made for it.
pub(crate) fn report(unit: &Unit, roots: &[Vec<Made>]) -> String {
    let mut text = String::new();
    for made in roots {
        for (number, one) in made.iter().enumerate() {
            if number > 0 || !text.is_empty() {
                text.push('\n');
            }
            describe(&mut text, unit, one, number > 0);
        }
    }
    text
}

fn describe(text: &mut String, unit: &Unit, made: &Made, callee: bool) {
    let function = &unit.functions[made.variant.func];
    let name = function.source_name.as_ref().unwrap_or(&function.name);
    let what = match made.variant.mode {
        Mode::Forward => "JVP",
        Mode::Combined => "VJP",
        Mode::Augmented => "forward sweep",
        Mode::Return => "return sweep",
    };
    let place = function
        .span
        .as_ref()
        .map_or(String::new(), |s| format!(" ({})", place(s)));
    let indent = if callee { "  " } else { "" };
    let _ = writeln!(text, "{indent}{name}{place}: {what}");
    let _ = writeln!(text, "{indent}  arguments: {}", arguments(unit, made));
    let report = &made.report;
    let (active, all) = report.active_values;
    let _ = writeln!(text, "{indent}  active: {active} of {all} numbers");
    let (own, derived) = report.ops;
    let ratio = match own {
        0 => String::new(),
        _ => format!(" ({:.1} times)", derived as f64 / own as f64),
    };
    let _ = writeln!(
        text,
        "{indent}  arithmetic: {own} operations, derivative {derived}{ratio}"
    );
    if report.asked_at_run_time > 0 {
        let _ = writeln!(
            text,
            "{indent}  decided at run time: whether {} pointers are active",
            report.asked_at_run_time
        );
    }
    if made.gathered > 0 {
        let _ = writeln!(
            text,
            "{indent}  gathered: {} inner loops of the return sweep run forwards, or add to each place once",
            made.gathered
        );
    }
    if matches!(made.variant.mode, Mode::Combined | Mode::Augmented) {
        tape(text, &report.kept, indent);
    }
}

/// What each argument and the result are.
fn arguments(unit: &Unit, made: &Made) -> String {
    let variant = &made.variant;
    let mut list: Vec<String> = source_arguments(unit, variant.func)
        .into_iter()
        .map(|argument| {
            let what = argument.params.map(|i| match variant.args[i] {
                ArgActivity::Const => "inactive",
                ArgActivity::Dup => "with shadow",
                ArgActivity::Maybe => "with shadow if another is given",
                ArgActivity::DupNoNeed => "with shadow, not needed afterwards",
                ArgActivity::Active => "active",
            });
            let mut what: Vec<&str> = what.collect();
            what.dedup();
            format!("{} {}", argument.name, what.join(" and "))
        })
        .collect();
    list.push(match variant.result {
        ResultActivity::Const => "result inactive".to_string(),
        ResultActivity::Active => "result active".to_string(),
        ResultActivity::Dup => "result with shadow".to_string(),
        ResultActivity::Both => "result active and with shadow".to_string(),
    });
    list.join(", ")
}

fn place(span: &SourceSpan) -> String {
    format!("{}:{}", span.file, span.line)
}

/// The table of what the tape keeps.
fn tape(text: &mut String, kept: &[Kept], indent: &str) {
    if kept.is_empty() {
        let _ = writeln!(text, "{indent}  tape: nothing is kept");
        return;
    }
    let _ = writeln!(text, "{indent}  tape:");
    let rows: Vec<[String; 4]> = kept.iter().map(row).collect();
    let width = |column: usize| {
        rows.iter()
            .map(|r| r[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths = [width(0), width(1), width(2)];
    for [line, bytes, what, why] in &rows {
        let _ = writeln!(
            text,
            "{indent}    {line:<0$}  {bytes:<1$}  {what:<2$}  {why}",
            widths[0], widths[1], widths[2]
        );
    }
}

fn row(kept: &Kept) -> [String; 4] {
    let line = kept.span.as_ref().map_or("no line".to_string(), place);
    let loops = match kept.loops {
        0 => String::new(),
        1 => " per iteration".to_string(),
        n => format!(" per iteration of {n} loops"),
    };
    let bytes = format!("{} bytes{loops} ({})", kept.bytes, kept.place);
    [line, bytes, kept.what.clone(), kept.why.clone()]
}
