//! Build systems and the drivers: commands of one word, response files, probes of the compiler, CMake's detection of
//! CUDA.

use crate::support::{accepts, folder, gradus, succeeds, text, write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Makes a link to the command under a name.
fn link(folder: &Path, name: &str) -> PathBuf {
    let link = folder.join(name);
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_gradus"), &link).expect("a link");
    link
}

fn run(folder: &Path, program: &Path, line: &str) -> Output {
    succeeds(
        Command::new(program)
            .args(line.split_whitespace())
            .current_dir(folder),
    )
}

#[test]
fn links_are_compilers_of_one_word() {
    let at = folder("driver-names");
    write(&at, "a.c", "int a(void) { return 1; }\n");
    write(&at, "b.cpp", "extern \"C\" int b() { return int(2); }\n");
    write(&at, "c.f90", "integer function c()\nc = 3\nend function\n");
    write(&at, "k.cu", "__global__ void k(int *p) { *p = 4; }\n");
    for (name, source) in [
        ("gradus-cc", "a.c"),
        ("gradus-c++", "b.cpp"),
        ("gradus-fc", "c.f90"),
        ("gradus-nvcc", "k.cu"),
        ("nvcc", "k.cu"),
    ] {
        let driver = link(&at, name);
        let object = format!("{name}.o");
        run(&at, &driver, &format!("-c {source} -o {object}"));
        assert!(at.join(object).is_file(), "{name}");
    }
    let version = run(&at, &at.join("nvcc"), "--version");
    assert!(text(&version.stdout).contains("Cuda compilation tools, release"));
}

#[test]
fn response_files_hold_options_of_both_compilers() {
    let at = folder("response-files");
    write(&at, "a b.c", "int value(void) { return VALUE; }\n");
    write(&at, "inner", "-DVALUE='(1 + 2)'\n\"a b.c\"\n");
    write(&at, "outer", "-c --deterministic\n@inner -o out.o");
    accepts(&at, "cc @outer");
    assert!(at.join("out.o").is_file());
    write(&at, "circle", "@circle");
    let circle = gradus(&at, "cc @circle");
    assert!(text(&circle.stderr).contains("in a circle"));
    let missing = gradus(&at, "cc @missing");
    assert!(text(&missing.stderr).contains("@missing"));
    assert_eq!(missing.status.code(), Some(1));
    write(&at, "k.cu", "__global__ void k(int *p) { *p = 4; }\n");
    write(&at, "cuda", "-c k.cu --deterministic");
    accepts(&at, "nvcc @cuda");
    assert!(at.join("k.o").is_file());
}

#[test]
fn the_version_names_all_parts() {
    let at = folder("version");
    let lines = accepts(&at, "--version");
    for part in ["gradus 0.", "LLVM 22.", "clang: ", "flang: ", "host: "] {
        assert!(lines.lines().any(|line| line.starts_with(part)), "{lines}");
    }
    let driver = accepts(&at, "cc --version");
    assert!(
        driver
            .lines()
            .next()
            .is_some_and(|l| l.contains("clang version"))
    );
    assert!(
        driver
            .lines()
            .last()
            .is_some_and(|l| l.starts_with("gradus 0."))
    );
}

/// CMake, autoconf and Meson recognise a compiler by these calls.
#[test]
fn probes_are_answered_like_clang() {
    let at = folder("probes");
    write(&at, "a.c", "int a(void) { return 1; }\n");
    for probe in [
        "-v",
        "-dumpmachine",
        "-dumpversion",
        "-print-search-dirs",
        "-print-prog-name=ld",
        "-print-file-name=libc.a",
        "-print-resource-dir",
        "-E a.c",
        "-qversion",
        "-V",
    ] {
        let ours = gradus(&at, &format!("cc {probe}"));
        let mut clang = Command::new("clang-22");
        let clang = clang.args(probe.split(' ')).current_dir(&at).output();
        let clang = clang.expect("clang runs");
        assert_eq!(ours.status.code(), clang.status.code(), "{probe}");
        assert_eq!(text(&ours.stdout), text(&clang.stdout), "{probe}");
        assert_eq!(text(&ours.stderr), text(&clang.stderr), "{probe}");
    }
    let macros = accepts(&at, "cc -dM -E -x c /dev/null");
    assert!(macros.contains("#define __GRADUS__ 1") && macros.contains("__clang_major__ 22"));
}

#[test]
fn cmake_accepts_a_link_and_a_script_as_nvcc() {
    const KERNEL: &str = "#include <cstdio>\n\
        __global__ void add(int *p) { p[threadIdx.x] += 40; }\n\
        int main() { int *p, h[4] = {1, 2, 3, 4}; cudaMalloc(&p, sizeof h);\n\
        cudaMemcpy(p, h, sizeof h, cudaMemcpyHostToDevice); add<<<1, 4>>>(p);\n\
        cudaMemcpy(h, p, sizeof h, cudaMemcpyDeviceToHost); std::printf(\"%d\\n\", h[1]); }\n";
    let at = folder("cmake-cuda");
    write(&at, "k.cu", KERNEL);
    let project = "cmake_minimum_required(VERSION 3.18)\nproject(k LANGUAGES CXX CUDA)\nadd_executable(k k.cu)\n";
    write(&at, "CMakeLists.txt", project);
    let script = format!(
        "#!/bin/sh\nexec {} nvcc \"$@\"\n",
        env!("CARGO_BIN_EXE_gradus")
    );
    write(&at, "wrapper", &script);
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(at.join("wrapper"), executable).expect("a mode");
    for driver in [
        link(&at, "gradus-nvcc"),
        link(&at, "nvcc"),
        at.join("wrapper"),
    ] {
        let build = format!("build-{}", driver.file_name().unwrap_or_default().display());
        let mut configure = Command::new("cmake");
        configure.args(["-S", ".", "-B", &build]).current_dir(&at);
        succeeds(configure.env("CUDACXX", &driver));
        succeeds(
            Command::new("cmake")
                .args(["--build", &build])
                .current_dir(&at),
        );
        let program = at.join(&build).join("k");
        assert_eq!(text(&succeeds(&mut Command::new(program)).stdout), "42\n");
    }
}
