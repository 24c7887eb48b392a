//! `cargo xtask test NAME`, `cargo xtask bless NAME`: selects and runs the tests of one area, without a build of the
//! other packages.
//!
//! NAME is an exact name or a part of a name. Exact names are a crate (`gradus-ad` or `ad`), a file below a `tests`
//! folder (`clauses`) and a folder of case pages (`licm`); all crates, files and folders of the name are selected.
//! Without an exact name, the test functions are selected whose name contains NAME. One nextest run per selection
//! builds only the package and its test binaries.
//!
//! All files below `tests` of a package are modules of one program, `tests/main.rs`: each further program would link
//! the compiler once more, at 40 MB and some seconds.
//!
//! The index of names is read from the text of the sources, since cargo lists tests only after a build of all. A
//! test function that a macro generates is found by the names in the calls of the macro.
//!
//! # Invariants
//! - An unknown name is a failure with the closest names, never a run without tests. nextest also fails without a
//!   test (`--no-tests fail`).
//! - A folder of case pages is selected by the test function that reads the `cases` folder of the crate; the function
//!   runs all pages of the crate.

use crate::process::{self, Failure, Outcome};
use crate::tidy::{scan, tree};
use crate::workspace;
use std::collections::{BTreeMap, BTreeSet};

/// Largest number of close names in a failure.
const CLOSE_NAMES_MAX: usize = 8;
/// Largest number of function names in the description of a selection.
const SHOWN_FUNCTIONS_MAX: usize = 12;

/// The treatment of expected results that stand in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedResults {
    /// A difference is a failure.
    Check,
    /// The tests rewrite the files.
    Rewrite,
}

/// Runs the tests of the area `name`.
///
/// # Errors
/// Fails if no name matches, if nextest is missing, or if a test fails.
pub fn run(name: &str, expected: ExpectedResults) -> Outcome<()> {
    let root = workspace::root();
    let mut index = Index::default();
    for file in tree::files(&root)? {
        let text = match file.ends_with(".rs") || file.ends_with("/Cargo.toml") {
            true => std::fs::read_to_string(root.join(&file))
                .map_err(|e| Failure::new(format!("cannot read {file}: {e}")))?,
            false => String::new(),
        };
        index.add(&file, &text);
    }
    index.close();
    let selections = index.select(name);
    if selections.is_empty() {
        return Err(Failure::new(no_match(name, &index.closest(name))));
    }
    for selection in &selections {
        println!("== {}", selection.words());
    }
    if process::capture(workspace::cargo().args(["nextest", "--version"])).is_err() {
        return Err(Failure::new(
            "cargo-nextest is missing: cargo install --locked cargo-nextest",
        ));
    }
    let mut failed = Vec::new();
    for selection in &selections {
        let mut command = workspace::cargo();
        command.args(selection.arguments());
        if expected == ExpectedResults::Rewrite {
            command.env("GRADUS_BLESS", "1");
        }
        println!("== {}", process::line(&command));
        if process::show(&mut command).is_err() {
            failed.push(selection.words());
        }
    }
    match failed.is_empty() {
        true => Ok(()),
        false => Err(Failure::new(format!("failed: {}", failed.join("; ")))),
    }
}

/// Returns the message for a name without a match.
fn no_match(name: &str, closest: &[String]) -> String {
    let closest = match closest {
        [] => "no name is close".to_owned(),
        names => format!("close names: {}", names.join(", ")),
    };
    format!(
        "no crate, test file, folder of case pages or test function matches `{name}`; {closest}"
    )
}

/// A test binary, or several, of a package.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Target {
    /// Unit tests of the library.
    Lib,
    /// Unit tests of the binaries.
    Bins,
    /// The program of all files below `tests`.
    Tests,
}

/// A test function.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct TestFunction {
    target: Target,
    name: String,
}

/// Tests of one package.
#[derive(Default)]
struct Package {
    name: String,
    has_lib: bool,
    /// Files below `tests`, without extension.
    test_files: BTreeSet<String>,
    /// Folders below `cases`.
    case_folders: BTreeSet<String>,
    functions: BTreeSet<TestFunction>,
    /// Test function that reads the `cases` folder.
    case_runner: Option<TestFunction>,
    /// Test functions below `src`, before the kind of the package is known.
    unit: Vec<(bool, String)>,
}

/// Names of all tests in the clone, by the folder of the package.
#[derive(Default)]
struct Index {
    packages: BTreeMap<String, Package>,
}

