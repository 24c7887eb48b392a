//! CUDA programs through `gradus nvcc`, executed: each checks itself, at every optimisation level, with one
//! and two workers, and with every loop forked.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn succeeds(what: &str, output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what}\n{said}{errors}");
    said
}

fn source(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/cuda")
        .join(file)
}

/// The numbers of workers, and whether every loop forks.
const WORKERS: &[(&str, &str)] = &[("1", "0"), ("2", "0"), ("2", "1")];

/// Returns the output of the program of these files, equal at the lowest and highest level and for each
/// number of workers.
fn runs(files: &[&str]) -> String {
    runs_at(&["-O0", "-O3"], files)
}

fn runs_at(levels: &[&str], files: &[&str]) -> String {
    let mut said = Vec::new();
    for level in levels {
        let program =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cuda_{}{level}", files[0]));
        let output = Command::new(env!("CARGO_BIN_EXE_gradus"))
            .args(["nvcc", level])
            .args(files.iter().map(|file| source(file)))
            .arg("-o")
            .arg(&program)
            .output()
            .expect("gradus runs");
        succeeds(&format!("nvcc {level} {files:?}"), &output);
        for (workers, forced) in WORKERS {
            let mut run = Command::new(&program);
            let output = run
                .env("GRADUS_NUM_THREADS", workers)
                .env("GRADUS_FORCE_FORK", forced)
                .output()
                .expect("it runs");
            said.push(succeeds(
                &format!("{files:?} {level}, {workers} workers"),
                &output,
            ));
        }
    }
    assert!(said.iter().all(|text| *text == said[0]), "{said:?}");
    said.swap_remove(0)
}

#[test]
fn shared_memory_and_barriers() {
    runs(&["shared.cu"]);
}

/// The shared memory has no static size, and threads communicate through it in lockstep.
#[test]
fn shared_memory_whose_size_the_launch_gives() {
    runs_at(&["-O0", "-O1", "-O2", "-O3"], &["dynamic.cu"]);
}

#[test]
fn barriers_in_loops_of_all_forms() {
    runs_at(&["-O0", "-O1", "-O2", "-O3"], &["meetings.cu"]);
}

#[test]
fn lockstep_loops() {
    runs(&["steps.cu"]);
}

#[test]
fn searches() {
    runs(&["searches.cu"]);
}

#[test]
fn atomics_and_symbols() {
    runs(&["atomics.cu"]);
}

#[test]
fn the_run_times_interface() {
    runs(&["interface.cu"]);
}

#[test]
fn assembly() {
    runs(&["assembly.cu"]);
}

#[test]
fn assembly_at_the_edges_of_its_definition() {
    runs(&["assembly_edges.cu"]);
}

/// In addition to the program's own checks: launches are lowered to host code, not runtime calls.
#[test]
fn launches() {
    runs(&["launches.cu"]);
    let object = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cuda_launches.o");
    let output = Command::new(env!("CARGO_BIN_EXE_gradus"))
        .args(["nvcc", "-c"])
        .arg(source("launches.cu"))
        .arg("-o")
        .arg(&object)
        .output()
        .expect("gradus runs");
    succeeds("nvcc -c", &output);
    let bytes = std::fs::read(&object).expect("the object is there");
    let names = |name: &[u8]| bytes.windows(name.len()).any(|part| part == name);
    assert!(names(b"__gr_launch_begin\0"));
}

/// Fused launches have the results of separate launches.
#[test]
fn fused_launches() {
    assert_eq!(runs(&["fusion.cu"]), "");
}

/// Each gradient by reverse mode, forward mode and finite differences, compared with the gradient of plain
/// C++.
#[test]
fn gradients() {
    let said = runs_at(&["-O0", "-O1", "-O2", "-O3"], &["gradients.cu"]);
    assert_eq!(said, "");
    assert_eq!(runs(&["gradients_more.cu"]), "");
}

