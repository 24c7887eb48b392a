//! Rule on public functions: code outside of tests names each of them.
//!
//! The compiler reports unused private functions only. The rule covers functions and methods with any `pub`. The rule
//! is no name resolution: a function is used if its name occurs as a word of code anywhere in the clone, outside of
//!
//! - comments, strings and `use` items without `as`, since a re-export is no use;
//! - the name behind the word `fn`;
//! - fields and typed parameters: `.f` without a call, and `f:`;
//! - the bodies of public functions of the same name: recursion, and wrappers that only pass a call on;
//! - tests: files below `tests`, `benches` and `examples`, items under `#[cfg(test)]` and the module files that such
//!   items declare.
//!
//! gradus-testkit exists for tests, hence files below `tests` are users of its functions.
//!
//! # Missed
//! - A function with the name of another item that occurs in code: a variable, a module, another function.
//! - A function that only other unused functions name, until those are deleted.
//! - Functions of the C interface (`no_mangle`, `export_name`), which compiled programs call, and functions whose name
//!   a macro makes.
//! - Trait methods, and functions under `cfg` of something else than `test`.

use super::Finding;
use super::scan;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Path and name of a function that only tests or users of the public interface name, and the reason.
struct Exception {
    file: &'static str,
    function: &'static str,
    reason: &'static str,
}

/// Returns a row of [`EXCEPTIONS`].
const fn row(file: &'static str, function: &'static str, reason: &'static str) -> Exception {
    Exception {
        file,
        function,
        reason,
    }
}

/// Functions that the code outside of tests need not name: points of observation, and the public interface of the
/// crates `gradus` and gradus-pipeline. A row is needed: the function exists and has no user.
// table
const EXCEPTIONS: &[Exception] = &[
    row(
        "rust/gradus/src/closures.rs",
        "hvp",
        "the public interface for Rust programs",
    ),
    row(
        "rust/gradus/src/closures.rs",
        "jacobian",
        "the public interface for Rust programs",
    ),
    row(
        "crates/gradus-analysis/src/memory/clobbers.rs",
        "clobbered_after",
        "the answer of the clobber analysis in one word, for all tests of the analysis",
    ),
    row(
        "crates/gradus-ir/src/externals/math.rs",
        "gives_float",
        "the tests of formulas select the functions that need a derivative",
    ),
    row(
        "crates/gradus-ir/src/externals/words.rs",
        "support",
        "the tests compare the stated support of each keyword with the compiler's answer",
    ),
    row(
        "crates/gradus-llvm/src/host/module.rs",
        "function_text",
        "the tests of export read the text of one function",
    ),
    row(
        "crates/gradus-pipeline/src/wire/codec.rs",
        "serialize",
        "derived code calls the function by `#[serde(with)]`",
    ),
    row(
        "crates/gradus-pipeline/src/wire/codec.rs",
        "deserialize",
        "derived code calls the function by `#[serde(with)]`",
    ),
    row(
        "crates/gradus-simplify/src/lib.rs",
        "simplify_reachable",
        "the random programs are simplified without the pipeline",
    ),
];

/// File that holds [`EXCEPTIONS`].
const OWN_FILE: &str = "xtask/src/tidy/unused_functions.rs";
/// Sources of the crate whose users are tests.
const TESTKIT: &str = "crates/gradus-testkit/src/";
/// Folders of test code.
const TEST_FOLDERS: &[&str] = &["tests", "benches", "examples"];

/// Public functions and words of all files, collected file by file.
#[derive(Default)]
pub struct Functions {
    files: BTreeMap<String, Names>,
    /// Module files that items under `#[cfg(test)]` declare, and the folders of such modules.
    test_modules: BTreeSet<String>,
}

/// Names of one file.
#[derive(Default)]
struct Names {
    /// Public functions outside of test items, with their lines.
    defined: Vec<(String, usize)>,
    /// Words of code outside of test items that are uses.
    code: BTreeSet<String>,
    /// Words of code in test items.
    tests: BTreeSet<String>,
}

/// Answer to the question who names a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Users {
    Code,
    Tests,
    Nobody,
}

