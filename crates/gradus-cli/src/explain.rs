//! `gradus explain CODE`: prints the page of a diagnostic. The pages are embedded.

use crate::options::bad_option;
use crate::said::outln;
use crate::session::Session;
use clap::Args;
use gradus::Code;

macro_rules! pages {
    ($($digits:literal),*) => {
        const PAGES: &[(&str, &str)] = &[$((
            concat!("GRD", $digits),
            include_str!(concat!("../../../docs/diagnostics/GRD", $digits, ".md")),
        )),*];
    };
}

gradus::with_code_digits!(pages);

/// The words of the command line.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  gradus explain GRD0005\n  gradus explain 5\n  gradus explain")]
pub struct Words {
    /// The diagnostic, such as GRD0005 or 5 [default: list all]
    code: Option<String>,
}

/// Prints a page, or the list of all pages. Returns the exit status.
pub fn run(session: &Session, words: &Words) -> u8 {
    let Some(asked) = words.code.as_ref().map(|code| code.to_uppercase()) else {
        for (number, page) in PAGES {
            outln!("{number}  {}", title(page));
        }
        return 0;
    };
    let digits = asked.trim_start_matches("GRD");
    let number = format!("GRD{digits:0>4}");
    match page(&number) {
        Some(page) => {
            crate::said::out(format_args!("{page}"));
            0
        }
        None => {
            let last = Code::ALL.last().map_or("", |c| c.number());
            let message = format!("unknown diagnostic `{asked}`");
            session
                .fail(bad_option(message).note(format!("diagnostics range from GRD0001 to {last}")))
        }
    }
}

/// Returns the page of a code.
pub fn page(number: &str) -> Option<&'static str> {
    let found = PAGES.iter().find(|(n, _)| *n == number);
    found.map(|(_, page)| *page)
}

/// Returns the title of a page.
pub fn title(page: &str) -> &str {
    let line = page.lines().next().unwrap_or_default();
    line.split_once(": ").map_or(line, |(_, title)| title)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_page_with_a_title_and_a_remedy() {
        for code in Code::ALL {
            let number = code.number();
            let page = page(number).unwrap_or_else(|| panic!("{number} has no page"));
            assert!(
                page.starts_with(&format!("# {number}: ")),
                "{number}: title"
            );
            assert!(page.contains("## What to do"), "{number}: remedy");
            assert!(page.contains("## Example"), "{number}: example");
        }
    }
}
