//! Words of the call interface through the drivers. Each word of the table is honoured, or refused by name
//! at the user's line. No word is dropped, in any form in which it reaches the compiler.

use crate::support::{folder, gradus, refuses, text, write};
use gradus_ir::externals::{
    AttributeMeaning, CallRewrite, KEYWORDS, Keyword, KeywordKind, Support,
};
use std::path::Path;
use std::process::Command;

const LEVELS: [&str; 4] = ["-O0", "-O1", "-O2", "-O3"];

/// The declarations of every program.
const DECLARATIONS: &str = "#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef __cplusplus
extern \"C\" {
#endif
extern int enzyme_const, enzyme_dup, enzyme_dupnoneed, enzyme_out, enzyme_width, enzyme_interleave, enzyme_dupv;
extern int enzyme_tape, enzyme_allocated, enzyme_primal_return, enzyme_noret;
double __enzyme_autodiff(void *, ...);
void __enzyme_autodiff_v(void *, ...);
double __enzyme_fwddiff(void *, ...);
void *__enzyme_augmentfwd(void *, ...);
double __enzyme_reverse(void *, ...);
unsigned long __enzyme_augmentsize(void *, ...);
#ifdef __cplusplus
}
#endif
#define APART __attribute__((noinline))
static int near_to(double a, double b) { return fabs(a - b) < 1e-9 * (1 + fabs(b)); }
#define NEAR(a, b) do { double a_ = (a); if (!near_to(a_, (b))) { printf(\"%s:%d %g, not %g\\n\", __FILE__, __LINE__, a_, (double)(b)); return 1; } } while (0)
#line 1
";

/// Compiles and runs a program; both must succeed.
fn right(at: &Path, line: &str) {
    let made = gradus(at, &format!("{line} -lm -o program"));
    assert!(made.status.success(), "{line}\n{}", text(&made.stderr));
    let ran = Command::new(at.join("program"))
        .output()
        .expect("it starts");
    assert!(
        ran.status.success(),
        "{line}: {}{}",
        text(&ran.stdout),
        text(&ran.stderr)
    );
}

/// Checks a program of a single C file at every level, with and without `-g`.
fn right_in_c(test: &str, program: &str) {
    let at = folder(test);
    write(&at, "main.c", &format!("{DECLARATIONS}{program}"));
    for level in LEVELS {
        right(&at, &format!("cc {level} -w main.c"));
    }
    right(&at, "cc -O2 -g main.c");
}

/// Checks a program of a single C++ file at every level.
fn right_in_cplusplus(test: &str, program: &str) {
    let at = folder(test);
    write(&at, "main.cpp", &format!("{DECLARATIONS}{program}"));
    for level in LEVELS {
        right(&at, &format!("c++ -std=c++17 {level} -w main.cpp"));
    }
}

/// Checks that a program of a single C file is refused with a code, for a word, at a line.
fn refused_in_c(test: &str, program: &str, code: &str, word: &str, line: u32) {
    let at = folder(test);
    write(&at, "main.c", &format!("{DECLARATIONS}{program}"));
    for level in LEVELS {
        let said = refuses(&at, &format!("cc {level} -w main.c -lm -o program"), code);
        assert!(said.contains(word), "{word}: {said}");
        assert!(
            line == 0 || said.contains(&format!("main.c:{line}")),
            "{word}: {said}"
        );
    }
}

/// Functions whose body has another derivative than the stated derivative. A float passes through an
/// integer, which carries no derivative. The difference between both values has slope zero.
const ODD: &str = "
static double cut(double a) { return (double)(long long)(a * 0x1p50) * 0x1p-50; }
APART static double zero(double a) { return a - cut(a); }
APART static double sine(double a) { return cut(sin(a)); }
";

