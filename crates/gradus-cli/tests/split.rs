//! Split mode by the drivers: equal gradients at every level, without findings of the sanitizers or
//! valgrind, and without leaks.

use crate::support::{folder, gradus, shell};
use std::process::{Command, Output};

/// Loops with early exits, local arrays, heap blocks, lists, calls, globals; two tapes at a time; memory
/// required by the reverse pass is overwritten and freed in between.
const PROGRAM: &str = r#"#include <gradus.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct node { double value; struct node *next; };
static double weight = 1.5;
static __attribute__((noinline)) double part(const double *p, int n, double s)
{
    double local[6], sum = 0;
    for (int i = 0; i < n; i++)
        local[i] = p[i] * s + weight;
    for (int i = 0; i < n; i++) {
        if (local[i] > 8)
            break;
        sum += local[i] * local[(i + 1) % n];
    }
    return sum;
}
double f(double *x, int n, const struct node *list, double s)
{
    double *work = malloc(n * sizeof *work);
    memcpy(work, x, n * sizeof *work);
    double h = 1;
    for (int k = 0; h > 0.05; k++) {
        for (int i = 0; i < n; i++)
            work[i] = sin(work[i]) + h * x[i];
        h *= 0.3 + 0.01 * cos(work[k % n]);
    }
    for (; list; list = list->next)
        h += list->value * list->value * part(work, n, s);
    for (int i = 0; i < n; i++)
        x[i] = work[i] * h;
    free(work);
    return h * s;
}
static struct node *list(double a, double b)
{
    struct node *two = malloc(sizeof *two), *one = malloc(sizeof *one);
    *two = (struct node){b, NULL};
    *one = (struct node){a, two};
    return one;
}
static void drop(struct node *l) { free(l->next); free(l); }
int main(void)
{
    enum { N = 5 };
    double whole[2][N], split[2][N], s_whole[2], s_split[2], heads[2][2];
    struct node *l[2], *d[2];
    void *tape[2];
    double *x[2];
    for (int k = 0; k < 2; k++) {
        double y[N] = {0.1, 0.4 + k, -0.2, 0.9, 1.3};
        memset(whole[k], 0, sizeof whole[k]);
        whole[k][2] = 1;
        l[k] = list(2, 3 + k);
        d[k] = list(0, 0);
        s_whole[k] = gradus_vjp_double(f, gradus_dup, y, whole[k], gradus_const, N, gradus_dup, l[k], d[k], gradus_out, 0.5);
        heads[k][0] = d[k]->value;
        heads[k][1] = d[k]->next->value;
        d[k]->value = d[k]->next->value = 0;
    }
    for (int k = 0; k < 2; k++) {
        const double y[N] = {0.1, 0.4 + k, -0.2, 0.9, 1.3};
        x[k] = malloc(sizeof y);
        memcpy(x[k], y, sizeof y);
        memset(split[k], 0, sizeof split[k]);
        tape[k] = gradus_augmented(f, gradus_dup, x[k], split[k], gradus_const, N, gradus_dup, l[k], d[k], gradus_out, 0.5);
    }
    weight = 1e9;
    double worst = 0;
    for (int k = 0; k < 2; k++) {
        struct node *const second = d[k]->next;
        memset(x[k], 0x7f, sizeof(double) * N);
        drop(l[k]);
        l[k] = list(-1, -1);
        split[k][2] = 1;
        s_split[k] = gradus_return_double(f, gradus_dup, x[k], split[k], gradus_const, N, gradus_dup, l[k], d[k], gradus_out, 0.5, 1.0, tape[k]);
        for (int i = 0; i < N; i++)
            worst = fmax(worst, fabs(split[k][i] - whole[k][i]));
        worst = fmax(worst, fabs(s_split[k] - s_whole[k]));
        worst = fmax(worst, fabs(d[k]->value - heads[k][0]) + fabs(second->value - heads[k][1]));
        free(x[k]);
        drop(l[k]);
        drop(d[k]);
    }
    puts(worst < 1e-10 && fabs(whole[0][1]) > 1e-3 && fabs(heads[1][1]) > 1e-3 ? "same" : "DIFFERENT");
    return 0;
}
"#;

fn text(output: &Output) -> String {
    let all = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8_lossy(&all).into_owned()
}

