//! Second derivatives: forward over reverse, reverse over forward and reverse over reverse agree with each
//! other and with finite differences of the gradient, on a page per structure.
//!
//! A page is a file of `second_order/`: `double NAME(int n, double *x, double s)`, with n at the end of the
//! first line. `hessian.h` requests the derivatives by call and compares them.

use crate::support::folder;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Returns name and n of every page, in the order of the names.
fn pages() -> Vec<(String, u32)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(source_folder()).expect("the pages are there") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|e| e != "c") {
            continue;
        }
        let name = path.file_stem().expect("a name").to_string_lossy();
        let text = std::fs::read_to_string(&path).expect("read");
        let head = text.lines().next().unwrap_or_default();
        let n = head.split("n = ").nth(1).and_then(|n| n.split('.').next());
        let n = n.and_then(|n| n.parse().ok()).expect("the page says n");
        found.push((name.into_owned(), n));
    }
    found.sort();
    found
}

fn source_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/second_order")
}

fn succeeds(what: &str, output: &Output) {
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what}\n{said}{errors}");
}

fn gradus(folder: &Path, args: &[&str]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gradus"));
    let output = command.args(args).current_dir(folder).output();
    succeeds(&args.join(" "), &output.expect("gradus runs"));
}

fn clang(folder: &Path, args: &[&str]) {
    let clang = std::env::var_os("GRADUS_CLANG").unwrap_or("clang-22".into());
    let output = Command::new(clang).args(args).current_dir(folder).output();
    succeeds(&args.join(" "), &output.expect("clang runs"));
}

/// Returns the functions of all pages.
fn functions() -> String {
    let at = source_folder();
    let files = pages().into_iter();
    let lines = files.map(|(name, _)| format!("#include \"{}/{name}.c\"\n", at.display()));
    format!(
        "#include <math.h>\n#include <string.h>\n{}",
        lines.collect::<String>()
    )
}

/// Returns the checks of all pages, on derivatives requested or declared by `derivatives`, as rows of
/// `row`.
fn checks(derivatives: &str, row: &str) -> String {
    let mut text = format!("#include \"{}/hessian.h\"\n", source_folder().display());
    let mut rows = String::new();
    for (name, n) in pages() {
        writeln!(text, "{derivatives}({name})").expect("text");
        writeln!(rows, "    {row}({name}, {n}),").expect("text");
    }
    let each =
        "for (unsigned i = 0; i < sizeof pages / sizeof *pages; i++) wrong |= check(&pages[i]);";
    text + &format!(
        "static const struct page pages[] = {{\n{rows}}};\nint main(void) {{\n    int wrong = 0;\n    {each}\n    return wrong;\n}}\n"
    )
}

fn by_call(level: &str) {
    let at = folder(&format!("second{level}"));
    let program = functions() + &checks("SECOND", "ROW");
    std::fs::write(at.join("all.c"), program).expect("written");
    gradus(&at, &["cc", level, "all.c", "-o", "all", "-lm"]);
    let output = Command::new(at.join("all")).output().expect("it runs");
    succeeds(level, &output);
}

#[test]
fn there_are_thirty_pages() {
    assert!(pages().len() >= 30, "{}", pages().len());
}

/// The drivers give every level equal bodies: only LLVM's optimisation differs in between.
#[test]
fn by_call_at_the_lowest_level() {
    by_call("-O0");
}

#[test]
fn by_call_at_the_highest_level() {
    by_call("-O3");
}

/// Differentiates functions of a file.
fn grad(folder: &Path, file: &str, functions: &[&str], how: &[&str]) {
    let mut args = vec!["grad", file];
    functions.iter().for_each(|name| args.extend(["-f", name]));
    args.extend(how);
    gradus(folder, &args);
}

/// Checks bitcode compiled by clang at a level, its gradients as bitcode, and the derivatives of the
/// gradients.
fn by_name(level: &str) {
    let at = folder(&format!("second-by-name{level}"));
    std::fs::write(at.join("pages.c"), functions()).expect("written");
    std::fs::write(at.join("main.c"), checks("FOUND", "FOUND_ROW")).expect("written");
    clang(
        &at,
        &[level, "-g", "-emit-llvm", "-c", "pages.c", "-o", "pages.bc"],
    );
    let found = pages();
    let primals: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    let gradients: Vec<String> = primals.iter().map(|name| format!("{name}_vjp")).collect();
    let first = ["--wrt", "x,s", "--emit", "bc", "-o", "first.bc"];
    grad(&at, "pages.bc", &primals, &first);
    let gradients: Vec<&str> = gradients.iter().map(String::as_str).collect();
    let second = ["--mode", "forward", "--wrt", "x,x_adj,s", "-o", "second.o"];
    grad(&at, "first.bc", &gradients, &second);
    clang(&at, &["main.c", "second.o", "-o", "main", "-lm"]);
    let output = Command::new(at.join("main")).output().expect("it runs");
    succeeds(level, &output);
}

