//! The section of a requested derivative: figures, arguments, tape, source, decisions, called functions.

use super::super::document::{Document, Headline, mode_name, runs_loops};
use super::super::figures::{activity, bytes, count, many, place, result, size};
use super::super::full::{additions, arguments};
use super::anchors::Anchors;
use super::escape::escaped;
use super::{data, source, tape};
use gradus_pipeline::report::{AliasVersion, DerivativeReport};
use std::fmt::Write;

/// Returns the section of the derivative with a headline.
pub(super) fn section(document: &Document, number: usize) -> String {
    let headline = &document.headlines[number];
    let root = document.derivative(headline.derivative);
    let shown = document.derivative(headline.version);
    let mut html = format!("<section class=\"derivative\" id=\"d{number}\">\n");
    if document.headlines.len() > 1 {
        html += &format!(
            "<h2>{}</h2>\n<p class=\"lead\">{}</p>\n",
            escaped(&root.function),
            subtitle(root)
        );
    }
    let section = format!("d{number}");
    let anchors = Anchors {
        section: &section,
        file: shown.location.as_ref().map(|at| at.file.as_str()),
    };
    html += &cards(headline, shown, anchors);
    html += &interface(root);
    if let Some(tape) = &shown.tape {
        html += &format!("<h3>Tape by loop nest</h3>\n{}", tape::nest(tape, anchors));
    }
    html += &source::section(document, headline, anchors);
    html += &decisions(shown);
    html += &others(document, headline);
    html + "</section>\n"
}

/// Returns kind, place and symbol of a derivative.
pub(super) fn subtitle(root: &DerivativeReport) -> String {
    let name = match &root.derivative {
        Some(name) => format!(" <code>{}</code>", escaped(name)),
        None => String::new(),
    };
    let at = match &root.location {
        Some(at) => format!(" of the function in <code>{}</code>", escaped(&place(at))),
        None => String::new(),
    };
    format!("{}{name}{at}", mode_name(root.mode))
}

/// Returns the cards: cost, tape, activity.
fn cards(headline: &Headline, shown: &DerivativeReport, anchors: Anchors<'_>) -> String {
    let ops = headline.ops;
    let most = ops.primal.max(ops.derivative).max(1.0);
    let bar = |class: &str, label: &str, value: f64| {
        format!(
            "<div class=\"measure\"><dt>{label}</dt><dd><span class=\"track {class}\" style=\"--w:{:.2}%\"></span>{}</dd></div>",
            100.0 * value / most,
            data(&format!("ops-{class}"), value, &count(value))
        )
    };
    let estimate = match headline.ops_estimated {
        true => "operations executed (estimate)",
        false => "operations in the code",
    };
    let calls = match headline.called.is_empty() {
        true => "",
        false => "; called functions are not included",
    };
    let ratio = headline
        .ratio
        .map_or("–".to_string(), |ratio| format!("{ratio:.1}×"));
    let mut html = format!(
        "<div class=\"cards\">\n<div class=\"card cost\"><h3>Cost</h3><p class=\"big\">{ratio}</p><dl>{}{}</dl>\
         <p class=\"muted\">{estimate}{calls}</p></div>\n",
        bar("primal", "primal", ops.primal),
        bar("derivative", "derivative", ops.derivative)
    );
    html += &tape_card(headline, shown, anchors);
    let (active, all) = (shown.active_floats, shown.floats);
    let share = 100.0 * active as f64 / (all as f64).max(1.0);
    let _ = writeln!(
        html,
        "<div class=\"card activity\"><h3>Active values</h3><p class=\"big\">{}<span class=\"of\"> of {}</span></p>\
         <p><span class=\"track active\" style=\"--w:{share:.2}%\"></span></p>\
         <p class=\"muted\">float values of the code that carry a derivative</p></div>",
        data("active", active as f64, &active.to_string()),
        data("floats", all as f64, &all.to_string())
    );
    if headline.version != headline.derivative {
        html += "<div class=\"card\"><h3>Versions</h3><p class=\"big\">2</p><p class=\"muted\">An alias check at run time \
                 selects the version. The figures are those of the version for arguments that do not alias.</p></div>\n";
    }
    html + "</div>\n"
}

/// Returns the card on the tape; empty without a tape.
fn tape_card(headline: &Headline, shown: &DerivativeReport, anchors: Anchors<'_>) -> String {
    let Some(total) = &headline.tape else {
        // Not an error: forward mode has no tape.
        return String::new();
    };
    let about = match (total.bytes, total.is_zero()) {
        (None, _) => "lengths that only the run knows are factors; bars count 1000 for each",
        (Some(_), false) => "all lengths are known",
        (Some(_), true) => "the reverse pass recomputes or reloads all values",
    };
    let called = match (headline.called_tapes, headline.called_tape_bytes) {
        (0, _) => String::new(),
        (_, Some(known)) => format!(
            "<p>and {} in called functions</p>",
            data("called-tape", known, &bytes(known))
        ),
        (n, None) => format!("<p>and the tapes of {}</p>", many(n, "called function")),
    };
    let lines = shown.lines.iter().filter(|line| !line.tape.is_zero());
    let largest = lines.max_by(|a, b| a.tape.weight().total_cmp(&b.tape.weight()));
    let largest = largest.map_or(String::new(), |line| {
        let text = format!("line {}", line.line);
        let link = anchors.link(&line.file, line.line, &text);
        format!("<p>{} in {link}</p>", escaped(&size(&line.tape)))
    });
    let shown = match total.bytes {
        Some(known) => format!(
            "<p class=\"big\">{}</p>",
            data("tape-total", known, &bytes(known))
        ),
        None => format!("<p class=\"formula\">{}</p>", escaped(&size(total))),
    };
    format!(
        "<div class=\"card tape\"><h3>Tape</h3>{shown}{called}{largest}<p class=\"muted\">{about}</p></div>\n"
    )
}

