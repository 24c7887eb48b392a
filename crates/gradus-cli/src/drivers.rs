//! `gradus cc`, `gradus c++`, `gradus fc` and `gradus nvcc`: the command line of a compiler, with some
//! options of Gradus.

use crate::options::{bad_option, driver_report, words};
use crate::session::Session;
use gradus::driver::{DriveOptions, DriverOutcome, drive};
use gradus::files::is_special_file;
use gradus::nvcc::nvcc as drive_nvcc;
use gradus::pipeline::ParallelTarget;
use gradus::report::{self, Document, Wanted};
use gradus::response_files;
use gradus::{Code, Diagnostic, Language};
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::Path;

/// Runs the driver of clang or flang. Returns the exit status.
pub fn run(session: &Session, args: &[OsString], language: Language) -> u8 {
    match parse(args) {
        Ok(mut asked) => {
            asked.how.language = language;
            let driven = drive(&session.settings, &asked.how, &asked.rest);
            let status = show_outcome(session, &asked, &driven);
            if asked.rest.iter().any(|word| word == "--version") && status == 0 {
                // The compiler's lines come first: build systems recognise the compiler by the first line.
                crate::said::outln!("{}", crate::version::OWN);
            }
            status
        }
        Err(diagnostic) => session.fail(diagnostic),
    }
}

/// Runs the driver of nvcc. Returns the exit status.
pub fn nvcc(session: &Session, args: &[OsString]) -> u8 {
    match parse(args) {
        Ok(asked) => {
            let driven = drive_nvcc(&session.settings, &asked.how, &asked.rest);
            show_outcome(session, &asked, &driven)
        }
        Err(diagnostic) => session.fail(diagnostic),
    }
}

/// A driver's command line, with Gradus's options removed.
#[derive(Debug, Default)]
struct Asked {
    how: DriveOptions,
    rest: Vec<String>,
    reports: Vec<Wanted>,
    regions: bool,
    kernels: bool,
    warnings: Vec<Diagnostic>,
}

fn parse(args: &[OsString]) -> Result<Asked, Diagnostic> {
    let mut asked = Asked::default();
    asked.how.color = std::io::stderr().is_terminal();
    for arg in response_files::expand(&words(args)?)? {
        match arg.as_str() {
            "--restructure-all" => asked.how.restructure_all = true,
            "--strong-zero" => asked.how.options.strong_zero = true,
            "--deterministic" => asked.how.options.deterministic = true,
            "--report" => asked.reports.push(driver_report(None)?),
            OLD_REPORT => {
                asked.reports.push(driver_report(Some("full"))?);
                asked.warnings.push(old_report_warning());
            }
            "--par-report" => asked.regions = true,
            "--gpu-report" => (asked.kernels, asked.how.kernel_report) = (true, true),
            _ => {
                if let Some(names) = arg.strip_prefix("--gradus-without=") {
                    asked
                        .how
                        .options
                        .off
                        .extend(crate::options::split_commas(names));
                } else if let Some(names) = arg.strip_prefix("--allow=") {
                    let allowed = crate::options::allowed_list(names)?;
                    asked.how.options.allowed.extend(allowed);
                } else if let Some(form) = arg.strip_prefix("--report=") {
                    asked.reports.push(driver_report(Some(form))?);
                    asked.how.kernel_report = true;
                } else if let Some(name) = arg.strip_prefix("--par-target=") {
                    asked.how.options.target = target(name)?;
                    asked.warnings.extend(old_target_warning(name));
                } else {
                    asked.rest.push(arg);
                }
            }
        }
    }
    Ok(asked)
}

/// Name before release 0.1.0 of `--report=full`, valid for one release.
const OLD_REPORT: &str = "--gradus-report";

fn old_report_warning() -> Diagnostic {
    let message = format!("the name `{OLD_REPORT}` is deprecated: use `--report=full`");
    Diagnostic::warning(Code::BadOption, message)
}

/// Name before release 0.1.0 of the target `intrinsics`, valid for one release.
const OLD_INTRINSICS: &str = "words";

/// Parses the target of lowering for parallel regions.
fn target(name: &str) -> Result<ParallelTarget, Diagnostic> {
    match name {
        "runtime" => Ok(ParallelTarget::Runtime),
        "openmp" => Ok(ParallelTarget::OpenMp),
        "intrinsics" | OLD_INTRINSICS => Ok(ParallelTarget::Intrinsics),
        _ => Err(bad_option(format!("unknown target `--par-target={name}`"))
            .help("use runtime, openmp or intrinsics")),
    }
}

fn old_target_warning(name: &str) -> Option<Diagnostic> {
    let message = "the name `--par-target=words` is deprecated: use `--par-target=intrinsics`";
    (name == OLD_INTRINSICS).then(|| Diagnostic::warning(Code::BadOption, message))
}

/// Returns the output of a compiler's command line, which names the file of a page.
fn output_of(words: &[String]) -> &Path {
    let last = words.iter().rposition(|word| word == "-o");
    let output = last.and_then(|at| words.get(at + 1));
    let joined = words.iter().rev().find_map(|word| word.strip_prefix("-o"));
    let output = output
        .map(String::as_str)
        .or(joined.filter(|name| !name.is_empty()));
    // A device or `-` has no folder of its own.
    let is_file = |name: &&str| *name != "-" && !is_special_file(Path::new(name));
    Path::new(output.filter(is_file).unwrap_or("gradus-report"))
}

/// Shows a driver's messages and reports. Returns the exit status.
fn show_outcome(session: &Session, asked: &Asked, driven: &DriverOutcome) -> u8 {
    for remark in &driven.remarks {
        crate::said::err(format_args!("{remark}"));
    }
    session.show(&[asked.warnings.as_slice(), &driven.diagnostics].concat());
    crate::said::out(format_args!("{}", driven.printed));
    let status = u8::try_from(driven.status).unwrap_or(crate::FAILED);
    let document = Document::new(driven.report.clone());
    if status == 0 {
        let output = output_of(&asked.rest);
        match report::deliver(&session.settings, &asked.reports, &document, output) {
            Ok((printed, _)) => crate::said::out(format_args!("{printed}")),
            Err(finding) => return session.fail(finding),
        }
    }
    if asked.regions {
        crate::said::out(format_args!("{}", report::regions(&driven.report)));
    }
    if asked.kernels {
        crate::said::out(format_args!("{}", report::kernels(&driven.report)));
    }
    status
}
