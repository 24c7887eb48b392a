//! Renders diagnostics for people, in rustc's style, with the user's source lines.

use crate::said::errln;
use annotate_snippets::{AnnotationKind, Element, Group, Level, Origin, Renderer, Snippet};
use gradus::{Diagnostic, Label, Severity};
use std::collections::HashMap;
use std::io::IsTerminal;
use std::ops::Range;

/// Shows diagnostics on standard error.
pub fn show(shown: &[&Diagnostic]) {
    let mut sources = Sources::default();
    let styled = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let renderer = if styled {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    for diagnostic in shown {
        errln!("{}\n", text(diagnostic, &renderer, &mut sources));
    }
    let errors = shown.iter().filter(|d| d.severity == Severity::Error);
    let mut codes: Vec<&str> = errors.map(|d| d.code.number()).collect();
    codes.sort_unstable();
    codes.dedup();
    if let [first, ..] = codes[..] {
        errln!("for details, run `gradus explain {first}`");
    }
}

/// The source files of diagnostics, each read once.
#[derive(Default)]
pub struct Sources {
    texts: HashMap<String, Option<String>>,
}

impl Sources {
    /// Creates a single file with this text.
    #[cfg(test)]
    pub fn of(file: &str, text: &str) -> Sources {
        Sources {
            texts: HashMap::from([(file.to_string(), Some(text.to_string()))]),
        }
    }

    /// Returns the text of a file; `None` if the file cannot be read.
    pub fn text(&mut self, file: &str) -> Option<&str> {
        let read = || std::fs::read(file).ok().map(as_utf8);
        let text = self.texts.entry(file.to_string()).or_insert_with(read);
        text.as_deref()
    }
}

/// Returns the text of a file. In a file of another encoding (Latin-1 in older Fortran) each byte beyond ASCII becomes a
/// question mark, so that columns stay.
fn as_utf8(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| {
        let bytes = error.into_bytes().into_iter();
        let ascii = |byte: u8| {
            if byte.is_ascii() {
                char::from(byte)
            } else {
                '?'
            }
        };
        bytes.map(ascii).collect()
    })
}

/// Returns a label's byte range in the text of its file: the word at the column, or the line.
pub fn label_range(text: &str, label: &Label) -> Option<Range<usize>> {
    let line = usize::try_from(label.span.line).ok()?.checked_sub(1)?;
    let mut start = 0;
    for _ in 0..line {
        start += text[start..].find('\n')? + 1;
    }
    let end = text[start..].find('\n').map_or(text.len(), |n| start + n);
    let column = usize::try_from(label.span.column).ok()?.checked_sub(1);
    let from = column
        .map(|c| start + c)
        .filter(|&from| from < end && text.is_char_boundary(from));
    let Some(from) = from else {
        let indent = text[start..end].len() - text[start..end].trim_start().len();
        return Some(start + indent..end);
    };
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let length = text[from..end].find(|c| !word(c)).unwrap_or(end - from);
    let first = text[from..].chars().next().map_or(1, char::len_utf8);
    Some(from..from + length.max(first))
}

/// Renders a diagnostic.
pub fn text(diagnostic: &Diagnostic, renderer: &Renderer, sources: &mut Sources) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let mut notes = diagnostic.notes.clone();
    if let Some(function) = &diagnostic.function {
        notes.insert(0, format!("in function `{function}`"));
    }
    let title = level
        .primary_title(&diagnostic.message)
        .id(diagnostic.code.number());
    let mut elements: Vec<Element<'_>> = Vec::new();
    for file in files(&diagnostic.labels) {
        let labels = || diagnostic.labels.iter().filter(|l| l.span.file == file);
        let Some(text) = sources.text(file) else {
            elements.extend(labels().map(|l| {
                let origin = Origin::path(file).line(l.span.line as usize);
                Element::from(match l.span.column {
                    0 => origin,
                    column => origin.char_column(column as usize),
                })
            }));
            continue;
        };
        let placed = labels().filter_map(|label| Some((label, label_range(text, label)?)));
        let placed: Vec<_> = placed.collect();
        let shown = lines_around(text, placed.iter().map(|(_, range)| range));
        let primary = diagnostic.labels.first();
        let annotations = placed.iter().map(|(label, range)| {
            let kind = match primary == Some(*label) {
                true => AnnotationKind::Primary,
                false => AnnotationKind::Context,
            };
            let inside = range.start - shown.start..range.end - shown.start;
            kind.span(inside).label(&label.text)
        });
        elements.push(
            Snippet::source(text[shown.clone()].to_string())
                .line_start(line_number(text, shown.start))
                .path(file)
                .annotations(annotations.collect::<Vec<_>>())
                .into(),
        );
    }
    elements.extend(notes.iter().map(|n| Level::NOTE.message(n).into()));
    elements.extend(
        diagnostic
            .help
            .iter()
            .map(|h| Level::HELP.message(h).into()),
    );
    let group: Group<'_> = title.elements(elements);
    renderer.render(&[group])
}

