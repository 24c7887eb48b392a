//! Lists Gradus's headers, for embedding in the command, and determines the versions that `--version` prints.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    state_versions();
    let variable = |name| env::var_os(name).map(PathBuf::from).unwrap_or_default();
    let include = variable("CARGO_MANIFEST_DIR").join("../../include");
    println!("cargo:rerun-if-changed={}", include.display());
    let mut files = Vec::new();
    let mut open = vec![include.clone()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).expect("our headers are there") {
            let path = entry.expect("a readable folder").path();
            match path.is_dir() {
                true => open.push(path),
                false => files.push(path),
            }
        }
    }
    files.sort();
    let mut list = String::from("&[\n");
    for file in &files {
        let name = file.strip_prefix(&include).unwrap_or(Path::new(""));
        // Writing to a string does not fail.
        let _ = writeln!(list, "({name:?}, include_str!({file:?})),");
    }
    list.push(']');
    fs::write(variable("OUT_DIR").join("headers.rs"), list).expect("written");
}

/// Passes LLVM's version, the host and the commit to the command.
fn state_versions() {
    for name in ["GRADUS_COMMIT", "LLVM_SYS_221_PREFIX"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    let prefix = env::var_os("LLVM_SYS_221_PREFIX").map(PathBuf::from);
    let tool = prefix.unwrap_or_default().join("bin/llvm-config");
    let llvm = output(Command::new(tool).arg("--version")).expect("llvm-config runs");
    println!("cargo:rustc-env=GRADUS_LLVM_VERSION={llvm}");
    let host = env::var("TARGET").unwrap_or_default();
    println!("cargo:rustc-env=GRADUS_HOST={host}");
    println!("cargo:rustc-env=GRADUS_COMMIT={}", commit());
}

/// Returns the commit of a release: the variable `GRADUS_COMMIT` if set, else git's answer. A development build has
/// no commit, since each commit would build the command and its tests again.
fn commit() -> String {
    if let Ok(given) = env::var("GRADUS_COMMIT") {
        return given;
    }
    if env::var("PROFILE").is_ok_and(|profile| profile != "release") {
        return "development build".into();
    }
    if let Some(log) = output(Command::new("git").args(["rev-parse", "--git-path", "logs/HEAD"])) {
        println!("cargo:rerun-if-changed={log}");
    }
    let commit = output(Command::new("git").args(["rev-parse", "--short=12", "HEAD"]));
    commit.map_or("unknown commit".into(), |commit| format!("commit {commit}"))
}

/// Returns the trimmed output of a command that succeeds.
fn output(command: &mut Command) -> Option<String> {
    let output = command
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_string())
}
