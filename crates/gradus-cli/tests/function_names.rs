//! Names of functions on the command line: C++ names with scopes and parameter types, Rust paths. An ambiguous name is
//! refused with the candidates. Reports and diagnostics show demangled names.

use crate::support::{accepts, folder, refuses, write};

const NAMES: &str = "\
namespace a {
double f(double x) { return x * x; }
float f(float x) { return x * x * x; }
namespace b { double f(double x) { return 2 * x * x; } }
struct P {
    double w;
    double e(double x) const { return w * x * x; }
};
template <class T> T sq(T x) { return x * x; }
}
double use(double x) { a::P p{3}; return p.e(x) + a::sq(x) + a::sq(static_cast<float>(x)); }
";

#[test]
fn names_as_written_in_the_source() {
    let at = folder("function_names");
    write(&at, "names.cpp", NAMES);
    for (name, shown) in [
        ("a::f(double)", "a::f"),
        ("f(float)", "a::f"),
        ("a::b::f", "a::b::f"),
        ("b::f(double)", "a::b::f"),
        ("P::e", "a::P::e"),
        ("a::P::e(double)", "a::P::e"),
        ("sq<double>", "a::sq<double>"),
        ("sq<float>(float)", "a::sq<float>"),
        ("_ZN1a1fEd", "a::f"),
    ] {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_gradus"));
        command.args(["grad", "names.cpp", "-f", name, "-o", "out.o"]);
        command.args(["--", "-O0"]).current_dir(&at);
        let said = crate::support::text(&crate::support::succeeds(&mut command).stdout);
        assert!(
            said.starts_with(&format!("{shown} (names.cpp:")),
            "{name}\n{said}"
        );
    }
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_gradus"));
    command.args(["check", "names.cpp", "-f", "a::f(double)", "--arg", "x=0.7"]);
    crate::support::succeeds(command.current_dir(&at));
}

#[test]
fn ambiguous_and_unknown_names_show_candidates() {
    let at = folder("function_names_refused");
    write(&at, "names.cpp", NAMES);
    let said = refuses(&at, "grad names.cpp -f a::f -- -O0", "GRD0017");
    for candidate in [
        "2 functions are named `a::f`",
        "`a::f(double)` at ",
        "names.cpp:2, symbol `_ZN1a1fEd`",
        "`a::f(float)` at ",
        "names.cpp:3, symbol `_ZN1a1fEf`",
        "use the full name of one of these functions",
    ] {
        assert!(said.contains(candidate), "{candidate}\n{said}");
    }
    let said = refuses(&at, "grad names.cpp -f f -- -O0", "GRD0017");
    assert!(said.contains("3 functions are named `f`"), "{said}");
    let said = refuses(&at, "grad names.cpp -f a::P::f -- -O0", "GRD0002");
    assert!(said.contains("did you mean `a::P::e`?"), "{said}");
}

/// Diagnostics name the function with its scopes.
#[test]
fn diagnostics_show_demangled_names() {
    let at = folder("function_names_diagnostics");
    let source = "double table(double);\nnamespace n { struct S { static double f(double x) { return table(x) * x; } }; }\n\
                  double use(double x) { return n::S::f(x); }\n";
    write(&at, "s.cpp", source);
    let said = refuses(&at, "grad s.cpp -f n::S::f -- -O0", "GRD0005");
    assert!(said.contains("in function `n::S::f`"), "{said}");
}

#[test]
fn rust_paths_are_names() {
    let at = folder("function_names_rust");
    let source = "pub mod deep {\n    #[inline(never)]\n    pub fn cube(x: f64) -> f64 { x * x * x }\n}\n\
                  #[unsafe(no_mangle)]\npub extern \"C\" fn outer(x: f64) -> f64 { deep::cube(x) + x }\n";
    write(&at, "paths.rs", source);
    for name in ["deep::cube", "paths::deep::cube", "cube"] {
        let said = accepts(&at, &format!("grad paths.rs -f {name} -o out.o"));
        assert!(said.starts_with("paths::deep::cube ("), "{name}\n{said}");
    }
}