/// Returns the range of the lines from the first of some ranges to the last; the whole text if there is no range. The
/// renderer works on every line that it receives, and shows the annotated ones.
fn lines_around<'a>(text: &str, ranges: impl Iterator<Item = &'a Range<usize>>) -> Range<usize> {
    let both = |a: Range<usize>, b: Range<usize>| a.start.min(b.start)..a.end.max(b.end);
    let Some(inside) = ranges.cloned().reduce(both) else {
        return 0..text.len();
    };
    let start = text[..inside.start].rfind('\n').map_or(0, |at| at + 1);
    let end = text[inside.end..].find('\n');
    start..end.map_or(text.len(), |at| inside.end + at + 1)
}

/// Returns the number of the line that starts at a position, counted from 1.
fn line_number(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes()[..start].iter();
    1 + bytes.filter(|byte| **byte == b'\n').count()
}

/// Returns the files of some labels, without duplicates, in order.
fn files(labels: &[Label]) -> Vec<&str> {
    let mut files: Vec<&str> = Vec::new();
    for label in labels {
        if !files.contains(&label.span.file.as_str()) {
            files.push(&label.span.file);
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus::{Code, SourceSpan};

    fn finding(file: &str, line: u32, column: u32) -> Diagnostic {
        let span = SourceSpan {
            file: file.into(),
            line,
            column,
            called_at: None,
        };
        Diagnostic::error(Code::UnknownCallee, "no derivative of `g` is known")
            .in_function("f")
            .at(Some(span), "called here")
            .note("`g` is not in this program")
            .help("give its source too")
    }

    fn sources(file: &str, text: Option<&str>) -> Sources {
        Sources {
            texts: HashMap::from([(file.to_string(), text.map(String::from))]),
        }
    }

    #[test]
    fn a_finding_shows_the_line_the_code_and_the_remedy() {
        let source = "double f(double x) {\n  return gee(x);\n}\n";
        let shown = text(
            &finding("a.c", 2, 10),
            &Renderer::plain(),
            &mut sources("a.c", Some(source)),
        );
        for part in [
            "error[GRD0005]",
            "a.c:2:10",
            "return gee(x);",
            "^^^ called here",
            "in function `f`",
            "help: give",
        ] {
            assert!(shown.contains(part), "{part} is not in\n{shown}");
        }
    }

    #[test]
    fn labels_that_are_far_apart_keep_their_line_numbers() {
        let source =
            "int gap;\n".repeat(4000) + "  return gee(x);\n" + &"int gap;\n".repeat(4000) + "end";
        let mut labelled = finding("a.c", 4001, 10);
        let last = SourceSpan {
            file: "a.c".into(),
            line: 8002,
            column: 1,
            called_at: None,
        };
        labelled = labelled.at(Some(last), "ends here");
        let mut known = sources("a.c", Some(&source));
        let shown = text(&labelled, &Renderer::plain(), &mut known);
        for part in [
            "a.c:4001:10",
            "4001 |   return gee(x);",
            "^^^ called here",
            "8002 | end",
            "--- ends here",
        ] {
            assert!(shown.contains(part), "{part} is not in\n{shown}");
        }
        assert!(!shown.contains("gap"), "{shown}");
    }

    #[test]
    fn a_source_of_another_encoding_keeps_its_columns() {
        assert_eq!(
            as_utf8(b"c \xe9t\xe9\n  y = x\n".to_vec()),
            "c ?t?\n  y = x\n"
        );
        assert_eq!(as_utf8("c \u{e9}\n".as_bytes().to_vec()), "c \u{e9}\n");
    }

    #[test]
    fn locations_outside_the_file() {
        let source = "a\n\u{e9}\u{e9} b\n";
        for (line, column) in [
            (0, 0),
            (1, 9),
            (2, 2),
            (2, 0),
            (77, 1),
            (u32::MAX, u32::MAX),
        ] {
            let shown = text(
                &finding("a.c", line, column),
                &Renderer::plain(),
                &mut sources("a.c", Some(source)),
            );
            assert!(shown.contains("GRD0005"));
        }
        let shown = text(
            &finding("gone.c", 3, 1),
            &Renderer::plain(),
            &mut sources("gone.c", None),
        );
        assert!(shown.contains("gone.c:3:1"), "{shown}");
    }
}
