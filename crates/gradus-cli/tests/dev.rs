//! `gradus dev`: the program after a pass (`--after`, `--print`) and the time of each pass (`--time`).

use crate::support::{accepts, folder, gradus, refuses, text, write};
use std::path::PathBuf;

const PROGRAM: &str = "double square(double x) { return x * x; }\n";

/// Returns a folder with the program as `square.c`.
fn program(test: &str) -> PathBuf {
    let at = folder(test);
    write(&at, "square.c", PROGRAM);
    at
}

/// Returns the pass of each dump, in order.
fn dumped(output: &str) -> Vec<&str> {
    let heads = output.lines().filter_map(|l| l.strip_prefix("; after "));
    heads.collect()
}

#[test]
fn after_prints_the_program_after_the_pass_only() {
    let at = program("dev_after");
    let imported = accepts(&at, "dev square.c -f square --after=import");
    assert_eq!(dumped(&imported), ["import"]);
    assert!(imported.contains("func @square("), "{imported}");
    assert!(imported.contains("fmul"), "{imported}");
    assert!(!imported.contains("fadd"), "{imported}");
    // 2x is x + x, or a product with 2.
    let derived = accepts(&at, "dev square.c -f square --after differentiate");
    assert_eq!(dumped(&derived), ["differentiate"]);
    assert!(derived.contains("square_vjp"), "{derived}");
    let both = "dev square.c -f square --after=differentiate --after=import";
    assert_eq!(dumped(&accepts(&at, both)), ["import", "differentiate"]);
}

#[test]
fn a_pass_that_does_not_run_is_named() {
    let at = program("dev_absent");
    let output = gradus(&at, "dev square.c -f square --after=raise");
    assert!(output.status.success());
    assert!(dumped(&text(&output.stdout)).is_empty());
    let said = text(&output.stderr);
    let warning = "warning[GRD0035]: the pass `raise` did not run on this program";
    assert!(said.contains(warning), "{said}");
}

#[test]
fn print_dumps_after_each_pass_in_order() {
    let at = program("dev_print");
    let output = accepts(&at, "dev square.c -f square --print");
    let passes = dumped(&output);
    let place = |name: &str| passes.iter().position(|pass| *pass == name);
    let places = ["import", "simplify", "analyze", "differentiate", "emit"]
        .map(|name| place(name).expect(name));
    assert!(places.is_sorted(), "{passes:?}");
}

#[test]
fn time_prints_one_line_per_pass() {
    let at = program("dev_time");
    let output = accepts(&at, "dev square.c -f square --time");
    let mut passes = Vec::new();
    for line in output.lines() {
        if let [time, "ms", pass] = line.split_whitespace().collect::<Vec<_>>()[..] {
            let time: f64 = time.parse().expect("a number");
            assert!((0.0..600_000.0).contains(&time), "{line}");
            passes.push(pass);
        }
    }
    for pass in ["parse", "import", "differentiate", "export", "emit"] {
        let count = passes.iter().filter(|own| **own == pass).count();
        assert_eq!(count, 1, "{pass}: {output}");
    }
    assert!(dumped(&output).is_empty(), "{output}");
    let without = accepts(&at, "dev square.c -f square");
    assert!(!without.contains(" ms  "), "{without}");
}

#[test]
fn unknown_passes_are_refused_with_the_list() {
    let at = program("dev_unknown");
    let said = refuses(&at, "dev square.c -f square --after=sideways", "GRD0035");
    assert!(said.contains("unknown pass `sideways`"), "{said}");
    assert!(said.contains("pre-ad-llvm, import, raise"), "{said}");
}
