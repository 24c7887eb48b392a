//! Derivatives of BLAS by name: each routine in both interfaces against differences by the library, at every
//! level, and programs that call routines in loops, through pointers, in parallel, twice differentiated.

use crate::support::{accepts, folder, refuses, shell, write};
use std::fmt::Write;
use std::path::Path;

/// The routines, with a letter per parameter: `t T u g s` flags, `m n k K L U` sizes, `a b` factors, `A B C`
/// matrices, `X Y` vectors, `1 2 3` leading dimensions, `i j` strides.
const ROUTINES: [(&str, &str); 30] = [
    ("dot", "nXiYj"),
    ("axpy", "naXiYj"),
    ("scal", "naXi"),
    ("copy", "nXiYj"),
    ("swap", "nXiYj"),
    ("asum", "nXi"),
    ("nrm2", "nXi"),
    ("rot", "nXiYjab"),
    ("gemv", "tmnaA1XibYj"),
    ("gbmv", "tmnLUaA1XibYj"),
    ("ger", "mnaXiYjA1"),
    ("symv", "unaA1XibYj"),
    ("sbmv", "unKaA1XibYj"),
    ("spmv", "unaAXibYj"),
    ("syr", "unaXiA1"),
    ("spr", "unaXiA"),
    ("syr2", "unaXiYjA1"),
    ("spr2", "unaXiYjA"),
    ("trmv", "utgnA1Xi"),
    ("tbmv", "utgnKA1Xi"),
    ("tpmv", "utgnAXi"),
    ("trsv", "utgnA1Xi"),
    ("tbsv", "utgnKA1Xi"),
    ("tpsv", "utgnAXi"),
    ("gemm", "tTmnkaA1B2bC3"),
    ("symm", "sumnaA1B2bC3"),
    ("syrk", "utnkaA1bC3"),
    ("syr2k", "utnkaA1B2bC3"),
    ("trmm", "sutgmnaA1B2"),
    ("trsm", "sutgmnaA1B2"),
];

/// Location of the operands of a call.
#[derive(Clone, Copy, PartialEq)]
enum Operands {
    /// Ranges of one array.
    OneArray,
    /// Blocks of their own.
    Blocks,
}

/// An argument in C: its type, and the expression by address and by value.
fn argument(letter: char, is_fortran: bool) -> (String, String) {
    let member = match letter {
        't' => "trans",
        'T' => "trans_b",
        'u' => "uplo",
        'g' => "diag",
        's' => "side",
        'm' => "m",
        'n' => "n",
        'k' => "k",
        'K' => "bands",
        'L' => "lower",
        'U' => "upper",
        'i' => "incx",
        'j' => "incy",
        '1' => "lda",
        '2' => "ldb",
        '3' => "ldc",
        'a' => "alpha",
        'b' => "beta",
        'A' => "a",
        'B' => "b",
        'C' => "c",
        'X' => "x",
        _ => "y",
    };
    let (ty, value) = match (letter, is_fortran) {
        ('A' | 'B' | 'C' | 'X' | 'Y', _) => ("real *", member.to_string()),
        ('a' | 'b', true) => ("const real *", member.to_string()),
        ('a' | 'b', false) => ("real", format!("*{member}")),
        ('t' | 'T' | 'u' | 'g' | 's', true) => ("const char *", format!("&call->{member}")),
        ('g', false) => ("int", format!("diag_flag(call->{member})")),
        ('s', false) => ("int", format!("side_flag(call->{member})")),
        ('t' | 'T' | 'u', false) => ("int", format!("flag(call->{member})")),
        (_, true) => ("const int *", format!("&call->{member}")),
        (_, false) => ("int", format!("call->{member}")),
    };
    (ty.to_string(), value)
}

