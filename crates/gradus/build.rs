//! Builds the runtime library for parallel programs, embedded by [`runtime`].
//!
//! The library is a single relocatable object, in two versions: with and without the entries of CUDA programs. Its only global symbols are the `gr_*` entries, the CUDA
//! runtime's functions, and wrappers of OpenMP functions; with more symbols, a program with Rust code would
//! link the standard library twice. `__wrap_f` wraps `f`; a weak alias `f` serves shared libraries.
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
    let tools = variable("LLVM_SYS_221_PREFIX").join("bin");
    let entries = entries(&archive, &tools);
    keep_entries(&archive, &out.join("gradus_rt.o"), &entries, &tools);
    let (_, others): (Vec<String>, Vec<String>) = entries.into_iter().partition(|e| is_cuda(e));
    keep_entries(
        &archive,
        &out.join("gradus_rt_without_cuda.o"),
        &others,
        &tools,
    );
}

/// The prefixes of entries.
const ENTRIES: [&str; 5] = ["gr_", "__gr_", "cu", "__cuda", WRAPPER];
/// The prefix of wrappers.
const WRAPPER: &str = "__wrap_";

/// Returns true for an entry that only CUDA programs call.
fn is_cuda(entry: &str) -> bool {
    ["cu", "__cuda", "__gr_"]
        .iter()
        .any(|start| entry.starts_with(start))
}

/// Links `archive` into a single object that exports these entries only.
fn keep_entries(archive: &Path, object: &Path, entries: &[String], tools: &Path) {
    let whole = object.with_extension("whole.o");
    let mut link = Command::new("ld");
    link.args(["-r", "--gc-sections", "-o"]).arg(&whole);
    let mut hide = Command::new(tools.join("llvm-objcopy"));
    hide.args(["--strip-debug", "--discard-all"]);
    for entry in entries {
        link.args(["-u", entry]);
        hide.arg(format!("--keep-global-symbol={entry}"));
        if let Some(name) = entry.strip_prefix(WRAPPER) {
            link.arg(format!("--defsym={name}={entry}"));
            hide.arg(format!("--keep-global-symbol={name}"));
            hide.arg(format!("--weaken-symbol={name}"));
        }
    }
    run(link.arg(archive));
    run(hide.arg(&whole).arg(object));
}

/// Returns the entries defined by an archive.
fn entries(archive: &Path, tools: &Path) -> Vec<String> {
    let output = Command::new(tools.join("llvm-nm"))
        .args(["--defined-only", "--extern-only", "--format=just-symbols"])
        .arg(archive)
        .output()
        .expect("llvm-nm runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let is_entry = |line: &&str| ENTRIES.iter().any(|start| line.starts_with(start));
    text.lines().filter(is_entry).map(String::from).collect()
}

fn run(command: &mut Command) {
    let status = command.status().expect("the build tools run");
    assert!(status.success(), "{command:?} failed");
}
