//! `gradus cc`, `gradus c++`, `gradus fc` and `gradus nvcc`: the command line of a compiler, with some
//! options of Gradus.

use crate::options::{bad_option, words};
use crate::session::Session;
use gradus::driver::{DriveOptions, DriverOutcome, drive};
use gradus::nvcc::nvcc as drive_nvcc;
use gradus::pipeline::ParallelTarget;
use gradus::response_files;
use gradus::{Code, Diagnostic, Language};
use std::ffi::OsString;
use std::io::IsTerminal;

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
        Ok(mut asked) => {
            asked.report |= asked
                .rest
                .iter()
                .any(|word| word == "--version" || word == "-V");
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
    report: bool,
    regions: bool,
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
            "--gradus-report" => asked.report = true,
            "--par-report" => asked.regions = true,
            "--gpu-report" => asked.how.kernel_report = true,
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

/// Shows a driver's messages and reports. Returns the exit status.
fn show_outcome(session: &Session, asked: &Asked, driven: &DriverOutcome) -> u8 {
    for remark in &driven.remarks {
        crate::said::err(format_args!("{remark}"));
    }
    session.show(&[asked.warnings.as_slice(), &driven.diagnostics].concat());
    if asked.report {
        driven
            .reports
            .iter()
            .for_each(|text| crate::said::out(format_args!("{text}")));
    }
    if asked.regions {
        driven
            .regions
            .iter()
            .for_each(|text| crate::said::out(format_args!("{text}")));
    }
    driven
        .kernels
        .iter()
        .for_each(|text| crate::said::out(format_args!("{text}")));
    u8::try_from(driven.status).unwrap_or(crate::FAILED)
}
