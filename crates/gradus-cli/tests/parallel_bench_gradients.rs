//! Gradients of the floating-point programs of `bench/parallel`, of a weighted sum of each program's output
//! at reduced size. On one, two and four workers with every loop forked, gradients equal the serial
//! build's, which agree with finite differences along a direction. ThreadSanitizer finds no race in a
//! selection of programs, which have no atomic adds.

use crate::support::{folder, shell, succeeds, text, write};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

const BENCH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/parallel");
const PARTS: usize = 6;
/// Programs with tasks that may read memory of parallel tasks: no rule separates the adds of a recursion.
/// On few workers another version with plain adds runs.
const OF_TASKS: [&str; 3] = ["02_cse_spawn", "33_cse_tasks", "52_tasks_sum"];

/// A program of the benchmark, and its function call: arrays by name with C lengths, the output array to be
/// summed, and integers.
struct BenchProgram {
    name: &'static str,
    real: &'static str,
    call: &'static str,
    inputs: &'static [(&'static str, &'static str)],
    output: &'static str,
    numbers: &'static [(&'static str, i64)],
}

const fn row(
    name: &'static str,
    real: &'static str,
    call: &'static str,
    inputs: &'static [(&'static str, &'static str)],
    output: &'static str,
    numbers: &'static [(&'static str, i64)],
) -> BenchProgram {
    BenchProgram {
        name,
        real,
        call,
        inputs,
        output,
        numbers,
    }
}

const D: &str = "double";
const F: &str = "float";

