//! The source with two gutters: operations of the derivative, and bytes of the tape. Saved values and decisions on
//! parallel loops follow their line. Lines far from all figures are left out.

use super::super::document::{Document, Headline};
use super::super::figures::count;
use super::super::full::{additions, value};
use super::anchors::Anchors;
use super::escape::{escaped, with_code};
use super::{data, sized};
use crate::files;
use gradus_ir::SourceSpan;
use gradus_pipeline::report::{DerivativeReport, DynamicOps, Location, RegionOutcome, TapeSize};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// The number of lines shown around a line with figures.
const CONTEXT_LINES: u32 = 3;
/// The size up to which a source is read.
const SOURCE_BYTES_MAX: u64 = 16 << 20;

/// The figures and notes of a line.
#[derive(Default)]
struct Line {
    ops: DynamicOps,
    active: usize,
    tape: TapeSize,
    /// Classes and contents of rows of HTML.
    notes: Vec<(&'static str, String)>,
}

/// Figures by file and line.
type Lines = BTreeMap<String, BTreeMap<u32, Line>>;

/// Returns the section on the source of a derivative and of the functions that it calls.
pub(super) fn section(document: &Document, headline: &Headline, anchors: Anchors<'_>) -> String {
    let shown = std::iter::once(headline.version).chain(headline.called.iter().copied());
    let shown: Vec<&DerivativeReport> = shown.map(|index| document.derivative(index)).collect();
    let mut lines = Lines::new();
    for one in &shown {
        add_figures(&mut lines, one);
        add_tape_notes(&mut lines, one);
        add_loop_notes(&mut lines, one);
    }
    // The lines of a library are in the JSON document and in the tree of the tape.
    lines.retain(|file, _| anchors.file == Some(file) || !is_system_file(file));
    add_region_notes(&mut lines, document);
    if lines.is_empty() {
        return "<h3>Source</h3>\n<p>No lines are known: compile with <code>-g</code> to see the source.</p>\n".to_string();
    }
    let most = |figure: &dyn Fn(&Line) -> f64| {
        let all = lines.values().flat_map(BTreeMap::values);
        all.map(figure).fold(0.0, f64::max)
    };
    let scale = (
        most(&|line| line.ops.derivative),
        most(&|line| line.tape.weight()),
    );
    let mut html = "<h3>Source</h3>\n<p class=\"legend muted\">Operations are executed operations of the derivative \
                    (estimate). <span class=\"edge\"></span>marks lines with active values.</p>\n"
        .to_string();
    // The file of the function comes first.
    let is_own = |file: &str| anchors.file == Some(file);
    let (own, others): (Vec<_>, Vec<_>) = lines.iter().partition(|(file, _)| is_own(file));
    for (file, lines) in own.into_iter().chain(others) {
        html += &table(file, lines, scale, anchors);
    }
    html
}

fn is_system_file(file: &str) -> bool {
    let span = SourceSpan {
        file: file.to_string(),
        line: 0,
        column: 0,
        called_at: None,
    };
    span.is_in_system_code()
}

fn line_at<'a>(lines: &'a mut Lines, at: &Location) -> &'a mut Line {
    let at = at.of_user();
    lines
        .entry(at.file.clone())
        .or_default()
        .entry(at.line)
        .or_default()
}

fn add_figures(lines: &mut Lines, one: &DerivativeReport) {
    for report in &one.lines {
        let line = lines
            .entry(report.file.clone())
            .or_default()
            .entry(report.line)
            .or_default();
        line.ops.primal += report.dynamic_ops.primal;
        line.ops.derivative += report.dynamic_ops.derivative;
        line.active += report.active_floats;
        line.tape.add(&report.tape);
    }
}

fn add_tape_notes(lines: &mut Lines, one: &DerivativeReport) {
    for row in one.tape.iter().flat_map(|tape| &tape.rows) {
        let Some(at) = &row.location else { continue };
        let remedy = match &row.remedy {
            Some(remedy) => format!(" <span class=\"remedy\">{}</span>", with_code(remedy)),
            None => String::new(),
        };
        let text = format!(
            "<span class=\"kept\">saved</span> {}, <span class=\"muted\">{}</span>: {}{remedy}",
            with_code(&value(row)),
            escaped(&row.formula),
            with_code(&row.why)
        );
        line_at(lines, at).notes.push(("note of-tape", text));
        // The tree of the tape links to the loops.
        for at in row.loops.iter().filter_map(|lp| lp.location.as_ref()) {
            line_at(lines, at);
        }
    }
}

fn add_loop_notes(lines: &mut Lines, one: &DerivativeReport) {
    for lp in &one.parallel_loops {
        let Some(at) = &lp.location else { continue };
        let how = match lp.parallel {
            true => "parallel in the reverse pass",
            false => "serial in the reverse pass",
        };
        let text = format!(
            "<span class=\"loop\">loop</span> {how}; adjoint additions: {}",
            escaped(&additions(lp))
        );
        line_at(lines, at).notes.push(("note", text));
    }
}

