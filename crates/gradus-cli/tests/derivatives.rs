//! The user's workflow: derivatives by name and by call, in a single file and across files, checked, and
//! refused if unsupported.

use crate::support::{accepts, folder, gradus, refuses, text, write};
use std::path::{Path, PathBuf};
use std::process::Command;

fn run(folder: &Path, program: &str) -> String {
    let output = Command::new(folder.join(program))
        .output()
        .expect("it runs");
    assert!(output.status.success(), "{program}: {}", output.status);
    text(&output.stdout)
}

fn clang(folder: &Path, line: &str) {
    let clang = std::env::var_os("GRADUS_CLANG").unwrap_or("clang-22".into());
    let status = Command::new(clang)
        .args(line.split_whitespace())
        .current_dir(folder)
        .status();
    assert!(status.expect("clang runs").success(), "clang {line}");
}

const CURVE: &str = "#include <math.h>
double curve(const double *x, int n, double s)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += s * sin(x[i]) * x[i];
    return sum;
}
";

/// Compares with the formula: the adjoint of x[i] is s (cos x x + sin x), the adjoint of s is the sum.
const CURVE_MAIN: &str = "#include <math.h>
#include <stdio.h>
#include \"curve.h\"
double curve(const double *x, int n, double s);
int main(void)
{
    double x[5] = {0.5, -1, 2, 3.5, 0}, x_adj[5] = {0}, sum = 0, worst = 0;
    double s_adj = curve_vjp(x, x_adj, 5, 3, 2);
    for (int i = 0; i < 5; i++) {
        sum += sin(x[i]) * x[i];
        worst = fmax(worst, fabs(x_adj[i] - 2 * 3 * (cos(x[i]) * x[i] + sin(x[i]))));
    }
    worst = fmax(worst, fabs(s_adj - 2 * sum));
    worst = fmax(worst, fabs(curve(x, 5, 3) - 3 * sum));
    printf(\"%d\\n\", worst < 1e-13);
    return 0;
}
";

#[test]
fn grad_object_replaces_original() {
    let at = folder("by-name");
    write(&at, "curve.c", CURVE);
    write(&at, "main.c", CURVE_MAIN);
    for flags in ["", "-- -O0", "-- -O3 -g", "-- -O2 -ffast-math"] {
        let said = accepts(
            &at,
            &format!("grad curve.c -f curve --wrt x,s -o curve.o {flags}"),
        );
        assert!(said.contains("wrote curve.o"), "{said}");
        clang(&at, "-O1 main.c curve.o -lm -o main");
        assert_eq!(run(&at, "main"), "1\n", "{flags}");
    }
}

#[test]
fn every_form_can_be_emitted() {
    let at = folder("forms");
    write(&at, "curve.c", CURVE);
    for (kind, file, part) in [
        ("llvm", "curve.ll", "define"),
        ("asm", "curve.s", "curve_vjp:"),
        ("gir", "curve.gir", "func @"),
        ("header", "curve.h", "curve_vjp("),
        ("bc", "curve.bc", "BC"),
    ] {
        accepts(&at, &format!("grad curve.c -f curve --emit {kind}"));
        let bytes = std::fs::read(at.join(file)).expect("written");
        assert!(text(&bytes).contains(part), "{kind}");
    }
    // From bitcode as from source; argument names come from the bitcode.
    accepts(
        &at,
        "grad curve.bc -f curve --wrt x --name again --mode forward -o again.o",
    );
}

#[test]
fn checks_report_missing_values() {
    let at = folder("checks");
    write(&at, "curve.c", CURVE);
    let said = accepts(
        &at,
        "check curve.c -f curve --arg n=20 --arg x=rand(n) --arg s=1.5",
    );
    assert!(
        said.contains("dot product") && said.contains("the derivative is right"),
        "{said}"
    );
    let said = refuses(&at, "check curve.c -f curve", "GRD0027");
    assert!(
        said.contains("`x`") && said.contains("`n`") && !said.contains("`s`"),
        "{said}"
    );
    refuses(
        &at,
        "check curve.c -f curve --arg n=4 --arg x=rand(n) --arg z=1",
        "GRD0003",
    );
    refuses(
        &at,
        "check curve.c -f curve --arg n=4 --arg x=rand(m)",
        "GRD0027",
    );
    write(
        &at,
        "kink.c",
        "#include <math.h>\ndouble kink(double x) { return fabs(x); }\n",
    );
    let said = accepts(&at, "check kink.c -f kink --arg x=0.0");
    assert!(said.contains("do not converge"), "{said}");
    assert!(
        said.ends_with(
            "right at other values; at the given values finite differences do not converge\n"
        ),
        "{said}"
    );
    write(
        &at,
        "still.c",
        "#include <math.h>
         double still(double x, double step) {
             double length = sqrt(step * step);
             return x * x + length * x;
         }\n",
    );
    for level in ["-O0", "-O2"] {
        let said = |more: &str| {
            let line = format!("check still.c -f still --arg x=2 --arg step=0 {more} -- {level}");
            let output = gradus(&at, &line);
            assert!(output.status.success(), "{line}");
            String::from_utf8_lossy(&output.stderr).into_owned()
        };
        let plain = said("");
        let named = plain.contains("warning[GRD0038]") && plain.contains("still.c:3");
        assert!(named, "{plain}");
        assert_eq!(said("--strong-zero"), "");
    }
    write(
        &at,
        "dies.c",
        "double dies(const double *x, int n) { return x[n * 1000000L]; }\n",
    );
    refuses(
        &at,
        "check dies.c -f dies --arg n=1000000 --arg x=rand(1)",
        "GRD0028",
    );
    write(
        &at,
        "hangs.c",
        "double hangs(double x, long n) { for (volatile long i = 0; i < n; ) x += x * n; return x; }\n",
    );
    let hangs = gradus(
        &at,
        "check hangs.c -f hangs --arg x=1.0 --arg n=1 --limit 1",
    );
    assert_eq!(hangs.status.code(), Some(3), "{}", text(&hangs.stderr));
}

const CALLER: &str = "#include <stdio.h>
#include <gradus.h>
double f(const double *x, int n);
int main(void)
{
    double x[3] = {1, 2, 3}, x_adj[3] = {0};
    gradus_vjp(f, gradus_dup, x, x_adj, gradus_const, 3);
    printf(\"%g %g %g\\n\", x_adj[0], x_adj[1], x_adj[2]);
}
";
const SUM: &str = "double cube(double);
double f(const double *x, int n) { double s = 0; for (int i = 0; i < n; i++) s += cube(x[i]); return s; }
";
const CUBE: &str = "double cube(double x) { return x * x * x; }\n";

/// Writes the three files into a folder for the test.
fn three_files(test: &str) -> PathBuf {
    let at = folder(test);
    write(&at, "main.c", CALLER);
    write(&at, "sum.c", SUM);
    write(&at, "cube.c", CUBE);
    at
}

#[test]
fn derivatives_cross_files_in_one_step() {
    let at = three_files("one-step");
    for flags in ["-O0", "-O1", "-O2 -g", "-O3"] {
        accepts(&at, &format!("cc {flags} main.c sum.c cube.c -o program"));
        assert_eq!(run(&at, "program"), "3 12 27\n", "{flags}");
    }
}

/// A program may define its own `y1`: definitions in its files take precedence over the C library's name.
#[test]
fn program_functions_named_like_libc() {
    let at = folder("own-names");
    let asks = "#include <gradus.h>
        #include <stdio.h>
        double y1(double);
        double f(double x) { return y1(x) * 3; }
        int main(void) { printf(\"%g\\n\", gradus_vjp_double(f, gradus_out, 2.0)); }\n";
    write(&at, "asks.c", asks);
    write(&at, "own.c", "double y1(double x) { return x * x; }\n");
    let library = asks.replace("double y1(double);", "#include <math.h>");
    write(&at, "library.c", &library);
    accepts(&at, "cc -O1 asks.c own.c -o together -lm");
    assert_eq!(run(&at, "together"), "12\n");
    accepts(&at, "cc -O1 -c asks.c own.c");
    accepts(&at, "cc asks.o own.o -o linked -lm");
    assert_eq!(run(&at, "linked"), "12\n");
    // Without a definition, the library's function is meant: y1'(2) · 3.
    accepts(&at, "cc asks.o -o alone -lm");
    assert_eq!(run(&at, "alone"), "1.69168\n");
    accepts(&at, "cc -O1 library.c -o library -lm");
    assert_eq!(run(&at, "library"), "1.69168\n");
    // An object without bitcode defines the function: an unknown callee.
    let clang = Command::new("clang-22")
        .args(["-c", "own.c", "-o", "bare.o"])
        .current_dir(&at)
        .status();
    assert!(clang.expect("clang runs").success());
    let output = gradus(&at, "cc asks.o bare.o -o bare -lm");
    assert!(text(&output.stderr).contains("error[GRD0005]"));
    // Output from a single file is differentiated again: the derivative of j0 calls j1.
    write(
        &at,
        "bessel.c",
        "#include <math.h>\ndouble f(double x) { return j0(x); }\n",
    );
    accepts(&at, "grad bessel.c -f f --emit bc -o bessel.bc");
    accepts(&at, "grad bessel.bc -f f_vjp --mode forward -o bessel.o");
    accepts(&at, "grad library.c -f f -o library.o");
}

/// `volatile` on a local variable that does not escape is irrelevant, also in programs with threads.
#[test]
fn volatile_local_variables_are_differentiated() {
    let at = folder("volatile");
    let program = "#include <math.h>
        __attribute__((noinline)) double seen(volatile double *x) { return *x * *x; }
        double local(double x, int n) {
            volatile double s = 0, part[2];
            for (int i = 0; i < n; i++) {
                part[i % 2] = sin(x * i);
                s += part[0] * part[i % 2];
            }
            return s;
        }
        double shown(double x) { volatile double y = x * x; return seen(&y); }
        void threads(int n, double *x) {
            #pragma omp parallel for
            for (int i = 0; i < n; i++) x[i] *= 2;
        }\n";
    write(&at, "volatile.c", program);
    for level in ["-O0 -fopenmp", "-O2 -fopenmp"] {
        accepts(
            &at,
            &format!("check volatile.c -f local --arg n=5 --arg x=0.7 -- {level}"),
        );
    }
    let output = gradus(&at, "grad volatile.c -f shown -o shown.o -- -O0 -fopenmp");
    assert!(text(&output.stderr).contains("error[GRD0031]"));
}

#[test]
fn cross_file_with_archives() {
    let at = three_files("two-steps");
    accepts(&at, "cc -O2 -c main.c sum.c cube.c");
    accepts(&at, "cc main.o sum.o cube.o -o program");
    assert_eq!(run(&at, "program"), "3 12 27\n");
    let archive = Command::new("ar")
        .args(["rc", "libparts.a", "sum.o", "cube.o"])
        .current_dir(&at)
        .status();
    assert!(archive.expect("ar runs").success());
    for line in [
        "cc main.o libparts.a -o archived",
        "cc main.o -L. -lparts -o archived",
    ] {
        accepts(&at, line);
        assert_eq!(run(&at, "archived"), "3 12 27\n", "{line}");
    }
    // An object of another compiler carries no module.
    clang(&at, "-c cube.c -o cube.o");
    let said = refuses(&at, "cc main.o sum.o cube.o -o missing", "GRD0005");
    assert!(
        said.contains("sum.c:2") && said.contains("`cube`"),
        "{said}"
    );
    assert!(!at.join("missing").exists());
}

/// The call and its function are in a file, and the function's callee is in another.
#[test]
fn callee_in_another_file() {
    let at = folder("callee-elsewhere");
    let caller = CALLER.replace("double f(const double *x, int n);", SUM);
    write(&at, "main.c", &caller);
    write(&at, "cube.c", CUBE);
    for flags in ["-O0", "-O2"] {
        accepts(&at, &format!("cc {flags} main.c cube.c -o program"));
        assert_eq!(run(&at, "program"), "3 12 27\n", "{flags}");
    }
    let output = gradus(&at, "cc -O2 -c main.c cube.c");
    // The link may resolve the call: a compilation alone says nothing.
    assert!(output.status.success());
    assert_eq!(text(&output.stderr), "");
    accepts(&at, "cc main.o cube.o -o program");
    assert_eq!(run(&at, "program"), "3 12 27\n");
    clang(&at, "-c cube.c -o cube.o");
    refuses(&at, "cc main.c cube.o -o missing", "GRD0005");
    refuses(&at, "cc main.c -S -o main.s", "GRD0005");
    assert!(!at.join("missing").exists() && !at.join("main.s").exists());
}

/// Adding and subtracting a large number is a step function, not the identity.
#[test]
fn rounding_by_a_large_constant_has_no_derivative() {
    let at = folder("rounding");
    let program =
        "double part(double x) { double y = x + 0x1.8p52 - 0x1.8p52; return (x - y) * (x - y); }
        double whole(double x) { double y = -0x1p52 + x; return (y + 0x1p52) * x; }
        float single(float x) { float y = x - 0x1.8p23f; y += 0x1.8p23f; return (x - y) * x; }
        double shifted(double x) { double y = x + 1e3; return (y - 1e3) * x; }\n";
    write(&at, "rounding.c", program);
    for level in ["-O0", "-O2"] {
        for function in ["part", "whole", "single", "shifted"] {
            let line = format!("check rounding.c -f {function} --arg x=2.300001 -- {level}");
            let said = accepts(&at, &line);
            assert!(said.contains("the derivative is right"), "{said}");
        }
    }
}

/// The contents of a global before a call are not an input: its shadow is zero at each call.
#[test]
fn static_state_is_not_carried_from_call_to_call() {
    let at = folder("state");
    let program = "#include <gradus.h>
        #include <stdio.h>
        static double total;
        static struct { double *at, value; int n; } mixed = {&total, 0, 0};
        static double f(double x) {
            *mixed.at += x * x;
            mixed.value += total * x;
            return mixed.value;
        }
        int main(void) {
            for (int i = 0; i < 2; i++) {
                total = mixed.value = 0;
                printf(\"%g \", gradus_vjp_double(f, gradus_out, 3.0));
                total = mixed.value = 0;
                printf(\"%g \", gradus_jvp_double(f, gradus_dup, 3.0, 1.0));
                total = mixed.value = 0;
                void *tape = gradus_augmented(f, gradus_out, 3.0);
                printf(\"%g \", gradus_return_double(f, gradus_out, 3.0, 1.0, tape));
            }
        }\n";
    write(&at, "state.c", program);
    for level in ["-O0", "-O2"] {
        accepts(&at, &format!("cc {level} state.c -o state"));
        assert_eq!(run(&at, "state"), "27 27 27 27 27 27 ", "{level}");
    }
}

/// `gradus grad` refuses a zero derivative; a call of a zero derivative produces a warning.
#[test]
fn zero_derivatives_are_reported() {
    let at = folder("zero");
    let program = "#include <math.h>
        double step(double x) { return floor(x); }
        int sign(double x) { return x > 0; }
        double square(const double *x, int n) { return n * x[0] * x[0]; }
        void copied(const double *x, double *y) { y[0] = x[0]; }\n";
    let asks = "#include <gradus.h>
        double square(const double *x, int n) { return n * x[0] * x[0]; }
        int main(void) { double x = 2; gradus_vjp(square, gradus_const, &x, gradus_const, 3); return 0; }\n";
    write(&at, "zero.c", program);
    write(&at, "asks.c", asks);
    let warned = |line: &str| {
        let output = gradus(&at, line);
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stderr).matches("warning[GRD0019]").count()
    };
    for function in ["step", "sign"] {
        refuses(
            &at,
            &format!("grad zero.c -f {function} -o zero.o"),
            "GRD0019",
        );
        assert!(!at.join("zero.o").exists(), "{function}");
    }
    for function in ["square", "copied"] {
        let line = format!("grad zero.c -f {function} -o zero.o");
        assert_eq!(warned(&line), 0, "{function}");
    }
    assert_eq!(warned("cc asks.c -o asks"), 1);
}

#[test]
fn requests_in_cplusplus() {
    let at = folder("plus-plus");
    write(
        &at,
        "main.cpp",
        "#include <cstdio>\n#include <vector>\n#include <gradus.h>\n\
         template <typename T> static T norm(const T *x, int n) { T s = 0; for (int i = 0; i < n; i++) s += x[i] * x[i]; return s; }\n\
         int main() { std::vector<double> x{1, 2, 3}, a(3);\n\
         gradus_vjp(&norm<double>, gradus_dup, x.data(), a.data(), gradus_const, 3);\n\
         std::printf(\"%g %g %g\\n\", a[0], a[1], a[2]); }\n",
    );
    for level in ["-O0", "-O2"] {
        accepts(&at, &format!("c++ {level} main.cpp -o main"));
        assert_eq!(run(&at, "main"), "2 4 6\n", "{level}");
    }
}

#[test]
fn refusals_write_nothing() {
    let at = folder("refused");
    write(
        &at,
        "outside.c",
        "double outside(double);\ndouble f(double x)\n{\n    return 2 * outside(x);\n}\n",
    );
    let said = refuses(&at, "grad outside.c -f f -o f.o", "GRD0005");
    assert!(
        said.contains("outside.c:4") && said.contains("2 * outside(x)"),
        "{said}"
    );
    refuses(&at, "grad outside.c -f g", "GRD0002");
    refuses(&at, "grad outside.c -f f --wrt y", "GRD0003");
    refuses(&at, "grad nowhere.c -f f", "GRD0023");
    let jumps = "#include <setjmp.h>
double __enzyme_autodiff(void *, double);
static jmp_buf there;
double f(double x) { if (setjmp(there)) return 0; if (x > 1) longjmp(there, 1); return x; }
int main(void) { return __enzyme_autodiff((void *)f, 0.5) != 1; }\n";
    write(&at, "jumps.c", jumps);
    let said = refuses(&at, "cc jumps.c -o jumps", "GRD0004");
    assert!(said.contains("returns twice"), "{said}");
    write(&at, "broken.c", "double f(double x) { return }\n");
    refuses(&at, "grad broken.c -f f", "GRD0022");
    std::fs::write(at.join("noise.bc"), b"BC\xc0\xdenoise and more noise").expect("written");
    let noise = gradus(&at, "grad noise.bc -f f");
    assert_eq!(noise.status.code(), Some(1));
    assert!(!at.join("f.o").exists() && !at.join("noise.o").exists());
}

#[test]
fn values_from_driver() {
    let at = folder("driver");
    write(&at, "curve.c", CURVE);
    write(
        &at,
        "main.c",
        "double curve(const double *x, int n, double s);\n\
         int main(void) { double x[6] = {1, -2, 0.5, 3, -0.25, 2}; return curve(x, 6, 1.25) > 0; }\n",
    );
    accepts(
        &at,
        "check curve.c -f curve --driver main.c --arg x=given(n)",
    );
    let said = refuses(&at, "check curve.c -f curve --driver main.c", "GRD0027");
    assert!(
        said.contains("x=given(100)") && !said.contains("`n`"),
        "{said}"
    );
    write(&at, "idle.c", "int main(void) { return 0; }\n");
    refuses(
        &at,
        "check curve.c -f curve --driver idle.c --arg x=given(n)",
        "GRD0027",
    );
}

/// Returns the level with the widest vectors of this processor, since the tests run the code here.
fn widest_level() -> &'static str {
    use std::arch::is_x86_feature_detected as has;
    match has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl") {
        true => "x86-64-v4",
        false => "x86-64-v3",
    }
}

#[test]
fn vectorised_bitcode_has_the_same_derivatives() {
    let at = folder("vectorised");
    write(
        &at,
        "lanes.c",
        "#include <math.h>
void scatter(const double *restrict x, const int *restrict at, double *restrict y, int n)
{
#pragma clang loop vectorize(enable)
    for (int i = 0; i < n; i++)
        y[at[i]] = x[i] * x[i];
}
double gather(const double *restrict x, const int *restrict at, int n)
{
    double s = 0;
    for (int i = 0; i < n; i++)
        s += x[at[i]] * x[i];
    return s;
}
void masked(const double *restrict x, double *restrict y, int n)
{
    for (int i = 0; i < n; i++)
        if (x[i] > 0)
            y[i] = sqrt(x[i]) * x[i];
}
double most(const double *x, int n)
{
    double m = x[0];
    for (int i = 1; i < n; i++)
        m = x[i] > m ? x[i] : m;
    return m;
}
double guarded(double x) { return x > 0 ? log(sqrt(x) * exp(1 / x)) : x; }
",
    );
    let level = widest_level();
    let flags = format!("-O3 -g -march={level} -ffast-math -c -emit-llvm");
    clang(&at, &format!("{flags} lanes.c -o lanes.bc"));
    let n = "--arg n=37 --arg x=rand(n)";
    accepts(
        &at,
        &format!("check lanes.bc -f scatter {n} --arg at=iota(n) --arg y=zeros(n)"),
    );
    accepts(
        &at,
        &format!("check lanes.bc -f gather {n} --arg at=randint(n,n)"),
    );
    // Masked-out elements must not evaluate roots of negative numbers.
    accepts(
        &at,
        &format!("check lanes.bc -f masked {n} --arg y=zeros(n)"),
    );
    accepts(&at, &format!("check lanes.bc -f most {n}"));
    accepts(
        &at,
        "check lanes.c -f guarded --arg x=-0.5 -- -fno-math-errno",
    );
    accepts(
        &at,
        "check lanes.c -f guarded --arg x=0.5 -- -fno-math-errno",
    );
}

/// A loop with two exits: the tape saves the conditions of the last iteration only.
#[test]
fn early_exit_saves_no_conditions() {
    const EARLY: &str = "double early(int n, const double *x, double s) {
        double r = s;
        for (int i = 0; i < n; i++) { r *= 1 + 0.3 * x[i]; if (r > 2.5) break; r += x[i]; if (r < 0.1) break; r = r * r; }
        return r * r; }";
    let at = folder("early-exit");
    write(&at, "early.c", EARLY);
    let said = accepts(
        &at,
        "grad early.c -f early --report=full --wrt x,s -o early.o",
    );
    let (_, tape) = said.split_once("tape:").expect("the report has a tape");
    let of_iterations = |line: &&str| line.contains("× iterations");
    // The first line is the sum of the entries.
    let kept: Vec<&str> = tape.lines().skip(1).filter(of_iterations).collect();
    assert!(!kept.is_empty(), "{said}");
    assert!(kept.iter().all(|line| line.contains("8 bytes")), "{said}");
}

/// Small arrays local to an iteration are recomputed, although the next iteration overwrites them: the tape
/// does not save them.
#[test]
fn iteration_arrays_are_recomputed() {
    const MODES: &str = "double modes(int n, const double *x, const double *w) {
        double m[4][8], r = 0;
        for (int e = 0; e < n; e++) {
            for (int i = 0; i < 4; i++) {
                double a = x[8 * e] * w[i] + x[8 * e + 1] * w[i + 1] + x[8 * e + 2] * w[i + 2] + x[8 * e + 3] * w[i + 3];
                double b = x[8 * e + 4] * w[i] + x[8 * e + 5] * w[i + 1] + x[8 * e + 6] * w[i + 2] + x[8 * e + 7] * w[i + 3];
                for (int j = 0; j < 8; j++) m[i][j] = w[j] - a * x[8 * e + j] - b * w[j + 1] * x[8 * e + 7 - j];
            }
            for (int j = 0; j < 8; j++) r += m[0][j] * m[1][j] * m[2][j] * m[3][j];
        }
        return r; }";
    let at = folder("modes");
    write(&at, "modes.c", MODES);
    let said = accepts(
        &at,
        "grad modes.c -f modes --report=full --wrt x -o modes.o",
    );
    assert!(!said.contains("overwritten"), "{said}");
    accepts(
        &at,
        "check modes.c -f modes --wrt x --arg n=5 --arg x=rand(40) --arg w=rand(9)",
    );
}

/// Memory read by a call and not overwritten later is read again in the reverse pass, although the call
/// writes through another argument; overwritten memory is saved.
#[test]
fn calls_save_only_overwritten_memory() {
    const STEPS: &str = "__attribute__((noinline)) static void apply(const double *restrict a, const double *restrict x, double *restrict y, int n) {
            for (int i = 0; i < n; i++) {
                double s = 0;
                for (int j = 0; j < n; j++) s += a[i * n + j] * x[j];
                y[i] = s;
            }
        }
        double steps(const double *a, double *x, double *y, int n) {
            double r = 0;
            apply(a, x, y, n);
            AFTER
            for (int i = 0; i < n; i++) r += y[i] * y[i];
            return r; }";
    let at = folder("calls-keep");
    let args = "--arg n=5 --arg a=rand(25) --arg x=rand(5) --arg y=zeros(5)";
    for (name, after, kept) in [
        ("none.c", "", false),
        ("result.c", "apply(a, y, x, n);", true),
        ("matrix.c", "((double *)a)[1] = y[2];", true),
    ] {
        write(&at, name, &STEPS.replace("AFTER", after));
        let said = accepts(
            &at,
            &format!("grad {name} -f steps --report=full -o steps.o"),
        );
        assert_eq!(said.contains("snapshot"), kept, "{said}");
        for level in ["-O0", "-O2"] {
            accepts(&at, &format!("check {name} -f steps {args} -- {level}"));
        }
    }
}

/// Output to a standard stream writes no memory of the program: loop-invariant loads, lengths and addresses
/// are read once, and nothing is pushed per iteration of a loop that may print.
#[test]
fn output_in_loops_saves_nothing() {
    const MESH: &str = "#include <stdio.h>
        struct mesh { int *count, *next; double *v, *w; };
        double walk(struct mesh *m, const double *x) {
            double r = 0;
            for (int i = 0; i < m->count[1]; i++) { double a, b = m->v[i] * x[i];
                switch (m->next[i] & 3) { case 0: a = b; break; case 1: a = b * b; break;
                    default: fprintf(stderr, \"bad %d\\n\", i); a = 0; }
                m->w[i] = a * x[0]; r += a * a; }
            m->count = 0; m->v = 0; m->w = 0; m->next = 0;
            return r; }";
    let at = folder("messages");
    write(&at, "mesh.c", MESH);
    let said = accepts(&at, "grad mesh.c -f walk --report=full --wrt m,x -o mesh.o");
    let (_, tape) = said.split_once("tape:").expect("the report has a tape");
    assert!(tape.contains("(array)"), "{said}");
    assert!(!tape.contains("(frame)"), "{said}");
}

#[test]
fn third_derivatives_agree_in_two_orders() {
    let at = folder("third");
    write(&at, "third.c", include_str!("third_order/third.c"));
    for level in ["-O0", "-O2"] {
        accepts(&at, &format!("cc {level} third.c -lm -o third"));
        run(&at, "third");
    }
}

/// Layers behind a structure of pointers, which may alias as far as a compiler knows. Both halves of a
/// layer's derivative have two versions; the version for disjoint memory saves no value per product,
/// although an optimiser regroups the index computations.
#[test]
fn layer_passes_are_versioned() {
    let folder = folder("layers");
    let source = r#"
#include <stdio.h>
#include <stdlib.h>
extern int enzyme_dup, enzyme_const;
double __enzyme_autodiff(void *, ...);
struct net { double *input, *weights, *hidden, *output; };
static __attribute__((noinline)) void layer(double *out, const double *in, const double *w, int B, int T, int C) {
  for (int b = 0; b < B; b++)
    for (int t = 0; t < T; t++)
      for (int o = 0; o < C; o++) {
        double sum = 0;
        for (int u = 0; u <= t; u++)
          for (int i = 0; i < C; i++) sum += in[b * T * C + u * C + i] * w[o * C + i];
        out[b * T * C + t * C + o] = sum / (1 + 0.1 * t);
      }
}
double loss(struct net *net, int B, int T, int C) {
  layer(net->hidden, net->input, net->weights, B, T, C);
  layer(net->output, net->hidden, net->weights, B, T, C);
  layer(net->input, net->output, net->weights, B, T, C);
  double sum = 0;
  for (int i = 0; i < B * T * C; i++) sum += net->input[i] * net->output[i];
  return sum;
}
int main(void) {
  enum { B = 2, T = 3, C = 4, N = B * T * C };
  for (int overlap = 0; overlap < 2; overlap++) {
    struct net nets[2];
    for (int k = 0; k < 2; k++) {
      nets[k].input = calloc(N, 8), nets[k].weights = calloc(C * C, 8);
      nets[k].hidden = calloc(N + C, 8), nets[k].output = overlap ? nets[k].hidden + C : calloc(N, 8);
    }
    double values[2], e = 1e-6;
    for (int step = -1; step < 2; step++) {
      for (int i = 0; i < N; i++) nets[0].input[i] = 0.1 + 0.01 * i;
      for (int i = 0; i < C * C; i++) nets[0].weights[i] = 0.3 - 0.02 * i;
      nets[0].weights[5] += step * e;
      if (step)
        values[step > 0] = loss(nets, B, T, C);
      else
        __enzyme_autodiff((void *)loss, enzyme_dup, nets, nets + 1, enzyme_const, B, enzyme_const, T, enzyme_const, C);
    }
    double difference = (values[1] - values[0]) / (2 * e), found = nets[1].weights[5];
    double off = (found - difference) / (found * found > 1 ? found : 1);
    printf("%s %g %g\n", off * off < 1e-12 ? "right" : "wrong", found, difference);
  }
}
"#;
    write(&folder, "net.c", source);
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        accepts(&folder, &format!("cc {level} net.c -o net"));
        let said = run(&folder, "./net");
        assert_eq!(said.matches("right").count(), 2, "{level}: {said}");
    }
    let report = accepts(
        &folder,
        "grad net.c -f loss --report=full -o loss.o -- -O3 -g",
    );
    let sweep = |version: &str| {
        let start = report.find(&format!("forward pass, {version}"));
        let part = &report[start.unwrap_or_else(|| panic!("{report}"))..];
        let part = &part[..part.find("\n\n").unwrap_or(part.len())];
        let nested = part.lines().filter(|line| line.matches(" × ").count() > 4);
        nested.count()
    };
    assert_eq!(sweep("no-alias version"), 0, "{report}");
    assert!(sweep("fallback version") > 0, "{report}");
}

/// Members next to float arrays, in an alias set with several structures: stores are typed by TBAA, and
/// zeros need no type.
#[test]
fn integer_members_beside_floats() {
    let at = folder("members");
    let program = "#include <math.h>
        struct solver { double a[3], b[3]; int ready; };
        __attribute__((noinline)) static void set(struct solver *s, const double *x) {
            for (int i = 0; i < 3; i++) {
                s->a[i] = x[i] * x[i];
                s->b[i] = sin(x[i + 3]);
            }
            s->ready = 1;
        }
        __attribute__((noinline)) static double ends(const double *p) { return p[0] * p[6]; }
        double solved(const double *x, int n) {
            struct solver s START;
            set(&s, x);
            double sum = ends(n > 100 ? s.a : x);
            for (int i = 0; i < 3; i++)
                sum += s.ready * s.a[i] * s.b[(i + n) % 3];
            return sum;
        }\n";
    write(&at, "members.c", program);
    for (start, level) in [("", "-O1"), ("={{0}}", "-O0"), ("={{0}}", "-O2")] {
        let line = format!("check members.c -f solved --arg n=4 --arg x=rand(7) -- {level}");
        accepts(&at, &format!("{line} -DSTART={start}"));
    }
}

/// With steps too small to change a single-precision result, differences must not converge to any slope.
#[test]
fn float_differences_ignore_rounding() {
    let at = folder("rounding");
    let program = "static float g(const float *x) { return 87.3f + 0.7f * x[0] * x[1] + x[1]; }
        float f(float a, float b) { float x[2] = {a, b}; return g(x); }\n";
    write(&at, "large.c", program);
    for a in ["0.005", "0.02", "0.5"] {
        let line = format!("check large.c -f f --single --arg a={a} --arg b=1");
        let right = gradus(&at, &line);
        assert!(right.status.success(), "{}", text(&right.stderr));
    }
}
