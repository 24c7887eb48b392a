//! `gradus install`: a moved installation works, and build systems use it. Every project of `examples/` for a build
//! system is built against the installation.

use crate::support::{folder, succeeds, text, write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Installs into a folder of its own, and moves the installation.
fn installed(test: &str) -> (PathBuf, PathBuf) {
    let at = folder(test);
    let first = at.join("first");
    let mut command = Command::new(env!("CARGO_BIN_EXE_gradus"));
    succeeds(command.arg("install").arg(&first));
    let prefix = at.join("moved prefix");
    std::fs::rename(&first, &prefix).expect("moved");
    (at, prefix)
}

/// Copies the sources of an example and the shared program. Returns the folder of the example.
fn example(at: &Path, name: &str) -> PathBuf {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    for folder in ["springs", name] {
        let to = at.join(folder);
        std::fs::create_dir_all(&to).expect("a folder");
        for entry in std::fs::read_dir(examples.join(folder)).expect("an example") {
            let entry = entry.expect("a file");
            std::fs::copy(entry.path(), to.join(entry.file_name())).expect("copied");
        }
    }
    at.join(name)
}

fn runs(program: &Path) {
    let output = succeeds(&mut Command::new(program));
    assert_eq!(text(&output.stdout), "largest difference: below 1e-7\n");
}

#[test]
fn a_moved_installation_compiles_a_gradient() {
    let (at, prefix) = installed("install-moved");
    write(
        &at,
        "f.c",
        "#include <gradus.h>\n#include <stdio.h>\n\
         double square(double x) { return x * x; }\n\
         int main(void) { printf(\"%g\\n\", gradus_vjp_double(square, gradus_out, 3.0)); }\n",
    );
    let home = at.join("home");
    let compile = |program: &str, words: &[&str]| {
        let mut command = Command::new(prefix.join("bin").join(program));
        command.args(words).current_dir(&at).env("HOME", &home);
        succeeds(command.env_remove("XDG_CACHE_HOME"));
    };
    compile("gradus-cc", &["f.c", "-o", "f"]);
    assert_eq!(
        text(&succeeds(&mut Command::new(at.join("f"))).stdout),
        "6\n"
    );
    compile("gradus", &["grad", "f.c", "-f", "square", "-o", "square.o"]);
    assert!(at.join("square.h").is_file());
    assert!(!home.exists(), "an installation keeps no files elsewhere");
    let bash = prefix.join("share/bash-completion/completions/gradus");
    let script = format!(
        "source '{}'; COMP_WORDS=(gradus grad --wr); COMP_CWORD=2; _gradus gradus --wr grad; echo ${{COMPREPLY[@]}}",
        bash.display()
    );
    let completed = succeeds(Command::new("bash").args(["-c", &script]));
    assert_eq!(text(&completed.stdout), "--wrt\n");
}

/// Runs `gradus uninstall`. Returns the exit status and all output.
fn uninstall(prefix: &Path) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gradus"));
    let output = command
        .arg("uninstall")
        .arg(prefix)
        .output()
        .expect("it runs");
    (
        output.status.code(),
        text(&output.stdout) + &text(&output.stderr),
    )
}

fn below(prefix: &Path) -> Vec<String> {
    let mut find = Command::new("find");
    let found = succeeds(find.arg(prefix).args(["-mindepth", "1", "-printf", "%P\n"]));
    let mut names: Vec<String> = text(&found.stdout).lines().map(String::from).collect();
    names.sort();
    names
}

#[test]
fn the_removal_is_the_inverse_of_the_installation() {
    let (_, prefix) = installed("install-removed");
    let list = std::fs::read_to_string(prefix.join("share/gradus/files")).expect("the list");
    for file in list.lines() {
        let found = std::fs::symlink_metadata(prefix.join(file));
        assert!(found.is_ok_and(|found| !found.is_dir()), "{file}");
    }
    let (status, said) = uninstall(&prefix);
    assert_eq!(
        (status, said.contains("removed ")),
        (Some(0), true),
        "{said}"
    );
    assert_eq!(below(&prefix), ["bin", "include", "lib", "share"]);
    let (status, said) = uninstall(&prefix);
    assert_eq!(
        (status, said.contains("GRD0023")),
        (Some(1), true),
        "{said}"
    );
}

#[test]
fn the_removal_leaves_other_files() {
    let (at, prefix) = installed("install-others");
    write(&prefix, "lib/pkgconfig/other.pc", "other\n");
    write(&prefix, "bin/gradus-own", "own\n");
    write(&at, "kept", "kept\n");
    // An installed file that is gone is no reason to keep the others.
    std::fs::remove_file(prefix.join("bin/gradus-fc")).expect("removed");
    let manifest = prefix.join("share/gradus/files");
    let list = std::fs::read_to_string(&manifest).expect("the list");
    let before = below(&prefix);
    for line in ["../kept", "/etc/hostname", "lib", "", "bin/../../kept"] {
        std::fs::write(&manifest, format!("{list}{line}\n")).expect("written");
        let (status, said) = uninstall(&prefix);
        assert_eq!(
            (status, said.contains("no file was removed")),
            (Some(1), true),
            "{line}: {said}"
        );
        assert_eq!(below(&prefix), before, "{line}");
    }
    std::fs::write(&manifest, &list).expect("written");
    let (status, said) = uninstall(&prefix);
    assert_eq!(status, Some(0), "{said}");
    let own = [
        "bin",
        "bin/gradus-own",
        "include",
        "lib",
        "lib/pkgconfig",
        "lib/pkgconfig/other.pc",
        "share",
    ];
    assert_eq!(below(&prefix), own);
    assert!(at.join("kept").is_file());
}