/// Returns arguments and prototype.
fn interface(root: &DerivativeReport) -> String {
    let mut html = "<h3>Arguments</h3>\n<ul class=\"pills\">\n".to_string();
    let mut pill = |name: &str, role: &str| {
        let class = match role {
            "inactive" => "off",
            _ => "on",
        };
        let name = match name {
            "" => "result".to_string(),
            name => format!("<code>{}</code>", escaped(name)),
        };
        let _ = writeln!(html, "<li class=\"{class}\">{name} {}</li>", escaped(role));
    };
    for argument in &root.arguments {
        pill(&argument.name, &activity(argument));
    }
    pill("", result(root.result));
    html += "</ul>\n";
    if let Some(prototype) = &root.prototype {
        html += &format!(
            "<pre class=\"prototype\"><code>{};</code></pre>\n",
            escaped(prototype)
        );
    }
    html
}

/// Returns the decisions on loops and pointers, if there are any.
fn decisions(shown: &DerivativeReport) -> String {
    let mut rows: Vec<(String, String)> = Vec::new();
    for lp in &shown.parallel_loops {
        let (what, how) = match (&lp.location, lp.parallel) {
            (Some(at), true) => (place(at), "parallel in the reverse pass"),
            (Some(at), false) => (place(at), "serial in the reverse pass"),
            (None, _) => (
                "whole function".to_string(),
                "called in parallel iterations",
            ),
        };
        rows.push((what, format!("{how}; adjoint additions: {}", additions(lp))));
    }
    for lp in &shown.recomputed_loops {
        let what = lp.location.as_ref().map_or("a loop".to_string(), place);
        let idle = match lp.omitted_in_forward_pass {
            true => "recomputed in the reverse pass; the forward pass omits the loop",
            false => "recomputed in the reverse pass",
        };
        rows.push((what, idle.to_string()));
    }
    if shown.scatter_to_gather > 0 {
        let loops = many(shown.scatter_to_gather, "inner loop");
        rows.push((
            loops,
            "turned from scatter to gather in the reverse pass".to_string(),
        ));
    }
    if shown.runtime_activity_tests > 0 {
        let pointers = many(shown.runtime_activity_tests, "pointer");
        rows.push((pointers, "activity tested at run time".to_string()));
    }
    if rows.is_empty() {
        return String::new();
    }
    let mut html = "<h3>Decisions on loops</h3>\n<table class=\"list\"><thead><tr><th scope=\"col\">Subject</th>\
                    <th scope=\"col\">Decision</th></tr></thead><tbody>\n"
        .to_string();
    for (what, how) in rows {
        let _ = writeln!(
            html,
            "<tr><th scope=\"row\">{}</th><td>{}</td></tr>",
            escaped(&what),
            escaped(&how)
        );
    }
    html + "</tbody></table>\n"
}

/// Returns the other functions of a derivative: the fallback version, and called functions.
fn others(document: &Document, headline: &Headline) -> String {
    let next = document.headlines.iter().map(|one| one.derivative);
    let next = next.filter(|start| *start > headline.derivative).min();
    let end = next.unwrap_or(document.report.derivatives.len());
    let rest = headline.derivative + 1..end;
    let rest: Vec<usize> = rest.filter(|index| *index != headline.version).collect();
    if rest.is_empty() {
        return String::new();
    }
    let mut html = "<h3>Called functions and other versions</h3>\n".to_string();
    for index in rest {
        html += &other(document.derivative(index));
    }
    html
}

fn other(one: &DerivativeReport) -> String {
    let no_anchors = Anchors {
        section: "",
        file: None,
    };
    let version = match one.version {
        AliasVersion::Only => "",
        AliasVersion::NoAlias => ", no-alias version",
        AliasVersion::Fallback => ", fallback version",
    };
    let at = one.location.as_ref().map(place).unwrap_or_default();
    let tape = one.tape.as_ref();
    let size = tape.map_or(String::new(), |tape| {
        format!(", tape {}", escaped(&size(&tape.size())))
    });
    let ops = match runs_loops(one) {
        true => count(one.dynamic_ops.derivative),
        false => one.ops.derivative.to_string(),
    };
    let rows = tape.map_or(String::new(), |tape| tape::nest(tape, no_anchors));
    format!(
        "<details><summary><strong>{}</strong> <span class=\"muted\">{}</span> {}{version}: {ops} operations{size}</summary>\n\
         <p class=\"muted\">{}</p>\n{rows}</details>\n",
        escaped(&one.function),
        escaped(&at),
        mode_name(one.mode),
        escaped(&arguments(one))
    )
}
