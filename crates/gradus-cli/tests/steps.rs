//! `gradus/steps.h`: the gradient of many steps from few checkpoints equals the gradient of the plain loop,
//! at every level, in C and C++, without leaks. The number of step executions is bounded as documented.
//! Steps that cannot be rerun are reported.

use crate::support::{folder, gradus, write};
use std::path::Path;
use std::process::{Command, Output};

/// A system with scratch memory, a time and the step number; the reference runs in a plain loop.
const SYSTEM: &str = r#"#include <gradus/steps.h>
#include <math.h>
struct sim { long n; double *x, *y, dt, time; };
static int runs[2000];
static void step(struct sim *s, long k)
{
    double *t = (double *)malloc(s->n * sizeof *t);
    runs[k]++;
    PARALLEL
    for (long i = 0; i < s->n; i++)
        t[i] = s->x[i] + s->dt * sin(s->y[(i + 1) % s->n] + s->time) * (1 + 0.01 * k);
    for (long i = 0; i < s->n; i++) {
        s->y[i] = s->y[i] * cos(t[i]) + s->x[i];
        s->x[i] = t[i];
    }
    EXCHANGE
    s->time += s->dt;
    free(t);
}
static void state(struct sim *s, struct gradus_state *c)
{
#ifndef FORGET
    gradus_keep(c, &s->time, sizeof s->time);
#endif
    gradus_keep(c, s->x, s->n * sizeof *s->x);
    gradus_keep(c, s->y, s->n * sizeof *s->y);
}
GRADUS_STEPS(run, struct sim, step, state);
double f(struct sim *s, const double *x, long steps, long copies, int kept)
{
    for (long i = 0; i < s->n; i++) {
        s->x[i] = x[i];
        s->y[i] = 1;
    }
    if (kept)
        run(s, steps, copies);
    else
        for (long k = 0; k < steps; k++)
            step(s, k);
    double r = 0;
    for (long i = 0; i < s->n; i++)
        r += s->x[i] * s->y[i] * s->time;
    s->time *= 2;
    return r;
}
"#;

const SAME: &str = r#"
int main(void)
{
    enum { N = 7, WAYS = 11 };
    static const long ways[WAYS][2] = {{0, 0}, {1, 1}, {2, 1}, {5, 0}, {5, 1}, {5, 2}, {5, 3}, {6, 9}, {40, 3}, {41, 4}, {33, 1}};
    double worst = 0, size = 0;
    for (int w = 0; w < WAYS; w++) {
        double got[2][N + 1], tangent[2] = {0, 0}, end[2][2], along = 0;
        for (int kept = 0; kept < 2; kept++) {
            double x[N], dx[N] = {0}, tx[N], a[N], b[N], da[N] = {0}, db[N] = {0}, ta[N] = {0}, tb[N] = {0};
            for (int i = 0; i < N; i++) {
                x[i] = 0.3 * i + 0.1;
                tx[i] = 1 - 0.2 * i;
            }
            struct sim s = {N, a, b, 0.1, 0.25}, ds = {N, da, db, 0, 0}, ts = {N, ta, tb, 0, 0};
            gradus_vjp(f, gradus_dup, &s, &ds, gradus_dup, x, dx, gradus_const, ways[w][0], gradus_const, ways[w][1], gradus_const, kept);
            for (int i = 0; i < N; i++)
                got[kept][i] = dx[i];
            got[kept][N] = ds.dt;
            end[kept][0] = s.time;
            end[kept][1] = a[3] + b[2];
            s.time = 0.25;
            tangent[kept] = gradus_jvp_double(f, gradus_dup, &s, &ts, gradus_dup, x, tx, gradus_const, ways[w][0], gradus_const, ways[w][1], gradus_const, kept);
            along = 0;
            for (int i = 0; i < N; i++)
                along += dx[i] * tx[i];
        }
        for (int i = 0; i <= N; i++) {
            worst = fmax(worst, fabs(got[0][i] - got[1][i]) / (1e-3 + fabs(got[0][i])));
            size += fabs(got[1][i]);
        }
        worst = fmax(worst, fabs(end[0][0] - end[1][0]) + fabs(end[0][1] - end[1][1]));
        worst = fmax(worst, fabs(tangent[1] - along) / (1e-3 + fabs(along)));
    }
    puts(worst < 1e-12 && size > 100 ? "same" : "DIFFERENT");
    return 0;
}
"#;