impl Functions {
    /// Adds a Rust file.
    pub fn add(&mut self, file: &str, text: &str) {
        let code = scan::views(text).code;
        let tests = scan::test_items(&code);
        for item in &tests {
            self.test_modules.extend(declared_modules(
                file,
                &text[item.clone()],
                &code[item.clone()],
            ));
        }
        let in_test = |at: usize| tests.iter().any(|item| item.contains(&at));
        let mut public: Vec<scan::Function> = scan::functions(&code);
        public
            .retain(|f| !in_test(f.span.start) && is_public_and_not_exported(&code, f.span.start));
        let uses = use_items(&code);
        let mut names = Names::default();
        let mut name_at = None;
        for (at, word) in scan::words(&code) {
            if word == "fn" {
                name_at = name_behind(&code, at + word.len());
            }
            let is_in_use = uses.iter().any(|item| item.contains(&at));
            let is_renamed = || begins_with_as(&code[at + word.len()..]);
            let is_in_own_body = || {
                let own = |f: &scan::Function| f.name == word && f.span.contains(&at);
                public.iter().any(own)
            };
            let is_use = name_at != Some(at)
                && !is_field(&code, at, word)
                && (!is_in_use || is_renamed())
                && !is_in_own_body();
            if !is_use {
                continue;
            }
            let set = match in_test(at) {
                true => &mut names.tests,
                false => &mut names.code,
            };
            if !set.contains(word) {
                set.insert(word.to_owned());
            }
        }
        let with_line = |f: scan::Function| (f.name, scan::line(text, f.span.start));
        names.defined = public.into_iter().map(with_line).collect();
        self.files.insert(file.to_owned(), names);
    }

    /// Returns the functions without a user outside of tests, and the exceptions without a need.
    pub fn check(&self) -> Vec<Finding> {
        self.judge(EXCEPTIONS)
    }

    /// Compares the functions without a user with some exceptions.
    fn judge(&self, exceptions: &[Exception]) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut needed = BTreeSet::new();
        for (file, name, line, users) in self.unused() {
            let excepted = |e: &Exception| e.file == file && e.function == name;
            if exceptions.iter().any(excepted) {
                needed.insert((file, name));
                continue;
            }
            let message = match users {
                Users::Tests => format!(
                    "only tests name `{name}`: delete the function and its tests, or add a row with a reason to {OWN_FILE}"
                ),
                _ => format!("nobody names `{name}`: delete the function"),
            };
            findings.push(Finding::new(file, line, message));
        }
        for exception in exceptions {
            let (file, function) = (exception.file, exception.function);
            let message = match needed.contains(&(file, function)) {
                true if exception.reason.len() > 10 => continue,
                true => format!("the exception of `{function}` in {file} has no reason"),
                false => {
                    format!("the exception of `{function}` in {file} is not needed: delete its row")
                }
            };
            findings.push(Finding::new(OWN_FILE, 1, message));
        }
        findings
    }

    /// Returns the functions without a user outside of tests: file, name, line, users.
    fn unused(&self) -> Vec<(&str, &str, usize, Users)> {
        let mut code = BTreeSet::new();
        let mut tests = BTreeSet::new();
        let mut users_of_testkit = BTreeSet::new();
        for (file, names) in &self.files {
            let words = names.code.iter().map(String::as_str);
            let of_tests = names.tests.iter().map(String::as_str);
            match self.is_test_file(file) {
                true => tests.extend(words),
                false => code.extend(words),
            }
            tests.extend(of_tests.clone());
            if !file.starts_with(TESTKIT) {
                users_of_testkit.extend(names.code.iter().map(String::as_str));
                users_of_testkit.extend(of_tests);
            }
        }
        let mut found = Vec::new();
        for (file, names) in self
            .files
            .iter()
            .filter(|(file, _)| !self.is_test_file(file))
        {
            for (name, line) in &names.defined {
                let is_used = code.contains(name.as_str())
                    || file.starts_with(TESTKIT) && users_of_testkit.contains(name.as_str());
                let users = match tests.contains(name.as_str()) {
                    _ if is_used => Users::Code,
                    true => Users::Tests,
                    false => Users::Nobody,
                };
                if users != Users::Code {
                    found.push((file.as_str(), name.as_str(), *line, users));
                }
            }
        }
        found
    }

    /// Returns whether a whole file is test code.
    fn is_test_file(&self, file: &str) -> bool {
        let is_below = |module: &String| match module.ends_with('/') {
            true => file.starts_with(module.as_str()),
            false => file == module,
        };
        file.split('/').any(|part| TEST_FOLDERS.contains(&part))
            || self.test_modules.iter().any(is_below)
    }
}

