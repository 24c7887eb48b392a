//! Scanner for Rust text: separates code, comments and literals, and finds functions and test items.
//!
//! The scanner knows comments, strings and brackets only, since the rules need no parser.
//!
//! # Invariants
//! Every view has the length and the line breaks of the text, hence an offset has one meaning in all views.

use std::ops::Range;

/// The text in three views; each view blanks the parts of the two others.
pub struct Views {
    /// Code, with comments and the insides of strings and characters blanked.
    pub code: String,
    /// Comments alone.
    pub comments: String,
    /// Insides of strings and characters alone.
    pub literals: String,
}

/// Name and range of a function.
pub struct Function {
    /// Name.
    pub name: String,
    /// Offsets from the `f` of `fn` to one past the closing brace.
    pub span: Range<usize>,
}

/// Kind of a byte of the text.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Code,
    Comment,
    Inside,
}

/// Returns the views of a text.
pub fn views(text: &str) -> Views {
    let bytes = text.as_bytes();
    let mut parts = vec![Part::Code; bytes.len()];
    let mut at = 0;
    while at < bytes.len() {
        let (part, inside) = literal_or_comment(bytes, at);
        parts[inside.clone()].fill(part);
        at = inside.end.max(at + 1);
        if part == Part::Inside && at < bytes.len() {
            at += 1; // the closing quote
        }
    }
    let view = |keep: Part| {
        let kept = bytes
            .iter()
            .zip(&parts)
            .map(|(&b, &p)| if p == keep || b == b'\n' { b } else { b' ' });
        String::from_utf8_lossy(&kept.collect::<Vec<u8>>()).into_owned()
    };
    Views {
        code: view(Part::Code),
        comments: view(Part::Comment),
        literals: view(Part::Inside),
    }
}

/// Classifies the text at `at`: a comment (returns the whole range), a literal (returns the range inside the
/// quotes), or code (returns an empty range).
fn literal_or_comment(bytes: &[u8], at: usize) -> (Part, Range<usize>) {
    let rest = &bytes[at..];
    if rest.starts_with(b"//") {
        let length = rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len());
        return (Part::Comment, at..at + length);
    }
    if rest.starts_with(b"/*") {
        return (Part::Comment, at..at + block_comment(rest));
    }
    if rest[0] == b'"' {
        return (
            Part::Inside,
            at + 1..at + 1 + closing_quote(&rest[1..], b'"'),
        );
    }
    if rest[0] == b'r'
        && (at == 0 || !is_word(bytes[at - 1]) || matches!(bytes[at - 1], b'b' | b'c'))
    {
        let hashes = rest[1..].iter().take_while(|&&b| b == b'#').count();
        if rest.get(1 + hashes) == Some(&b'"') {
            let start = at + 2 + hashes;
            let end = raw_end(bytes, start, hashes);
            return (Part::Inside, start..end);
        }
    }
    if rest[0] == b'\'' && is_character(rest) {
        return (
            Part::Inside,
            at + 1..at + 1 + closing_quote(&rest[1..], b'\''),
        );
    }
    (Part::Code, at..at)
}

/// Returns the length of the block comment at the beginning of `rest`; block comments nest.
fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut i) = (0usize, 0);
    while i < rest.len() {
        if rest[i..].starts_with(b"/*") {
            depth += 1;
            i += 2;
        } else if rest[i..].starts_with(b"*/") {
            depth -= 1;
            i += 2;
            if depth == 0 {
                return i;
            }
        } else {
            i += 1;
        }
    }
    rest.len()
}

/// Returns the offset of the closing quote, or the length.
fn closing_quote(rest: &[u8], quote: u8) -> usize {
    let mut i = 0;
    while i < rest.len() && rest[i] != quote {
        i += if rest[i] == b'\\' { 2 } else { 1 };
    }
    i.min(rest.len())
}

/// Returns the offset of the quote that ends a raw string.
fn raw_end(bytes: &[u8], start: usize, hashes: usize) -> usize {
    let ends = |i: &usize| {
        bytes[*i] == b'"'
            && bytes[i + 1..]
                .iter()
                .take_while(|&&b| b == b'#')
                .take(hashes)
                .count()
                == hashes
    };
    (start..bytes.len()).find(ends).unwrap_or(bytes.len())
}

