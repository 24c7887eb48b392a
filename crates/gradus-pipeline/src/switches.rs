//! Switches: the optimisations that `--without=NAME` turns off, and the names of passes.
//!
//! A pass, its switch, its file and its folder of case pages have one name. Names of earlier versions remain valid for
//! one release: [`with_current_names`] translates them before anything reads a request, with a warning per name.

use crate::Request;
use crate::passes::PASSES;
use gradus_ad::Options;
use gradus_ir::{Code, Diagnostic};
use std::borrow::Cow;

/// A switch of differentiation, and the option that the switch turns off.
type AdSwitch = (&'static str, fn(&mut Options));

/// The switches of differentiation.
// table
const AD_SWITCHES: &[AdSwitch] = &[
    ("alias-scopes", |options| options.alias_scopes = false),
    ("loop-variance-cost", |options| {
        options.loop_variance_cost = false
    }),
    ("recompute", |options| options.recompute = false),
    ("recompute-calls", |options| options.recompute_calls = false),
    ("early-frees", |options| options.early_frees = false),
    ("invert-inductions", |options| {
        options.invert_inductions = false
    }),
    ("save-conditions", |options| options.save_conditions = false),
    ("shadow-pointers", |options| options.shadow_pointers = false),
    ("segmented-tape", |options| options.segmented_tape = false),
    ("snapshots", |options| options.snapshots = false),
    ("alias-versioning", |options| {
        options.alias_versioning = false
    }),
    ("recompute-loops", |options| options.recompute_loops = false),
    ("recompute-loops-cost", |options| {
        options.recompute_loops_cost = false
    }),
];

/// A switch of LLVM's passes before differentiation.
const UNROLL_LOCAL_ARRAYS: &str = "unroll-local-arrays";

/// The switches of lowering that turn off a part of a pass or an axiom. A switch that turns off a whole pass stands in
/// the pass's row.
// table
const LOWERING_SWITCHES: &[&str] = &[
    "min-cut",
    "thread-interchange",
    "loop-fusion",
    "race-freedom",
];

/// Returns the names of the switches of differentiation and of its passes, for [`crate::Options::off`].
pub fn switches() -> Vec<&'static str> {
    let of_passes = PASSES.iter().filter_map(|pass| pass.switch);
    let of_ad = AD_SWITCHES.iter().map(|(name, _)| *name);
    of_passes
        .chain([UNROLL_LOCAL_ARRAYS])
        .chain(of_ad)
        .collect()
}

/// Returns the names of the switches of lowering for kernels and parallel loops.
fn lowering_switches() -> impl Iterator<Item = &'static str> {
    let of_kernels = gradus_gpu::PASSES.iter().filter_map(|pass| pass.switch);
    of_kernels.chain(LOWERING_SWITCHES.iter().copied())
}

/// Returns the names of all switches.
fn all_switches() -> Vec<&'static str> {
    switches().into_iter().chain(lowering_switches()).collect()
}

/// Returns the options of differentiation with the listed switches off.
///
/// # Errors
/// An unknown switch.
pub(crate) fn options(off: &[String]) -> Result<Options, Diagnostic> {
    let mut options = Options::default();
    for name in off {
        if let Some((_, turn_off)) = AD_SWITCHES.iter().find(|(own, _)| own == name) {
            turn_off(&mut options);
        } else if !all_switches().contains(&name.as_str()) {
            let message = format!("unknown switch `{name}`");
            let help = format!("the switches are {}", all_switches().join(", "));
            return Err(Diagnostic::error(Code::BadOption, message).help(help));
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
    ("teams", &["lower-teams"]),
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

/// Returns the request with the present names of switches and passes in place of names of earlier versions, and a
/// warning for each replaced name.
pub(crate) fn with_current_names(request: &Request) -> (Cow<'_, Request>, Vec<Diagnostic>) {
    let options = &request.options;
    let used = options.off.iter().chain(&options.dump_after);
    let warnings: Vec<Diagnostic> = used.filter_map(|name| old_name_warning(name)).collect();
    if warnings.is_empty() {
        return (Cow::Borrowed(request), warnings);
    }
    let mut request = request.clone();
    for names in [&mut request.options.off, &mut request.options.dump_after] {
        *names = names.iter().flat_map(|name| current_names(name)).collect();
    }
    (Cow::Owned(request), warnings)
}

/// Returns the present names for a name of an earlier version; `None` for any other name.
fn renamed(name: &str) -> Option<&'static [&'static str]> {
    let row = RENAMED.iter().find(|(old, _)| *old == name);
    row.map(|(_, new)| *new)
}

fn old_name_warning(name: &str) -> Option<Diagnostic> {
    let new = renamed(name)?.join(",");
    let message = format!("the name `{name}` is deprecated: use `{new}`");
    Some(Diagnostic::warning(Code::BadOption, message))
}

fn current_names(name: &str) -> Vec<String> {
    match renamed(name) {
        Some(new) => new.iter().map(|name| name.to_string()).collect(),
        None => vec![name.to_string()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_switch_is_understood() {
        for name in all_switches() {
            assert!(options(&[name.to_string()]).is_ok(), "{name}");
        }
        assert!(options(&["nothing".to_string()]).is_err());
    }

    #[test]
    fn earlier_names_lead_to_present_ones() {
        let mut present = all_switches();
        present.extend(PASSES.iter().map(|pass| pass.name));
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
        let (current, warnings) = with_current_names(&request);
        let off = ["launch-fusion", "loop-fusion", "recompute"];
        assert_eq!(current.options.off, off);
        assert_eq!(current.options.dump_after, ["final-llvm"]);
        let messages: Vec<&str> = warnings.iter().map(|w| w.message.as_str()).collect();
        let expected = [
            "the name `fusion` is deprecated: use `launch-fusion,loop-fusion`",
            "the name `late` is deprecated: use `final-llvm`",
        ];
        assert_eq!(messages, expected);
        assert_eq!(with_current_names(&current).1, []);
    }
}