/// Returns the files and the folder that an item `mod NAME;` of `file` may declare; none for other items.
fn declared_modules(file: &str, text: &str, code: &str) -> Vec<String> {
    let words: Vec<&str> = scan::words(code).map(|(_, word)| word).collect();
    let at = words.iter().position(|word| *word == "mod");
    let (Some(name), true) = (
        at.and_then(|at| words.get(at + 1)),
        code.trim_end().ends_with(';'),
    ) else {
        return Vec::new();
    };
    let (folder, own) = file.rsplit_once('/').unwrap_or(("", file));
    if let Some((_, path)) = text.split_once("#[path") {
        let path = path.split('"').nth(1).unwrap_or_default();
        return vec![format!("{folder}/{path}")];
    }
    let base = match own.trim_end_matches(".rs") {
        "mod" | "lib" | "main" => folder.to_owned(),
        stem => format!("{folder}/{stem}"),
    };
    vec![format!("{base}/{name}.rs"), format!("{base}/{name}/")]
}

/// Returns whether the function whose `fn` is at an offset has any `pub` and no exported symbol.
fn is_public_and_not_exported(code: &str, at: usize) -> bool {
    let mut before = code[..at].trim_end();
    loop {
        let qualifier = ["const", "unsafe", "async", "extern"]
            .iter()
            .find_map(|word| before.strip_suffix(word));
        // The view blanks the name of the calling convention, but keeps its quotes.
        let convention = before
            .strip_suffix('"')
            .and_then(|b| b.trim_end().strip_suffix('"'));
        match qualifier.or(convention) {
            Some(shorter) => before = shorter.trim_end(),
            None => break,
        }
    }
    if let Some(open) = before.strip_suffix(')') {
        before = open.rfind('(').map_or("", |i| open[..i].trim_end());
    }
    let is_public = before
        .strip_suffix("pub")
        .is_some_and(|b| !b.ends_with(|c: char| c.is_alphanumeric() || c == '_'));
    let begin = before.rfind(['{', '}', ';']).map_or(0, |i| i + 1);
    let is_exported = ["no_mangle", "export_name"]
        .iter()
        .any(|word| before[begin..].contains(word));
    is_public && !is_exported
}

/// Returns the ranges of `use` items.
fn use_items(code: &str) -> Vec<Range<usize>> {
    let items = scan::words(code).filter(|(_, word)| *word == "use");
    items
        .map(|(at, _)| at..code[at..].find(';').map_or(code.len(), |i| at + i))
        .collect()
}

/// Returns the offset of the word at `at` if only white space precedes it.
fn name_behind(code: &str, at: usize) -> Option<usize> {
    let rest = &code[at..];
    let start = at + rest.len() - rest.trim_start().len();
    (start > at).then_some(start)
}

/// Returns whether a word is a field, a parameter or a variable with a type: `.f` without a call, or `f:`.
fn is_field(code: &str, at: usize, word: &str) -> bool {
    let behind = code[at + word.len()..].trim_start();
    let is_access = code[..at].trim_end().ends_with('.') && !code[..at].trim_end().ends_with("..");
    let is_called = behind.starts_with('(') || behind.starts_with("::");
    let is_typed = behind.starts_with(':') && !behind.starts_with("::");
    is_access && !is_called || is_typed
}

