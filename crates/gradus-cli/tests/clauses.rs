//! Loops with schedule, `if` and `lastprivate` clauses are parallel loops, also in derivatives, with the
//! results of a single thread.

use crate::support::{accepts, folder, run, shell, text, write};
use std::path::Path;

const GRADIENTS: &str = include_str!("clauses/gradients.c");
const WAYS: [&str; 5] = ["REGION", "LOOPS", "CONDITIONS", "PRIVATE", "CALLED"];
const CONDITIONS: &str = include_str!("clauses/conditions.c");

/// Checks that `program` prints `wanted` for `count`, for any number of threads.
fn all_agree(at: &Path, count: &str, wanted: &str, what: &str) {
    for workers in [1, 2, 4, 7] {
        for force in [false, true] {
            let told = run(at, "parallel", count, workers, force);
            assert_eq!(
                told, wanted,
                "{what}, {count}, {workers} workers, forced: {force}"
            );
        }
    }
}

/// Builds a variant of the gradients. Returns the compiler's output.
fn gradient(at: &Path, way: &str, flags: &str) -> String {
    write(at, "it.c", GRADIENTS);
    let reports = "--report=full --par-report";
    let line = format!("gradus cc -g -fopenmp {reports} {flags} -D{way} it.c -o parallel -lm");
    let said = shell(at, &line);
    text(&said.stdout) + &text(&said.stderr)
}

#[test]
fn clause_gradients_are_parallel() {
    for way in WAYS {
        for level in ["-O1", "-O2", "-O3"] {
            let at = folder(&format!("clauses_{}", way.to_lowercase()));
            let said = gradient(&at, way, level);
            assert!(said.contains("parallel in the reverse pass"), "{said}");
            let others = ["serial in the return", "a team of ranks", "with one thread"];
            for other in others {
                assert!(!said.contains(other), "{way} {level}: {said}");
            }
            accepts(&at, &format!("cc {level} -D{way} it.c -o serial -lm"));
            for count in ["8", "100", "1001"] {
                let serial = run(&at, "serial", count, 1, false);
                all_agree(&at, count, &serial, &format!("{way} {level}"));
            }
        }
    }
}

#[test]
fn clause_gradients_are_race_free() {
    for way in WAYS {
        let at = folder(&format!("clauses_watched_{}", way.to_lowercase()));
        gradient(&at, way, "-O1 -fsanitize=thread");
        run(&at, "parallel", "100", 4, true);
    }
}

/// The expected numbers are from clang's OpenMP. From -O2 on, clang takes iterations of dynamic loops for
/// independent regardless of the condition.
#[test]
fn false_if_clause_is_sequential() {
    for level in ["-O1", "-O2", "-O3"] {
        let at = folder("clauses_in_order");
        write(&at, "it.c", CONDITIONS);
        shell(&at, "clang-22 -O1 -fopenmp it.c -o clang -lm");
        let line = format!("cc -g -fopenmp {level} --par-report it.c -o parallel -lm");
        let said = accepts(&at, &line);
        for loops in [24, 26, 28, 30, 35, 66, 97, 103, 120, 147] {
            let raised = format!("it.c:{loops}: raised to parallel loops");
            assert!(said.contains(&raised), "{level}, line {loops}: {said}");
        }
        for count in ["1", "2", "7", "100", "1001"] {
            let wanted = run(&at, "clang", count, 1, false);
            all_agree(&at, count, &wanted, level);
        }
    }
}

/// In optimised bitcode the serial form of a region is inlined, and the call that states the number of threads stands
/// before the branch of the `if` clause.
#[test]
fn num_threads_with_if_clause_in_bitcode() {
    let at = folder("clauses_num_threads");
    write(&at, "it.c", include_str!("clauses/num_threads.c"));
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        for debug in ["", "-g"] {
            let line = format!("clang-22 {level} {debug} -fopenmp -c -emit-llvm it.c -o it.bc");
            shell(&at, &line);
            accepts(&at, "cc -O2 -fopenmp it.bc -o parallel");
            for workers in [1, 4] {
                let told = run(&at, "parallel", "", workers, false);
                assert_eq!(told, "1 1 2\n5 3 2\n", "{level} {debug}, {workers} workers");
            }
        }
    }
}

/// Hand-written reductions with non-neutral initial values: one thread adds its initial value once, even without
/// iterations.
#[test]
fn manual_reductions_initial_values() {
    let at = folder("clauses_by_hand");
    write(&at, "it.c", include_str!("clauses/by_hand.c"));
    shell(&at, "clang-22 -O1 it.c -o serial");
    for level in ["-O1", "-O2", "-O3"] {
        accepts(&at, &format!("cc {level} -fopenmp it.c -o parallel"));
        for count in ["0", "1", "5", "100"] {
            let wanted = run(&at, "serial", count, 1, false);
            for force in [false, true] {
                let told = run(&at, "parallel", count, 1, force);
                assert_eq!(told, wanted, "{level}, {count}, forced: {force}");
            }
        }
    }
}
