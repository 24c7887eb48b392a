//! Functions that are neither derivatives nor request any leave `gradus cc` exactly as clang compiles them,
//! instruction by instruction, also in a file with derivatives.

use crate::support::{folder, shell, text, write};
use std::collections::BTreeMap;
use std::path::Path;

/// Returns the functions of an assembly text: lines without comments, and labels without function numbers.
fn functions(assembly: &str) -> BTreeMap<String, Vec<String>> {
    let mut functions: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut inside: Option<String> = None;
    for line in assembly.lines() {
        let code = line.split('#').next().unwrap_or_default().trim();
        if let Some(rest) = code.strip_prefix(".type") {
            let name = rest.strip_suffix(",@function").map(str::trim);
            inside = name.map(String::from);
        } else if code.starts_with(".Lfunc_end") {
            inside = None;
        } else if let Some(name) = &inside
            && (!code.is_empty() && !code.starts_with('.') || code.starts_with(".LBB"))
        {
            let lines = functions.entry(name.clone()).or_default();
            lines.push(unnumbered(code));
        }
    }
    functions
}

/// Replaces `.LBB7_2` by `.LBB_2` in a line, and likewise for constants and jump tables.
fn unnumbered(code: &str) -> String {
    let mut out = code.to_string();
    for label in [".LBB", ".LCPI", ".LJTI"] {
        let mut pieces = out.split(label);
        let first = pieces.next().unwrap_or_default().to_string();
        out = pieces.fold(first, |out, piece| {
            let rest = piece.trim_start_matches(|c: char| c.is_ascii_digit());
            out + label + rest
        });
    }
    out
}

/// The functions of a source, compiled by clang and by Gradus.
type Both = (BTreeMap<String, Vec<String>>, BTreeMap<String, Vec<String>>);

fn both(at: &Path, flags: &str, source: &str) -> Both {
    let made = |compiler: &str, out: &str| {
        shell(at, &format!("{compiler} {flags} -w -S {source} -o {out}"));
        functions(&std::fs::read_to_string(at.join(out)).expect("assembly"))
    };
    (made("clang-22", "clang.s"), made("gradus cc", "gradus.s"))
}

const COURSE: &[&str] = &[
    "ba", "bruss", "cg", "fft", "gmm", "lstm", "mlp", "nbody", "rk4", "stencil",
];

#[test]
fn benchmark_functions_are_clangs() {
    let at = folder("untouched_functions-course");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/enzyme_api.c");
    for (name, level) in COURSE.iter().zip(["-O3", "-O2", "-O1"].iter().cycle()) {
        let flags = format!("{level} -DUSE_ENZYME_API -DCOURSE={name}");
        let (clang, ours) = both(&at, &flags, source);
        let objective = format!("{name}_objective");
        assert!(clang.contains_key(&objective), "{name}: {:?}", clang.keys());
        for (function, code) in &clang {
            // Functions that request the gradient, or have an inlined request.
            if !function.ends_with("_gradient") {
                assert_eq!(ours.get(function), Some(code), "{name} {level}: {function}");
            }
        }
    }
}

const SHARED: &str = r#"
#include <math.h>
#include <stdio.h>
double __enzyme_autodiff(void *, ...);
static int calls;
/* derivatives call it, too */
__attribute__((noinline)) static double counted(double x) { calls++; return x * x; }
/* inlined everywhere */
static double plain(double x) { return 3 * x + 1; }
typedef double (*rule)(double);
static double first(double x) { return plain(x); }
static double second(double x) { return counted(x) + plain(x); }
static const rule rules[] = {first, second};
double by_rule(int which, double x)
{
    return rules[which & 1] == second ? second(x) / 2 : rules[which & 1](x);
}
double energy(const double *x, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += sqrt(1 + counted(x[i])) + plain(x[i]);
    return sum;
}
/* inlined everywhere, and then gone */
static void gradient(const double *x, double *x_adj, int n)
{
    __enzyme_autodiff((void *)energy, x, x_adj, n);
}
static double slope(double at)
{
    double x_adj = 0;
    gradient(&at, &x_adj, 1);
    return x_adj;
}
double flat(double x) { return slope(x) > 1e9 ? 0 : x; }
int main(void)
{
    double x[3] = {0, 0.75, -0.75}, x_adj[3] = {0};
    gradient(x, x_adj, 3);
    printf("%g %g %g\n", x_adj[0], x_adj[1], x_adj[2]);
    calls = 0;
    double e = energy(x, 3);
    printf("%g %d\n", e, calls);
    e = by_rule(0, 1) + by_rule(1, 1);
    printf("%g %d\n", e, calls);
    printf("%g %g\n", slope(0.75), flat(2));
    return 0;
}
"#;

#[test]
fn restored_functions_share_state() {
    let at = folder("untouched_functions-shared");
    write(&at, "a.c", SHARED);
    for flags in ["-O0", "-O1", "-O2 -g", "-O3"] {
        shell(&at, &format!("gradus cc {flags} a.c -o a -lm"));
        let said = text(&shell(&at, "./a").stdout);
        assert_eq!(said, "3 3.6 2.4\n6.5 3\n6.5 4\n3.6 2\n", "{flags}");
        if flags != "-O0" {
            let (clang, ours) = both(&at, flags, "a.c");
            for function in ["energy", "by_rule"] {
                let code = clang.get(function);
                assert!(code.is_some_and(|code| code.len() > 5), "{function}");
                assert_eq!(ours.get(function), code, "{flags}: {function}");
            }
        }
    }
}
