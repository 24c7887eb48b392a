//! Rule on vocabulary: comments, pages, string literals and cases contain no retired word.
//!
//! A retired word is a home-made name for something that has a term in the field. Each row of [`TERMS`] names
//! the retired word, the part of the clone where the rule applies, and the term to write. Code spans and
//! quotations are exempt, since an option, a symbol or a keyword may keep an earlier name. A literal of one word and
//! the line `run: …` of a case are names, too. The text comes from `prose::text`, which joins the lines of a paragraph:
//! a phrase broken over two lines is found.

use super::Finding;
use super::prose::text::{self, Extent, Paragraph};

/// One retired word or phrase. A `|` splits the word, so that the table does not break its own rule.
struct Term {
    /// Retired word, in lower case.
    said: &'static str,
    /// Prefix of the paths where the rule applies; an empty prefix matches every path.
    within: &'static str,
    /// Replacement, for the message.
    say: &'static str,
}

/// Returns a row of [`TERMS`].
const fn term(said: &'static str, within: &'static str, say: &'static str) -> Term {
    Term { said, within, say }
}

/// All retired words.
// table
const TERMS: &[Term] = &[
    term("forward |sweep", "", "forward pass"),
    term("forward |sweeps", "", "forward passes"),
    term("return |sweep", "", "reverse pass"),
    term("return |sweeps", "", "reverse passes"),
    term("rec|all", "", "restore"),
    term("rec|alls", "", "restores"),
    term("rec|alled", "", "restored"),
    term("rehe|arse", "", "dry run"),
    term("rehe|arses", "", "dry run"),
    term("rehe|arsed", "", "dry run"),
    term("rehe|arsal", "", "dry run"),
    term("rehe|arsals", "", "dry runs"),
    term("unt|old", "", "unknown"),
    term("bel|ied", "", "contradicts the declaration"),
    term(
        "stran|ger",
        "",
        "unknown callee, external memory, or external function",
    ),
    term(
        "stran|gers",
        "",
        "unknown callees, external memory, or external functions",
    ),
    term("outside |function", "", "external function"),
    term("outside |functions", "", "external functions"),
    term("given |away", "", "escapes"),
    term("doo|med", "", "no-return"),
    term("me|nd", "", "fix"),
    term("me|nds", "", "fixes"),
    term("me|nded", "", "fixed"),
    term("me|nding", "", "fixing"),
    term("marker |form", "", "parallel intrinsics"),
    term("header's |words", "", "parallel intrinsics"),
    term("the language in the |middle", "", "the IR, GIR"),
    term("inactive |constant", "", "inactive"),
    // Ordinary words elsewhere: a tail slot or a tail padding has another name in these crates only.
    term("ro|om", "crates/gradus-ad/", "tail slot"),
    term("ro|om", "crates/gradus-llvm/", "tail padding"),
    term(
        "win|ner",
        "crates/gradus-ad/",
        "argmin/argmax, selected iteration",
    ),
    term(
        "win|ner",
        "crates/gradus-pipeline/",
        "argmin/argmax, selected iteration",
    ),
    term(
        "win|ner",
        "crates/gradus-simplify/",
        "argmin/argmax, selected iteration",
    ),
    term(
        "win|ners",
        "crates/gradus-simplify/",
        "argmin/argmax, selected iterations",
    ),
    term("extr|eme", "crates/gradus-ad/", "minimum or maximum"),
    term("extr|eme", "crates/gradus-edit/", "minimum or maximum"),
    term("extr|eme", "crates/gradus-simplify/", "minimum or maximum"),
    term("detac|h", "crates/gradus-par/", "spawn"),
    term("the |map", "ARCHITECTURE.md", "this page, the architecture"),
    term("the |map", "README.md", "the architecture"),
    term("the |course", "bench/", "the benchmark suite"),
    term("the |course", "CONTRIBUTING.md", "the benchmark suite"),
    term("the |course", "docs/", "the benchmark suite"),
    term("the |course", "README.md", "the benchmark suite"),
    term("the |course", "xtask/", "the benchmark suite"),
];

/// Kinds of text in the clone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Comments of Rust files.
    Comments,
    /// Markdown pages for readers.
    Pages,
    /// String literals of Rust files: diagnostics, reports, test programs.
    Literals,
    /// Markdown pages that are test inputs.
    Cases,
}

/// Kinds of text to which the rule applies.
const CHECKED: &[Part] = &[Part::Comments, Part::Pages, Part::Literals, Part::Cases];

/// Text that reports the past. The rule does not apply.
const HISTORY: &str = "CHANGELOG.md";

