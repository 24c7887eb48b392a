//! Rule on silent returns: code reports an impossible state as an internal error.
//!
//! `let … else { return }` may hide an unexpected state: the compiler drops an adjoint or does not lower an op.
//! A return without a value leaves work undone, hence each such return states why it is legal (`// Not an
//! error: …`). In code that emits derivatives, each return of an empty answer also states a reason. An
//! impossible state is an internal error (`ice`, `unreachable!`). The number of other empty answers per crate
//! may only fall. A match over ops in `effects`, `clobbers` and the emission code names or refuses every op
//! with regions.

use super::Finding;
use super::scan;
use std::collections::BTreeMap;

/// Code in which every silent return has a reason.
const EMISSION: &[&str] = &[
    "crates/gradus-ad/src/reverse/",
    "crates/gradus-ad/src/forward/",
    "crates/gradus-ad/src/driver/reverse_mode.rs",
    "crates/gradus-ad/src/tape/huge_pages.rs",
];

/// Files in which a match over ops names every op with regions.
const EXHAUSTIVE: &[&str] = &[
    "crates/gradus-ad/src/reverse/reverse_pass.rs",
    "crates/gradus-ad/src/forward/mod.rs",
    "crates/gradus-analysis/src/memory/effects.rs",
    "crates/gradus-analysis/src/memory/clobbers.rs",
];

/// Largest number of silent returns without a reason, per crate.
// table
const LIMITS: &[(&str, usize)] = &[
    ("gradus", 5),
    ("gradus-ad", 50),
    ("gradus-analysis", 51),
    ("gradus-edit", 25),
    ("gradus-gpu", 37),
    ("gradus-interp", 1),
    ("gradus-ir", 12),
    ("gradus-llvm", 23),
    ("gradus-par", 19),
    ("gradus-pipeline", 7),
    ("gradus-raise", 22),
    ("gradus-rt", 1),
    ("gradus-simplify", 51),
    ("gradus-testkit", 5),
];

/// Results of a silent return in a function that acts rather than answers.
const NO_VALUE: &[&str] = &["", "Ok(())"];

/// Results that count as a silent return.
const NOTHING: &[&str] = &[
    "",
    "None",
    "false",
    "Vec::new()",
    "Default::default()",
    "Ok(())",
    "Ok(None)",
    "Ok(false)",
    "Ok(Vec::new())",
];

/// Comment that states why a silent return is legal.
const REASON: &str = "// Not an error:";

/// An `else` block that only returns an empty result, without a reason.
#[derive(Debug, PartialEq)]
struct Silent {
    /// Line, from 1.
    line: usize,
    /// True if the return has no value.
    bare: bool,
}

/// Returns the silent returns of a file.
fn silent_returns(text: &str) -> Vec<Silent> {
    let code = scan::views(text).code;
    let tests = scan::test_items(&code);
    let mut found = Vec::new();
    for (at, _) in code.match_indices("else") {
        if tests.iter().any(|item| item.contains(&at)) {
            continue;
        }
        let Some(block) = block_behind(&code[at + "else".len()..]) else {
            continue;
        };
        let from = at + code[at..].find('{').unwrap_or(0);
        let with_comments = &text[from..from + block.len() + 2];
        let value = returned(block).filter(|value| NOTHING.contains(value));
        if let Some(value) = value.filter(|_| !with_comments.contains(REASON)) {
            found.push(Silent {
                line: scan::line(text, at),
                bare: NO_VALUE.contains(&value),
            });
        }
    }
    found
}

/// Returns the inside of the block at the beginning of `code`.
fn block_behind(code: &str) -> Option<&str> {
    let open = code.find(|c: char| !c.is_whitespace())?;
    let inside = code[open..].strip_prefix('{')?;
    let close = inside.find(['{', '}'])?;
    inside[close..].starts_with('}').then(|| &inside[..close])
}

/// Returns the result of a block that only returns.
fn returned(block: &str) -> Option<&str> {
    let value = block.trim().strip_prefix("return")?;
    Some(value.trim().trim_end_matches(';').trim())
}

/// Returns the places of a file that break the rule, and adds the remaining silent returns to `counts`.
pub fn check(file: &str, text: &str, counts: &mut BTreeMap<String, usize>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Some(name) = crate_of(file) else {
        return findings;
    };
    let emission = EMISSION.iter().any(|begin| file.starts_with(begin));
    let refused = |silent: &Silent| emission || silent.bare;
    let (refused, counted): (Vec<Silent>, Vec<Silent>) =
        silent_returns(text).into_iter().partition(refused);
    let message = "silent return: report an internal error (`ice`), or state the reason (`// Not an error: …`)";
    findings.extend(
        refused
            .iter()
            .map(|silent| Finding::new(file, silent.line, message)),
    );
    *counts.entry(name.to_owned()).or_default() += counted.len();
    if EXHAUSTIVE.contains(&file) {
        findings.extend(wildcards(file, text));
    }
    findings
}

/// Returns the matches that name an op with regions and have a `_` arm for the rest.
fn wildcards(file: &str, text: &str) -> Vec<Finding> {
    let code = scan::views(text).code;
    let lines: Vec<&str> = code.lines().collect();
    let mut findings = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let indent = line.len() - line.trim_start().len();
        if !line.trim_start().starts_with("_ =>") {
            continue;
        }
        // The arms of the match: all lines back to a line with less indentation.
        let arms: Vec<&&str> = lines[..number]
            .iter()
            .rev()
            .take_while(|l| l.trim().is_empty() || l.len() - l.trim_start().len() >= indent)
            .filter(|l| l.len() - l.trim_start().len() == indent)
            .collect();
        let names = arms.iter().any(|arm| names_region_op(arm));
        let refuses = arms.iter().any(|arm| arm.contains("op_regions("));
        if names && !refuses {
            let message = "a `_` arm matches ops with regions: name each op";
            findings.push(Finding::new(file, number + 1, message));
        }
    }
    findings
}

