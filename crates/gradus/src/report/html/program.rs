//! The sections on the whole program: check, parallel regions, kernels.

use super::super::document::Document;
use super::super::figures::place;
use super::super::full::{kernel_lines, kernel_place};
use super::escape::{escaped, with_code};
use gradus_pipeline::report::RegionOutcome;
use std::fmt::Write;

/// Returns the result of the check, if one ran.
pub(super) fn check(document: &Document) -> String {
    let Some(check) = &document.check else {
        return String::new();
    };
    let (class, verdict) = match (check.right, &check.untested_reason_at_given_values) {
        (true, None) => ("good", "the derivative is right".to_string()),
        (true, Some(why)) => (
            "good",
            format!("the derivative is right at other values; at the given values {why}"),
        ),
        (false, _) => ("bad", "the check did not pass".to_string()),
    };
    let mut html = format!(
        "<section class=\"check\">\n<h2>Check</h2>\n<p class=\"verdict {class}\">{}</p>\n<table class=\"list\"><tbody>\n",
        escaped(&verdict)
    );
    for one in &check.comparisons {
        // Writing to a string does not fail.
        let _ = writeln!(
            html,
            "<tr><th scope=\"row\">{}</th><td>{}</td></tr>",
            escaped(&one.title),
            escaped(&one.result)
        );
    }
    html + "</tbody></table>\n</section>\n"
}

/// Returns the outcome of each parallel region, with the decisions on its loops.
pub(super) fn regions(document: &Document) -> String {
    let regions = &document.report.parallel_regions;
    if regions.is_empty() {
        return String::new();
    }
    let mut html = "<section class=\"regions\">\n<h2>Parallel regions</h2>\n<table class=\"list\"><thead><tr>\
                    <th scope=\"col\">Place</th><th scope=\"col\">Outcome and decisions</th></tr></thead><tbody>\n"
        .to_string();
    for region in regions {
        let at = region
            .location
            .as_ref()
            .map_or(region.function.clone(), place);
        let class = match region.outcome {
            RegionOutcome::NotRaised | RegionOutcome::Serial => "bad",
            _ => "good",
        };
        let _ = write!(
            html,
            "<tr><th scope=\"row\"><code>{}</code></th><td><span class=\"verdict {class}\">{}</span>",
            escaped(&at),
            with_code(&region.text)
        );
        for construct in &region.constructs {
            let line = construct.location.as_ref();
            let line = line.map_or(String::new(), |at| format!("line {}: ", at.line));
            let _ = write!(
                html,
                "<div class=\"construct\">{line}<code>{}</code>",
                escaped(&construct.name)
            );
            for decision in &construct.decisions {
                let _ = write!(
                    html,
                    "<div class=\"muted\">{}</div>",
                    with_code(&decision.text)
                );
            }
            html += "</div>";
        }
        html += "</td></tr>\n";
    }
    html + "</tbody></table>\n</section>\n"
}

/// Returns the transformations of each kernel.
pub(super) fn kernels(document: &Document) -> String {
    let kernels = &document.report.kernels;
    if kernels.is_empty() {
        return String::new();
    }
    let mut html = "<section class=\"kernels\">\n<h2>Kernels</h2>\n<table class=\"list\"><thead><tr>\
                    <th scope=\"col\">Place</th><th scope=\"col\">Launches and transformations</th></tr></thead><tbody>\n"
        .to_string();
    for kernel in kernels {
        let _ = write!(
            html,
            "<tr><th scope=\"row\"><code>{}</code></th><td>{}",
            escaped(&kernel_place(kernel)),
            escaped(&kernel.launches.join(", "))
        );
        for line in kernel_lines(kernel) {
            let _ = write!(html, "<div class=\"muted\">{}</div>", with_code(&line));
        }
        html += "</td></tr>\n";
    }
    html + "</tbody></table>\n</section>\n"
}