// table
#[rustfmt::skip]
const PROGRAMS: &[BenchProgram] = &[
    row("01_norm_licm", D, "normalize(o, a, n)", &[("a", "n")], "n", &[("n", 600)]),
    row("02_cse_spawn", D, "two(o, o + 1, a, n)", &[("a", "n")], "2", &[("n", 600)]),
    row("03_cse_region", D, "o[0] = f(o + 1, a, n, m)", &[("a", "n")], "n + 1", &[("n", 600), ("m", 50)]),
    row("05_constprop", D, "caller(o, a, n)", &[("a", "n")], "n", &[("n", 600)]),
    row("07_dse", D, "f(o, a, n)", &[("a", "n")], "n", &[("n", 600)]),
    row("08_fusion", F, "f(o, a, b, n)", &[("a", "n"), ("b", "n")], "n", &[("n", 64)]),
    row("09_small_region", D, "f(o, a)", &[("a", "8")], "8", &[]),
    row("10_nested", D, "f(o, a, n, m)", &[("a", "n * m")], "n * m", &[("n", 40), ("m", 32)]),
    row("13_struct_params", D, "{ struct par p = {1, 2, 3, 4, n, o, a}; f(p); }", &[("a", "n")], "n", &[("n", 600)]),
    row("16_accum_array", D, "o[0] = f(a, n)", &[("a", "n")], "1", &[("n", 600)]),
    row("17_barrier", D, "f(o, o + n, a, n)", &[("a", "n")], "2 * n", &[("n", 256)]),
    row("18_reduction", D, "o[0] = f(a, n)", &[("a", "n")], "1", &[("n", 256)]),
    row("19_inv_parallel_call", D, "f(o, a, n, m)", &[("a", "n")], "m", &[("n", 300), ("m", 20)]),
    row("20_pow_const", D, "caller(o, a, n)", &[("a", "n")], "n", &[("n", 600)]),
    row("21_norm_norestrict", D, "normalize(o, a, n)", &[("a", "n")], "n", &[("n", 600)]),
    row("22_dot_licm", D, "f(o, a, b, n)", &[("a", "n"), ("b", "n")], "n", &[("n", 600)]),
    row("23_max_licm", D, "f(o, a, n)", &[("a", "n")], "n", &[("n", 600)]),
    row("24_collapsed_licm", D, "f(o, a, q, n, m)", &[("a", "n * m"), ("q", "m")], "n * m", &[("n", 20), ("m", 30)]),
    row("26_poly_licm", D, "f(o, a, c, n, k)", &[("a", "n"), ("c", "k")], "n", &[("n", 600), ("k", 30)]),
    row("27_float_licm", F, "f(o, a, n)", &[("a", "n")], "n", &[("n", 300)]),
    row("29_dynamic_licm", D, "f(o, a, n)", &[("a", "n")], "n", &[("n", 600)]),
    row("30_norm_pure", D, "f(o, a, n)", &[("a", "n")], "n", &[("n", 600)]),
    row("31_cse_three", D, "o[0] = f(o + 1, o + 1 + m, a, n, m)", &[("a", "n")], "2 * m + 1", &[("n", 600), ("m", 50)]),
    row("33_cse_tasks", D, "f(o, a, n)", &[("a", "n")], "3", &[("n", 600)]),
    row("34_constant_degree", F, "f(o, a, n)", &[("a", "n")], "n", &[("n", 600)]),
    row("35_constant_width", D, "f(o, a, n)", &[("a", "3 * n")], "n", &[("n", 600)]),
    row("36_constant_flag", D, "f(o, a, n)", &[("a", "n")], "n", &[("n", 600)]),
    row("37_constant_power", D, "f(o, a, n)", &[("a", "n")], "n", &[("n", 600)]),
    row("38_constant_choice", D, "f(o, a, n)", &[("a", "n")], "n", &[("n", 600)]),
    row("39_pointer_sum", D, "o[0] = f(a, n)", &[("a", "n")], "1", &[("n", 600)]),
    row("40_pointer_map", F, "f(o, a, n)", &[("a", "n")], "n", &[("n", 600)]),
    row("41_dead_float", F, "f(o, a, n)", &[("a", "n")], "n", &[("n", 600)]),
    row("42_dead_two", D, "o[0] = f(a, n)", &[("a", "n")], "1", &[("n", 600)]),
    row("44_small_four", D, "f(o, a, n)", &[("a", "8")], "8", &[("n", 4)]),
    row("46_small_least", D, "o[0] = f(a, n)", &[("a", "n")], "1", &[("n", 100)]),
    row("47_small_square", D, "f(o, a)", &[("a", "16")], "16", &[]),
    row("48_small_steps", D, "f(o, a, n, m)", &[("a", "n")], "n", &[("n", 64), ("m", 10)]),
    row("49_small_sections", D, "f(o, a)", &[("a", "8")], "8", &[]),
    row("50_nested_sums", D, "f(o, a, n, m)", &[("a", "n * m")], "n", &[("n", 50), ("m", 32)]),
    row("51_nested_three", D, "f(o, a, n)", &[("a", "n * n * n")], "n * n * n", &[("n", 9)]),
    row("52_tasks_sum", D, "o[0] = top(a, n)", &[("a", "n")], "1", &[("n", 3000)]),
    row("58_tasks_loop", D, "f(o, a, n)", &[("a", "n")], "n", &[("n", 600)]),
    row("59_barriers", D, "f(o, o + n, o + 2 * n, a, n)", &[("a", "n")], "3 * n", &[("n", 128)]),
    row("60_invariant_dot", D, "f(o, a, b, n, m)", &[("a", "n"), ("b", "n")], "m", &[("n", 300), ("m", 20)]),
    row("61_invariant_least", D, "o[0] = f(a, n, m)", &[("a", "n")], "1", &[("n", 300), ("m", 20)]),
    row("63_single_in_team", D, "f(o, a, n)", &[("a", "n")], "8", &[("n", 64)]),
    row("64_atomic_few", D, "o[0] = f(a, n)", &[("a", "n")], "1", &[("n", 64)]),
    row("65_struct_sum", D, "{ struct par p = {1, 2, 3, n, a, o}; f(p); }", &[("a", "n")], "n", &[("n", 500)]),
];

