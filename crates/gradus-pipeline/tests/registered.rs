//! Registrations by programs: custom derivatives, inactive functions, functions that resemble known
//! functions, and allocators; by variables, attributes, and texts among a call's arguments.

use crate::support::{calls, check_program, findings, link_and_run, refused, run};
use gradus_ir::Code;
use gradus_pipeline::{Level, OutputKind};

const DECLARATIONS: &str = "
extern int enzyme_const, enzyme_dup, enzyme_out;
extern double __enzyme_autodiff(void *, ...);
extern void __enzyme_autodiff_v(void *, ...);
extern double __enzyme_fwddiff(void *, ...);
#define KEEP __attribute__((noinline))
static int augmented, reversed, forwarded;
";

macro_rules! programs {
    ($($name:ident: $source:literal;)*) => { $(
        #[test]
        fn $name() {
            check_program(&format!("{DECLARATIONS}{}", $source));
        }
    )* };
}

programs! {
    a_gradient_of_memory: "
        KEEP static void square(const double *x, double *y) { *y = *x * *x; }
        static void *aug(const double *x, double *dx, double *y, double *dy) { augmented++; *y = 7; double *t = malloc(8); *t = *x; return t; }
        static void rev(const double *x, double *dx, double *y, double *dy, void *tape) { reversed++; *dx += 100 * *(double *)tape * *dy; *dy = 0; free(tape); }
        void *__enzyme_register_gradient_square[] = {(void *)square, (void *)aug, (void *)rev};
        double f(double x) { double y; square(&x, &y); return 3 * y; }
        int main(void) {
            NEAR(__enzyme_autodiff((void *)f, 2.0), 600);
            if (augmented != 1 || reversed != 1) return 1;
            double x = 2, dx = 0, y = 0, dy = 1;
            __enzyme_autodiff_v((void *)square, &x, &dx, &y, &dy);
            NEAR(dx, 200); NEAR(y, 7); NEAR(dy, 0);
        }";
    a_gradient_of_numbers: "
        struct kept { void *tape; double value; };
        struct two { double x, y; };
        KEEP double mul(double x, double y) { return x * y; }
        static struct kept aug(double x, double y) { augmented++; struct kept k = {0, x * y}; return k; }
        static struct two rev(double x, double y, double d, void *tape) { reversed++; struct two t = {10 * d * y, 10 * d * x}; return t; }
        void *__enzyme_register_gradient_mul[3] = {(void *)mul, (void *)aug, (void *)rev};
        double f(double x, int n) { double r = 1; for (int i = 0; i < n; i++) r = mul(r, x) + x; return r; }
        int main(void) {
            NEAR(__enzyme_autodiff((void *)f, 2.0, 1), 1 + 10);
            NEAR(__enzyme_autodiff((void *)mul, enzyme_out, 2.0, enzyme_const, 5.0), 50);
            if (augmented != 2 || reversed != 2) return 1;
        }";
    a_gradient_of_a_function_that_is_elsewhere: "
        double outside(double x, const double *p);
        static double aug(double x, const double *p, double *dp) { return outside(x, p); }
        static double rev(double x, const double *p, double *dp, double d) { dp[0] += d * x; return d * p[0]; }
        void *__enzyme_register_gradient_outside[] = {(void *)outside, (void *)aug, (void *)rev};
        double f(double x, double *p) { return outside(x * x, p) + x; }
        int main(void) {
            double p = 5, dp = 0;
            NEAR(__enzyme_autodiff((void *)f, 3.0, &p, &dp), 2 * 3 * 5 + 1); NEAR(dp, 9);
        }
        double outside_(double x, const double *p) __asm__(\"outside\");
        __attribute__((used)) KEEP double outside_(double x, const double *p) { return x * p[0]; }";
    derivatives_of_forward_mode: "
        struct both { double value, tangent; };
        KEEP double cube(double x) { return x * x * x; }
        static double dcube(double x, double dx) { forwarded++; return 50 * dx; }
        void *__enzyme_register_derivative_cube[] = {(void *)cube, (void *)dcube};
        KEEP double dot(const double *x, int n) { double s = 0; for (int i = 0; i < n; i++) s += x[i] * x[i]; return s; }
        static struct both ddot(const double *x, const double *dx, int n) { forwarded++; struct both b = {dot(x, n), 1000 * dx[0]}; return b; }
        void *__enzyme_register_derivative_dot[] = {(void *)dot, (void *)ddot};
        double f(double x) { return cube(x) + x; }
        double g(const double *x) { return 2 * dot(x, 2); }
        int main(void) {
            NEAR(__enzyme_fwddiff((void *)f, 2.0, 3.0), 153);
            double x[2] = {1, 2}, dx[2] = {1, 1};
            NEAR(__enzyme_fwddiff((void *)g, x, dx), 2000);
            if (forwarded != 2) return 1;
            NEAR(__enzyme_autodiff((void *)f, 2.0), 13);
        }";
    functions_like_known_ones: "
        KEEP double my_log1p(double x) { return 1e9 * x; }
        void *__enzyme_function_like_a[] = {(void *)my_log1p, (void *)\"log1p\"};
        __attribute__((annotate(\"enzyme_function_like=sin\"))) KEEP double my_sin(double x) { return 5 * x; }
        double f(double x) { return my_log1p(x) + my_sin(x) * x; }
        int main(void) {
            NEAR(__enzyme_autodiff((void *)f, 1.5), 1 / 2.5 + 7.5 + 1.5 * cos(1.5));
            NEAR(__enzyme_fwddiff((void *)f, 1.5, 2.0), 2 * (1 / 2.5 + 7.5 + 1.5 * cos(1.5)));
        }";
    inactive_functions: "
        static double seen;
        double outside(double *x);
        KEEP void look(double *x) { seen += *x; }
        static KEEP __attribute__((annotate(\"enzyme_inactive\"))) double twice(double x) { return 2 * x; }
        void *__enzyme_inactivefn[] = {(void *)look, (void *)outside};
        double f(double *x) { look(x); return *x * *x * twice(*x) + outside(x); }
        int main(void) {
            double x = 3, dx = 0;
            __enzyme_autodiff_v((void *)f, &x, &dx);
            NEAR(dx, 2 * 3 * 6);
            if (seen != 3) return 1;
            dx = 1;
            NEAR(__enzyme_fwddiff((void *)f, &x, &dx), 36);
        }
        double outside_(double *x) __asm__(\"outside\");
        __attribute__((used)) KEEP double outside_(double *x) { return 8 * *x; }";
    allocations_of_ones_own: "
        static char pool[1 << 16]; static size_t used; static int freed;
        KEEP void *take(void *where, size_t bytes) { void *p = pool + used; used += (bytes + 15) & -16; return p; }
        KEEP void give(void *p) { freed++; }
        void *__enzyme_allocation_like_take[4] = {(void *)take, (void *)1, (void *)\"-1\", (void *)give};
        double f(const double *x, int n) {
            double *work = take(pool, n * sizeof *work), s = 0;
            for (int i = 0; i < n; i++) work[i] = x[i] * x[i];
            for (int i = 0; i < n; i++) s += work[i] * work[(i + 1) % n];
            give(work);
            return s;
        }
        int main(void) {
            double x[2] = {2, 3}, dx[2] = {0};
            __enzyme_autodiff_v((void *)f, x, dx, 2);
            NEAR(dx[0], 4 * 2 * 9); NEAR(dx[1], 4 * 3 * 4);
            if (freed != 1) return 1;
        }";
}

#[test]
fn texts_among_the_arguments_are_words_too() {
    let module = "
define double @f(double %x, double %y) {
  %1 = fmul double %x, %x
  %2 = fmul double %1, %y
  ret double %2
}
declare double @__enzyme_autodiff(...)
define i32 @main() {
  %1 = call double (...) @__enzyme_autodiff(ptr @f, metadata !\"enzyme_const\", double 3.0, metadata !\"enzyme_out\", double 5.0)
  %2 = fcmp une double %1, 9.0
  %3 = zext i1 %2 to i32
  ret i32 %3
}";
    let reply = run(module.into(), calls(), Level::O1, &[OutputKind::Object]);
    let object = reply.output(OutputKind::Object);
    let object = object.unwrap_or_else(|| panic!("{}", findings(&reply)));
    link_and_run(object, &[], &[]).expect("it is right");
}

#[test]
fn what_does_not_fit_is_refused() {
    // table
    let table: &[(&str, &str)] = &[
        (
            "double f(double x) { return x; } void *__enzyme_register_gradient_f[] = {(void *)f};
            int main(void) { return __enzyme_autodiff((void *)f, 1.0) > 0; }",
            "does not hold a function, the augmented primal and the reverse pass",
        ),
        (
            "KEEP double f(double x) { return x * x; } static double aug(double x) { return x; } static double rev(float x, double d) { return d; }
            void *__enzyme_register_gradient_f[] = {(void *)f, (void *)aug, (void *)rev};
            int main(void) { return __enzyme_autodiff((void *)f, 1.0) > 0; }",
            "parameters",
        ),
        (
            "KEEP double f(double x) { return x * x; } static double aug(double x) { return x; } static float rev(double x, double d) { return d; }
            void *__enzyme_register_gradient_f[] = {(void *)f, (void *)aug, (void *)rev};
            int main(void) { return __enzyme_autodiff((void *)f, 1.0) > 0; }",
            "result type",
        ),
        (
            "KEEP double f(double x) { return x * x; } void *__enzyme_function_like_f[] = {(void *)f, (void *)\"sinus\"};
            int main(void) { return __enzyme_autodiff((void *)f, 1.0) > 0; }",
            "`sinus`, which is not a known function",
        ),
        (
            "KEEP double f(double x) { return x * x; } void *__enzyme_function_like_f[] = {(void *)f, (void *)\"hypot\"};
            double g(double x) { return f(x); }
            int main(void) { return __enzyme_autodiff((void *)g, 1.0) > 0; }",
            "does not have the type of `hypot`",
        ),
        (
            "KEEP double f(const double *p, double x) { return x * p[0]; }
            static double aug(const double *p, double *dp, double x) { return 0; } static double rev(const double *p, double *dp, double x, double d) { return 0; }
            void *__enzyme_register_gradient_f[] = {(void *)f, (void *)aug, (void *)rev};
            double g(const double *p, double x) { return f(p, x); }
            int main(void) { double p = 1; return __enzyme_autodiff((void *)g, enzyme_const, &p, 1.0) > 0; }",
            "the shadow of a pointer that is inactive",
        ),
    ];
    for (source, word) in table {
        let reply = refused(&format!("{DECLARATIONS}{source}"));
        let hit = reply.diagnostics.iter().find(|d| d.message.contains(word));
        let hit = hit.unwrap_or_else(|| panic!("{source}\n{}", findings(&reply)));
        assert!(
            hit.code == Code::BadRequest && hit.help.is_some(),
            "{}",
            findings(&reply)
        );
    }
}
