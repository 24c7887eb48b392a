//! The report as text of at most twelve lines: what was made, the cost, the tape with its largest lines of the
//! user's code, and the remedy for the largest.

use super::document::{Document, Headline, mode_name};
use super::figures::{activity, bytes, clipped, count, many, place, ratio, result, size};
use super::full::{ALIASING_RULES, value};
use gradus_pipeline::report::{
    AdditionKind, DerivativeReport, RegionOutcome, ResultRole, Tape, TapeRow, TapeSize,
};
use std::collections::BTreeMap;

/// The largest number of lines.
const LINES_MAX: usize = 12;
/// The largest number of characters of a name or a list.
const WIDTH_MAX: usize = 100;
/// The number of source lines whose tape is listed.
const TAPE_LINES_MAX: usize = 3;

/// Returns the report; empty if nothing was made.
pub(super) fn text(document: &Document) -> String {
    let mut lines = match &document.headlines[..] {
        [one] => single(document, one),
        several => list(document, several),
    };
    lines.extend(parallel_regions(document));
    if !document.report.kernels.is_empty() {
        lines.push(format!(
            "{} lowered to loops",
            many(document.report.kernels.len(), "kernel")
        ));
    }
    if !lines.is_empty() {
        lines.truncate(LINES_MAX - 1);
        lines.push("details: --report=full, or --report=html for a page".to_string());
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Returns the lines on the only requested derivative.
fn single(document: &Document, headline: &Headline) -> Vec<String> {
    let root = document.derivative(headline.derivative);
    let shown = document.derivative(headline.version);
    let mut lines = vec![title(root)];
    lines.push(format!("  arguments: {}", arguments(root)));
    lines.push(format!("  {}", cost(headline)));
    if shown.assumes_aliasing_rules {
        lines.push(format!("  {ALIASING_RULES}"));
    }
    if let (Some(tape), Some(size)) = (&shown.tape, &headline.tape) {
        lines.push(format!("  {}", tape_total(headline, size)));
        lines.extend(tape_lines(tape));
    }
    lines.extend(parallel_loops(document, headline));
    lines
}

/// Returns a line for each requested derivative.
fn list(document: &Document, headlines: &[Headline]) -> Vec<String> {
    // A line for the rest, for regions, for kernels, and the last one.
    const ROOM: usize = LINES_MAX - 4;
    let line = |headline: &Headline| {
        let root = document.derivative(headline.derivative);
        let tape = headline.tape.as_ref();
        let tape = tape.map(|size| format!("; {}", tape_total(headline, size)));
        format!(
            "{}: {}{}",
            title(root),
            cost(headline),
            tape.unwrap_or_default()
        )
    };
    let mut lines: Vec<String> = headlines.iter().take(ROOM).map(line).collect();
    let rest = headlines.len().saturating_sub(ROOM);
    if rest > 0 {
        lines.push(format!("and {} more", many(rest, "derivative")));
    }
    lines
}

fn title(one: &DerivativeReport) -> String {
    let at = one.location.as_ref();
    let at = at.map_or(String::new(), |at| format!(" ({})", place(at)));
    let name = one.derivative.as_ref();
    let name = name.map_or(String::new(), |name| {
        format!(" `{}`", clipped(name, WIDTH_MAX))
    });
    let function = clipped(&one.function, WIDTH_MAX);
    format!("{function}{at}: {}{name}", mode_name(one.mode))
}

/// Returns the activity of the arguments; arguments of equal activity share an entry.
fn arguments(one: &DerivativeReport) -> String {
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for argument in &one.arguments {
        let role = activity(argument);
        match groups.iter_mut().find(|(known, _)| *known == role) {
            Some((_, names)) => names.push(&argument.name),
            None => groups.push((role, vec![&argument.name])),
        }
    }
    let mut parts: Vec<String> = (groups.into_iter())
        .map(|(role, names)| format!("{} {role}", clipped(&names.join(", "), WIDTH_MAX)))
        .collect();
    if one.result != ResultRole::Inactive || parts.is_empty() {
        parts.push(format!("result {}", result(one.result)));
    }
    parts.join("; ")
}

fn cost(headline: &Headline) -> String {
    let ops = headline.ops;
    let estimate = match headline.ops_estimated {
        true => " (estimate)",
        false => "",
    };
    let calls = match headline.called.len() {
        0 => String::new(),
        n => format!("; {} not counted", many(n, "called function")),
    };
    format!(
        "ops{estimate}: primal {}, derivative {}{}{calls}",
        count(ops.primal),
        count(ops.derivative),
        ratio(ops.primal, ops.derivative)
    )
}

fn tape_total(headline: &Headline, total: &TapeSize) -> String {
    let called = match (headline.called_tapes, headline.called_tape_bytes) {
        (0, _) => String::new(),
        (_, Some(known)) => format!(", and {} in called functions", bytes(known)),
        (n, None) => format!(", and the tapes of {}", many(n, "called function")),
    };
    format!("tape: {}{called}", size(total))
}

/// Returns the user's lines with the largest part of the tape, and a remedy for the first that has one.
fn tape_lines(tape: &Tape) -> Vec<String> {
    let mut by_line: BTreeMap<String, (TapeSize, Vec<&TapeRow>)> = BTreeMap::new();
    for row in &tape.rows {
        let at = row
            .location
            .as_ref()
            .map_or("unknown line".into(), |at| place(at.of_user()));
        let entry = by_line.entry(at).or_default();
        entry.0.add_row(row);
        entry.1.push(row);
    }
    let mut order: Vec<_> = by_line.into_iter().collect();
    order.sort_by(|(_, a), (_, b)| b.0.weight().total_cmp(&a.0.weight()));
    let mut lines: Vec<String> = Vec::new();
    for (at, (total, rows)) in order.iter().take(TAPE_LINES_MAX) {
        // A line of the tape has a row.
        let largest = rows
            .iter()
            .max_by(|a, b| a.size().weight().total_cmp(&b.size().weight()));
        let Some(largest) = largest else { continue };
        let more = match rows.len() {
            1 => String::new(),
            n => format!(", and {} more", n - 1),
        };
        let what = clipped(&value(largest), WIDTH_MAX);
        lines.push(format!(
            "    {at}: {}  {what}, {}{more}",
            size(total),
            largest.why
        ));
    }
    let remedies = order
        .iter()
        .take(TAPE_LINES_MAX)
        .find_map(|(at, (_, rows))| {
            let remedy = rows.iter().find_map(|row| row.remedy.as_ref())?;
            Some(format!("    remedy for {at}: {remedy}"))
        });
    lines.extend(remedies);
    lines
}

/// Returns a line on the parallel loops of the reverse pass, if any.
fn parallel_loops(document: &Document, headline: &Headline) -> Option<String> {
    let shown = [headline.version]
        .into_iter()
        .chain(headline.called.iter().copied());
    let loops = shown.flat_map(|i| &document.derivative(i).parallel_loops);
    let loops: Vec<_> = loops.filter(|one| one.location.is_some()).collect();
    let parallel = loops.iter().filter(|one| one.parallel).count();
    let additions = loops.iter().flat_map(|one| &one.additions);
    let atomic = additions.filter(|one| one.kind == AdditionKind::Atomic);
    let atomic: usize = atomic.map(|one| one.lines.len()).sum();
    (!loops.is_empty()).then(|| {
        format!(
            "  parallel loops: {parallel} of {} stay parallel in the reverse pass; {}",
            loops.len(),
            many(atomic, "atomic addition")
        )
    })
}

/// Returns a line on the parallel regions, if any; the first region that is not parallel is named.
fn parallel_regions(document: &Document) -> Option<String> {
    let regions = &document.report.parallel_regions;
    let is_other = |outcome| matches!(outcome, RegionOutcome::NotRaised | RegionOutcome::Serial);
    let others: Vec<_> = regions.iter().filter(|one| is_other(one.outcome)).collect();
    let first = others.first().map(|one| {
        let at = one.location.as_ref().map_or(one.function.clone(), place);
        format!(", {} not; {at}: {}", others.len(), one.text)
    });
    (!regions.is_empty()).then(|| {
        let raised = many(regions.len() - others.len(), "parallel region");
        format!("{raised} raised{}", first.unwrap_or_default())
    })
}
