//! The report as text, with all rows.

use super::document::{Document, mode_name, runs_loops};
use super::figures::{activity, bytes, count, many, place, ratio, result, size};
use gradus_pipeline::report::{
    AdditionKind, AliasVersion, BarrierReport, DerivativeReport, KernelReport, RegionReport,
    Report, ReverseLoop, Tape, TapeRow, TapeSize,
};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The line for a derivative whose analysis of pointers used TBAA.
pub(super) const ALIASING_RULES: &str =
    "assumes: the program keeps the aliasing rules of C (no -fno-strict-aliasing)";

/// Returns the whole report.
pub(super) fn text(document: &Document) -> String {
    let mut text = String::new();
    for one in &document.report.derivatives {
        if !text.is_empty() {
            text.push('\n');
        }
        derivative(&mut text, one);
    }
    for part in [regions(&document.report), kernels(&document.report)] {
        if !text.is_empty() && !part.is_empty() {
            text.push('\n');
        }
        text += &part;
    }
    text
}

// Writing to a string does not fail.
fn derivative(text: &mut String, one: &DerivativeReport) {
    let indent = if one.requested { "" } else { "  " };
    let place = one.location.as_ref();
    let place = place.map_or(String::new(), |at| format!(" ({})", self::place(at)));
    let version = match one.version {
        AliasVersion::Only => "",
        AliasVersion::NoAlias => ", no-alias version",
        AliasVersion::Fallback => ", fallback version",
    };
    let _ = writeln!(
        text,
        "{indent}{}{place}: {}{version}",
        one.function,
        mode_name(one.mode)
    );
    let _ = writeln!(text, "{indent}  arguments: {}", arguments(one));
    if one.selects_version {
        let _ = writeln!(
            text,
            "{indent}  versions: 2, selected by an alias check at run time"
        );
        return;
    }
    let (active, all) = (one.active_floats, one.floats);
    let _ = writeln!(text, "{indent}  active: {active} of {all} float values");
    let (own, derived) = (one.ops.primal, one.ops.derivative);
    let _ = writeln!(
        text,
        "{indent}  ops: primal {own}, derivative {derived}{}",
        ratio(own as f64, derived as f64)
    );
    if runs_loops(one) {
        let (own, derived) = (one.dynamic_ops.primal, one.dynamic_ops.derivative);
        let _ = writeln!(
            text,
            "{indent}  dynamic ops (estimate): primal {}, derivative {}{}",
            count(own),
            count(derived),
            ratio(own, derived)
        );
    }
    if one.runtime_activity_tests > 0 {
        let pointers = many(one.runtime_activity_tests, "pointer");
        let _ = writeln!(text, "{indent}  run-time activity: {pointers}");
    }
    if one.assumes_aliasing_rules {
        let _ = writeln!(text, "{indent}  {ALIASING_RULES}");
    }
    if one.scatter_to_gather > 0 {
        let loops = many(one.scatter_to_gather, "inner loop");
        let _ = writeln!(
            text,
            "{indent}  scatter-to-gather: {loops} of the reverse pass"
        );
    }
    for again in &one.recomputed_loops {
        let line = again.location.as_ref();
        let line = line.map_or(String::new(), |at| format!(" in line {}", at.line));
        let idle = match again.omitted_in_forward_pass {
            true => "; the forward pass omits the loop",
            false => "",
        };
        let _ = writeln!(
            text,
            "{indent}  recomputed in the reverse pass: the loop{line}{idle}"
        );
    }
    for lp in &one.parallel_loops {
        let _ = writeln!(text, "{indent}  {}", reverse_loop(lp));
    }
    if let Some(tape) = &one.tape {
        tape_rows(text, tape, indent);
    }
}

/// Returns the activity of each argument and of the result.
pub(super) fn arguments(one: &DerivativeReport) -> String {
    let arguments = one.arguments.iter();
    let mut list: Vec<String> = arguments
        .map(|argument| format!("{} {}", argument.name, activity(argument)))
        .collect();
    list.push(format!("result {}", result(one.result)));
    list.join(", ")
}

/// Describes a parallel loop of the reverse pass: parallel or serial execution, and the kind of adds to
/// shared memory.
pub(super) fn reverse_loop(one: &ReverseLoop) -> String {
    let what = match (&one.location, one.parallel) {
        (None, _) => "called in parallel iterations".to_string(),
        (Some(at), true) => format!("parallel in the reverse pass: the loop in line {}", at.line),
        (Some(at), false) => {
            format!(
                "serial in the reverse pass: the parallel loop in line {}",
                at.line
            )
        }
    };
    format!("{what}; adjoint additions: {}", additions(one))
}

/// Returns the kinds of additions to adjoints, with lines.
pub(super) fn additions(one: &ReverseLoop) -> String {
    let mut adds: Vec<String> = Vec::new();
    for of_kind in &one.additions {
        let mut places: Vec<String> = of_kind.lines.iter().map(u32::to_string).collect();
        places.dedup();
        adds.push(format!(
            "{} {} (line {})",
            of_kind.lines.len(),
            addition_name(of_kind.kind),
            places.join(", ")
        ));
    }
    if one.reductions > 0 {
        adds.push(format!("{} by reduction", one.reductions));
    }
    match adds.is_empty() {
        true => "none".to_string(),
        false => adds.join(", "),
    }
}

