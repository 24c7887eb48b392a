//! The contracts of a generated header. The header is valid C and C++; outputs behind structures and
//! descriptors have shadows. Arguments named like keywords are renamed, and a zero derivative is refused.

use crate::support::{accepts, folder, gradus, refuses, shell, succeeds, text, write};
use std::process::Command;

/// An output whose address is in a structure.
#[test]
fn an_output_behind_a_structure_has_a_shadow() {
    let at = folder("outputs_in_structures");
    write(
        &at,
        "s.c",
        "struct vec { double *p; int n; };
         void square(const struct vec *x, struct vec *y) { for (int i = 0; i < x->n; i++) y->p[i] = x->p[i] * x->p[i]; }
         void rows(const double *x, double **y) { y[1][0] = x[0] * x[0] * x[0]; }
         void weighed(const double *x, const struct vec *w, double *y) { for (int i = 0; i < w->n; i++) y[i] = x[i] * w->p[i]; }\n",
    );
    write(
        &at,
        "main.c",
        "#include <stdio.h>
         struct vec { double *p; int n; };
         #include \"s.h\"
         int main(void) {
             double x[2] = {3, 5}, y[2], dx[2] = {0}, dy[2] = {1, 10};
             struct vec vx = {x, 2}, vy = {y, 2}, sx = {dx, 2}, sy = {dy, 2};
             square_vjp(&vx, &sx, &vy, &sy);
             printf(\"%g %g %g %g\\n\", dx[0], dx[1], dy[0], y[1]);
             double *r[2] = {0, y}, *dr[2] = {0, dy};
             dx[0] = 0, dy[0] = 1;
             rows_vjp(x, dx, r, dr);
             dy[0] = dy[1] = 1;
             dx[1] = 0;
             weighed_vjp(x, dx, &vx, y, dy);
             printf(\"%g %g\\n\", dx[0], dx[1]);
         }\n",
    );
    for level in ["-O0", "-O2"] {
        let line = format!("grad s.c -f square -f rows -f weighed --wrt x -o s.o -- {level}");
        let output = gradus(&at, &line);
        let said = text(&output.stderr);
        assert!(output.status.success(), "{said}");
        assert_eq!(said.matches("has a shadow, too").count(), 3, "{said}");
        shell(&at, "clang-22 main.c s.o -o main");
        let said = text(&succeeds(Command::new("./main").current_dir(&at)).stdout);
        assert_eq!(said, "6 100 0 25\n30 5\n", "{level}");
    }
}

/// A descriptor passes an assumed-shape array, and another descriptor passes the shadow.
#[test]
fn an_output_behind_a_descriptor_has_a_shadow() {
    let at = folder("outputs_in_descriptors");
    write(
        &at,
        "s.f90",
        "subroutine square(x, n, y)
           integer, intent(in) :: n
           real(8), intent(in) :: x(:)
           real(8), intent(out) :: y(:)
           integer :: i
           do i = 1, n
             y(i) = x(i) * x(i)
           end do
         end subroutine
         subroutine plain(x, new, y)
           real(8), intent(in) :: x(3), new
           real(8), intent(out) :: y(3)
           y = x * new
         end subroutine\n",
    );
    accepts(&at, "grad s.f90 -f square -f plain --wrt x -o s.o");
    let header = std::fs::read_to_string(at.join("s.h")).expect("a header");
    assert!(
        header.contains("square_vjp(void *x, void *x_adj, int32_t *n, void *y, void *y_adj)"),
        "{header}"
    );
    assert!(
        header.contains("x, y: the address of a Fortran descriptor"),
        "{header}"
    );
    assert!(
        header.contains(
            "plain_vjp(double *x, double *x_adj, double *new_, double *y, double *y_adj)"
        ),
        "{header}"
    );
    let include = "#include \"s.h\"\n";
    write(&at, "use.c", include);
    write(&at, "use.cpp", include);
    shell(&at, "clang-22 -Wall -Werror -c use.c -o use.o");
    shell(&at, "clang++-22 -Wall -Werror -c use.cpp -o use.o");
}

#[test]
fn a_derivative_by_name_that_is_zero_is_refused() {
    let at = folder("zero_by_name");
    write(
        &at,
        "z.c",
        "#include <math.h>
         double out, *kept;
         double steps(const double *x) { return floor(x[0]); }
         void to_global(const double *x) { out = x[0] * x[0]; }
         void to_kept(const double *x) { kept[0] = x[0] * x[0]; }
         void shut(const double *x, double *y) { y[0] = x[0] * x[0]; }
         void clears(double *x) { x[0] = 0; }\n",
    );
    for level in ["-O0", "-O2"] {
        for function in ["steps", "to_global", "to_kept", "shut --inactive y"] {
            for mode in ["forward", "reverse"] {
                let line =
                    format!("grad z.c -f {function} --wrt x --mode {mode} -o z.o -- {level}");
                refuses(&at, &line, "GRD0019");
                assert!(!at.join("z.o").exists(), "{line}");
            }
        }
        accepts(&at, &format!("grad z.c -f clears -o c.o -- {level}"));
    }
}

/// Checks each sentence of the header from a caller's view.
#[test]
fn header_contracts_hold() {
    let at = folder("said_in_headers");
    write(
        &at,
        "s.c",
        "double f(const double *x, double *y, int n, double a) { double s = 0; for (int i = 0; i < n; i++) { s += a * x[i] * y[i]; y[i] = x[i] * x[i]; } return s; }\n",
    );
    accepts(&at, "grad s.c -f f --with-primal -o s.o");
    let header = std::fs::read_to_string(at.join("s.h")).expect("a header");
    for said in [
        "adjoints are added into this memory",
        "the cotangents are read from the memory and cleared",
        "A shadow must not overlap the arguments.",
    ] {
        assert!(header.contains(said), "{header}");
    }
    assert!(!header.contains("inactive."), "{header}");
    write(
        &at,
        "main.c",
        "#include \"s.h\"
         #include <stdio.h>
         int main(void) {
             const double x[2] = {2, 3};
             double y[2] = {5, 7}, dx[2] = {100, 200}, dy[2] = {1, 10};
             /* dx[i] += 2 x[i] dy[i] + a y[i]; dy[i] = a x[i] */
             struct f_adj r = f_vjp(x, dx, y, dy, 2, 4.0, 1.0);
             printf(\"%g %g  %g %g  %g %g  %g %g\\n\", dx[0], dx[1], dy[0], dy[1], y[0], y[1], r.value, r.a);
         }\n",
    );
    let files = ["main.c", "main.cpp"];
    std::fs::copy(at.join("main.c"), at.join("main.cpp")).expect("copied");
    for (compiler, file) in ["clang-22", "clang++-22"].iter().zip(files) {
        shell(&at, &format!("{compiler} -Wall -Werror {file} s.o -o main"));
        let said = text(&succeeds(Command::new("./main").current_dir(&at)).stdout);
        assert_eq!(said, "124 288  8 12  4 9  124 31\n", "{compiler}");
    }
    accepts(&at, "grad s.c -f f --mode forward -o t.o");
    let header = std::fs::read_to_string(at.join("t.h")).expect("a header");
    assert!(
        header.contains("pointers is updated as f updates the memory of the argument."),
        "{header}"
    );
    write(
        &at,
        "forward.c",
        "#include \"t.h\"
         #include <stdio.h>
         int main(void) {
             const double x[2] = {2, 3};
             double y[2] = {5, 7}, tx[2] = {1, 0}, ty[2] = {0, 1};
             /* a_tan x y + a (x_tan y + x y_tan); y_tan = 2 x x_tan */
             double t = f_jvp(x, tx, y, ty, 2, 4.0, 0.5);
             printf(\"%g %g %g\\n\", t, ty[0], ty[1]);
         }\n",
    );
    shell(&at, "clang-22 -Wall -Werror forward.c t.o -o forward");
    let said = text(&succeeds(Command::new("./forward").current_dir(&at)).stdout);
    assert_eq!(said, "47.5 4 0\n");
}

/// Functions that take and return structures. The header defines structures without a tag in the source;
/// the cotangent of a structure is an argument per member.
#[test]
fn byval_structures_in_headers() {
    let at = folder("structures_in_headers");
    write(
        &at,
        "s.c",
        "#include <complex.h>
         typedef struct { double a, b; } two; typedef struct { double a[5]; int k; } five;
         typedef struct { float x, y, z; } vec; typedef struct { double d; int i; } mixed;
         two pair(double x, double y) { two r = {x * y, x}; return r; }
         vec three(float x) { vec r = {x, x * x, 1}; return r; }
         mixed with_int(double x) { mixed r = {x * x, 3}; return r; }
         double complex squared(double complex z) { return z * z; }
         double product(two p, int n) { return p.a * p.b * n; }
         double large(five p) { return p.a[0] * p.a[1] * p.k; }\n",
    );
    let names = ["pair", "three", "with_int", "squared", "product", "large"];
    let functions: Vec<String> = names.iter().map(|name| format!("-f {name}")).collect();
    let functions = functions.join(" ");
    for mode in ["forward", "reverse"] {
        accepts(
            &at,
            &format!("grad s.c {functions} --mode {mode} -o {mode}.o"),
        );
        for (compiler, file) in [("clang-22", "h.c"), ("clang++-22", "h.cpp")] {
            write(&at, file, &format!("#include \"{mode}.h\"\n"));
            shell(&at, &format!("{compiler} -Wall -Werror -c {file} -o h.o"));
        }
    }
    write(
        &at,
        "main.c",
        "#include \"reverse.h\"
         #include <stdio.h>
         int main(void) {
             struct pair_adj p = pair_vjp(3, 5, 10, 100);
             float t = three_vjp(3, 1, 10, 100);
             double w = with_int_vjp(3, 10);
             struct squared_adj z = squared_vjp(2, 3, 1, 0);
             struct product_adj q = product_vjp(3, 5, 2, 1);
             struct large_argument0 l = {{3, 5}, 2}, m = {{0}};
             large_vjp(l, &m, 1);
             printf(\"%g %g  %g  %g  %g %g  %g %g  %g %g\\n\", p.x, p.y, t, w, z.z_0, z.z_1, q.p_0, q.p_1, m.member0[0], m.member0[1]);
         }\n",
    );
    shell(&at, "clang-22 -Wall -Werror main.c reverse.o -o main");
    let said = text(&succeeds(Command::new("./main").current_dir(&at)).stdout);
    assert_eq!(said, "150 30  61  60  4 -6  10 6  10 6\n");
}

/// Outputs allocated by the function have no cotangents in a combined gradient.
#[test]
fn allocated_output_is_refused() {
    let at = folder("allocated_outputs");
    write(
        &at,
        "o.c",
        "#include <stdint.h>
         #include <stdlib.h>
         void behind(const double *x, double **y, int n) { *y = malloc(n * 8); for (int i = 0; i < n; i++) (*y)[i] = x[i] * x[i]; }
         double *given(const double *x, int n) { double *y = malloc(n * 8); for (int i = 0; i < n; i++) y[i] = x[i] * x[i]; return y; }
         void number(const double *x, uintptr_t o, int n) { double *y = (double *)o; for (int i = 0; i < n; i++) y[i] = x[i] * x[i]; }
         void either(const double *x, double **y, int n) { if (!*y) *y = malloc(n * 8); for (int i = 0; i < n; i++) (*y)[i] = x[i] * x[i]; }
         double both(const double *x, double **y, int n) { *y = malloc(n * 8); for (int i = 0; i < n; i++) (*y)[i] = x[i] * x[i]; return (*y)[0]; }\n",
    );
    for level in ["-O0", "-O2"] {
        for (function, cause) in [
            ("behind", "memory that the function allocates"),
            ("given", "allocate the output in the caller"),
            ("number", "an integer cast to a pointer"),
        ] {
            let line = format!("grad o.c -f {function} --wrt x -o o.o -- {level}");
            let said = refuses(&at, &line, "GRD0019");
            assert!(said.contains(cause), "{line}: {said}");
        }
        for function in ["either", "both"] {
            accepts(
                &at,
                &format!("grad o.c -f {function} --wrt x -o o.o -- {level}"),
            );
        }
    }
}
