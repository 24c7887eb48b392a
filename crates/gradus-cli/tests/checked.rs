//! `gradus check` reports "right" only for tested derivatives. It reports empty tests, short arrays,
//! functions that do not return, and exceeded limits. It accepts any name of a function or an argument.

use crate::support::{accepts, folder, gradus, refuses, shell, text, write};

/// Runs a check and compares its exit status. Returns its output.
fn check_output(at: &std::path::Path, line: &str, status: i32) -> String {
    let output = gradus(at, &format!("check {line}"));
    let said = text(&output.stdout) + &text(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "check {line}\n{said}");
    said
}

const VACUOUS: &str = r#"
#include <math.h>
#include <stdlib.h>
double squares(const double *x, int n) { double s = 0; for (int i = 0; i < n; i++) s += x[i] * x[i]; return s; }
double early(const double *x, int n, int go) { return go ? squares(x, n) : 0; }
int count(const double *x, int n) { int c = 0; for (int i = 0; i < n; i++) c += x[i] > 0; return c; }
void unwritten(const double *x, double *y, int n) { for (int i = 0; i < n; i++) if (x[i] > 1e9) y[i] = x[i]; }
void set(const double *x, double *y) { y[0] = x[0] > 1e300 ? x[0] : 5; }
double undefined(const double *x) { return sqrt(-1 - x[0] * x[0]); }
double stairs(double x) { return floor(1e6 * x); }
double random_factor(double x) { return x * rand(); }
double counted(double x) { static double calls = 0; calls += 1; return calls * x; }
double sixth(const double *x, int n) { return n > 5 ? x[5] * x[5] : 0; }
double length(const double *x, int n) { return sqrt(squares(x, n)); }
double twice(double x) { return 2 * x; }
double twice_augmented(double x) { return 2 * x; }
double twice_reverse(double x, double cotangent) { return 4 * cotangent; }
void *__enzyme_register_gradient_twice[] = {(void *)twice, (void *)twice_augmented, (void *)twice_reverse};
double wrong(const double *x, int n) { double s = 0; for (int i = 0; i < n; i++) s += twice(x[i]); return s; }
"#;

#[test]
fn empty_tests_are_not_right() {
    let at = folder("checked_nothing");
    write(&at, "v.c", VACUOUS);
    let cases = [
        (
            "squares --arg n=0 --arg x=rand(8)",
            "every derivative is zero",
        ),
        (
            "squares --arg n=0 --arg x=rand(0)",
            "no active argument has an element",
        ),
        ("early --arg n=8 --arg x=rand(8) --arg go=0", "--arg go="),
        ("count --arg n=8 --arg x=rand(8)", "returned no number"),
        (
            "unwritten --arg n=8 --arg x=rand(8) --arg y=zeros(8)",
            "changed no active array",
        ),
        (
            "set --arg x=rand(1) --arg y=rand(8)",
            "every derivative is zero",
        ),
        ("undefined --arg x=rand(1)", "not finite"),
        ("stairs --arg x=0.3", "do not converge"),
        ("random_factor --arg x=0.3", "different results"),
        ("counted --arg x=0.3", "different results"),
        (
            "sixth --arg n=5 --arg x=rand(8)",
            "every derivative is zero",
        ),
        (
            "wrong --arg n=0 --arg x=rand(8)",
            "every derivative is zero",
        ),
    ];
    for ((what, why), level) in cases.into_iter().zip(["-O0", "-O2 -g"].iter().cycle()) {
        let said = check_output(&at, &format!("v.c -f {what} -- {level}"), 1);
        let named = said.contains("error[GRD0027]") && said.contains("nothing was tested");
        assert!(named && said.contains(why), "{what} {level}\n{said}");
        assert!(!said.contains("is right"), "{what} {level}\n{said}");
    }
    // The mismatch is located: the function, and the derivatives that the program registers.
    let said = check_output(&at, "v.c -f wrong --arg n=3 --arg x=rand(8)", 1);
    for part in [
        "GRD0028",
        "v.c:19:",
        "the derivative of this function",
        "void *__enzyme_register_gradient_twice",
        "the program registers this derivative",
        "note: x MISMATCH first at x[0]: reverse ",
    ] {
        assert!(said.contains(part), "{part}\n{said}");
    }
    // The first operation without a value is shown.
    let said = check_output(&at, "v.c -f undefined --arg x=rand(1)", 1);
    let line = VACUOUS
        .lines()
        .position(|line| line.contains("double undefined"));
    let place = format!("v.c:{}:", line.map_or(0, |line| line + 1));
    let named = said.contains("the function is not a number at the given values");
    assert!(
        named && said.contains("warning[GRD0038]") && said.contains(&place),
        "{said}"
    );
}