/// Writes a function that calls a routine, and its derivatives. A routine without result is called twice: the second
/// call overwrites operands of the first.
fn function(
    text: &mut String,
    kind: &str,
    name: &str,
    parameters: &str,
    is_fortran: bool,
    operands: Operands,
) {
    let symbol = match is_fortran {
        true => format!("{kind}{name}_"),
        false => format!("cblas_{kind}{name}"),
    };
    let (types, mut values): (Vec<String>, Vec<String>) = parameters
        .chars()
        .map(|letter| argument(letter, is_fortran))
        .unzip();
    let has_order = !is_fortran && parameters.contains(['A', 'B', 'C']);
    let order = if has_order { "int, " } else { "" };
    if has_order {
        values.insert(0, "call->order".to_string());
    }
    let has_result = ["dot", "asum", "nrm2"].contains(&name);
    let result = if has_result { "real" } else { "void" };
    let (types, values) = (types.join(", "), values.join(", "));
    let blocks = operands == Operands::Blocks;
    let memory = |name: &str, at: usize| match blocks {
        true => format!(
            "real *{name} = malloc(SIZE * sizeof(real)); memcpy({name}, p + 2 + {at} * SIZE, SIZE * sizeof(real));\n"
        ),
        false => format!("real *{name} = p + 2 + {at} * SIZE;\n"),
    };
    let names = ["a", "b", "c", "x", "y"];
    let memory: String = names
        .iter()
        .enumerate()
        .map(|(at, name)| memory(name, at))
        .collect();
    let call = match has_result {
        true => format!("sum += {symbol}({values});"),
        false => format!("{symbol}({values}); {symbol}({values});"),
    };
    let squares = names
        .map(|name| format!("weight(i) * {name}[i] * {name}[i]"))
        .join(" + ");
    let free = match blocks {
        true => names.map(|name| format!("free({name});")).join(" "),
        false => String::new(),
    };
    let row = format!("{}_{kind}{name}", if is_fortran { "f" } else { "c" });
    write!(
        text,
        "{result} {symbol}({order}{types});
static real value_{row}(real *p, const Call *call) {{
real factors[2] = {{p[0], p[1]}}, *alpha = factors, *beta = factors + 1, sum = 0;
{memory}{call}
for (int i = 0; i < SIZE; i++) sum += {squares};
{free} return sum;
}}
static void gradient_{row}(real *p, real *d, Call *call) {{ __enzyme_autodiff((void *)value_{row}, enzyme_dup, p, d, enzyme_const, call); }}
static real tangent_{row}(real *p, real *d, Call *call) {{ return __enzyme_fwddiff((void *)value_{row}, enzyme_dup, p, d, enzyme_const, call); }}
"
    )
    .expect("written");
}

/// Writes the program that checks routines in both interfaces.
fn program(kind: &str, routines: &[(&str, &str)], operands: Operands) -> String {
    let real = if kind == "s" { "float" } else { "double" };
    let mut text = format!("typedef {real} real;\n#include \"harness.h\"\n");
    let mut rows = String::new();
    for (name, parameters) in routines {
        for is_fortran in [true, false] {
            function(&mut text, kind, name, parameters, is_fortran, operands);
            let row = format!("{}_{kind}{name}", if is_fortran { "f" } else { "c" });
            write!(
                rows,
                "{{\"{row} {name}\", value_{row}, gradient_{row}, tangent_{row}}},\n"
            )
            .expect("written");
        }
    }
    text + &format!(
        "static const Row rows[] = {{{rows}}};\nint main(void) {{ return check_all(rows, sizeof rows / sizeof *rows); }}\n"
    )
}

/// Builds and runs a C program without threads in the library.
fn runs(at: &Path, line: &str, program: &str) {
    shell(at, line);
    shell(at, &format!("env OPENBLAS_NUM_THREADS=1 ./{program}"));
}