#[test]
fn cmake_differentiates_a_source_of_a_target() {
    let (at, prefix) = installed("install-cmake");
    let project = example(&at, "cmake");
    let cmake = |words: &[&str]| {
        let mut command = Command::new("cmake");
        text(&succeeds(command.args(words).current_dir(&project)).stdout)
    };
    let path = format!("-DCMAKE_PREFIX_PATH={}", prefix.display());
    for generator in ["Ninja", "Unix Makefiles"] {
        let build = format!("build {generator}");
        cmake(&["-G", generator, "-S", ".", "-B", &build, &path]);
        cmake(&["--build", &build]);
        runs(&project.join(&build).join("demo"));
        let again = cmake(&["--build", &build]);
        assert!(!again.contains("Differentiating"), "{again}");
        // A changed header is a reason to differentiate again.
        let header = at.join("springs/springs.h");
        let text = std::fs::read_to_string(&header).expect("the header");
        std::thread::sleep(std::time::Duration::from_millis(1100));
        std::fs::write(&header, text).expect("written");
        let changed = cmake(&["--build", &build]);
        assert!(changed.contains("Differentiating"), "{changed}");
    }
    let multi = "Ninja Multi-Config";
    cmake(&["-G", multi, "-S", ".", "-B", "multi", &path]);
    for configuration in ["Debug", "Release"] {
        cmake(&["--build", "multi", "--config", configuration]);
        runs(&project.join("multi").join(configuration).join("demo"));
    }
}

#[test]
fn cmake_refuses_wrong_words_and_versions() {
    let (at, prefix) = installed("install-cmake-wrong");
    write(&at, "f.c", "double f(double x) { return x; }\n");
    let path = format!("-DCMAKE_PREFIX_PATH={}", prefix.display());
    let refuses = |version: &str, call: &str, expected: &str| {
        let project = format!(
            "cmake_minimum_required(VERSION 3.20)\nproject(p C)\nfind_package(Gradus {version} REQUIRED)\n\
             add_library(l f.c)\n{call}\n"
        );
        write(&at, "CMakeLists.txt", &project);
        let mut command = Command::new("cmake");
        command.args(["-S", ".", "-B", "b", &path]).current_dir(&at);
        let output = command.output().expect("cmake runs");
        assert!(!output.status.success(), "{call}");
        let said = text(&output.stderr)
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        assert!(said.contains(expected), "{said}");
    };
    refuses("99.0", "", "compatible with requested version");
    refuses(
        "0.1",
        "gradus_differentiate(l FUNCTION f)",
        "SOURCE are required",
    );
    refuses(
        "0.1",
        "gradus_differentiate(m FUNCTION f SOURCE f.c)",
        "no target `m`",
    );
    let call = "gradus_differentiate(l FUNCTION f SOURCE f.c BESIDES)";
    refuses("0.1", call, "gradus_differentiate: no source");
    let call = "gradus_differentiate(l BESIDES FUNCTION f SOURCE f.c)";
    refuses("0.1", call, "gradus_differentiate: unknown");
}

#[test]
fn make_meson_and_pkg_config_use_the_installation() {
    let (at, prefix) = installed("install-make");
    let project = example(&at, "make");
    let gradus = format!("GRADUS='{}'", prefix.join("bin/gradus").display());
    succeeds(Command::new("make").arg(gradus).current_dir(&project));
    runs(&project.join("demo"));

    let project = example(&at, "meson");
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", prefix.join("bin").display());
    for words in [["setup", "build", "."], ["compile", "-C", "build"]] {
        let mut command = Command::new("meson");
        succeeds(command.args(words).current_dir(&project).env("PATH", &path));
    }
    runs(&project.join("build/demo"));

    // A makefile cannot name a path with a blank.
    let plain = at.join("prefix");
    std::fs::rename(&prefix, &plain).expect("moved again");
    let project = example(&at, "pkg-config");
    let mut command = Command::new("make");
    command.env("PKG_CONFIG_PATH", plain.join("lib/pkgconfig"));
    succeeds(command.current_dir(&project));
    runs(&project.join("demo"));
}

#[test]
fn drivers_compile_openmp_and_cuda_projects() {
    let (at, prefix) = installed("install-drivers");
    let project = example(&at, "openmp");
    let mut configure = Command::new("cmake");
    configure.args(["-S", ".", "-B", "build"]);
    configure.env("CC", prefix.join("bin/gradus-cc"));
    succeeds(configure.current_dir(&project));
    let mut build = Command::new("cmake");
    succeeds(build.args(["--build", "build"]).current_dir(&project));
    for workers in ["1", "3"] {
        let mut program = Command::new(project.join("build/rods"));
        let output = succeeds(program.env("GRADUS_NUM_THREADS", workers));
        assert_eq!(text(&output.stdout), "largest difference: below 1e-7\n");
    }

    let project = example(&at, "cuda");
    let nvcc = format!("NVCC='{}'", prefix.join("bin/gradus-nvcc").display());
    succeeds(Command::new("make").arg(nvcc).current_dir(&project));
    runs(&project.join("plate"));
}