#[test]
fn zero_derivative_tries_other_points() {
    let at = folder("checked_points");
    write(&at, "v.c", VACUOUS);
    for what in [
        "squares --arg n=8 --arg x=zeros(8)",
        "length --arg n=2 --arg x=[0,0]",
    ] {
        let said = check_output(&at, &format!("v.c -f {what}"), 0);
        assert!(said.contains("right at other values"), "{what}\n{said}");
    }
    // The test along a direction covers entries skipped by the entry test.
    let said = check_output(&at, "v.c -f sixth --arg n=100 --arg x=rand(n)", 0);
    assert!(said.contains("the derivative is right\n"), "{said}");
}

const ARRAYS: &str = r#"
double squares(const double *x, int n) {
    double s = 0;
    for (int i = 0; i < n; i++) s += x[i] * x[i]; /* here */
    return s;
}
double floats(const float *x, int n) { double s = 0; for (int i = 0; i < n; i++) s += x[i] * x[i]; return s; }
double before(const double *x) { return x[-1] * x[0]; }
double last(double *y, const double *x, int n) { for (int i = 0; i <= n; i++) y[i] = x[0]; return y[0]; }
double far(const double *x, int k) { return x[0] * x[k]; }
double picks(const double *x, const int *at, int n) { double s = 0; for (int i = 0; i < n; i++) s += x[at[i]]; return s * s; }
double wide(const double *x, int n) {
    const double *y = __builtin_assume_aligned(x, 64);
    double s = 0;
    for (int i = 0; i < n; i++) s += y[i] * y[i];
    return s;
}
"#;

#[test]
fn short_arrays_are_reported() {
    let at = folder("checked_arrays");
    write(&at, "a.c", ARRAYS);
    let cases = [
        (
            "squares --arg n=9 --arg x=rand(8)",
            "argument `x`: squares reads past the end of the 8 elements",
            "element 8",
        ),
        (
            "floats --arg n=8 --arg x=rand(7)",
            "argument `x`: floats reads past the end of the 7 elements",
            "element 7",
        ),
        (
            "before --arg x=rand(8)",
            "reads before the beginning of the 8 elements",
            "element -1",
        ),
        (
            "last --arg n=5 --arg x=rand(5) --arg y=rand(5)",
            "argument `y`: last writes past the end",
            "element 5",
        ),
        (
            "far --arg k=50000000 --arg x=rand(8)",
            "argument `x`: far reads past the end",
            "element 50000000",
        ),
        (
            "picks --arg n=3 --arg x=rand(8) --arg at=[0,1]",
            "argument `at`: picks reads past the end of the 2",
            "element 2",
        ),
        (
            "picks --arg n=2 --arg x=rand(8) --arg at=[0,8]",
            "argument `x`: picks reads past the end of the 8",
            "element 8",
        ),
    ];
    for (what, message, element) in cases {
        for level in ["-O0", "-O1 -g", "-O3"] {
            let said = check_output(&at, &format!("a.c -f {what} -- {level}"), 1);
            assert!(
                said.contains("error[GRD0027]") && said.contains(message),
                "{what} {level}\n{said}"
            );
            assert!(
                said.contains(element) && !said.contains("MISMATCH"),
                "{what} {level}\n{said}"
            );
        }
    }
    let said = check_output(&at, "a.c -f squares --arg n=9 --arg x=rand(8) -- -O0", 1);
    assert!(said.contains("a.c:4"), "{said}");
    for what in [
        "squares --arg n=7 --arg x=rand(7)",
        "wide --arg n=65 --arg x=rand(65)",
    ] {
        for level in 0..4 {
            accepts(&at, &format!("check a.c -f {what} -- -O{level}"));
        }
    }
}

const ENDS: &str = r#"
#include <stdexcept>
#include <cstdlib>
#include <cstdio>
extern "C" {
double leaves(double x) { if (x < 5) std::exit(3); return x * x; }
double aborts(double x) { if (x < 5) { std::fprintf(stderr, "%g is too small\n", x); std::abort(); } return x * x; }
double throws(double x) { if (x < 5) throw std::out_of_range("too small"); return x * x; }
double loops(double x) { for (volatile int i = 0; x < 5; i = i + 1) {} return x * x; }
double hungry(double x, long n) {
    double *p = (double *)std::malloc(n * sizeof *p);
    for (long i = 0; i < n; i += 512) p[i] = x;
    double s = p[512] * x;
    std::free(p);
    return s;
}
double deep(double x, int n) { volatile double a[1000]; a[n % 1000] = x; return n ? deep(x, n - 1) + a[n % 1000] : x; }
}
"#;