impl Index {
    /// Adds a file of the clone.
    fn add(&mut self, file: &str, text: &str) {
        let Some((folder, inside)) = package_folder(file) else {
            // Not an error: the file belongs to no package.
            return;
        };
        let package = self.packages.entry(folder.to_owned()).or_default();
        let parts: Vec<&str> = inside.split('/').collect();
        match parts.as_slice() {
            ["Cargo.toml"] => package.name = package_name(text).unwrap_or_default(),
            ["cases", folder, _page] => drop(package.case_folders.insert((*folder).to_owned())),
            ["src", rest @ ..] if file.ends_with(".rs") => {
                package.has_lib |= rest == ["lib.rs"];
                let is_bin = matches!(rest, ["bin", ..] | ["main.rs"]);
                let names = test_functions(text).into_iter();
                package
                    .unit
                    .extend(names.map(|function| (is_bin, function.name)));
            }
            ["tests", "main.rs"] => package.add_tests(text),
            ["tests", module] if file.ends_with(".rs") => {
                package
                    .test_files
                    .insert(module.trim_end_matches(".rs").to_owned());
                package.add_tests(text);
            }
            ["tests", ..] if file.ends_with(".rs") => package.add_tests(text),
            // Other files contain no test.
            _ => {}
        }
    }

    /// Assigns functions to targets, once all files are known.
    fn close(&mut self) {
        self.packages.retain(|_, package| !package.name.is_empty());
        self.packages.values_mut().for_each(Package::close);
    }

    /// Returns the selections of a name; none if no name matches.
    fn select(&self, name: &str) -> Vec<Selection> {
        let mut found = Vec::new();
        for package in self.packages.values() {
            if name == package.name || Some(name) == package.name.strip_prefix("gradus-") {
                found.push(package.selection(format!("all tests of crate {}", package.name)));
                continue;
            }
            let has_file = package.test_files.contains(name);
            if has_file {
                let mut chosen = package.selection(format!("test file {name}"));
                chosen.targets.insert(Target::Tests);
                chosen.module = Some(name.to_owned());
                found.push(chosen);
            }
            let runner = package.case_runner.as_ref();
            if let Some(runner) = runner.filter(|_| package.case_folders.contains(name)) {
                let what = format!("case folder {name}, by the test of all case pages");
                let mut chosen = package.selection(what);
                chosen.targets.insert(runner.target.clone());
                chosen.functions.insert(runner.name.clone());
                found.push(chosen);
            }
        }
        if found.is_empty() && !name.is_empty() {
            found.extend(
                self.packages
                    .values()
                    .filter_map(|p| p.functions_like(name)),
            );
        }
        found
    }

    /// Returns the names closest to `name`, best first.
    fn closest(&self, name: &str) -> Vec<String> {
        let mut names = BTreeSet::new();
        for package in self.packages.values() {
            names.insert(package.name.as_str());
            names.extend(package.name.strip_prefix("gradus-"));
            names.extend(package.test_files.iter().map(String::as_str));
            names.extend(package.case_folders.iter().map(String::as_str));
            names.extend(package.functions.iter().map(|f| f.name.as_str()));
        }
        let near = |candidate: &&str| {
            let edits = distance(name, candidate);
            let is_close = edits <= (name.len() / 3).max(1);
            let is_part = candidate.len() >= 3 && name.contains(*candidate);
            (is_close || is_part).then_some((edits, (*candidate).to_owned()))
        };
        let mut all: Vec<(usize, String)> = names.iter().filter_map(near).collect();
        all.sort();
        all.truncate(CLOSE_NAMES_MAX);
        all.into_iter().map(|(_, candidate)| candidate).collect()
    }
}

impl Package {
    /// Adds the test functions of a file below `tests`.
    fn add_tests(&mut self, text: &str) {
        let cases = text.find("\"/cases\"");
        for function in test_functions(text) {
            let found = TestFunction {
                target: Target::Tests,
                name: function.name,
            };
            if cases.is_some_and(|at| function.span.contains(&at)) {
                self.case_runner = Some(found.clone());
            }
            self.functions.insert(found);
        }
    }

    /// Assigns the test functions of `src` to targets.
    fn close(&mut self) {
        for (is_bin, name) in std::mem::take(&mut self.unit) {
            let target = match is_bin || !self.has_lib {
                true => Target::Bins,
                false => Target::Lib,
            };
            self.functions.insert(TestFunction { target, name });
        }
    }

    /// Returns the selection of all tests of the package.
    fn selection(&self, what: String) -> Selection {
        Selection {
            package: self.name.clone(),
            what,
            targets: BTreeSet::new(),
            module: None,
            functions: BTreeSet::new(),
        }
    }

    /// Returns the selection of the test functions whose name contains `part`.
    fn functions_like(&self, part: &str) -> Option<Selection> {
        let mut chosen = self.selection(String::new());
        for function in self.functions.iter().filter(|f| f.name.contains(part)) {
            chosen.targets.insert(function.target.clone());
            chosen.functions.insert(function.name.clone());
        }
        let names: Vec<&str> = chosen.functions.iter().map(String::as_str).collect();
        let mut shown = names[..names.len().min(SHOWN_FUNCTIONS_MAX)].join(", ");
        if names.len() > SHOWN_FUNCTIONS_MAX {
            shown += &format!(" and {} more", names.len() - SHOWN_FUNCTIONS_MAX);
        }
        let number = names.len();
        chosen.what = match number {
            1 => format!("test function {shown}"),
            _ => format!("{number} test functions: {shown}"),
        };
        (number > 0).then_some(chosen)
    }
}

