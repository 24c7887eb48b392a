//! Counts sentences, opening words, pronoun-like words and terms of the field in prose.

use super::text::{FILLER, Paragraph};
use super::vocabulary::{FIELD, OPENINGS, PRONOUNS};
use std::collections::HashMap;
use std::ops::AddAssign;
use std::sync::LazyLock;

/// Terms of [`FIELD`] by their first letter, since each word of the clone is compared with the terms.
static TERMS: LazyLock<HashMap<u8, Vec<&str>>> = LazyLock::new(|| {
    let mut terms: HashMap<u8, Vec<&str>> = HashMap::new();
    for term in FIELD {
        terms.entry(term.as_bytes()[0]).or_default().push(term);
    }
    terms
});

/// Counts of one unit of prose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Sentences that contain a word.
    pub sentences: usize,
    /// Sentences that begin with a word of [`OPENINGS`].
    pub openings: usize,
    /// Words, without code spans and quotations.
    pub words: usize,
    /// Words of [`PRONOUNS`].
    pub pronouns: usize,
    /// Occurrences of terms of [`FIELD`].
    pub field: usize,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.sentences += other.sentences;
        self.openings += other.openings;
        self.words += other.words;
        self.pronouns += other.pronouns;
        self.field += other.field;
    }
}

/// Returns the counts of some paragraphs.
pub fn count(paragraphs: &[Paragraph]) -> Counts {
    let mut total = Counts::default();
    for paragraph in paragraphs {
        for sentence in sentences(&paragraph.text) {
            total.sentences += 1;
            total.openings += usize::from(has_listed_opening(sentence));
        }
        let words = words(&paragraph.text);
        total.words += words.len();
        total.pronouns += words
            .iter()
            .filter(|word| PRONOUNS.contains(&word.as_str()))
            .count();
        total.field += (0..words.len())
            .filter(|&at| begins_with_term(&words[at..]))
            .count();
    }
    total
}

/// Splits a paragraph at `.`, `!` and `?` before white space. A part without a letter is no sentence.
pub fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    let parts = std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (sentence, behind) = rest.split_at(sentence_end(rest));
        rest = behind;
        Some(sentence)
    });
    parts.filter(|part| part.bytes().any(|b| b.is_ascii_alphabetic()))
}

/// Returns the offset of the first white space behind the end of a sentence, or the length.
fn sentence_end(text: &str) -> usize {
    let mut is_ended = false;
    for (at, c) in text.char_indices() {
        match c {
            '.' | '!' | '?' => is_ended = true,
            ')' | '*' | '"' | '\'' | ']' => {}
            c if c.is_whitespace() && is_ended => return at,
            _ => is_ended = false,
        }
    }
    text.len()
}

/// Returns whether a sentence begins with a capitalised word of [`OPENINGS`].
pub fn has_listed_opening(sentence: &str) -> bool {
    let first =
        sentence.trim_start_matches(|c: char| !c.is_alphanumeric() && c != char::from(FILLER));
    let word: String = first
        .chars()
        .take_while(char::is_ascii_alphabetic)
        .collect();
    word.starts_with(|c: char| c.is_ascii_uppercase())
        && OPENINGS.contains(&word.to_lowercase().as_str())
}

/// Returns the words of a text in lower case. Hyphens and apostrophes are parts of a word.
fn words(text: &str) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_alphabetic() || matches!(c, '-' | '\'');
    text.split(|c: char| !is_part(c))
        .map(|word| word.trim_matches(['-', '\'']).to_lowercase())
        .filter(|word| !word.is_empty())
        .collect()
}

/// Returns whether words begin with a term of [`FIELD`].
fn begins_with_term(words: &[String]) -> bool {
    let initial = words.first().and_then(|word| word.bytes().next());
    let terms = initial.and_then(|initial| TERMS.get(&initial));
    terms.is_some_and(|terms| terms.iter().any(|term| begins_with(words, term)))
}

/// Returns whether words begin with a term. A term may have several words, which a text may join by hyphens; its
/// last word also occurs in the plural; a trailing `*` stands for any ending.
fn begins_with(words: &[String], term: &str) -> bool {
    let parts: Vec<&str> = term.split(' ').collect();
    let Some((last, first)) = parts.split_last() else {
        return false;
    };
    let is_spaced = words.len() > first.len()
        && first.iter().zip(words).all(|(part, word)| part == word)
        && is_form_of(&words[first.len()], last);
    is_spaced
        || parts.len() > 1
            && words
                .first()
                .is_some_and(|word| is_form_of(word, &term.replace(' ', "-")))
}

/// Returns whether a word is the singular, the plural or, for a term with `*`, any form of a term.
fn is_form_of(word: &str, term: &str) -> bool {
    match term.strip_suffix('*') {
        Some(stem) => word.starts_with(stem),
        None => word
            .strip_prefix(term)
            .is_some_and(|ending| matches!(ending, "" | "s" | "es" | "'s")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::text::{Extent, page};
    use super::*;

    fn of(text: &str) -> Counts {
        count(&page(text, Extent::Sentences))
    }

    #[test]
    fn every_listed_opening_is_counted() {
        for opening in OPENINGS {
            let capital = opening[..1].to_uppercase() + &opening[1..];
            assert_eq!(of(&format!("{capital} x returns.")).openings, 1);
            assert_eq!(
                of(&format!("Text, {opening} x. Next {opening}.")).openings,
                0
            );
        }
        assert_eq!(of("Sorts. Output. `So` is code. Thatch.").openings, 0);
    }

    #[test]
    fn sentences_end_before_white_space() {
        assert_eq!(
            of("One 1.5 two. Three (x.) **So four!** But five?").sentences,
            4
        );
        assert_eq!(
            of("One 1.5 two. Three (x.) **So four!** But five?").openings,
            2
        );
        assert_eq!(of("`a`. `b`.").sentences, 0);
    }

    #[test]
    fn every_pronoun_is_counted() {
        for pronoun in PRONOUNS {
            let counts = of(&format!("Take {pronoun} now."));
            assert_eq!((counts.words, counts.pronouns), (3, 1), "{pronoun}");
        }
        assert_eq!(
            of("Italic heretofore `it` \"those\" ones-complement.").pronouns,
            0
        );
    }

    #[test]
    fn every_term_of_the_field_is_counted_once() {
        for term in FIELD {
            let counts = of(&format!("Take {} now.", term.trim_end_matches('*')));
            assert_eq!(counts.field, 1, "{term}");
        }
    }

    #[test]
    fn plurals_endings_and_hyphens_match_and_everyday_words_do_not() {
        assert_eq!(
            of("Adjoints, recomputing, trip-counts, trip counts.").field,
            4
        );
        assert_eq!(
            of("A type, a loop, a call, a value, a trip, a count.").field,
            0
        );
    }
}
