//! Functions that read active values from their variadic arguments.

use crate::support::{accepts, folder, refuses, write};

const ACCEPTED: &str = include_str!("variadic_functions.c");

/// The derivative follows numbers, addresses and structures through variadic arguments.
#[test]
fn variadic_arguments_have_derivatives() {
    let at = folder("variadic_functions");
    write(&at, "p.c", ACCEPTED);
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        for name in [
            "numbers",
            "addresses",
            "structures",
            "recursive",
            "integers",
        ] {
            accepts(&at, &format!("check p.c -f {name} --arg x=1.3 -- {level}"));
        }
        accepts(
            &at,
            &format!("check p.c -f in_registers --arg f=1.3 -- {level}"),
        );
    }
}

const REFUSED: &str = "#include <stdarg.h>
#include <stdio.h>
struct narrow { float x; };
struct large { double a, b, c; };
static double sum(int, ...), labelled(const char *, int, ...), structures(const char *, int, ...);
static double (*volatile by_address)(int, ...) = sum;
double called(double x) { return by_address(2, x, 3.0) * x; } // called
double printed(double x) { return labelled(\"%g %g\\n\", 2, x, 3.0) * x; } // printed
double moved(double x)
{
    struct narrow n = {(float)x};
    struct large l = {x, x * x, 3};
    return structures(\"\", 2, n, l) * x; // moved
}
static double sum(int n, ...)
{
    va_list list;
    double s = 0;
    va_start(list, n);
    while (n-- > 0)
        s += va_arg(list, double);
    va_end(list);
    return s;
}
static double labelled(const char *label, int n, ...)
{
    va_list list, again;
    double s = 0;
    va_start(list, n);
    va_copy(again, list);
    vprintf(label, again);
    while (n-- > 0)
        s += va_arg(list, double);
    va_end(list);
    va_end(again);
    return s;
}
static double structures(const char *label, int n, ...)
{
    va_list list;
    va_start(list, n);
    double s = va_arg(list, struct narrow).x;
    struct large l = va_arg(list, struct large);
    vprintf(label, list);
    va_end(list);
    return s + l.a * l.b + n;
}
";

/// Calls by address, and functions that also pass the arguments to a function outside the program, are refused.
#[test]
fn arguments_that_leave_the_program_are_refused() {
    let at = folder("variadic_refused");
    write(&at, "p.c", REFUSED);
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        for (name, code) in [
            ("called", "GRD0018"),
            ("printed", "GRD0034"),
            ("moved", "GRD0034"),
        ] {
            let line = REFUSED
                .lines()
                .position(|line| line.ends_with(&format!("// {name}")));
            let place = format!("p.c:{}:", line.map_or(0, |line| line + 1));
            let command = format!("grad p.c -f {name} -o out.o -- {level}");
            let said = refuses(&at, &command, code);
            assert!(said.contains(&place), "{name}: {said}");
        }
    }
}
