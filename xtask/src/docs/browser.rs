//! Pages of the book in a headless browser, from files: the list of chapters, the text, the search.

use crate::process::{self, Failure, Outcome};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Names of the browser.
const NAMES: &[&str] = &["chromium", "chromium-browser", "google-chrome"];
/// Limit of one run of the browser.
const LIMIT: Duration = Duration::from_secs(60);

/// A page, a text that the page shows, and a query of the search with a page that the results contain.
struct Sample {
    page: &'static str,
    text: &'static str,
    query: &'static str,
    result: &'static str,
}

const SAMPLES: &[Sample] = &[
    Sample {
        page: "docs/index.html",
        text: "The Gradus manual",
        query: "checkpoints",
        result: "docs/howto/checkpoints.html",
    },
    Sample {
        page: "docs/tour/c.html",
        text: "gradus check energy.c",
        query: "gradus_dupnoneed",
        result: "docs/reference/header.html",
    },
    Sample {
        page: "docs/diagnostics/GRD0005.html",
        text: "GRD0005",
        query: "GRD0007",
        result: "docs/diagnostics/GRD0007.html",
    },
];

/// Returns the name of the installed browser.
pub fn find() -> Option<&'static str> {
    NAMES.iter().copied().find(|name| process::on_path(name))
}

/// Opens the sample pages.
///
/// # Errors
/// Fails if there is no browser, if the list of chapters, the text or the results of the search are missing, or if a
/// script of the page fails.
pub fn check(pages: &Path) -> Outcome<()> {
    let browser = find().ok_or_else(|| Failure::new("chromium is missing: cargo xtask setup"))?;
    for sample in SAMPLES {
        let address = format!(
            "file://{}?search={}",
            pages.join(sample.page).display(),
            sample.query
        );
        let mut command = Command::new(browser);
        command.args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--enable-logging=stderr",
            "--virtual-time-budget=20000",
            "--dump-dom",
        ]);
        let profile = pages.with_file_name("profile");
        command.arg(format!("--user-data-dir={}", profile.display()));
        let opened = process::within(command.arg(&address), LIMIT)?;
        let fails = |why: &str| Err(Failure::new(format!("{address}: {why}")));
        if !opened.succeeded() {
            return fails(&format!("the browser: {}", opened.ending()));
        }
        let message = opened.stderr.lines().find(|line| line.contains("CONSOLE"));
        if let Some(message) = message {
            return fails(message);
        }
        let dom = &opened.stdout;
        if !dom.contains(sample.text) {
            return fails(&format!("the text `{}` is missing", sample.text));
        }
        if !dom.contains("howto/openmp.html") {
            return fails("the list of chapters is missing");
        }
        if !results(dom).contains(sample.result) {
            return fails(&format!("the search does not find {}", sample.result));
        }
    }
    Ok(())
}

/// Returns the part of the page with the results of the search.
fn results(dom: &str) -> &str {
    let part = dom.split("searchresults\"").nth(1).unwrap_or_default();
    part.split("</ul>").next().unwrap_or_default()
}
