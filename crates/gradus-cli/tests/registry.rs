//! Unmodified CUDA sources from a registry package: candle's kernels. Each file is compiled by `gradus
//! nvcc` with a small driver program, run with one and two workers, and compared with plain Rust.
//!
//! Only the package's sources are used: its build script requires a toolkit.

use crate::candle::{Expected, elementwise, places, quantized, rows};
use crate::support::{succeeds, text};
use std::path::{Path, PathBuf};
use std::process::Command;

const PACKAGE: &str = "candle-kernels";
const VERSION: &str = "0.11.1";

/// Returns the folder of the package's CUDA sources. Cargo downloads the package once: a manifest in the
/// build folder names the package as a dependence, and the package's Rust code is not built.
fn sources() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{PACKAGE}-{VERSION}"));
    std::fs::create_dir_all(&folder).expect("a folder");
    let manifest = format!(
        "[package]\nname = \"sources\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\n[lib]\npath = \"empty.rs\"\n\n\
         [workspace]\n\n[dependencies]\n{PACKAGE} = \"={VERSION}\"\n"
    );
    // Concurrent tests write equal files.
    std::fs::write(folder.join("empty.rs"), "").expect("written");
    let file = folder.join("Cargo.toml");
    if std::fs::read(&file).ok().as_deref() != Some(manifest.as_bytes()) {
        std::fs::write(&file, &manifest).expect("written");
    }
    let metadata = |words: &[&str]| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["metadata", "--format-version", "1"]);
        cargo.args(words).current_dir(&folder);
        cargo.output().expect("cargo runs")
    };
    let mut output = metadata(&["--offline"]);
    if !output.status.success() {
        output = metadata(&[]);
    }
    let said = text(&output.stderr);
    assert!(
        output.status.success(),
        "{PACKAGE} cannot be brought: {said}"
    );
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let mut packages = packages.filter(|package| package["name"] == PACKAGE);
    let package = packages.next().expect("cargo names the package");
    let manifest = package["manifest_path"].as_str().expect("a path");
    let folder = Path::new(manifest).parent().expect("a folder");
    folder.join("src")
}

/// Compiles a driver program around a source of the package, runs it, and compares its output.
fn agrees(program: &str, source: &str, expected: &[Expected]) {
    let name = source.replace('/', "_");
    let folder = crate::support::folder(&format!("registry-{name}"));
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cuda/candle");
    let mut nvcc = Command::new(env!("CARGO_BIN_EXE_gradus"));
    nvcc.args(["nvcc", "-O2", "-arch=sm_89", "-w", "-I"]);
    nvcc.arg(sources())
        .arg(format!("-DSOURCE=\"{source}.cu\""))
        .arg(format!("-DIS_{}", name.to_uppercase()))
        .arg(ours.join(program))
        .args(["-o", "program"])
        .current_dir(&folder);
    succeeds(&mut nvcc);
    for workers in ["1", "2"] {
        let mut run = Command::new(folder.join("program"));
        run.env("GRADUS_NUM_THREADS", workers);
        let output = succeeds(&mut run);
        crate::candle::compare(&text(&output.stdout), expected);
    }
}

#[test]
fn affine() {
    agrees("elementwise.cu", "affine", &elementwise::affine());
}

#[test]
fn unary() {
    agrees("elementwise.cu", "unary", &elementwise::unary());
}

#[test]
fn binary() {
    agrees("elementwise.cu", "binary", &elementwise::binary());
}

#[test]
fn casts() {
    agrees("elementwise.cu", "cast", &elementwise::cast());
}

#[test]
fn choices() {
    agrees("elementwise.cu", "ternary", &elementwise::ternary());
}

#[test]
fn fills() {
    agrees("elementwise.cu", "fill", &elementwise::fill());
}

#[test]
fn reductions() {
    agrees("rows.cu", "reduce", &rows::reduce());
}

#[test]
fn sorting() {
    agrees("rows.cu", "sort", &rows::sort());
}

#[test]
fn convolutions() {
    agrees("places.cu", "conv", &places::conv());
}

#[test]
fn indexing() {
    agrees("places.cu", "indexing", &places::indexing());
}

#[test]
fn quantising() {
    agrees(
        "quantized.cu",
        "mmq_gguf/mmq_quantize",
        &quantized::quantize(),
    );
}

#[test]
fn experts() {
    agrees("quantized.cu", "moe/moe_gguf", &quantized::experts());
}

/// Kernels that need tensor cores or a CUDA library are refused at the user's line, and nothing is written.
#[test]
fn what_needs_tensor_cores_is_refused() {
    for (source, told) in [
        ("mmq_gguf/mmq_instance_q4_0.cu", "mmq_mma.cuh:"),
        ("moe/moe_wmma.cu", "moe_utils.cuh:4"),
        ("moe/moe_wmma_gguf.cu", "moe_utils.cuh:4"),
        ("moe/moe_align.cu", "moe_align.cu:4"),
    ] {
        let object = crate::support::folder("registry-refused").join("refused.o");
        let mut nvcc = Command::new(env!("CARGO_BIN_EXE_gradus"));
        nvcc.args(["nvcc", "-c", "-O2", "-arch=sm_89", "-w", "-o"]);
        let output = nvcc.arg(&object).arg(sources().join(source)).output();
        let output = output.expect("gradus runs");
        let said = text(&output.stderr);
        assert!(!output.status.success() && said.contains(told), "{said}");
        assert!(!object.exists(), "{source}");
    }
}
