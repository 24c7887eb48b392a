//! Memory in which a word is a number, an address or an integer at different times: unions, arenas, callables, variants.

use crate::support::{accepts, folder, refuses, shell, text, write};
use std::path::Path;
use std::process::Command;

const C: &str = include_str!("run_time_words.c");
const CPP: &str = include_str!("run_time_words.cpp");
/// Functions of the C program with derivatives.
const NAMES: [&str; 14] = [
    "tree",
    "block",
    "moved",
    "reused",
    "message",
    "erased",
    "shifted",
    "named",
    "converted",
    "chosen",
    "returned",
    "passed",
    "called",
    "swapped",
];
const LEVELS: [&str; 4] = ["-O0", "-O1", "-O2", "-O3"];

#[test]
fn words_of_several_kinds_in_c() {
    let at = folder("run_time_words");
    write(&at, "p.c", C);
    for level in LEVELS {
        for name in NAMES {
            let command = format!("check p.c -f {name} --arg x=rand(5) --arg n=5 -- {level}");
            accepts(&at, &command);
        }
    }
}

#[test]
fn words_of_several_kinds_in_cplusplus() {
    let at = folder("run_time_words_cpp");
    write(&at, "p.cpp", CPP);
    for level in LEVELS {
        for name in [
            "stages",
            "variants",
            "integer_variants",
            "casts",
            "members",
            "guarded",
            "unrolled",
        ] {
            let flags = format!("-std=c++20 {level}");
            let command = format!("check p.cpp -f {name} --arg x=rand(5) --arg n=5 -- {flags}");
            accepts(&at, &command);
        }
    }
}

/// A register holds an integer from one path and a number from another; the program stores it among numbers.
#[test]
fn an_integer_on_one_path_and_a_number_on_another() {
    let at = folder("merged_words");
    write(&at, "p.ll", include_str!("merged_words.ll"));
    for level in LEVELS {
        let arguments = "--arg n=5 --arg x:double=rand(5) --arg keys:double=ones(5)";
        accepts(&at, &format!("check p.ll -f merged {arguments} -- {level}"));
    }
}

/// Floats in integer registers, as results of virtual functions.
#[test]
fn numbers_beside_integers_from_virtual_functions() {
    let at = folder("virtual_results");
    write(&at, "p.cpp", include_str!("virtual_results.cpp"));
    for level in LEVELS {
        let command =
            format!("check p.cpp -f virtual_parts --arg x=rand(5) --arg n=5 --single -- {level}");
        accepts(&at, &command);
    }
}

const CHANGED: &str = "#include <stdio.h>
#include <stdlib.h>
void __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
extern int enzyme_dup, enzyme_const;
union slot { double number; double *address; int count; };
__attribute__((noinline)) static double get(union slot *a, int i) { return a[i].number; }
__attribute__((noinline)) static void count(union slot *a, int i) { a[i].count = 5; }
static double f(const double *x, int n)
{
    union slot *a = malloc(4 * sizeof *a);
    double c = x[1];
    a[0].number = x[0] * x[0];
    a[2].number = x[1];
    a[1].address = &c;
    a[3].count = 0;
    for (int i = 0; i < n; i++)
        count(a, i % 4);
    double s = get(a, 2) * x[1] + get(a, 0);
    free(a);
    return s;
}
int main(int argc, char **argv)
{
    double x[2] = {1.5, 2.5}, g[2] = {0, 0}, t[2] = {1, 0};
    int n = atoi(argv[1]);
    printf(\"%g\\n\", __enzyme_fwddiff((void *)f, enzyme_dup, x, t, enzyme_const, n));
    fflush(stdout);
    __enzyme_autodiff((void *)f, enzyme_dup, x, g, enzyme_const, n);
    printf(\"%g %g\\n\", g[0], g[1]);
    return argc > 2;
}
";

/// A program that stores an integer into a part of a number, and then reads the number, has no derivative: forward mode
/// gives NaN, and reverse mode ends the program.
#[test]
fn an_integer_in_a_part_of_a_number_is_reported() {
    let at = folder("run_time_words_changed");
    write(&at, "p.c", CHANGED);
    for level in LEVELS {
        accepts(&at, &format!("cc {level} p.c -o p"));
        let said = shell(&at, "./p 0");
        assert_eq!(text(&said.stdout), "3\n3 5\n", "{level}");
        let mut changes = Command::new(at.join("p"));
        let said = changes.arg("1").output().expect("it starts");
        assert_eq!(text(&said.stdout), "nan\n", "{level}");
        assert!(text(&said.stderr).contains("GRD0008"), "{level}");
        assert!(!said.status.success(), "{level}");
    }
}

const TEXT: &str = "#include <stdio.h>
#include <string.h>
union slot { double number; char text[8]; };
double printed(const double *x, int n)
{
    union slot v = {x[0] * x[0]};
    snprintf(v.text, sizeof v.text, \"%d\", n);
    return v.number * x[1];
}
double copied(const double *x, const char *word)
{
    union slot v[2] = {{x[0] * x[0]}, {x[1]}};
    strcpy(v[1].text, word);
    return v[0].number * v[1].number;
}
double timed(const double *x, int n)
{
    double v = x[0] * x[0];
    time((long *)&v);
    return v * x[n];
}
";

/// A library function that writes text over a number leaves no derivative.
#[test]
fn text_over_numbers_is_refused() {
    let at = folder("run_time_words_text");
    write(&at, "p.c", &format!("long time(long *);\n{TEXT}"));
    for level in LEVELS {
        for (name, writer) in [
            ("printed", "snprintf"),
            ("copied", "strcpy"),
            ("timed", "time"),
        ] {
            let said = refuses(
                &at,
                &format!("grad p.c -f {name} -o p.o -- {level}"),
                "GRD0008",
            );
            assert!(
                said.contains(&format!("`{writer}` writes over memory")),
                "{level}: {said}"
            );
        }
    }
}

/// Bits of a number that the program converts as an integer have no derivative: the compiler refuses arithmetic on
/// them, and the derivative ends the program where it converts such a word as it is.
#[test]
fn converted_bits_of_numbers_are_reported() {
    let at = folder("run_time_words_bits");
    write(&at, "p.c", C);
    for level in LEVELS {
        for name in ["logarithms", "upper_halves", "returned_halves"] {
            refuses(
                &at,
                &format!("grad p.c -f {name} -o p.o -- {level}"),
                "GRD0008",
            );
        }
        for name in ["bits", "returned_bits"] {
            stops_at_conversion(&at, name, level);
        }
    }
}

/// `check` shows the derivative's own message, with the user's line and function.
fn stops_at_conversion(at: &Path, name: &str, level: &str) {
    let said = refuses(
        at,
        &format!("check p.c -f {name} --arg x=rand(5) --arg n=5 -- {level}"),
        "GRD0008",
    );
    assert!(
        said.contains("error[GRD0008]: the program converts the bits of a number")
            && said.contains(&format!(
                "the reverse derivative of `{name}` ended the program"
            )),
        "{level}: {said}"
    );
    // Optimised code may have the line of the function only.
    let function = C
        .lines()
        .position(|line| line.contains(&format!("double {name}(")));
    let first = function.map_or(0, |line| line + 1);
    let is_at = |line: usize| said.contains(&format!("p.c:{line}:"));
    assert!((first..first + 9).any(is_at), "{level}: {said}");
    let is_in = said.contains(&format!("in function `{name}`"));
    assert!(is_in || level != "-O0", "{level}: {said}");
    assert!(
        !said.contains("GRD0028") && !said.contains("bug in Gradus"),
        "{level}: {said}"
    );
}
