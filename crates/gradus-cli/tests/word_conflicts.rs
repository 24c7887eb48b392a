//! Words of the call interface that contradict each other or do not fit the function: the request is
//! refused.

use crate::support::{folder, gradus, refuses, shell, text, write};
use std::process::Command;

const LEVELS: [&str; 2] = ["-O0", "-O2"];

const DECLARATIONS: &str = "#include <math.h>
#include <stdio.h>
extern int enzyme_const, enzyme_dup, enzyme_out, enzyme_width, enzyme_primal_return, enzyme_const_return;
extern int enzyme_active_return, enzyme_dup_return, enzyme_noret, enzyme_strong_zero, enzyme_byref;
double __enzyme_autodiff(void *, ...);
void __enzyme_autodiff_v(void *, ...);
void *__enzyme_augmentfwd(void *, ...);
double __enzyme_reverse(void *, ...);
#line 1
";

fn refused(test: &str, program: &str, code: &str, words: &[&str]) {
    let at = folder(test);
    write(&at, "main.c", &format!("{DECLARATIONS}{program}"));
    for level in LEVELS {
        let said = refuses(&at, &format!("cc {level} -w main.c -o main -lm"), code);
        for word in words {
            assert!(said.contains(word), "{word}: {said}");
        }
    }
}

fn right(test: &str, program: &str) {
    let at = folder(test);
    write(&at, "main.c", &format!("{DECLARATIONS}{program}"));
    for level in LEVELS {
        shell(&at, &format!("gradus cc {level} -w main.c -o main -lm"));
        shell(&at, "./main");
    }
}

/// Contradictory result words, in either order and after the arguments.
#[test]
fn contradictions_on_the_result_are_refused() {
    let call = |words: &str| {
        format!(
            "double f(double x) {{ return x * x * x; }}\nint main(void) {{ return (int)__enzyme_autodiff((void *)f, {words}); }}\n"
        )
    };
    for (test, words, named) in [
        (
            "noret",
            "enzyme_noret, enzyme_primal_return, enzyme_out, 2.0",
            ["`noret`", "`primal_return`"],
        ),
        (
            "const_active",
            "enzyme_const_return, enzyme_active_return, enzyme_out, 2.0",
            ["`const_return`", "`active_return`"],
        ),
        (
            "active_const",
            "enzyme_active_return, enzyme_const_return, enzyme_out, 2.0",
            ["`const_return`", "`active_return`"],
        ),
        (
            "late",
            "enzyme_active_return, enzyme_out, 2.0, enzyme_const_return",
            ["`const_return`", "`active_return`"],
        ),
        (
            "dup_number",
            "enzyme_dup_return, enzyme_out, 2.0",
            ["`dup_return`", "a pointer"],
        ),
        (
            "dup_number_late",
            "enzyme_out, 2.0, enzyme_dup_return",
            ["`dup_return`", "a pointer"],
        ),
    ] {
        refused(&format!("conflict_{test}"), &call(words), "GRD0017", &named);
    }
}

#[test]
fn width_once_before_arguments() {
    let call = |words: &str| {
        format!(
            "double f(const double *x) {{ return x[0] * x[0] * x[1]; }}
             int main(void) {{ double x[2] = {{2, 3}}, d[2] = {{0}}, e[2] = {{0}}; __enzyme_autodiff_v((void *)f, {words}); return d[0] != 12; }}\n"
        )
    };
    let twice = call("enzyme_width, 1, enzyme_width, 2, enzyme_dup, x, d, e");
    refused(
        "conflict_width_twice",
        &twice,
        "GRD0017",
        &["`width` appears twice"],
    );
    let late = call("enzyme_dup, x, d, e, enzyme_width, 2");
    refused(
        "conflict_width_late",
        &late,
        "GRD0017",
        &["`enzyme_width` follows"],
    );
}

