//! Builds the C++ shim for LLVM functionality that the C API lacks, and the bitcode of library functions
//! (`semantics/`), embedded by `src/prepare/fortran/specialise.rs`.
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=src/host/shim.cpp");
    println!("cargo::rerun-if-changed=src/host/pristine_bodies.cpp");
    println!("cargo::rerun-if-changed=src/prepare/unroll_local_arrays.cpp");
    println!("cargo::rerun-if-changed=src/prepare/computed_gotos.cpp");
    println!("cargo::rerun-if-changed=src/prepare/internal_procedures.cpp");
    println!("cargo::rerun-if-changed=src/prepare/plain_addresses.cpp");
    println!("cargo::rerun-if-changed=src/prepare/shared_addresses.cpp");
    println!("cargo::rerun-if-changed=src/prepare/variadic_functions.cpp");
    println!("cargo::rerun-if-env-changed=LLVM_SYS_221_PREFIX");
    let prefix = std::env::var_os("LLVM_SYS_221_PREFIX")
        .map_or_else(|| PathBuf::from("/usr/lib/llvm-22"), PathBuf::from);
    compile_semantics(&prefix.join("bin/clang"));
    cc::Build::new()
        .cpp(true)
        .file("src/host/shim.cpp")
        .file("src/host/pristine_bodies.cpp")
        .file("src/prepare/unroll_local_arrays.cpp")
        .file("src/prepare/computed_gotos.cpp")
        .file("src/prepare/internal_procedures.cpp")
        .file("src/prepare/plain_addresses.cpp")
        .file("src/prepare/shared_addresses.cpp")
        .file("src/prepare/variadic_functions.cpp")
        .include(prefix.join("include"))
        .flag("-std=c++17")
        .flag("-fno-rtti")
        .define("__STDC_CONSTANT_MACROS", None)
        .define("__STDC_LIMIT_MACROS", None)
        .warnings(false)
        .opt_level(1)
        .debug(false)
        .compile("gradus_llvm_shim");
}

/// Compiles the bodies of library functions to bitcode. The bodies of flang's functions are not optimised: the
/// compiler specialises them first. Floating-point code has no contraction and no `errno`; addresses and
/// accesses carry no assumptions about objects and types.
fn compile_semantics(clang: &Path) {
    println!("cargo::rerun-if-changed=semantics");
    let unoptimised = [
        "-O2",
        "-Xclang",
        "-disable-llvm-passes",
        "-Xclang",
        "-disable-lifetime-markers",
    ];
    let plain = [
        "-O1",
        "-fno-vectorize",
        "-fno-slp-vectorize",
        "-fno-unroll-loops",
        // Copies stay loops over numbers, whose types are known.
        "-fno-builtin",
    ];
    compile_bodies(clang, "flang_rt", &unoptimised);
    compile_bodies(clang, "blas", &plain);
    compile_bodies(clang, "blas_library", &plain);
}

/// Compiles `semantics/NAME.c` to `NAME.bc`.
fn compile_bodies(clang: &Path, name: &str, options: &[&str]) {
    let out = std::env::var_os("OUT_DIR")
        .map(PathBuf::from)
        .unwrap_or_default();
    let source = format!("semantics/{name}.c");
    let status = Command::new(clang)
        .args(["-std=c23", "-Wall", "-Werror", "-Wno-unused-function"])
        .args(["-c", "-emit-llvm"])
        .args(options)
        .args(["-fno-strict-aliasing", "-fwrapv-pointer"])
        .args(["-ffp-contract=off", "-fno-math-errno"])
        .args([&source, "-o"])
        .arg(out.join(format!("{name}.bc")))
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(_) => panic!("{} cannot compile {source}", clang.display()),
        Err(why) => panic!(
            "Gradus needs clang 22 to compile {source}, but {} does not start: {why}",
            clang.display()
        ),
    }
}
