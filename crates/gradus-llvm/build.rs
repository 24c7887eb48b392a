//! Builds the C++ shim for LLVM functionality that the C API lacks.
use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=src/shim.cpp");
    println!("cargo::rerun-if-changed=src/originals.cpp");
    println!("cargo::rerun-if-changed=src/local_loops.cpp");
    println!("cargo::rerun-if-changed=src/chosen_loads.cpp");
    println!("cargo::rerun-if-changed=src/internal_procedures.cpp");
    println!("cargo::rerun-if-changed=src/plain_addresses.cpp");
    println!("cargo::rerun-if-changed=src/shared_addresses.cpp");
    println!("cargo::rerun-if-env-changed=LLVM_SYS_221_PREFIX");
    let prefix =
        std::env::var_os("LLVM_SYS_221_PREFIX").unwrap_or_else(|| "/usr/lib/llvm-22".into());
    cc::Build::new()
        .cpp(true)
        .file("src/shim.cpp")
        .file("src/originals.cpp")
        .file("src/local_loops.cpp")
        .file("src/chosen_loads.cpp")
        .file("src/internal_procedures.cpp")
        .file("src/plain_addresses.cpp")
        .file("src/shared_addresses.cpp")
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