/// Returns the retired words of a text file.
pub fn check(file: &str, text: &str) -> Vec<Finding> {
    if file == HISTORY {
        return Vec::new();
    }
    let lower = text.to_lowercase();
    let candidates: Vec<(&Term, String)> = TERMS
        .iter()
        .filter(|term| file.starts_with(term.within))
        .map(|term| (term, term.said.replace('|', "")))
        .filter(|(_, said)| said.split(' ').all(|word| lower.contains(word)))
        .collect();
    if candidates.is_empty() {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for &part in CHECKED {
        for paragraph in paragraphs(part, file, text) {
            let lower = paragraph.text.to_lowercase();
            for (term, said) in &candidates {
                findings.extend(occurrences(&lower, said).map(|at| {
                    let message = format!("retired word `{said}`: write {}", term.say);
                    Finding::new(file, paragraph.line(at), message)
                }));
            }
        }
    }
    findings
}

/// Returns the paragraphs of one kind in a file; none if the file has no text of the kind.
fn paragraphs(part: Part, file: &str, text: &str) -> Vec<Paragraph> {
    let is_rust = file.ends_with(".rs");
    let is_page = file.ends_with(".md");
    let is_case = is_page && file.starts_with("crates/");
    match part {
        Part::Comments if is_rust => text::comments(text, Extent::AllText),
        Part::Literals if is_rust => {
            let mut all = text::literals(text);
            all.retain(|literal| literal.text.contains(' '));
            all
        }
        Part::Pages if is_page && !is_case => text::page(text, Extent::AllText),
        Part::Cases if is_case => {
            let without_passes = |line: &str| match line.starts_with("run: ") {
                true => String::new(),
                false => line.to_owned(),
            };
            let lines: Vec<String> = text.lines().map(without_passes).collect();
            text::page(&lines.join("\n"), Extent::AllText)
        }
        _ => Vec::new(),
    }
}

/// Returns the offsets of `word` in `text` where no letter or underscore adjoins.
fn occurrences<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let joins = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_');
    text.match_indices(word)
        .map(|(at, _)| at)
        .filter(move |&at| {
            let bytes = text.as_bytes();
            let before = at.checked_sub(1).and_then(|i| bytes.get(i));
            !joins(before) && !joins(bytes.get(at + word.len()))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a path below the prefix of a term, and a text of the kind that the path has.
    fn sample(term: &Term, said: &str) -> (String, String) {
        match term.within {
            page if page.ends_with(".md") => (page.to_owned(), format!("Text on {said} here.\n")),
            folder => (
                format!("{folder}x.rs"),
                format!("//! Text on {said} here.\n"),
            ),
        }
    }

    #[test]
    fn every_retired_word_is_flagged() {
        for term in TERMS {
            let said = term.said.replace('|', "");
            let (file, text) = sample(term, &said);
            let all = check(&file, &text);
            assert_eq!(all.len(), 1, "{text}");
            assert!(all[0].message.contains(term.say));
        }
    }

    #[test]
    fn a_phrase_over_two_lines_is_flagged_at_its_first_line() {
        let text = format!(
            "//! Subject.\n\n/// Ends the {}.\nfn a() {{}}\n",
            "forward\n/// |sweep".replace('|', "")
        );
        let all = check("crates/gradus-ad/src/x.rs", &text);
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].line, 3);
    }

    #[test]
    fn headings_and_tables_are_checked() {
        let said = "return |sweep".replace('|', "");
        let text = format!("# The {said}\n\n| a | the {said} |\n");
        assert_eq!(check("docs/guide.md", &text).len(), 2);
    }

    #[test]
    fn parts_of_words_code_spans_and_code_pass() {
        let word = "rec|all".replace('|', "");
        for text in [
            format!("//! A {word}able value.\n"),
            format!("//! The option `--{word}`, the field `{word}`.\n"),
            format!("//! Subject.\nfn {word}() {{}}\n"),
        ] {
            assert!(check("crates/gradus-ad/src/x.rs", &text).is_empty());
        }
    }

    #[test]
    fn a_term_of_one_crate_is_an_ordinary_word_elsewhere() {
        let text = format!("//! The {} of the race.\n", "win|ner".replace('|', ""));
        assert_eq!(check("crates/gradus-simplify/src/x.rs", &text).len(), 1);
        assert!(check("crates/gradus-rt/src/x.rs", &text).is_empty());
    }

    #[test]
    fn terms_of_the_field_pass() {
        let text =
            "//! The forward pass and the reverse pass, also called backward pass; a cache.\n";
        assert!(check("crates/gradus-ad/src/x.rs", text).is_empty());
    }

    #[test]
    fn the_changelog_passes_and_other_pages_do_not() {
        let text = format!("The {}.\n", "return |sweep".replace('|', ""));
        assert!(check("CHANGELOG.md", &text).is_empty());
        assert_eq!(check("docs/decisions/0002-x.md", &text).len(), 1);
        assert_eq!(check("docs/guide.md", &text).len(), 1);
    }

    #[test]
    fn literals_are_flagged_except_names() {
        let said = "return |sweep".replace('|', "");
        let text = format!("//! Subject.\nconst A: &str = \"the {said}\";\n");
        assert_eq!(check("crates/gradus-ad/src/x.rs", &text).len(), 1);
        let said = "win|ners".replace('|', "");
        let text = format!("//! Subject.\nconst A: &str = \"{said}\";\n");
        assert!(check("crates/gradus-simplify/src/x.rs", &text).is_empty());
    }

    #[test]
    fn cases_are_flagged_except_passes() {
        let said = "return |sweep".replace('|', "");
        let text = format!("# The {said}\n\nThe {said}.\n");
        assert_eq!(check("crates/gradus-ad/cases/x.md", &text).len(), 2);
        let said = "win|ners".replace('|', "");
        let text = format!("# Minimum\nrun: {said}\n\nA minimum.\n");
        assert!(check("crates/gradus-simplify/cases/x.md", &text).is_empty());
    }
}