fn routines(kind: &str, operands: Operands) {
    let at = folder(&format!("blas_{kind}_{}", operands as u8));
    write(&at, "harness.h", include_str!("blas/harness.h"));
    for (part, list) in ROUTINES.chunks(8).enumerate() {
        let source = format!("part{part}.c");
        write(&at, &source, &program(kind, list, operands));
        // All levels among the four tests.
        let levels = match (kind, operands) {
            ("d", Operands::OneArray) => vec!["-O0", "-O3"],
            ("s", Operands::OneArray) => vec!["-O1"],
            _ => vec!["-O2"],
        };
        for level in levels {
            runs(
                &at,
                &format!("gradus cc {level} {source} -o part -lopenblas -lm"),
                "part",
            );
        }
    }
}

#[test]
fn double_routines_in_one_array() {
    routines("d", Operands::OneArray);
}

#[test]
fn double_routines_in_blocks() {
    routines("d", Operands::Blocks);
}

#[test]
fn single_routines_in_one_array() {
    routines("s", Operands::OneArray);
}

#[test]
fn single_routines_in_blocks() {
    routines("s", Operands::Blocks);
}

/// A folder with the declarations and a program.
fn program_folder(name: &str, file: &str, source: &str) -> std::path::PathBuf {
    let at = folder(name);
    write(&at, "declarations.h", include_str!("blas/declarations.h"));
    write(&at, file, source);
    at
}

#[test]
fn factorisations_and_solutions() {
    let at = folder("blas_lapack");
    write(&at, "lapack.c", include_str!("blas/lapack.c"));
    for (kind, real) in [("d", "double"), ("s", "float")] {
        for level in [0, 2] {
            let names = format!("-DREAL={real} -DROUTINE(name)={kind}##name##_");
            let line = format!("gradus cc -O{level} {names} lapack.c -o p -lopenblas -lm");
            runs(&at, &line, "p");
        }
    }
}

