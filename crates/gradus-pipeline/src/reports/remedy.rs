//! Remedies for saved values: the change of the program that makes the save unnecessary. The user guide explains
//! each remedy (`docs/howto/memory.md`, the table of costs).

use gradus_ad::{SaveReason, SavedValue};
use gradus_ir::SourceSpan;

/// Returns the remedy for a saved value; `None` if no change of the program is known to help.
pub(crate) fn remedy(saved: &SavedValue) -> Option<String> {
    let text = match saved.reason {
        SaveReason::Overwritten => overwritten(saved),
        SaveReason::Freed => {
            "free the memory in the block that allocates it, unconditionally".to_string()
        }
        SaveReason::Call => {
            "provide the source of the called function: calls of pure functions are recomputed"
                .to_string()
        }
        SaveReason::LoopCarried | SaveReason::LoopResult if is_large(saved) => CHECKPOINT.to_string(),
        SaveReason::CallerWrites => {
            "request the whole VJP instead of split mode, if the caller needs no other work between the passes"
                .to_string()
        }
        _ => return None,
    };
    Some(text)
}

/// The remedy for a tape that grows with a long loop.
const CHECKPOINT: &str =
    "checkpoint the loop with `gradus/steps.h`: the tape then holds a chosen number of steps";

/// The estimated bytes from which checkpointing is worth the change.
const LARGE_BYTES: f64 = 1e6;

fn is_large(saved: &SavedValue) -> bool {
    saved.total_bytes >= LARGE_BYTES
}

fn overwritten(saved: &SavedValue) -> String {
    let at = |span: &SourceSpan| match &saved.span {
        Some(own) if own.file == span.file => format!(" in line {}", span.line),
        _ => format!(" at {}:{}", span.file, span.line),
    };
    let place = saved.clobber.as_ref().map(at).unwrap_or_default();
    let never_alias = match saved.span.as_ref().is_some_and(has_restrict) {
        true => ", or add `restrict` if the two never alias",
        false => "",
    };
    format!("write to another array{place}{never_alias}")
}

/// Returns true if the language of a file has the qualifier `restrict`.
fn has_restrict(span: &SourceSpan) -> bool {
    let ending = span.file.rsplit('.').next().unwrap_or_default();
    ["c", "h", "cc", "cpp", "cxx", "C", "hpp", "cu", "cuh"].contains(&ending)
}
