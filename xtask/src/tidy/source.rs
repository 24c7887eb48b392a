//! Rules on one Rust file: header, sizes, stubs, prints, panics, unsafe code, access to files and clocks.

use super::Finding;
use super::layers;
use super::scan::{self, Views};
use std::ops::Range;

/// Largest number of lines of a file.
const MAX_FILE_LINES: usize = 800;
/// Largest number of lines of a function.
const MAX_FUNCTION_LINES: usize = 90;
/// Largest number of `unwrap()` in a file outside tests.
const MAX_UNWRAPS: usize = 4;

/// Crates with unsafe code; `rust` is the folder of the crate for Rust programs, which calls derivatives.
const UNSAFE_CRATES: &[&str] = &["gradus-llvm", "gradus-python", "gradus-rt", "rust"];
/// Crates with a user interface, which may print.
const PRINTING_CRATES: &[&str] = &["gradus-cli", "xtask"];

/// Rust file and its views.
struct Source<'a> {
    file: &'a str,
    text: &'a str,
    views: Views,
    /// Ranges of test items.
    tests: Vec<Range<usize>>,
}

impl Source<'_> {
    /// Returns the crate of the file.
    fn package(&self) -> &str {
        let rest = self.file.strip_prefix("crates/").unwrap_or(self.file);
        rest.split('/').next().unwrap_or_default()
    }

    /// Returns whether the whole file belongs to tests, examples, benchmarks or a build script.
    fn is_aside(&self) -> bool {
        let folder = |name: &str| self.file.split('/').any(|part| part == name);
        folder("tests")
            || folder("benches")
            || folder("examples")
            || folder("fuzz")
            || self.file.ends_with("/tests.rs")
            || self.file.ends_with("/build.rs")
    }

    /// Returns whether an offset is in test code.
    fn in_test(&self, at: usize) -> bool {
        self.is_aside() || self.tests.iter().any(|range| range.contains(&at))
    }

    /// Returns a finding at an offset.
    fn finding(&self, at: usize, message: impl Into<String>) -> Finding {
        Finding::new(self.file, scan::line(self.text, at), message)
    }

    /// Returns the offsets of a pattern in code outside tests. A longer word does not match.
    fn uses<'s>(&'s self, pattern: &'s str) -> impl Iterator<Item = usize> + 's {
        let code = self.views.code.as_bytes();
        self.views
            .code
            .match_indices(pattern)
            .map(|(at, _)| at)
            .filter(move |&at| {
                let joined = at > 0 && scan::is_word(code[at - 1]) && scan::is_word(code[at]);
                !joined && !self.in_test(at)
            })
    }
}

/// Returns the places of a file that break a rule.
pub fn check(file: &str, text: &str) -> Vec<Finding> {
    let views = scan::views(text);
    let tests = scan::test_items(&views.code);
    let source = Source {
        file,
        text,
        views,
        tests,
    };
    let mut findings = Vec::new();
    for rule in RULES {
        rule(&source, &mut findings);
    }
    findings
}

/// Rule on one file.
type Rule = fn(&Source, &mut Vec<Finding>);

/// All rules on one file.
const RULES: &[Rule] = &[
    header,
    file_size,
    function_size,
    stubs,
    open_ends,
    prints,
    unwraps,
    unsafe_code,
    outside_world,
];

/// Requires a header.
fn header(s: &Source, findings: &mut Vec<Finding>) {
    if !s.text.starts_with("//!") {
        findings.push(s.finding(
            0,
            "missing `//!` header: state the subject in one line, and the place in the flow",
        ));
    }
}

/// Limits the lines of a file.
fn file_size(s: &Source, findings: &mut Vec<Finding>) {
    let lines = s.text.lines().count();
    if lines > MAX_FILE_LINES {
        findings.push(s.finding(
            0,
            format!(
                "{lines} lines, at most {MAX_FILE_LINES} are allowed: split the file by subject"
            ),
        ));
    }
}

/// Limits the lines of a function.
fn function_size(s: &Source, findings: &mut Vec<Finding>) {
    for function in scan::functions(&s.views.code) {
        let lines = s.text[function.span.clone()].lines().count();
        if lines > MAX_FUNCTION_LINES && !is_table(s, function.span.start) {
            let message = format!(
                "`{}` has {lines} lines, at most {MAX_FUNCTION_LINES} are allowed; mark a table with `// table`",
                function.name
            );
            findings.push(s.finding(function.span.start, message));
        }
    }
}

/// Returns whether a comment `// table` is among the comments and attributes above the function at `at`.
fn is_table(s: &Source, at: usize) -> bool {
    let line_start = s.text[..at].rfind('\n').map_or(0, |i| i + 1);
    s.text[..line_start]
        .lines()
        .rev()
        .map(str::trim)
        .take_while(|line| line.starts_with("//") || line.starts_with("#["))
        .any(|line| line.starts_with("// table"))
}

