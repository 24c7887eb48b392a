//! Test support for the command: a folder per test, processes that must succeed, and their output.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Returns an empty folder for a test.
pub fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// Converts a process's output to text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a command that must succeed.
pub fn succeeds(command: &mut Command) -> Output {
    let output = command.output().expect("it starts");
    assert!(
        output.status.success(),
        "{command:?}\n{}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    output
}

/// Runs a command, with words separated by spaces, in a folder; the command must succeed. `gradus` is the
/// tested binary.
pub fn shell(folder: &Path, command: &str) -> Output {
    let mut words = command.split_whitespace().map(|word| match word {
        "gradus" => env!("CARGO_BIN_EXE_gradus"),
        _ => word,
    });
    let mut command = Command::new(words.next().expect("a program"));
    succeeds(command.args(words).current_dir(folder))
}

/// Runs `gradus` in a folder with arguments separated by spaces, with any outcome.
pub fn gradus(folder: &Path, line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gradus"));
    command.args(line.split_whitespace()).current_dir(folder);
    command.output().expect("gradus runs")
}

/// Writes a file into a test's folder.
pub fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).expect("written");
}

/// Runs `gradus` in a folder, which must succeed. Returns the standard output.
pub fn accepts(folder: &Path, line: &str) -> String {
    let output = gradus(folder, line);
    assert!(
        output.status.success(),
        "gradus {line}\n{}",
        text(&output.stderr)
    );
    text(&output.stdout)
}

/// Runs `gradus` in a folder, which must refuse with `code`. Returns the standard error.
pub fn refuses(folder: &Path, line: &str, code: &str) -> String {
    let output = gradus(folder, line);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "gradus {line}\n{said}");
    assert!(
        said.contains(&format!("error[{code}]")),
        "gradus {line}\n{said}"
    );
    said
}

/// Returns the output of a program for a count, on this number of workers, with every loop forked or
/// profitable loops only. Fails if ThreadSanitizer is enabled and finds a race.
pub fn run(at: &Path, program: &str, count: &str, workers: u32, force: bool) -> String {
    let mut command = Command::new(at.join(program));
    command.arg(count);
    command.env("GRADUS_NUM_THREADS", workers.to_string());
    command.env("TSAN_OPTIONS", "exitcode=66 halt_on_error=1");
    if force {
        command.env("GRADUS_FORCE_FORK", "1");
    }
    text(&succeeds(&mut command).stdout)
}