/// Returns whether the arm of a match names an op with regions.
fn names_region_op(arm: &str) -> bool {
    const WITH_REGIONS: &[&str] = &[
        "If", "Switch", "Loop", "For", "Invoke", "Scope", "Spawn", "ParFor", "Spmd", "ShareFor",
        "Single", "Critical",
    ];
    let kinds = arm
        .match_indices("OpKind::")
        .map(|(at, found)| &arm[at + found.len()..]);
    let word =
        |rest: &str| -> String { rest.chars().take_while(|c| c.is_alphanumeric()).collect() };
    kinds
        .map(word)
        .any(|kind| WITH_REGIONS.contains(&kind.as_str()))
}

/// Returns the crates with more silent returns than allowed.
pub fn limits(counts: &BTreeMap<String, usize>) -> Vec<Finding> {
    let limit = |name: &str| {
        LIMITS
            .iter()
            .find(|(of, _)| *of == name)
            .map_or(0, |(_, n)| *n)
    };
    let over = counts.iter().filter(|(name, count)| **count > limit(name));
    let finding = |(name, count): (&String, &usize)| {
        let message = format!(
            "{count} silent returns without a reason, {} are allowed: report an internal error, or state why the answer is legal (`{REASON} …`)",
            limit(name)
        );
        Finding::new(&format!("crates/{name}"), 1, message)
    };
    over.map(finding).collect()
}

/// Returns the crate of a product source; `None` for tests and further files.
fn crate_of(file: &str) -> Option<&str> {
    let (name, rest) = file.strip_prefix("crates/")?.split_once('/')?;
    let product = rest.starts_with("src/") && !rest.contains("tests");
    product.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tree;
    use crate::workspace;

    #[test]
    fn every_path_of_the_rule_is_in_the_clone() {
        let files = tree::files(&workspace::root()).unwrap();
        for path in EMISSION.iter().chain(EXHAUSTIVE) {
            assert!(files.iter().any(|file| file.starts_with(path)), "{path}");
        }
    }

    #[test]
    fn a_return_without_a_reason_is_found() {
        let text = "fn f() {\n    let Some(x) = y else {\n        return;\n    };\n}\n";
        assert_eq!(
            silent_returns(text),
            [Silent {
                line: 2,
                bare: true
            }]
        );
        let text = "fn f() {\n    let Some(x) = y else { return None };\n}\n";
        assert_eq!(
            silent_returns(text),
            [Silent {
                line: 2,
                bare: false
            }]
        );
    }

    #[test]
    fn a_reason_an_error_or_a_value_is_enough() {
        let text = "fn f() {\n    let Some(x) = y else {\n        // Not an error: none.\n        return;\n    };\n}\n";
        assert!(silent_returns(text).is_empty());
        let text = "fn f() {\n    let Some(x) = y else {\n        return self.ice(None, \"no\");\n    };\n}\n";
        assert!(silent_returns(text).is_empty());
        let text = "fn f() {\n    let Some(x) = y else { return Some(0) };\n}\n";
        assert!(silent_returns(text).is_empty());
    }

    #[test]
    fn emission_code_has_none_and_other_crates_no_more_than_before() {
        let text = "fn f() {\n    let Some(x) = y else { return };\n}\n";
        let mut counts = BTreeMap::new();
        let found = check("crates/gradus-ad/src/reverse/x.rs", text, &mut counts);
        assert_eq!(found.len(), 1);
        assert!(limits(&counts).is_empty());
        let text = "fn f() -> Option<u8> {\n    let Some(x) = y else { return None };\n}\n";
        let found = check("crates/gradus-new/src/x.rs", text, &mut counts);
        assert!(found.is_empty());
        assert_eq!(limits(&counts).len(), 1);
    }

    #[test]
    fn a_return_without_a_value_has_a_reason_where_answers_need_none() {
        let mut counts = BTreeMap::new();
        let text = "fn f() {\n    let Some(x) = y else { return };\n}\n";
        assert_eq!(
            check("crates/gradus-ad/src/x.rs", text, &mut counts).len(),
            1
        );
        let text = "fn f() {\n    let Some(x) = y else { return Ok(()) };\n}\n";
        assert_eq!(
            check("crates/gradus-ad/src/x.rs", text, &mut counts).len(),
            1
        );
        let text = "fn f() {\n    let Some(x) = y else { return None };\n}\n";
        assert!(check("crates/gradus-ad/src/x.rs", text, &mut counts).is_empty());
        assert_eq!(counts["gradus-ad"], 1);
    }

    #[test]
    fn a_wildcard_beside_a_named_structure_is_found() {
        let text =
            "fn f() {\n    match kind {\n        OpKind::If => 1,\n        _ => 2,\n    }\n}\n";
        assert_eq!(wildcards("x.rs", text).len(), 1);
        let text = "fn f() {\n    match kind {\n        OpKind::Load(_) => 1,\n        _ => 2,\n    }\n}\n";
        assert!(wildcards("x.rs", text).is_empty());
        let text = "fn f() {\n    match kind {\n        OpKind::If => 1,\n        _ if !body.op_regions(op).is_empty() => 3,\n        _ => 2,\n    }\n}\n";
        assert!(wildcards("x.rs", text).is_empty());
    }
}
