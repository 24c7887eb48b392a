//! Programs with the drop-in interface: equal derivatives at every level, compared with finite differences.

use crate::support::{bitcode, calls, check_language, check_program, findings, refused, run};
use gradus_ir::Code;
use gradus_pipeline::{Level, OutputKind};

const DECLARATIONS: &str = "
extern int enzyme_const, enzyme_dup, enzyme_dupnoneed, enzyme_out, enzyme_width, enzyme_primal_return;
extern int enzyme_const_return, enzyme_dupv;
extern double __enzyme_autodiff(void *, ...);
extern float __enzyme_autodiff_f32(void *, ...);
extern void __enzyme_autodiff_v(void *, ...);
extern double __enzyme_fwddiff(void *, ...);
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
    scalar_without_markers: "
        double f(double x) { return x * x * sin(x); }
        int main(void) {
            for (double x = -1; x < 2; x += 0.7) {
                NEAR(__enzyme_autodiff((void *)f, x), SLOPE(t, x, f(t)));
                NEAR(__enzyme_fwddiff((void *)f, x, 2.0), 2 * SLOPE(t, x, f(t)));
            }
        }";
    rows_of_a_jacobian: "
        static void two(const double *x, const double *s, double *out) {
            double r = sqrt(x[0] * x[0] + 1);
            if (x[1] > 0) { out[0] = *s * sin(r) * x[1]; out[1] = *s * cos(r) / x[1]; }
            else { out[0] = r; out[1] = *s * r * x[0]; }
        }
        static double at(int row, double a, double b, double s) {
            double x[2] = {a, b}, out[2]; two(x, &s, out); return out[row];
        }
        __attribute__((noinline)) void jacobian(const double *x, const double *s, double *row) {
            for (int r = 0; r < 2; r++, row += 3) {
                double out[2], out_adj[2] = {r == 0, r == 1};
                __enzyme_autodiff_v((void *)two, enzyme_dup, x, row, enzyme_dup, s, row + 2, enzyme_dupnoneed, out, out_adj);
            }
        }
        int main(void) {
            for (double b = -0.7; b < 1; b += 0.4) {
                double x[2] = {0.7, b}, s = 1.3, rows[6] = {0};
                jacobian(x, &s, rows);
                for (int r = 0; r < 2; r++) {
                    NEAR(rows[3 * r], SLOPE(t, 0.7, at(r, t, b, s)));
                    NEAR(rows[3 * r + 1], SLOPE(t, b, at(r, 0.7, t, s)));
                    NEAR(rows[3 * r + 2], SLOPE(t, s, at(r, 0.7, b, t)));
                }
            }
        }";
    calls_side_by_side_with_a_step_between: "
        static double f(const double *x) { return x[0] * x[0] * x[1] + sin(x[1]); }
        int main(void) {
            double x[2] = {0.7, 0.2}, first[2] = {0}, second[2] = {0}, third[2] = {0};
            __enzyme_autodiff_v((void *)f, enzyme_dup, x, first);
            x[1] -= first[1];
            __enzyme_autodiff_v((void *)f, enzyme_dup, x, second);
            __enzyme_autodiff_v((void *)f, enzyme_dup, second, third);
            double y = 0.2 - (0.49 + cos(0.2));
            NEAR(first[0], 2 * 0.7 * 0.2); NEAR(first[1], 0.49 + cos(0.2));
            NEAR(second[0], 2 * 0.7 * y); NEAR(second[1], 0.49 + cos(y));
            NEAR(third[0], 2 * second[0] * second[1]); NEAR(third[1], second[0] * second[0] + cos(second[1]));
        }";
    what_is_written_may_be_what_is_read: "
        static void two(const double *x, double *out) { out[0] = x[0] * x[1]; out[1] = sin(x[0]) * x[1]; }
        __attribute__((noinline)) void rows(const double *x, double *x_adj, double *out, double *out_adj) {
            __enzyme_autodiff_v((void *)two, enzyme_dup, x, x_adj, enzyme_dup, out, out_adj);
            __enzyme_autodiff_v((void *)two, enzyme_dup, x, x_adj, enzyme_dup, out, out_adj);
        }
        static double twice(double a, double b) {
            double x[2] = {a, b}; two(x, x); return x[1];
        }
        int main(void) {
            double x[2] = {0.7, 0.4}, adj[2] = {0, 1}, y[2] = {0.7, 0.4}, z[2], y_adj[2] = {0}, z_adj[2] = {0, 1};
            __enzyme_autodiff_v((void *)two, enzyme_dup, x, adj, enzyme_dup, x, adj);
            NEAR(adj[0], SLOPE(t, 0.7, twice(t, 0.4))); NEAR(adj[1], SLOPE(t, 0.4, twice(0.7, t)));
            rows(y, y_adj, z, z_adj);
            NEAR(y_adj[0], cos(0.7) * 0.4); NEAR(y_adj[1], sin(0.7));
        }";
    static_function_and_float: "
        static float f(float x, int n) { float r = 1; for (int i = 0; i < n; i++) r *= x; return r; }
        int main(void) { if (fabsf(__enzyme_autodiff_f32((void *)f, 1.5f, 4) - 13.5f) > 1e-4f) return 1; }";
    pointers_and_constants: "
        double dot(const double *a, const double *b, int n) { double r = 0; for (int i = 0; i < n; i++) r += a[i] * b[i] * b[i]; return r; }
        int main(void) {
            double a[3] = {1, 2, 3}, b[3] = {4, 5, 6}, da[3] = {0, 0, 7}, db[3] = {0};
            __enzyme_autodiff((void *)dot, enzyme_dup, a, da, enzyme_const, b, enzyme_const, 3);
            NEAR(da[0], 16); NEAR(da[1], 25); NEAR(da[2], 43);
            __enzyme_autodiff((void *)dot, enzyme_const, a, enzyme_dup, b, db, 3);
            NEAR(db[0], 8); NEAR(db[1], 20); NEAR(db[2], 36);
        }";
    several_adjoints_in_registers: "
        struct two { double x, y; };
        extern struct two __enzyme_autodiff_two(void *, ...);
        double f(double x, double y) { return x * x * y + exp(y); }
        int main(void) {
            struct two d = __enzyme_autodiff_two((void *)f, enzyme_out, 3.0, enzyme_out, 0.5);
            NEAR(d.x, 3.0); NEAR(d.y, 9 + exp(0.5));
        }";
    several_adjoints_in_memory: "
        struct four { double a, b, c, d; };
        extern struct four __enzyme_autodiff_four(void *, ...);
        double f(double a, double b, double c, double d) { return a * b * c * d; }
        int main(void) {
            struct four g = __enzyme_autodiff_four((void *)f, 2.0, 3.0, 5.0, 7.0);
            NEAR(g.a, 105); NEAR(g.b, 70); NEAR(g.c, 42); NEAR(g.d, 30);
        }";
    floats_in_one_register: "
        struct two { float x, y; };
        extern struct two __enzyme_autodiff_two(void *, ...);
        struct three { float x, y, z; };
        extern struct three __enzyme_autodiff_three(void *, ...);
        float f(float x, float y) { return x * x * y; }
        float g(float x, float y, float z) { return x * y * z; }
        int main(void) {
            struct two d = __enzyme_autodiff_two((void *)f, 3.0f, 0.5f);
            NEAR(d.x, 3.0); NEAR(d.y, 9);
            struct three e = __enzyme_autodiff_three((void *)g, 3.0f, 0.5f, 2.0f);
            NEAR(e.x, 1.0); NEAR(e.y, 6); NEAR(e.z, 1.5);
        }";
    outputs_through_pointers: "
        void f(const double *x, double *y, int n) { for (int i = 0; i < n; i++) y[i] = x[i] * x[(i + 1) % n]; }
        int main(void) {
            double x[3] = {1, 2, 3}, dx[3] = {0}, y[3], dy[3] = {1, 10, 100};
            __enzyme_autodiff_v((void *)f, enzyme_dup, x, dx, enzyme_dupnoneed, y, dy, 3);
            NEAR(dx[0], 2 + 300); NEAR(dx[1], 1 + 30); NEAR(dx[2], 20 + 100);
            double tx[3] = {1, 0, 0}, ty[3];
            __enzyme_fwddiff((void *)f, enzyme_dup, x, tx, enzyme_dup, y, ty, enzyme_const, 3);
            NEAR(ty[0], 2); NEAR(ty[1], 0); NEAR(ty[2], 3); NEAR(y[1], 6);
        }";
    in_a_loop_with_shared_markers: "
        double f(const double *p, double s) { return p[0] * s + p[1] * s * s; }
        int main(void) {
            double p[2] = {2, 3}, dp[2] = {0}, total = 0, steps[5] = {1, 2, 3, 4, 5};
            for (int i = 0; i < 5; i++) {
                if (i == 3) continue;
                total += __enzyme_autodiff((void *)f, enzyme_dup, p, dp, enzyme_out, steps[i]);
            }
            NEAR(dp[0], 11); NEAR(dp[1], 1 + 4 + 9 + 25); NEAR(total, 2 * 4 + 6 * 11);
        }";
    lanes: "
        struct pair { double a, b; };
        extern struct pair __enzyme_fwddiff_pair(void *, ...);
        double f(const double *x) { return x[0] * x[0] * x[1]; }
        void g(const double *x, double *y) { y[0] = x[0] * x[1]; y[1] = x[0] + x[1]; }
        int main(void) {
            double x[2] = {3, 5}, e0[2] = {1, 0}, e1[2] = {0, 1};
            struct pair d = __enzyme_fwddiff_pair((void *)f, enzyme_width, 2, enzyme_dup, x, e0, e1);
            NEAR(d.a, 30); NEAR(d.b, 9);
            double y[2], a0[2] = {0}, a1[2] = {0}, c[4] = {1, 0, 0, 1};
            __enzyme_autodiff_v((void *)g, enzyme_width, 2, enzyme_dup, x, a0, a1, enzyme_dupv, sizeof(double) * 2, y, c);
            NEAR(a0[0], 5); NEAR(a0[1], 3); NEAR(a1[0], 1); NEAR(a1[1], 1);
        }";
    value_and_tangent: "
        struct both { double value, tangent; };
        extern struct both __enzyme_fwddiff_both(void *, ...);
        double f(double x) { return log(x) * x; }
        int main(void) {
            struct both b = __enzyme_fwddiff_both((void *)f, enzyme_primal_return, 2.0, 1.0);
            NEAR(b.value, 2 * log(2)); NEAR(b.tangent, log(2) + 1);
        }";
    structures_by_value: "
        struct small { double a, b; };
        struct large { double a, b, c; int k; };
        double f(struct small s, double x) { return s.a * x + s.b * x * x; }
        double g(struct large s, const double *x) { s.a *= 2; return s.a * x[0] + s.b * s.c + s.k; }
        int main(void) {
            struct small s = {2, 3};
            NEAR(__enzyme_autodiff((void *)f, enzyme_const, s, enzyme_out, 2.0), 14);
            struct large l = {2, 3, 4, 5}, dl = {0};
            double x = 3, dx = 0;
            __enzyme_autodiff((void *)g, enzyme_const, l, enzyme_dup, &x, &dx);
            NEAR(dx, 4); NEAR(l.a, 2);
            NEAR(__enzyme_fwddiff((void *)g, enzyme_dup, l, (struct large){1, 1, 0, 0}, enzyme_const, &x), 6 + 4);
        }";
    structure_as_tangent: "
        struct v3 { double x, y, z; };
        extern struct v3 __enzyme_fwddiff_v3(void *, ...);
        struct v2 { double x, y; };
        extern struct v2 __enzyme_fwddiff_v2(void *, ...);
        struct v3 f(double t) { struct v3 r = {t, t * t, sin(t)}; return r; }
        struct v2 g(double t) { struct v2 r = {t * t, cos(t)}; return r; }
        int main(void) {
            struct v3 d = __enzyme_fwddiff_v3((void *)f, 0.5, 2.0);
            NEAR(d.x, 2); NEAR(d.y, 2); NEAR(d.z, 2 * cos(0.5));
            struct v2 e = __enzyme_fwddiff_v2((void *)g, 0.5, 1.0);
            NEAR(e.x, 1); NEAR(e.y, -sin(0.5));
        }";
    promoted_integers: "
        double f(double x, _Bool twice, char sign, short n) { double r = sign == '-' ? -x : x; for (int i = 0; i < n; i++) r *= x; return twice ? 2 * r : r; }
        int main(void) { NEAR(__enzyme_autodiff((void *)f, 1.5, (_Bool)1, '-', (short)2), -2 * 3 * 1.5 * 1.5); }";
    known_function: "
        int main(void) { NEAR(__enzyme_autodiff((void *)sin, 0.3), cos(0.3)); }";
    forward_over_reverse: "
        double f(const double *x, int n) { double r = 0; for (int i = 0; i < n; i++) r += x[i] * x[i] * x[(i + 1) % n]; return r; }
        void gradient(const double *x, double *g, int n) {
            memset(g, 0, n * sizeof *g);
            __enzyme_autodiff_v((void *)f, enzyme_dup, x, g, enzyme_const, n);
        }
        int main(void) {
            double x[3] = {1, 2, 3}, v[3] = {1, 0.5, -1}, g[3], hv[3], a[3], b[3], h = 1e-5;
            __enzyme_fwddiff((void *)gradient, enzyme_dup, x, v, enzyme_dup, g, hv, enzyme_const, 3);
            double up[3], down[3];
            for (int i = 0; i < 3; i++) { up[i] = x[i] + h * v[i]; down[i] = x[i] - h * v[i]; }
            gradient(up, a, 3); gradient(down, b, 3);
            for (int i = 0; i < 3; i++) { NEAR(hv[i], (a[i] - b[i]) / (2 * h)); }
        }";
    second_derivative_of_a_scalar: "
        double f(double x) { return x * x * x * sin(x); }
        double df(double x) { return __enzyme_autodiff((void *)f, x); }
        double ddf(double x) { return __enzyme_fwddiff((void *)df, x, 1.0); }
        int main(void) { NEAR(ddf(0.7), SLOPE(t, 0.7, df(t))); NEAR(df(0.7), SLOPE(t, 0.7, f(t))); }";
    two_requests_share_a_callee: "
        __attribute__((noinline)) static double g(const double *p, double x) { return p[0] * x * x; }
        double f1(const double *p, double x) { return g(p, x) * x; }
        double f2(const double *p, double x) { return g(p, x) + g(p, 2 * x); }
        int main(void) {
            double p[1] = {2}, dp[1] = {0};
            NEAR(__enzyme_autodiff((void *)f1, enzyme_const, p, enzyme_out, 1.5), 6 * 1.5 * 1.5);
            NEAR(__enzyme_autodiff((void *)f2, enzyme_dup, p, dp, enzyme_out, 1.5), 20 * 1.5);
            NEAR(dp[0], 5 * 1.5 * 1.5);
        }";
    recursion: "
        __attribute__((noinline)) static double power(double x, int n) { return n ? x * power(x, n - 1) : 1; }
        int main(void) { NEAR(__enzyme_autodiff((void *)power, 1.1, 6), 6 * pow(1.1, 5)); }";
}

