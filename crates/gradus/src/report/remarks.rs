//! The report as optimisation remarks in LLVM's YAML format, for tools that read `-fsave-optimization-record`
//! (`llvm-opt-report`, `llvm-remarkutil`, editors).
//!
//! A value on the tape and serial code are missed optimisations; a parallel loop of the reverse pass, and a raised region
//! are passed ones. A remark needs a line: a place without debug information has none.

use super::document::{Document, mode_name};
use super::figures::ratio;
use super::full::{additions, kernel_lines, value};
use gradus_pipeline::report::{DerivativeReport, Location, RegionOutcome};
use std::fmt::Write;

/// The pass of all remarks.
const PASS: &str = "gradus";

/// A kind of remark, by LLVM's tag.
#[derive(Clone, Copy)]
enum Kind {
    Passed,
    Missed,
    Analysis,
}

/// Returns the remarks, in the order of the report.
pub(super) fn text(document: &Document) -> String {
    let mut yaml = String::new();
    for one in &document.report.derivatives {
        derivative(&mut yaml, one);
    }
    for region in &document.report.parallel_regions {
        let kind = match region.outcome {
            RegionOutcome::NotRaised | RegionOutcome::Serial => Kind::Missed,
            _ => Kind::Passed,
        };
        let name = (kind, "ParallelRegion", region.function.as_str());
        remark(&mut yaml, name, region.location.as_ref(), &region.text);
        for construct in &region.constructs {
            for decision in &construct.decisions {
                let name = (Kind::Analysis, "ParallelLoop", region.function.as_str());
                remark(&mut yaml, name, construct.location.as_ref(), &decision.text);
            }
        }
    }
    for kernel in &document.report.kernels {
        let place = kernel.file.as_ref().map(|file| Location {
            file: file.clone(),
            line: kernel.first_line,
            column: 0,
            called_at: None,
        });
        let function = kernel.launches.first().map_or("kernel", String::as_str);
        let text = format!(
            "kernel lowered to loops; {}",
            kernel_lines(kernel).join("; ")
        );
        remark(
            &mut yaml,
            (Kind::Passed, "Kernel", function),
            place.as_ref(),
            &text,
        );
    }
    yaml
}

fn derivative(yaml: &mut String, one: &DerivativeReport) {
    let symbol = one.symbol.as_str();
    let mode = mode_name(one.mode);
    let (primal, derived) = (one.ops.primal as f64, one.ops.derivative as f64);
    let cost = format!(
        "{mode}: ops: primal {primal}, derivative {derived}{}",
        ratio(primal, derived)
    );
    remark(
        yaml,
        (Kind::Analysis, "Derivative", symbol),
        one.location.as_ref(),
        &cost,
    );
    for row in one.tape.iter().flat_map(|tape| &tape.rows) {
        let remedy = row.remedy.as_ref();
        let remedy = remedy.map_or(String::new(), |remedy| format!("; remedy: {remedy}"));
        let text = format!(
            "{mode}: saved {}, {}: {}{remedy}",
            value(row),
            row.formula,
            row.why
        );
        remark(
            yaml,
            (Kind::Missed, "SavedValue", symbol),
            row.location.as_ref(),
            &text,
        );
    }
    for lp in &one.parallel_loops {
        let (kind, how) = match lp.parallel {
            true => (Kind::Passed, "parallel"),
            false => (Kind::Missed, "serial"),
        };
        let text = format!(
            "{how} in the reverse pass; adjoint additions: {}",
            additions(lp)
        );
        remark(
            yaml,
            (kind, "ReverseLoop", symbol),
            lp.location.as_ref(),
            &text,
        );
    }
    for lp in &one.recomputed_loops {
        let text = "the reverse pass recomputes the loop";
        remark(
            yaml,
            (Kind::Analysis, "RecomputedLoop", symbol),
            lp.location.as_ref(),
            text,
        );
    }
}

// Writing to a string does not fail.
fn remark(
    yaml: &mut String,
    (kind, name, function): (Kind, &str, &str),
    at: Option<&Location>,
    text: &str,
) {
    let Some(at) = at.map(Location::of_user) else {
        // Not an error: the text and JSON forms have the entry.
        return;
    };
    let tag = match kind {
        Kind::Passed => "Passed",
        Kind::Missed => "Missed",
        Kind::Analysis => "Analysis",
    };
    let _ = write!(
        yaml,
        "--- !{tag}\nPass:            {PASS}\nName:            {name}\n\
         DebugLoc:        {{ File: {}, Line: {}, Column: {} }}\nFunction:        {}\nArgs:\n  - String:          {}\n...\n",
        quoted(&at.file),
        at.line,
        at.column,
        quoted(function),
        quoted(text)
    );
}

/// Returns a text as a scalar of YAML in single quotes, in one line.
fn quoted(text: &str) -> String {
    let line: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    format!("'{}'", line.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remark_has_its_place_and_quoted_text() {
        let at = Location {
            file: "it's.c".into(),
            line: 7,
            column: 3,
            called_at: None,
        };
        let mut yaml = String::new();
        remark(
            &mut yaml,
            (Kind::Missed, "SavedValue", "f"),
            Some(&at),
            "a: 'b'\n# c",
        );
        assert_eq!(
            yaml,
            "--- !Missed\nPass:            gradus\nName:            SavedValue\n\
             DebugLoc:        { File: 'it''s.c', Line: 7, Column: 3 }\nFunction:        'f'\nArgs:\n  \
             - String:          'a: ''b'' # c'\n...\n"
        );
        remark(&mut yaml, (Kind::Passed, "SavedValue", "f"), None, "");
        assert_eq!(yaml.matches("---").count(), 1);
    }
}
