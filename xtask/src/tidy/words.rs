//! The rules on words and paths, in every text file: one term for one thing, and no path of one machine.

use super::Finding;
use super::scan;
use std::path::{Component, Path};

/// A term that is not ours, where it is looked for, and what we say. A `|` splits the term, so that this
/// table does not break its own rule.
struct Term {
    said: &'static str,
    within: &'static str,
    say: &'static str,
}

// table
const TERMS: &[Term] = &[
    Term {
        said: "forward |pass",
        within: "",
        say: "forward sweep (a pass is a compiler's)",
    },
    Term {
        said: "reverse |pass",
        within: "",
        say: "return sweep (a pass is a compiler's)",
    },
    Term {
        said: "backward |pass",
        within: "",
        say: "return sweep (a pass is a compiler's)",
    },
    Term {
        said: "cac|he",
        within: "crates/gradus-ad/",
        say: "tape, keep, recall",
    },
    Term {
        said: "cac|hed",
        within: "crates/gradus-ad/",
        say: "kept",
    },
    Term {
        said: "inactive |constant",
        within: "",
        say: "inactive",
    },
    Term {
        said: "detac|h",
        within: "crates/gradus-par/",
        say: "spawn",
    },
];

/// Beginnings of paths that exist on one machine only. A `|` as above.
const MACHINE_PATHS: &[&str] = &["/wo|rk/", "/ro|ot/", "/ho|me/", "/Us|ers/", "C:|\\"];

/// What in this text breaks a rule.
pub fn check(file: &str, text: &str) -> Vec<Finding> {
    if file.ends_with("LICENSE") || file.ends_with(".lock") {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let lower = line.to_lowercase();
        for term in TERMS.iter().filter(|t| file.starts_with(t.within)) {
            let said = term.said.replace('|', "");
            if holds_word(&lower, &said) {
                findings.push(Finding::new(
                    file,
                    number + 1,
                    format!("`{said}`: we say {}", term.say),
                ));
            }
        }
        for path in MACHINE_PATHS.iter().map(|p| p.replace('|', "")) {
            if starts_a_path(line, &path) {
                findings.push(Finding::new(
                    file,
                    number + 1,
                    format!("`{path}` is a path of one machine"),
                ));
            }
        }
        findings.extend(paths_out(file, line).map(|path| {
            Finding::new(file, number + 1, format!("`{path}` leads out of the clone"))
        }));
    }
    findings
}

/// Whether `text` holds `word` with no letter before or after it.
fn holds_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let bytes = text.as_bytes();
        let before = at > 0 && bytes[at - 1].is_ascii_alphabetic();
        let after = bytes
            .get(at + word.len())
            .is_some_and(u8::is_ascii_alphabetic);
        !before && !after
    })
}

/// Whether an absolute path with this beginning stands in the line (`x/work/` is another path).
fn starts_a_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].bytes().next_back();
        !before.is_some_and(|b| scan::is_word(b) || matches!(b, b'.' | b'/' | b'}' | b'*' | b'-'))
    })
}

/// The relative paths in a line that climb above the root of the clone, seen from the file's folder.
fn paths_out<'a>(file: &str, line: &'a str) -> impl Iterator<Item = &'a str> {
    let depth = file.matches('/').count();
    let part = |c: char| c.is_alphanumeric() || matches!(c, '.' | '/' | '_' | '-');
    line.split(move |c| !part(c))
        .filter(move |path| path.starts_with("../") && climb(path) > depth)
}

fn climb(path: &str) -> usize {
    let (mut down, mut up) = (0usize, 0usize);
    for component in Path::new(path).components() {
        match component {
            Component::ParentDir if down > 0 => down -= 1,
            Component::ParentDir => up += 1,
            Component::Normal(_) => down += 1,
            _ => {}
        }
    }
    up
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_that_are_not_ours_are_flagged() {
        for term in TERMS {
            let file = format!("{}README.md", term.within);
            let text = format!("It is a {} of ours.\n", term.said.replace('|', ""));
            let all = check(&file, &text);
            assert_eq!(all.len(), 1, "{text}");
            assert!(all[0].message.contains(term.say));
        }
    }

    #[test]
    fn a_term_inside_another_word_passes() {
        let text = format!("cpu_s, {}\n", "forward |passage".replace('|', ""));
        assert!(check("README.md", &text).is_empty());
    }

    #[test]
    fn paths_of_one_machine_are_flagged() {
        for path in MACHINE_PATHS {
            let text = format!("see `{}x`\n", path.replace('|', ""));
            assert_eq!(check("crates/gradus/src/run.rs", &text).len(), 1, "{text}");
        }
        assert!(check("README.md", "target/work/x and /usr/lib/llvm-22\n").is_empty());
    }

    #[test]
    fn paths_out_of_the_clone_are_flagged() {
        assert_eq!(check("README.md", "see ../elsewhere/x.md\n").len(), 1);
        assert_eq!(check("bench/README.md", "see (../README.md)\n").len(), 0);
        assert_eq!(
            check("bench/README.md", "see a/../../b and ../../b\n").len(),
            1
        );
    }
}