#[test]
fn our_own_names() {
    check_program(
        "extern int gradus_dup, gradus_const;
        extern void __gradus_autodiff(void *, ...);
        extern double __gradus_fwddiff(void *, ...);
        double f(const double *x, int n) { double r = 0; for (int i = 0; i < n; i++) r += x[i] * x[i]; return r; }
        int main(void) {
            double x[2] = {3, 4}, dx[2] = {0};
            __gradus_autodiff((void *)f, gradus_dup, x, dx, gradus_const, 2);
            NEAR(dx[0], 6); NEAR(dx[1], 8);
            NEAR(__gradus_fwddiff((void *)f, gradus_dup, x, dx, 2), 100);
        }",
    );
}

#[test]
fn templates_and_exceptions_of_cplusplus() {
    check_language(
        "c++",
        "#undef NEAR
        #define NEAR(got, expected) near_(got, expected, #got, __LINE__)
        extern int enzyme_dup, enzyme_const;
        template <typename R, typename... A> R __enzyme_autodiff(void *, A...);
        template <typename R, typename... A> R __enzyme_fwddiff(void *, A &&...);
        double f(const double *x, double s) { return x[0] * x[1] * s; }
        struct guard { int *n; ~guard() { ++*n; } };
        int main() {
            double x[2] = {3, 4}, dx[2] = {0}; int left = 0;
            try {
                guard g{&left};
                NEAR((__enzyme_autodiff<double>((void *)f, enzyme_dup, (const double *)x, (double *)dx, 2.0)), 12);
            } catch (...) { return 2; }
            NEAR(dx[0], 8); NEAR(dx[1], 6);
            return left != 1;
        }",
    );
}

