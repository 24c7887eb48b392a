//! Diagnostics as JSON: `--message-format=json` writes an object per line to standard error, in the format
//! of rustc's diagnostics, for tools that parse rustc's.
//!
//! `message`, `code {code, explanation}`, `level`, `spans`, `children` (notes and helps), `rendered` (the
//! text for people). Byte offsets of a span cover the labelled word; columns count characters from 1, and
//! the end is exclusive.

use crate::render::{self, Sources, label_range};
use crate::said::errln;
use annotate_snippets::Renderer;
use gradus::{Diagnostic, Label, Severity};
use serde_json::{Value, json};

/// Shows diagnostics.
pub fn show(diagnostics: &[&Diagnostic]) {
    let mut sources = Sources::default();
    for diagnostic in diagnostics {
        errln!("{}", object(diagnostic, &mut sources, &Renderer::plain()));
    }
}

/// Returns diagnostics as lines, with colours in the text for people: Cargo removes colours that nobody sees.
pub fn lines(diagnostics: &[Diagnostic]) -> String {
    let mut sources = Sources::default();
    let renderer = Renderer::styled();
    let objects = diagnostics
        .iter()
        .map(|d| object(d, &mut sources, &renderer));
    let spaced = objects.map(|mut object| {
        // rustc's texts end with an empty line.
        let text = format!("{}\n", object["rendered"].as_str().unwrap_or_default());
        object["rendered"] = text.into();
        format!("{object}\n")
    });
    spaced.collect()
}

fn object(diagnostic: &Diagnostic, sources: &mut Sources, renderer: &Renderer) -> Value {
    let level = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    let rendered = render::text(diagnostic, renderer, sources);
    let inside = diagnostic.function.as_ref();
    let inside = inside.map(|name| format!("in function `{name}`"));
    let notes = inside.iter().chain(&diagnostic.notes);
    let mut children: Vec<Value> = notes.map(|text| child("note", text)).collect();
    children.extend(diagnostic.help.iter().map(|text| child("help", text)));
    let labels = diagnostic.labels.iter().enumerate();
    let spans: Vec<Value> = labels.map(|(i, l)| span(l, i == 0, sources)).collect();
    json!({
        "$message_type": "diagnostic",
        "message": diagnostic.message,
        "code": { "code": diagnostic.code.number(), "explanation": null },
        "level": level,
        "spans": spans,
        "children": children,
        "rendered": rendered + "\n",
    })
}

fn child(level: &str, text: &str) -> Value {
    json!({
        "message": text, "code": null, "level": level,
        "spans": [], "children": [], "rendered": null,
    })
}

/// Returns a span; only line and column if the file cannot be read.
fn span(label: &Label, primary: bool, sources: &mut Sources) -> Value {
    let (line, column) = (label.span.line, label.span.column.max(1));
    let mut bytes = 0..0;
    let (mut columns, mut texts) = ((column, column), Vec::new());
    if let Some(text) = sources.text(&label.span.file)
        && let Some(found) = label_range(text, label)
    {
        let start = text[..found.start].rfind('\n').map_or(0, |at| at + 1);
        let end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        let count = |at: usize| text[start..at].chars().count() + 1;
        columns = (count(found.start) as u32, count(found.end) as u32);
        texts.push(json!({
            "text": &text[start..end],
            "highlight_start": columns.0,
            "highlight_end": columns.1,
        }));
        bytes = found;
    }
    json!({
        "file_name": label.span.file,
        "byte_start": bytes.start, "byte_end": bytes.end,
        "line_start": line, "line_end": line,
        "column_start": columns.0, "column_end": columns.1,
        "is_primary": primary,
        "text": texts,
        "label": label.text,
        "suggested_replacement": null,
        "suggestion_applicability": null,
        "expansion": null,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus::{Code, SourceSpan};

    #[test]
    fn a_finding_has_its_parts_and_its_place() {
        let span = |line, column| {
            Some(SourceSpan {
                file: "a.c".into(),
                line,
                column,
                called_at: None,
            })
        };
        let finding = Diagnostic::error(Code::UnknownCallee, "no \"derivative\"")
            .in_function("f")
            .at(span(2, 10), "called here")
            .at(span(9, 0), "nowhere")
            .note("a fact")
            .help("do this");
        let source = "double f(double \u{e9}) {\n  return gee(\u{e9});\n}\n";
        let mut sources = Sources::of("a.c", source);
        let text = object(&finding, &mut sources, &Renderer::plain()).to_string();
        let read: Value = serde_json::from_str(&text).expect("it is JSON");
        assert_eq!(read["code"]["code"], "GRD0005");
        assert_eq!(read["level"], "error");
        assert_eq!(read["message"], "no \"derivative\"");
        let place = &read["spans"][0];
        assert_eq!(
            (&place["column_start"], &place["column_end"]),
            (&10.into(), &13.into())
        );
        assert_eq!(place["text"][0]["text"], "  return gee(\u{e9});");
        let bytes = place["byte_start"].as_u64().expect("a number") as usize;
        assert!(source[bytes..].starts_with("gee"));
        assert_eq!(
            (&place["is_primary"], &read["spans"][1]["is_primary"]),
            (&true.into(), &false.into())
        );
        assert_eq!(read["spans"][1]["line_start"], 9);
        let levels: Vec<&str> = (read["children"].as_array().into_iter().flatten())
            .filter_map(|c| c["level"].as_str())
            .collect();
        assert_eq!(levels, ["note", "note", "help"]);
        assert!(
            read["rendered"]
                .as_str()
                .is_some_and(|r| r.contains("error[GRD0005]"))
        );
    }
}