#[test]
fn byref_size_must_match() {
    let program = |ty: &str, bytes: &str| {
        format!(
            "struct s {{ double a, b; {ty} }};
             double f(struct s s, double x) {{ return s.a * x + s.b * x; }}
             int main(void) {{ struct s s = {{1, 2}}, d = {{0}}; double r = __enzyme_autodiff((void *)f, enzyme_byref, {bytes}, enzyme_dup, &s, &d, enzyme_out, 4.0); return !(d.a == 4 && d.b == 4 && r == 3); }}\n"
        )
    };
    right("byref_memory", &program("int n;", "sizeof s"));
    for (test, ty, bytes) in [
        ("memory_short", "int n;", "8"),
        ("memory_long", "int n;", "32"),
        ("registers_short", "", "8"),
        ("registers_long", "", "24"),
    ] {
        let words = ["`byref` states", "`s` of `f`"];
        refused(
            &format!("byref_{test}"),
            &program(ty, bytes),
            "GRD0017",
            &words,
        );
    }
    refused(
        "byref_pointer",
        "double f(const double *x) { return *x * *x; }
         int main(void) { double x = 3, d = 0; __enzyme_autodiff_v((void *)f, enzyme_byref, 8, enzyme_dup, &x, &d); return d != 6; }\n",
        "GRD0017",
        &["`byref` precedes `x`", "is a pointer"],
    );
}

/// The word `strong_zero` determines the products of the reverse pass. A reverse call without the word does
/// not accept the tape of an augmented call with it, also across files.
#[test]
fn both_sweeps_agree_on_strong_zero() {
    let f = "static double f(double x, double y) { return sqrt(x) * y; }\n";
    let main = |first: &str, second: &str| {
        format!(
            "{f}int main(void) {{ void *t = __enzyme_augmentfwd((void *)f, {first} enzyme_out, 0.0, enzyme_const, 0.0);
             return __enzyme_reverse((void *)f, {second} enzyme_out, 0.0, enzyme_const, 0.0, 1.0, t) != 0; }}\n"
        )
    };
    let word = "enzyme_strong_zero,";
    refused(
        "strong_first",
        &main(word, ""),
        "GRD0017",
        &["`strong_zero`", "reverse pass"],
    );
    right("strong_both", &main(word, word));
    right("strong_second", &main("", word));
    let at = folder("strong_files");
    let f = "#include <math.h>\ndouble f(double x, double y) { return sqrt(x) * y; }\n";
    write(
        &at,
        "f.h",
        f.replace("double f", "static double f").as_str(),
    );
    write(
        &at,
        "main.c",
        &format!(
            "{DECLARATIONS}#include \"f.h\"\nint other(void *);\nint main(void) {{ return other(__enzyme_augmentfwd((void *)f, enzyme_strong_zero, enzyme_out, 0.0, enzyme_const, 0.0)); }}\n"
        ),
    );
    write(
        &at,
        "other.c",
        &format!(
            "{DECLARATIONS}#include \"f.h\"\nint other(void *t) {{ return __enzyme_reverse((void *)f, enzyme_out, 0.0, enzyme_const, 0.0, 1.0, t) != 0; }}\n"
        ),
    );
    for file in ["main", "other"] {
        shell(&at, &format!("gradus cc -O1 -w -c {file}.c -o {file}.o"));
    }
    shell(&at, "gradus cc main.o other.o -o main -lm");
    let ran = Command::new(at.join("main")).output().expect("it starts");
    assert!(text(&ran.stderr).contains("keywords and size"), "{ran:?}");
}

#[test]
fn contradictory_registrations_refused() {
    let functions = "static double sq(double x) { return x * x; }
        static double aug(double x) { return x * x; }
        static double rev(double x, double c) { return 100 * c; }
        static double other(double x, double c) { return 200 * c; }
        static double f(double x) { return 3 * sq(x); }
        int main(void) { return __enzyme_autodiff((void *)f, 2.0) != 300; }\n";
    let gradient = |end: &str, rev: &str| {
        format!(
            "void *__enzyme_register_gradient_{end}[3] = {{(void *)sq, (void *)aug, (void *){rev}}};\n"
        )
    };
    let own = gradient("a", "rev");
    right(
        "registered_twice_alike",
        &format!("{functions}{own}{}", gradient("b", "rev")),
    );
    let inactive = "void *__enzyme_inactivefn_sq[1] = {(void *)sq};\n";
    let like = |end: &str, name: &str| {
        format!("void *__enzyme_function_like_{end}[2] = {{(void *)sq, (void *)\"{name}\"}};\n")
    };
    for (test, registrations, named) in [
        ("gradients", own.clone() + &gradient("b", "other"), "twice"),
        ("inactive", own.clone() + inactive, "as inactive"),
        (
            "like",
            own.clone() + &like("a", "sin"),
            "like a known function",
        ),
        (
            "inactive_like",
            like("a", "sin") + inactive,
            "as inactive and like a known function",
        ),
        ("likes", like("a", "sin") + &like("b", "cos"), "twice"),
    ] {
        refused(
            &format!("registered_{test}"),
            &format!("{functions}{registrations}"),
            "GRD0017",
            &["`sq` is registered", named],
        );
    }
}

