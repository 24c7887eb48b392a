//! Memory allocated before the call: pointers in it may point anywhere, and it has no shadow unless an
//! argument provides one.

use crate::support::{accepts, folder, gradus, refuses, text, write};

const NET: &str = "#include <stdlib.h>
    typedef struct { double *at; } node;
    typedef struct { int n; double *all; node *nodes; } net;
    static net *kept;
    void keep(net *of) { kept = of; }
    static void fill(net *of, const double *x) {
        for (int i = 0; i < of->n; i++)
            of->all[i] = x[i] * x[i];
    }
    static double sum(const net *of, const double *x) {
        double sum = 0;
        for (int i = 0; i < of->n; i++)
            sum += *of->nodes[i].at * x[0];
        return sum;
    }
    double one_way(int n, const double *x) {
        double sum = 0;
        fill(kept, x);
        for (int i = 0; i < kept->n; i++)
            sum += kept->all[kept->n - 1 - i] * x[i];
        return sum + n;
    }
    double two_ways(int n, const double *x) {
        fill(kept, x);
        return sum(kept, x) + n;
    }
    double by_argument(int n, const double *x, net *of) {
        fill(of, x);
        return sum(of, x) + n;
    }
    static double *table, *log_of;
    void start(int n) {
        table = malloc(n * sizeof *table);
        log_of = malloc(n * sizeof *log_of);
    }
    double apart(int n, const double *x) {
        double sum = 0;
        for (int i = 0; i < n; i++) {
            log_of[i] = x[i] * x[i];
            sum += table[i] * x[i];
        }
        return sum;
    }\n";

/// A block reached from a global through another pointer is written, and read by an equal or another path.
#[test]
fn memory_behind_globals_is_refused() {
    let at = folder("preexisting_memory");
    write(&at, "net.c", NET);
    for level in ["-O0", "-O2"] {
        for function in ["one_way", "two_ways"] {
            let said = refuses(
                &at,
                &format!("grad net.c -f {function} -o out.o -- {level}"),
                "GRD0033",
            );
            assert!(said.contains("`kept`"), "{said}");
        }
        accepts(&at, &format!("grad net.c -f apart -o out.o -- {level}"));
    }
}

/// Two globals to which only fresh blocks are ever assigned point to distinct blocks; otherwise
/// distinctness is unknown.
#[test]
fn fresh_blocks_in_globals_disjoint() {
    let at = folder("fresh_blocks");
    write(&at, "net.c", NET);
    let joined = NET.replace(
        "log_of = malloc(n * sizeof *log_of)",
        "log_of = table + n / 2",
    );
    write(&at, "joined.c", &joined);
    for level in ["-O0", "-O2"] {
        accepts(&at, &format!("grad net.c -f apart -o out.o -- {level}"));
        let said = refuses(
            &at,
            &format!("grad joined.c -f apart -o out.o -- {level}"),
            "GRD0033",
        );
        assert!(said.contains("`log_of`"), "{said}");
    }
}

/// Another file may store one block in both of two external globals. One store per global may store the same
/// block.
#[test]
fn shared_blocks_in_globals_are_refused() {
    let at = folder("shared_blocks");
    let external = NET.replace("static double *table", "double *table");
    let twice = NET.replace(
        "log_of = malloc(n * sizeof *log_of)",
        "double *both = malloc(2 * n * sizeof *both); table = both; log_of = both",
    );
    for (name, source) in [("external.c", external), ("twice.c", twice)] {
        assert_ne!(source, NET);
        write(&at, name, &source);
        for level in ["-O0", "-O2"] {
            let line = format!("grad {name} -f apart -o out.o -- {level}");
            let said = refuses(&at, &line, "GRD0033");
            assert!(said.contains("`log_of`"), "{said}");
        }
    }
}

/// `const` declares memory inactive: a warning reports a read of the memory by another path than the write.
#[test]
fn const_memory_on_two_paths_warns() {
    let at = folder("two_ways");
    write(&at, "net.c", NET);
    for level in ["-O0", "-O2"] {
        let line = format!("grad net.c -f by_argument --wrt x --inactive of -o out.o -- {level}");
        let output = gradus(&at, &line);
        let said = text(&output.stderr);
        assert!(output.status.success(), "{said}");
        assert!(
            said.contains("GRD0019") && said.contains("net.c:8:"),
            "{said}"
        );
    }
}