/// The programs that run under ThreadSanitizer.
const TSAN_PROGRAMS: &[&str] = &[
    "10_nested",
    "22_dot_licm",
    "48_small_steps",
    "52_tasks_sum",
    "59_barriers",
    "60_invariant_dot",
];

/// Returns a program that prints the gradient, and finally its product with a direction and the finite
/// difference along it.
fn driver(row: &BenchProgram) -> String {
    let BenchProgram {
        name,
        real,
        call,
        output,
        ..
    } = row;
    let arrays = row.inputs.iter().copied().chain([("o", *output)]);
    let step = if *real == D { "1e-5" } else { "1e-2" };
    let mut params = Vec::new();
    let mut active = Vec::new();
    let mut plain = Vec::new();
    let mut start = String::new();
    for (number, value) in row.numbers {
        let _ = writeln!(start, "  long {number} = {value};");
    }
    for (array, length) in arrays {
        let first = match array {
            "o" => "0.25",
            _ => "0.7 + 0.001 * (i * 37 % 211) + 0.11 * (i % 3)",
        };
        let bytes = format!("(({length}) * 8 + 127) / 64 * 64");
        let _ = writeln!(
            start,
            "  {real} *{array} = aligned_alloc(64, {bytes}), *d_{array} = aligned_alloc(64, {bytes});
  for (long i = 0; i < {length}; i++) {array}[i] = {first}, d_{array}[i] = 0;"
        );
        params.push(format!("{real} *{array}"));
        active.push(format!("enzyme_dup, {array}, d_{array}"));
        plain.push(array.to_string());
    }
    for (number, _) in row.numbers {
        params.push(format!("long {number}"));
        active.push(format!("enzyme_const, {number}"));
        plain.push((*number).to_string());
    }
    let (params, active, plain) = (params.join(", "), active.join(", "), plain.join(", "));
    let (mut gradient, mut moves) = (String::new(), [String::new(), String::new()]);
    for (array, length) in row.inputs {
        let _ = writeln!(
            gradient,
            "  for (long i = 0; i < {length}; i++) {{
    printf(\"%.15g\\n\", (double)d_{array}[i]);
    slope += d_{array}[i] * (1 + i % 4);
  }}"
        );
        for (text, by) in std::iter::zip(&mut moves, ["+ 1", "- 2"]) {
            let _ = writeln!(
                text,
                "  for (long i = 0; i < {length}; i++) {array}[i] = (double){array}[i] {by} * {step} * (1 + i % 4);"
            );
        }
    }
    let again = format!("  for (long i = 0; i < {output}; i++) o[i] = 0.25;");
    let [up, down] = moves;
    format!(
        "#define main old_main
#include \"{name}.c\"
#undef main
extern int enzyme_dup, enzyme_const;
double __enzyme_autodiff(void *, ...);
double weighed({params}) {{
  {call};
  double s = 0;
  for (long i = 0; i < {output}; i++) s += o[i] * (1 + 0.3 * (i % 5));
  return s;
}}
int main(void) {{
{start}  __enzyme_autodiff((void *)weighed, {active});
  double slope = 0;
{gradient}{up}{again}
  double above = weighed({plain});
{down}{again}
  printf(\"%.15g\\n%.15g\\n\", slope, (above - weighed({plain})) / (2 * {step}));
}}
"
    )
}

/// Builds a program's driver. Returns the compiler's output.
fn build(folder: &Path, row: &BenchProgram, program: &str, options: &str) -> String {
    let name = row.name;
    write(folder, "driver.c", &driver(row));
    let source = std::fs::read_to_string(format!("{BENCH}/{name}.c")).expect("it is there");
    let beside = match source.contains("// with mag_ext.c") {
        true => format!("{BENCH}/mag_ext.c"),
        false => String::new(),
    };
    let line = format!(
        "gradus cc -O3 -fno-math-errno -w {options} -I{BENCH} driver.c {beside} -o {program} -lm"
    );
    let output = shell(folder, &line);
    text(&output.stdout) + &text(&output.stderr)
}

