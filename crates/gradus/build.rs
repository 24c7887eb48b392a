//! Builds the run-time library that parallel programs are linked with, for [`runtime`] to hold.
//!
//! It becomes one relocatable object whose only global symbols are the `gr_*` entries: a program that
//! has Rust code of its own would otherwise find the standard library in it twice.
//!
//! [`runtime`]: src/runtime.rs

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let variable = |name| env::var_os(name).map(PathBuf::from).unwrap_or_default();
    let (out, here) = (variable("OUT_DIR"), variable("CARGO_MANIFEST_DIR"));
    let library = here.join("../gradus-rt");
    for part in ["src", "Cargo.toml"] {
        println!("cargo:rerun-if-changed={}", library.join(part).display());
    }
    println!(
        "cargo:rerun-if-changed={}",
        here.join("../../Cargo.toml").display()
    );
    println!("cargo:rerun-if-env-changed=LLVM_SYS_221_PREFIX");

    let target = out.join("runtime-target");
    run(Command::new(variable("CARGO"))
        .args(["rustc", "--quiet", "--profile", "runtime", "--lib"])
        .args(["--crate-type", "staticlib", "--manifest-path"])
        .arg(library.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&target)
        .env_remove("CARGO_ENCODED_RUSTFLAGS"));
    let archive = target.join("runtime/libgradus_rt.a");
    let object = out.join("gradus_rt.o");
    keep_entries(
        &archive,
        &object,
        &variable("LLVM_SYS_221_PREFIX").join("bin"),
    );
}

/// Links `archive` into one object that shows its `gr_*` symbols only.
fn keep_entries(archive: &Path, object: &Path, tools: &Path) {
    let whole = object.with_extension("whole.o");
    let mut link = Command::new("ld");
    link.args(["-r", "--gc-sections", "-o"]).arg(&whole);
    for entry in entries(archive, tools) {
        link.args(["-u", &entry]);
    }
    run(link.arg(archive));
    run(Command::new(tools.join("llvm-objcopy"))
        .args(["--strip-debug", "--discard-all", "--wildcard"])
        .arg("--keep-global-symbol=gr_*")
        .arg(&whole)
        .arg(object));
}

/// The `gr_*` functions that an archive defines.
fn entries(archive: &Path, tools: &Path) -> Vec<String> {
    let output = Command::new(tools.join("llvm-nm"))
        .args(["--defined-only", "--extern-only", "--format=just-symbols"])
        .arg(archive)
        .output()
        .expect("llvm-nm runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let entries = text.lines().filter(|line| line.starts_with("gr_"));
    entries.map(String::from).collect()
}

fn run(command: &mut Command) {
    let status = command.status().expect("the build tools run");
    assert!(status.success(), "{command:?} failed");
}
