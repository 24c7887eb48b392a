//! Several runs at once on one program, in one folder: temporary files of compilers do not collide.

use crate::support::{folder, text, write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

const SOURCE: &str = r#"
#[unsafe(no_mangle)]
pub extern "C" fn energy(x: f64, y: f64) -> f64 {
    (x + 1.0).sin() * y
}
"#;

fn start(at: &Path, line: &str) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gradus"));
    command.args(line.split_whitespace()).current_dir(at);
    let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    piped.spawn().expect("gradus starts")
}

/// Starts all commands, then waits for all of them.
fn all_succeed(at: &Path, lines: &[&str]) -> Vec<String> {
    let started: Vec<Child> = lines.iter().map(|line| start(at, line)).collect();
    let ends = started.into_iter().zip(lines).map(|(child, line)| {
        let output = child.wait_with_output().expect("it ends");
        let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "gradus {line}\n{said}");
        said
    });
    ends.collect()
}

#[test]
fn one_rust_file_is_checked_several_times_at_once() {
    let at = folder("simultaneous_rust");
    write(&at, "e.rs", SOURCE);
    let check = "check e.rs -f energy --arg x=0.3 --arg y=2";
    let grad = "grad e.rs -f energy --wrt x -o grad.o -- -O1";
    all_succeed(&at, &[check, check, check, grad]);
    let mut names: Vec<String> = std::fs::read_dir(&at)
        .expect("listed")
        .map(|file| {
            file.expect("a file")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    // No intermediate file of rustc is left in the user's folder; `libe.a` belongs to the object.
    assert_eq!(names, ["e.rs", "grad.h", "grad.o", "libe.a"]);
}

const MANIFEST: &str = r#"
[package]
name = "scaled"
version = "0.1.0"
edition = "2024"
[features]
tripled = []
[workspace]
"#;

const CRATE: &str = r#"
#[unsafe(no_mangle)]
pub extern "C" fn scaled(x: f64) -> f64 {
    if cfg!(feature = "tripled") { 3.0 * x } else { 2.0 * x }
}
"#;

#[test]
fn one_crate_is_differentiated_with_different_features_at_once() {
    let at = folder("simultaneous_crate");
    std::fs::create_dir_all(at.join("src")).expect("a folder");
    write(&at, "Cargo.toml", MANIFEST);
    write(&at, "src/lib.rs", CRATE);
    let grad = "grad Cargo.toml -f scaled --wrt x --emit llvm";
    for _ in 0..2 {
        all_succeed(
            &at,
            &[
                &format!("{grad} -o two.ll"),
                &format!("{grad} -o three.ll -- --features tripled"),
            ],
        );
        let triples = |name: &str| {
            let module = std::fs::read_to_string(at.join(name)).expect("a module");
            let (_, body) = module.split_once(" @scaled(").expect("the function");
            let (body, _) = body.split_once("\n}").expect("an end");
            body.contains("3.000000e+00")
        };
        assert_eq!((triples("two.ll"), triples("three.ll")), (false, true));
    }
}
