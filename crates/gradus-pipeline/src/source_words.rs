//! Preserves interface words in C and C++ text that clang would drop: unknown attributes and unused
//! registrations.
//!
//! [`preserve_words`] works on preprocessed text. An attribute `enzyme_X` or `enzyme::X` becomes
//! `annotate("enzyme_X")`, which clang preserves; a registration gets the attribute `used`. The compiled
//! module then has each word, and [`crate::registrations`] honours or refuses it. The
//! number of lines is unchanged.

use gradus_ir::externals::{KEYWORDS, KeywordKind, interface_keyword, registration_named};
use gradus_ir::{Code, Diagnostic, SourceSpan};
use std::collections::HashSet;

/// A registration with an initialiser, as written in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenRegistration {
    /// The variable's name, without namespaces.
    pub name: String,
    /// Its source location.
    pub span: SourceSpan,
}

/// A preprocessed source whose words clang preserves.
#[derive(Clone, Debug, Default)]
pub struct PreservedSource {
    /// The text, with an unchanged number of lines.
    pub text: String,
    /// True if the text differs from the source.
    pub changed: bool,
    /// The registrations: each must be in the compiled module.
    pub registrations: Vec<WrittenRegistration>,
    /// Diagnostics on words at places without a meaning.
    pub findings: Vec<Diagnostic>,
}

/// Returns true if a source, not yet preprocessed, may hold words that clang would drop.
pub fn may_hold_words(source: &[u8]) -> bool {
    let holds = |key: &[u8]| source.windows(key.len()).any(|window| window == key);
    if !holds(b"enzyme") && !holds(b"__gradus_") && !holds(b"gradus_") && !holds(b"gradus::") {
        return false;
    }
    holds(b"__attribute") || holds(b"[[") || holds(b"##") || has_registration(source)
}

fn has_registration(source: &[u8]) -> bool {
    let starts = ["__enzyme_", "__gradus_"];
    let is_call = |rest: &[u8]| {
        KEYWORDS.iter().any(|row| match row.kind {
            KeywordKind::Call(_) => rest.starts_with(row.keyword.as_bytes()),
            _ => false,
        })
    };
    let tails = (0..source.len()).map(|at| &source[at..]);
    let mut reserved = tails.filter(|tail| {
        starts
            .iter()
            .any(|start| tail.starts_with(start.as_bytes()))
    });
    reserved.any(|tail| !is_call(tail))
}

/// Rewrites a preprocessed source for clang to preserve its words.
pub fn preserve_words(source: &str) -> PreservedSource {
    let tokens = tokens(source);
    let mut keeper = WordPreserver {
        source,
        tokens: &tokens,
        edits: Vec::new(),
        kept: PreservedSource::default(),
        head: 0,
        defined: HashSet::new(),
    };
    let mut at = 0;
    while at < tokens.len() {
        at = keeper.step(at);
    }
    let WordPreserver {
        edits, mut kept, ..
    } = keeper;
    let mut done = 0;
    for (range, new) in &edits {
        kept.text.push_str(&source[done..range.start]);
        kept.text.push_str(new);
        done = range.end;
    }
    kept.text.push_str(&source[done..]);
    kept.changed = !edits.is_empty();
    kept
}

/// A token: text and line.
#[derive(Clone, Debug)]
struct Token<'s> {
    text: &'s str,
    start: usize,
    file: &'s str,
    line: u32,
}

impl Token<'_> {
    fn end(&self) -> usize {
        self.start + self.text.len()
    }
    fn is_name(&self) -> bool {
        self.text
            .starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '$')
    }
    fn is_string(&self) -> bool {
        self.text.ends_with('"')
    }
    fn span(&self) -> SourceSpan {
        SourceSpan {
            file: self.file.to_string(),
            line: self.line,
            column: 0,
            called_at: None,
        }
    }
}

