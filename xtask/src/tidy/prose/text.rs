//! Extracts prose from comments, pages and string literals, as paragraphs.
//!
//! A paragraph joins its lines by blanks. Code spans, quotations, link targets and web addresses are replaced by
//! [`FILLER`] of the same length. Code blocks and block quotes are dropped. Tables and headings are no sentences:
//! [`Extent`] decides about them.
//!
//! # Invariants
//! An offset in [`Paragraph::text`] maps to a line of the file through [`Paragraph::line`].

use crate::tidy::scan;

/// Replaces each byte of text that is no prose. The filler still takes a place in its sentence: a sentence that
/// begins with a code span has no opening word.
pub const FILLER: u8 = b'~';

/// Kinds of text to extract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Sentences only, for counting.
    Sentences,
    /// Also headings and rows of tables, each as a paragraph.
    AllText,
}

/// Prose without a paragraph break inside.
#[derive(Debug)]
pub struct Paragraph {
    /// Lines joined by one blank each, with fillers.
    pub text: String,
    /// Offset and line number (from 1) of the beginning of each line.
    starts: Vec<(usize, usize)>,
}

impl Paragraph {
    /// Returns the line number, from 1, of an offset in the text.
    pub fn line(&self, at: usize) -> usize {
        let begun = self.starts.iter().take_while(|(start, _)| *start <= at);
        begun.last().map_or(1, |(_, line)| *line)
    }
}

/// Returns the paragraphs of a Rust file's comments.
pub fn comments(text: &str, extent: Extent) -> Vec<Paragraph> {
    let views = scan::views(text);
    let mut builder = Builder::new(extent);
    let mut style = "";
    let code_lines = views.code.lines();
    for (index, (comment, code)) in views.comments.lines().zip(code_lines).enumerate() {
        let marked = comment.trim();
        let body = marked.trim_start_matches(['/', '!', '*']);
        let mark = &marked[..marked.len() - body.len()];
        let is_trailing = !code.trim().is_empty();
        if mark != style || is_trailing {
            builder.end_block();
            style = mark;
        }
        builder.line(index + 1, body.strip_prefix(' ').unwrap_or(body));
        if is_trailing {
            builder.end_block();
        }
    }
    builder.finish()
}

/// Returns the paragraphs of a Markdown page.
pub fn page(text: &str, extent: Extent) -> Vec<Paragraph> {
    let mut builder = Builder::new(extent);
    for (index, line) in text.lines().enumerate() {
        builder.line(index + 1, line);
    }
    builder.finish()
}

/// Returns each line inside the string literals of a Rust file as a paragraph.
pub fn literals(text: &str) -> Vec<Paragraph> {
    let mut builder = Builder::new(Extent::AllText);
    for (index, line) in scan::views(text).literals.lines().enumerate() {
        builder.line(index + 1, line.trim());
        builder.end_block();
    }
    builder.finish()
}

/// Collects lines into paragraphs.
struct Builder {
    extent: Extent,
    done: Vec<Paragraph>,
    text: String,
    starts: Vec<(usize, usize)>,
    is_in_fence: bool,
}

impl Builder {
    /// Returns a builder without lines.
    fn new(extent: Extent) -> Builder {
        Builder {
            extent,
            done: Vec::new(),
            text: String::new(),
            starts: Vec::new(),
            is_in_fence: false,
        }
    }

    /// Adds one line of Markdown.
    fn line(&mut self, number: usize, line: &str) {
        let trimmed = line.trim();
        if trimmed.starts_with("```") {
            self.is_in_fence = !self.is_in_fence;
            self.end_paragraph();
            return;
        }
        let is_code = self.is_in_fence || self.text.is_empty() && line.starts_with("    ");
        if is_code || trimmed.is_empty() || trimmed.starts_with('>') {
            self.end_paragraph();
            return;
        }
        let is_heading = trimmed.starts_with("# ") || trimmed.starts_with("##");
        if is_heading || trimmed.starts_with('|') {
            self.end_paragraph();
            if self.extent == Extent::AllText {
                self.push(number, trimmed);
                self.end_paragraph();
            }
            return;
        }
        let (body, is_item) = match list_item(trimmed) {
            Some(item) => (item, true),
            None => (trimmed, false),
        };
        if is_item {
            self.end_paragraph();
        }
        self.push(number, body);
    }

    /// Appends a line to the paragraph.
    fn push(&mut self, number: usize, line: &str) {
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        self.starts.push((self.text.len(), number));
        self.text.push_str(line);
    }