/// Forbids unfinished code, also in tests.
fn stubs(s: &Source, findings: &mut Vec<Finding>) {
    for name in ["todo!", "unimplemented!", "dbg!"] {
        let found = s
            .views
            .code
            .match_indices(name)
            .filter(|(at, _)| *at == 0 || !scan::is_word(s.views.code.as_bytes()[at - 1]));
        findings.extend(
            found.map(|(at, _)| s.finding(at, format!("`{name}`: finish the code or delete it"))),
        );
    }
}

/// Forbids comments on unfinished work.
fn open_ends(s: &Source, findings: &mut Vec<Finding>) {
    for (at, word) in scan::words(&s.views.comments) {
        if matches!(word, "TODO" | "FIXME" | "XXX" | "HACK") {
            findings.push(s.finding(
                at,
                format!("`{word}`: finish the work, or refuse the case with a diagnostic"),
            ));
        }
    }
}

/// Forbids output below the command line.
fn prints(s: &Source, findings: &mut Vec<Finding>) {
    let binary = s.package() == "gradus-testkit"
        && (s.file.contains("/src/bin/") || s.file.ends_with("/main.rs"));
    if PRINTING_CRATES.contains(&s.package()) || binary {
        return;
    }
    for name in ["print!(", "println!(", "eprint!(", "eprintln!("] {
        findings.extend(
            s.uses(name)
                .map(|at| s.finding(at, "only the command line prints: return the text")),
        );
    }
}

/// Limits `unwrap()` outside tests.
fn unwraps(s: &Source, findings: &mut Vec<Finding>) {
    let all: Vec<usize> = s.uses(".unwrap()").collect();
    if let Some(&at) = all.get(MAX_UNWRAPS) {
        let message = format!(
            "{} × `unwrap()`, at most {MAX_UNWRAPS} are allowed: return a diagnostic, or state the reason in `expect`",
            all.len()
        );
        findings.push(s.finding(at, message));
    }
}

/// Requires `forbid(unsafe_code)` in the root of a crate without unsafe code.
fn unsafe_code(s: &Source, findings: &mut Vec<Finding>) {
    let root = s.file.ends_with("/src/lib.rs") || s.file.ends_with("/src/main.rs");
    if root
        && !UNSAFE_CRATES.contains(&s.package())
        && !s.views.code.contains("#![forbid(unsafe_code)]")
    {
        findings.push(s.finding(0, "the crate root lacks `#![forbid(unsafe_code)]`"));
    }
}