/// Returns the C program for an honoured word or a hint; `main` checks the values. A word without a program
/// fails the test.
// table
fn program(word: &Keyword) -> String {
    let simple = "APART static double f(double x) { return x * x; }\nAPART static double g(double *x) { return *x * *x; }\n";
    let main = |body: &str| {
        format!("{ODD}{simple}int main(void) {{ double x = 3, d = 0; {body} return 0; }}\n")
    };
    let declared = |body: &str| format!("extern int enzyme_{};\n{}", word.keyword, main(body));
    let registered = |body: &str| {
        format!("{ODD}{body}static double h(double x) {{ return x * x + zero(x) + sine(x); }}\n")
    };
    let own = word.keyword.starts_with("__gradus");
    match (word.kind, word.keyword) {
        (KeywordKind::Call(_), name) => {
            let declare = |result: &str| format!("{result} {name}(void *, ...);\n");
            let tail = name
                .trim_start_matches("__enzyme_")
                .trim_start_matches("__gradus_");
            let split = |augment: &str, reverse: &str| {
                format!(
                    "void *__{0}_augmentfwd(void *, ...); double __{0}_reverse(void *, ...);\n{1}",
                    if own { "gradus" } else { "enzyme" },
                    main(&format!(
                        "void *t = {augment}((void *)f, 3.0); NEAR({reverse}((void *)f, 3.0, 1.0, t), 6);"
                    ))
                )
            };
            let prefix = if own { "__gradus" } else { "__enzyme" };
            match tail {
                "autodiff" | "vjp" => {
                    declare("double") + &main(&format!("NEAR({name}((void *)f, 3.0), 6);"))
                }
                "fwddiff" | "jvp" => {
                    declare("double") + &main(&format!("NEAR({name}((void *)f, 3.0, 2.0), 12);"))
                }
                "augmentfwd" | "reverse" => split(
                    &format!("{prefix}_augmentfwd"),
                    &format!("{prefix}_reverse"),
                ),
                "augmentsize" => {
                    declare("unsigned long")
                        + &main(&format!("if ({name}((void *)f, 3.0) < 8) return 1;"))
                }
                _ => panic!("no program for {name}"),
            }
        }
        (KeywordKind::Rewrite(CallRewrite::Drop), name) => format!(
            "void {name}(void *, ...);\nAPART static double hinted(double *x) {{ {name}(x, 8L, 0L); return *x * *x; }}\n{}",
            main("__enzyme_autodiff_v((void *)hinted, &x, &d); NEAR(d, 6); NEAR(hinted(&x), 9);")
        ),
        (KeywordKind::Rewrite(CallRewrite::FirstArgument), name) => format!(
            "unsigned long {name}(unsigned long, unsigned long);\n\
             APART static double power(double x) {{ double r = 1; for (unsigned long i = 0, n = {name}(3, 0); i < n; i++) r *= x; return r; }}\n{}",
            main("NEAR(__enzyme_autodiff((void *)power, 3.0), 27); NEAR(power(3.0), 27);")
        ),
        (KeywordKind::Rewrite(CallRewrite::Inactive), name) => format!(
            "double {name}(void *, ...);\nAPART static double half(double x) {{ return x / 2; }}\n\
             APART static double called(double x) {{ return x * x + {name}((void *)half, x); }}\n{}",
            main("NEAR(__enzyme_autodiff((void *)called, 3.0), 6); NEAR(called(3.0), 10.5);")
        ),
        (KeywordKind::Macro, name) => format!(
            "#ifndef {name}\n#error {name} is not defined\n#endif\n{}",
            main("NEAR(__enzyme_autodiff((void *)f, 3.0), 6);")
        ),
        (KeywordKind::Marker(_), "const") => {
            declared("__enzyme_autodiff_v((void *)g, enzyme_const, &x); NEAR(d, 0);")
        }
        (KeywordKind::Marker(_), "dup") => {
            declared("__enzyme_autodiff_v((void *)g, enzyme_dup, &x, &d); NEAR(d, 6);")
        }
        (KeywordKind::Marker(_), "dupnoneed") => {
            declared("__enzyme_autodiff_v((void *)g, enzyme_dupnoneed, &x, &d); NEAR(d, 6);")
        }
        (KeywordKind::Marker(_), "out") => {
            declared("NEAR(__enzyme_autodiff((void *)f, enzyme_out, 3.0), 6);")
        }
        (KeywordKind::Marker(_), "dupv" | "dupnoneedv") => declared(&format!(
            "double e[2] = {{0, 0}}; __enzyme_autodiff_v((void *)g, enzyme_width, 2, enzyme_{}, (long)8, &x, e); NEAR(e[0], 6); NEAR(e[1], 6);",
            word.keyword
        )),
        (KeywordKind::Marker(_), "width") => format!(
            "struct two {{ double a, b; }}; struct two __enzyme_fwddiff_two(void *, ...);\n{}",
            declared(
                "struct two t = __enzyme_fwddiff_two((void *)f, enzyme_width, 2, 3.0, 1.0, 2.0); NEAR(t.a, 6); NEAR(t.b, 12);"
            )
        ),
        (KeywordKind::Marker(_), "primal_return") => format!(
            "struct two {{ double a, b; }}; struct two __enzyme_fwddiff_two(void *, ...); struct two __enzyme_autodiff_two(void *, ...);\n{}",
            declared(
                "struct two t = __enzyme_fwddiff_two((void *)f, enzyme_primal_return, 3.0, 1.0); NEAR(t.a, 9); NEAR(t.b, 6);\n\
                 t = __enzyme_autodiff_two((void *)f, enzyme_primal_return, 3.0); NEAR(t.a, 9); NEAR(t.b, 6);"
            )
        ),
        (KeywordKind::Marker(_), "const_return") => {
            declared("__enzyme_autodiff_v((void *)g, enzyme_const_return, &x, &d); NEAR(d, 0);")
        }
        (
            KeywordKind::Marker(_),
            "active_return" | "runtime_activity" | "noret" | "strong_zero" | "nocache",
        ) => declared(&format!(
            "__enzyme_autodiff_v((void *)g, enzyme_{}, &x, &d); NEAR(d, 6);",
            word.keyword
        )),
        (KeywordKind::Marker(_), "dup_return") => format!(
            "struct both {{ double *a, *b; }}; struct both __enzyme_fwddiff_both(void *, ...); APART static double *same(double *p) {{ return p; }}\n{}",
            declared(
                "struct both b = __enzyme_fwddiff_both((void *)same, enzyme_primal_return, enzyme_dup_return, &x, &d); if (b.a != &x || b.b != &d) return 1;"
            )
        ),
        (KeywordKind::Marker(_), "nofree") => declared(
            "void *t = __enzyme_augmentfwd((void *)f, enzyme_nofree, 3.0); NEAR(__enzyme_reverse((void *)f, 3.0, 1.0, t), 6);",
        ),
        (KeywordKind::Marker(_), "not_overwritten") => declared(
            "void *t = __enzyme_augmentfwd((void *)g, enzyme_not_overwritten, &x, &d); __enzyme_reverse((void *)g, enzyme_not_overwritten, &x, &d, 1.0, t); NEAR(d, 6);",
        ),
        (KeywordKind::Marker(_), "interleave") => declared(
            "__enzyme_autodiff_v((void *)g, enzyme_interleave, &x, &d); __enzyme_autodiff_v((void *)g, &x, enzyme_interleave, &d); NEAR(d, 12);",
        ),
        (KeywordKind::Marker(_), "tape" | "allocated") => declared(
            "unsigned long n = __enzyme_augmentsize((void *)g, &x, &d); char *t = malloc(n);\n\
             __enzyme_augmentfwd((void *)g, enzyme_allocated, n, enzyme_tape, t, &x, &d); __enzyme_reverse((void *)g, enzyme_allocated, n, enzyme_tape, t, &x, &d, 1.0); NEAR(d, 6);",
        ),
        (KeywordKind::Marker(_), "byref") => format!(
            "struct three {{ double a, b, c; }}; APART static double of(struct three s) {{ return s.a * s.b * s.c; }}\n{}",
            declared(
                "struct three s = {2, 3, 5}, t = {1, 0, 0}; NEAR(__enzyme_fwddiff((void *)of, enzyme_byref, (long)sizeof s, &s, &t), 15);"
            )
        ),
        (KeywordKind::Registration(_), "register_gradient") => {
            registered(
                "static double aug(double a) { return sin(a); } static double rev(double a, double d) { return 10 * d; }\nvoid *__enzyme_register_gradient_sine[3] = {(void *)sine, (void *)aug, (void *)rev};\n",
            ) + "int main(void) { NEAR(__enzyme_autodiff((void *)h, 3.0), 6 + 1 + 10); return 0; }\n"
        }
        (KeywordKind::Registration(_), "register_derivative") => {
            registered(
                "static double jvp(double a, double d) { return 10 * d; }\nvoid *__enzyme_register_derivative_sine[2] = {(void *)sine, (void *)jvp};\n",
            ) + "int main(void) { NEAR(__enzyme_fwddiff((void *)h, 3.0, 1.0), 6 + 1 + 10); return 0; }\n"
        }
        (KeywordKind::Registration(_), "inactivefn") => {
            registered("void *__enzyme_inactivefn[1] = {(void *)zero};\n")
                + "int main(void) { NEAR(__enzyme_autodiff((void *)h, 3.0), 6); return 0; }\n"
        }
        (KeywordKind::Registration(_), "inactive_global") => format!(
            "static double kept; void *__enzyme_inactive_global[1] = {{&kept}};\nAPART static double h(double x) {{ kept = x; return x * x + kept; }}\n{}",
            main("NEAR(__enzyme_autodiff((void *)h, 3.0), 6);")
        ),
        (KeywordKind::Registration(_), "function_like") => {
            registered("void *__enzyme_function_like_sine[2] = {(void *)sine, (void *)\"sin\"};\n")
                + "int main(void) { NEAR(__enzyme_autodiff((void *)h, 3.0), 6 + 1 + cos(3)); return 0; }\n"
        }
        (KeywordKind::Registration(_), "allocation_like") => format!(
            "static char pool[256]; APART static void *take(unsigned long n) {{ return pool; }}\nAPART static void give(void *p) {{}}\n\
             void *__enzyme_allocation_like_take[4] = {{(void *)take, (void *)0, (void *)\"-1\", (void *)give}};\n\
             APART static double h(double x) {{ double *p = take(16); p[1] = x * x; double y = p[1]; give(p); return y; }}\n{}",
            main("NEAR(__enzyme_autodiff((void *)h, 3.0), 6);")
        ),
        (KeywordKind::Registration(_), hint) => format!(
            "{}void *__enzyme_{hint}[1] = {{(void *)f}};\n",
            main("NEAR(__enzyme_autodiff((void *)f, 3.0), 6);")
        ),
        (KeywordKind::Attribute(_), "inactive") => format!(
            "__attribute__((enzyme_inactive)) static double zero(double);\n{ODD}static double h(double x) {{ return x * x + zero(x); }}\nint main(void) {{ NEAR(__enzyme_autodiff((void *)h, 3.0), 6); return 0; }}\n"
        ),
        (KeywordKind::Attribute(_), "function_like") => format!(
            "__attribute__((enzyme_function_like(\"sin\"))) static double sine(double);\n{ODD}static double h(double x) {{ return x * x + sine(x); }}\nint main(void) {{ NEAR(__enzyme_autodiff((void *)h, 3.0), 6 + cos(3)); return 0; }}\n"
        ),
        (KeywordKind::Attribute(_), "math") => format!(
            "__attribute__((enzyme_math(\"sin\"))) static double sine(double);\n{ODD}static double h(double x) {{ return sine(x); }}\nint main(void) {{ NEAR(__enzyme_autodiff((void *)h, 3.0), cos(3)); return 0; }}\n"
        ),
        (KeywordKind::Attribute(_), hint) => format!(
            "__attribute__((enzyme_{hint})) static double f(double);\n{}",
            main("NEAR(__enzyme_autodiff((void *)f, 3.0), 6);")
        ),
        _ => panic!("no program for {}", word.keyword),
    }
}

