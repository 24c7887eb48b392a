//! Split mode: augmented primal and reverse function are called separately, the program holds the tape and
//! runs code in between.

use crate::support::{check_program, refused};
use gradus_ir::Code;

const DECLARATIONS: &str = "
extern int enzyme_const, enzyme_dup, enzyme_dupnoneed, enzyme_out, enzyme_width, enzyme_primal_return;
extern int enzyme_const_return, enzyme_dup_return, enzyme_tape, enzyme_allocated, enzyme_not_overwritten;
extern int enzyme_interleave, enzyme_noret, enzyme_nofree, enzyme_byref;
extern double __enzyme_autodiff(void *, ...);
extern void __enzyme_autodiff_v(void *, ...);
extern double __enzyme_fwddiff(void *, ...);
extern void *__enzyme_augmentfwd(void *, ...);
struct left { void *tape; double value; };
extern struct left __enzyme_augmentfwd_value(void *, ...);
extern void __enzyme_augmentfwd_v(void *, ...);
extern double __enzyme_augmentfwd_d(void *, ...);
extern double __enzyme_reverse(void *, ...);
extern void __enzyme_reverse_v(void *, ...);
extern size_t __enzyme_augmentsize(void *, ...);
extern int __enzyme_augmentsize_int(void *, ...);
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
    numbers_and_the_value: "
        double f(double x, double y) { return exp(x) * sin(y) * x; }
        struct two { double x, y; };
        extern struct two __enzyme_reverse_two(void *, ...);
        int main(void) {
            struct left one = __enzyme_augmentfwd_value((void *)f, enzyme_primal_return, 0.5, 2.0);
            NEAR(one.value, f(0.5, 2.0));
            struct two d = __enzyme_reverse_two((void *)f, 0.5, 2.0, 3.0, one.tape);
            NEAR(d.x, 3 * SLOPE(t, 0.5, f(t, 2.0)));
            NEAR(d.y, 3 * SLOPE(t, 2.0, f(0.5, t)));
            void *tape = __enzyme_augmentfwd((void *)f, enzyme_out, 0.5, enzyme_const, 2.0);
            NEAR(__enzyme_reverse((void *)f, enzyme_out, 0.5, enzyme_const, 2.0, 1.0, tape), d.x / 3);
        }";
    what_is_overwritten_in_between: "
        double f(const double *x, double *y, int n) {
            double sum = 0;
            for (int i = 0; i < n; i++) { y[i] = sin(x[i]) * x[(i + 1) % n]; sum += y[i] * y[i] * x[i]; }
            return sum;
        }
        int main(void) {
            double x[4] = {1, 0.5, -2, 3}, y[4] = {0}, dx[4] = {0}, dy[4] = {0}, whole[4] = {0};
            __enzyme_autodiff_v((void *)f, x, whole, y, dy, 4);
            double again[4] = {1, 0.5, -2, 3};
            void *tape = __enzyme_augmentfwd((void *)f, x, dx, y, dy, 4);
            for (int i = 0; i < 4; i++) x[i] = y[i] = 77;
            __enzyme_reverse_v((void *)f, x, dx, y, dy, 4, 1.0, tape);
            for (int i = 0; i < 4; i++) { NEAR(dx[i], whole[i]); NEAR(dy[i], 0); dx[i] = 0; }
            tape = __enzyme_augmentfwd((void *)f, enzyme_not_overwritten, again, dx, enzyme_not_overwritten, y, dy, 4);
            __enzyme_reverse_v((void *)f, enzyme_not_overwritten, again, dx, enzyme_not_overwritten, y, dy, 4, 1.0, tape);
            for (int i = 0; i < 4; i++) NEAR(dx[i], whole[i]);
        }";
    adjoints_set_in_between: "
        void f(const double *x, double *y, int n) { for (int i = 0; i < n; i++) y[i] = x[i] * x[i] * x[n - 1 - i]; }
        int main(void) {
            double x[3] = {1, 2, 3}, y[3], dx[3] = {0}, dy[3] = {0};
            void *tape = __enzyme_augmentfwd((void *)f, enzyme_dup, x, dx, enzyme_dup, y, dy, 3);
            NEAR(y[2], 9);
            dy[0] = 1; dy[2] = 10;
            __enzyme_reverse_v((void *)f, enzyme_dup, x, dx, enzyme_dup, y, dy, 3, tape);
            NEAR(dx[0], 2 * 1 * 3 + 10 * 9); NEAR(dx[1], 0); NEAR(dx[2], 1 + 10 * 2 * 3 * 1);
        }";
    several_tapes_at_once_in_any_order: "
        static double inner(const double *p, int n) { double r = 1; for (int i = 0; i < n; i++) { if (p[i] < 0) break; r = r * p[i] + sin(r); } return r; }
        double f(const double *p, int n, double s) { double local[8]; for (int i = 0; i < n; i++) local[i] = p[i] * s; return inner(local, n) * s; }
        int main(void) {
            double p[3][5] = {{1, 2, 3, 4, 5}, {1, 2, -1, 4, 5}, {0.5, 0.25, 2, 1, -7}}, d[3][5] = {0}, whole[3][5] = {0}, ds[3];
            void *tapes[3];
            for (int k = 0; k < 3; k++) ds[k] = __enzyme_autodiff((void *)f, p[k], whole[k], 5, 0.7 + k);
            for (int k = 0; k < 3; k++) tapes[k] = __enzyme_augmentfwd((void *)f, p[k], d[k], 5, 0.7 + k);
            const int order[3] = {1, 2, 0};
            for (int j = 0; j < 3; j++) {
                int k = order[j];
                double s = __enzyme_reverse((void *)f, p[k], d[k], 5, 0.7 + k, 1.0, tapes[k]);
                NEAR(s, ds[k]);
                for (int i = 0; i < 5; i++) NEAR(d[k][i], whole[k][i]);
            }
        }";
    pointers_changed_in_between: "
        struct node { double value; struct node *next; };
        double f(struct node *at) { double r = 1; for (; at; at = at->next) r = r * at->value + at->value; return r; }
        int main(void) {
            struct node n[3] = {{2, n + 1}, {3, n + 2}, {5, 0}}, d[3] = {{0, d + 1}, {0, d + 2}, {0, 0}};
            struct node w[3] = {{0, w + 1}, {0, w + 2}, {0, 0}};
            __enzyme_autodiff_v((void *)f, n, w);
            void *tape = __enzyme_augmentfwd((void *)f, n, d);
            n[0].next = 0; d[0].next = 0; n[1].value = 0; n[1].next = d[1].next = 0;
            __enzyme_reverse_v((void *)f, n, d, 1.0, tape);
            for (int i = 0; i < 3; i++) NEAR(d[i].value, w[i].value);
        }";
    heap_inside_and_loops_of_unknown_length: "
        double f(const double *x, int n) {
            double *work = malloc(n * sizeof *work), s = 0;
            for (int i = 0; i < n; i++) work[i] = exp(-x[i]);
            double h = 1; int rounds = 0;
            while (h > 1e-2 && rounds < 50) { for (int i = 0; i + 1 < n; i++) work[i] = 0.5 * (work[i] * work[i + 1] + h); h *= 0.6 + 0.1 * work[0]; rounds++; }
            for (int i = 0; i < n; i++) s += work[i];
            free(work);
            return s * h;
        }
        int main(void) {
            double x[6] = {0.1, 0.4, -0.2, 0.3, 1, 0}, dx[6] = {0}, whole[6] = {0};
            __enzyme_autodiff_v((void *)f, x, whole, 6);
            void *tape = __enzyme_augmentfwd((void *)f, x, dx, 6);
            memset(x, 0, sizeof x);
            __enzyme_reverse_v((void *)f, x, dx, 6, 1.0, tape);
            for (int i = 0; i < 6; i++) NEAR(dx[i], whole[i]);
        }";
    memory_for_the_tape: "
        double f(double *x, int n) { double r = 1; for (int i = 0; i < n; i++) { r *= x[i]; x[i] = r; } return r * r; }
        int main(int argc, char **argv) {
            double x[3] = {2, 3, 5}, dx[3] = {0};
            size_t size = __enzyme_augmentsize((void *)f, enzyme_dup, enzyme_const);
            if (size != __enzyme_augmentsize_int((void *)f) || size < 8 || size > 4096) return 1;
            char *memory = malloc(size + 1);
            memory[size] = 42;
            __enzyme_augmentfwd_v((void *)f, enzyme_allocated, size, enzyme_tape, memory, enzyme_dup, x, dx, enzyme_const, 3);
            NEAR(x[2], 30);
            x[0] = x[1] = 9;
            __enzyme_reverse_v((void *)f, enzyme_allocated, size, enzyme_tape, memory, enzyme_dup, x, dx, enzyme_const, 3, 1.0);
            NEAR(dx[0], 2 * 30 * 15); NEAR(dx[1], 2 * 30 * 10); NEAR(dx[2], 2 * 30 * 6);
            if (memory[size] != 42) return 2;
            double y[2] = {3, 4}, dy[2] = {0};
            NEAR(__enzyme_augmentfwd_d((void *)f, enzyme_primal_return, enzyme_allocated, 4096, enzyme_tape, realloc(memory, 4096), y, dy, 2), 144);
        }";
    globals_are_written_in_between: "
        static double scale = 2, table[3] = {1, 2, 3};
        double f(const double *x, int n) { double s = 0; for (int i = 0; i < n; i++) s += scale * table[i] * x[i] * x[i]; return s; }
        int main(void) {
            double x[3] = {1, 2, 3}, dx[3] = {0};
            void *tape = __enzyme_augmentfwd((void *)f, x, dx, 3);
            scale = 100; table[0] = table[1] = table[2] = 1000;
            __enzyme_reverse_v((void *)f, x, dx, 3, 1.0, tape);
            NEAR(dx[0], 4); NEAR(dx[1], 16); NEAR(dx[2], 36);
        }";
    two_cotangents_at_once: "
        struct two { double a, b; };
        extern struct two __enzyme_reverse_two(void *, ...);
        double f(const double *x, double s) { return x[0] * x[1] * exp(s); }
        int main(void) {
            double x[2] = {3, 4}, d0[2] = {0}, d1[2] = {0};
            void *tape = __enzyme_augmentfwd((void *)f, enzyme_width, 2, enzyme_dup, x, d0, d1, enzyme_out, 0.5);
            x[0] = x[1] = 0;
            struct two s = __enzyme_reverse_two((void *)f, enzyme_width, 2, enzyme_dup, x, d0, d1, enzyme_out, 0.5, 1.0, 10.0, tape);
            NEAR(s.a, 12 * exp(0.5)); NEAR(s.b, 120 * exp(0.5));
            NEAR(d0[0], 4 * exp(0.5)); NEAR(d1[1], 30 * exp(0.5));
        }";
    pointers_that_are_returned: "
        struct out { void *tape; double *value, *shadow; };
        extern struct out __enzyme_augmentfwd_out(void *, ...);
        double *f(double *x, int i) { x[i] *= x[i]; return x + i; }
        int main(void) {
            double x[3] = {2, 3, 5}, dx[3] = {0};
            struct out o = __enzyme_augmentfwd_out((void *)f, enzyme_primal_return, enzyme_dup_return, x, dx, 1);
            if (o.value != x + 1 || o.shadow != dx + 1) return 1;
            *o.shadow = 1;
            __enzyme_reverse_v((void *)f, enzyme_dup_return, x, dx, 1, o.tape);
            NEAR(dx[1], 6);
        }";
    shadows_after_all_arguments: "
        double f(const double *a, int n, const double *b) { double s = 0; for (int i = 0; i < n; i++) s += a[i] * a[i] * b[i]; return s; }
        int main(void) {
            double a[2] = {2, 3}, b[2] = {5, 7}, da[2] = {0}, db[2] = {0};
            __enzyme_autodiff_v((void *)f, enzyme_interleave, enzyme_dup, a, 2, enzyme_dup, b, da, db);
            NEAR(da[0], 20); NEAR(da[1], 42); NEAR(db[0], 4); NEAR(db[1], 9);
            double ta[2] = {1, 0}, tb[2] = {0, 1};
            NEAR(__enzyme_fwddiff((void *)f, enzyme_noret, enzyme_interleave, a, enzyme_const, 2, b, ta, tb), 29);
        }";
    structures_by_reference: "
        struct big { double v[5]; };
        struct small { double x, y; };
        double f(struct big b, double s) { return b.v[0] * b.v[4] * s; }
        double g(struct small p) { return p.x * p.x * p.y; }
        int main(void) {
            struct big b = {{2, 0, 0, 0, 3}}, db = {{0}};
            NEAR(__enzyme_autodiff((void *)f, enzyme_byref, sizeof b, enzyme_dup, &b, &db, 5.0), 6);
            NEAR(db.v[0], 15); NEAR(db.v[4], 10); NEAR(b.v[0], 2);
            struct small p = {3, 4}, dp = {1, 10};
            NEAR(__enzyme_fwddiff((void *)g, enzyme_byref, sizeof p, enzyme_dup, &p, &dp), 24 + 90);
        }";
}