/// Below layer 4 no crate reads files or starts processes; below layer 5 no crate reads the environment or the
/// clock.
fn outside_world(s: &Source, findings: &mut Vec<Finding>) {
    let Some(layer) = layers::layer(s.package()) else {
        return;
    };
    let mut forbid = |below: u8, patterns: &[&str], what: &str| {
        if layer < below {
            for pattern in patterns {
                let message = format!("`{pattern}`: no crate below layer {below} {what}");
                findings.extend(s.uses(pattern).map(|at| s.finding(at, message.clone())));
            }
        }
    };
    forbid(4, &["std::fs", "std::net"], "reads files");
    forbid(4, &["std::process"], "starts processes");
    forbid(5, &["std::env"], "reads the environment");
    forbid(5, &["Instant::now", "SystemTime"], "reads the clock");
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIB: &str = "crates/gradus-ad/src/reverse.rs";

    fn messages(file: &str, text: &str) -> Vec<String> {
        check(file, text)
            .into_iter()
            .map(|f| format!("{}: {}", f.line, f.message))
            .collect()
    }

    /// Returns the number of findings on a body below a correct header. Each finding must contain `word`.
    fn flagged(file: &str, body: &str, word: &str) -> usize {
        let all = messages(file, &format!("//! Subject.\n{body}"));
        assert!(all.iter().all(|m| m.contains(word)), "{all:?}");
        all.len()
    }

    #[test]
    fn a_clean_file_passes() {
        let text = "//! Subject.\n/// Gives one. \"println!(\" in words is fine.\npub fn one() -> u8 { 1 }\n";
        assert_eq!(messages(LIB, text), Vec::<String>::new());
    }

    #[test]
    fn a_file_without_header_is_flagged() {
        assert_eq!(messages(LIB, "fn a() {}\n").len(), 1);
        assert_eq!(messages(LIB, "// comment\n//! Late.\n").len(), 1);
    }

    #[test]
    fn long_files_and_functions_are_flagged() {
        assert_eq!(flagged(LIB, &"\n".repeat(800), "subject"), 1);
        let long = format!("fn long() {{\n{}}}\n", "    step();\n".repeat(90));
        assert_eq!(flagged(LIB, &long, "`long` has 92 lines"), 1);
        assert_eq!(
            flagged(
                LIB,
                &format!("/// Rows.\n// table\n#[inline]\n{long}"),
                "never"
            ),
            0
        );
        assert_eq!(
            flagged(
                LIB,
                &format!("fn short() {{\n{}}}\n", "    step();\n".repeat(80)),
                "never"
            ),
            0
        );
    }

    #[test]
    fn stubs_are_flagged_in_tests_too() {
        assert_eq!(flagged(LIB, "fn a() { todo!() }", "todo!"), 1);
        assert_eq!(
            flagged(LIB, "fn a() { unimplemented!(\"x\") }", "unimplemented!"),
            1
        );
        assert_eq!(
            flagged(
                LIB,
                "#[cfg(test)]\nmod tests { fn a() { dbg!(1); } }",
                "dbg!"
            ),
            1
        );
        assert_eq!(flagged(LIB, "fn a() { my_todo!() } // todo!()", "never"), 0);
    }

    #[test]
    fn open_ends_in_comments_are_flagged() {
        for word in ["TODO", "FIXME", "XXX"] {
            assert_eq!(flagged(LIB, &format!("// {word}: later\n"), word), 1);
        }
    }

    #[test]
    fn prints_below_the_command_line_are_flagged() {
        for call in [
            "println!(\"x\")",
            "print!(\"x\")",
            "eprintln!()",
            "eprint!(\"x\")",
        ] {
            assert_eq!(
                flagged(LIB, &format!("fn a() {{ {call}; }}"), "prints"),
                1,
                "{call}"
            );
        }
        assert_eq!(
            flagged(
                "crates/gradus-cli/src/report.rs",
                "fn a() { println!(); }",
                "never"
            ),
            0
        );
        assert_eq!(
            flagged(
                "crates/gradus-ad/tests/walk.rs",
                "fn a() { println!(); }",
                "never"
            ),
            0
        );
        assert_eq!(
            flagged(
                "crates/gradus-testkit/src/bin/fuzz.rs",
                "fn a() { println!(); }",
                "never"
            ),
            0
        );
        assert_eq!(
            flagged(
                "crates/gradus-testkit/src/pages.rs",
                "fn a() { println!(); }",
                "prints"
            ),
            1
        );
    }

    #[test]
    fn the_fifth_unwrap_outside_tests_is_flagged() {
        let five = format!("fn a() {{ {} }}", "x.unwrap();\n".repeat(5));
        assert_eq!(messages(LIB, &format!("//! S.\n{five}")).len(), 1);
        assert_eq!(
            flagged(
                LIB,
                &format!("fn a() {{ {} }}", "x.unwrap();".repeat(4)),
                "never"
            ),
            0
        );
        assert_eq!(
            flagged(
                LIB,
                &format!("#[cfg(test)]\nmod tests {{ {five} }}"),
                "never"
            ),
            0
        );
        assert_eq!(flagged("crates/gradus-ad/tests/walk.rs", &five, "never"), 0);
    }

    #[test]
    fn a_root_that_allows_unsafe_code_is_flagged() {
        assert_eq!(
            flagged("crates/gradus-ad/src/lib.rs", "pub fn a() {}", "forbid"),
            1
        );
        assert_eq!(
            flagged(
                "crates/gradus-ad/src/lib.rs",
                "#![forbid(unsafe_code)]",
                "never"
            ),
            0
        );
        assert_eq!(
            flagged("crates/gradus-llvm/src/lib.rs", "pub fn a() {}", "never"),
            0
        );
    }

    #[test]
    fn files_processes_environment_and_clock_are_flagged_in_the_lower_layers() {
        assert_eq!(
            flagged(LIB, "fn a() { std::fs::write(p, b); }", "reads files"),
            1
        );
        assert_eq!(
            flagged(
                LIB,
                "fn a() { std::process::Command::new(p); }",
                "starts processes"
            ),
            1
        );
        assert_eq!(
            flagged(LIB, "fn a() { std::env::vars(); }", "environment"),
            1
        );
        assert_eq!(
            flagged(
                "crates/gradus/src/run.rs",
                "fn a() { Instant::now(); }",
                "clock"
            ),
            1
        );
        assert_eq!(
            flagged(
                "crates/gradus/src/run.rs",
                "fn a() { Command::new(p); }",
                "never"
            ),
            0
        );
        assert_eq!(
            flagged(
                "crates/gradus-cli/src/main.rs",
                "#![forbid(unsafe_code)]\nfn a() { Instant::now(); }",
                "never"
            ),
            0
        );
    }
}