#[test]
fn nonreturning_functions_are_reported() {
    let at = folder("checked_ends");
    write(&at, "e.cpp", ENDS);
    let cases = [
        (
            "leaves --arg x=1",
            1,
            "the function itself exited the program with status 3",
        ),
        ("aborts --arg x=1", 1, "standard error: 1 is too small"),
        (
            "throws --arg x=1",
            1,
            "threw an uncaught exception of type std::out_of_range",
        ),
        (
            "loops --arg x=1 --limit 1",
            3,
            "LIMIT: the check exceeded 1 seconds",
        ),
        (
            "hungry --arg x=1 --arg n=100000000 --max-memory 300M",
            3,
            "LIMIT: the calls of the function itself exceeded the memory limit of 300 MiB",
        ),
        ("deep --arg x=1 --arg n=1000000 -- -O0", 1, "stack overflow"),
    ];
    for (what, status, message) in cases {
        let said = check_output(&at, &format!("e.cpp -f {what}"), status);
        assert!(said.contains(message), "{what}\n{said}");
        assert!(!said.contains("segmentation fault"), "{what}\n{said}");
    }
    for what in ["leaves", "aborts", "throws", "loops"] {
        accepts(&at, &format!("check e.cpp -f {what} --arg x=8"));
    }
    accepts(&at, "check e.cpp -f hungry --arg x=8 --arg n=10000");
}

/// Simplex noise in single precision, and a rule with a small error.
const STEEP: &str = r#"
#include <math.h>
#include <stdint.h>
static float slope(uint32_t h, float x, float y) {
    const float a = h & 4 ? y : x, b = h & 4 ? x : y;
    return (h & 1 ? -a : a) + (h & 2 ? -2.0f * b : 2.0f * b);
}
static uint32_t mix(int i, int j) { uint32_t h = (uint32_t)i * 374761393u + (uint32_t)j * 668265263u; h = (h ^ h >> 13) * 1274126177u; return h >> 16; }
static float corner(uint32_t h, float x, float y) {
    const float a = 0.5f - x * x - y * y;
    return a > 0 ? a * a * a * a * slope(h, x, y) : 0;
}
float noise(float x, float y, float frequency) {
    const float skew = 0.36602540f, back = 0.21132487f;
    x *= frequency; y *= frequency;
    const float s = (x + y) * skew, i = floorf(x + s), j = floorf(y + s), t = (i + j) * back;
    const float u = x - (i - t), v = y - (j - t);
    const int p = u > v;
    return 40 * (corner(mix((int)i, (int)j), u, v) + corner(mix((int)i + p, (int)j + 1 - p), u - p + back, v - 1 + p + back)
                 + corner(mix((int)i + 1, (int)j + 1), u - 1 + 2 * back, v - 1 + 2 * back));
}
float steep(float x) { return tanhf(1e3f * (x - 1)); }
float part(float x) { return x * x; }
float part_augmented(float x) { return x * x; }
float part_reverse(float x, float cotangent) { return 2.1f * x * cotangent; }
void *__enzyme_register_gradient_part[] = {(void *)part, (void *)part_augmented, (void *)part_reverse};
float wrong(float x) { return tanhf(300 * (part(x) - 1)); }
"#;

#[test]
fn steep_float_functions_tolerance() {
    let at = folder("checked_steep");
    write(&at, "n.c", STEEP);
    for frequency in ["0.01", "1", "3.7"] {
        for (x, y) in [
            ("0.3", "-20.3"),
            ("12.7", "777.1"),
            ("1000.9", "0.7"),
            ("-150.2", "0.7"),
        ] {
            let line =
                format!("check n.c -f noise --arg x={x} --arg y={y} --arg frequency={frequency}");
            let output = gradus(&at, &line);
            let said = text(&output.stdout);
            assert!(!said.contains("MISMATCH"), "{line}\n{said}");
        }
    }
    for x in ["1.0004", "0.999", "1.002"] {
        accepts(&at, &format!("check n.c -f steep --arg x={x}"));
        let said = check_output(&at, &format!("n.c -f wrong --arg x={x}"), 1);
        assert!(said.contains("MISMATCH"), "{x}\n{said}");
    }
}

