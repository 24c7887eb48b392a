//! `gradus/parallel.h`: the parallel intrinsics have equal semantics under every compiler, at every level,
//! for any number of workers; serial execution is reported.

use crate::support::{folder, succeeds, text};
use std::path::Path;
use std::process::{Command, Output};

/// Compiles a program of `tests/parallel` to `program` by a command, with words separated by spaces.
fn compile(folder: &Path, name: &str, command: &str) -> Output {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parallel");
    let mut words = command.split(' ').map(|word| match word {
        "gradus" => env!("CARGO_BIN_EXE_gradus"),
        _ => word,
    });
    let mut command = Command::new(words.next().expect("a program"));
    command.args(words).arg(source.join(name));
    succeeds(command.args(["-o", "program", "-lm"]).current_dir(folder))
}

/// Returns the output of `program` with this number of workers, with all loops or no loop forced to fork.
fn printed(folder: &Path, workers: u32, forced: bool) -> String {
    let mut command = Command::new(folder.join("program"));
    command.env("GRADUS_NUM_THREADS", workers.to_string());
    command.env("GRADUS_FORCE_FORK", if forced { "1" } else { "0" });
    text(&succeeds(&mut command).stdout)
}

const HEADERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../include");

fn means_the_same(test: &str, name: &str, stock: &str, ours: &str) {
    let folder = folder(test);
    compile(&folder, name, &format!("{stock} -O1 -I{HEADERS}"));
    let serial = printed(&folder, 1, false);
    assert!(serial.lines().count() > 2, "{serial}");
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        compile(&folder, name, &format!("{ours} {level}"));
        for (workers, forced) in [(1, false), (1, true), (4, false), (4, true), (4, true)] {
            assert_eq!(
                printed(&folder, workers, forced),
                serial,
                "{level}, {workers} workers, forced: {forced}"
            );
        }
    }
}

#[test]
fn intrinsics_in_c() {
    means_the_same("words", "markers.c", "clang-22", "gradus cc");
}

#[test]
fn intrinsics_in_cplusplus() {
    means_the_same("lambdas", "lambdas.cpp", "clang++-22", "gradus c++");
}

/// Variable-length arrays in iterations and scopes that spawn.
#[test]
fn scoped_arrays() {
    means_the_same("words_arrays", "scoped_arrays.c", "clang-22", "gradus cc");
}

/// All loops are parallel, except a loop that computes the index, and a loop that drops its carried value
/// at a NaN.
#[test]
fn min_max_are_reductions() {
    means_the_same("words_extremes", "extremes.c", "clang-22", "gradus cc");
    let folder = folder("words_extremes");
    for level in ["-O0", "-O2"] {
        let output = compile(&folder, "extremes.c", &format!("gradus cc {level} -g"));
        let said = text(&output.stderr);
        assert_eq!(said.matches("GRD0036").count(), 2, "{said}");
        for function in ["place", "largest_by_macro"] {
            assert!(
                said.contains(&format!("in function `{function}`")),
                "{said}"
            );
        }
    }
}

/// All loops are parallel, except those with a carried factor.
#[test]
fn sums_of_products_are_reductions() {
    means_the_same("words_products", "products.c", "clang-22", "gradus cc");
    let folder = folder("words_products");
    for level in ["-O0", "-O2"] {
        let output = compile(&folder, "products.c", &format!("gradus cc {level} -g"));
        let said = text(&output.stderr);
        assert_eq!(said.matches("GRD0036").count(), 4, "{said}");
        for function in ["horner", "grown", "last_row", "last_column"] {
            assert!(
                said.contains(&format!("in function `{function}`")),
                "{said}"
            );
        }
    }
}

#[test]
fn exceptions_propagate_to_sync() {
    means_the_same("exceptions", "exceptions.cpp", "clang++-22", "gradus c++");
}

#[test]
fn serial_execution_is_reported() {
    let folder = folder("serial_statements");
    let output = compile(&folder, "markers.c", "gradus cc -O2 -g --par-report");
    let report = text(&output.stdout);
    let serial = report.lines().filter(|l| l.contains("runs serially"));
    // A loop with an exit, a loop with a carried value, and a task left by `return`.
    assert!(serial.count() >= 3, "{report}");
    assert!(report.contains("gr_scope"), "{report}");
    let said = text(&output.stderr);
    assert!(said.contains("GRD0036"), "{said}");
}