/// Splits preprocessed text into tokens. Line markers determine file and line of each.
fn tokens(source: &str) -> Vec<Token<'_>> {
    let bytes = source.as_bytes();
    let (mut found, mut at, mut file, mut line) = (Vec::new(), 0, "", 1);
    let mut fresh = true;
    while at < bytes.len() {
        match bytes[at] {
            b'\n' => {
                (line, fresh) = (line + 1, true);
                at += 1;
            }
            byte if byte.is_ascii_whitespace() => at += 1,
            b'#' if fresh => {
                let end = source[at..].find('\n').map_or(bytes.len(), |n| at + n);
                if let Some((number, name)) = line_marker(&source[at..end]) {
                    (line, file) = (number.wrapping_sub(1), name);
                }
                at = end;
            }
            _ => {
                fresh = false;
                let length = token_length(&source[at..]);
                let text = &source[at..at + length];
                if !text.starts_with("//") && !text.starts_with("/*") {
                    found.push(Token {
                        text,
                        start: at,
                        file,
                        line,
                    });
                }
                line += text.bytes().filter(|byte| *byte == b'\n').count() as u32;
                at += length;
            }
        }
    }
    found
}

/// Parses the number and the file of a line marker: `# 12 "a.c" 2`.
fn line_marker(text: &str) -> Option<(u32, &str)> {
    let rest = text.strip_prefix('#')?.trim_start();
    let rest = rest.strip_prefix("line").unwrap_or(rest).trim_start();
    let (number, rest) = rest.split_once(' ')?;
    let name = rest.trim_start().strip_prefix('"')?;
    Some((number.parse().ok()?, &name[..name.find('"')?]))
}

/// Returns the length in bytes of the token at the start of a text.
fn token_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let name = |from: usize| {
        let of_name = |byte: &u8| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || !byte.is_ascii()
        };
        from + bytes[from..]
            .iter()
            .take_while(|byte| of_name(byte))
            .count()
    };
    let until = |end: &str, from: usize| {
        text[from..]
            .find(end)
            .map_or(text.len(), |n| from + n + end.len())
    };
    if text.starts_with("/*") {
        return until("*/", 2);
    }
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    let prefix = ["u8", "u", "U", "L", ""].into_iter().find(|p| {
        let rest = text.strip_prefix(p);
        rest.is_some_and(|rest| rest.starts_with(['"', '\'']) || rest.starts_with("R\""))
    });
    if let Some(prefix) = prefix {
        let at = prefix.len();
        if text[at..].starts_with("R\"") {
            let open = text[at + 2..].find('(').map_or(text.len(), |n| at + 2 + n);
            let end = format!("){}\"", &text[at + 2..open]);
            return until(&end, open.min(text.len()));
        }
        return quoted(bytes, at);
    }
    if bytes[0].is_ascii_digit() || bytes[0] == b'.' && bytes.get(1).is_some_and(u8::is_ascii_digit)
    {
        return number(bytes);
    }
    match name(0) {
        0 if text.starts_with("::") => 2,
        0 => text.chars().next().map_or(1, char::len_utf8),
        length => length,
    }
}

/// Returns the end of a string or a character that begins at a quote.
fn quoted(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() && bytes[at] != bytes[start] && bytes[at] != b'\n' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

/// Returns the length of a number in bytes, with separated digits (`1'000`) and signs of exponents.
fn number(bytes: &[u8]) -> usize {
    let mut at = 1;
    while let Some(&byte) = bytes.get(at) {
        let sign =
            matches!(byte, b'+' | b'-') && matches!(bytes[at - 1], b'e' | b'E' | b'p' | b'P');
        let apart = byte == b'\'' && bytes.get(at + 1).is_some_and(u8::is_ascii_alphanumeric);
        if !(byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.') || sign || apart) {
            break;
        }
        at += 1;
    }
    at
}

/// Returns an attribute's name without the two underscores on each side that separate it from macros.
fn between_underscores(name: &str) -> &str {
    let inner = name
        .strip_prefix("__")
        .and_then(|name| name.strip_suffix("__"));
    inner.filter(|inner| !inner.is_empty()).unwrap_or(name)
}

/// Returns true if a name is a word of the interface with underscores on one side only.
fn has_one_sided_underscores(name: &str) -> bool {
    let inner = name.trim_matches('_');
    inner != name && interface_keyword(inner).is_some()
}

/// Words at the start of a statement that declares nothing.
const NO_DECLARATION: [&str; 11] = [
    "return", "goto", "case", "delete", "throw", "if", "while", "for", "switch", "else", "do",
];

struct WordPreserver<'s, 't> {
    source: &'s str,
    tokens: &'t [Token<'s>],
    /// Replacements: ranges of the text with their new text, in order.
    edits: Vec<(std::ops::Range<usize>, String)>,
    kept: PreservedSource,
    /// The first token of the declaration or statement.
    head: usize,
    /// The functions defined so far.
    defined: HashSet<&'s str>,
}

