//! `cargo xtask setup`: installs missing dependencies of the toolkit and its tests: clang, flang, LLVM, lld,
//! OpenMP, sanitizers, valgrind, zlib, a C++ library, build systems.
//!
//! The check looks for files rather than packages, hence tools from any source count. If nothing is missing,
//! the command is quick and prints nothing.

use crate::docs::browser;
use crate::process::{self, Failure, Outcome};
use std::path::Path;
use std::process::Command;

/// Required file or program.
pub struct Need {
    /// Debian package.
    pub package: &'static str,
    /// Purpose, for messages.
    pub purpose: &'static str,
    /// Returns whether the dependency is present.
    pub present: fn() -> bool,
}

const NEEDS: &[Need] = &[
    Need {
        package: "clang-22",
        purpose: "the C and C++ front end",
        present: || process::on_path("clang-22") || std::env::var_os("GRADUS_CLANG").is_some(),
    },
    Need {
        package: "llvm-22-dev",
        purpose: "LLVM's library and headers",
        present: || {
            std::env::var_os("LLVM_SYS_221_PREFIX")
                .is_some_and(|prefix| Path::new(&prefix).join("bin/llvm-config").is_file())
                || Path::new("/usr/lib/llvm-22/bin/llvm-config").is_file()
        },
    },
    Need {
        package: "lld-22",
        purpose: "the linker",
        present: || process::on_path("ld.lld-22") || std::env::var_os("GRADUS_LLD").is_some(),
    },
    Need {
        package: "libomp-22-dev",
        purpose: "OpenMP's header and library",
        present: || {
            Path::new("/usr/lib/llvm-22/lib/libomp.so").exists()
                || Path::new("/usr/lib/llvm-22/lib/libomp.a").exists()
        },
    },
    Need {
        package: "libclang-rt-22-dev",
        purpose: "sanitizers for tests of derivatives",
        present: || {
            Path::new("/usr/lib/llvm-22/lib/clang/22/lib/linux/libclang_rt.asan-x86_64.a").exists()
                || Path::new("/usr/lib/llvm-22/lib/clang/22/lib/linux/libclang_rt.asan-aarch64.a")
                    .exists()
        },
    },
    Need {
        package: "valgrind",
        purpose: "memcheck for tests of derivatives",
        present: || process::on_path("valgrind"),
    },
    Need {
        package: "flang-22",
        purpose: "the Fortran front end; tests differentiate Fortran bitcode",
        present: || process::on_path("flang-22"),
    },
    Need {
        package: "libeigen3-dev",
        purpose: "Eigen, a C++ library; a test differentiates Eigen code",
        present: || Path::new("/usr/include/eigen3/Eigen/Dense").is_file(),
    },
    Need {
        package: "libopenblas-dev",
        purpose: "OpenBLAS; tests differentiate programs that call BLAS",
        present: || {
            let folders = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"];
            let present = |folder: &&str| Path::new(folder).join("libopenblas.so").exists();
            folders.iter().any(|folder| present(&folder))
        },
    },
    Need {
        package: "python3-venv",
        purpose: "virtual environments; the tests of the Python package run in one",
        present: || {
            let mut python = Command::new(crate::python::interpreter());
            process::capture(python.args(["-c", "import venv, ensurepip"])).is_ok()
        },
    },
    Need {
        package: "zlib1g-dev",
        purpose: "zlib, a dependency of LLVM's library",
        present: || Path::new("/usr/include/zlib.h").is_file(),
    },
    Need {
        package: "chromium",
        purpose: "a browser; a test opens the report's page",
        present: || browser::find().is_some(),
    },
    Need {
        package: "cmake",
        purpose: "CMake; tests build projects with Gradus",
        present: || process::on_path("cmake"),
    },
    Need {
        package: "ninja-build",
        purpose: "a back end of CMake and Meson",
        present: || process::on_path("ninja"),
    },
    Need {
        package: "meson",
        purpose: "Meson; a test builds a project with Gradus",
        present: || process::on_path("meson"),
    },
    Need {
        package: "pkg-config",
        purpose: "pkg-config; a test asks for Gradus's flags",
        present: || process::on_path("pkg-config"),
    },
    Need {
        package: "make",
        purpose: "Make; tests build projects with Gradus",
        present: || process::on_path("make"),
    },
    Need {
        package: "g++",
        purpose: "the C++ standard library",
        present: || process::on_path("c++") && Path::new("/usr/include/c++").is_dir(),
    },
];

/// Installs missing dependencies.
///
/// # Errors
/// Fails if a missing dependency cannot be installed; the failure lists all missing packages.
pub fn run(_: &[String]) -> Outcome<()> {
    install(NEEDS)
}

/// Installs the missing ones of these dependencies.
///
/// # Errors
/// Fails if a missing dependency cannot be installed; the failure lists all missing packages.
pub fn install(needs: &[Need]) -> Outcome<()> {
    let missing: Vec<&Need> = needs.iter().filter(|need| !(need.present)()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    for need in &missing {
        println!("setup: {} is missing ({})", need.package, need.purpose);
    }
    let packages: Vec<&str> = missing.iter().map(|need| need.package).collect();
    if !process::on_path("apt-get") {
        return Err(Failure::new(format!(
            "this machine has no apt-get; install the equivalents of these Debian packages, then try again: {}",
            packages.join(" ")
        )));
    }
    // The package lists may be old or absent. An unreachable mirror is not fatal.
    if let Err(failure) = process::show(apt("update").arg("-qq")) {
        println!("setup: {failure}");
    }
    let mut install = apt("install");
    install
        .args(["-y", "-qq", "--no-install-recommends"])
        .args(&packages);
    process::show(&mut install).map_err(|failure| {
        Failure::new(format!(
            "{failure}; if Debian's package lists lack LLVM 22, add LLVM's Debian repository, then try again"
        ))
    })?;
    match needs.iter().find(|need| !(need.present)()) {
        None => Ok(()),
        Some(need) => Err(Failure::new(format!(
            "{} is installed, but {} is missing",
            need.package, need.purpose
        ))),
    }
}

/// Returns `apt-get`, run through sudo if the user is not root.
fn apt(verb: &str) -> Command {
    let root = process::capture(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0");
    let mut command = if root || !process::on_path("sudo") {
        Command::new("apt-get")
    } else {
        // sudo does not pass the environment on.
        let mut command = Command::new("sudo");
        command.args(["DEBIAN_FRONTEND=noninteractive", "apt-get"]);
        command
    };
    command.env("DEBIAN_FRONTEND", "noninteractive").arg(verb);
    command
}
