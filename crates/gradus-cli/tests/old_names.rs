//! Names of passes, switches and targets before 0.1.0: each use has its effect and prints one warning with the
//! present name.

use crate::support::{accepts, folder, gradus, text, write};
use std::path::PathBuf;

/// A function, a derivative call, and a parallel region.
const PROGRAM: &str = "double __enzyme_autodiff(void *, ...);
double square(double x) { return x * x; }
double slope(double x) { return __enzyme_autodiff((void *)square, x); }
void scale(double *a, int n) {
#pragma omp parallel for
  for (int i = 0; i < n; i++) a[i] *= 2;
}
";

/// Returns a folder with the program as `program.c`.
fn program(test: &str) -> PathBuf {
    let at = folder(test);
    write(&at, "program.c", PROGRAM);
    at
}

/// Checks that a command succeeds and prints exactly these messages as warnings.
fn warns(test: &str, line: &str, expected: &[&str]) {
    let output = gradus(&program(test), line);
    let said = text(&output.stderr);
    assert!(output.status.success(), "gradus {line}\n{said}");
    let warning = |line| str::strip_prefix(line, "warning[GRD0035]: ");
    let messages: Vec<&str> = said.lines().filter_map(warning).collect();
    assert_eq!(messages, expected, "gradus {line}\n{said}");
}

#[test]
fn old_switches_warn() {
    let message = "the name `redo-calls` is deprecated: use `recompute-calls`";
    let derive = "grad program.c -f square --without";
    warns("old_grad", &format!("{derive}=redo-calls"), &[message]);
    warns("new_grad", &format!("{derive}=recompute-calls"), &[]);
    let check = "check program.c -f square --arg x=2 --without=redo-calls";
    warns("old_check", check, &[message]);
    let compile = "cc -O1 -c program.c --gradus-without";
    let both = format!("{compile}=redo-calls,fusion");
    let fusion = "the name `fusion` is deprecated: use `launch-fusion,loop-fusion`";
    warns("old_cc", &both, &[message, fusion]);
    warns("new_cc", &format!("{compile}=recompute-calls"), &[]);
}

#[test]
fn old_passes_warn_and_are_dumped() {
    let line = "dev program.c -f square --after";
    let message = "the name `facts` is deprecated: use `analyze`";
    warns("old_pass", &format!("{line}=facts"), &[message]);
    let at = program("old_dump");
    let old = accepts(&at, &format!("{line}=facts"));
    assert!(old.starts_with("; after analyze\n"), "{old}");
    assert_eq!(old, accepts(&at, &format!("{line}=analyze")));
}

#[test]
fn old_target_warns() {
    let compile = "cc -O1 -fopenmp -c -emit-llvm program.c --par-target";
    let message = "the name `--par-target=words` is deprecated: use `--par-target=intrinsics`";
    warns("old_target", &format!("{compile}=words"), &[message]);
    warns("new_target", &format!("{compile}=intrinsics"), &[]);
}