/// Tests of one package that one nextest run executes.
#[derive(Debug, PartialEq, Eq)]
struct Selection {
    package: String,
    /// Description for the user.
    what: String,
    /// Test binaries; all if empty.
    targets: BTreeSet<Target>,
    /// File below `tests`; all if none.
    module: Option<String>,
    /// Test functions; all if empty.
    functions: BTreeSet<String>,
}

impl Selection {
    /// Describes the selection in one line.
    fn words(&self) -> String {
        format!("{}: {}", self.package, self.what)
    }

    /// Returns the arguments of cargo.
    fn arguments(&self) -> Vec<String> {
        let fixed = "nextest run --no-fail-fast --no-tests fail --package";
        let mut all: Vec<String> = fixed.split(' ').map(String::from).collect();
        all.push(self.package.clone());
        for target in &self.targets {
            match target {
                Target::Lib => all.push("--lib".into()),
                Target::Bins => all.push("--bins".into()),
                Target::Tests => all.extend(["--test".into(), "main".into()]),
            }
        }
        if let Some(module) = &self.module {
            all.extend(["--filterset".into(), format!("test(/^{module}::/)")]);
        }
        if !self.functions.is_empty() {
            let names: Vec<&str> = self.functions.iter().map(String::as_str).collect();
            let expression = format!("test(/(^|::)({})$/)", names.join("|"));
            all.extend(["--filterset".into(), expression]);
        }
        all
    }
}

/// Splits a path into the folder of its package and the rest.
fn package_folder(file: &str) -> Option<(&str, &str)> {
    if let Some(inside) = file.strip_prefix("xtask/") {
        return Some(("xtask", inside));
    }
    let name = file.strip_prefix("crates/")?.split('/').next()?;
    let length = "crates/".len() + name.len();
    Some((&file[..length], file.get(length + 1..)?))
}

/// Returns the name of the package of a manifest.
fn package_name(manifest: &str) -> Option<String> {
    let line = manifest.lines().find(|line| line.starts_with("name"))?;
    line.split('"').nth(1).map(String::from)
}

/// Returns the test functions of a file: functions under `#[test]`, and the names in calls of macros that generate
/// such functions.
fn test_functions(text: &str) -> Vec<scan::Function> {
    let code = scan::views(text).code;
    let marks: Vec<usize> = code.match_indices("#[test]").map(|(at, _)| at).collect();
    let is_marked = |function: &scan::Function| {
        marks.iter().any(|&mark| {
            let between = code.get(mark..function.span.start).unwrap_or_default();
            mark < function.span.start && !between.contains(['{', '}', ';'])
        })
    };
    let mut found = scan::functions(&code);
    found.retain(is_marked);
    for name in generators(&code, &marks) {
        let call = format!("{name}!");
        for (at, _) in code.match_indices(&call) {
            if let Some(end) = scan::item_end(&code, at) {
                let inside = at + call.len();
                let words = scan::words(&code[inside..end]);
                let names = words.filter(|(_, word)| word.starts_with(|c: char| c.is_alphabetic()));
                found.extend(names.map(|(_, word)| scan::Function {
                    name: word.to_owned(),
                    span: at..end,
                }));
            }
        }
    }
    found
}

/// Returns the names of the macros that generate functions at some of the `marks` with a name of the caller.
fn generators(code: &str, marks: &[usize]) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("macro_rules!") {
        let end = scan::item_end(code, at).unwrap_or(code.len());
        let generates = marks.iter().any(|mark| {
            let behind = code[*mark..].trim_start_matches("#[test]").trim_start();
            (at..end).contains(mark) && behind.starts_with("fn $")
        });
        let name = scan::words(&code[at..end]).nth(1);
        found.extend(name.filter(|_| generates).map(|(_, name)| name.to_owned()));
    }
    found
}