impl<'s> WordPreserver<'s, '_> {
    fn text(&self, at: usize) -> &'s str {
        self.tokens.get(at).map_or("", |token| token.text)
    }

    /// Examines a token. Returns the next token to examine.
    fn step(&mut self, at: usize) -> usize {
        match self.text(at) {
            "{" => {
                let name = self.declared(self.head, at).map(|name| self.text(name));
                self.defined.extend(name);
                self.head = at + 1;
                at + 1
            }
            ";" | "}" => {
                self.head = at + 1;
                at + 1
            }
            "__attribute__" | "__attribute"
                if self.text(at + 1) == "(" && self.text(at + 2) == "(" =>
            {
                self.attributes(at, at + 3, ")", "")
            }
            "[" if self.text(at + 1) == "[" => self.attributes(at, at + 2, "]", "clang::"),
            text if registration_named(text).is_some() && self.tokens[at].is_name() => {
                self.registration(at);
                at + 1
            }
            _ => at + 1,
        }
    }

    /// Reads a list of attributes from token `first` up to the closing bracket.
    fn attributes(&mut self, start: usize, first: usize, close: &str, scope: &str) -> usize {
        let mut at = first;
        let mut found = Vec::new();
        while at < self.tokens.len() && self.text(at) != close {
            let item = at;
            let qualified = self.text(item + 1) == "::";
            let name = if qualified { item + 2 } else { item };
            let written = between_underscores(self.text(name));
            let word = match (scope.is_empty(), between_underscores(self.text(item))) {
                (true, _) => interface_keyword(written),
                (false, "enzyme" | "gradus") if qualified => Some(written),
                _ => None,
            };
            if word.is_none() && scope.is_empty() && has_one_sided_underscores(written) {
                self.refuse(
                    name,
                    "is not an attribute of the call interface: write the attribute without surrounding underscores, or with two on each side",
                );
            }
            if self.text(item) == "using" && matches!(self.text(item + 1), "enzyme" | "gradus") {
                self.refuse(
                    item + 1,
                    "is the scope of a `using` prefix: write the scope before each attribute",
                );
            }
            let mut end = name + 1;
            if self.text(end) == "(" {
                end = self.matching(end) + 1;
            }
            if let Some(word) = word {
                found.push((item, name, end, word));
            }
            // The rest of an attribute is skipped.
            while at < self.tokens.len() && self.text(at) != "," && self.text(at) != close {
                at = if self.text(at) == "(" {
                    self.matching(at) + 1
                } else {
                    at + 1
                };
            }
            at += usize::from(self.text(at) == ",");
        }
        let after = at
            + if close == ")" {
                2
            } else {
                1 + usize::from(self.text(at + 1) == "]")
            };
        for (item, name, end, word) in found {
            if self.belongs_to_type(start, after) {
                self.refuse(
                    name,
                    "marks a type, but is supported on functions, variables of file scope and calls only",
                );
                continue;
            }
            if self.follows_definition(start, after) {
                self.refuse(
                    name,
                    "follows the definition of the function: write the attribute at the definition, or before",
                );
                continue;
            }
            let text = self.annotation(name, end, word, scope);
            let range = self.tokens[item].start..self.tokens[end - 1].end();
            self.edits.push((range, text));
        }
        after.max(start + 1)
    }

    /// Returns the attribute that clang preserves instead, with an unchanged number of lines.
    fn annotation(&self, name: usize, end: usize, word: &str, scope: &str) -> String {
        let arguments = match end > name + 1 && self.tokens[name + 2].is_string() {
            true => &self.source[self.tokens[name + 1].end()..self.tokens[end - 1].start],
            false => "",
        };
        let lines = self.source[self.tokens[name].start..self.tokens[end - 1].end()]
            .matches('\n')
            .count();
        let lines = "\n".repeat(lines - arguments.matches('\n').count());
        match arguments.is_empty() {
            true => format!("{scope}annotate(\"enzyme_{word}\"{lines})"),
            false => format!("{scope}annotate(\"enzyme_{word}=\" {arguments}{lines})"),
        }
    }

    /// Returns the function declared by tokens `from` to `to`: the first name before a bracket, except
    /// attributes.
    fn declared(&self, from: usize, to: usize) -> Option<usize> {
        let mut at = from;
        while at < to {
            match self.text(at) {
                "__attribute__" | "__attribute" | "__asm__" | "alignas" | "decltype"
                    if self.text(at + 1) == "(" =>
                {
                    at = self.matching(at + 1) + 1;
                }
                "[" => at = self.matching(at) + 1,
                "=" => return None,
                _ if self.tokens[at].is_name() && self.text(at + 1) == "(" => return Some(at),
                _ => at += 1,
            }
        }
        None
    }

    /// Returns true if attributes from `start` to `after` are in a declaration after the function's definition.
    /// Compilers ignore them there.
    fn follows_definition(&self, start: usize, after: usize) -> bool {
        let rest = &self.tokens[after.min(self.tokens.len())..];
        let end = rest
            .iter()
            .position(|token| matches!(token.text, ";" | "{" | "}"));
        let Some(end) = end
            .map(|end| after + end)
            .filter(|end| self.text(*end) == ";")
        else {
            return false;
        };
        let name = self.declared(self.head.min(start), end);
        name.is_some_and(|name| self.defined.contains(self.text(name)))
    }

    /// Returns true if attributes from `start` to `after` belong to a type.
    fn belongs_to_type(&self, start: usize, after: usize) -> bool {
        let before = start.checked_sub(1).map_or("", |before| self.text(before));
        let head = &self.tokens[self.head.min(start)..start];
        let of_tag = matches!(before, "struct" | "class" | "union" | "enum" | "namespace");
        let of_alias = head
            .iter()
            .any(|token| matches!(token.text, "typedef" | "using"));
        let of_body = before == "}" && matches!(self.text(after), ";" | ",");
        let begins_alias = matches!(self.text(after), "typedef" | "using");
        of_tag || of_alias || of_body || begins_alias
    }

    /// Returns the token that closes the bracket at token `open`.
    fn matching(&self, open: usize) -> usize {
        let (opening, closing) = match self.text(open) {
            "(" => ("(", ")"),
            _ => ("[", "]"),
        };
        let mut depth = 0;
        for (at, token) in self.tokens.iter().enumerate().skip(open) {
            depth += usize::from(token.text == opening);
            depth -= usize::from(token.text == closing);
            if depth == 0 {
                return at;
            }
        }
        self.tokens.len() - 1
    }

    /// Marks a registration as used, at the declaration with its initialiser.
    fn registration(&mut self, at: usize) {
        let mut end = at + 1;
        let head = &self.tokens[self.head.min(at)..at];
        let mut pairs = head.windows(2);
        // In `(*name[])`, the parameters of the pointee functions follow the bracket.
        let mut closes = pairs.any(|pair| pair[0].text == "(" && pair[1].text == "*");
        while self.text(end) == "[" || self.text(end) == ")" && closes {
            let brackets = self.text(end) == "[";
            closes &= brackets;
            end = if brackets {
                self.matching(end) + 1
            } else {
                end + 1
            };
            if !brackets && self.text(end) == "(" {
                end = self.matching(end) + 1;
            }
        }
        if !matches!(self.text(end), "=" | "{") {
            return;
        }
        self.kept.registrations.push(WrittenRegistration {
            name: self.text(at).to_string(),
            span: self.tokens[at].span(),
        });
        let of_structure = at > 0 && self.text(at - 1) == "}";
        let declares = head.first().map_or(of_structure, |first| {
            let begins = first.is_name() || first.text == "[" || first.text == "::";
            begins && !NO_DECLARATION.contains(&first.text)
        });
        // The module is searched for the registrations not preserved here.
        if !declares || head.iter().any(|token| token.text == "=") {
            return;
        }
        let place = self.tokens[end - 1].end();
        self.edits
            .push((place..place, " __attribute__((used))".to_string()));
    }

    fn refuse(&mut self, at: usize, why: &str) {
        let message = format!("`{}` {why}", self.text(at));
        let finding = Diagnostic::error(Code::UnsupportedKeyword, message);
        let help = "`docs/reference/interface-words.md` lists the supported names";
        self.kept
            .findings
            .push(finding.at(Some(self.tokens[at].span()), "here").help(help));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(source: &str) -> String {
        let kept = preserve_words(source);
        assert!(kept.findings.is_empty(), "{:?}", kept.findings);
        assert_eq!(
            kept.text.matches('\n').count(),
            source.matches('\n').count()
        );
        kept.text
    }

    #[test]
    fn attributes_become_annotations() {
        for (given, expected) in [
            (
                "__attribute__((enzyme_inactive, noinline)) double f(double);",
                "__attribute__((annotate(\"enzyme_inactive\"), noinline)) double f(double);",
            ),
            (
                "double f(double) __attribute__((enzyme_function_like(\"log1p\")));",
                "double f(double) __attribute__((annotate(\"enzyme_function_like=\" \"log1p\")));",
            ),
            (
                "[[gnu::noinline, enzyme::inactive]] double f(double);",
                "[[gnu::noinline, clang::annotate(\"enzyme_inactive\")]] double f(double);",
            ),
            (
                "__attribute__((enzyme_shadow(gs))) double g;",
                "__attribute__((annotate(\"enzyme_shadow\"))) double g;",
            ),
            (
                "int x = a[[]{ return 0; }()];",
                "int x = a[[]{ return 0; }()];",
            ),
            (
                "const char *s = \"__attribute__((enzyme_inactive))\"; int c = '\"', n = 1'000;",
                "const char *s = \"__attribute__((enzyme_inactive))\"; int c = '\"', n = 1'000;",
            ),
        ] {
            assert_eq!(kept(given), expected);
        }
    }

    #[test]
    fn registrations_are_used() {
        for (given, expected) in [
            (
                "static void *__enzyme_register_gradient_f[3] = {f, a, r};",
                "static void *__enzyme_register_gradient_f[3] __attribute__((used)) = {f, a, r};",
            ),
            (
                "namespace { const void *const __enzyme_inactivefn[]{f}; }",
                "namespace { const void *const __enzyme_inactivefn[] __attribute__((used)){f}; }",
            ),
            (
                "struct S { inline static std::array<void *, 1> __enzyme_inactivefn_s = {f}; };",
                "struct S { inline static std::array<void *, 1> __enzyme_inactivefn_s __attribute__((used)) = {f}; };",
            ),
            (
                "static double (*const __enzyme_inactivefn[])(double) = {f};",
                "static double (*const __enzyme_inactivefn[])(double) __attribute__((used)) = {f};",
            ),
            (
                "extern void *__enzyme_inactivefn[1];",
                "extern void *__enzyme_inactivefn[1];",
            ),
            (
                "void g(void) { *__enzyme_inactivefn[0] = 3; }",
                "void g(void) { *__enzyme_inactivefn[0] = 3; }",
            ),
        ] {
            assert_eq!(kept(given), expected);
        }
    }

    #[test]
    fn places_are_those_of_the_line_markers() {
        let source = "# 1 \"a.c\"\n# 1 \"inc/r.h\" 1\n\nstatic void *__enzyme_inactivefn_f[1] = {f};\n# 2 \"a.c\" 2\n\
                      struct __attribute__((enzyme_inactive)) s { double a; };\n";
        let kept = preserve_words(source);
        let span = &kept.registrations[0].span;
        assert_eq!((span.file.as_str(), span.line), ("inc/r.h", 2));
        let label = &kept.findings[0].labels[0];
        assert_eq!((label.span.file.as_str(), label.span.line), ("a.c", 2));
    }

    #[test]
    fn most_sources_hold_no_words() {
        assert!(!may_hold_words(
            b"double __enzyme_autodiff(void *, ...); extern int enzyme_dup;"
        ));
        assert!(!may_hold_words(b"int a[[]{ return 0; }()];"));
        assert!(may_hold_words(b"static void *__enzyme_inactivefn[] = {0};"));
        assert!(may_hold_words(b"[[enzyme::inactive]] double f(double);"));
    }
}
