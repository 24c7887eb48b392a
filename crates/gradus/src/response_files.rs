//! Expands response files (`@FILE`) on a compiler's command line, with GNU's quoting as in GCC and clang.
//!
//! The drivers expand before anything else, since a file may also hold options of Gradus.

use gradus_ir::{Code, Diagnostic};
use std::path::Path;

/// Maximum number of files inside files: a file that names itself is an error.
const DEPTH_MAX: usize = 32;

/// Returns the command line with the contents of all response files. The name of a missing file stays, as in clang,
/// and the compiler reports the name.
///
/// # Errors
/// `BadOption` if files name each other in a circle; `FileAccess` if a file is not UTF-8 text.
pub fn expand(args: &[String]) -> Result<Vec<String>, Diagnostic> {
    let mut expanded = Vec::new();
    // Pending words with their depths, last first.
    let mut pending: Vec<(String, usize)> = args.iter().rev().map(|arg| (arg.clone(), 0)).collect();
    while let Some((word, depth)) = pending.pop() {
        let file = word.strip_prefix('@').map(Path::new);
        let Some(file) = file.filter(|file| file.is_file()) else {
            expanded.push(word);
            continue;
        };
        if depth == DEPTH_MAX {
            let message = format!("response files name each other in a circle at `{word}`");
            return Err(Diagnostic::error(Code::BadOption, message));
        }
        let text = String::from_utf8(crate::files::read(file)?).map_err(|_| {
            let message = format!("the response file {} is not UTF-8 text", file.display());
            Diagnostic::error(Code::FileAccess, message)
        })?;
        let inner = words(&text).into_iter().rev();
        pending.extend(inner.map(|inner| (inner, depth + 1)));
    }
    Ok(expanded)
}

/// Splits a text at white space. Single and double quotes protect white space; a backslash protects the next
/// character, also inside quotes.
fn words(text: &str) -> Vec<String> {
    let (mut found, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => word.get_or_insert_default().extend(letters.next()),
            _ if quote == Some(letter) => quote = None,
            '"' | '\'' if quote.is_none() => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            _ if quote.is_none() && letter.is_whitespace() => found.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    found.extend(word);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_backslashes_protect() {
        let text = "-c a\\ b.c\n'-DX=\"1 2\"' \"c\\\"d\" '' e'f'g";
        let expected = ["-c", "a b.c", "-DX=\"1 2\"", "c\"d", "", "efg"];
        assert_eq!(words(text), expected);
    }

    #[test]
    fn a_missing_file_stays_a_word() {
        let args = ["@/nonexistent/file".to_string(), "x.c".into()];
        assert_eq!(expand(&args).expect("expanded"), args);
    }
}
