//! Locates a signal: maps the addresses reported by a dying check to a source line of the user.

use crate::{Language, Settings, files};
use gradus_ir::SourceSpan;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Returns the meaning of a signal number.
pub(super) fn signal_meaning(signal: i32) -> &'static str {
    match signal {
        4 => " (SIGILL, illegal instruction)",
        6 => " (SIGABRT, abort)",
        7 => " (SIGBUS, bus error)",
        8 => " (SIGFPE, arithmetic error)",
        11 => " (SIGSEGV, segmentation fault)",
        _ => "",
    }
}

/// Returns the line of the innermost frame in user code; `None` without a tool for the lookup.
pub(super) fn source_line(
    settings: &Settings,
    program: &Path,
    frames: &[&str],
) -> Option<SourceSpan> {
    let folder = program.parent()?;
    // Code without a line of its own has that of the function that it is inlined into.
    let text = look_up(settings, program, &["-i"], frames)?;
    let mut places = text.lines().filter_map(|line| parse_location(line, folder));
    let innermost = places.next()?;
    // The user's own line is preferred if the innermost frame is in code of a compiler's installation.
    match innermost.is_in_system_code() {
        true => places.find(|p| !p.is_in_system_code()).or(Some(innermost)),
        false => Some(innermost),
    }
}

/// The start of the symbols of derivatives that no user names.
const DERIVATIVE_PREFIX: &str = "__gradus1_";

/// Returns the source name of the function of the innermost frame in user code. Code inlined into a derivative keeps the
/// name of its function.
pub(super) fn function_name(
    settings: &Settings,
    program: &Path,
    frames: &[&str],
) -> Option<String> {
    let folder = program.parent()?;
    let text = look_up(settings, program, &["-f", "-i", "-C"], frames)?;
    // A line with the name of the function precedes the line with the place.
    let lines: Vec<&str> = text.lines().collect();
    let pairs = lines.chunks_exact(2);
    pairs
        .filter_map(|pair| Some((pair[0], parse_location(pair[1], folder)?)))
        .find(|(_, place)| !place.is_in_system_code())
        .map(|(name, _)| name.to_string())
        .filter(|name| !name.starts_with(DERIVATIVE_PREFIX))
}

/// Returns what the program for addresses prints on some frames.
fn look_up(
    settings: &Settings,
    program: &Path,
    options: &[&str],
    frames: &[&str],
) -> Option<String> {
    let mut command = Command::new(addr2line(settings)?);
    command.args(options).arg("-e").arg(program);
    command.args(frames.iter().map(|frame| format!("0x{frame}")));
    let quiet = command.stdin(Stdio::null()).stderr(Stdio::null());
    let output = quiet.output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Parses a line `file:line[:column]…` of the tool, if the file is outside `folder`.
fn parse_location(line: &str, folder: &Path) -> Option<SourceSpan> {
    let words = line.split_whitespace().next()?;
    let mut parts = words.rsplitn(2, ':');
    let (number, file) = (parts.next()?, parts.next()?);
    let line = number.parse().ok().filter(|line| *line > 0)?;
    let exists = Path::new(file).is_file() && !Path::new(file).starts_with(folder);
    exists.then(|| SourceSpan {
        file: files::shown_name(file),
        line,
        column: 0,
        called_at: None,
    })
}

/// Returns the program that maps addresses to lines.
fn addr2line(settings: &Settings) -> Option<PathBuf> {
    let clang = settings.compiler(Language::C).ok();
    let real = clang.and_then(|c| std::fs::canonicalize(c).ok());
    let beside = real.map(|c| c.with_file_name("llvm-addr2line"));
    let names = ["llvm-addr2line-22", "llvm-addr2line", "addr2line"];
    beside
        .filter(|tool| tool.is_file())
        .or_else(|| names.iter().find_map(|name| settings.find(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_other_files_are_found_and_ours_are_not() {
        let here = Path::new(file!()).file_name().map(PathBuf::from);
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/check/trace.rs");
        let text = format!("{}:7", own.display());
        let found = parse_location(&text, Path::new("/nowhere")).expect("a place");
        assert_eq!(
            (found.line, Path::new(&found.file)),
            (7, Path::new("src/check/trace.rs"))
        );
        assert_eq!(own.file_name().map(PathBuf::from), here);
        assert!(parse_location(&text, own.parent().expect("a folder")).is_none());
        for text in ["??:0", "??:?", "", "a.c", &format!("{}:0", own.display())] {
            assert!(
                parse_location(text, Path::new("/nowhere")).is_none(),
                "{text}"
            );
        }
    }
}
