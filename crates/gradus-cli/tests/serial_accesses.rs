//! Volatile and atomic floats in programs without threads, and the refusals in programs with threads.

use crate::support::{accepts, folder, refuses, write};

const C: &str = "#include <stdatomic.h>
volatile double total;
_Atomic double shared;
_Atomic float narrow;
struct node { volatile double value; _Atomic int users; };
double argument(volatile double *x) { double y = x[0] * x[1]; return y * y; }
double global(double x) { total = x * x; total += x; return total * x; }
double sums(double x) { shared = x * x; shared += x; shared *= x; return shared; }
double exchanged(double x)
{
    atomic_store(&shared, x * x);
    double old = atomic_exchange(&shared, x);
    return old * atomic_load(&shared);
}
double compared(double x)
{
    _Atomic double number = x;
    double seen = atomic_load(&number);
    while (!atomic_compare_exchange_weak(&number, &seen, seen * x + 1)) {
    }
    seen = 0;
    return atomic_compare_exchange_strong(&number, &seen, 3 * x) ? number : number * seen;
}
double fetched(double x)
{
    shared = x;
    double old = __atomic_fetch_add((double *)&shared, x * x, __ATOMIC_SEQ_CST);
    return old * shared;
}
float halved(float x) { narrow = x; narrow -= x * x; narrow /= 2; return narrow * x; }
double member(double x)
{
    struct node node = {x, 1};
    struct node *volatile by_address = &node;
    node.users++;
    node.value *= x;
    by_address->value += 3 * x;
    return by_address->value * node.users;
}
";

const CPP: &str = "#include <atomic>
#include <memory>
static std::atomic<double> sum{0};
struct counted { volatile double value; std::shared_ptr<double> owner; };
extern \"C\" double updated(double x)
{
    sum = x;
    double seen = sum.load();
    while (!sum.compare_exchange_strong(seen, seen * x + sum.exchange(x * x))) {
    }
    return sum * x;
}
extern \"C\" double copied(double x)
{
    counted first{x, std::make_shared<double>(x * x)};
    counted second = first;
    second.value = second.value * *first.owner;
    return second.value + first.value;
}
";

/// Without threads, a load reads the last store: the derivative follows it.
#[test]
fn volatile_and_atomic_floats_have_derivatives() {
    let at = folder("serial_accesses");
    write(&at, "p.c", C);
    write(&at, "p.cpp", CPP);
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        accepts(
            &at,
            &format!("check p.c -f argument --arg x=rand(2) -- {level}"),
        );
        for name in [
            "global",
            "sums",
            "exchanged",
            "compared",
            "fetched",
            "halved",
            "member",
        ] {
            accepts(&at, &format!("check p.c -f {name} --arg x=1.3 -- {level}"));
        }
        for name in ["updated", "copied"] {
            accepts(
                &at,
                &format!("check p.cpp -f {name} --arg x=1.3 -- {level}"),
            );
        }
    }
}

/// In a program with parallel code, threads or handlers of signals, other code may write between two accesses.
#[test]
fn volatile_and_atomic_floats_of_threads_are_refused() {
    let at = folder("serial_accesses_of_threads");
    let program = |other: &str| format!("{C}{other}\n");
    let region = "void other(int n, double *x) {\n#pragma omp parallel for\nfor (int i = 0; i < n; i++) x[i] *= 2; }";
    let thread = "#include <pthread.h>\nstatic void *run(void *x) { shared = 2; return x; }\n\
         void other(pthread_t *t) { pthread_create(t, 0, run, 0); }";
    let handler = "#include <signal.h>\nstatic void change(int s) { shared = s; total = s; }\n\
         void other(void) { signal(SIGUSR1, change); }";
    for (name, other) in [("region", region), ("thread", thread), ("handler", handler)] {
        write(&at, &format!("{name}.c"), &program(other));
        for f in ["global", "exchanged", "compared", "fetched"] {
            let said = refuses(
                &at,
                &format!("grad {name}.c -f {f} -o out.o -- -O2 -fopenmp"),
                "GRD0031",
            );
            assert!(said.contains(&format!("{name}.c:")), "{said}");
        }
    }
}