/// `gradus grad` and `gradus check` of a host function that launches a kernel, with nvcc's flags.
#[test]
fn derivatives_by_name() {
    let gradus = |args: &[&str]| {
        let mut run = Command::new(env!("CARGO_BIN_EXE_gradus"));
        run.args(args).output().expect("gradus runs")
    };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = |path: PathBuf| path.display().to_string();
    let (file, main) = (path(source("by_name.cu")), path(source("by_name_main.cpp")));
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        let object = path(folder.join(format!("by_name{level}.o")));
        let words = [
            "grad",
            &file,
            "-f",
            "energy",
            "--report=full",
            "--wrt",
            "x",
            "-o",
            &object,
        ];
        let flags = ["--", level, "-arch=sm_80", "-Xcompiler", "-Wall"];
        let made = gradus(&[&words[..], &flags].concat());
        let said = succeeds(&format!("grad {level}"), &made);
        assert!(
            said.contains("parallel in the reverse pass: the loop in line 12"),
            "{said}"
        );
        let program = path(folder.join(format!("by_name{level}")));
        let linked = gradus(&["nvcc", "-o", &program, &main, &object]);
        succeeds(&format!("link {level}"), &linked);
        for (workers, forced) in WORKERS {
            let mut run = Command::new(&program);
            run.env("GRADUS_NUM_THREADS", workers);
            let output = run.env("GRADUS_FORCE_FORK", forced).output();
            succeeds(
                &format!("{level}, {workers} workers"),
                &output.expect("it runs"),
            );
        }
    }
    let given = ["--arg", "n=200", "--arg", "x=rand(n)"];
    let checked = gradus(&[&["check", &file, "-f", "energy"][..], &given].concat());
    let said = succeeds("check", &checked);
    assert!(said.contains("the derivative is right"), "{said}");
    let text = path(folder.join("by_name.ll"));
    let made = gradus(&["grad", &file, "-f", "energy", "--emit", "llvm", "-o", &text]);
    succeeds("grad --emit llvm", &made);
    let text = std::fs::read_to_string(text).expect("the text is there");
    assert!(text.contains("@energy_vjp("));
}

/// Refusals by clang and of nvcc's command line are reported, and nothing is written.
#[test]
fn invalid_sources_are_refused() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (file, object) = (
        folder.join("by_name_wrong.cu"),
        folder.join("by_name_wrong.o"),
    );
    std::fs::write(&file, "__global__ void k(double *x) { *x = y; }\n").expect("it is written");
    for (flag, told) in [
        ("-O2", "undeclared identifier 'y'"),
        ("-archh=sm_80", "-arch"),
    ] {
        let mut run = Command::new(env!("CARGO_BIN_EXE_gradus"));
        run.args(["grad", "-f", "f"])
            .arg(&file)
            .arg("-o")
            .arg(&object);
        let output = run.args(["--", flag]).output().expect("gradus runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(told), "{said}");
        assert!(!object.exists());
    }
}

/// Launches through pointers and of other files' kernels, and calls that release the device's memory.
#[test]
fn unsupported_derivatives_are_refused() {
    let text = "#include <gradus.h>
__global__ void k(const double *x, double *y) { *y = *x * *x; }
__global__ void other(const double *x, double *y);
typedef void (*kernel)(const double *, double *);
void f(const double *x, double *y, kernel p) { p<<<1, 4>>>(x, y); }
void g(const double *x, double *y) { k<<<1, 1>>>(x, y); cudaDeviceReset(); }
void h(const double *x, double *y) { other<<<1, 1>>>(x, y); }
void ask(double *x, double *dx, double *y, double *dy) {
  gradus_vjp(f, gradus_dup, x, dx, gradus_dup, y, dy, gradus_const, k);
  gradus_vjp(g, gradus_dup, x, dx, gradus_dup, y, dy);
  gradus_vjp(h, gradus_dup, x, dx, gradus_dup, y, dy);
}
";
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = folder.join("cuda_refused.cu");
    std::fs::write(&file, text).expect("the file is written");
    let output = Command::new(env!("CARGO_BIN_EXE_gradus"))
        .args(["nvcc", "-c", "-o"])
        .arg(folder.join("cuda_refused.o"))
        .arg(&file)
        .output()
        .expect("gradus runs");
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    for (code, line) in [("GRD0013", 2), ("GRD0013", 6), ("GRD0005", 7)] {
        assert!(said.contains(code), "{said}");
        assert!(said.contains(&format!("cuda_refused.cu:{line}:")), "{said}");
    }
}

/// With one worker the blocks run on the program's system stack.
#[test]
fn large_frames() {
    runs(&["frames.cu"]);
}

/// Memory allocated by kernels, clocks, an assertion that holds and one that fails.
#[test]
fn device_library() {
    runs(&["device.cu"]);
}

#[test]
fn cooperative_groups() {
    assert_eq!(runs(&["groups.cu"]), "");
}

#[test]
fn warp_communication() {
    assert_eq!(runs(&["volatile.cu"]), "");
}

#[test]
fn textures() {
    runs(&["textures.cu"]);
}

#[test]
fn the_runtime() {
    let said = runs(&["runtime.cu", "runtime_other.cu"]);
    assert_eq!(said, "kernel 7 says 1.75\n");
}