/// Returns a program with a refused word, and the word as named in diagnostics.
fn refused_program(word: &Keyword) -> (String, String) {
    let f = "static double f(double x) { return x * x; }\n";
    let main = "int main(void) { return (int)__enzyme_autodiff((void *)f, 3.0); }\n";
    let name = word.keyword;
    match word.kind {
        KeywordKind::Call(_) => (
            format!(
                "double {name}(void *, ...);\n{f}int main(void) {{ return (int){name}((void *)f, 3.0); }}\n"
            ),
            name.to_string(),
        ),
        KeywordKind::Marker(_) => (
            format!(
                "extern int enzyme_{name};\n{f}int main(void) {{ return (int)__enzyme_autodiff((void *)f, enzyme_{name}, 3.0); }}\n"
            ),
            format!("enzyme_{name}"),
        ),
        KeywordKind::Registration(_) => (
            format!(
                "{f}static void *const __enzyme_{name}_f[3] = {{(void *)f, (void *)f, (void *)f}};\n{main}"
            ),
            format!("__enzyme_{name}_f"),
        ),
        KeywordKind::Attribute(_) => (
            format!("__attribute__((enzyme_{name})) static double f(double);\n{f}{main}"),
            format!("enzyme_{name}"),
        ),
        KeywordKind::Hook => (
            format!("{f}void {name}(double a, double b) {{ printf(\"%g %g\", a, b); }}\n{main}"),
            name.to_string(),
        ),
        KeywordKind::Header => (
            format!("#include <enzyme/enzyme>\n{f}{main}"),
            "enzyme/enzyme".to_string(),
        ),
        KeywordKind::Metadata(_)
        | KeywordKind::Option
        | KeywordKind::Macro
        | KeywordKind::Rewrite(_) => panic!("no program for {name}"),
    }
}

