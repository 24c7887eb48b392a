//! The rules on silence: code that meets an impossible state reports it.
//!
//! `let … else { return }` may silently pass over an unexpected state: an adjoint is dropped, or an op is not
//! lowered. In code that emits derivatives each such return states why it is a legal answer (`// Not an error: …`).
//! An impossible state is an internal error (`ice`, `unreachable!`). In other code the number of such returns per
//! crate may only fall. A match over ops in the effects and in the emission code names or refuses every op that
//! owns regions.

use super::Finding;
use super::scan;
use std::collections::BTreeMap;

/// The code in which every silent return has a reason.
const EMISSION: &[&str] = &[
    "crates/gradus-ad/src/reverse/",
    "crates/gradus-ad/src/sweep/",
    "crates/gradus-ad/src/tape/pages.rs",
];

/// The code in which a match over ops names or refuses every op with regions.
const EXHAUSTIVE: &[&str] = &[
    "crates/gradus-ad/src/reverse/return_sweep.rs",
    "crates/gradus-ad/src/sweep/mod.rs",
    "crates/gradus-analysis/src/effects.rs",
    "crates/gradus-analysis/src/clobber.rs",
];

/// The number of silent returns without a reason that a crate may still have.
// table
const LIMITS: &[(&str, usize)] = &[
    ("gradus", 11),
    ("gradus-ad", 52),
    ("gradus-analysis", 99),
    ("gradus-cli", 1),
    ("gradus-edit", 38),
    ("gradus-gpu", 37),
    ("gradus-interp", 2),
    ("gradus-ir", 19),
    ("gradus-llvm", 45),
    ("gradus-par", 26),
    ("gradus-pipeline", 16),
    ("gradus-raise", 39),
    ("gradus-rt", 5),
    ("gradus-simplify", 56),
    ("gradus-testkit", 14),
];

/// The values of a silent return.
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

const REASON: &str = "// Not an error:";

/// Returns the lines of `text`, from 1, whose `else` block only returns nothing, without a reason.
fn silent_returns(text: &str) -> Vec<usize> {
    let code = scan::views(text).code;
    let tests = scan::test_items(&code);
    let mut lines = Vec::new();
    for (at, _) in code.match_indices("else") {
        if tests.iter().any(|item| item.contains(&at)) {
            continue;
        }
        let Some(block) = block_behind(&code[at + "else".len()..]) else {
            continue;
        };
        let from = at + code[at..].find('{').unwrap_or(0);
        let with_comments = &text[from..from + block.len() + 2];
        if is_silent(block) && !with_comments.contains(REASON) {
            lines.push(scan::line(text, at));
        }
    }
    lines
}

/// Returns the inside of the block that `code` begins with.
fn block_behind(code: &str) -> Option<&str> {
    let open = code.find(|c: char| !c.is_whitespace())?;
    let inside = code[open..].strip_prefix('{')?;
    let close = inside.find(['{', '}'])?;
    inside[close..].starts_with('}').then(|| &inside[..close])
}

fn is_silent(block: &str) -> bool {
    let Some(value) = block.trim().strip_prefix("return") else {
        return false;
    };
    NOTHING.contains(&value.trim().trim_end_matches(';').trim())
}

/// Reports violations in a file, and counts its silent returns for [`limits`].
pub fn check(file: &str, text: &str, counts: &mut BTreeMap<String, usize>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Some(name) = crate_of(file) else {
        return findings;
    };
    let lines = silent_returns(text);
    if EMISSION.iter().any(|begin| file.starts_with(begin)) {
        let message = "a silent return: report an internal error (`ice`), or say why it is none (`// Not an error: …`)";
        findings.extend(lines.iter().map(|line| Finding::new(file, *line, message)));
    } else {
        *counts.entry(name.to_owned()).or_default() += lines.len();
    }
    if EXHAUSTIVE.contains(&file) {
        findings.extend(wildcards(file, text));
    }
    findings
}

/// Reports matches that name an op with regions and take the others silently.
fn wildcards(file: &str, text: &str) -> Vec<Finding> {
    let code = scan::views(text).code;
    let lines: Vec<&str> = code.lines().collect();
    let mut findings = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let indent = line.len() - line.trim_start().len();
        if !line.trim_start().starts_with("_ =>") {
            continue;
        }
        // The arms of the same match: back to the line with less indentation.
        let arms: Vec<&&str> = lines[..number]
            .iter()
            .rev()
            .take_while(|l| l.trim().is_empty() || l.len() - l.trim_start().len() >= indent)
            .filter(|l| l.len() - l.trim_start().len() == indent)
            .collect();
        let names = arms.iter().any(|arm| names_region_op(arm));
        let refuses = arms.iter().any(|arm| arm.contains("op_regions("));
        if names && !refuses {
            let message =
                "`_` takes ops with regions that the match does not name: name each of them";
            findings.push(Finding::new(file, number + 1, message));
        }
    }
    findings
}

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

/// Reports crates with more silent returns than allowed.
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
            "{count} silent returns without a reason, {} are allowed: report an internal error, or say why it is none (`{REASON} …`)",
            limit(name)
        );
        Finding::new(&format!("crates/{name}"), 1, message)
    };
    over.map(finding).collect()
}

/// Returns the crate whose product code a file is.
fn crate_of(file: &str) -> Option<&str> {
    let (name, rest) = file.strip_prefix("crates/")?.split_once('/')?;
    let product = rest.starts_with("src/") && !rest.contains("tests");
    product.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_return_without_a_reason_is_found() {
        let text = "fn f() {\n    let Some(x) = y else {\n        return;\n    };\n}\n";
        assert_eq!(silent_returns(text), [2]);
        let text = "fn f() {\n    let Some(x) = y else { return None };\n}\n";
        assert_eq!(silent_returns(text), [2]);
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
        assert!(counts.is_empty());
        let found = check("crates/gradus-new/src/x.rs", text, &mut counts);
        assert!(found.is_empty());
        assert_eq!(limits(&counts).len(), 1);
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