/// Returns the number of insertions, deletions and replacements between two words.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, right) in b.bytes().enumerate() {
            let replaced = diagonal + usize::from(left != right);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGES: &str = "#[test]\nfn case_pages() { check(\"/cases\"); }\n#[test]\nfn other() {}\n";
    const UNIT: &str = "fn plain() {}\n#[cfg(test)]\nmod tests { #[test]\nfn folds_a_sum() {} }\n";

    fn index() -> Index {
        let files = [
            (
                "crates/gradus-ad/Cargo.toml",
                "[package]\nname = \"gradus-ad\"\n",
            ),
            ("crates/gradus-ad/src/lib.rs", UNIT),
            ("crates/gradus-ad/tests/pages.rs", PAGES),
            ("crates/gradus-ad/cases/licm/a.md", ""),
            (
                "crates/gradus-cli/Cargo.toml",
                "[package]\nname = \"gradus-cli\"\n",
            ),
            ("crates/gradus-cli/src/main.rs", UNIT),
            (
                "crates/gradus-cli/tests/pages.rs",
                "#[test]\nfn all_pages() {}\n",
            ),
            (
                "crates/gradus-cli/tests/clauses.rs",
                "macro_rules! programs { ($($n:ident;)*) => { $( #[test]\nfn $n() {} )* }; }\n\
                 programs! { made_one; made_two; }\n",
            ),
            (
                "crates/gradus-cli/tests/support/mod.rs",
                "#[test]\nfn at_o0() {}\n",
            ),
            ("crates/gradus-cli/tests/memory.rs", "mod alias;\n"),
            (
                "crates/gradus-cli/tests/memory/alias.rs",
                "#[test]\nfn aliases() {}\n",
            ),
            ("crates/gradus-cli/tests/clauses/num.c", "int licm;"),
            ("README.md", "licm"),
        ];
        let mut index = Index::default();
        files.iter().for_each(|(file, text)| index.add(file, text));
        index.close();
        index
    }

    /// Returns the arguments of each run behind the fixed part.
    fn chosen(name: &str) -> Vec<String> {
        let all = index().select(name);
        let line = |s: &Selection| s.arguments()[6..].join(" ");
        all.iter().map(line).collect()
    }

    #[test]
    fn a_crate_is_chosen_by_both_names() {
        assert_eq!(chosen("ad"), ["gradus-ad"]);
        assert_eq!(chosen("gradus-ad"), ["gradus-ad"]);
    }

    #[test]
    fn a_test_file_is_chosen_in_all_crates() {
        let file = |package: &str, module: &str| {
            format!("{package} --test main --filterset test(/^{module}::/)")
        };
        assert_eq!(chosen("clauses"), [file("gradus-cli", "clauses")]);
        assert_eq!(chosen("memory"), [file("gradus-cli", "memory")]);
        let pages = [file("gradus-ad", "pages"), file("gradus-cli", "pages")];
        assert_eq!(chosen("pages"), pages);
    }

    #[test]
    fn a_case_folder_is_chosen_by_the_function_that_reads_the_pages() {
        let run = "gradus-ad --test main --filterset test(/(^|::)(case_pages)$/)";
        assert_eq!(chosen("licm"), [run]);
    }

    #[test]
    fn functions_are_chosen_by_a_part_of_the_name() {
        let lib = "gradus-ad --lib --filterset test(/(^|::)(folds_a_sum)$/)";
        let bins = "gradus-cli --bins --filterset test(/(^|::)(folds_a_sum)$/)";
        assert_eq!(chosen("a_sum"), [lib, bins]);
        let made = "gradus-cli --test main --filterset test(/(^|::)(made_one|made_two)$/)";
        assert_eq!(chosen("made_"), [made]);
        let shared = "gradus-cli --test main --filterset test(/(^|::)(at_o0)$/)";
        assert_eq!(chosen("at_o"), [shared]);
        let module = "gradus-cli --test main --filterset test(/(^|::)(aliases)$/)";
        assert_eq!(chosen("aliases"), [module]);
    }

    #[test]
    fn a_name_without_a_match_chooses_nothing() {
        for name in ["", "plain", "case_page_", "clause", "num", "(.*)"] {
            assert_eq!(chosen(name), Vec::<String>::new(), "{name}");
        }
    }

    #[test]
    fn close_names_are_listed_best_first() {
        assert_eq!(index().closest("clauzes"), ["clauses"]);
        assert_eq!(index().closest("case_page"), ["case_pages"]);
        assert_eq!(index().closest("gradus-ed")[0], "gradus-ad");
        assert_eq!(index().closest("zzzzzz"), Vec::<String>::new());
        assert!(no_match("x", &["y".to_owned()]).ends_with("close names: y"));
    }

    #[test]
    fn every_case_folder_of_the_clone_has_a_test() {
        let root = workspace::root();
        let mut index = Index::default();
        for file in tree::files(&root).unwrap() {
            let text = std::fs::read_to_string(root.join(&file)).unwrap_or_default();
            index.add(&file, &text);
        }
        index.close();
        let with_cases = |p: &&Package| !p.case_folders.is_empty();
        let packages: Vec<&Package> = index.packages.values().filter(with_cases).collect();
        assert!(packages.len() >= 3);
        for package in packages {
            assert!(package.case_runner.is_some(), "{}", package.name);
        }
        assert!(!index.select("licm").is_empty() && !index.select("orphaned_tasks").is_empty());
    }
}