fn addition_name(kind: AdditionKind) -> &'static str {
    match kind {
        AdditionKind::Plain => "plain",
        AdditionKind::Atomic => "atomic",
        AdditionKind::Privatised => "privatised, or atomic by a check at run time",
        AdditionKind::TwoPhase => "two-phase, or atomic by a check at run time",
    }
}

/// Appends the tape's contents by source line.
fn tape_rows(text: &mut String, tape: &Tape, indent: &str) {
    if tape.rows.is_empty() {
        let _ = writeln!(text, "{indent}  tape: 0 bytes");
        return;
    }
    let _ = writeln!(text, "{indent}  tape: {}", size(&tape.size()));
    let line = |row: &TapeRow| row.location.as_ref().map_or("unknown line".into(), place);
    let mut totals: BTreeMap<String, TapeSize> = BTreeMap::new();
    for row in &tape.rows {
        totals.entry(line(row)).or_default().add_row(row);
    }
    let mut before: Option<String> = None;
    let mut rows: Vec<[String; 4]> = Vec::new();
    for row in &tape.rows {
        let at = line(row);
        let head = match before.as_ref() == Some(&at) {
            true => String::new(),
            // The rows show the factors of an unknown size.
            false => match totals[&at].bytes {
                Some(known) => format!("{at}: {}", bytes(known)),
                None => format!("{at}:"),
            },
        };
        let saves = format!("{} ({})", row.formula, row.storage);
        rows.push([head, saves, value(row), row.why.clone()]);
        before = Some(at);
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths = [0, 1, 2].map(|column| width(column).unwrap_or(0));
    for [line, bytes, what, why] in &rows {
        let _ = writeln!(
            text,
            "{indent}    {line:<0$}  {bytes:<1$}  {what:<2$}  {why}",
            widths[0], widths[1], widths[2]
        );
    }
}

/// Returns the saved value of a row, with the number of equal ones.
pub(super) fn value(row: &TapeRow) -> String {
    match row.count {
        1 => row.value.clone(),
        several => format!("{} ({several}×)", row.value),
    }
}

/// Returns the outcome of each parallel region, and the decisions on its loops.
pub fn regions(report: &Report) -> String {
    report.parallel_regions.iter().map(region).collect()
}

fn region(region: &RegionReport) -> String {
    let place = region.location.as_ref();
    let place = place.map_or_else(|| region.function.clone(), self::place);
    let mut text = format!("{place}: {}\n", region.text);
    for construct in &region.constructs {
        let _ = match &construct.location {
            Some(at) => writeln!(text, "    line {}: {}", at.line, construct.name),
            None => writeln!(text, "    {}", construct.name),
        };
        for decision in &construct.decisions {
            let _ = writeln!(text, "        {}", decision.text);
        }
    }
    text
}

/// Returns the transformations of each kernel.
pub fn kernels(report: &Report) -> String {
    report.kernels.iter().map(kernel).collect()
}

fn kernel(kernel: &KernelReport) -> String {
    let mut text = format!(
        "{}: kernel, {}\n",
        kernel_place(kernel),
        kernel.launches.join(", ")
    );
    for line in kernel_lines(kernel) {
        let _ = writeln!(text, "    {line}");
    }
    text
}

/// Returns file and lines of a kernel.
pub(super) fn kernel_place(kernel: &KernelReport) -> String {
    let file = kernel.file.as_deref().unwrap_or("?");
    format!("{file}:{}-{}", kernel.first_line, kernel.last_line)
}

/// Returns a line for each transformation of a kernel.
pub(super) fn kernel_lines(kernel: &KernelReport) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in &kernel.fused_launches {
        lines.push(format!(
            "fused with the launch in line {line} if the checks at run time pass"
        ));
    }
    for line in &kernel.removed_barriers {
        lines.push(format!(
            "line {line}: barrier, removed: no accesses to order"
        ));
    }
    if kernel.barriers.is_empty() {
        lines.push("no barrier: one thread loop".to_string());
    }
    lines.extend(kernel.barriers.iter().map(barrier));
    if kernel.private_array_bytes > 0 {
        let bytes = kernel.private_array_bytes;
        lines.push(format!(
            "private arrays across barriers: {bytes} bytes per thread"
        ));
    }
    for line in &kernel.divergent_lines {
        lines.push(format!(
            "line {line}: divergent control flow around a barrier: one flag per thread"
        ));
    }
    for line in &kernel.interchanged_loops {
        lines.push(format!("line {line}: interchanged with the thread loop"));
    }
    for remark in &kernel.vectorizer {
        lines.push(format!("line {}: {}", remark.line, remark.text));
    }
    lines
}

fn barrier(barrier: &BarrierReport) -> String {
    let what = match barrier.warp {
        true => "warp synchronisation",
        false => "barrier",
    };
    let stored = match barrier.saved {
        0 => "no values saved".to_string(),
        n => format!(
            "{} saved per thread ({} bytes)",
            many(n, "value"),
            barrier.bytes
        ),
    };
    let again = match barrier.recomputed {
        0 => String::new(),
        n => format!(", {} recomputed", many(n, "value")),
    };
    format!("line {}: {what}, split: {stored}{again}", barrier.line)
}