#[test]
fn handling_task_is_serial() {
    let folder = folder("handling_task");
    let output = compile(&folder, "exceptions.cpp", "gradus c++ -O2 -g --par-report");
    let source = include_str!("parallel/exceptions.cpp");
    let line = source.lines().position(|l| l.contains("x = walk(0, 32"));
    let place = format!(
        "exceptions.cpp:{}: runs serially",
        line.expect("it is there") + 1
    );
    let report = text(&output.stdout);
    assert!(report.contains(&place), "{report}");
}

/// The note names the cleanup or handler on the exception's path; a handler that only terminates does not
/// count.
#[test]
fn note_names_exception_handler() {
    let folder = folder("met");
    let source = "#include <gradus/parallel.h>
void leaf(double *x);
struct Own { ~Own(); };
void plain(double *x) noexcept {
  gr_spawn leaf(x);
  leaf(x + 1);
  gr_sync();
}
void owning(double *x) {
  Own own;
  gr_spawn leaf(x);
  leaf(x + 1);
  gr_sync();
}
int handling(double *x) {
  try {
    gr_spawn leaf(x);
    leaf(x + 1);
    gr_sync();
  } catch (int k) {
    return k;
  }
  return 0;
}
";
    std::fs::write(folder.join("f.cpp"), source).expect("written");
    for level in ["-O1", "-O2", "-O3"] {
        let output = crate::support::shell(&folder, &format!("gradus c++ {level} -c f.cpp -o f.o"));
        let said = text(&output.stderr);
        let place = |line: u32| said.contains(&format!("--> f.cpp:{line}:"));
        assert!(place(11) && place(17) && !place(5), "{said}");
        let variable =
            said.contains("runs destructors on the unwind path") && said.contains("14 | }");
        assert!(variable, "{said}");
        assert!(said.contains("a handler in this function"), "{said}");
    }
}

/// The reason is not an unknown trip count if the trip count is known.
#[test]
fn note_names_serial_reason() {
    let folder = folder("uncounted");
    let source = "#include <gradus/parallel.h>
void leaf(double *x);
struct Own { ~Own(); };
void handled(double *x, int n) {
  try {
    gr_for (int i = 0; i < n; i++) leaf(x + i);
  } catch (int) {
    x[0] = 1;
  }
}
void read(double *x, const int &n) {
  gr_for (int i = 0; i < n; i++) leaf(x + i);
}
void owning(double *x, int n) {
  gr_for (int i = 0; i < n; i++) { Own own; leaf(x + i); }
}
void floating(double *x, double n) {
  gr_for (double i = 0; i < n; i += 0.5) x[(int)i] = i;
}
void plain(double *x, int n) {
  gr_for (int i = 0; i < n; i++) leaf(x + i);
}
";
    std::fs::write(folder.join("f.cpp"), source).expect("written");
    for level in ["-O0", "-O1", "-O2"] {
        let line = format!("gradus c++ {level} --par-report -c f.cpp -o f.o");
        let said = text(&crate::support::shell(&folder, &line).stdout);
        let serial = |line: u32, why: &str| {
            let start = format!("f.cpp:{line}: runs serially: `gr_for`: {why}");
            assert!(said.contains(&start), "{level} {start}: {said}");
        };
        serial(6, "a handler in this function catches exceptions");
        serial(12, "the loop condition reloads the bound in each iteration");
        serial(15, "an exception of the statement runs destructors");
        serial(18, "the trip count is unknown");
        assert!(!said.contains("f.cpp:21: runs serially"), "{said}");
    }
}

#[test]
fn intrinsics_in_preprocessed_text() {
    let folder = folder("words_preprocessed");
    let source = "#include <gradus/parallel.h>\nvoid f(double *x, long n) {\n  gr_for (long i = 0; i < n; i++) x[i] *= 2;\n}\n";
    std::fs::write(folder.join("f.c"), source).expect("written");
    for commands in [
        &["gradus cc -E f.c -o f.i", "gradus cc -O2 -c -S f.i -o f.s"][..],
        &["gradus cc -O2 -save-temps -S f.c -o f.s"],
    ] {
        for command in commands {
            crate::support::shell(&folder, command);
        }
        let code = std::fs::read_to_string(folder.join("f.s")).expect("it was made");
        assert!(code.contains("gr_for"), "{commands:?}");
    }
}