fn walk(test: &str, is_kind: fn(KeywordKind) -> bool) {
    let at = folder(test);
    for word in KEYWORDS.iter().filter(|word| is_kind(word.kind)) {
        if word.support() == Support::Refused {
            let (program, named) = refused_program(word);
            write(&at, "main.c", &format!("{DECLARATIONS}{program}"));
            let output = gradus(&at, "cc -O1 -w main.c -lm -o program");
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{}: {said}", word.keyword);
            assert!(
                said.contains(&named) && said.contains("main.c:"),
                "{named}: {said}"
            );
        } else {
            write(&at, "main.c", &format!("{DECLARATIONS}{}", program(word)));
            right(&at, "cc -O1 -w main.c");
        }
    }
}

#[test]
fn every_call_is_right_or_refused_by_its_name() {
    let is_call = |means| matches!(means, KeywordKind::Call(_) | KeywordKind::Rewrite(_));
    walk("words_calls", is_call);
}

#[test]
fn every_marker_is_right_or_refused_by_its_name() {
    walk("words_markers", |means| {
        matches!(means, KeywordKind::Marker(_))
    });
}

#[test]
fn every_registration_is_right_or_refused_by_its_name() {
    walk("words_registrations", |means| {
        matches!(means, KeywordKind::Registration(_))
    });
}

#[test]
fn every_attribute_is_right_or_refused_by_its_name() {
    walk("words_attributes", |means| {
        matches!(means, KeywordKind::Attribute(_))
    });
    walk("words_others", |means| {
        matches!(
            means,
            KeywordKind::Hook | KeywordKind::Header | KeywordKind::Macro
        )
    });
}

/// Returns a module in which `f` calls the function `off`, of slope 7: x² + off(x).
fn module(mark: &str, call: &str, tail: &str) -> String {
    format!(
        "define double @off(double %x) noinline {mark} {{\n  %y = fmul double %x, 7.0\n  ret double %y\n}}\n\
         define double @f(double %x) {{\n  %s = fmul double %x, %x\n  %t = call double @off(double %x) {call}\n  %r = fadd double %s, %t\n  ret double %r\n}}\n\
         declare double @__enzyme_autodiff(ptr, double)\ndeclare double @__enzyme_fwddiff(ptr, double, double)\n{tail}\n"
    )
}

/// Returns a `main` that is zero if reverse and forward mode give these values.
fn main_that_expects(reverse: &str, forward: &str) -> String {
    format!(
        "define i32 @main() {{\n  %d = call double @__enzyme_autodiff(ptr @f, double 3.0)\n  %t = call double @__enzyme_fwddiff(ptr @f, double 3.0, double 1.0)\n\
         \x20 %a = fcmp une double %d, {reverse}\n  %b = fcmp une double %t, {forward}\n  %c = or i1 %a, %b\n  %r = zext i1 %c to i32\n  ret i32 %r\n}}\n!0 = !{{}}\n"
    )
}

