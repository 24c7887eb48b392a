//! Reverse passes with reversed loops or scatter-to-gather, compared with forward mode: at every level, for
//! short and long loops, with disjoint, shifted and equal arguments.

use crate::support::folder;
use std::path::Path;
use std::process::Command;

/// Functions that read neighbours, and the dot test `<w, J d> = <Jᵀ w, d>` with all arguments in a single
/// buffer. Prints the maximum relative error, and the number of tests.
const PROGRAM: &str = r#"
#include <math.h>
#include <stdio.h>
#include <string.h>
extern int enzyme_const, enzyme_dup;
void __enzyme_autodiff(void *, ...);
void __enzyme_fwddiff(void *, ...);

static void three(int n, REAL *x, REAL *y) {
    for (int i = 1; i < n - 1; i++) y[i] = x[i - 1] * x[i] + 2 * x[i + 1]; }
static void upside_down(int n, REAL *x, REAL *y) {
    for (int i = n - 2; i >= 1; i--) y[i] = x[i - 1] * x[i + 1] + 2 * x[i]; }
static void far(int n, REAL *x, REAL *y) {
    for (int i = 2; i < n - 2; i++) y[i] = x[i - 2] * x[i + 2] - x[i + 1]; }
static void pairs(int n, REAL *x, REAL *y) {
    for (int i = 1; i < n / 2 - 1; i++) { y[2 * i] = x[2 * i] * x[2 * i + 2]; y[2 * i + 1] = x[2 * i - 1] * x[2 * i + 1]; } }
static void grid(int n, REAL *x, REAL *y) {
    int w = n / 4;
    for (int i = 1; i < 3; i++)
        for (int j = 1; j < w - 1; j++) {
            int c = i * w + j;
            y[c] = x[c] * (x[c - 1] + x[c + 1]) - x[c - w] * x[c + w];
        } }
static void chain(int n, REAL *x, REAL *y) {
    for (int i = 1; i < n; i++) { y[i] = x[i] * (REAL)0.5 + y[i - 1] * (REAL)0.25; x[i] = y[i] * x[i - 1]; } }
static void row(int n, REAL *x, REAL *y) {
    REAL s = 0;
    for (int i = 1; i < n; i++) s += x[i] * x[i];
    y[0] = s * x[0]; }

enum { SIZE = 48, ROOM = 2 * SIZE };
static unsigned seed = 7;
static REAL dice(void) { seed = seed * 1664525u + 1013904223u; return (REAL)(seed >> 8) / (1 << 24) - (REAL)0.5; }
static double worst; static int tested;

#define TEST(f) for (int n = 4; n <= SIZE; n += n < 14 ? 1 : 11) for (int at = 0; at < 4; at++) { \
    int shift = at == 3 ? SIZE : at; \
    REAL m[ROOM], d[ROOM], w[ROOM], v[ROOM], wd[ROOM]; double left = 0, right = 0, size = 1e-30; \
    for (int i = 0; i < ROOM; i++) { m[i] = dice(); d[i] = v[i] = dice(); w[i] = wd[i] = dice(); } \
    REAL p[ROOM]; memcpy(p, m, sizeof p); \
    __enzyme_fwddiff((void *)f, enzyme_const, n, enzyme_dup, p, v, enzyme_dup, p + shift, v + shift); \
    memcpy(p, m, sizeof p); \
    __enzyme_autodiff((void *)f, enzyme_const, n, enzyme_dup, p, w, enzyme_dup, p + shift, w + shift); \
    for (int i = 0; i < ROOM; i++) { left += (double)wd[i] * v[i]; right += (double)w[i] * d[i]; \
        size += fabs((double)wd[i] * v[i]) + fabs((double)w[i] * d[i]); } \
    worst = fmax(worst, fabs(left - right) / size); tested++; }

int main(void) {
    TEST(three) TEST(upside_down) TEST(far) TEST(pairs) TEST(grid) TEST(chain) TEST(row)
    printf("%d %d\n", tested, worst < LIMIT);
    if (!(worst < LIMIT)) printf("%g\n", worst);
    return 0; }
"#;

fn output(program: &Path, folder: &Path, line: &str) -> String {
    let words = line.split_whitespace();
    let output = Command::new(program)
        .args(words)
        .current_dir(folder)
        .output();
    let output = output.expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn scatter_to_gather_matches_forward() {
    let at = folder("scatter_to_gather");
    std::fs::write(at.join("loops.c"), PROGRAM).expect("written");
    let gradus = Path::new(env!("CARGO_BIN_EXE_gradus"));
    for real in ["-DREAL=double -DLIMIT=1e-13", "-DREAL=float -DLIMIT=1e-5"] {
        for level in ["-O0", "-O1", "-O2", "-O3"] {
            output(
                gradus,
                &at,
                &format!("cc {level} {real} loops.c -lm -o loops"),
            );
            let said = output(&at.join("loops"), &at, "");
            assert_eq!(said, "392 1\n", "{level} {real}");
        }
    }
}

#[test]
fn the_report_says_which_loops_were_changed() {
    const THREE: &str = "void three(int n, const double *x, double *y) {
        for (int i = 1; i < n - 1; i++) y[i] = x[i - 1] * x[i] + 2 * x[i + 1]; }";
    let at = folder("scatter_to_gather-report");
    std::fs::write(at.join("three.c"), THREE).expect("written");
    let gradus = Path::new(env!("CARGO_BIN_EXE_gradus"));
    let said = output(
        gradus,
        &at,
        "grad three.c -f three --report=full --wrt x,y -o three.o",
    );
    assert!(
        said.contains("scatter-to-gather: 1 inner loop of"),
        "{said}"
    );
}