#[test]
fn calls_that_do_not_fit_are_refused_at_their_line() {
    let table: &[(&str, Code, &str)] = &[
        (
            "double f(double x) { return x; }\nint main(void) { return __enzyme_autodiff((void *)f) > 0; }",
            Code::BadRequest,
            "missing",
        ),
        (
            "double f(double x) { return x; }\nint main(void) { return __enzyme_autodiff((void *)f, 1.0, 2.0, 3) > 0; }",
            Code::BadRequest,
            "too many arguments",
        ),
        (
            "double f(double *x) { return *x; }\nint main(void) { double x; return __enzyme_autodiff((void *)f, enzyme_dup, &x) > 0; }",
            Code::BadRequest,
            "shadow",
        ),
        (
            "double f(long n, double x) { return n * x; }\nint main(void) { return __enzyme_autodiff((void *)f, 3, 1.0) > 0; }",
            Code::BadRequest,
            "the wrong type",
        ),
        (
            "double f(double x, double y) { return x * y; }\nint main(void) { return __enzyme_autodiff((void *)f, 3.0, 1.0) > 0; }",
            Code::BadRequest,
            "2 numbers",
        ),
        (
            "double f(double x) { return x; }\nint main(void) { return __enzyme_autodiff((void *)f, enzyme_const, 3.0) > 0; }",
            Code::BadRequest,
            "returns nothing",
        ),
        (
            "double f(double);\nint main(void) { return __enzyme_autodiff((void *)f, 3.0) > 0; }",
            Code::UnknownCallee,
            "not defined",
        ),
        (
            "double f(double x) { return x; }\nint main(int n, char **v) { double (*p)(double) = n > 1 ? f : (double (*)(double))v; return __enzyme_autodiff((void *)p, 3.0) > 0; }",
            Code::BadRequest,
            "unknown",
        ),
    ];
    for (source, code, word) in table {
        let reply = refused(&format!("{DECLARATIONS}{source}"));
        let hit = reply
            .diagnostics
            .iter()
            .find(|d| d.code == *code && d.message.contains(word));
        let Some(finding) = hit else {
            panic!("{source}\n{}", findings(&reply));
        };
        assert!(!finding.labels.is_empty(), "no line: {finding}");
    }
}

