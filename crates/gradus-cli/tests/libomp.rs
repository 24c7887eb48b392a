//! Programs with some regions left to OpenMP's library: raised regions then run on OpenMP's threads, for a
//! single thread pool, with unchanged semantics.

use crate::support::{folder, refuses, shell, succeeds, text};
use std::path::{Path, PathBuf};
use std::process::Command;

const HEADERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../include");

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parallel")
}

/// Creates a folder with some of the programs, and the unraised region as `kept.o`, from another compiler.
fn with(test: &str, names: &[&str]) -> PathBuf {
    let folder = folder(test);
    for name in names.iter().chain(&["kept.c"]) {
        std::fs::copy(sources().join(name), folder.join(name)).expect("copied");
    }
    shell(&folder, "clang-22 -O1 -fopenmp -c kept.c -o kept.o");
    folder
}

/// Returns the output of `program` with this number of workers, with all loops or no loop forced to fork.
fn printed(folder: &Path, workers: u32, forced: bool, variable: &str) -> String {
    let mut command = Command::new(folder.join("program"));
    command.env_remove("OMP_NUM_THREADS");
    command.env(variable, workers.to_string());
    command.env("GRADUS_FORCE_FORK", if forced { "1" } else { "0" });
    text(&succeeds(command.current_dir(folder)).stdout)
}

#[test]
fn single_thread_pool() {
    let folder = with("one_set", &["beside.c"]);
    let ways: &[&[&str]] = &[
        &["gradus cc -O2 -fopenmp beside.c kept.o -o program"],
        &["gradus cc -O3 -fopenmp beside.c kept.c -o program"],
        &[
            "ar rc libkept.a kept.o",
            "gradus cc -O1 -fopenmp beside.c -L. -lkept -o program",
        ],
        &[
            "clang-22 -O2 -fopenmp -shared -fPIC kept.c -o libshared.so",
            "gradus cc -O2 -fopenmp beside.c -L. -lshared -Wl,-rpath,. -o program",
        ],
    ];
    for way in ways {
        for command in *way {
            shell(&folder, command);
        }
        let runs = [
            (1, true, "OMP_NUM_THREADS"),
            (2, false, "GRADUS_NUM_THREADS"),
            (3, true, "GRADUS_NUM_THREADS"),
            (4, false, "OMP_NUM_THREADS"),
        ];
        for (workers, forced, variable) in runs {
            let expected = format!("{workers} threads\n");
            let said = printed(&folder, workers, forced, variable);
            assert_eq!(said, expected, "{way:?}, forced: {forced}");
        }
    }
}

/// Parallel intrinsics outside of all regions, and exceptions that leave tasks.
#[test]
fn intrinsics_on_libomp() {
    let names = ["markers.c", "lambdas.cpp", "exceptions.cpp"];
    let folder = with("words_beside", &names);
    for name in names {
        let (stock, ours) = match name.ends_with(".c") {
            true => ("clang-22", "gradus cc"),
            false => ("clang++-22", "gradus c++"),
        };
        shell(
            &folder,
            &format!("{stock} -O1 -I{HEADERS} {name} -o program -lm"),
        );
        let serial = printed(&folder, 1, false, "GRADUS_NUM_THREADS");
        shell(
            &folder,
            &format!("{ours} -O2 -I{HEADERS} {name} kept.o -fopenmp -o program -lm"),
        );
        for (workers, forced) in [(1, true), (3, false), (3, true)] {
            assert_eq!(
                printed(&folder, workers, forced, "GRADUS_NUM_THREADS"),
                serial,
                "{name}, {workers} workers, forced: {forced}"
            );
        }
    }
}