/// Runs every level, under valgrind and with the sanitizers.
fn same_under_every_checker(test: &str, files: &[(&str, &str)]) {
    let at = folder(test);
    for (name, text) in files {
        std::fs::write(at.join(name), text).expect("written");
    }
    let sources: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
    let sources: Vec<&str> = sources.into_iter().filter(|n| n.ends_with(".c")).collect();
    let sources = sources.join(" ");
    let sanitized = "-g -fsanitize=address,undefined -fno-sanitize-recover=all";
    let ways = ["-O0", "-O1", "-O2", "-O3"].map(|level| [(level, ""), (level, sanitized)]);
    for (level, checks) in ways.concat() {
        let flags = format!("{level} {checks}");
        let made = gradus(&at, &format!("cc {flags} {sources} -lm -o split"));
        assert!(made.status.success(), "{test} {flags}: {}", text(&made));
        let mut command = match checks.is_empty() {
            true => {
                let mut command = Command::new("valgrind");
                command.args(["-q", "--leak-check=full", "--error-exitcode=9"]);
                command.args(["--errors-for-leak-kinds=all", "--show-leak-kinds=all"]);
                command.arg(at.join("split"));
                command
            }
            false => Command::new(at.join("split")),
        };
        let ran = command.output().expect("it runs");
        assert!(ran.status.success(), "{test} {flags}: {}", text(&ran));
        assert_eq!(text(&ran), "same\n", "{test} {flags}");
    }
}

#[test]
fn split_equals_combined() {
    same_under_every_checker("split", &[("split.c", PROGRAM)]);
}

/// The code shared by the test programs: the gradient of `f` by split and by combined mode, and by finite
/// differences.
const BOTH_WAYS: &str = r#"#include <gradus.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { N = 6 };
double f(const double *x, int n);
int main(void)
{
    double x[N] = {0.3, -0.7, 1.1, 0.45, 0.9, -0.2}, worst = 0, size = 0;
    for (int round = 0; round < 3; round++) {
        double whole[N] = {0}, split[N] = {0}, tangent[N];
        gradus_vjp(f, gradus_dup, x, whole, gradus_const, N);
        void *tape = gradus_augmented(f, gradus_dup, x, split, gradus_const, N);
        gradus_return(f, gradus_dup, x, split, gradus_const, N, 1.0, tape);
        for (int i = 0; i < N; i++) {
            const double h = 1e-5, at = x[i];
            double way[N] = {0};
            way[i] = 1;
            tangent[i] = gradus_jvp_double(f, gradus_dup, x, way, gradus_const, N);
            x[i] = at + h;
            double up = f(x, N);
            x[i] = at - h;
            double down = f(x, N);
            x[i] = at;
            worst = fmax(worst, fabs((up - down) / (2 * h) - whole[i]) * 1e-5);
            worst = fmax(worst, fabs(split[i] - whole[i]) + fabs(tangent[i] - whole[i]));
            size += fabs(whole[i]);
        }
    }
    puts(worst < 1e-11 && size > 1 ? "same" : "DIFFERENT");
    return 0;
}
"#;

/// Variables of files, functions and threads, and shared variables; each call reads state left by the
/// previous call, which its derivative treats as given.
#[test]
fn static_state_of_several_files_is_followed_by_every_checker() {
    let header = "extern double total;
        extern _Thread_local double scratch[4];
        double part(const double *x, int n);
        double seen(void);
        void forget(void);\n";
    let one = "#include <string.h>
        #include \"state.h\"
        double total = 0.5;
        _Thread_local double scratch[4];
        static double memory[3];
        static double *const second = memory + 1;
        void forget(void) { memset(memory, 0, sizeof memory); memset(scratch, 0, sizeof scratch); total = 0.5; }
        double seen(void) { return total * total + *second; }
        double part(const double *x, int n) {
            static int calls;
            double s = 0;
            for (int i = 0; i < n; i++) {
                memory[i % 3] = memory[(i + 1) % 3] * 0.5 + x[i] * x[i];
                scratch[i % 4] += memory[i % 3] * x[0];
                s += scratch[i % 4];
            }
            calls++;
            total += s;
            return s;
        }\n";
    let two = "#include \"state.h\"
        static double weight = 2;
        double f(const double *x, int n) {
            double r = part(x, n) * weight;
            r += seen();
            if (r > 1e9) weight += 1;
            r = (r + part(x, n)) * total;
            forget();
            return r;
        }\n";
    let files = [
        ("state.h", header),
        ("main.c", BOTH_WAYS),
        ("one.c", one),
        ("two.c", two),
    ];
    same_under_every_checker("static-state", &files);
}

