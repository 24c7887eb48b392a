//! Builds the C++ shim for LLVM functionality that the C API lacks.
use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=src/host/shim.cpp");
    println!("cargo::rerun-if-changed=src/host/pristine_bodies.cpp");
    println!("cargo::rerun-if-changed=src/prepare/unroll_local_arrays.cpp");
    println!("cargo::rerun-if-changed=src/prepare/internal_procedures.cpp");
    println!("cargo::rerun-if-changed=src/prepare/plain_addresses.cpp");
    println!("cargo::rerun-if-changed=src/prepare/shared_addresses.cpp");
    println!("cargo::rerun-if-changed=src/prepare/variadic_functions.cpp");
    println!("cargo::rerun-if-env-changed=LLVM_SYS_221_PREFIX");
    let prefix =
        std::env::var_os("LLVM_SYS_221_PREFIX").unwrap_or_else(|| "/usr/lib/llvm-22".into());
    cc::Build::new()
        .cpp(true)
        .file("src/host/shim.cpp")
        .file("src/host/pristine_bodies.cpp")
        .file("src/prepare/unroll_local_arrays.cpp")
        .file("src/prepare/internal_procedures.cpp")
        .file("src/prepare/plain_addresses.cpp")
        .file("src/prepare/shared_addresses.cpp")
        .file("src/prepare/variadic_functions.cpp")
        .include(PathBuf::from(prefix).join("include"))
        .flag("-std=c++17")
        .flag("-fno-rtti")
        .define("__STDC_CONSTANT_MACROS", None)
        .define("__STDC_LIMIT_MACROS", None)
        .warnings(false)
        .opt_level(1)
        .debug(false)
        .compile("gradus_llvm_shim");
}
