//! Calls of the interface that stand for other code.

use crate::support::{folder, refuses, write};

/// Calls that stand for other code, in forms that name no code.
#[test]
fn rewritten_calls_with_other_arguments_are_refused() {
    let f = "static double f(double x) { return x * x; }\n";
    let head = "double __enzyme_autodiff(void *, ...);\n";
    let main = "int main(void) { return (int)__enzyme_autodiff((void *)h, 3.0); }\n";
    let programs = [
        (
            "__enzyme_iter",
            "unsigned long __enzyme_iter(unsigned long, unsigned long);\nstatic double h(double x) { return x * __enzyme_iter(3, 1); }\n",
        ),
        (
            "__enzyme_call_inactive",
            "double __enzyme_call_inactive(void *, ...);\nstatic double h(double x) { return x * __enzyme_call_inactive((void *)f); }\n",
        ),
        (
            "__enzyme_call_inactive",
            "double __enzyme_call_inactive(void *, ...);\nstatic double h(double x) { return x * __enzyme_call_inactive(\"f\", x); }\n",
        ),
        (
            "__enzyme_double",
            "double *__enzyme_double(void *, long);\nstatic double h(double x) { return *__enzyme_double(&x, 8); }\n",
        ),
    ];
    let at = folder("rewritten_calls");
    for (word, program) in programs {
        write(&at, "main.c", &format!("{head}{f}{program}{main}"));
        for level in ["-O0", "-O2"] {
            let said = refuses(&at, &format!("cc {level} -w main.c -o program"), "GRD0039");
            assert!(
                said.contains(word) && said.contains("main.c:4"),
                "{word}: {said}"
            );
        }
    }
}
