//! Functions that are not seen: what they may do to active memory without being handed any.

mod support;

use support::{accepts, folder, refuses, write};

/// What is not seen may change variables that other files see, and have handlers called.
#[test]
fn what_is_not_seen_may_change_what_is_seen_elsewhere() {
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

/// Another name of a variable is that variable; one that may be bound elsewhere is refused.
#[test]
fn two_names_of_one_variable() {
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

/// Which elements `qsort` compares is its own affair: a comparison that adds up what it is given is refused,
/// one that has variables of its own is not.
#[test]
fn a_comparison_that_leaves_something_behind_is_refused() {
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

/// An address that may come from elsewhere leads to code that is not seen, too; one that leads to functions
/// of the program does not.
#[test]
fn calls_by_addresses_from_elsewhere_may_change_what_is_seen_elsewhere() {
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

/// Functions that turn their further arguments into text have derivatives, whatever the arguments are; those
/// that read them otherwise are refused.
#[test]
fn further_arguments_are_printed_or_refused() {
    let at = folder("further");
    let program = "#include <stdarg.h>
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
        double counted(double x)
        {
            int length = 0;
            snprintf(text, sizeof text, \"%d%n\", 12345, &length);
            return x * length;
        }\n";
    write(&at, "further.c", program);
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        accepts(
            &at,
            &format!("check further.c -f told --arg x=1.3 -- {level}"),
        );
        let command = format!("grad further.c -f scaled -o out.o -- {level}");
        let said = refuses(&at, &command, "GRD0034");
        assert!(said.contains("further.c:29:"), "{said}");
        let command = format!("grad further.c -f counted -o out.o -- {level}");
        assert!(refuses(&at, &command, "GRD0005").contains("further.c:43:"));
    }
}

/// Open MPI's handles are addresses of variables of types that are not seen: none of them is active. Communication on an
/// active path is told as such.
#[test]
fn handles_of_types_that_are_not_seen_are_inactive() {
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
