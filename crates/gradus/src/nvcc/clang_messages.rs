//! Translates clang's errors on unsupported CUDA features into helpful diagnostics.

use crate::nvcc::link_libraries;
use gradus_ir::{Code, Diagnostic, SourceSpan};

/// Returns the diagnostic for a clang error, if a better text is known.
pub(super) fn diagnostic_for_error(said: &str) -> Option<Diagnostic> {
    said.lines().find_map(|line| {
        let (place, error) = line
            .split_once(": error: ")
            .or_else(|| line.split_once(": fatal error: "))?;
        let finding = finding(error)?;
        Some(match span(place) {
            Some((span, label)) => finding.at(Some(span), label),
            None => finding,
        })
    })
}

fn finding(error: &str) -> Option<Diagnostic> {
    if error.contains("'long double' type support, but target") {
        let message = "device code uses `long double`, which GPUs do not support";
        let finding = Diagnostic::error(Code::KernelRefused, message);
        return Some(finding.help("use `double` in device code"));
    }
    if error.starts_with("kernel launch from __device__ or __global__ function") {
        let message =
            "a kernel launches a kernel, and dynamic parallelism is not supported on CPUs";
        let finding = Diagnostic::error(Code::KernelRefused, message);
        return Some(finding.help(
            "launch the kernel from the host, or move the code into a device function and call the function",
        ));
    }
    let header = error.strip_prefix('\'')?;
    let header = header.strip_suffix("' file not found")?;
    link_libraries::library_of_header(header).map(link_libraries::missing_library_error)
}

/// Parses the location of an error, and the label.
fn span(place: &str) -> Option<(SourceSpan, &'static str)> {
    let mut parts = place.rsplitn(3, ':');
    let column = parts.next()?.parse().ok()?;
    let span = SourceSpan {
        line: parts.next()?.parse().ok()?,
        file: parts.next()?.to_string(),
        column,
        called_at: None,
    };
    Some((span, "here"))
}
