//! Pointers in global variables that point to other variables: initialised, in tables with other words; set
//! by functions that are not differentiated; swapped in calls without derivatives.

use crate::support::{accepts, folder, gradus, refuses, succeeds, text, write};
use std::process::{Command, Output};

/// The declarations shared by the programs, each of which defines `f`.
const ASKED: &str = r#"
#include <stdio.h>
extern int enzyme_const, enzyme_out, enzyme_dup;
double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
#define BACK(x, k) __enzyme_autodiff((void *)f, enzyme_out, (double)(x), enzyme_const, k)
#define ON(x, k) __enzyme_fwddiff((void *)f, enzyme_dup, (double)(x), 1.0, enzyme_const, k)
"#;

fn program(name: &str, source: &str) -> std::path::PathBuf {
    let folder = folder(name);
    write(&folder, "p.c", &format!("{ASKED}{source}"));
    folder
}

fn ran(folder: &std::path::Path) -> Output {
    let mut command = Command::new("timeout");
    command.args(["20", "./p"]).current_dir(folder);
    command.output().expect("it starts")
}

#[test]
fn address_table_with_integers() {
    let folder = program(
        "static_tables",
        "static double acc[2];
         static void *table[3] = { (void *)-16, acc, acc + 1 };
         static double f(double x, int k) { double *p = table[k]; *p = x * x; return acc[k - 1]; }
         int main(int c, char **v) {
             if (c > 5) table[0] = v;
             for (int k = 1; k < 3; k++) printf(\"%g %g\\n\", BACK(3, k), ON(3, k));
             return 0;
         }",
    );
    for level in 0..=3 {
        accepts(&folder, &format!("cc -O{level} p.c -o p"));
        let said = text(&succeeds(Command::new("./p").current_dir(&folder)).stdout);
        assert_eq!(said, "6 6\n6 6\n", "-O{level}");
    }
}

#[test]
fn long_initializers_point_anywhere() {
    let folder = program(
        "static_long_tables",
        "static double acc[2];
         static struct { char more[17 << 20]; double *p[2]; } table = { .more = { 1 }, .p = { acc, acc + 1 } };
         static double f(double x, int k) { double *p = table.p[k - 1]; *p = x * x; return acc[k - 1]; }
         int main(int c, char **v) {
             if (c > 5) table.p[1] = 0;
             for (int k = 1; k < 3; k++) printf(\"%g %g\\n\", BACK(3, k), ON(3, k));
             return 0;
         }",
    );
    let said = refuses(&folder, "cc -O2 -c p.c", "GRD0033");
    assert!(said.contains("`table`"), "{said}");
}

/// If another function stores a variable's address into a pointer variable, accesses through the pointer
/// and by name conflict.
#[test]
fn access_by_name_and_pointer_refused() {
    let cases = [
        "double acc, *p; void set(void) { p = &acc; }
         static double f(double x, int k) { *p = x * x; return acc; }",
        "double acc, *p; void set(void) { p = &acc; }
         static double f(double x, int k) { acc = x * x; return *p; }",
        "double a, acc, *p = &a; void set(void) { p = &acc; }
         static double f(double x, int k) { *p = x * x; return acc; }",
        "static double acc[4]; struct box { double *q; int n; }; static struct box box, *p;
         static void keep(struct box *b, double *v) { b->q = v; b->n = 4; }
         void set(void) { keep(&box, acc); p = &box; }
         static double f(double x, int k) { for (int i = 0; i < p->n; i++) p->q[i] = x * x; return acc[2]; }",
        "static double acc, *p; void give(double *); double *taken(void); void set(void) { give(&acc); p = taken(); }
         static double f(double x, int k) { *p = x * x; return acc; }",
        "static double acc, *p; double *same(double *); void set(void) { p = same(&acc); }
         static double f(double x, int k) { *p = x * x; return acc; }",
    ];
    for (number, case) in cases.iter().enumerate() {
        let main = "int main(void) { set(); printf(\"%g\\n\", BACK(3, 1)); return 0; }";
        let folder = program(&format!("static_named{number}"), &format!("{case}\n{main}"));
        for level in [0, 2] {
            let said = refuses(&folder, &format!("cc -O{level} -c p.c"), "GRD0033");
            assert!(said.contains("`p` may point to `acc`"), "{said}");
        }
    }
    let alike = "double acc, *p; void set(void) { p = &acc; }
                 static double f(double x, int k) { *p = x * x; return *p; }
                 int main(void) { set(); printf(\"%g %g\\n\", BACK(3, 1), ON(3, 1)); return 0; }";
    let folder = program("static_one_way", alike);
    accepts(&folder, "cc -O2 p.c -o p");
    assert_eq!(text(&ran(&folder).stdout), "6 6\n");
}

/// A library function that retains no address does not connect two names.
#[test]
fn library_functions_capture_no_address() {
    let folder = program(
        "static_scanned",
        "#include <stdlib.h>
         static double acc, *p; double *taken(void);
         void set(void) { sscanf(\"5\", \"%lf\", &acc); p = taken(); }
         static double f(double x, int k) { acc = x * x; *p = x; return acc; }
         int main(void) { set(); printf(\"%g\\n\", BACK(3, 1)); return 0; }",
    );
    for level in [0, 2] {
        accepts(&folder, &format!("cc -O{level} -c p.c"));
    }
}

/// Two buffers are swapped in each call, with or without derivatives, and are also used by name.
#[test]
fn shadows_of_swapped_pointers() {
    let folder = program(
        "static_swapped",
        "static double a[3], b[3], *now = a, *next = b;
         static double f(double x, int k) {
             for (int i = 0; i < 3; i++) now[i] = x * i, next[i] = x * x;
             double *t = now; now = next; next = t;
             return a[2] + 10 * b[1];
         }
         int main(void) {
             for (int i = 0; i < 4; i++) {
                 printf(\"%g \", BACK(3, 1));
                 printf(\"%g \", ON(3, 1));
                 for (int k = 0; k < i; k++) f(3, 1);
             }
             return 0;
         }",
    );
    for level in 0..=3 {
        accepts(&folder, &format!("cc -O{level} p.c -o p"));
        assert_eq!(
            text(&ran(&folder).stdout),
            "62 16 62 16 16 62 16 62 ",
            "-O{level}"
        );
    }
}

#[test]
fn variable_ends_are_distinct() {
    let folder = program(
        "static_ends",
        "static double a[2] = {1}, b[2] = {1}, c[2] = {1}, *end[3] = {a + 2, b + 2, c + 2};
         __attribute__((noinline)) void turn(int k) {
             double *of[3] = {a + 2, b + 2, c + 2};
             for (int i = 0; i < 3; i++) end[i] = of[(i + k) % 3];
         }
         static double f(double x, int k) {
             for (int i = 0; i < 3; i++) end[i][-1] = x * (i + 1);
             return a[1] + 10 * b[1] + 100 * c[1];
         }
         int main(void) {
             for (int k = 0; k < 3; k++) turn(k), printf(\"%g %g \", BACK(3, 1), ON(3, 1));
             return 0;
         }",
    );
    for level in 0..=3 {
        accepts(&folder, &format!("cc -O{level} p.c -o p"));
        let said = text(&ran(&folder).stdout);
        assert_eq!(said, "321 321 213 213 132 132 ", "-O{level}");
    }
}

/// In an object linked with the program's own, variables have no tail padding.
#[test]
fn beside_objects_have_no_padding() {
    let folder = folder("static_beside");
    let source = "double a[2], b[2], *now = a;
        double f(double x) { now[0] = x * x; now = b; return a[0] + b[0]; }\n";
    write(&folder, "p.c", source);
    accepts(&folder, "grad p.c -f f -o p.o");
    let said = refuses(&folder, "grad p.c -f f --beside -o p.o", "GRD0021");
    assert!(said.contains("points to `a`"), "{said}");
}

/// Three pointers are rotated; also for variables of another file, without padding between them.
#[test]
fn shadows_of_rotated_pointers() {
    let folder = program(
        "static_circle",
        "#ifdef APART
         extern double a[1], b[1], c[1];
         #else
         static double a[1], b[1], c[1];
         #endif
         static double *p = a, *q = b, *r = c;
         static void turn(void) { double *t = p; p = q; q = r; r = t; }
         static double f(double x, int k) {
             *p = x; *q = 2 * x; *r = *p * *q;
             turn();
             return *p + 10 * *q + 100 * *r;
         }
         int main(void) {
             for (int k = 0; k < 5; k++) {
                 for (int j = 0; j < k; j++) turn();
                 printf(\"%g %g \", BACK(1, 1), ON(1, 1));
             }
             return 0;
         }",
    );
    write(&folder, "others.c", "double a[1], b[1], c[1];\n");
    for level in 0..=3 {
        accepts(&folder, &format!("cc -O{level} p.c -o p"));
        let right = "142 142 142 142 142 142 142 142 142 142 ";
        assert_eq!(text(&ran(&folder).stdout), right, "-O{level}");
        accepts(&folder, &format!("cc -O{level} -DAPART p.c others.c -o p"));
        let output = ran(&folder);
        let said = text(&output.stderr);
        let ended = said.contains("points to the end of a variable of another file");
        assert!(ended || text(&output.stdout) == right, "-O{level}: {said}");
    }
}

#[test]
fn unknown_pointer_target_aborts() {
    let folder = program(
        "static_elsewhere",
        "static double a, b, *p = &a;
         void elsewhere(void) { p = &b; }
         static double f(double x, int k) { a = x * x; *p = 1; return a; }
         int main(void) {
             printf(\"%g %g\\n\", BACK(3, 1), ON(3, 1));
             fflush(stdout);
             elsewhere();
             printf(\"%g\\n\", BACK(3, 1));
             return 0;
         }",
    );
    let built = gradus(&folder, "cc -O2 p.c -o p");
    assert!(built.status.success(), "{}", text(&built.stderr));
    let run = ran(&folder);
    assert_eq!(text(&run.stdout), "0 0\n");
    let said = text(&run.stderr);
    assert!(
        said.contains("`p` points to memory without a shadow"),
        "{said}"
    );
}

/// Each `set(k)` moves pointers otherwise than by a store: the derivative determines the current targets.
#[test]
fn pointers_moved_without_stores() {
    let cases = [
        ("copied", "static double *lev[3] = { a, b, c }, *const perm[2][3] = { { b, c, a }, { c, a, b } };
          void set(int k) { memcpy(lev, perm[k % 2], sizeof lev); }"),
        ("sorted", "static double *lev[3] = { a, b, c }; static int order;
          static int place(double *const *p) { return *p == a ? 0 : *p == b ? 1 : 2; }
          static int compare(const void *p, const void *q) { int d = place(p) - place(q); return order ? -d : d; }
          void set(int k) { order = k % 2; qsort(lev, 3, sizeof *lev, compare); }"),
        ("constant", "static const double fixed[4] = { 1, 2, 3, 4 }; static const double *lev[3] = { a, b, fixed };
          void set(int k) { lev[0] = k % 2 ? fixed : a; lev[2] = k % 2 ? a : fixed; }"),
        ("thread", "static _Thread_local double *lev[3] = { a, b, c };
          void set(int k) { lev[0] = k % 2 ? b : a; lev[1] = k % 2 ? a : b; }"),
    ];
    let (before, after) = (
        "#include <stdlib.h>\n#include <string.h>\nstatic double a[4], b[4], c[4];",
        "static double f(double x, int k) {
             for (int i = 0; i < 4; i++) a[i] = x * x, b[i] = x * i, c[i] = x * x * x;
             return lev[0][2] + 10 * lev[1][3] * lev[2][1] + b[3];
         }
         int main(void) {
             for (int k = 0; k < 4; k++) {
                 set(k);
                 double back = BACK(3, k), on = ON(3, k), slope = (f(3 + 1e-5, k) - f(3 - 1e-5, k)) / 2e-5;
                 double d = back - slope, e = on - slope;
                 puts(d * d < 1e-8 && e * e < 1e-8 ? \"right\" : \"wrong\");
             }
             return 0;
         }",
    );
    for (name, case) in cases {
        let folder = program(
            &format!("static_{name}"),
            &format!("{before}\n{case}\n{after}"),
        );
        for level in [0, 2] {
            accepts(&folder, &format!("cc -O{level} p.c -o p"));
            let said = text(&ran(&folder).stdout);
            assert_eq!(said, "right\n".repeat(4), "{name} -O{level}");
        }
    }
}

/// Structures swapped elsewhere are copied as a whole; an address may be stored in an integer.
#[test]
fn copied_addresses_and_names_refused() {
    let cases = [
        "struct box { double *q; int n; }; static struct box p = { acc, 4 }, other = { b, 4 };
         void set(void) { struct box t = p; p = other; other = t; }
         static double f(double x, int k) { for (int i = 0; i < p.n; i++) p.q[i] = x * x, other.q[i] = x; return acc[2] + b[1]; }",
        "#include <stdint.h>
         static uintptr_t p;
         void set(void) { p = (uintptr_t)acc; }
         static double f(double x, int k) { for (int i = 0; i < 4; i++) ((double *)p)[i] = x * x; return acc[2]; }",
    ];
    for (number, case) in cases.iter().enumerate() {
        let main = "int main(void) { set(); printf(\"%g\\n\", BACK(3, 1)); return 0; }";
        let source = format!("static double acc[4], b[4];\n{case}\n{main}");
        let folder = program(&format!("static_copied{number}"), &source);
        for level in [0, 2] {
            let said = refuses(&folder, &format!("cc -O{level} -c p.c"), "GRD0033");
            assert!(said.contains("`p` may point to"), "{said}");
        }
    }
}

/// The initial value of a function pointer proves nothing if another function sets the pointer.
#[test]
fn function_pointers_set_elsewhere() {
    let folder = program(
        "static_code",
        "static double square(double x) { return x * x; }
         static double cube(double x) { return x * x * x; }
         struct ops { double (*first)(double), (*second)(double); };
         static const struct ops one = { square, cube }, other = { cube, square };
         static double (*now)(double) = square; static const struct ops *table = &one;
         void set(int k) { now = k ? cube : square; table = k ? &other : &one; }
         static double f(double x, int k) { return now(x) + 100 * table->second(x); }
         int main(void) {
             for (int k = 0; k < 2; k++) { set(k); printf(\"%g %g\\n\", BACK(3, k), ON(3, k)); }
             return 0;
         }",
    );
    for level in [0, 2] {
        accepts(&folder, &format!("cc -O{level} p.c -o p"));
        assert_eq!(
            text(&ran(&folder).stdout),
            "2706 2706\n627 627\n",
            "-O{level}"
        );
    }
}

const UNWRITTEN: &str = r#"
        #include <stdlib.h>
        #include <string.h>
        typedef struct { double **v; int n; void (*drop)(double **); } Stack;
        static void set(Stack *s, int i, double *it) { s->v[i] = it; }
        static void pop(Stack *s) {
            static double *nothing;
            if (s->n) set(s, --s->n, nothing);
        }
        static void drop(double **p) { free(*p); *p = NULL; }
        __attribute__((noinline)) static double emptied(Stack *s) {
            double t = 0;
            while (s->n) {
                double *p = s->v[s->n - 1];
                t += p[0] * p[0];
                s->drop(&s->v[s->n - 1]);
                pop(s);
            }
            return t;
        }
        double stack(const double *x, int n) {
            Stack s = {malloc(n * sizeof(double *)), 0, drop};
            for (int i = 0; i < n; i++) {
                s.v[s.n] = malloc(sizeof(double));
                *s.v[s.n++] = x[i];
            }
            double t = emptied(&s);
            free(s.v);
            return t;
        }
        /* The empty node that new ones are copied from. */
        struct node { struct node *next; double value; };
        static struct node fresh;
        double list(const double *x, int n) {
            struct node *head = NULL;
            double t = 0;
            for (int i = 0; i < n; i++) {
                struct node *one = malloc(sizeof *one);
                *one = fresh;
                one->value = x[i] * x[i];
                one->next = head;
                head = one;
            }
            while (head) {
                struct node *next = head->next;
                t = t * 0.5 + head->value;
                free(head);
                head = next;
            }
            return t;
        }
        static double cube(double v) { return v * v * v; }
        static struct { double (*of)(double); double scale; } use = {cube, 0.25};
        double table(const double *x, int n) {
            double t = 0;
            for (int i = 0; i < n; i++) t += use.of(x[i]) * use.scale;
            return t;
        }
        /* These are written: by name, through an address, from outside. */
        static double kept;
        static double *cell = &kept;
        void begin(double v) { *cell = v; }
        double set_before(const double *x, int n) { return x[0] * kept + n; }
        int main(void) { return 0; }
    "#;

/// A variable without writes keeps its initial contents: null, numbers, or addresses of functions.
#[test]
fn unwritten_variables_are_constant() {
    let folder = folder("static_unwritten");
    let program = UNWRITTEN;
    write(&folder, "p.c", program);
    for flags in ["-O0", "-O1 -g", "-O2", "-O3 -g"] {
        for function in ["stack", "list", "table"] {
            let line = format!("check p.c -f {function} --arg n=5 --arg x=rand(n) -- {flags}");
            let said = accepts(&folder, &line);
            assert!(said.contains("the derivative is right"), "{said}");
        }
        // The value stored by `begin` counts.
        let asks = format!(
            "#include <stdio.h>\n{}",
            "void begin(double); void set_before_vjp(const double *, double *, int, double);
             int main(void) { double x = 1, a = 0; begin(5); set_before_vjp(&x, &a, 1, 1); printf(\"%g\\n\", a); }"
        );
        write(&folder, "main.c", &asks);
        let own = program.replace("int main(void) { return 0; }", "");
        write(&folder, "own.c", &own);
        accepts(
            &folder,
            &format!("grad own.c -f set_before -o own.o -- {flags}"),
        );
        accepts(&folder, "cc main.c own.o -o p");
        let said = text(&succeeds(Command::new("./p").current_dir(&folder)).stdout);
        assert_eq!(said, "5\n", "{flags}");
    }
}
