//! Compiles small C programs with LLVM's clang, for the crate's tests.
use std::io::Write;
use std::process::{Command, Stdio};

/// Returns the output of clang on C source `text`: an object unless `flags` select another output.
pub fn compile(text: &str, flags: &[&str]) -> Vec<u8> {
    run(text, "c", flags)
}

/// Returns the output of clang on C++ source `text`.
#[allow(dead_code)] // not every test has C++
pub fn cpp(text: &str, flags: &[&str]) -> Vec<u8> {
    run(text, "c++", flags)
}

fn run(text: &str, language: &str, flags: &[&str]) -> Vec<u8> {
    let program = std::env::var("GRADUS_CLANG").unwrap_or_else(|_| "clang-22".into());
    let mut child = Command::new(program)
        .args(["-x", language, "-", "-o", "-", "-c", "-fPIE"])
        .args(flags)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("clang starts");
    child
        .stdin
        .take()
        .expect("a pipe")
        .write_all(text.as_bytes())
        .expect("clang reads");
    let out = child.wait_with_output().expect("clang ends");
    assert!(out.status.success(), "clang refused the test's program");
    out.stdout
}

/// Returns the bitcode of C source `text`.
#[allow(dead_code)] // not every test has C
pub fn bitcode(text: &str, flags: &[&str]) -> Vec<u8> {
    let all: Vec<&str> = ["-emit-llvm"].iter().chain(flags).copied().collect();
    compile(text, &all)
}