/// An order above the block of the Cholesky factorisation's rule.
#[test]
fn blocked_cholesky() {
    let at = folder("blas_cholesky");
    write(
        &at,
        "p.c",
        "void dposv_(const char *, const int *, const int *, double *, const int *, double *, const int *, int *);
double energy(double *a, double *b, int n, int upper) {
    int info, one = 1;
    double sum = 0;
    for (int i = 0; i < n; i++)
        a[i + i * n] += n;
    dposv_(upper ? \"U\" : \"L\", &n, &one, a, &n, b, &n, &info);
    for (int i = 0; i < n; i++)
        sum += b[i] * (i + 1) + a[i * n + i];
    return info ? -1 : sum;
}
",
    );
    for upper in [0, 1] {
        let arguments =
            format!("--arg a=rand(70,70) --arg b=rand(70) --arg n=70 --arg upper={upper}");
        accepts(
            &at,
            &format!("check p.c -f energy {arguments} -- -O2 -lopenblas"),
        );
    }
}

#[test]
fn second_order_and_batches() {
    let at = program_folder("blas_second", "p.c", include_str!("blas/second_order.c"));
    for level in 0..4 {
        runs(
            &at,
            &format!("gradus cc -O{level} p.c -o p -lopenblas -lm"),
            "p",
        );
    }
}

#[test]
fn other_programs() {
    for (name, source) in [
        ("failed", include_str!("blas/failed.c")),
        ("split", include_str!("blas/split.c")),
        ("registered", include_str!("blas/registered.c")),
        ("second_lapack", include_str!("blas/second_order_lapack.c")),
    ] {
        let at = program_folder(&format!("blas_{name}"), "p.c", source);
        for level in [0, 2] {
            let line = format!("gradus cc -O{level} p.c -o p -lopenblas -lm");
            runs(&at, &line, "p");
        }
    }
}

#[test]
fn unread_outputs_inactive_and_equal_operands() {
    let at = program_folder("blas_operands", "p.c", include_str!("blas/operands.c"));
    for level in 0..4 {
        runs(
            &at,
            &format!("gradus cc -O{level} p.c -o p -lopenblas -lm"),
            "p",
        );
    }
}

#[test]
fn calls_through_pointers_globals_and_recursion() {
    let at = program_folder("blas_calls", "p.c", include_str!("blas/calls.c"));
    for level in 0..4 {
        runs(
            &at,
            &format!("gradus cc -O{level} p.c -o p -lopenblas -lm"),
            "p",
        );
    }
}

#[test]
fn calls_in_parallel_loops() {
    let at = program_folder("blas_parallel", "p.c", include_str!("blas/parallel.c"));
    for level in [0, 2] {
        runs(
            &at,
            &format!("gradus cc -fopenmp -O{level} p.c -o p -lopenblas -lm"),
            "p",
        );
    }
}

#[test]
fn templates_of_cplusplus() {
    let at = program_folder(
        "blas_templates",
        "p.cpp",
        include_str!("blas/templates.cpp"),
    );
    for level in 0..4 {
        let line = format!("gradus c++ -std=c++17 -O{level} p.cpp -o p -lopenblas -lm");
        runs(&at, &line, "p");
    }
}

#[test]
fn fortran_with_lengths_of_characters() {
    let at = folder("blas_fortran");
    write(&at, "energy.f90", include_str!("blas/energy.f90"));
    for level in 0..4 {
        let arguments =
            "--arg n=5 --arg a=rand(5,5) --arg b=rand(5,5) --arg x=rand(5) --arg s=zeros(1)";
        accepts(
            &at,
            &format!("check energy.f90 -f energy {arguments} -- -O{level} -lopenblas"),
        );
    }
}

#[test]
fn functions_in_several_files() {
    let at = folder("blas_files");
    write(
        &at,
        "outer.c",
        "void cblas_dscal(int, double, double *, int);
void __enzyme_autodiff(void *, ...);
extern int enzyme_const, enzyme_dup;
double inner(const double *x, int n);
static double f(double *x, int n) {
    cblas_dscal(n, 2.0, x, 1);
    return inner(x, n) * inner(x, n);
}
int main(void) {
    double x[3] = {1, 2, 3}, d[3] = {0};
    __enzyme_autodiff((void *)f, enzyme_dup, x, d, enzyme_const, 3);
    return !(d[0] == 896 && d[1] == 1792 && d[2] == 2688);
}
",
    );
    write(
        &at,
        "inner.c",
        "double cblas_ddot(int, const double *, int, const double *, int);
double inner(const double *x, int n) { return cblas_ddot(n, x, 1, x, 1); }
",
    );
    for level in [0, 2] {
        for file in ["outer", "inner"] {
            shell(&at, &format!("gradus cc -O{level} -c {file}.c -o {file}.o"));
        }
        runs(&at, "gradus cc outer.o inner.o -o p -lopenblas", "p");
        runs(
            &at,
            &format!("gradus cc -O{level} outer.c inner.c -o p -lopenblas"),
            "p",
        );
    }
}

#[test]
fn other_routines_and_declarations_are_refused() {
    let at = folder("blas_refused");
    for (name, call, help) in [
        (
            "wide",
            "double cblas_ddot(long n, const double *, long, const double *, long); double f(double *a, int n) { return cblas_ddot(n, a, 1, a, 1); }",
            "32-bit integers",
        ),
        (
            "open",
            "double ddot_(); double f(double *a, int n) { int one = 1; return ddot_(&n, a, &one, a, &one); }",
            "32-bit integers",
        ),
        (
            "other",
            "void dgesvd_(double *, int *); double f(double *a, int n) { dgesvd_(a, &n); return a[0]; }",
            "not of `dgesvd_`",
        ),
    ] {
        let source = format!(
            "{call}\nvoid __enzyme_autodiff(void *, ...); void g(double *a, double *b, int n) {{ __enzyme_autodiff((void *)f, a, b, n); }}\n"
        );
        write(&at, &format!("{name}.c"), &source);
        let said = refuses(
            &at,
            &format!("cc -std=c99 -w -O1 -shared -fPIC {name}.c -o {name}.so"),
            "GRD0005",
        );
        assert!(said.contains(help), "{name}: {said}");
    }
}