const FORTRAN: &str = "
module m
  implicit none
contains
  real(8) function total(x)
    real(8), intent(in) :: x(:)
    total = sum(x**2)
  end function
  subroutine spread(a, y, k)
    real(4), intent(in) :: a(:,:)
    real(4), intent(inout) :: y(0:)
    integer, intent(in) :: k
    integer :: j
    do j = 1, size(a, 2)
      y(j - 1) = y(j - 1) * sum(a(:, j)) ** k
    end do
  end subroutine
  real(8) function nothing(x)
    real(8), intent(in) :: x(:)
    nothing = 1d0
    if (size(x) > 100) nothing = sum(x**2)
  end function
  real(8) function chosen(x, at)
    real(8), intent(in) :: x(:)
    integer, intent(in) :: at(:)
    chosen = sum(x(at)**2)
  end function
  real(8) function beyond(x, n)
    real(8), intent(in) :: x(:)
    integer, intent(in) :: n
    beyond = x(n) * x(1)
  end function
  real(8) function owned(x)
    real(8), allocatable, intent(in) :: x(:)
    owned = sum(x)
  end function
  real(8) function led(x)
    real(8), pointer, intent(in) :: x(:)
    led = sum(x)
  end function
end module
";

#[test]
fn assumed_shapes_have_descriptors() {
    let at = folder("checked_fortran");
    write(&at, "m.f90", FORTRAN);
    for level in ["-O0", "-O2"] {
        let right = [
            "total --arg x=rand(8)",
            "spread --arg a=rand(3,4) --arg y=rand(4) --arg k=2",
            "chosen --arg x=rand(8) --arg at=[1,3,8]",
            "beyond --arg x=rand(8) --arg n=8",
        ];
        for what in right {
            accepts(&at, &format!("check m.f90 -f {what} -- {level}"));
        }
        let said = check_output(
            &at,
            &format!("m.f90 -f nothing --arg x=rand(8) -- {level}"),
            1,
        );
        assert!(said.contains("nothing was tested"), "{said}");
        let said = check_output(
            &at,
            &format!("m.f90 -f beyond --arg x=rand(8) --arg n=9 -- {level}"),
            1,
        );
        assert!(
            said.contains("argument `x`: ") && said.contains("past the end of the 8"),
            "{said}"
        );
    }
    let said = refuses(&at, "check m.f90 -f owned --arg x=rand(8)", "GRD0027");
    assert!(said.contains("`x` is allocatable"), "{said}");
    let said = refuses(&at, "check m.f90 -f led --arg x=rand(8)", "GRD0027");
    assert!(said.contains("`x` is a Fortran pointer"), "{said}");
    let said = refuses(
        &at,
        "check m.f90 -f spread --arg a=rand(3) --arg y=rand(4) --arg k=2",
        "GRD0027",
    );
    assert!(said.contains("2 dimensions"), "{said}");
}

const OVERLOADS: &str = "
struct P { double k; double scaled(double x) const { return k * x * x; } };
namespace a { double f(double x) { return x * x; } float f(float x) { return 3 * x; } }
namespace b { double f(double x, int n) { double r = 1; for (int i = 0; i < n; i++) r *= x; return r; } }
template <class T> T cube(T x) { return x * x * x; }
template double cube<double>(double);
template float cube<float>(float);
static double __attribute__((noinline)) local(double x) { return x * x * x; }
double keep(const P &p, double x) { return p.scaled(x) + local(x); }
";

#[test]
fn overloads_and_methods_are_found() {
    let at = folder("checked_symbols");
    write(&at, "o.cpp", OVERLOADS);
    for flags in ["-O0", "-O2", "-O2 -g", "-O0 -g"] {
        for what in [
            "_ZN1a1fEd",
            "a::f(double)",
            "b::f --arg n=4",
            "_ZN1a1fEf",
            "_ZN1b1fEdi --arg n=4",
            "_Z4cubeIdET_S0_",
            "cube<float>",
            "local",
            "_Z4keepRK1Pd --arg p:double=rand(1)",
        ] {
            accepts(&at, &format!("check o.cpp -f {what} -- {flags}"));
        }
    }
    accepts(
        &at,
        "check o.cpp -f scaled --arg this:double=rand(1) -- -O0 -g",
    );
}