/// The number of executions of each step: once forward; then, with c checkpoints and t the least number
/// with (c + t)! / (c! t!) at least the number of steps, at most t times without and once with gradient.
/// With a checkpoint per step: once in total, and once with gradient.
const COUNTED: &str = r#"
int main(void)
{
    static const long ways[][3] = {{20, 3, 5}, {21, 3, 6}, {1000, 9, 7}, {2000, 9, 7}, {50, 1, 51}, {50, 2, 11}, {70, 70, 2}, {70, 0, 2}};
    for (int w = 0; w < 8; w++) {
        double x[2] = {0.4, 0.3}, dx[2] = {0}, a[2], b[2], da[2] = {0}, db[2] = {0};
        struct sim s = {2, a, b, 0.001, 0.25}, ds = {2, da, db, 0, 0};
        memset(runs, 0, sizeof runs);
        gradus_vjp(f, gradus_dup, &s, &ds, gradus_dup, x, dx, gradus_const, ways[w][0], gradus_const, ways[w][1], gradus_const, 1);
        int most = 0, least = 9999;
        for (long k = 0; k < ways[w][0]; k++) {
            most = runs[k] > most ? runs[k] : most;
            least = runs[k] < least ? runs[k] : least;
        }
        printf("%ld %ld: %d to %d, %s\n", ways[w][0], ways[w][1], least, most, most <= ways[w][2] && least >= 2 ? "as promised" : "NOT");
    }
    return 0;
}
"#;

const ONE: &str = r#"
int main(void)
{
    double x[2] = {0.4, 0.3}, dx[2] = {0}, a[2], b[2], da[2] = {0}, db[2] = {0};
    struct sim s = {2, a, b, 0.1, 0.25}, ds = {2, da, db, 0, 0};
    gradus_vjp(f, gradus_dup, &s, &ds, gradus_dup, x, dx, gradus_const, (long)5, gradus_const, (long)2, gradus_const, 1);
    puts("done");
    return 0;
}
"#;

fn text(output: &Output) -> String {
    let all = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8_lossy(&all).into_owned()
}

fn build(at: &Path, driver: &str, main: &str, flags: &str) {
    write(at, "main.c", &format!("{SYSTEM}{main}"));
    let words = match flags.contains("-D") {
        true => "",
        false => "-DPARALLEL= -DEXCHANGE=",
    };
    let made = gradus(at, &format!("{driver} {words} {flags} main.c -lm -o steps"));
    assert!(made.status.success(), "{flags}: {}", text(&made));
}

fn run(at: &Path) -> Output {
    let mut command = Command::new(at.join("steps"));
    command
        .env("OMP_NUM_THREADS", "2")
        .output()
        .expect("it runs")
}

#[test]
fn checkpointed_gradient_is_exact() {
    let at = folder("steps-same");
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        build(&at, "cc", SAME, &format!("{level} -Wall -Wextra -Werror"));
        let checked = Command::new("valgrind")
            .args(["-q", "--leak-check=full", "--error-exitcode=9"])
            .args(["--errors-for-leak-kinds=all", "--show-leak-kinds=all"])
            .arg(at.join("steps"))
            .output()
            .expect("it runs");
        assert_eq!(text(&checked), "same\n", "{level}");
    }
    let sanitized = "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all";
    build(&at, "cc", SAME, sanitized);
    assert_eq!(text(&run(&at)), "same\n");
}

#[test]
fn checkpointed_gradient_in_cplusplus() {
    let at = folder("steps-parallel");
    write(
        &at,
        "parallel.h",
        "#define PARALLEL _Pragma(\"omp parallel for\")\n",
    );
    let flags = "-x c++ -O2 -fopenmp -include parallel.h -DEXCHANGE=";
    build(&at, "c++", SAME, flags);
    assert_eq!(text(&run(&at)), "same\n");
}

#[test]
fn step_executions_are_bounded() {
    let at = folder("steps-counted");
    build(&at, "cc", COUNTED, "-O1");
    let said = text(&run(&at));
    assert_eq!(said.matches("as promised").count(), 8, "{said}");
}

#[test]
fn unrepeatable_steps_are_reported() {
    let at = folder("steps-told");
    build(&at, "cc", ONE, "-O1 -DPARALLEL= -DEXCHANGE=");
    assert_eq!(text(&run(&at)), "done\n");
    let exchange =
        "#define PARALLEL\n#define EXCHANGE { double *t = s->x; s->x = s->y; s->y = t; }\n";
    write(&at, "exchange.h", exchange);
    for (flags, message) in [
        (
            "-O1 -DFORGET -DPARALLEL= -DEXCHANGE=",
            "did not do again what it did",
        ),
        ("-O1 -DALL -include exchange.h", "names other memory"),
    ] {
        build(&at, "cc", ONE, flags);
        let ran = run(&at);
        assert!(!ran.status.success(), "{flags}");
        assert!(text(&ran).contains(message), "{flags}: {}", text(&ran));
    }
}