#[test]
fn what_does_not_fit_is_told_once_with_its_line() {
    // table
    let table: &[(&str, Code, &str)] = &[
        (
            "double f(double *x) { return x[0] * x[0] * x[1]; }
            int main(void) { double x[2], d[2]; char m[8]; __enzyme_augmentfwd_v((void *)f, enzyme_allocated, 8, enzyme_tape, m, x, d); return 0; }",
            Code::SplitMode,
            "the call passes 8",
        ),
        (
            "double f(double x) { return x * x; }
            int main(void) { void *t = __enzyme_augmentfwd((void *)f, 3.0); return __enzyme_reverse((void *)f, 3.0, t) > 0; }",
            Code::BadRequest,
            "cotangent",
        ),
        (
            "double f(double x) { return x * x; }
            int main(void) { return __enzyme_reverse((void *)f, 3.0, 1.0) > 0; }",
            Code::SplitMode,
            "tape is missing",
        ),
        (
            "double f(double x) { return x * x; }
            int main(void) { char m[64]; __enzyme_augmentfwd_v((void *)f, enzyme_tape, m, 3.0); return 0; }",
            Code::SplitMode,
            "together",
        ),
        (
            "double f(double x) { return x * x; }
            int main(void) { char m[64]; return __enzyme_autodiff((void *)f, enzyme_tape, m, 3.0) > 0; }",
            Code::SplitMode,
            "valid in split mode only",
        ),
        (
            "double f(double x) { return x * x; }
            int main(void) { void *t = __enzyme_augmentfwd((void *)f, 3.0); return __enzyme_reverse((void *)f, enzyme_nofree, 3.0, 1.0, t) > 0; }",
            Code::SplitMode,
            "nofree",
        ),
        (
            "double f(double x, double y) { return x * y; }
            int main(void) { return __enzyme_augmentsize((void *)f, enzyme_const) > 0; }",
            Code::BadRequest,
            "1 activities for the 2 arguments",
        ),
        (
            "double f(double x) { return x * x; } extern double __enzyme_fwdsplit(void *, ...);
            int main(void) { return __enzyme_fwdsplit((void *)f, 3.0, 1.0) > 0; }",
            Code::SplitMode,
            "fwdsplit",
        ),
    ];
    for (source, code, word) in table {
        let reply = refused(&format!("{DECLARATIONS}{source}"));
        let said = crate::support::findings(&reply);
        let [finding] = &reply.diagnostics[..] else {
            panic!("not one finding:\n{source}\n{said}");
        };
        assert!(
            finding.code == *code && finding.message.contains(word),
            "{source}\n{said}"
        );
        assert!(
            !finding.labels.is_empty() && finding.help.is_some()
                || *word == "1 activities for the 2 arguments",
            "{said}"
        );
    }
}
