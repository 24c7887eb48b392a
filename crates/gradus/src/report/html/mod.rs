//! The report as a page in one file: no script runs, and nothing is loaded from elsewhere. The page holds the JSON
//! document, too, for programs.

mod anchors;
mod derivative;
mod escape;
mod program;
mod source;
mod tape;

use super::document::{Document, mode_name};
use super::figures::{bytes, count, place, size};
use escape::{escaped, in_script};
use gradus_pipeline::report::TapeSize;
use std::fmt::Write;

const STYLE: &str = include_str!("style.css");

/// Returns the page.
pub(super) fn page(document: &Document) -> String {
    let title = title(document);
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{} – Gradus report</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n",
        escaped(&title)
    );
    html += &heading(document, &title);
    html += "<main>\n";
    if document.report.is_empty() {
        html += "<p>The program requests no derivatives and has no parallel code.</p>\n";
    }
    html += &program::check(document);
    for number in 0..document.headlines.len() {
        html += &derivative::section(document, number);
    }
    html += &program::regions(document);
    html += &program::kernels(document);
    html += "</main>\n";
    // Writing to a string does not fail.
    let _ = write!(
        html,
        "<footer><p>Made by Gradus {}. Operations are additions, multiplications, divisions and mathematical functions \
         on floats. Numbers of executed operations and bytes are estimates of the compiler; a length that it does not \
         know counts as 1000.</p></footer>\n\
         <script type=\"application/json\" id=\"gradus-report\">\n{}</script>\n</body>\n</html>\n",
        escaped(env!("CARGO_PKG_VERSION")),
        in_script(&document.compact_json())
    );
    html
}

/// Returns the title: the function of the only derivative, or the number of derivatives.
fn title(document: &Document) -> String {
    match &document.headlines[..] {
        [] if document.report.is_empty() => "No derivatives".to_string(),
        [] => "Parallel code".to_string(),
        [one] => document.derivative(one.derivative).function.clone(),
        several => format!("{} derivatives", several.len()),
    }
}

/// Returns the head of the page: the title, and an overview if there are several derivatives.
fn heading(document: &Document, title: &str) -> String {
    let mut html = format!(
        "<header>\n<p class=\"brand\">Gradus report</p>\n<h1>{}</h1>\n",
        escaped(title)
    );
    if let [one] = &document.headlines[..] {
        let root = document.derivative(one.derivative);
        html += &format!("<p class=\"lead\">{}</p>\n", derivative::subtitle(root));
    }
    if document.headlines.len() > 1 {
        html += "<nav aria-label=\"Derivatives\"><table class=\"list\">\n<thead><tr><th scope=\"col\">Function</th>\
                 <th scope=\"col\">Derivative</th><th scope=\"col\" class=\"number\">Operations</th>\
                 <th scope=\"col\" class=\"number\">Ratio</th><th scope=\"col\" class=\"number\">Tape</th></tr></thead>\n<tbody>\n";
        for (number, headline) in document.headlines.iter().enumerate() {
            let root = document.derivative(headline.derivative);
            let at = root.location.as_ref().map(place).unwrap_or_default();
            let ratio = headline
                .ratio
                .map_or("–".to_string(), |r| format!("{r:.1}×"));
            let _ = writeln!(
                html,
                "<tr><th scope=\"row\"><a href=\"#d{number}\">{}</a> <span class=\"muted\">{}</span></th><td>{}</td>\
                 <td class=\"number\">{}</td><td class=\"number\">{ratio}</td><td class=\"number\">{}</td></tr>",
                escaped(&root.function),
                escaped(&at),
                mode_name(root.mode),
                count(headline.ops.derivative),
                headline
                    .tape
                    .as_ref()
                    .map_or("–".to_string(), |tape| escaped(&size(tape)))
            );
        }
        html += "</tbody></table></nav>\n";
    }
    html + "</header>\n"
}

/// Returns a size for a narrow column. The hint of an unknown size has all factors.
fn sized(class: &str, tape: &TapeSize) -> String {
    if let Some(known) = tape.bytes {
        return data(class, known, &bytes(known));
    }
    let brief = match &tape.terms[..] {
        [one] => format!("{} × …", bytes(one.bytes)),
        _ => "unknown".to_string(),
    };
    format!(
        "<span class=\"{class}\" title=\"{}\">{brief}</span>",
        escaped(&size(tape))
    )
}

/// Returns a number with its exact value for programs.
fn data(class: &str, value: f64, text: &str) -> String {
    format!(
        "<data class=\"{class}\" value=\"{value}\">{}</data>",
        escaped(text)
    )
}