/// Returns whether a text begins with the word `as`.
fn begins_with_as(text: &str) -> bool {
    let rest = text.trim_start().strip_prefix("as");
    rest.is_some_and(|rest| rest.starts_with(char::is_whitespace))
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "crates/a/src/lib.rs";

    fn judged(files: &[(&str, &str)], exceptions: &[Exception]) -> Vec<String> {
        let mut functions = Functions::default();
        files
            .iter()
            .for_each(|(file, text)| functions.add(file, text));
        let all = functions.judge(exceptions).into_iter();
        all.map(|f| f.message.split(':').next().unwrap_or_default().to_owned())
            .collect()
    }

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        judged(files, &[])
    }

    #[test]
    fn a_function_that_nobody_names_is_flagged() {
        for head in [
            "pub fn f",
            "pub(crate) fn f",
            "pub(in crate::x) const unsafe fn f",
            "pub extern \"C\" fn f",
            "#[inline]\npub async fn f<T>",
        ] {
            let text = format!(
                "struct S;\n/// `f` is a function.\nimpl S {{ {head}() {{ g(\"f\") }} }}\n"
            );
            assert_eq!(found(&[(A, &text)]), ["nobody names `f`"], "{head}");
        }
    }

    #[test]
    fn private_trait_and_exported_functions_pass() {
        for text in [
            "fn f() {}",
            "trait T { fn f() {} }",
            "#[unsafe(no_mangle)]\npub extern \"C\" fn f() {}",
            "macro_rules! m { ($n:ident) => { pub fn $n() {} } }",
            "#[cfg(test)]\nmod tests { pub fn f() {} }",
        ] {
            assert!(found(&[(A, text)]).is_empty(), "{text}");
        }
    }

    #[test]
    fn a_function_that_code_names_passes() {
        let defined = (A, "pub fn f() {}");
        for text in [
            "fn g() { a::f() }",
            "fn g(s: S) { s.f::<u8>() }",
            "const G: fn() = f;",
            "use a::f as g;",
            "fn g() { let f = 1; h(f) }",
            "const ROW: Row = Row { run: f };",
        ] {
            assert!(
                found(&[defined, ("crates/b/src/x.rs", text)]).is_empty(),
                "{text}"
            );
        }
    }

    #[test]
    fn imports_recursion_wrappers_and_fields_are_no_uses() {
        let texts = [
            "pub use a::f;\npub use a::{g, f};",
            "pub fn f() { f() }",
            "impl S { pub fn f(&self) { self.0.f() } }",
            "trait T { fn f(); }",
            "struct S { f: u8 }\nfn g(s: &S, f: u8) -> u8 { s.f }",
        ];
        for text in texts {
            let all = found(&[(A, "pub fn f() {}"), ("crates/b/src/x.rs", text)]);
            assert!(
                all.iter().all(|m| m == "nobody names `f`") && !all.is_empty(),
                "{text}"
            );
        }
    }

    #[test]
    fn a_function_that_only_tests_name_is_flagged() {
        let defined = "pub fn f() {}\n#[cfg(test)]\nmod tests { fn t() { super::f() } }";
        assert_eq!(found(&[(A, defined)]), ["only tests name `f`"]);
        let declared = "pub fn f() {}\n#[cfg(test)]\nmod g_tests;";
        let by_path = "pub fn f() {}\n#[cfg(test)]\n#[path = \"g_tests.rs\"]\nmod tests;";
        let call = "fn t() { f() }";
        for (first, second) in [
            ("pub fn f() {}", "crates/a/tests/x.rs"),
            (declared, "crates/a/src/g_tests.rs"),
            (declared, "crates/a/src/g_tests/x.rs"),
            (by_path, "crates/a/src/g_tests.rs"),
        ] {
            assert_eq!(
                found(&[(A, first), (second, call)]),
                ["only tests name `f`"],
                "{second}"
            );
        }
        assert!(found(&[(A, declared), ("crates/a/src/x.rs", call)]).is_empty());
    }

    #[test]
    fn tests_use_the_testkit() {
        let kit = ("crates/gradus-testkit/src/x.rs", "pub fn f() {}");
        assert!(found(&[kit, ("crates/a/tests/x.rs", "fn t() { f() }")]).is_empty());
        assert_eq!(found(&[kit]), ["nobody names `f`"]);
    }

    #[test]
    fn an_exception_admits_its_function_and_is_needed() {
        let exception = || row(A, "f", "shows the state to tests");
        assert!(judged(&[(A, "pub fn f() {}")], &[exception()]).is_empty());
        let used = judged(&[(A, "pub fn f() {}\nfn g() { f() }")], &[exception()]);
        assert_eq!(used, [format!("the exception of `f` in {A} is not needed")]);
        let bare = judged(&[(A, "pub fn f() {}")], &[row(A, "f", "")]);
        assert_eq!(bare, [format!("the exception of `f` in {A} has no reason")]);
    }
}