/// Adds the outcome of parallel regions in the files of the derivative.
fn add_region_notes(lines: &mut Lines, document: &Document) {
    for region in &document.report.parallel_regions {
        let constructs = region.constructs.iter().flat_map(|construct| {
            let decisions = construct.decisions.iter();
            decisions
                .filter_map(|decision| Some((construct.location.as_ref()?, decision.text.as_str())))
        });
        let refused = matches!(
            region.outcome,
            RegionOutcome::NotRaised | RegionOutcome::Serial
        );
        let own = region.location.as_ref().filter(|_| refused);
        let own = own.map(|at| (at, region.text.as_str()));
        for (at, text) in constructs.chain(own) {
            if lines.contains_key(&at.of_user().file) {
                let note = format!("<span class=\"loop\">parallel</span> {}", with_code(text));
                line_at(lines, at).notes.push(("note", note));
            }
        }
    }
}

/// Returns the lines of a source; `None` if it cannot be read. Bytes that are not UTF-8 are replaced.
fn read(file: &str) -> Option<Vec<String>> {
    let path = Path::new(file);
    let size = std::fs::metadata(path).ok()?.len();
    if files::is_special_file(path) || size > SOURCE_BYTES_MAX {
        return None;
    }
    let bytes = files::read(path).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    Some(text.lines().map(String::from).collect())
}

/// Returns the table of a file.
fn table(
    file: &str,
    lines: &BTreeMap<u32, Line>,
    scale: (f64, f64),
    anchors: Anchors<'_>,
) -> String {
    let text = read(file);
    let mut html = format!(
        "<div class=\"source\"><table><caption><code>{}</code>{}</caption>\n<thead><tr><th scope=\"col\" class=\"number\">Line</th>\
         <th scope=\"col\" class=\"number\">Operations</th><th scope=\"col\" class=\"number\">Tape</th>\
         <th scope=\"col\">Code</th></tr></thead>\n<tbody>\n",
        escaped(file),
        match text {
            Some(_) => "",
            None => " <span class=\"muted\">(the source cannot be read)</span>",
        }
    );
    let length = text.as_ref().map_or(u32::MAX, |text| text.len() as u32);
    let context = if text.is_some() { CONTEXT_LINES } else { 0 };
    let mut next = 1;
    for &number in lines.keys() {
        let first = number.saturating_sub(context).max(next);
        if first > next && next > 1 {
            html += "<tr class=\"gap\"><td colspan=\"4\">⋮</td></tr>\n";
        }
        for shown in first..=number.saturating_add(context).min(length.max(number)) {
            // The next line with figures continues from here.
            if shown > number && lines.contains_key(&shown) {
                break;
            }
            let code = text
                .as_ref()
                .and_then(|text| text.get(shown.saturating_sub(1) as usize));
            let line = lines.get(&shown);
            row(
                &mut html,
                (shown, code.map_or("", String::as_str)),
                line,
                (scale, anchors.attribute(file, shown)),
            );
            next = shown + 1;
        }
    }
    html + "</tbody></table></div>\n"
}

// Writing to a string does not fail.
fn row(
    html: &mut String,
    (number, code): (u32, &str),
    line: Option<&Line>,
    (scale, id): ((f64, f64), String),
) {
    let gutter = |class: &str, figure: f64, most: f64, shown: String| match figure > 0.0 {
        true => format!(
            "<td class=\"number gutter\"><span class=\"track {class}\" style=\"--w:{:.2}%\"></span>{shown}</td>",
            100.0 * figure / most
        ),
        false => "<td></td>".to_string(),
    };
    let empty = Line::default();
    let shown = line.unwrap_or(&empty);
    let class = match shown.active > 0 {
        true => " class=\"active\"",
        false => "",
    };
    let ops = shown.ops;
    let derived = data("line-derivative", ops.derivative, &count(ops.derivative));
    let cost = gutter("derivative", ops.derivative, scale.0, derived);
    let saved = sized("line-tape", &shown.tape);
    let tape = gutter("tape", shown.tape.weight(), scale.1, saved);
    let hint = match line {
        Some(line) => format!(
            " title=\"primal {}, derivative {} operations; active values: {}\"",
            count(ops.primal),
            count(ops.derivative),
            line.active
        ),
        None => String::new(),
    };
    let _ = writeln!(
        html,
        "<tr{id}{class}{hint}><th scope=\"row\">{number}</th>{cost}{tape}<td class=\"code\"><code>{}</code></td></tr>",
        escaped(code)
    );
    for (class, note) in line.iter().flat_map(|line| &line.notes) {
        let _ = writeln!(
            html,
            "<tr class=\"{class}\"><td colspan=\"3\"></td><td>{note}</td></tr>"
        );
    }
}
