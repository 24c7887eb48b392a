//! `--emit shared`, `--entry uniform`, `--signature`, `-o -`: output for callers that build their calls at run time.

use crate::support::{accepts, folder, gradus, refuses, shell, text, write};
use serde_json::Value;
use std::path::Path;

const ENERGY: &str = "
    #include <math.h>
    static double edge(double d) { return sqrt(1 + d * d); }
    int calls;
    double other(double x) { return x; }
    double energy(const double *x, int n) {
        double sum = 0;
        calls++;
        for (int i = 0; i + 1 < n; i++) sum += edge(x[i + 1] - x[i]);
        return sum;
    }\n";

/// Calls the library's entries, as a caller without the prototypes does.
const CALLER: &str = "
    #include <math.h>
    #include <stdio.h>
    void energy__u(void **), energy_vjp__u(void **), energy_jvp__u(void **);
    int main(void) {
        double x[3] = {1, 4, 8}, v[3] = {1, 0, 2}, g[3] = {0};
        double *px = x, *pv = v, *pg = g, one = 1, value, both[2], vjp_value;
        int n = 3;
        energy__u((void *[]){&px, &n, &value});
        energy_vjp__u((void *[]){&px, &pg, &n, &one, &vjp_value});
        energy_jvp__u((void *[]){&px, &pv, &n, both});
        const double a = 3 / sqrt(10), b = 4 / sqrt(17), f = sqrt(10) + sqrt(17);
        const double wanted[] = {f, f, f, -a, a - b, b, -a + 2 * b};
        const double got[] = {value, vjp_value, both[0], g[0], g[1], g[2], both[1]};
        for (int i = 0; i < 7; i++)
            if (!(fabs(got[i] - wanted[i]) < 1e-12)) return printf(\"%d: %g\\n\", i, got[i]), 1;
        return 0;
    }\n";

fn exported(at: &Path, library: &str) -> Vec<String> {
    let said = text(&shell(at, &format!("nm -D --defined-only {library}")).stdout);
    let names = said.lines().filter_map(|line| line.split(' ').next_back());
    names.map(String::from).collect()
}

fn signature(at: &Path, file: &str) -> Value {
    let text = std::fs::read_to_string(at.join(file)).expect("the signature is written");
    serde_json::from_str(&text).expect("the signature is JSON")
}

/// A library with OpenMP regions exports the runtime's entries that other objects of the process share, and no name of
/// CUDA: another library of the process may define CUDA's names. A library of a CUDA program exports them.
#[test]
fn only_cuda_programs_export_cuda() {
    let at = folder("shared_library_openmp");
    write(
        &at,
        "pot.c",
        "#include <math.h>\ndouble pot(const double *x, int n) {\n    double s = 0;\n\
         #pragma omp parallel for reduction(+ : s)\n    for (int i = 0; i < n; i++) s += sqrt(1 + x[i] * x[i]);\n    return s;\n}\n",
    );
    write(
        &at,
        "k.cu",
        "__global__ void k(double *x) { x[threadIdx.x] *= 2; }\nextern \"C\" void run(double *x) { k<<<1, 32>>>(x); }\n",
    );
    shell(
        &at,
        "gradus cc -O2 -fPIC -shared -fopenmp pot.c -o libpot.so -lm",
    );
    let is_cuda = |name: &&String| {
        ["cu", "__cuda", "__gr_"]
            .iter()
            .any(|start| name.starts_with(start))
    };
    let names = exported(&at, "libpot.so");
    assert!(
        names.contains(&"pot".to_string()) && names.contains(&"gr_for".to_string()),
        "{names:?}"
    );
    let cuda: Vec<&String> = names.iter().filter(is_cuda).collect();
    assert!(cuda.is_empty(), "{cuda:?}");
    // Names with a dot are clang's own.
    let prefixes = ["gr_", "__wrap_", "omp_", "__kmpc_", "kmp", "GOMP_", "."];
    let own = |name: &&String| prefixes.iter().any(|start| name.starts_with(start));
    let others: Vec<&String> = names.iter().filter(|name| !own(name)).collect();
    assert_eq!(others, ["pot"]);
    shell(
        &at,
        "gradus nvcc -O2 -shared -Xcompiler -fPIC k.cu -o libk.so",
    );
    assert!(exported(&at, "libk.so").contains(&"cudaLaunchKernel".to_string()));
    // The program uses the library's CUDA functions, and shares the runtime's state.
    write(
        &at,
        "main.c",
        "#include <stdio.h>\nvoid run(double *);\ndouble pot(const double *, int);\n\
         int main(void) { double x[32] = {0, 1}; run(x); printf(\"%g %g\\n\", x[1], pot(x, 1)); }\n",
    );
    shell(
        &at,
        "gradus cc -O2 -fopenmp main.c pot.c -L. -lk -Wl,-rpath,. -o main -lm",
    );
    assert_eq!(text(&shell(&at, "./main").stdout), "2 1\n");
}

#[test]
fn a_library_exports_functions_derivatives_and_entries_only() {
    let at = folder("shared_library");
    write(&at, "energy.c", ENERGY);
    write(&at, "caller.c", CALLER);
    let ask = "grad energy.c -f energy --mode reverse,forward --with-primal --emit shared";
    accepts(
        &at,
        &format!("{ask} --entry uniform --signature energy.json -o energy.so"),
    );
    let names = [
        "energy",
        "energy__u",
        "energy_jvp",
        "energy_jvp__u",
        "energy_vjp",
        "energy_vjp__u",
    ];
    assert_eq!(exported(&at, "energy.so"), names);
    shell(&at, "clang-22 caller.c ./energy.so -lm -o caller");
    shell(&at, "./caller");
    let told = signature(&at, "energy.json");
    let function = &told["functions"][0];
    assert_eq!(
        (&told["version"], &function["entry"]),
        (&1.into(), &"energy__u".into())
    );
    let x = &function["arguments"][0];
    assert_eq!(
        (&x["name"], &x["passing"], &x["element"]),
        (&"x".into(), &"pointer".into(), &"double".into())
    );
    assert_eq!((&x["written"], &x["shape"]), (&false.into(), &Value::Null));
    let roles = told["derivatives"][0]["arguments"]
        .as_array()
        .into_iter()
        .flatten();
    let roles: Vec<&str> = roles.filter_map(|a| a["role"].as_str()).collect();
    assert_eq!(roles, ["active", "shadow", "inactive", "cotangent"]);
    // glibc also defines `step`.
    write(&at, "step.c", "double step(double x) { return x * x; }\n");
    write(
        &at,
        "loads.c",
        "#include <dlfcn.h>\n\
         int main(void) {\n\
           double x = 3, y = 0;\n\
           void *library = dlopen(\"./step.so\", RTLD_NOW);\n\
           void (*entry)(void **) = (void (*)(void **))dlsym(library, \"step__u\");\n\
           entry((void *[]){&x, &y});\n\
           return y != 9;\n\
         }\n",
    );
    accepts(
        &at,
        "grad step.c -f step --emit shared --entry uniform -o step.so",
    );
    shell(&at, "clang-22 loads.c -o loads");
    shell(&at, "./loads");
    accepts(&at, &format!("{ask} -o plain.so"));
    assert_eq!(
        exported(&at, "plain.so"),
        ["energy", "energy_jvp", "energy_vjp"]
    );
}

const FORTRAN: &str = "
subroutine squares(x, y, k)
  real(8), intent(in) :: x(:,:), k
  real(8), intent(out) :: y(:,:)
  y = k * x**2
end subroutine
real(8) function total(x, n)
  integer, intent(in) :: n
  real(8), intent(in) :: x(n, 2)
  total = sum(x)**2
end function\n";

const FORTRAN_CALLER: &str = "
    #include <stdio.h>
    #include <stddef.h>
    struct array { void *data; size_t extents[2]; };
    void squares___u(void **), squares_vjp__u(void **);
    int main(void) {
        double x[6] = {1, 2, 3, 4, 5, 6}, xa[6] = {0}, y[6], ya[6] = {0, 0, 0, 0, 0, 1}, k = 2, ka = 0;
        double *pk = &k, *pka = &ka;
        struct array ax = {x, {2, 3}}, axa = {xa, {2, 3}}, ay = {y, {2, 3}}, aya = {ya, {2, 3}};
        squares___u((void *[]){&ax, &ay, &pk});
        squares_vjp__u((void *[]){&ax, &axa, &ay, &aya, &pk, &pka});
        return !(y[5] == 72 && xa[5] == 24 && xa[4] == 0 && ka == 36);
    }\n";

#[test]
fn fortran_arrays_are_passed_with_their_lengths() {
    let at = folder("shared_fortran");
    write(&at, "squares.f90", FORTRAN);
    write(&at, "caller.c", FORTRAN_CALLER);
    let made = "--emit shared --entry uniform --signature told.json -o made.so";
    accepts(&at, &format!("grad squares.f90 -f squares {made}"));
    shell(&at, "clang-22 caller.c ./made.so -o caller");
    shell(&at, "./caller");
    let x = &signature(&at, "told.json")["functions"][0]["arguments"][0];
    assert_eq!(
        (&x["passing"], &x["descriptor"]),
        (&"descriptor".into(), &"assumed shape".into())
    );
    accepts(&at, &format!("grad squares.f90 -f total --wrt x {made}"));
    let told = signature(&at, "told.json");
    let shapes = told["functions"][0]["arguments"]
        .as_array()
        .into_iter()
        .flatten();
    let shapes: Vec<String> = shapes.map(|a| a["shape"].to_string()).collect();
    assert_eq!(shapes, ["[null,2]", "[]"]);
}

#[test]
fn unsupported_entries_and_missing_symbols_are_refused() {
    let at = folder("shared_refused");
    write(
        &at,
        "pair.c",
        "struct pair { double a, b; int k; double c; };\n\
         double product(struct pair p) { return p.a * p.b * p.c; }\n\
         double outside(double);\n\
         double half(double x) { return outside(1) * x; }\n",
    );
    let said = refuses(
        &at,
        "grad pair.c -f product --emit shared --entry uniform",
        "GRD0017",
    );
    assert!(
        said.contains("`p` of product has type struct pair"),
        "{said}"
    );
    write(
        &at,
        "root.c",
        "double _Complex root(double x) { return x; }\n",
    );
    let said = refuses(
        &at,
        "grad root.c -f root --emit shared --entry uniform",
        "GRD0017",
    );
    assert!(said.contains("root returns struct root_result"), "{said}");
    let said = refuses(&at, "grad pair.c -f half --emit shared", "GRD0022");
    assert!(said.contains("outside"), "{said}");
    assert!(!at.join("pair.so").exists());
}

/// `-o -` writes the output, and nothing else, to standard output.
#[test]
fn output_to_standard_output() {
    let at = folder("standard-output");
    write(&at, "f.c", "double f(double x) { return x * x; }\n");
    let made = gradus(&at, "grad f.c -f f --emit llvm -o -");
    let (module, said) = (text(&made.stdout), text(&made.stderr));
    assert!(
        made.status.success() && module.contains("double @f_vjp("),
        "{said}"
    );
    assert!(
        said.contains("VJP `f_vjp`") && !said.contains("wrote"),
        "{said}"
    );
    let made = gradus(&at, "grad f.c -f f -o -");
    assert!(made.status.success() && made.stdout.starts_with(b"\x7fELF"));
    assert!(!at.join("-").exists() && !at.join("-.h").exists());
    refuses(&at, "grad f.c -f f -o - --report=json", "GRD0035");
    refuses(&at, "grad f.c -f f -o - --signature -", "GRD0035");
}
