//! Unknown callees: possible effects on active memory without active arguments.

use crate::support::{accepts, folder, refuses, succeeds, write};
use std::process::Command;

/// An unknown callee may return the address of an exported variable that is read later.
#[test]
fn unknown_pointer_to_exported_global() {
    let at = folder("unseen_exported");
    let program = |state: &str| {
        format!(
            "{state} double state[10]; extern double *first(int);
             void keep(int i) {{ state[i] = 1; }}
             void f(const double *x, double *y, int which) {{
                 double *p = first(which); *p = x[0] * x[0]; *y = state[3] * x[0]; }}\n"
        )
    };
    write(&at, "exported.c", &program(""));
    write(&at, "own.c", &program("static"));
    for level in ["-O0", "-O2"] {
        let said = refuses(
            &at,
            &format!("grad exported.c -f f -o out.o -- {level}"),
            "GRD0005",
        );
        assert!(
            said.contains("`first`") && said.contains("exported.c:4"),
            "{said}"
        );
        accepts(&at, &format!("grad own.c -f f -o out.o -- {level}"));
    }
}

/// An unknown callee may write exported variables, and call registered handlers.
#[test]
fn unknown_callee_clobbers_exports() {
    let at = folder("elsewhere");
    let program = "#include <gradus.h>
        #include <signal.h>
        #include <stdio.h>
        void step(int n);
        void stated(int n);
        GRADUS_INACTIVE(stated);
        double open_number;
        static double closed_number;
        static double *handled;
        static void handler(int number) { *handled *= 2; }
        double through(double x) {
            open_number = x * x;
            step(1);
            return open_number * x;
        }
        double beside(double x) {
            open_number = 2;
            closed_number = x * x;
            step(1);
            stated(2);
            printf(\"%d\\n\", 3);
            return closed_number * x;
        }
        double known(double x) {
            open_number = x * x;
            stated(1);
            printf(\"%d\\n\", 3);
            return open_number * x;
        }
        double back(double x) {
            double v = x * x;
            handled = &v;
            signal(SIGUSR1, handler);
            raise(SIGUSR1);
            return v * x;
        }\n";
    write(&at, "open.c", program);
    for level in ["-O0", "-O2"] {
        let said = refuses(
            &at,
            &format!("grad open.c -f through -o out.o -- {level}"),
            "GRD0005",
        );
        assert!(
            said.contains("open.c:13:") && said.contains("`open_number`"),
            "{said}"
        );
        let said = refuses(
            &at,
            &format!("grad open.c -f back -o out.o -- {level}"),
            "GRD0005",
        );
        assert!(
            said.contains("open.c:34:") && said.contains("`handler`"),
            "{said}"
        );
        for function in ["beside", "known"] {
            accepts(
                &at,
                &format!("grad open.c -f {function} -o out.o -- {level}"),
            );
        }
    }
}

/// An alias of a variable is the variable; an alias that may be interposed is refused.
#[test]
fn aliased_variables() {
    let at = folder("names");
    write(
        &at,
        "names.c",
        "double kept[4];
        extern double second[4] __attribute__((alias(\"kept\")));
        extern double weak[4] __attribute__((weak, alias(\"kept\")));
        double through(double x) {
            kept[1] = x * x;
            return second[1] * x;
        }
        double loosely(double x, int i) {
            kept[i] = x * x;
            return weak[i] * x;
        }\n",
    );
    for level in ["-O0", "-O2"] {
        accepts(
            &at,
            &format!("check names.c -f through --arg x=1.5 -- {level}"),
        );
        let line = format!("grad names.c -f loosely -o out.o -- {level}");
        assert!(refuses(&at, &line, "GRD0006").contains("names.c:10:"));
    }
}

/// `qsort` calls the comparison in unspecified order on unspecified elements: a comparison that accumulates
/// its inputs is refused, a comparison with local state is accepted.
#[test]
fn stateful_comparison_is_refused() {
    let at = folder("comparison");
    write(
        &at,
        "sorted.c",
        "#include <stdlib.h>
        static double sum;
        static int adding(const void *a, const void *b) {
            double x = *(const double *)a, y = *(const double *)b;
            sum += x * y;
            return (x > y) - (x < y);
        }
        static int plain(const void *a, const void *b) {
            double both[2] = { *(const double *)a, *(const double *)b };
            return (both[0] > both[1]) - (both[0] < both[1]);
        }
        double added(double *x) {
            sum = 0;
            qsort(x, 5, sizeof *x, adding);
            return sum * x[0];
        }
        double sorted(double *x) {
            qsort(x, 5, sizeof *x, plain);
            return x[0] * x[1] - x[4];
        }\n",
    );
    for level in ["-O0", "-O2"] {
        let line = format!("grad sorted.c -f added -o out.o -- {level}");
        assert!(refuses(&at, &line, "GRD0005").contains("sorted.c:14:"));
        accepts(
            &at,
            &format!("check sorted.c -f sorted --arg x=rand(5) -- {level}"),
        );
    }
}

/// A function pointer from unknown code may also point to unknown code; a pointer to functions of the
/// program does not.
#[test]
fn external_function_pointers_clobber() {
    let at = folder("elsewhere_by_address");
    let program = "typedef void (*hook)(int);
        double open_number;
        static double closed_number;
        hook registered;
        double handed(double x, hook h) {
            open_number = x * x;
            h(3);
            return open_number * x;
        }
        double kept(double x) {
            open_number = x * x;
            registered(3);
            return open_number * x;
        }
        double beside(double x, hook h) {
            closed_number = x * x;
            h(3);
            return closed_number * x;
        }
        static int count;
        static void up(int n) { count += n; }
        static void down(int n) { count -= n; }
        double own(double x, int which) {
            hook h = which ? up : down;
            open_number = x * x;
            h(3);
            return open_number * x;
        }\n";
    write(&at, "address.c", program);
    for level in ["-O0", "-O2"] {
        for (function, line) in [("handed", "address.c:7:"), ("kept", "address.c:12:")] {
            let command = format!("grad address.c -f {function} -o out.o -- {level}");
            let said = refuses(&at, &command, "GRD0005");
            assert!(
                said.contains(line) && said.contains("`open_number`"),
                "{said}"
            );
        }
        for function in ["beside", "own"] {
            accepts(
                &at,
                &format!("grad address.c -f {function} -o out.o -- {level}"),
            );
        }
    }
}

const VARIADIC: &str = "#include <stdarg.h>
        #include <stdio.h>
        struct state { double a; int calls; };
        static char text[200];
        static void tell(const char *form, va_list list) { vsnprintf(text, sizeof text, form, list); }
        __attribute__((noinline)) static double note(struct state *s, const char *form, ...)
        {
            va_list list, again;
            s->calls++;
            s->a *= 1.5;
            va_start(list, form);
            va_copy(again, list);
            tell(form, list);
            int length = vsnprintf(0, 0, form, again);
            va_end(again);
            va_end(list);
            return s->a * length;
        }
        double told(double x)
        {
            struct state s = {x * x, 0};
            double y = note(&s, \"%d%c\", 3, 'a') * x;
            y += note(&s, \"%g %g\", y, s.a);
            return s.a * y * s.calls;
        }
        __attribute__((noinline)) static void scale(struct state *s, int n, ...)
        {
            va_list list;
            va_start(list, n);
            while (n-- > 0)
                s->a *= va_arg(list, int);
            va_end(list);
        }
        double scaled(double x)
        {
            struct state s = {x * x, 0};
            scale(&s, 2, 3, 4);
            return s.a;
        }
        __attribute__((noinline)) static double report(struct state *s, int code, const char *form, ...)
        {
            va_list list;
            int length = 0;
            va_start(list, form);
            if (code == 1)
                length = va_arg(list, int) + snprintf(text, sizeof text, \"%d\", va_arg(list, int));
            else
                length = vsnprintf(text, sizeof text, form, list);
            va_end(list);
            return s->a * length;
        }
        double reported(double x)
        {
            struct state s = {x * x, 0};
            double y = report(&s, 0, \"%d %g\", 3, s.a) * x;
            return y + x * report(&s, 1, \"\", 17, 400, x);
        }
        __attribute__((noinline)) static void grow(struct state *s, int n, ...)
        {
            va_list list;
            va_start(list, n);
            while (n-- > 0)
                s->a *= va_arg(list, double);
            va_end(list);
        }
        double grown(double x)
        {
            struct state s = {x * x, 0};
            grow(&s, 2, x, 4.0);
            return s.a;
        }
        double counted(double x)
        {
            int length = 0;
            snprintf(text, sizeof text, \"%d%n\", 12345, &length);
            return x * length;
        }\n";

/// Variadic functions that format their arguments as text, or read them, have derivatives; a count that `%n` writes is
/// refused.
#[test]
fn variadic_args_printed_or_read() {
    let at = folder("further");
    write(&at, "further.c", VARIADIC);
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        for name in ["told", "scaled", "reported", "grown"] {
            accepts(
                &at,
                &format!("check further.c -f {name} --arg x=1.3 -- {level}"),
            );
        }
        let command = format!("grad further.c -f counted -o out.o -- {level}");
        let said = refuses(&at, &command, "GRD0005");
        let line = VARIADIC.lines().position(|line| line.contains("%d%n"));
        let place = format!("further.c:{}:", line.map_or(0, |line| line + 1));
        assert!(said.contains(&place), "{said}");
    }
}

/// Open MPI's handles are addresses of external variables of opaque types, and inactive. A diagnostic names
/// communication on an active path explicitly.
#[test]
fn opaque_handles_are_inactive() {
    let at = folder("handles");
    write(
        &at,
        "mpi.h",
        "struct predefined; extern struct predefined mpi_world, mpi_double, mpi_sum;
        typedef struct handle *MPI_Comm, *MPI_Datatype, *MPI_Op;
        #define MPI_COMM_WORLD ((MPI_Comm)(void *)&mpi_world)
        #define MPI_DOUBLE ((MPI_Datatype)(void *)&mpi_double)
        #define MPI_SUM ((MPI_Op)(void *)&mpi_sum)
        int MPI_Comm_rank(MPI_Comm, int *), MPI_Barrier(MPI_Comm);
        int MPI_Allreduce(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);\n",
    );
    let program = "#include \"mpi.h\"
        double beside(double x) {
            int rank;
            double v[2];
            MPI_Comm_rank(MPI_COMM_WORLD, &rank);
            MPI_Barrier(MPI_COMM_WORLD);
            v[0] = x * x;
            v[1] = rank + 1;
            return v[0] * v[1];
        }
        double through(double x) {
            double sum;
            MPI_Allreduce(&x, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
            return sum * sum;
        }\n";
    write(&at, "ranks.c", program);
    for level in ["-O0", "-O2"] {
        accepts(&at, &format!("grad ranks.c -f beside -o out.o -- {level}"));
        let line = format!("grad ranks.c -f through -o out.o -- {level}");
        let said = refuses(&at, &line, "GRD0012");
        assert!(said.contains("ranks.c:13:"), "{said}");
    }
}

/// Two ranks with equal numbers: a sum over ranks has registered derivatives. Messages without them are refused.
#[test]
fn communication_by_registered_derivatives() {
    let at = folder("communication");
    let declarations = "#include <stdio.h>
        typedef struct handle *Comm, *Type, *Op, *Request;
        struct predefined; extern struct predefined world, number, plus;
        #define HANDLE(name) ((void *)&name)
        int MPI_Allreduce(const void *, void *, int, Type, Op, Comm), MPI_Wait(Request *, void *);
        int MPI_Irecv(void *, int, Type, int, int, Comm, Request *);
        int MPI_Isend(const void *, int, Type, int, int, Comm, Request *);
        void __enzyme_autodiff(void *, ...);
        extern int enzyme_dup, enzyme_const;\n";
    let summed = "
        static void total(const double *s, double *t) {
            MPI_Allreduce(s, t, 1, HANDLE(number), HANDLE(plus), HANDLE(world));
        }
        static void augmented(const double *s, double *ds, double *t, double *dt) { total(s, t); }
        static void reverse(const double *s, double *ds, double *t, double *dt) {
            double u;
            MPI_Allreduce(dt, &u, 1, HANDLE(number), HANDLE(plus), HANDLE(world));
            *dt = 0;
            *ds += u;
        }
        void *__enzyme_register_gradient_total[] = {(void *)total, (void *)augmented, (void *)reverse};
        static double f(double *x, int n) {
            double s = 0, t;
            for (int i = 0; i < n; i++) s += x[i] * x[i];
            total(&s, &t);
            return t * t;
        }\n";
    let messages = "
        static double f(double *x, int n) {
            double left[4], s = 0;
            Request requests[2];
            MPI_Irecv(left, n, HANDLE(number), 1, 7, HANDLE(world), &requests[0]);
            MPI_Isend(x, n, HANDLE(number), 1, 7, HANDLE(world), &requests[1]);
            MPI_Wait(&requests[0], 0);
            MPI_Wait(&requests[1], 0);
            for (int i = 0; i < n; i++) s += x[i] * left[i];
            return s;
        }\n";
    let main = "int main(void) {
            double x[2] = {1, 2}, dx[2] = {0, 0};
            __enzyme_autodiff((void *)f, enzyme_dup, x, dx, enzyme_const, 2);
            printf(\"%g %g\\n\", dx[0], dx[1]);
            return !(dx[0] == 80 && dx[1] == 160);
        }\n";
    let library = "struct predefined { int used; } world, number, plus;
        int MPI_Allreduce(const double *from, double *to, int n, void *t, void *o, void *c) {
            for (int i = 0; i < n; i++) to[i] = 2 * from[i];
            return 0;
        }\n";
    write(&at, "summed.c", &format!("{declarations}{summed}{main}"));
    write(
        &at,
        "messages.c",
        &format!("{declarations}{messages}{main}"),
    );
    write(&at, "library.c", library);
    accepts(&at, "cc -c library.c -o library.o");
    for level in ["-O0", "-O1", "-O2", "-O3", "-O2 -g"] {
        accepts(&at, &format!("cc {level} summed.c library.o -o summed"));
        succeeds(Command::new("./summed").current_dir(&at));
        let said = refuses(&at, &format!("cc {level} -c messages.c"), "GRD0012");
        assert!(said.contains("messages.c:"), "{said}");
    }
}

const CALLBACKS: &str = r#"
        #include <stdlib.h>
        typedef double (*value)(const double *, int);
        typedef int (*watcher)(double *);
        struct task { value of; watcher watch; struct { watcher deep; } more; };
        static double squares(const double *z, int n) {
            double s = 0;
            for (int i = 0; i < n; i++) s += z[i] * z[i];
            return s;
        }
        static int halve(double *z) { z[0] *= 0.5; return 0; }
        __attribute__((noinline)) static double run(struct task *t, double *z, int n) {
            double v = 0;
            for (int k = 0; k < 3; k++) {
                v = t->of(z, n);
                if (t->watch && t->watch(z)) break;
                if (t->more.deep && t->more.deep(z)) break;
                for (int i = 0; i < n; i++) z[i] -= 0.1 * v * z[i];
            }
            return v;
        }
        double absent(const double *x, int n) {
            double z[16];
            for (int i = 0; i < n; i++) z[i] = x[i];
            struct task t = {squares, 0, {0}};
            return run(&t, z, n);
        }
        double perhaps(const double *x, int n) {
            double z[16];
            for (int i = 0; i < n; i++) z[i] = x[i];
            struct task t = {squares, n > 3 ? halve : 0, {0}};
            return run(&t, z, n);
        }
        double in_block(const double *x, int n) {
            double *z = malloc(n * sizeof *z);
            for (int i = 0; i < n; i++) z[i] = x[i];
            struct task *t = calloc(1, sizeof *t);
            t->of = squares;
            double v = run(t, z, n);
            free(t);
            free(z);
            return v;
        }
        __attribute__((noinline)) static double apply(value of, watcher watch, double *z, int n) {
            if (watch) watch(z);
            return of(z, n) * z[0];
        }
        double handed(const double *x, int n) {
            double z[16];
            for (int i = 0; i < n; i++) z[i] = x[i];
            return apply(squares, NULL, z, n);
        }
        static watcher table[3];
        double tabled(const double *x, int n) {
            double z[16];
            for (int i = 0; i < n; i++) z[i] = x[i];
            for (int i = 0; i < 3; i++)
                if (table[i]) table[i](z);
            return squares(z, n) * z[1];
        }
        /* Set by others: these may be any. */
        static watcher hook;
        void set_hook(watcher w) { hook = w; }
        double hooked(const double *x, int n) {
            double z[16];
            for (int i = 0; i < n; i++) z[i] = x[i];
            if (hook) hook(z);
            return squares(z, n);
        }
        watcher open_hook;
        double open(const double *x, int n) {
            double z[16];
            for (int i = 0; i < n; i++) z[i] = x[i];
            if (open_hook) open_hook(z);
            return squares(z, n);
        }
        double given(const double *x, int n, const struct task *t) {
            double z[16];
            for (int i = 0; i < n; i++) z[i] = x[i];
            if (t->watch) t->watch(z);
            return squares(z, n);
        }
    "#;

/// Optional callbacks, tested by the program before the call: each is null or a known function, in a local
/// structure, a heap block, a table, or an argument.
#[test]
fn callbacks_may_be_null() {
    let at = folder("callbacks");
    let program = CALLBACKS;
    write(&at, "callbacks.c", program);
    // The functions below see no further function of the callback's type.
    let alone = program.replace("static int halve(double *z) {", "static int halve(double *z); \n#define perhaps(x, n) unused(x, n)\nstatic int halve(double *z) {");
    write(&at, "alone.c", &alone.replace("n > 3 ? halve : 0", "0"));
    for flags in ["-O0", "-O1 -g", "-O2", "-O3 -g"] {
        for function in ["absent", "perhaps", "in_block", "handed", "tabled"] {
            let said = accepts(
                &at,
                &format!("check callbacks.c -f {function} --arg n=5 --arg x=rand(n) -- {flags}"),
            );
            assert!(said.contains("the derivative is right"), "{said}");
        }
        for function in ["hooked", "open", "given"] {
            refuses(
                &at,
                &format!("grad alone.c -f {function} -o out.o -- {flags}"),
                "GRD0018",
            );
        }
    }
}

/// A diagnostic names an unknown callee that returns memory as an unregistered allocator, with the call.
#[test]
fn unknown_allocators_are_named() {
    let at = folder("allocators");
    let program = r#"
        #include <stddef.h>
        #include <stdint.h>
        #include <stdlib.h>
        void *pool_take(size_t n);
        uintptr_t pool_place(size_t n);
        void pool_give(void *p);
        struct hooks { void *(*take)(size_t); };
        __attribute__((noinline)) static void *wrapped(size_t n) { return pool_take(n); }
        static double work(const double *x, size_t n, double *t) {
            double s = 0;
            for (size_t i = 0; i < n; i++) t[i] = x[i] * x[i];
            for (size_t i = 0; i < n; i++) s += t[i] * t[0];
            return s;
        }
        double direct(const double *x, size_t n) { return work(x, n, wrapped(8 * n)); }
        double as_number(const double *x, size_t n) { return work(x, n, (double *)pool_place(8 * n)); }
        double by_hook(const double *x, size_t n, const struct hooks *h) { return work(x, n, h->take(8 * n)); }
    "#;
    write(&at, "pool.c", program);
    let registered = "void *__enzyme_allocation_like_pool[4] = {(void *)pool_take, (void *)0, (void *)\"-1\", (void *)pool_give};\n";
    write(&at, "registered.c", &format!("{program}{registered}"));
    for flags in ["-O0", "-O2", "-O1 -g"] {
        for (function, line, name) in [("direct", 9, "pool_take"), ("as_number", 17, "pool_place")]
        {
            let said = refuses(
                &at,
                &format!("grad pool.c -f {function} --wrt x -o out.o -- {flags}"),
                "GRD0005",
            );
            assert!(
                said.contains(&format!("pool.c:{line}:"))
                    && said.contains(&format!("memory from `{name}`"))
                    && said.contains("__enzyme_allocation_like"),
                "{said}"
            );
        }
        let said = refuses(
            &at,
            &format!("grad pool.c -f by_hook --wrt x -o out.o -- {flags}"),
            "GRD0018",
        );
        assert!(said.contains("pool.c:18:"), "{said}");
        accepts(
            &at,
            &format!("grad registered.c -f direct --wrt x -o out.o -- {flags}"),
        );
    }
}

/// An evaluator offers calls of one, two and three arguments; the program has functions of one and two. A node holds
/// the address of a function or of a variable. Character tests read a constant table of the C library.
#[test]
fn evaluator_without_functions_of_a_type() {
    let at = folder("evaluator_without_functions");
    let program = r#"#include <ctype.h>
        #include <gradus.h>
        #include <math.h>
        #include <stdio.h>
        #include <stdlib.h>
        typedef struct Node {
            int arity;
            union { const double *bound; const void *function; };
            struct Node *kid[3];
        } Node;
        static const struct { char name; int arity; const void *function; } table[] = {
            {'S', 1, (const void *)sin}, {'E', 1, (const void *)exp}, {'P', 2, (const void *)pow}};
        static Node *parse(const char **text, const double *x) {
            Node *node = malloc(sizeof *node);
            char c = *(*text)++;
            node->arity = 0;
            if (!isupper(c)) {
                node->bound = x + (c - 'a');
                return node;
            }
            for (int i = 0; i < 3; i++)
                if (table[i].name == c) {
                    node->arity = table[i].arity;
                    node->function = table[i].function;
                    for (int k = 0; k < node->arity; k++) node->kid[k] = parse(text, x);
                }
            return node;
        }
        #define ARG(k) eval(node->kid[k])
        static double eval(const Node *node) {
            switch (node->arity) {
            case 0: return *node->bound;
            case 1: return ((double (*)(double))node->function)(ARG(0));
            case 2: return ((double (*)(double, double))node->function)(ARG(0), ARG(1));
            case 3: return ((double (*)(double, double, double))node->function)(ARG(0), ARG(1), ARG(2));
            default: return 0;
            }
        }
        static void drop(Node *node) {
            for (int k = 0; k < node->arity; k++) drop(node->kid[k]);
            free(node);
        }
        static double f(const double *x) {
            const char *text = "SPEab";
            Node *root = parse(&text, x);
            double value = eval(root);
            drop(root);
            return value;
        }
        int main(void) {
            double x[2] = {0.5, 2}, d[2] = {0};
            gradus_vjp(f, gradus_dup, x, d);
            double p = exp(1.0), c = cos(p);
            return fabs(d[0] - 2 * p * c) > 1e-12 || fabs(d[1] - 0.5 * p * c) > 1e-12;
        }"#;
    write(&at, "it.c", program);
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        accepts(&at, &format!("cc {level} it.c -o it -lm"));
        succeeds(&mut Command::new(at.join("it")));
    }
}

/// The destructor of an exception object, as a member of another class, changes no other memory.
#[test]
fn exceptions_as_members() {
    let at = folder("exceptions_as_members");
    let program = r#"#include <cmath>
        #include <gradus.h>
        #include <exception>
        #include <vector>
        class Joint {
            struct Unknown : std::exception {
                const char *what() const noexcept override { return "unknown joint"; }
            };
            int kind;
            double scale;
            Unknown unknown;

          public:
            Joint(int kind, double scale) : kind(kind), scale(scale) {
                if (kind > 2) throw unknown;
            }
            virtual ~Joint() {}
            double place(double q) const { return kind == 1 ? scale * std::sin(q) : scale * q; }
        };
        static double f(const double *x, int n) {
            std::vector<Joint *> chain;
            for (int i = 0; i < n; i++) chain.push_back(new Joint(i % 2, x[i]));
            double s = 0;
            for (Joint *joint : chain) s += joint->place(x[0]);
            for (Joint *joint : chain) delete joint;
            return s;
        }
        int main() {
            double x[3] = {1, 2, 3}, d[3] = {0};
            gradus_vjp(f, gradus_dup, x, d, gradus_const, 3);
            double first = 2 * x[0] + x[1] * std::cos(x[0]) + x[2];
            return std::fabs(d[0] - first) + std::fabs(d[1] - std::sin(x[0])) + std::fabs(d[2] - x[0]) > 1e-12;
        }"#;
    write(&at, "it.cpp", program);
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        accepts(&at, &format!("c++ {level} it.cpp -o it -lm"));
        succeeds(&mut Command::new(at.join("it")));
    }
}

/// Explicit threads have no derivative. The message names what has one, and no registration: a thread that is registered
/// as inactive would have the derivative zero.
#[test]
fn explicit_threads_are_refused_by_name() {
    let at = folder("explicit_threads");
    let program = "#include <pthread.h>
        static void *run(void *p) { double *x = p; x[1] = x[0] * x[0]; return 0; }
        double f(double *x) {
            pthread_t t;
            pthread_create(&t, 0, run, x); pthread_join(t, 0);
            return x[1]; }\n";
    write(&at, "threads.c", program);
    for level in ["-O0", "-O2"] {
        let said = refuses(
            &at,
            &format!("grad threads.c -f f -o out.o -- {level}"),
            "GRD0005",
        );
        let place = said.contains("`pthread_create` belongs to explicit threads")
            && said.contains("threads.c:5");
        assert!(
            place && said.contains("use OpenMP") && !said.contains("GRADUS_INACTIVE"),
            "{said}"
        );
    }
}

/// A function that is declared inactive may call a function whose address it receives: `step` writes active memory
/// itself, `through` by another function. A callback without such writes is fine.
#[test]
fn an_inactive_function_with_an_active_callback_is_refused() {
    let at = folder("false_statement");
    let program = |callback: &str| {
        format!(
            "#include <gradus.h>
            void run_later(void (*work)(void *), void *data);
            GRADUS_INACTIVE(run_later);
            static int calls;
            __attribute__((noinline)) static void square(double *p) {{ p[0] *= p[0]; }}
            static void step(void *data) {{ double *p = data; p[0] *= 2; }}
            static void through(void *data) {{ square(data); }}
            static void count(void *data) {{ calls++; (void)data; }}
            double f(const double *x) {{
                double s[1] = {{x[0]}};
                run_later({callback}, s);
                return s[0] * x[0]; }}\n"
        )
    };
    for name in ["step", "through", "count"] {
        write(&at, &format!("{name}.c"), &program(name));
    }
    for level in ["-O0", "-O2"] {
        for name in ["step", "through"] {
            let said = refuses(
                &at,
                &format!("grad {name}.c -f f -o out.o -- {level}"),
                "GRD0005",
            );
            let stated = said.contains("`run_later` is declared inactive")
                && said.contains(&format!("`{name}`"))
                && said.contains(&format!("{name}.c:11"));
            assert!(stated, "{said}");
        }
        accepts(&at, &format!("grad count.c -f f -o out.o -- {level}"));
    }
}