    /// Ends the paragraph, if any.
    fn end_paragraph(&mut self) {
        let text = std::mem::take(&mut self.text);
        let starts = std::mem::take(&mut self.starts);
        if !text.is_empty() {
            let text = without_code(&text);
            self.done.push(Paragraph { text, starts });
        }
    }

    /// Ends the paragraph and a code block that nobody closed.
    fn end_block(&mut self) {
        self.end_paragraph();
        self.is_in_fence = false;
    }

    /// Returns the paragraphs.
    fn finish(mut self) -> Vec<Paragraph> {
        self.end_paragraph();
        self.done
    }
}

/// Returns the text behind the mark of a list item (`-`, `*`, `1.`).
fn list_item(line: &str) -> Option<&str> {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let rest = match digits {
        0 => line.strip_prefix(['-', '*'])?,
        _ => line[digits..].strip_prefix('.')?,
    };
    rest.strip_prefix(' ').map(str::trim_start)
}

/// Replaces code spans, quotations, link targets and web addresses by fillers of the same length.
fn without_code(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for (open, close) in [("`", "`"), ("](", ")"), ("\"", "\""), ("“", "”")] {
        let mut from = 0;
        while let Some(begin) = find(&bytes, open, from) {
            let inside = begin + open.len();
            let Some(end) = find(&bytes, close, inside) else {
                break;
            };
            from = end + close.len();
            bytes[begin..from].fill(FILLER);
        }
    }
    let mut from = 0;
    while let Some(begin) = find(&bytes, "http", from) {
        from = bytes[begin..]
            .iter()
            .position(|b| b.is_ascii_whitespace())
            .map_or(bytes.len(), |length| begin + length);
        if bytes[begin..from].windows(3).any(|w| w == b"://") {
            bytes[begin..from].fill(FILLER);
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the offset of a pattern in bytes, at or behind `from`.
fn find(bytes: &[u8], pattern: &str, from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    let at = rest
        .windows(pattern.len())
        .position(|w| w == pattern.as_bytes())?;
    Some(from + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comments(text: &str) -> Vec<Paragraph> {
        super::comments(text, Extent::Sentences)
    }

    fn page(text: &str) -> Vec<Paragraph> {
        super::page(text, Extent::Sentences)
    }

    fn texts(paragraphs: &[Paragraph]) -> Vec<&str> {
        paragraphs.iter().map(|p| p.text.as_str()).collect()
    }

    #[test]
    fn comment_lines_join_into_paragraphs() {
        let text = "//! One\n//! two.\n//!\n//! Three.\n\n/// Four.\nfn a() {} // five\n// six\n";
        let all = comments(text);
        assert_eq!(texts(&all), ["One two.", "Three.", "Four.", "five", "six"]);
        assert_eq!(all[0].line(0), 1);
        assert_eq!(all[0].line(5), 2);
        assert_eq!(all[3].line(0), 7);
    }

    #[test]
    fn code_in_strings_is_no_comment() {
        assert!(comments("const A: &str = \"// text\";\n").is_empty());
    }

    #[test]
    fn code_tables_headings_and_quotes_are_dropped() {
        let text = "# Title\n\nText.\n\n```c\nint a; // no\n```\n\n| a | b |\n|---|---|\n\n> Quoted.\n\n    indented\n\nEnd.\n";
        assert_eq!(texts(&page(text)), ["Text.", "End."]);
        let all = super::page("# Title\n\n| a | b |\n", Extent::AllText);
        assert_eq!(texts(&all), ["# Title", "| a | b |"]);
        let comment = "/// # Errors\n/// Text.\n/// ```\n/// code\n/// ```\n/// - item\n///   goes on\n/// 1. two\nfn a() {}\n";
        assert_eq!(texts(&comments(comment)), ["Text.", "item goes on", "two"]);
    }

    #[test]
    fn code_spans_quotations_and_addresses_become_fillers() {
        let text = "`a b` is [a link](docs/x.md), \"a word\", https://a.b/c here.";
        let all = page(text);
        assert_eq!(all[0].text.len(), text.len());
        let words: String = all[0].text.replace(char::from(FILLER), "");
        assert_eq!(words, " is [a link, ,  here.");
    }

    #[test]
    fn a_code_span_over_two_lines_is_one_filler() {
        let all = page("See `one\ntwo` there.\n");
        assert_eq!(all[0].text, "See ~~~~~~~~~ there.");
    }

    #[test]
    fn literals_are_lines() {
        let all = literals("fn a() { b(\"one\"); }\nconst C: &str = \"two\nthree\";\n");
        assert_eq!(texts(&all), ["one", "two", "three"]);
    }
}