/// GNU's spelling with underscores avoids clashes with macros.
#[test]
fn attributes_between_underscores_are_read() {
    right(
        "words_underscores",
        "__attribute__((noinline, __enzyme_inactive__)) static double a(double x) { return x * x; }
         [[enzyme::__inactive__]] static double b(double x) { return x * x; }
         [[__enzyme__::inactive]] static double c(double x) { return x * x; }
         static double f(double x) { return a(x) + b(x) + c(x) + x; }
         int main(void) { return __enzyme_autodiff((void *)f, 2.0) != 1; }\n",
    );
    refused(
        "words_half_underscores",
        "__attribute__((__enzyme_inactive)) static double a(double x) { return x * x; }
         static double f(double x) { return a(x) + x; }
         int main(void) { return __enzyme_autodiff((void *)f, 2.0) != 1; }\n",
        "GRD0039",
        &["__enzyme_inactive"],
    );
}

/// A guard in the source that works under every compiler.
#[test]
fn the_guard_of_the_manual_works() {
    let at = folder("words_guard");
    write(
        &at,
        "main.c",
        "#ifdef __GRADUS__
         #define INACTIVE __attribute__((enzyme_inactive))
         #else
         #define INACTIVE
         #endif
         double __enzyme_autodiff(void *, ...);
         INACTIVE double a(double x) { return x * x; }
         double f(double x) { return a(x) + x; }
         int main(void) { return __enzyme_autodiff((void *)f, 2.0) != 1; }\n",
    );
    for level in LEVELS {
        shell(&at, &format!("gradus cc {level} -w main.c -o main"));
        shell(&at, "./main");
    }
    shell(&at, "clang-22 -Werror -c main.c -o main.o");
}

/// Calls under the other prefix, in differentiated code and elsewhere.
#[test]
fn calls_of_either_prefix_are_refused_by_name() {
    for name in [
        "__gradus_batch",
        "__gradus_shadow",
        "__gradus_truncate_mem_func",
    ] {
        let program = format!(
            "double {name}(void *, ...);\nstatic double inner(double x) {{ double y = x; {name}((void *)&y, 8); return y * y; }}\nint main(void) {{ return __enzyme_autodiff((void *)inner, 2.0) != 4; }}\n"
        );
        refused(&format!("other_prefix{name}"), &program, "GRD0039", &[name]);
        let program = format!(
            "double {name}_end(void *, ...);\nstatic double f(double x) {{ return x * x; }}\nstatic void never(void) {{ {name}_end((void *)f, 2.0); }}\nvoid (*keep)(void) = never;\nint main(void) {{ return __enzyme_autodiff((void *)f, 2.0) != 4; }}\n"
        );
        refused(
            &format!("other_prefix_end{name}"),
            &program,
            "GRD0039",
            &[name],
        );
    }
}

/// Attributes of variables in LLVM IR.
#[test]
fn attributes_of_variables_in_the_ir_are_read() {
    let at = folder("words_ir_variable");
    let module = |attribute: &str| {
        format!(
            "declare double @__enzyme_autodiff(ptr, ...)
             @kept = internal global double 0.0 #0
             define double @f(double %x) {{
               store double %x, ptr @kept
               %y = load double, ptr @kept
               %z = fadd double %y, %x
               ret double %z
             }}
             define i32 @main() {{
               %d = call double (ptr, ...) @__enzyme_autodiff(ptr @f, double 2.0)
               %n = fptosi double %d to i32
               ret i32 %n
             }}
             attributes #0 = {{ \"{attribute}\" }}\n"
        )
    };
    write(&at, "main.ll", &module("enzyme_inactive"));
    for level in LEVELS {
        let made = gradus(&at, &format!("cc {level} -w main.ll -o main"));
        assert!(made.status.success(), "{}", text(&made.stderr));
        let ran = Command::new(at.join("main")).status().expect("it starts");
        assert_eq!(ran.code(), Some(1), "{level}");
    }
    write(&at, "main.ll", &module("enzyme_shadow"));
    let said = refuses(&at, "cc -O1 -w main.ll -o main", "GRD0039");
    assert!(said.contains("enzyme_shadow"), "{said}");
}