/// Update loops of short and of long rows, each updated again by the next row.
const TRIANGLE: &str = "
    static double f(const double *x, int n) {
        double *out = malloc(n * sizeof *out), r = 0;
        for (int i = 0; i < n; i++) out[i] = x[i];
        for (int j = 0; j < n; j++)
            for (int i = j + 1; i < n; i++) out[i] += 0.1 * x[i] * x[j];
        for (int i = 0; i < n; i++) r += out[i] * out[i];
        free(out);
        return r;
    }
    int main(void) {
        for (int n = 1; n <= 40; n += 3) {
            double x[40], g[40] = {0};
            for (int i = 0; i < n; i++) x[i] = 0.3 - 0.05 * (i * 7 % 11);
            __enzyme_autodiff((void *)f, x, g, enzyme_const, n);
            for (int i = 0; i < n; i++) { double at = x[i]; NEAR(g[i], SLOPE(t, at, (x[i] = t, f(x, n)))); x[i] = at; }
        }
    }";

#[test]
fn short_and_long_rows_of_a_triangle() {
    let source = format!("#include <stdlib.h>\n{DECLARATIONS}{TRIANGLE}");
    check_program(&source);
    let flags = &["-O2", "-Xclang", "-disable-llvm-passes"];
    let module = bitcode(&format!("{}\n{source}", crate::support::CHECK), flags);
    let reply = run(module, calls(), Level::O3, &[OutputKind::Gir]);
    let text = reply.text(OutputKind::Gir).expect("text");
    assert!(text.contains("for scalar"), "{text}");
}

#[test]
fn all_findings_come_at_once() {
    let reply = refused(&format!(
        "{DECLARATIONS}double f(double x) {{ return x; }}
        int main(void) {{ return __enzyme_autodiff((void *)f) > __enzyme_autodiff((void *)f, enzyme_const); }}"
    ));
    assert_eq!(reply.diagnostics.len(), 2, "{}", findings(&reply));
}
