//! Links to source lines: the lines of the derivative's own file have anchors.

use super::escape::escaped;
use gradus_pipeline::report::Location;

/// The anchors of a section. Without a file, there are none.
#[derive(Clone, Copy)]
pub(super) struct Anchors<'a> {
    /// The name of the section.
    pub section: &'a str,
    /// The file whose lines have anchors.
    pub file: Option<&'a str>,
}

impl Anchors<'_> {
    /// Returns the attribute of a line's row.
    pub(super) fn attribute(&self, file: &str, line: u32) -> String {
        match self.file == Some(file) {
            true => format!(" id=\"{}l{line}\"", self.section),
            false => String::new(),
        }
    }

    /// Returns file and line of a location as HTML, with a link if the line has an anchor.
    pub(super) fn place(&self, location: &Location) -> String {
        let text = format!("{}:{}", location.file, location.line);
        let at = location.of_user();
        self.link(
            &at.file,
            at.line,
            &format!("<code>{}</code>", escaped(&text)),
        )
    }

    /// Returns HTML with a link to a line, if the line has an anchor.
    pub(super) fn link(&self, file: &str, line: u32, html: &str) -> String {
        match self.file == Some(file) {
            true => format!("<a href=\"#{}l{line}\">{html}</a>", self.section),
            false => html.to_string(),
        }
    }
}