/// A custom gradient with a tape, a function that resembles a known function, an inactive function, an
/// allocator.
#[test]
fn registrations_are_followed_by_every_checker() {
    let rules = "#include <math.h>
        #include <stdlib.h>
        #define KEEP __attribute__((noinline))
        KEEP void square(const double *x, double *y) { *y = *x * *x; }
        static void *square_augmented(const double *x, double *x_adj, double *y, double *y_adj) {
            double *tape = malloc(sizeof *tape);
            *tape = *x;
            *y = *x * *x;
            return tape;
        }
        static void square_reverse(const double *x, double *x_adj, double *y, double *y_adj, void *tape) {
            *x_adj += 2 * *(double *)tape * *y_adj;
            *y_adj = 0;
            free(tape);
        }
        void *__enzyme_register_gradient_square[] = {(void *)square, (void *)square_augmented, (void *)square_reverse};
        KEEP double slow_sin(double x) { double s = 0, t = x; for (int i = 1; i < 40; i += 2) { s += t; t *= -x * x / ((i + 1) * (i + 2)); } return s; }
        void *__enzyme_function_like_sin[] = {(void *)slow_sin, (void *)\"sin\"};
        static double heard;
        KEEP void listen(double x) { heard += x; }
        void *__enzyme_inactivefn[] = {(void *)listen};
        KEEP void *take(size_t bytes) { return calloc(1, bytes); }
        KEEP void give(void *p) { free(p); }
        void *__enzyme_allocation_like_take[4] = {(void *)take, (void *)0, (void *)\"-1\", (void *)give};
        double f(const double *x, int n) {
            double *work = take(n * sizeof *work), s = 0;
            for (int i = 0; i < n; i++) {
                square(&x[i], &work[i]);
                work[i] += slow_sin(x[i]);
                listen(work[i]);
            }
            for (int i = 0; i < n; i++)
                s += work[i] * work[(i + 1) % n];
            give(work);
            return s;
        }\n";
    same_under_every_checker("rules", &[("main.c", BOTH_WAYS), ("rules.c", rules)]);
}

/// The debug information of a declaration is no scope of the derivative's locations.
#[test]
fn registered_derivatives_of_external_functions() {
    let at = folder("registered_external");
    let program = "#include <gradus.h>
        double area(double radius);
        double area_augmented(double radius) { return area(radius); }
        double area_reverse(double radius, double area_adj) { return 6 * radius * area_adj; }
        double area_jvp(double radius, double radius_tan) { return 6 * radius * radius_tan; }
        GRADUS_GRADIENT(area, area_augmented, area_reverse);
        GRADUS_DERIVATIVE(area, area_jvp);
        double total(double x) { return area(x) * x; }
        int main(void)
        {
            double adjoint = gradus_vjp_double(total, gradus_out, 2.0);
            return adjoint != 36 || gradus_jvp_double(total, gradus_dup, 2.0, 1.0) != 36;
        }";
    let library = "double area(double radius) { return 3 * radius * radius; }\n";
    for (name, source) in [("program.c", program), ("library.c", library)] {
        std::fs::write(at.join(name), source).expect("written");
    }
    shell(&at, "cc -c library.c");
    for flags in ["-O0", "-O2", "-O2 -g"] {
        let made = gradus(&at, &format!("cc {flags} program.c library.o -o program"));
        assert!(made.status.success(), "{flags}: {}", text(&made));
        shell(&at, "./program");
    }
}

#[test]
fn wrong_tape_aborts() {
    let at = folder("misfit");
    let program = "#include <gradus.h>
        double f(double x, double y) { return x * x * y * y; }
        int main(int argc, char **argv)
        {
            void *tape = gradus_augmented(f, gradus_out, 2.0, gradus_const, 3.0);
            if (argc > 1)
                return gradus_return_double(f, gradus_const, 2.0, gradus_out, 3.0, 1.0, tape) > 0;
            return gradus_return_double(f, gradus_out, 2.0, gradus_const, 3.0, 1.0, tape) != 36;
        }";
    std::fs::write(at.join("misfit.c"), program).expect("written");
    let made = gradus(&at, "cc -O2 misfit.c -o misfit");
    assert!(made.status.success(), "{}", text(&made));
    let right = Command::new(at.join("misfit")).output().expect("it runs");
    assert_eq!(right.status.code(), Some(0), "{}", text(&right));
    let wrong = Command::new(at.join("misfit")).arg("wrong").output();
    let wrong = wrong.expect("it runs");
    assert_eq!(wrong.status.code(), None, "{}", text(&wrong));
    assert!(text(&wrong).contains("tape mismatch"), "{}", text(&wrong));
}

/// A program's own `write` and `abort` are not the C library's.
#[test]
fn error_reports_call_no_function_of_the_program() {
    let at = folder("own_write");
    let program = "#include <gradus.h>
        #include <stdio.h>
        __attribute__((used, noinline)) static void write(double x) { printf(\"own write %g\\n\", x); fflush(stdout); }
        __attribute__((used, noinline)) static int abort(int x) { printf(\"own abort\\n\"); fflush(stdout); return x; }
        double f(double x, double y) { return x * x * y * y; }
        int main(int argc, char **argv)
        {
            void *tape = gradus_augmented(f, gradus_out, 2.0, gradus_const, 3.0);
            if (argc > 1)
                return gradus_return_double(f, gradus_const, 2.0, gradus_out, 3.0, 1.0, tape) > 0;
            return gradus_return_double(f, gradus_out, 2.0, gradus_const, 3.0, 1.0, tape) != 36;
        }";
    std::fs::write(at.join("own.c"), program).expect("written");
    for level in ["-O0", "-O2"] {
        let made = gradus(&at, &format!("cc {level} own.c -o own"));
        assert!(made.status.success(), "{}", text(&made));
        let right = Command::new(at.join("own")).output().expect("it runs");
        assert_eq!(right.status.code(), Some(0), "{}", text(&right));
        let wrong = Command::new(at.join("own")).arg("wrong").output();
        let wrong = wrong.expect("it runs");
        assert_eq!(wrong.status.code(), None, "{}", text(&wrong));
        assert!(!text(&wrong).contains("own"), "{}", text(&wrong));
    }
}

#[test]
fn structures_by_value_are_checked_too() {
    let at = folder("by-value");
    let program = "struct big { double a, b[4]; };
        struct small { double x, y; };
        double big(struct big p, double s) { double r = s; for (int i = 0; i < 4; i++) r += p.a * p.b[i] * p.b[i]; p.a = 0; return r * r; }
        double small(struct small p, float w) { return p.x * p.x * p.y * w; }
        struct odd { double a; int n; double b; };
        double odd(struct odd p) { return p.a * p.n * p.b; }";
    std::fs::write(at.join("v.c"), program).expect("written");
    let right = gradus(&at, "check v.c -f big --arg s=0.5");
    assert!(
        right.status.success() && text(&right).contains("of 5 entries"),
        "{}",
        text(&right)
    );
    let right = gradus(&at, "check v.c -f small");
    assert!(right.status.success(), "{}", text(&right));
    let odd = gradus(&at, "check v.c -f odd");
    assert!(
        text(&odd).contains("members of different types"),
        "{}",
        text(&odd)
    );
    let user = "struct big { double a, b[4]; };
        #include \"v.h\"
        int main(void) { struct big p = {2, {1, 1, 0, 3}}, d = {0};
            double s = big_vjp(p, &d, 0.5, 1.0); return d.a != 2 * 22.5 * 11 || s != 45; }";
    std::fs::write(at.join("user.c"), user).expect("written");
    let made = gradus(&at, "grad v.c -f big -o v.o");
    assert!(made.status.success(), "{}", text(&made));
    let linked = gradus(&at, "cc user.c v.o -o user");
    assert!(linked.status.success(), "{}", text(&linked));
    let ran = Command::new(at.join("user")).output().expect("it runs");
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran));
}