/// Returns whether the text begins with a character (`'x'`, `'
/// '`) rather than with a lifetime (`'a`).
fn is_character(rest: &[u8]) -> bool {
    match rest.get(1) {
        Some(b'\\') => true,
        Some(&b) if !b.is_ascii() => true,
        Some(_) => rest.get(2) == Some(&b'\''),
        None => false,
    }
}

/// Returns whether a byte is part of an identifier.
pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Returns the words of a code view with their offsets.
pub fn words(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let bytes = code.as_bytes();
        while at < bytes.len() && !is_word(bytes[at]) {
            at += 1;
        }
        let start = at;
        while at < bytes.len() && is_word(bytes[at]) {
            at += 1;
        }
        (start < at).then(|| (start, &code[start..at]))
    })
}

/// Returns the functions with a body in a code view, including nested functions.
pub fn functions(code: &str) -> Vec<Function> {
    let mut found = Vec::new();
    let mut all = words(code).peekable();
    while let Some((at, word)) = all.next() {
        if word != "fn" {
            continue;
        }
        if let Some(&(start, name)) = all.peek()
            && code[at + 2..start].trim().is_empty()
            && let Some(end) = item_end(code, start)
            && code.as_bytes()[end - 1] == b'}'
        {
            found.push(Function {
                name: name.to_owned(),
                span: at..end,
            });
        }
    }
    found
}

/// Returns the offset behind the `}` or `;` that ends the item at `start`.
pub fn item_end(code: &str, start: usize) -> Option<usize> {
    let (mut round, mut curly) = (0i32, 0i32);
    for (i, b) in code.bytes().enumerate().skip(start) {
        match b {
            b'(' | b'[' => round += 1,
            b')' | b']' => round -= 1,
            b'{' if round == 0 => curly += 1,
            b'}' if round == 0 => {
                curly -= 1;
                if curly == 0 {
                    return Some(i + 1);
                }
            }
            b';' if round == 0 && curly == 0 => return Some(i + 1),
            _ => {}
        }
    }
    None
}

/// Returns the ranges of items under `#[cfg(test)]`.
pub fn test_items(code: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for mark in ["#[cfg(test)]", "#[cfg(all(test"] {
        for (at, _) in code.match_indices(mark) {
            let attribute_end = code[at..].find(']').map_or(code.len(), |i| at + i + 1);
            found.push(at..item_end(code, attribute_end).unwrap_or(code.len()));
        }
    }
    found
}

/// Returns the line, from 1, of an offset.
pub fn line(text: &str, at: usize) -> usize {
    1 + text.as_bytes()[..at]
        .iter()
        .filter(|&&b| b == b'\n')
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_and_comments_are_not_code() {
        let text = "let s = \"a \\\" // b\"; // c 'd\nlet c = '\"'; /* e /* f */ g */ let l: &'static str = r#\"h \" i\"#;";
        let v = views(text);
        assert_eq!(v.code.len(), text.len());
        let kept: String = v.code.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(
            kept,
            "let s = \" \"; let c = ' '; let l: &'static str = r#\" \"#;"
        );
        assert_eq!(
            v.comments.split_whitespace().collect::<Vec<_>>().join(" "),
            "// c 'd /* e /* f */ g */"
        );
    }

    #[test]
    fn functions_end_where_their_brace_closes() {
        let code =
            "fn a(x: [u8; 3]) -> B { if x { } }\ntrait T { fn b(); fn c() { } }\nlet f: fn(u8);";
        let names: Vec<_> = functions(code)
            .into_iter()
            .map(|f| (f.name, code[f.span].to_owned()))
            .collect();
        assert_eq!(
            names,
            [
                (
                    "a".to_owned(),
                    "fn a(x: [u8; 3]) -> B { if x { } }".to_owned()
                ),
                ("c".to_owned(), "fn c() { }".to_owned())
            ]
        );
    }

    #[test]
    fn test_items_reach_to_their_end() {
        let code = "fn a() {}\n#[cfg(test)]\nmod tests { fn b() {} }\nfn c() {}";
        let ranges = test_items(code);
        assert_eq!(
            &code[ranges[0].clone()],
            "#[cfg(test)]\nmod tests { fn b() {} }"
        );
    }

    #[test]
    fn an_unfinished_text_is_scanned_to_its_end() {
        for text in ["\"", "'", "r#\"", "/*", "'\\", "\"\\", "fn f() {", "b'"] {
            assert_eq!(views(text).code.len(), text.len());
            assert!(functions(text).is_empty());
        }
    }
}
