//! Blocks that a program keeps from one call to the next: workspaces in static pointers of C, allocatable variables of
//! Fortran modules. Derivatives make shadows for them; pointers that may lead to the block on another way are refused.

use crate::support::{accepts, folder, refuses, shell, text, write};

/// A function of another file receives the address and may keep it.
const LENT: &str = "#include <stdlib.h>
    void remember(double *at);
    static double *known;
    void tell(void) { remember(known); }
    double lent(int n, const double *x) {
        double sum = 0;
        if (!known)
            known = malloc(n * sizeof *known);
        for (int i = 0; i < n; i++)
            known[i] = x[i] * x[i];
        for (int i = 0; i < n; i++)
            sum += known[i];
        return sum;
    }\n";

/// A function of another file may call `need`, and replace the block.
const CALLED: &str = "#include <stdlib.h>
    void other_file(int n);
    static double *work;
    void need(int n) {
        free(work);
        work = malloc(n * sizeof *work);
    }
    double called(int n, const double *x) {
        double sum = 0;
        need(n);
        other_file(n);
        for (int i = 0; i < n; i++)
            work[i] = x[i] * x[i];
        for (int i = 0; i < n; i++)
            sum += work[i];
        return sum;
    }\n";

const LEVELS: [&str; 2] = ["-O0", "-O2"];

const SOURCE: &str = include_str!("kept_workspaces.c");

/// Workspaces that grow by `malloc` and `realloc`, are made by another function, or hold two arrays.
#[test]
fn workspaces_of_c() {
    let at = folder("kept_workspaces");
    write(&at, "w.c", SOURCE);
    for level in LEVELS {
        for function in [
            "grown",
            "grown_with_tests",
            "moved",
            "made_elsewhere",
            "in_halves",
            "in_a_loop",
        ] {
            let line = format!("check w.c -f {function} --arg n=6 --arg x=rand(6) -- {level}");
            accepts(&at, &line);
        }
    }
}

/// Derivatives between calls of the function with other sizes; contents from before the call are constants; second
/// derivatives.
#[test]
fn workspaces_between_calls() {
    let at = folder("kept_workspaces_between_calls");
    write(&at, "w.c", SOURCE);
    write(&at, "main.c", include_str!("kept_workspaces_main.c"));
    for level in LEVELS {
        let line = format!("cc {level} main.c -o main");
        accepts(&at, &line);
        assert_eq!(text(&shell(&at, "./main").stdout), "right\n", "{level}");
    }
}

/// A second name for the block, an address that leaves the file, and a pointer that may dangle.
#[test]
fn blocks_with_other_names_are_refused() {
    let at = folder("kept_workspaces_refused");
    write(&at, "w.c", SOURCE);
    write(&at, "lent.c", LENT);
    for level in LEVELS {
        for function in ["swapped", "given_away", "given_by_pointer", "dangling"] {
            let line = format!("grad w.c -f {function} -o out.o -- {level}");
            refuses(&at, &line, "GRD0033");
        }
        let line = format!("grad lent.c -f lent -o out.o -- {level}");
        refuses(&at, &line, "GRD0033");
    }
}

/// Functions of the program that the C library calls, or that a function of another file may call, change active memory.
#[test]
fn callbacks_that_change_active_memory_are_refused() {
    let at = folder("kept_workspaces_callbacks");
    write(&at, "w.c", SOURCE);
    write(&at, "called.c", CALLED);
    for level in LEVELS {
        for function in ["replaced", "filled"] {
            let line = format!("grad w.c -f {function} -o out.o -- {level}");
            refuses(&at, &line, "GRD0005");
        }
        let line = format!("grad called.c -f called -o out.o -- {level}");
        refuses(&at, &line, "GRD0033");
    }
}

/// The program cannot move the block between the halves of a derivative.
#[test]
fn split_mode_is_refused() {
    let at = folder("kept_workspaces_split");
    write(&at, "w.c", SOURCE);
    write(&at, "halves.c", include_str!("kept_workspaces_halves.c"));
    for level in LEVELS {
        let said = refuses(&at, &format!("cc {level} -c halves.c"), "GRD0033");
        assert!(said.contains("split into two calls"), "{said}");
    }
}

/// Allocatable module variables, components and saved variables of Fortran.
#[test]
fn workspaces_of_fortran() {
    let at = folder("kept_workspaces_fortran");
    write(&at, "w.f90", include_str!("kept_workspaces.f90"));
    for level in LEVELS {
        for function in ["grown", "components", "moved"] {
            let line = format!("check w.f90 -f {function} --arg n=6 --arg x=rand(6) -- {level}");
            accepts(&at, &line);
        }
        let line = format!("grad w.f90 -f pointed -o out.o -- {level}");
        refuses(&at, &line, "GRD0033");
    }
}
