//! The link of an executable: a variable that the program only reads, and that no other object or library names, keeps
//! the initial value.

use crate::support::{accepts, folder, refuses, shell, succeeds, write};
use std::process::Command;

const HEADER: &str = "typedef struct {
    double *(*make)(int);
    void (*apply)(double *, void (*)(double *));
} Method;
extern const Method *method;
void choose(void);
";

const METHODS: &str = "#include <stdlib.h>
#include \"method.h\"
static double *make(int n) { return malloc(n * sizeof(double)); }
static void square(double *s, void (*first)(double *)) { first(s); s[0] *= s[0]; s[1] += s[0]; }
static const Method squaring = {make, square};
const Method *method = &squaring;
";

const MAIN: &str = "#include <gradus.h>
#include <stdlib.h>
#include \"method.h\"
static void twice(double *s) { s[0] *= 2; }
double f(const double *x) {
    double *s = method->make(2);
    s[0] = x[0];
    s[1] = x[1];
    method->apply(s, twice);
    double y = s[0] * s[1];
    free(s);
    return y;
}
int main(void) {
    double x[2] = {2, 3}, d[2] = {0};
#ifdef CHOOSES
    choose();
#endif
    gradus_vjp(f, gradus_dup, x, d);
    return d[0] != 560 || d[1] != 16;
}
";

/// An object of another compiler changes the variable.
const CHOICE: &str = "#include <stdlib.h>
#include \"method.h\"
static double *make(int n) { return calloc(n, sizeof(double)); }
static void keep(double *s, void (*first)(double *)) { first(s); }
static const Method keeping = {make, keep};
void choose(void) { method = &keeping; }
";

fn program(name: &str) -> std::path::PathBuf {
    let at = folder(name);
    write(&at, "method.h", HEADER);
    write(&at, "methods.c", METHODS);
    write(&at, "main.c", MAIN);
    write(&at, "choice.c", CHOICE);
    let whole = format!("{METHODS}\n{}", MAIN.replace("#include \"method.h\"\n", ""));
    write(&at, "whole.c", &whole);
    at
}

#[test]
fn an_executable_owns_its_variables() {
    let at = program("closed-own");
    for level in ["-O0", "-O2"] {
        accepts(&at, &format!("cc {level} main.c methods.c -o a"));
        succeeds(&mut Command::new(at.join("a")));
        accepts(&at, &format!("cc {level} whole.c -o b"));
        succeeds(&mut Command::new(at.join("b")));
        accepts(&at, &format!("cc {level} -c methods.c -o methods.o"));
        shell(&at, "ar rcs libmethods.a methods.o");
        accepts(&at, &format!("cc {level} main.c -o c -L. -lmethods -lm"));
        succeeds(&mut Command::new(at.join("c")));
    }
}

/// Other code may store another address: an object without a module, a plug-in, the user of a library.
#[test]
fn other_code_keeps_a_variable_open() {
    let at = program("closed-open");
    shell(&at, "clang-22 -c choice.c -o choice.o");
    shell(&at, "clang-22 -shared -fPIC choice.c -o libchoice.so");
    for level in ["-O0", "-O2"] {
        for line in [
            "-DCHOOSES main.c methods.c choice.o -o d",
            "-DCHOOSES main.c methods.c -o d -L. -lchoice",
            "main.c methods.c -o d -rdynamic",
            "-fPIC -shared main.c methods.c -o d.so",
        ] {
            let said = refuses(&at, &format!("cc {level} {line}"), "GRD0005");
            assert!(said.contains("main.c:6"), "{line}: {said}");
        }
    }
}

const HANDLERS: &str = "typedef struct { void (*begin)(double *, void *); void *data; } Handler;
extern Handler idle;
typedef struct { Handler *first; double s[2]; } Scene;
";

/// A table of functions whose address the program stores: the program may also change the copy of an instance.
const SCENE: &str = "#include <gradus.h>
#include <stdlib.h>
#include \"handlers.h\"
static void twice(double *s, void *data) { s[0] *= 2; (void)data; }
double f(const double *x) {
    Scene *scene = calloc(1, sizeof(Scene));
    scene->first = &idle;
    if (x[1] > 1) {
        scene->first = malloc(sizeof(Handler));
        scene->first->begin = twice;
        scene->first->data = scene;
    }
    scene->s[0] = x[0] * x[1];
    scene->first->begin(scene->s, scene->first->data);
    double y = scene->s[0];
    if (scene->first != &idle) free(scene->first);
    free(scene);
    return y;
}
int main(void) {
    double x[2] = {2, 3}, d[2] = {0}, low[2] = {2, 1}, e[2] = {0};
    gradus_vjp(f, gradus_dup, x, d);
    gradus_vjp(f, gradus_dup, low, e);
    return d[0] != 6 || d[1] != 4 || e[0] != 1 || e[1] != 2;
}
";

#[test]
fn an_executable_owns_its_tables_of_functions() {
    let at = folder("closed-tables");
    write(&at, "handlers.h", HANDLERS);
    write(
        &at,
        "handlers.c",
        "#include \"handlers.h\"
static void nothing(double *s, void *data) { (void)s; (void)data; }
Handler idle = {nothing, 0};
",
    );
    write(&at, "scene.c", SCENE);
    for level in ["-O0", "-O2"] {
        accepts(&at, &format!("cc {level} scene.c handlers.c -o a"));
        succeeds(&mut Command::new(at.join("a")));
        refuses(
            &at,
            &format!("cc {level} -fPIC -shared scene.c handlers.c -o a.so"),
            "GRD0033",
        );
    }
}

/// A function that an object of another compiler calls stays in the program.
#[test]
fn functions_for_other_objects_stay() {
    let at = program("closed-function");
    let caller = "double f(const double *); double call(const double *x) { return f(x); }\n";
    write(&at, "caller.c", caller);
    shell(&at, "clang-22 -c caller.c -o caller.o");
    let main = MAIN.replace(
        "return d[0]",
        "double call(const double *); return call(x) != 304 || d[0]",
    );
    write(&at, "main.c", &main);
    accepts(&at, "cc -O2 main.c methods.c caller.o -o a");
    succeeds(&mut Command::new(at.join("a")));
}

/// The program writes the variables of a section by the bounds of the section.
#[test]
fn variables_of_a_section_stay_open() {
    let at = folder("closed-section");
    let rates = "__attribute__((section(\"rates\"))) double rate = 1;
        extern double __start_rates[], __stop_rates[];
        void set(void) { for (double *p = __start_rates; p < __stop_rates; p++) *p = 3; }
        double f(const double *x) { return rate * x[0] * x[0]; }\n";
    let main = "#include <gradus.h>
        double f(const double *x);
        void set(void);
        int main(void) {
            double x = 2, d = 0;
            set();
            gradus_vjp(f, gradus_dup, &x, &d);
            return d != 12;
        }\n";
    write(&at, "rates.c", rates);
    write(&at, "main.c", main);
    for level in ["-O0", "-O2"] {
        accepts(&at, &format!("cc {level} main.c rates.c -o a"));
        succeeds(&mut Command::new(at.join("a")));
    }
}
