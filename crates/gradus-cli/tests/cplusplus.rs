//! C++ as programs write it: each file under `cplusplus/` is differentiated both ways at every level
//! and judges itself by differences.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/cplusplus")
        .join(name)
}

fn compile(name: &str, level: &str) -> (PathBuf, Output) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cplusplus-{name}{level}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    let program = folder.join("program");
    let output = Command::new(env!("CARGO_BIN_EXE_gradus"))
        .args(["c++", level])
        .arg(source(name))
        .arg("-o")
        .arg(&program)
        .arg("-lm")
        .output()
        .expect("gradus runs");
    (program, output)
}

fn is_right(name: &str) {
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        let (program, output) = compile(name, level);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name} {level}\n{said}");
        let run = Command::new(&program).output().expect("it runs");
        let said = String::from_utf8_lossy(&run.stdout);
        assert!(
            run.status.success(),
            "{name} {level}: {}\n{said}",
            run.status
        );
    }
}

fn is_refused(name: &str, code: &str, line: u32) {
    let (_, output) = compile(name, "-O1");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{name}");
    assert!(said.contains(&format!("error[{code}]")), "{said}");
    assert!(said.contains(&format!("{name}:{line}:")), "{said}");
}

#[test]
fn vectors_grow_and_are_sorted() {
    is_right("vectors.cpp");
}

#[test]
fn exceptions_are_caught_inside() {
    is_right("caught.cpp");
}

#[test]
fn exceptions_leave_the_derivative() {
    is_right("leaving.cpp");
}

#[test]
fn exceptions_after_active_writes_are_refused() {
    is_refused("torn.cpp", "GRD0020", 18);
}
