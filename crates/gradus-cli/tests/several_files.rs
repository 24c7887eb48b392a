//! Programs of several files in a single command: a single object replaces theirs, and static names stay
//! separate.

use crate::support::{accepts, folder, refuses, shell, text, write};

const OUTER: &str = "
    double inner(const double *x, int n);
    static double half(double v) { return v / 2; }
    static int calls;
    double outer(const double *x, int n) { calls++; return half(inner(x, n)) * x[0] * x[0]; }
    int outer_calls(void) { return calls; }\n";

const INNER: &str = "
    #include <math.h>
    static double half(double v) { return v * v; }
    static int calls = 10;
    double inner(const double *x, int n) {
        double s = 0;
        calls++;
        for (int i = 0; i < n; i++) s += half(sin(x[i]));
        return s;
    }
    int inner_calls(void) { return calls; }\n";

const PLUS_PLUS: &str = "
    #include <cmath>
    #include <vector>
    extern \"C\" double inner(const double *x, int n) {
        std::vector<double> v(x, x + n);
        double s = 0;
        for (double &e : v) { e = std::sin(e); s += e * e; }
        return s;
    }\n";

const FORTRAN: &str = "
real(8) function inner(x, n) bind(c, name='inner')
  use iso_c_binding
  integer(c_int), value :: n
  real(8), intent(in) :: x(n)
  inner = sum(sin(x)**2)
end function\n";

#[test]
fn several_files_are_one_program() {
    let at = folder("several_files");
    write(&at, "outer.c", OUTER);
    for (name, source) in [
        ("inner.c", INNER),
        ("inner.cpp", PLUS_PLUS),
        ("inner.f90", FORTRAN),
    ] {
        write(&at, name, source);
    }
    shell(&at, "clang-22 -O1 -emit-llvm -c inner.c -o inner.bc");
    shell(&at, "clang-22 -O1 -S -emit-llvm inner.c -o inner.ll");
    shell(&at, "gradus cc -O1 -c inner.c -o carries.o");
    // A file alone is refused.
    refuses(&at, "grad outer.c -f outer -o out.o", "GRD0005");
    let others = ["inner.c", "inner.cpp", "inner.f90", "inner.bc", "inner.ll"];
    for other in others {
        for flags in ["-O0", "-O2 -g", "-O3"] {
            for files in [format!("outer.c {other}"), format!("{other} outer.c")] {
                let line = format!("check {files} -f outer --arg n=5 --arg x=rand(n) -- {flags}");
                let said = accepts(&at, &line);
                assert!(said.contains("the derivative is right"), "{line}: {said}");
            }
        }
    }
    let said = accepts(&at, "grad outer.c carries.o -f outer");
    assert!(
        said.contains("wrote outer.o") && said.contains("wrote outer.h"),
        "{said}"
    );
}

/// The object defines the names of all files, and each file's own variables and functions.
#[test]
fn one_object_replaces_all() {
    let at = folder("several_objects");
    write(&at, "outer.c", OUTER);
    write(&at, "inner.c", INNER);
    write(
        &at,
        "main.c",
        "#include \"whole.h\"
         #include <math.h>
         #include <stdio.h>
         double outer(const double *x, int n); int outer_calls(void), inner_calls(void);
         int main(void) {
             double x[3] = {0.5, 0.25, 2}, a[3] = {0};
             double v = outer(x, 3);
             outer_vjp(x, a, 3, 1.0);
             double s = 0;
             for (int i = 0; i < 3; i++) s += sin(x[i]) * sin(x[i]);
             double d0 = s * x[0] + sin(2 * x[0]) / 2 * x[0] * x[0], d2 = sin(2 * x[2]) / 2 * x[0] * x[0];
             int right = fabs(v - s / 2 * x[0] * x[0]) < 1e-12 && fabs(a[0] - d0) < 1e-12 && fabs(a[2] - d2) < 1e-12;
             printf(\"%d %d %d\\n\", right, outer_calls() >= 1, inner_calls() >= 11);
             return 0;
         }",
    );
    for level in 0..=3 {
        accepts(
            &at,
            &format!("grad outer.c inner.c -f outer -o whole.o -- -O{level}"),
        );
        shell(&at, "clang-22 main.c whole.o -lm -o p");
        assert_eq!(text(&shell(&at, "./p").stdout), "1 1 1\n", "-O{level}");
    }
}

/// Constructors of C++ variables run in the order of the files.
#[test]
fn constructors_run_in_order() {
    let at = folder("several_constructors");
    for (name, number) in [("a", 1), ("b", 2)] {
        let source = format!(
            "extern \"C\" int printf(const char *, ...);
             namespace {{ struct Said {{ Said() {{ printf(\"{number}\"); }} }} said; }}
             extern \"C\" double f{number}(double x) {{ return {number} * x * x; }}\n"
        );
        write(&at, &format!("{name}.cpp"), &source);
    }
    write(
        &at,
        "main.c",
        "double f1_vjp(double, double); double f2_vjp(double, double);\nint main(void) { return f1_vjp(3, 1) != 6 || f2_vjp(3, 1) != 12; }\n",
    );
    for (files, order) in [("a.cpp b.cpp", "12"), ("b.cpp a.cpp", "21")] {
        accepts(&at, &format!("grad {files} -f f1 -f f2 -o both.o"));
        shell(&at, "clang-22 main.c both.o -lstdc++ -o p");
        assert_eq!(text(&shell(&at, "./p").stdout), order, "{files}");
    }
}

#[test]
fn clashing_names_are_reported() {
    let at = folder("several_names");
    write(
        &at,
        "a.c",
        "static double f(double x) { return x * x; }\ndouble a(double x) { return f(x); }\n",
    );
    write(
        &at,
        "b.c",
        "static double f(double x) { return x * 3; }\ndouble b(double x) { return f(x); }\n",
    );
    write(&at, "c.c", "double a(double x) { return x; }\n");
    write(&at, "r.rs", "");
    let said = refuses(&at, "grad a.c c.c -f a -o out.o", "GRD0001");
    assert!(said.contains("c.c") && said.contains("'a'"), "{said}");
    for flags in ["-O0", "-O2 -g"] {
        let said = refuses(
            &at,
            &format!("grad a.c b.c -f f -o out.o -- {flags}"),
            "GRD0017",
        );
        assert!(said.contains("a.c:1") && said.contains("b.c:1"), "{said}");
        accepts(&at, &format!("check a.c b.c -f b --arg x=2 -- {flags}"));
    }
    refuses(&at, "grad a.c r.rs -f a -o out.o", "GRD0035");
    refuses(&at, "grad a.c nowhere.c -f a -o out.o", "GRD0023");
}