#[test]
fn attributes_and_metadata_of_the_ir_are_honoured_or_refused() {
    let at = folder("words_ir");
    let inactive = main_that_expects("6.0", "6.0");
    let sweeps = "define double @jvp(double %x, double %t) noinline {\n  %y = fmul double %t, 20.0\n  ret double %y\n}\n\
         define double @rev(double %x, double %d) noinline {\n  %y = fmul double %d, 10.0\n  ret double %y\n}\n\
         define double @aug(double %x) noinline {\n  %y = fmul double %x, 7.0\n  ret double %y\n}\n";
    let expected = main_that_expects("16.0", "26.0");
    let named =
        format!("{sweeps}{expected}!1 = !{{ptr @aug}}\n!2 = !{{ptr @rev}}\n!3 = !{{ptr @jvp}}\n");
    let taken = [
        module("\"enzyme_inactive\"", "", &inactive),
        module("!enzyme_inactive !0", "", &inactive),
        module("", "\"enzyme_inactive\"", &inactive),
        module("", ", !enzyme_inactive !0", &inactive),
        module(
            "!enzyme_augment !1 !enzyme_gradient !2 !enzyme_derivative !3",
            "",
            &named,
        ),
    ];
    for text in taken {
        write(&at, "m.ll", &text);
        for level in LEVELS {
            right(&at, &format!("cc {level} -Wno-override-module m.ll"));
        }
    }
    let load = "@g = global double 5.0\ndefine double @f(double %x) {\n  store double %x, ptr @g\n  %v = load double, ptr @g, !enzyme_inactive_inst !0\n  %r = fmul double %v, %x\n  ret double %r\n}\n\
         declare double @__enzyme_autodiff(ptr, double)\ndeclare double @__enzyme_fwddiff(ptr, double, double)\n";
    for word in ["inactive_inst", "inactive_val"] {
        write(
            &at,
            "m.ll",
            &format!(
                "{}{}",
                load.replace("inactive_inst", word),
                main_that_expects("3.0", "3.0")
            ),
        );
        right(&at, "cc -O1 -Wno-override-module m.ll");
    }
    for word in KEYWORDS.iter().filter(|word| {
        matches!(
            word.kind,
            KeywordKind::Metadata(AttributeMeaning::Unsupported | AttributeMeaning::Hint)
        )
    }) {
        let mark = format!("!enzyme_{} !0", word.keyword);
        write(
            &at,
            "m.ll",
            &module(&mark, "", &main_that_expects("13.0", "13.0")),
        );
        match word.support() {
            Support::Hint => right(&at, "cc -O1 -Wno-override-module m.ll"),
            _ => {
                let said = refuses(
                    &at,
                    "cc -O1 -Wno-override-module m.ll -o program",
                    "GRD0039",
                );
                assert!(said.contains(&format!("enzyme_{}", word.keyword)), "{said}");
            }
        }
    }
    for (mark, call, word) in [
        ("!enzyme_augment !0", "", "enzyme_augment"),
        ("\"enzyme_odd\"=\"1\"", "", "enzyme_odd"),
        ("", ", !enzyme_odd !0", "enzyme_odd"),
        ("", ", !enzyme_inactive_inst !0", "enzyme_inactive_inst"),
        ("", "\"enzyme_gradient\"", "enzyme_gradient"),
    ] {
        write(&at, "m.ll", &module(mark, call, &inactive));
        let said = refuses(
            &at,
            "cc -O1 -Wno-override-module m.ll -o program",
            "GRD0039",
        );
        assert!(said.contains(word), "{said}");
    }
}

#[test]
fn registrations_in_every_form_of_c_are_read() {
    for (number, form) in [
        "static void *R[2] = {(void *)sine, (void *)\"sin\"};",
        "static void *const R[2] = {(void *)sine, (void *)\"sin\"};",
        "const void *const R[] = {(void *)sine, (void *)\"sin\"};",
        "static struct { void *f; const char *name; } R = {(void *)sine, \"sin\"};",
        "static const struct like { double (*f)(double); const char *name; } R = {sine, \"sin\"};",
        "static __attribute__((aligned(16))) void *R[2] = {(void *)sine, (void *)\"sin\"};",
        "#define LIKE(g, n) static void *__enzyme_function_like_##g[2] = {(void *)g, (void *)n}\nLIKE(sine, \"sin\");",
        "#pragma GCC diagnostic ignored \"-Wunused-variable\"\nstatic void *R[2] = {(void *)sine,\n  (void *)\"sin\"}; static void *__enzyme_inactivefn_none[1] = {0};",
        "static double other(double x) { static void *R[2] = {(void *)sine, (void *)\"sin\"}; return x; }\nint use(void) { return other(1) == 1; }",
    ]
    .into_iter()
    .enumerate()
    {
        let form = form
            .replace("R[", "__enzyme_function_like_sine[")
            .replace("R =", "__enzyme_function_like_sine =");
        let program = format!(
            "{ODD}{form}\nstatic double f(double x) {{ return 2 * sine(x); }}\nint main(void) {{ NEAR(__enzyme_autodiff((void *)f, 0.5), 2 * cos(0.5)); return 0; }}\n"
        );
        right_in_c(&format!("words_form_c_{number}"), &program);
    }
}

#[test]
fn registrations_in_every_form_of_cplusplus_are_read() {
    for (number, form) in [
        "static void *const R[2] = {(void *)sine, (void *)\"sin\"};",
        "const void *const R[2]{(void *)sine, \"sin\"};",
        "namespace { void *R[2] = {(void *)sine, (void *)\"sin\"}; }",
        "namespace deep { namespace inner { static const void *const R[2] = {(void *)sine, \"sin\"}; } }",
        "struct like { double (*f)(double); const char *name; }; static constexpr like R = {sine, \"sin\"};",
        "struct S { static inline void *R[2] = {(void *)sine, (void *)\"sin\"}; };",
        "struct S { static void *R[2]; };\nvoid *S::R[2] = {(void *)sine, (void *)\"sin\"};",
        "struct like { double (*f)(double); const char *name; }; class C { public: static constexpr like R = {sine, \"sin\"}; };",
        "inline void *R[2] = {(void *)sine, (void *)\"sin\"};",
        "extern \"C\" { static void *R[2] = {(void *)sine, (void *)\"sin\"}; }",
    ]
    .into_iter()
    .enumerate()
    {
        let form = form.replace("R[", "__enzyme_function_like_sine[").replace("R =", "__enzyme_function_like_sine =");
        let program = format!(
            "{ODD}{form}\nstatic double f(double x) {{ return 2 * sine(x); }}\nint main() {{ NEAR(__enzyme_autodiff((void *)f, 0.5), 2 * cos(0.5)); return 0; }}\n"
        );
        right_in_cplusplus(&format!("words_form_cpp_{number}"), &program);
    }
}

