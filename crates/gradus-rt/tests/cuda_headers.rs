//! The CUDA headers in `include/cuda`: stock clang compiles sources that use the headers, for device and
//! host, without a toolkit; and C and C++ sources that only call the runtime.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Common options for both halves of a CUDA source.
const BOTH: &[&str] = &[
    "-x",
    "cuda",
    "-std=gnu++17",
    "-nocudainc",
    "-nocudalib",
    "--offload-arch=sm_70",
    "-Xclang",
    "-target-sdk-version=12.0",
    "-include",
    "cuda_runtime.h",
    "-O1",
    "-Xclang",
    "-disable-llvm-passes",
];

/// The IR that clang emits for a file of `tests/cuda_headers`.
fn compile_to_ir(file: &str, options: &[&str]) -> String {
    let clang = std::env::var_os("GRADUS_CLANG").unwrap_or("clang-22".into());
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new(clang)
        .args(options)
        .args(["-Wall", "-Werror", "-Wno-unused-command-line-argument"])
        .arg("-isystem")
        .arg(here.join("../../include/cuda"))
        .args(["-S", "-emit-llvm", "-o", "-"])
        .arg(here.join("tests/cuda_headers").join(file))
        .output()
        .expect("clang runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{file}\n{errors}");
    String::from_utf8(output.stdout).expect("IR is text")
}

fn device(file: &str) -> String {
    let half = ["--cuda-device-only", "--cuda-feature=+ptx80"];
    compile_to_ir(file, &[BOTH, &half].concat())
}

fn host(file: &str) -> String {
    let half = [
        "--cuda-host-only",
        "-Xclang",
        "-fcuda-include-gpubinary",
        "-Xclang",
        "/dev/null",
    ];
    compile_to_ir(file, &[BOTH, &half].concat())
}

/// Compiles both halves of `file`: the device half defines the kernels, the host half launches and registers
/// the kernels, and no GPU assembly is left.
fn both_halves(file: &str, kernels: &[&str]) {
    let (device, host) = (device(file), host(file));
    for kernel in kernels {
        let defined = |line: &str| line.contains("ptx_kernel") && line.contains(kernel);
        assert!(device.lines().any(defined), "{file}: no kernel {kernel}");
        assert!(host.contains(&format!("__device_stub__{kernel}")), "{file}");
    }
    assert!(!device.contains(" asm "), "{file}: inline assembly");
    assert!(host.contains("@__cudaRegisterFunction("), "{file}");
}

#[test]
fn warps_and_atomics() {
    both_halves("warps_and_atomics.cu", &["warps", "atomics"]);
}

/// A fetch by reference takes the address of the reference, which host and device share.
#[test]
fn textures() {
    both_halves("textures.cu", &["by_reference", "by_object"]);
    let ir = device("textures.cu");
    assert!(
        !ir.contains("texsurf.handle"),
        "a handle instead of an address"
    );
}

#[test]
fn groups_and_halves() {
    both_halves("groups_and_halves.cu", &["groups", "halves"]);
}

#[test]
fn random_numbers() {
    both_halves("random_numbers.cu", &["numbers"]);
}

#[test]
fn plain_c_and_cplusplus() {
    for language in ["c", "c++"] {
        assert!(compile_to_ir("host.c", &["-x", language]).contains("@cudaMalloc("));
    }
}

/// Headers that report why a source cannot be compiled (included by gradus-cli's tests).
const REFUSALS: [&str; 1] = ["mma.h"];

/// Every header can be included alone and twice, in either half.
#[test]
fn each_header_stands_alone() {
    let headers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include/cuda");
    let names = |folder: PathBuf| -> Vec<String> {
        let entries = std::fs::read_dir(folder).expect("a folder of headers");
        let files = entries.map(|e| {
            e.expect("an entry")
                .file_name()
                .into_string()
                .expect("a name")
        });
        files.filter(|name| name.ends_with(".h")).collect()
    };
    let mut all = names(headers.clone());
    for folder in ["cooperative_groups", "crt"] {
        all.extend(
            names(headers.join(folder))
                .iter()
                .map(|name| format!("{folder}/{name}")),
        );
    }
    all.retain(|name| !REFUSALS.contains(&name.as_str()));
    assert!(all.len() > 60, "{}", all.len());
    let lines = all.iter().map(|name| format!("#include <{name}>\n"));
    let text = lines.collect::<String>().repeat(2);
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("all_cuda_headers.cu");
    std::fs::write(&file, text).expect("written");
    let file = file.to_str().expect("a path of text");
    device(file);
    host(file);
}