/// All reductions of a program name a single lock. OpenMP's library keeps state in the lock for which
/// Gradus's threads would wait.
#[test]
fn reduction_locks_are_separate() {
    let folder = folder("locks_beside");
    let source = "
        #include <omp.h>
        #include <stdio.h>
        typedef struct { long sum, count; } pair;
        #pragma omp declare reduction(both : pair : omp_out.sum += omp_in.sum, omp_out.count += omp_in.count)
        static pair kept(long n) {
          pair p = {0, 0};
          #pragma omp parallel for ordered reduction(both : p)
          for (long i = 0; i < n; i++) {
            p.sum += i;
            #pragma omp ordered
            p.count++;
          }
          return p;
        }
        static pair of_ranks(long n) {
          pair p = {0, 0};
          #pragma omp parallel reduction(both : p)
          {
            long first = omp_get_thread_num(), ranks = omp_get_num_threads();
            for (long i = first; i < n; i += ranks) p.sum += i, p.count++;
          }
          return p;
        }
        int main(void) {
          for (int round = 0; round < 3; round++) {
            pair a = kept(40), b = of_ranks(50);
            printf(\"%ld %ld %ld %ld\\n\", a.sum, a.count, b.sum, b.count);
          }
        }";
    crate::support::write(&folder, "program.c", source);
    shell(&folder, "gradus cc -O2 -w -fopenmp program.c -o program");
    for workers in [2, 4] {
        let mut command = Command::new("timeout");
        command.args(["60", "./program"]).current_dir(&folder);
        command.env("OMP_NUM_THREADS", workers.to_string());
        let said = text(&succeeds(&mut command).stdout);
        assert_eq!(said, "780 40 1225 50\n".repeat(3), "{workers} workers");
    }
}

/// A library and a program, each with a runtime: both find OpenMP's library as the next definition.
#[test]
fn regions_of_a_library_find_openmps_library() {
    let folder = folder("two_run_times");
    let kept = "
        #include <omp.h>
        void locked(int n, long *c) {
          omp_lock_t lock;
          omp_init_lock(&lock);
          #pragma omp parallel for
          for (int i = 0; i < n; i++) { omp_set_lock(&lock); *c += i; omp_unset_lock(&lock); }
        }
        long raised(int n) {
          long s = 0;
          #pragma omp parallel for reduction(+ : s)
          for (int i = 0; i < n; i++) s += i;
          return s;
        }";
    let program = "
        #include <stdio.h>
        void locked(int, long *);
        long raised(int);
        int main(void) {
          long c = 0, s = 0;
          locked(100, &c);
          #pragma omp parallel for reduction(+ : s)
          for (int i = 0; i < 100; i++) s += i;
          printf(\"%ld %ld %ld\\n\", c, s, raised(100));
        }";
    crate::support::write(&folder, "kept.c", kept);
    crate::support::write(&folder, "program.c", program);
    let library = "cc -O2 -w -fopenmp -shared -fPIC kept.c -o libkept.so";
    let whole = "cc -O2 -fopenmp program.c -L. -lkept -Wl,-rpath,. -o program";
    for target in ["runtime", "openmp"] {
        shell(&folder, &format!("gradus {library} --par-target={target}"));
        shell(&folder, &format!("gradus {whole}"));
        for workers in [1, 4] {
            let mut command = Command::new("timeout");
            command.args(["60", "./program"]).current_dir(&folder);
            command.env("OMP_NUM_THREADS", workers.to_string());
            let said = text(&succeeds(&mut command).stdout);
            assert_eq!(said, "4950 4950 4950\n", "{target}, {workers} workers");
        }
    }
}

/// A gradient through loops, also nested loops, on OpenMP's threads.
#[test]
fn gradients_are_the_same() {
    let folder = with("gradient_beside", &[]);
    let source = "
        #include <math.h>
        #include <stdio.h>
        enum { N = 900 };
        extern int enzyme_dup, enzyme_const;
        double __enzyme_autodiff(void *, ...);
        long kept(long n);
        static double x[N], dx[N], y[N], dy[N];
        double f(double *x, double *y, long n) {
          double s = 0;
          #pragma omp parallel for
          for (long i = 0; i < 30; i++) {
            double t = 0;
            #pragma omp parallel for reduction(+ : t)
            for (long j = 0; j < n / 30; j++) t += x[i * 30 + j] * x[j];
            y[i] = t;
          }
          #pragma omp parallel for reduction(+ : s)
          for (long i = 0; i < 30; i++) s += sin(y[i]);
          return s;
        }
        int main(void) {
          for (long i = 0; i < N; i++) x[i] = 0.1 + 0.001 * i;
          long k = kept(20);
          __enzyme_autodiff((void *)f, enzyme_dup, x, dx, enzyme_dup, y, dy, enzyme_const, (long)N);
          printf(\"%ld\", k - kept(20));
          for (long i = 0; i < N; i++) printf(\" %.12g\", dx[i]);
        }";
    crate::support::write(&folder, "program.c", source);
    shell(&folder, "gradus cc -O2 program.c kept.c -o program -lm");
    let serial = printed(&folder, 1, false, "GRADUS_NUM_THREADS");
    let numbers = |words: &str| -> Vec<f64> {
        let words = words.split_whitespace();
        words.map(|w| w.parse().expect("a number")).collect()
    };
    let serial = numbers(&serial);
    shell(
        &folder,
        "gradus cc -O2 -fopenmp program.c kept.o -o program -lm",
    );
    for workers in [1, 2, 4] {
        let parallel = printed(&folder, workers, true, "GRADUS_NUM_THREADS");
        let parallel = numbers(&parallel);
        assert_eq!(parallel.len(), serial.len());
        for (a, b) in serial.iter().zip(&parallel) {
            assert!((a - b).abs() <= 1e-10 * a.abs().max(1.0), "{a} {b}");
        }
    }
}

/// ThreadSanitizer is informed of forks and joins on OpenMP's threads, too.
#[test]
fn only_races_are_reported() {
    let folder = with("races_beside", &["shared.c", "markers.c"]);
    let report = |source: &str, options: &str| {
        let options = format!("-g -O1 -w -fopenmp -fsanitize=thread -I{HEADERS} {options}");
        shell(
            &folder,
            &format!("gradus cc {options} {source} kept.o -o program -lm"),
        );
        let mut command = Command::new(folder.join("program"));
        command.env("OMP_NUM_THREADS", "4");
        command.env("GRADUS_FORCE_FORK", "1");
        // OpenMP's library locks without the sanitizer's knowledge.
        let own = "exitcode=66 halt_on_error=1 ignore_noninstrumented_modules=1";
        command.env("TSAN_OPTIONS", own);
        let output = command.output().expect("it starts");
        (output.status.code(), text(&output.stderr))
    };
    for source in ["shared.c", "markers.c"] {
        let (code, said) = report(source, "");
        assert_eq!(code, Some(0), "{source}: {said}");
    }
    let (code, said) = report("shared.c", "-DRACE");
    assert_eq!(code, Some(66), "{said}");
}

/// A raised region that queries its team number may be inside teams run by OpenMP's library.
#[test]
fn teams_know_their_numbers() {
    let folder = with("team_numbers", &["teams_around.c", "teams_asked.c"]);
    for level in ["-O0", "-O1", "-O3"] {
        let build = format!("gradus cc {level} -fopenmp teams_around.c teams_asked.c -o program");
        shell(&folder, &build);
        for (workers, forced) in [(1, true), (2, false), (4, true)] {
            // Another team's thread may or may not take a rank.
            for _ in 0..20 {
                let said = printed(&folder, workers, forced, "OMP_NUM_THREADS");
                assert_eq!(said, "1 0\n", "{level}, {workers}, forced: {forced}");
            }
        }
    }
}

/// A library compiled by Gradus in a program of another compiler: enclosing regions are counted.
#[test]
fn a_region_in_another_compilers_region_has_one_thread() {
    let folder = folder("library_in_region");
    let library = "
        #include <omp.h>
        int ranks(void) { int r = 0;
        #pragma omp parallel num_threads(3) reduction(+ : r)
          r += omp_get_thread_num() + 1;
          return r; }";
    let program = "
        #include <stdio.h>
        int ranks(void);
        int main(void) { int inside = 0, outside = ranks();
        #pragma omp parallel num_threads(4) reduction(+ : inside)
          inside += ranks();
          printf(\"%d %d\\n\", outside, inside); }";
    std::fs::write(folder.join("library.c"), library).expect("written");
    std::fs::write(folder.join("program.c"), program).expect("written");
    shell(
        &folder,
        "gradus cc -O2 -fopenmp -shared -fPIC library.c -o libranks.so",
    );
    shell(
        &folder,
        "clang-22 -O2 -fopenmp program.c ./libranks.so -o program",
    );
    for (levels, wanted) in [("1", "6 4\n"), ("2", "6 24\n")] {
        let mut command = Command::new(folder.join("program"));
        command.env("OMP_MAX_ACTIVE_LEVELS", levels);
        let said = text(&succeeds(command.current_dir(&folder)).stdout);
        assert_eq!(said, wanted, "{levels} levels");
    }
}

/// The captures of an unraised region are passed in words: no separate diagnostic results.
#[test]
fn a_derivative_names_the_region_that_stays() {
    let folder = folder("kept_in_derivative");
    let program = "
        #include <omp.h>
        double __enzyme_autodiff(void *, ...);
        extern int enzyme_dup, enzyme_const;
        double f(const double *x, int n) { double s = 0; omp_lock_t lock; omp_init_lock(&lock);
        #pragma omp parallel for CLAUSE
          for (int i = 0; i < n; i++) { double t = x[i] * x[i];
            WORK }
          omp_destroy_lock(&lock); return s; }
        void g(double *x, double *d, int n) {
          __enzyme_autodiff((void *)f, enzyme_dup, x, d, enzyme_const, n); }";
    let locked = program.replace(
        "WORK",
        "omp_set_lock(&lock); s += t; omp_unset_lock(&lock);",
    );
    let ordered = program
        .replace("CLAUSE", "ordered")
        .replace("WORK", "\n        #pragma omp ordered\n            s += t;");
    for source in [locked.replace("CLAUSE", ""), ordered] {
        std::fs::write(folder.join("it.c"), source).expect("written");
        for level in ["-O0", "-O2"] {
            let build = format!("cc {level} -g -fopenmp -c it.c");
            let said = refuses(&folder, &build, "GRD0011");
            assert!(said.contains("it.c:6"), "{said}");
            assert!(!said.contains("GRD0008"), "{said}");
        }
    }
}