#[test]
fn registrations_of_function_pointers_are_read() {
    let form = "struct rules { static constexpr double (*__enzyme_inactivefn_rules[])(double) = {zero}; };\n\
                static double (*const __enzyme_register_derivative_sine[])(double, double) = {(double (*)(double, double))sine, slope};";
    right_in_cplusplus(
        "words_function_pointers",
        &format!(
            "{ODD}static double slope(double, double d) {{ return 7 * d; }}\n{form}\nstatic double f(double x) {{ return x * x + zero(x) + sine(x); }}\n\
             int main() {{ NEAR(__enzyme_fwddiff((void *)f, 3.0, 1.0), 6 + 7); return 0; }}\n"
        ),
    );
}

#[test]
fn a_registration_that_the_compiler_drops_is_refused() {
    let at = folder("words_dropped");
    let program = "template <class T> struct S { static inline void *__enzyme_inactivefn_t[1] = {(void *)zero}; };\n";
    write(
        &at,
        "main.cpp",
        &format!(
            "{DECLARATIONS}{ODD}{program}static double f(double x) {{ return x + zero(x); }}\nint main() {{ return (int)__enzyme_autodiff((void *)f, 0.5); }}\n"
        ),
    );
    let said = refuses(&at, "c++ -std=c++17 -O1 -w main.cpp -o program", "GRD0039");
    assert!(
        said.contains("__enzyme_inactivefn_t") && said.contains("main.cpp:5"),
        "{said}"
    );
}

#[test]
fn attributes_in_every_form_are_read() {
    for (number, form) in [
        "__attribute__((enzyme_inactive)) static double zero(double);",
        "static double zero(double) __attribute__((enzyme_inactive, unused));",
        "#define OFF __attribute__((noinline,\\\n  enzyme_inactive))\nOFF static double zero(double);",
        "static double zero(double); __attribute__((enzyme_inactive)) static double zero(double);",
        "__attribute__((annotate(\"enzyme_inactive\"))) static double zero(double);",
        "__attribute__((annotate(\"gradus_inactive\"))) static double zero(double);",
        "__attribute__((gradus_inactive)) static double zero(double);",
        "#pragma clang diagnostic ignored \"-Wunknown-attributes\"\n__attribute__((enzyme_inactive)) static double zero(double);",
        "#include \"off.h\"",
    ]
    .into_iter()
    .enumerate()
    {
        let at = folder(&format!("words_attribute_{number}"));
        write(&at, "off.h", "static double zero(double) __attribute__((enzyme_inactive));\n");
        let program = format!(
            "{form}\n{ODD}static double f(double x) {{ return x * x + zero(x) + zero(2 * x); }}\nint main(void) {{ NEAR(__enzyme_autodiff((void *)f, 3.0), 6); return 0; }}\n"
        );
        write(&at, "main.c", &format!("{DECLARATIONS}{program}"));
        for level in LEVELS {
            right(&at, &format!("cc {level} -w main.c"));
        }
    }
    right_in_cplusplus(
        "words_attribute_cpp",
        &format!(
            "[[enzyme::inactive]] static double zero(double); [[enzyme::function_like(\"sin\")]] static double sine(double);\n{ODD}
             namespace n {{ [[gnu::noinline, enzyme::inactive]] static double nothing(double a) {{ return a - cut(a); }} }}
             template <class T> [[enzyme::inactive]] APART T none(T a) {{ return a - cut(a); }}
             struct S {{ double k; [[enzyme::inactive]] APART double drop(double a) const {{ return k * (a - cut(a)); }} }};
             static double f(double x) {{ S s{{2}}; return x * x + zero(x) + n::nothing(x) + none(x) + s.drop(x) + sine(x); }}
             int main() {{ NEAR(__enzyme_autodiff((void *)f, 0.5), 1 + cos(0.5)); return 0; }}\n"
        ),
    );
}

#[test]
fn misplaced_attributes_are_refused() {
    for (number, (program, line)) in [
        ("struct __attribute__((enzyme_inactive)) s { double a; };\nstatic double f(double x) { struct s v = {x}; return v.a; }\n", 1),
        ("static double off(double x) { return x; }\nstatic double off(double x) __attribute__((enzyme_inactive));\nstatic double f(double x) { return off(x); }\n", 2),
        ("typedef double off __attribute__((enzyme_inactive));\nstatic double f(double x) { off v = x; return v; }\n", 1),
        ("struct s { __attribute__((enzyme_inactive)) double a; };\nstatic double f(double x) { struct s v = {x}; return v.a; }\n", 1),
        ("static double f(__attribute__((enzyme_inactive)) double x) { return x; }\n", 1),
        ("\nstatic double f(double x) { __attribute__((enzyme_inactive)) double y = x; return y; }\n", 2),
        ("__attribute__((enzyme_inactiv)) static double f(double x) { return x; }\n", 1),
        ("__attribute__((annotate(\"enzyme_inactiv\"))) static double f(double x) { return x; }\n", 1),
        ("static double keep; __attribute__((annotate(\"enzyme_inactive\"))) static double keep;\ndouble *where(void) { return &keep; }\nstatic double f(double x) { keep = x; return keep; }\n", 2),
        ("__attribute__((enzyme_shadow(gs))) double g = 5;\nstatic double f(double x) { return g * x; }\n", 1),
    ]
    .into_iter()
    .enumerate()
    {
        let main = "int main(void) { return (int)__enzyme_autodiff((void *)f, 3.0); }\n";
        let word = if program.contains("shadow") { "enzyme_shadow" } else { "inactiv" };
        refused_in_c(&format!("words_nowhere_{number}"), &format!("{program}{main}"), "GRD0039", word, line);
    }
}

