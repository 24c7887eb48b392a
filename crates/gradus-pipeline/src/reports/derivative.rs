//! The derivative report as text: activity, saved values with reasons, operation counts.

use crate::reports::derivative_record::DerivativeRecord;
use crate::requests::source_arguments;
use gradus_ad::{ArgActivity, Mode, ParallelLoop, ResultActivity, SavedValue, Versions};
use gradus_ir::{SourceSpan, Unit};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Returns the report on all functions emitted for each root.
pub(crate) fn report(unit: &Unit, roots: &[Vec<DerivativeRecord>]) -> String {
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

fn describe(text: &mut String, unit: &Unit, made: &DerivativeRecord, callee: bool) {
    let function = &unit.functions[made.variant.func];
    let name = function.source_name.as_ref().unwrap_or(&function.name);
    let what = match made.variant.mode {
        Mode::Forward => "JVP",
        Mode::Combined => "VJP",
        Mode::Augmented => "forward pass",
        Mode::Reverse => "reverse pass",
    };
    let place = function
        .span
        .as_ref()
        .map_or(String::new(), |s| format!(" ({})", place(s)));
    let indent = if callee { "  " } else { "" };
    let report = &made.report;
    let version = match made.variant.versions {
        Versions::RuntimeCheck => "",
        Versions::Disjoint => ", no-alias version",
        Versions::Plain => ", fallback version",
    };
    let _ = writeln!(text, "{indent}{name}{place}: {what}{version}");
    let _ = writeln!(text, "{indent}  arguments: {}", arguments(unit, made));
    if report.versions {
        let _ = writeln!(
            text,
            "{indent}  versions: 2, selected by an alias check at run time"
        );
        return;
    }
    let (active, all) = report.active_values;
    let _ = writeln!(text, "{indent}  active: {active} of {all} float values");
    let (own, derived) = report.ops;
    let _ = writeln!(
        text,
        "{indent}  ops: primal {own}, derivative {derived}{}",
        ratio(own as f64, derived as f64)
    );
    let (own_runs, runs) = report.runs;
    if own_runs > own as f64 || runs > derived as f64 {
        let _ = writeln!(
            text,
            "{indent}  dynamic ops (estimate): primal {}, derivative {}{}",
            format_count(own_runs),
            format_count(runs),
            ratio(own_runs, runs)
        );
    }
    if report.runtime_activity_tests > 0 {
        let _ = writeln!(
            text,
            "{indent}  run-time activity: {}",
            match report.runtime_activity_tests {
                1 => "1 pointer".to_string(),
                several => format!("{several} pointers"),
            }
        );
    }
    if made.gather_loops > 0 {
        let run = match made.gather_loops {
            1 => "1 inner loop of the reverse pass".to_string(),
            several => format!("{several} inner loops of the reverse pass"),
        };
        let _ = writeln!(text, "{indent}  scatter-to-gather: {run}");
    }
    for (span, idle) in &report.recomputed_loops {
        let line = span
            .as_ref()
            .map_or(String::new(), |span| format!(" in line {}", span.line));
        let idle = match idle {
            true => "; the forward pass omits the loop",
            false => "",
        };
        let _ = writeln!(
            text,
            "{indent}  recomputed in the reverse pass: the loop{line}{idle}"
        );
    }
    for one in &report.parallel {
        parallel_loop_line(text, one, indent);
    }
    if matches!(made.variant.mode, Mode::Combined | Mode::Augmented) {
        tape_entries(text, &report.saved, indent);
    }
}

/// Appends a parallel loop of the reverse pass: parallel or serial execution, and the kind of adds to
/// shared memory.
fn parallel_loop_line(text: &mut String, one: &ParallelLoop, indent: &str) {
    let what = match (&one.span, one.is_concurrent) {
        (None, _) => "called in parallel iterations".to_string(),
        (Some(span), true) => format!(
            "parallel in the reverse pass: the loop in line {}",
            span.line
        ),
        (Some(span), false) => {
            format!(
                "serial in the reverse pass: the parallel loop in line {}",
                span.line
            )
        }
    };
    let mut adds: Vec<String> = Vec::new();
    let lines = one.adds.iter().chain(&one.privatized_and_two_phase);
    let kinds = [
        "plain",
        "atomic",
        "privatised, or atomic by a check at run time",
        "two-phase, or atomic by a check at run time",
    ];
    for (kind, lines) in kinds.iter().zip(lines) {
        let mut places: Vec<String> = lines.iter().map(u32::to_string).collect();
        places.dedup();
        if !lines.is_empty() {
            adds.push(format!(
                "{} {kind} (line {})",
                lines.len(),
                places.join(", ")
            ));
        }
    }
    if one.reductions > 0 {
        adds.push(format!("{} by reduction", one.reductions));
    }
    let adds = match adds.is_empty() {
        true => "none".to_string(),
        false => adds.join(", "),
    };
    let _ = writeln!(text, "{indent}  {what}; adjoint additions: {adds}");
}

/// Returns the activity of each argument and of the result.
fn arguments(unit: &Unit, made: &DerivativeRecord) -> String {
    let variant = &made.variant;
    let mut list: Vec<String> = source_arguments(unit, variant.func)
        .into_iter()
        .map(|argument| {
            let what = argument.params.map(|i| match variant.args[i] {
                ArgActivity::Const => "inactive",
                ArgActivity::Dup => "with shadow",
                ArgActivity::MaybeDup => "with shadow if the shadow is a different pointer",
                ArgActivity::DupNoNeed => "with shadow, contents unused after the call",
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

fn ratio(own: f64, derived: f64) -> String {
    match own > 0.0 {
        true => format!(" ({:.1}×)", derived / own),
        false => String::new(),
    }
}

/// Formats a count with at most four digits.
fn format_count(number: f64) -> String {
    match number {
        n if n < 1e4 => format!("{n:.0}"),
        n if n < 1e6 => format!("{:.0}k", n / 1e3),
        n if n < 1e9 => format!("{:.1}M", n / 1e6),
        n => format!("{n:.1e}"),
    }
}

fn format_bytes(number: f64) -> String {
    match number {
        n if n < 1e4 => format!("{n:.0} bytes"),
        n if n < 1e6 => format!("{:.0} KB", n / 1e3),
        n if n < 1e9 => format!("{:.1} MB", n / 1e6),
        n => format!("{:.1} GB", n / 1e9),
    }
}

/// Appends the tape's contents by source line. The most expensive line comes first, and within a line the
/// most expensive value.
fn tape_entries(text: &mut String, kept: &[SavedValue], indent: &str) {
    if kept.is_empty() {
        let _ = writeln!(text, "{indent}  tape: 0 bytes");
        return;
    }
    let line = |kept: &SavedValue| kept.span.as_ref().map_or("unknown line".to_string(), place);
    let mut totals: BTreeMap<String, f64> = BTreeMap::new();
    for one in kept {
        *totals.entry(line(one)).or_default() += one.total_bytes;
    }
    let mut order: Vec<&SavedValue> = kept.iter().collect();
    order.sort_by(|a, b| {
        let (at_a, at_b) = (line(a), line(b));
        let by_line = totals[&at_b].total_cmp(&totals[&at_a]);
        by_line
            .then_with(|| at_a.cmp(&at_b))
            .then_with(|| b.total_bytes.total_cmp(&a.total_bytes))
            .then_with(|| {
                (size(a), &a.description, &a.reason).cmp(&(size(b), &b.description, &b.reason))
            })
    });
    let all: f64 = totals.values().sum();
    let guessed = kept.iter().flat_map(|k| &k.trip_counts);
    let guessed = guessed.filter(|t| t.parse::<u64>().is_err()).count();
    let about = match guessed {
        0 => "",
        _ => " (unknown lengths count as 1000)",
    };
    let _ = writeln!(text, "{indent}  tape: {}{about}", format_bytes(all));
    let mut rows: Vec<(usize, [String; 4])> = Vec::new();
    let mut before: Option<String> = None;
    for one in order {
        let at = line(one);
        let head = match before.as_ref() == Some(&at) {
            true => String::new(),
            false => format!("{at}: {}", format_bytes(totals[&at])),
        };
        let row = [head, size(one), one.description.clone(), one.reason.clone()];
        match rows.last_mut() {
            // Equal except for the index.
            Some((count, last)) if row[0].is_empty() && last[1..] == row[1..] => *count += 1,
            _ => rows.push((1, row)),
        }
        before = Some(at);
    }
    for (count, row) in &mut rows {
        if *count > 1 {
            row[2] = format!("{} ({count}×)", row[2]);
        }
    }
    let width = |column: usize| rows.iter().map(|(_, r)| r[column].chars().count()).max();
    let widths = [0, 1, 2].map(|column| width(column).unwrap_or(0));
    for (_, [line, bytes, what, why]) in &rows {
        let _ = writeln!(
            text,
            "{indent}    {line:<0$}  {bytes:<1$}  {what:<2$}  {why}",
            widths[0], widths[1], widths[2]
        );
    }
}

/// Returns the most expensive entry of these roots' tapes, with the source line.
pub(crate) fn most_expensive_entry(roots: &[Vec<DerivativeRecord>]) -> Option<String> {
    let kept = roots.iter().flatten().flat_map(|made| &made.report.saved);
    let kept = kept.max_by(|a, b| {
        let bytes = a.total_bytes.total_cmp(&b.total_bytes);
        bytes.then_with(|| (size(b), &b.description).cmp(&(size(a), &a.description)))
    })?;
    let at = match &kept.span {
        Some(span) => format!("{}: ", place(span)),
        None => String::new(),
    };
    Some(format!("{at}{}, {}", kept.description, size(kept)))
}

/// Formats size, trip counts and location of a saved value.
fn size(kept: &SavedValue) -> String {
    let times: String = kept.trip_counts.iter().map(|t| format!(" × {t}")).collect();
    format!("{} bytes{times} ({})", kept.bytes, kept.place)
}
