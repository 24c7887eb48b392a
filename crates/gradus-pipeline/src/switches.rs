//! Switches: the optimisations that `--without=NAME` turns off, and the names of passes.
//!
//! A pass, its switch, its file and its folder of case pages have one name. Names of earlier versions remain valid for
//! one release: [`with_current_names`] translates them before anything reads a request.

use crate::Request;
use gradus_ad::Options;
use gradus_ir::{Code, Diagnostic};
use std::borrow::Cow;

/// The names of the switches for [`crate::Options::off`].
pub const SWITCHES: &[&str] = &[
    "simplify",
    "argminmax",
    "index-array-copies",
    "scatter-to-gather",
    "privatize-adds",
    "two-phase-adds",
    "unroll-and-jam",
    "short-trip-versioning",
    "stagger-allocations",
    "unroll-local-arrays",
    "alias-scopes",
    "loop-variance-cost",
    "recompute",
    "recompute-calls",
    "early-frees",
    "invert-inductions",
    "save-conditions",
    "shadow-pointers",
    "segmented-tape",
    "snapshots",
    "alias-versioning",
    "recompute-loops",
    "recompute-loops-cost",
];

/// The switches of lowering for kernels and parallel loops.
const LOWERING_SWITCHES: &[&str] = &[
    "barrier-removal",
    "min-cut",
    "thread-interchange",
    "clamp-split",
    "uniform-guards",
    "launch-fusion",
    "loop-fusion",
    "speculative-search",
    "sparse-thread-loops",
    "cooperative-threads",
    "race-freedom",
];

/// Returns the options of differentiation with the listed switches off.
///
/// # Errors
/// An unknown switch.
pub(crate) fn options(off: &[String]) -> Result<Options, Diagnostic> {
    let mut options = Options::default();
    for name in off {
        match name.as_str() {
            "simplify"
            | "argminmax"
            | "index-array-copies"
            | "scatter-to-gather"
            | "privatize-adds"
            | "two-phase-adds"
            | "unroll-and-jam"
            | "short-trip-versioning"
            | "stagger-allocations"
            | "unroll-local-arrays" => {}
            name if LOWERING_SWITCHES.contains(&name) => {}
            "alias-scopes" => options.alias_scopes = false,
            "loop-variance-cost" => options.loop_variance_cost = false,
            "recompute" => options.recompute = false,
            "recompute-calls" => options.recompute_calls = false,
            "early-frees" => options.early_frees = false,
            "invert-inductions" => options.invert_inductions = false,
            "save-conditions" => options.save_conditions = false,
            "shadow-pointers" => options.shadow_pointers = false,
            "segmented-tape" => options.segmented_tape = false,
            "snapshots" => options.snapshots = false,
            "alias-versioning" => options.alias_versioning = false,
            "recompute-loops" => options.recompute_loops = false,
            "recompute-loops-cost" => options.recompute_loops_cost = false,
            _ => {
                let message = format!("unknown switch `{name}`");
                let help = format!(
                    "the switches are {}",
                    [SWITCHES, LOWERING_SWITCHES].concat().join(", ")
                );
                return Err(Diagnostic::error(Code::BadOption, message).help(help));
            }
        }
    }
    Ok(options)
}

/// Names before release 0.1.0, of switches and of passes, and the present ones.
// table
const RENAMED: &[(&str, &[&str])] = &[
    ("read", &["parse"]),
    ("early", &["pre-ad-llvm"]),
    ("requests", &["collect-requests"]),
    ("winners", &["argminmax"]),
    ("lists", &["index-array-copies"]),
    ("facts", &["analyze"]),
    ("simplify-derivatives", &["dead-derivative-code"]),
    ("private-sums", &["privatize-adds"]),
    ("rounds", &["two-phase-adds"]),
    ("gather", &["scatter-to-gather"]),
    ("jam", &["unroll-and-jam"]),
    ("short-rows", &["short-trip-versioning"]),
    ("stagger", &["stagger-allocations"]),
    ("call-sites", &["rewrite-call-sites"]),
    ("cut", &["split-functions"]),
    ("late", &["final-llvm"]),
    ("local-loops", &["unroll-local-arrays"]),
    ("variance-cost", &["loop-variance-cost"]),
    ("redo-calls", &["recompute-calls"]),
    ("backwards", &["invert-inductions"]),
    ("conditions", &["save-conditions"]),
    ("segment-stack", &["segmented-tape"]),
    ("versioning", &["alias-versioning"]),
    ("replay", &["recompute-loops"]),
    ("replay-cost", &["recompute-loops-cost"]),
    ("clamps", &["clamp-split"]),
    ("guards", &["uniform-guards"]),
    ("fusion", &["launch-fusion", "loop-fusion"]),
    ("searches", &["speculative-search"]),
    ("multiples", &["sparse-thread-loops"]),
    ("turns", &["cooperative-threads"]),
    ("interchange", &["thread-interchange"]),
];

/// Returns the request with the present names of switches and passes in place of names of earlier versions.
pub(crate) fn with_current_names(request: &Request) -> Cow<'_, Request> {
    let renamed = |name: &String| RENAMED.iter().any(|(old, _)| old == name);
    let options = &request.options;
    if !options.off.iter().chain(&options.dump_after).any(renamed) {
        return Cow::Borrowed(request);
    }
    let mut request = request.clone();
    for names in [&mut request.options.off, &mut request.options.dump_after] {
        *names = names.iter().flat_map(|name| current_names(name)).collect();
    }
    Cow::Owned(request)
}

fn current_names(name: &str) -> Vec<String> {
    match RENAMED.iter().find(|(old, _)| *old == name) {
        Some((_, new)) => new.iter().map(|name| name.to_string()).collect(),
        None => vec![name.to_string()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PASSES;

    #[test]
    fn every_switch_is_understood() {
        for name in [SWITCHES, LOWERING_SWITCHES].concat() {
            assert!(options(&[name.to_string()]).is_ok(), "{name}");
        }
        assert!(options(&["nothing".to_string()]).is_err());
    }

    #[test]
    fn earlier_names_lead_to_present_ones() {
        let present = [SWITCHES, LOWERING_SWITCHES, PASSES].concat();
        for (old, new) in RENAMED {
            assert!(!present.contains(old), "{old}");
            assert!(new.iter().all(|name| present.contains(name)), "{old}");
        }
    }

    #[test]
    fn requests_with_earlier_names_are_translated() {
        let mut request = Request::default();
        request.options.off = vec!["fusion".into(), "recompute".into()];
        request.options.dump_after = vec!["late".into()];
        let current = with_current_names(&request);
        let off = ["launch-fusion", "loop-fusion", "recompute"];
        assert_eq!(current.options.off, off);
        assert_eq!(current.options.dump_after, ["final-llvm"]);
    }
}