#[test]
fn inactive_variables_carry_no_derivative() {
    right_in_c(
        "words_inactive_variable",
        "__attribute__((annotate(\"enzyme_inactive\"))) static double keep;
         __attribute__((enzyme_inactive)) double rows[4];
         static double other; static void *__enzyme_inactive_global[1] = {&other};
         APART static double f(double x) { keep = x; rows[2] = 3 * x; other = x; double y = keep + rows[2] + other; return x * x + y * x; }
         int main(void) { NEAR(__enzyme_autodiff((void *)f, 3.0), 6 + 15); NEAR(__enzyme_fwddiff((void *)f, 3.0, 2.0), 2 * 21); NEAR(keep + rows[2] + other, 15); return 0; }\n",
    );
}

#[test]
fn misspelt_words_are_refused() {
    let f = "static double f(double *x) { return *x * *x; }\nAPART static double zero(double x) { return x; }\n";
    for (number, (program, word, line)) in [
        ("double __enzyme_autodif(void *, ...);\nint main(void) { double x = 3, d = 0; return (int)__enzyme_autodif((void *)f, &x, &d); }\n", "__enzyme_autodif", 4),
        ("extern int enzyme_dupp;\nint main(void) { double x = 3, d = 0; __enzyme_autodiff_v((void *)f, enzyme_dupp, &x, &d); return 0; }\n", "enzyme_dupp", 4),
        ("static void *__enzyme_inactivfn[1] = {(void *)zero};\nint main(void) { double x = 3, d = 0; __enzyme_autodiff_v((void *)f, &x, &d); return 0; }\n", "__enzyme_inactivfn", 3),
        ("void *__enzyme_register_gradeint_f[1] = {(void *)zero};\nint main(void) { double x = 3, d = 0; __enzyme_autodiff_v((void *)f, &x, &d); return 0; }\n", "__enzyme_register_gradeint_f", 3),
        ("double __enzyme_fixd(double);\nAPART static double g(double *x) { return __enzyme_fixd(*x); }\nint main(void) { double x = 3, d = 0; __enzyme_autodiff_v((void *)g, &x, &d); return 0; }\n", "__enzyme_fixd", 4),
    ]
    .into_iter()
    .enumerate()
    {
        refused_in_c(&format!("words_misspelt_{number}"), &format!("{f}{program}"), "GRD0039", word, line);
    }
}

#[test]
fn markers_are_read_in_every_form() {
    let calls = "APART static double f(double *a, double *b) { return *a * *b * *b; }
         int main(void) {
             double a = 3, b = 5, da = 0, db = 0;
             __enzyme_autodiff_v((void *)f, enzyme_dup, &a, enzyme_dup, &b, enzyme_interleave, &da, &db);
             NEAR(da, 25); NEAR(db, 30);
             __enzyme_autodiff_v((void *)f, enzyme_const, &a, enzyme_dup, &b, enzyme_interleave, &db);
             NEAR(db, 60);
             __enzyme_autodiff_v((void *)f, enzyme_interleave, &a, &b, &da, &db);
             NEAR(da, 50);
             return 0;
         }\n";
    right_in_c("words_interleave", calls);
    right_in_c(
        "words_defined_markers",
        "static int enzyme_active_return; int enzyme_const_return;
         APART static double f(double *a) { return *a * *a; }
         int main(void) {
             double a = 3, d = 0;
             __enzyme_autodiff_v((void *)f, enzyme_active_return, &a, &d); NEAR(d, 6);
             __enzyme_autodiff_v((void *)f, enzyme_const_return, &a, &d); NEAR(d, 6);
             return 0;
         }\n",
    );
    right_in_cplusplus(
        "words_markers_in_namespaces",
        "namespace marks { extern int enzyme_const; namespace deep { extern int enzyme_dup; } }
         APART static double f(double *a, double *b) { return *a * *b; }
         int main() {
             double a = 3, b = 5, d = 0;
             __enzyme_autodiff_v((void *)f, marks::enzyme_const, &a, marks::deep::enzyme_dup, &b, &d); NEAR(d, 3);
             return 0;
         }\n",
    );
    refused_in_c(
        "words_interleave_inside",
        "static double f(double *a, double *b, double *c) { return *a * *b * *c; }\n\
         int main(void) { double a = 3, d = 0; __enzyme_autodiff_v((void *)f, &a, &a, enzyme_interleave, &a, &d, &d, &d); return 0; }\n",
        "GRD0017",
        "interleave",
        2,
    );
}

