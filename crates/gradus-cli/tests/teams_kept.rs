//! Teams stay teams if threads have private state not visible in iterations: workspaces acquired once per
//! thread, saved addresses, state of functions in other files, and mutual waiting. After a lock acquire,
//! memory holds writes of other threads.

use crate::support::{accepts, folder, run, shell, write};

#[test]
fn per_thread_state() {
    let at = folder("teams_kept");
    write(&at, "program.c", include_str!("teams_kept/program.c"));
    write(&at, "library.c", include_str!("teams_kept/library.c"));
    shell(&at, "clang-22 -O1 -c library.c -o library.o");
    shell(&at, "clang-22 -O1 -fopenmp program.c library.o -o clang");
    let wanted = run(&at, "clang", "", 2, false);
    for level in ["-O1", "-O2", "-O3"] {
        accepts(
            &at,
            &format!("cc -w {level} -fopenmp program.c library.o -o ours"),
        );
        for workers in [1, 2, 4] {
            for force in [false, true] {
                let told = run(&at, "ours", "", workers, force);
                assert_eq!(told, wanted, "{level}, {workers} workers, forced: {force}");
            }
        }
    }
}

/// After a lock acquire, earlier values of the program's own variables are unknown, also for variables
/// without an escape: concurrent iterations have the addresses.
#[test]
fn lock_acquire_clobbers() {
    let at = folder("told_apart_locks");
    write(&at, "it.cpp", include_str!("teams_kept/locks.cpp"));
    for level in ["-O1", "-O2", "-O3"] {
        accepts(&at, &format!("c++ {level} -fopenmp it.cpp -o ours"));
        for workers in [1, 2, 4] {
            for force in [false, true] {
                let told = run(&at, "ours", "", workers, force);
                let wanted = "200010000 60000 140000\n".repeat(3);
                assert_eq!(told, wanted, "{level}, {workers} workers, forced: {force}");
            }
        }
    }
}

/// The previous test for words used as locks, and for threads that wait for words or under `critical`: each
/// waiting thread needs a separate system thread.
#[test]
fn spin_lock_acquire_clobbers() {
    let at = folder("told_apart_words");
    write(&at, "it.c", include_str!("teams_kept/words.c"));
    let wanted = "200010007 200010007\n9970000\n40000\n42 42 10 10\n15 2091 42\n";
    for level in ["-O1", "-O2", "-O3"] {
        accepts(&at, &format!("cc {level} -fopenmp it.c -o ours"));
        for workers in [1, 2, 4] {
            for force in [false, true] {
                let told = run(&at, "ours", "", workers, force);
                assert_eq!(told, wanted, "{level}, {workers} workers, forced: {force}");
            }
        }
    }
}
