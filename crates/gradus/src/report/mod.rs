//! The report for users, in five forms: short text, full text, JSON, HTML, LLVM remarks. All forms are rendered from one
//! [`Document`]; the page `docs/reference/report.md` documents the fields.

mod document;
mod figures;
mod full;
mod html;
mod remarks;
mod short;

pub use document::{CheckReport, Comparison, Document, Headline};
pub use full::{kernels, regions};

use crate::Settings;
use crate::files::{Content, Outputs};
use gradus_ir::Diagnostic;
use std::path::{Path, PathBuf};

/// A form of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Text of at most twelve lines.
    Short,
    /// Text with all rows.
    Full,
    /// A JSON document.
    Json,
    /// A page in one file.
    Html,
    /// Optimisation remarks in LLVM's YAML format.
    Remarks,
}

impl Form {
    /// All forms, with their names on the command line.
    pub const NAMES: [(&str, Form); 5] = [
        ("short", Form::Short),
        ("full", Form::Full),
        ("json", Form::Json),
        ("html", Form::Html),
        ("remarks", Form::Remarks),
    ];
}

/// A requested report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The form.
    pub form: Form,
    /// The file; `-` is standard output. By default a page goes to a file beside the output, and other forms go to
    /// standard output.
    pub file: Option<PathBuf>,
}

impl Wanted {
    /// Returns the default: the short text on standard output.
    pub fn short() -> Wanted {
        Wanted {
            form: Form::Short,
            file: None,
        }
    }

    /// Returns true for a document for other programs on standard output.
    pub fn is_document_on_stdout(&self) -> bool {
        let is_document = matches!(self.form, Form::Json | Form::Html | Form::Remarks);
        is_document && self.target(Path::new("")).is_none()
    }

    /// Returns the file of a report, or `None` for standard output. `output` is the main output of the run.
    fn target(&self, output: &Path) -> Option<PathBuf> {
        match &self.file {
            Some(file) if file == Path::new("-") => None,
            Some(file) => Some(file.clone()),
            None => (self.form == Form::Html).then(|| output.with_extension("html")),
        }
    }
}

/// Renders the reports: adds those for files to `outputs`, and returns the text for standard output. `output` is the
/// main output of the run; it names the file of a page.
pub fn render_all(
    wanted: &[Wanted],
    document: &Document,
    output: &Path,
    outputs: &mut Outputs,
) -> String {
    let mut printed = String::new();
    for one in wanted {
        let text = render(one.form, document);
        match one.target(output) {
            Some(file) => outputs.add(&file, Content::Bytes(text.into_bytes())),
            None => printed += &text,
        }
    }
    printed
}

/// Renders the reports like [`render_all`], and writes those for files. Returns the text for standard output, and the
/// written files.
///
/// # Errors
/// `FileAccess`.
pub fn deliver(
    settings: &Settings,
    wanted: &[Wanted],
    document: &Document,
    output: &Path,
) -> Result<(String, Vec<PathBuf>), Diagnostic> {
    let mut outputs = Outputs::default();
    let printed = render_all(wanted, document, output, &mut outputs);
    outputs.commit(&settings.leftovers)?;
    Ok((printed, outputs.paths()))
}

/// Returns a report as text.
pub fn render(form: Form, document: &Document) -> String {
    match form {
        Form::Short => short::text(document),
        Form::Full => full::text(document),
        Form::Json => document.json(),
        Form::Html => html::page(document),
        Form::Remarks => remarks::text(document),
    }
}