const NAMES: &str = r#"
define double @"f.1"(double %.1, ptr %b.c, ptr %b_c, ptr %new, ptr %b_c_adj, i32 %linux) {
  %v = load double, ptr %b.c
  %w = load double, ptr %b_c
  %n = load double, ptr %new
  %a = load double, ptr %b_c_adj
  %r = fmul double %v, %.1
  %s = fmul double %w, %n
  %t = fmul double %s, %a
  %i = sitofp i32 %linux to double
  %u = fmul double %t, %i
  %z = fadd double %r, %u
  ret double %z
}
"#;

#[test]
fn invalid_c_names_are_renamed() {
    let at = folder("checked_names");
    write(&at, "n.ll", NAMES);
    let values = "--arg b.c:double=rand(1) --arg b_c:double=rand(1) --arg new:double=rand(1) --arg b_c_adj:double=2 --arg linux=3";
    accepts(&at, &format!("check n.ll -f f.1 {values}"));
    for (mode, suffix) in [("reverse", "vjp"), ("forward", "jvp")] {
        accepts(&at, &format!("grad n.ll -f f.1 --mode {mode} -o {mode}.o"));
        for (name, compiler) in [("c", "clang-22"), ("cpp", "clang++-22")] {
            write(
                &at,
                &format!("use_{mode}.{name}"),
                &format!("#include \"{mode}.h\"\nvoid *p = (void *)f_1_{suffix};\n"),
            );
            shell(
                &at,
                &format!("{compiler} -Wall -Werror -c use_{mode}.{name} -o use.o"),
            );
        }
    }
    accepts(&at, "grad n.ll -f f.1 --wrt .1,b.c -o some.o");
}

const VALUES: &str = "
double over(const int *n, const double *x, const double *scale) { double s = 0; for (int i = 0; i < *n; i++) s += x[i] * x[i]; return *scale * s; }
double half(double x, int k) { return x * x * k; }
double rows(double **x) { return x[0][0]; }
struct pair { double a; int b; };
double of(const struct pair *p) { return p->a * p->b; }
";

#[test]
fn argument_values() {
    let at = folder("checked_values");
    write(&at, "v.c", VALUES);
    let said = check_output(
        &at,
        "v.c -f over --arg n=6 --arg x=rand(n) --arg scale=1/2",
        0,
    );
    assert!(said.contains("6 of 6 entries"), "{said}");
    accepts(
        &at,
        "check v.c -f over --arg n=[6] --arg x=rand(6) --arg scale=[0.5]",
    );
    // The argument `k` does not clash with a loop variable of the generated driver.
    accepts(&at, "check v.c -f half --arg k=3 --arg x=k/2");
    let cases = [
        (
            "over --arg n=rand(1) --arg x=rand(6) --arg scale=1",
            "`n` holds integers",
        ),
        (
            "over --arg n=6.5 --arg x=rand(6) --arg scale=1",
            "6.5 is not a valid value of `n`",
        ),
        (
            "over --arg n=3000000000 --arg x=rand(6) --arg scale=1",
            "3000000000 is not a valid value of `n`",
        ),
        (
            "over --arg n=6 --arg x=gauss(n) --arg scale=1",
            "the generators are rand, zeros, ones",
        ),
        (
            "over --arg n=6 --arg x=rand(m) --arg scale=1",
            "`m` in the value of `x`",
        ),
        (
            "over --arg n=6 --arg n=7 --arg x=rand(n) --arg scale=1",
            "`n` has two values",
        ),
        (
            "over --arg n=6 --arg x=rand(0-3) --arg scale=1",
            "`x` cannot have a length of -3",
        ),
        ("over", "--arg n=100"),
        ("rows --arg x=rand(4)", "`x` is a pointer to pointers"),
        ("of --arg p=rand(2)", "the element type of `p`"),
        ("of --arg p:pair=rand(2)", "supported number type"),
    ];
    for (what, message) in cases {
        let said = refuses(&at, &format!("check v.c -f {what}"), "GRD0027");
        assert!(said.contains(message), "{what}\n{said}");
    }
}

/// A `double` function that rounds to `float` in between is checked with the tolerance of `float`.
#[test]
fn single_precision_inside_a_function_is_detected() {
    let at = folder("checked_single");
    let program =
        "double f(double x) { float y = (float)(x * x); float z = y * y * 3.1f; return z * x; }\n";
    write(&at, "p.c", program);
    for level in ["-O0", "-O2"] {
        accepts(&at, &format!("check p.c -f f --arg x=1.3 -- {level}"));
    }
}