/// Returns the output of a program with this number of workers.
fn numbers(folder: &Path, program: &str, workers: u32, forced: bool) -> Vec<f64> {
    let mut command = Command::new(folder.join(program));
    command.env("GRADUS_NUM_THREADS", workers.to_string());
    command.env("GRADUS_FORCE_FORK", u32::from(forced).to_string());
    command.env("TSAN_OPTIONS", "exitcode=66 halt_on_error=1");
    let said = text(&succeeds(&mut command).stdout);
    let parsed = said.lines().map(|line| line.parse().expect("a number"));
    parsed.collect()
}

/// Returns the maximum distance between two vectors, relative to the largest number of the first.
fn distance(of: &[f64], other: &[f64]) -> f64 {
    assert_eq!(of.len(), other.len());
    let largest = of.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    assert!(largest > 0.0 && largest.is_finite(), "{of:?}");
    let pairs = std::iter::zip(of, other);
    pairs.fold(0.0, |most: f64, (x, y)| {
        let distance = (x - y).abs() / largest;
        if distance.is_nan() {
            f64::INFINITY
        } else {
            most.max(distance)
        }
    })
}

/// Checks every `PARTS`-th program from `part` on: parallel against serial, serial against finite
/// differences.
fn check(part: usize) {
    let mut atomic = Vec::new();
    for row in PROGRAMS.iter().skip(part).step_by(PARTS) {
        let name = row.name;
        let folder = folder(&format!("row_{name}"));
        build(&folder, row, "serial", "");
        let flags = "-g -fopenmp --report=full --par-report";
        let report = build(&folder, row, "parallel", flags);
        let carried = "an iteration uses a value of another iteration";
        assert!(!report.contains(carried), "{name}: {report}");
        if report
            .lines()
            .any(|l| l.contains("adjoint additions") && l.contains("atomic ("))
        {
            atomic.push(name);
        }
        let (close, slope) = if row.real == D {
            (1e-10, 1e-6)
        } else {
            (1e-5, 2e-2)
        };
        let serial = numbers(&folder, "serial", 1, false);
        let [gradient @ .., along, difference] = &serial[..] else {
            panic!("{name} printed {serial:?}");
        };
        assert!(
            distance(&[*difference], &[*along]) < slope,
            "{name}: {along}, {difference}"
        );
        for workers in [1, 2, 4] {
            for forced in [false, true] {
                let parallel = numbers(&folder, "parallel", workers, forced);
                let far = distance(gradient, &parallel[..gradient.len()]);
                assert!(
                    far < close,
                    "{name}, {workers} workers, forced {forced}: {far}"
                );
            }
        }
    }
    atomic.retain(|name| !OF_TASKS.contains(name));
    assert!(atomic.is_empty(), "{atomic:?} add atomically");
}

#[test]
fn parallel_gradients_are_the_serial_ones_0() {
    check(0);
}

#[test]
fn parallel_gradients_are_the_serial_ones_1() {
    check(1);
}

#[test]
fn parallel_gradients_are_the_serial_ones_2() {
    check(2);
}

#[test]
fn parallel_gradients_are_the_serial_ones_3() {
    check(3);
}

#[test]
fn parallel_gradients_are_the_serial_ones_4() {
    check(4);
}

#[test]
fn parallel_gradients_are_the_serial_ones_5() {
    check(5);
}

#[test]
fn gradients_run_without_races() {
    for row in PROGRAMS
        .iter()
        .filter(|row| TSAN_PROGRAMS.contains(&row.name))
    {
        let folder = folder(&format!("watched_{}", row.name));
        build(&folder, row, "watched", "-g -fopenmp -fsanitize=thread");
        numbers(&folder, "watched", 4, true);
    }
}