#[test]
fn by_name_from_optimised_bitcode() {
    by_name("-O1");
}

#[test]
fn by_name_from_vectorised_bitcode() {
    by_name("-O3");
}

#[test]
fn a_gaussian_mixture() {
    let at = folder("second-gmm");
    let bench = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench");
    let include = format!("-I{}", bench.display());
    let main = source_folder().join("gmm_hessian.h");
    std::fs::copy(main, at.join("gmm_hessian.c")).expect("copied");
    let files = ["gmm_hessian.c", "-o", "gmm", "-lm"];
    gradus(&at, &[&["cc", "-O2", &include][..], &files].concat());
    let output = Command::new(at.join("gmm")).output().expect("it runs");
    succeeds("gmm", &output);
}

/// Returns the blocks of the manual's page on second derivatives whose opening is `info`.
fn blocks_of_page(info: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/howto/second-derivatives.md");
    let text = std::fs::read_to_string(path).expect("the page");
    let start = format!("```{info}\n");
    let blocks = text.split(&start).skip(1);
    let inner = |block: &str| block.split("```").next().unwrap_or_default().to_string();
    blocks.map(inner).collect()
}

/// Compares H v with finite differences of the gradient along v; `DO` is replaced by the product.
const PAGE_MAIN: &str = "#include <stdio.h>
#include <math.h>
enum { N = 6 };
int main(void)
{
    double x[N], v[N], g[2][N] = {{0}}, x_adj[N] = {0}, hv[N] = {0}, h = 1e-5, worst = 0;
    for (int i = 0; i < N; i++) x[i] = sin(3.0 * i), v[i] = cos(2.0 * i);
    DO(x, v, x_adj, hv);
    for (int k = 0; k < 2; k++) {
        double at[N];
        for (int i = 0; i < N; i++) at[i] = x[i] + (k ? h : -h) * v[i];
        GRADIENT(at, g[k]);
    }
    for (int i = 0; i < N; i++) worst = fmax(worst, fabs(hv[i] - (g[1][i] - g[0][i]) / (2 * h)));
    printf(\"%g\\n\", worst);
    return !(worst < 1e-8);
}
";

#[test]
fn the_page_on_second_derivatives() {
    let at = folder("second-page");
    std::fs::write(at.join("energy.c"), &blocks_of_page("c energy.c")[0]).expect("written");
    let hessian = &blocks_of_page("c hessian.c")[0];
    let (calls, _) = hessian.split_once("int main").expect("a program");
    let of_calls = "#define DO(x, v, x_adj, hv) hessian_times(x, v, x_adj, hv, N)\n#define GRADIENT(x, g) gradient(x, g, N)\n";
    std::fs::write(at.join("calls.c"), format!("{calls}{of_calls}{PAGE_MAIN}")).expect("written");
    gradus(
        &at,
        &["cc", "-O2", "energy.c", "calls.c", "-o", "calls", "-lm"],
    );
    let output = Command::new(at.join("calls")).output().expect("it runs");
    succeeds("by calls", &output);
    let shell = blocks_of_page("sh");
    let lines = shell
        .iter()
        .find(|b| b.contains("energy.bc"))
        .expect("a block");
    for line in lines.lines() {
        let words: Vec<&str> = line.split_whitespace().skip(1).collect();
        gradus(&at, &words);
    }
    let of_names = "#include \"energy.h\"\n#define DO(x, v, x_adj, hv) energy_vjp_jvp(x, v, x_adj, hv, N, 1.0)\n#define GRADIENT(x, g) energy_vjp(x, g, N, 1.0)\nvoid energy_vjp(const void *, void *, int, double);\n";
    std::fs::write(at.join("main.c"), format!("{of_names}{PAGE_MAIN}")).expect("written");
    clang(&at, &["main.c", "energy.o", "-o", "names", "-lm"]);
    let output = Command::new(at.join("names")).output().expect("it runs");
    succeeds("by name", &output);
}

/// A loop that saves a frame per iteration, in a function that is not inlined: the tape of its derivative
/// is passed between functions.
const FRAMES: &str = "#include <gradus.h>
#include <math.h>
#include <stdio.h>
__attribute__((noinline)) static void inner(const double *x, double *out, int n)
{
    for (int k = 0; k < 3; k++) {
        double s = 0;
        for (int j = 0; j < n; j++) {
            double a = x[k] * j, p = 0;
            for (int i = 0; i <= j && p < 1e3; i++)
                p = sin(p + a) * x[k] + p * p / 8;
            s += p * cos(a);
        }
        out[k] = s;
    }
}
";

/// All four orders of the modes.
const ORDERS: &str = "
static double outer(double x, int n)
{
    double at[3] = {x, 2 * x, 3 * x}, out[3], sum = 0;
    for (int m = 1; m < n; m++) {
        inner(at, out, m);
        sum += sqrt(1 + out[0] * out[0] + out[1] * out[1] + out[2] * out[2]);
        at[m % 3] += sum / 50;
    }
    return sum;
}
static double slope(double x, int n) { return gradus_vjp_double(outer, gradus_out, x, gradus_const, n); }
static double ahead(double x, int n) { return gradus_jvp_double(outer, gradus_dup, x, 1.0, gradus_const, n); }
int main(void)
{
    double worst = 0, largest = 0;
    for (double x = 0.1; x < 1; x += 0.1)
        for (int n = 0; n < 7; n++) {
            const double h = 1e-6;
            double found[4] = {
                gradus_vjp_double(slope, gradus_out, x, gradus_const, n),
                gradus_jvp_double(slope, gradus_dup, x, 1.0, gradus_const, n),
                gradus_vjp_double(ahead, gradus_out, x, gradus_const, n),
                gradus_jvp_double(ahead, gradus_dup, x, 1.0, gradus_const, n),
            };
            double near = (slope(x + h, n) - slope(x - h, n)) / (2 * h);
            for (int i = 1; i < 4; i++)
                worst = fmax(worst, fabs(found[i] - found[0]) / (1 + fabs(found[0])));
            worst = fmax(worst, 1e-5 * fabs(near - found[0]) / (1 + fabs(near)));
            largest = fmax(largest, fabs(found[0]));
        }
    printf(\"%g apart, at most %g\\n\", worst, largest);
    return !(worst < 1e-10 && largest > 1);
}
";

/// Only the seeds vary, or only the point: one half of the inner derivative is then not differentiated.
const HALVES: &str = "
__attribute__((noinline)) static void middle(const double *x, double *out, int n)
{
    double t[3];
    inner(x, t, n);
    for (int k = 0; k < 3; k++)
        t[k] = t[k] * t[(k + 1) % 3];
    inner(t, out, n);
}
static double slope(double x, double seed, int n)
{
    double at[3] = {x, x / 2, x / 3}, g[3] = {0}, out[3], d[3] = {seed, seed * seed, 1};
    gradus_vjp(middle, gradus_dup, at, g, gradus_dup, out, d, gradus_const, n);
    return g[0] + g[1] * g[2] * g[1];
}
int main(void)
{
    double worst = 0, largest = 0;
    for (double x = 0.2; x < 1; x += 0.1)
        for (int n = 0; n < 6; n++) {
            const double s = 1.1, h = 1e-6;
            double by_seed = gradus_vjp_double(slope, gradus_const, x, gradus_out, s, gradus_const, n);
            double by_point = gradus_vjp_double(slope, gradus_out, x, gradus_const, s, gradus_const, n);
            double f = (slope(x, s + h, n) - slope(x, s - h, n)) / (2 * h);
            double g = (slope(x + h, s, n) - slope(x - h, s, n)) / (2 * h);
            worst = fmax(worst, fabs(by_seed - f) / (1 + fabs(f)));
            worst = fmax(worst, fabs(by_point - g) / (1 + fabs(g)));
            largest = fmax(largest, fmin(fabs(f), fabs(g)));
        }
    printf(\"%g apart, at most %g\\n\", worst, largest);
    return !(worst < 1e-6 && largest > 0.1);
}
";

/// The inner derivative frees its tape in the forward pass around both of its halves; the tape's contents
/// and shadows must still exist in the reverse pass, and be freed afterwards.
#[test]
fn reverse_over_reverse_of_tape() {
    let at = folder("second-tape");
    for (name, rest) in [("orders", ORDERS), ("halves", HALVES)] {
        std::fs::write(at.join("tape.c"), format!("{FRAMES}{rest}")).expect("written");
        for level in ["-O0", "-O1", "-O2", "-O3"] {
            gradus(&at, &["cc", level, "tape.c", "-o", "tape", "-lm"]);
            let mut command = match level {
                "-O0" | "-O2" => {
                    let mut command = Command::new("valgrind");
                    command.args(["-q", "--error-exitcode=9", "--leak-check=full"]);
                    command.args(["--errors-for-leak-kinds=all", "./tape"]);
                    command
                }
                _ => Command::new("./tape"),
            };
            let output = command.current_dir(&at).output().expect("it runs");
            succeeds(&format!("{name} {level}"), &output);
        }
    }
}

/// A gradient by the weights of two layers, and the Hessian along a direction in both orders, for disjoint
/// and for overlapping layers.
const LAYERS: &str = r#"#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <gradus.h>
static __attribute__((noinline)) void layer(double *out, const double *in, const double *w, int T, int C) {
  for (int t = 0; t < T; t++)
    for (int o = 0; o < C; o++) {
      double sum = 0;
      for (int u = 0; u <= t; u++)
        for (int i = 0; i < C; i++) sum += in[u * C + i] * w[o * C + i];
      out[t * C + o] = sum * sum / (1 + 0.1 * t);
    }
}
double loss(double *a, double *b, double *w, int T, int C) {
  layer(b, a, w, T, C);
  layer(a, b, w, T, C);
  double sum = 0;
  for (int i = 0; i < T * C; i++) { sum += a[i] * b[i]; a[i] = 0; b[i] = 0; }
  return sum;
}
/* gradient by w into g */
void gradient(double *a, double *a_adj, double *b, double *b_adj, double *w, double *g, int T, int C) {
  gradus_vjp(loss, gradus_dup, a, a_adj, gradus_dup, b, b_adj, gradus_dup, w, g, gradus_const, T, gradus_const, C);
}
enum { T = 4, C = 3, N = T * C };
static double mem[5][2 * N], g[2][C * C], dg[2][C * C], w[C * C], v[C * C];
static void reset(int overlap, double h) {
  memset(mem, 0, sizeof mem); memset(g, 0, sizeof g);
  for (int i = 0; i < N; i++) mem[0][i] = 0.2 + 0.01 * i;
  for (int i = 0; i < C * C; i++) { v[i] = 0.3 - 0.07 * i; w[i] = 0.3 + 0.02 * i + h * v[i]; }
}
static double *B(int k, int overlap) { return overlap ? mem[k] + C : mem[k] + N; }
int main(void) {
  int wrong = 0;
  for (int overlap = 0; overlap < 2; overlap++) {
    double up[C * C], down[C * C], e = 1e-5;
    reset(overlap, e); gradient(mem[0], mem[1], B(0, overlap), B(1, overlap), w, g[0], T, C); memcpy(up, g[0], sizeof up);
    reset(overlap, -e); gradient(mem[0], mem[1], B(0, overlap), B(1, overlap), w, g[0], T, C); memcpy(down, g[0], sizeof down);
    reset(overlap, 0); memset(dg, 0, sizeof dg);
    gradus_jvp(gradient, gradus_dup, mem[0], mem[2], gradus_dup, mem[1], mem[3], gradus_dup, B(0, overlap), B(2, overlap),
               gradus_dup, B(1, overlap), B(3, overlap), gradus_dup, w, v, gradus_dup, g[0], dg[0], gradus_const, T, gradus_const, C);
    double worst = 0, w2 = 0, scale = 0;
    for (int i = 0; i < C * C; i++) { double d = (up[i] - down[i]) / (2 * e) - dg[0][i]; worst = d * d > worst ? d * d : worst; scale = dg[0][i] * dg[0][i] > scale ? dg[0][i] * dg[0][i] : scale; }
    wrong |= !(worst < 1e-10 * scale);
    /* reverse over reverse: seed g with v, adjoint of w = Hessian times v */
    double hv[C * C] = {0}, seed[C * C]; memcpy(seed, v, sizeof seed);
    reset(overlap, 0);
    gradus_vjp(gradient, gradus_dup, mem[0], mem[2], gradus_dup, mem[1], mem[3], gradus_dup, B(0, overlap), B(2, overlap),
               gradus_dup, B(1, overlap), B(3, overlap), gradus_dup, w, hv, gradus_dup, g[0], seed, gradus_const, T, gradus_const, C);
    for (int i = 0; i < C * C; i++) { double d = hv[i] - dg[0][i]; w2 = d * d > w2 ? d * d : w2; }
    wrong |= !(w2 < 1e-18 * scale) ? 2 : 0;
  }
  return wrong;
}
"#;

/// Both versions of a derivative, and the tag on the tape that selects one, are differentiable code.
#[test]
fn second_order_of_versioned_passes() {
    let at = folder("second-versions");
    std::fs::write(at.join("layers.c"), LAYERS).expect("written");
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        gradus(&at, &["cc", level, "layers.c", "-o", "layers", "-lm"]);
        let mut command = Command::new(at.join("layers"));
        succeeds(level, &command.output().expect("it runs"));
    }
}
