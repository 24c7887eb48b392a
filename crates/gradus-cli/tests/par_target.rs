//! `--par-target`: the target of lowering for parallel regions. Parallel intrinsics of `gradus/parallel.h`
//! are compiled again, merged from several files; with `openmp` the threads of OpenMP's library do the
//! work.

use crate::support::{folder, shell, text};
use std::path::Path;

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/parallel");
const HEADERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../include");

/// Checks that a program of `tests/parallel`, lowered to intrinsics and compiled again, prints its serial
/// output.
fn check_round_trip(test: &str, name: &str, stock: &str, ours: &str) {
    let folder = folder(test);
    let serial = format!("{stock} -w -O1 -I{HEADERS} {SOURCES}/{name} -o serial -lm");
    shell(&folder, &serial);
    let serial = text(&shell(&folder, "./serial").stdout);
    assert!(serial.lines().count() > 2, "{serial}");
    for level in ["-O0", "-O1", "-O3"] {
        let written = "-w -fopenmp -c -emit-llvm --par-target=intrinsics";
        let write = format!("{ours} {level} {written} {SOURCES}/{name} -o words.bc");
        shell(&folder, &write);
        let again = format!("{ours} {level} -w -fopenmp words.bc -o program -lm");
        shell(&folder, &again);
        for (workers, forced) in [(1, 1), (4, 0), (4, 1), (4, 1)] {
            let variables = format!("GRADUS_NUM_THREADS={workers} GRADUS_FORCE_FORK={forced}");
            let run = shell(&folder, &format!("env {variables} ./program"));
            assert_eq!(text(&run.stdout), serial, "{level}, {variables}");
        }
    }
}

#[test]
fn intrinsics_round_trip_c() {
    check_round_trip("words_c", "markers.c", "clang-22", "gradus cc");
}

#[test]
fn intrinsics_round_trip_cplusplus() {
    check_round_trip("words_cpp", "lambdas.cpp", "clang++-22", "gradus c++");
}

#[test]
fn intrinsics_round_trip_exceptions() {
    check_round_trip("words_thrown", "exceptions.cpp", "clang++-22", "gradus c++");
}

/// A function with cost linear in `n`, and a file with a loop that calls it.
const LENGTH: &str = "
#include <math.h>
double length(const double *a, int n) {
  double s = 0;
  for (int i = 0; i < n; i++) s += a[i] * a[i];
  return sqrt(s);
}
";
const CALLER: &str = r#"
#include <omp.h>
#include <stdio.h>
#define N 3000
double length(const double *a, int n);
static double in[N], out[N];
void unit(double *out, const double *in, int n) {
#pragma omp parallel for
  for (int i = 0; i < n; i++) out[i] = in[i] / length(in, n);
}
int main(void) {
  for (int i = 0; i < N; i++) in[i] = i % 7 + 1;
  unit(out, in, N);
  double s = 0;
#pragma omp parallel for reduction(+ : s)
  for (int i = 0; i < N; i++) s += out[i];
  int own[64] = {0}, all = 0;
#pragma omp parallel num_threads(3)
  own[omp_get_thread_num()] = 1;
  for (int i = 0; i < 64; i++) all += own[i];
  printf("%.12g %d\n", s, all);
  return 0;
}
"#;

/// Writes both files.
fn two_files(test: &str) -> std::path::PathBuf {
    let folder = folder(test);
    for (name, source) in [("length.c", LENGTH), ("caller.c", CALLER)] {
        std::fs::write(folder.join(name), source).expect("written");
    }
    folder
}

/// Returns the output of a program on two workers with every loop forked.
fn forked(folder: &Path) -> String {
    let run = "env OMP_NUM_THREADS=2 GRADUS_FORCE_FORK=1 ./program";
    text(&shell(folder, run).stdout)
}

#[test]
fn licm_across_files() {
    let folder = two_files("words_files");
    for name in ["length", "caller"] {
        let flags = "-O2 -fopenmp -fno-math-errno -c -emit-llvm --par-target=intrinsics";
        shell(&folder, &format!("gradus cc {flags} {name}.c -o {name}.bc"));
    }
    shell(&folder, "llvm-link-22 length.bc caller.bc -o all.bc");
    let flags = "-O2 -fopenmp -fno-math-errno --par-report";
    let built = shell(&folder, &format!("gradus cc {flags} all.bc -o program -lm"));
    let report = text(&built.stdout);
    let call = "call of length in line 9 hoisted out of the loop";
    assert!(report.contains(call), "{report}");
    assert_eq!(forked(&folder), "48.9857149268 3\n");
}

#[test]
fn openmp_target_uses_openmp_threads() {
    let folder = two_files("on_openmp");
    let sources = "-O2 -fno-math-errno length.c caller.c -o program -lm";
    for (target, threads) in [("runtime", 0), ("openmp", 1)] {
        shell(
            &folder,
            &format!("gradus cc -fopenmp --par-target={target} {sources}"),
        );
        let symbols = text(&shell(&folder, "nm program").stdout);
        let defined = symbols.lines().filter(|l| l.ends_with(" T gr_on_libomp"));
        assert_eq!(defined.count(), threads, "{target}");
        assert_eq!(forked(&folder), "48.9857149268 3\n", "{target}");
    }
}

#[test]
fn invalid_targets_are_refused() {
    let folder = two_files("targets_refused");
    shell(&folder, "gradus cc -O2 -fopenmp -c length.c caller.c");
    for (command, said) in [
        (
            "cc -O2 -fopenmp --par-target=intrinsics -c caller.c",
            "-c -emit-llvm",
        ),
        (
            "cc -O2 -fopenmp --par-target=threads -c caller.c",
            "runtime, openmp or intrinsics",
        ),
        (
            "cc --par-target=openmp caller.o length.o -o program -lm",
            "add `-fopenmp`",
        ),
    ] {
        let mut words = std::process::Command::new(env!("CARGO_BIN_EXE_gradus"));
        let output = words.args(command.split(' ')).current_dir(&folder).output();
        let output = output.expect("it runs");
        assert!(!output.status.success(), "{command}");
        let stderr = text(&output.stderr);
        assert!(
            stderr.contains("GRD0035") && stderr.contains(said),
            "{stderr}"
        );
    }
    assert!(!folder.join("program").exists());
}