#[test]
fn small_tapes_are_refused() {
    let f = "static double f(double *x) { double y = sin(*x); return y * y * *x; }\n";
    refused_in_c(
        "words_small_tape",
        &format!(
            "{f}int main(void) {{ double x = 3, d = 0; char t[64], s[1];\n__enzyme_augmentfwd((void *)f, enzyme_allocated, 64L, enzyme_tape, t, &x, &d);\n\
             __enzyme_reverse((void *)f, enzyme_allocated, 1L, enzyme_tape, s, &x, &d, 1.0); return 0; }}\n"
        ),
        "GRD0014",
        "the call passes 1",
        4,
    );
    let at = folder("words_small_tape_at_run_time");
    let program = format!(
        "{f}int main(int n, char **words) {{ double x = 3, d = 0; char t[64]; unsigned long size = strtoul(words[1], 0, 10);\n\
         __enzyme_augmentfwd((void *)f, enzyme_allocated, 64L, enzyme_tape, t, &x, &d); __enzyme_reverse((void *)f, enzyme_allocated, size, enzyme_tape, t, &x, &d, 1.0);\n\
         NEAR(d, 6 * sin(3) * cos(3) + sin(3) * sin(3)); return 0; }}\n"
    );
    write(&at, "main.c", &format!("{DECLARATIONS}{program}"));
    for level in LEVELS {
        let made = gradus(&at, &format!("cc {level} -w main.c -lm -o program"));
        assert!(made.status.success(), "{}", text(&made.stderr));
        let ran = |size: &str| {
            Command::new(at.join("program"))
                .arg(size)
                .output()
                .expect("it starts")
                .status
        };
        assert!(ran("64").success());
        assert!(!ran("1").success());
    }
}

#[test]
fn custom_gradient_without_value() {
    right_in_c(
        "words_void_augmented",
        "static int runs;
         APART static double square(double x) { return x * x; }
         static void aug(double x) { runs++; } static double rev(double x, double d) { return 20 * x * d; }
         static void *__enzyme_register_gradient_square[3] = {(void *)square, (void *)aug, (void *)rev};
         static double f(double x) { double y = square(x); return y * y; }
         int main(void) { NEAR(__enzyme_autodiff((void *)f, 3.0), 2 * 9 * 60); return runs != 1; }\n",
    );
}

#[test]
fn enzyme_options_are_reported() {
    let at = folder("words_options");
    let program = "static double f(double x) { return x * x; }\nint main(void) { NEAR(__enzyme_autodiff((void *)f, 3.0), 6); return 0; }\n";
    write(&at, "main.c", &format!("{DECLARATIONS}{program}"));
    let line = "cc -O2 -fpass-plugin=/none/ClangEnzyme-22.so -mllvm -enzyme-loose-types=1 main.c -lm -o program";
    let made = gradus(&at, line);
    let said = text(&made.stderr);
    assert!(made.status.success(), "{said}");
    assert!(
        said.contains("ClangEnzyme-22.so") && said.contains("-enzyme-loose-types=1"),
        "{said}"
    );
    right(&at, "cc -O2 -Xclang -load -Xclang LLVMEnzyme-22.so main.c");
}

#[test]
fn words_in_other_files_are_read() {
    let at = folder("words_files");
    write(&at, "odd.h", "double zero(double); double sine(double);\n");
    let odd = ODD.replace("APART static", "");
    write(&at, "odd.c", &format!("{DECLARATIONS}{odd}"));
    write(
        &at,
        "rules.c",
        "#include \"odd.h\"\nstatic void *__enzyme_inactivefn_zero[1] = {(void *)zero};\nstatic void *const __enzyme_function_like_sine[2] = {(void *)sine, (void *)\"sin\"};\n",
    );
    let main = "#include \"odd.h\"\nstatic double f(double x) { return x * x + zero(x) + sine(x); }\nint main(void) { NEAR(__enzyme_autodiff((void *)f, 0.5), 1 + cos(0.5)); return 0; }\n";
    write(&at, "main.c", &format!("{DECLARATIONS}{main}"));
    for level in LEVELS {
        right(&at, &format!("cc {level} -w main.c odd.c rules.c"));
        for file in ["main", "odd", "rules"] {
            let made = gradus(&at, &format!("cc {level} -w -c {file}.c -o {file}.o"));
            assert!(made.status.success(), "{}", text(&made.stderr));
        }
        right(&at, "cc rules.o main.o odd.o");
    }
    write(
        &at,
        "whole.c",
        &format!(
            "{DECLARATIONS}{odd}{}",
            main.replace("#include \"odd.h\"\n", "")
        ),
    );
    let said = refuses(&at, "cc -O1 -w whole.c rules.c -lm -o program", "GRD0039");
    assert!(
        said.contains("__enzyme_") && said.contains("too late"),
        "{said}"
    );
}

#[test]
fn lto_objects_are_differentiated() {
    let at = folder("words_lto");
    write(&at, "g.c", "double g(double x) { return x * x * x; }\n");
    let main = "double g(double);\nstatic double f(double x) { return 2 * g(x); }\nint main(void) { NEAR(__enzyme_autodiff((void *)f, 2.0), 24); return 0; }\n";
    write(&at, "main.c", &format!("{DECLARATIONS}{main}"));
    for lto in ["-flto", "-flto=thin"] {
        for level in ["-O0", "-O2"] {
            for file in ["g", "main"] {
                let made = gradus(&at, &format!("cc {level} {lto} -c {file}.c -o {file}.o"));
                assert!(made.status.success(), "{}", text(&made.stderr));
            }
            right(&at, &format!("cc {lto} -fuse-ld=lld g.o main.o"));
            right(&at, &format!("cc {level} {lto} -fuse-ld=lld g.c main.c"));
        }
    }
}
