//! Orphaned constructs: functions without an enclosing parallel region. Outside of all regions, tasks of an
//! orphaned function run on the creating thread, in order; inside a region, further threads execute tasks,
//! too. Orphaned worksharing belongs to the current team, and regions of an orphaned function have separate
//! teams.

use crate::support::{accepts, folder, gradus, shell, succeeds, text, write};
use gradus_ir::mutant::{Mutant, plant};
use gradus_testkit::{SHARES_FEATURES, SharesWay, Verdict, check_shares, shares_program};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

const LEVELS: [&str; 4] = ["-O0", "-O1", "-O2", "-O3"];

/// Checks the output of a program for each number of workers, with and without forced forks.
fn prints(at: &Path, program: &str, workers: &[&str], wanted: &str, what: &str) {
    for workers in workers {
        for forced in ["0", "1"] {
            let mut command = Command::new(at.join(program));
            command.env("GRADUS_NUM_THREADS", workers);
            command.env("GRADUS_FORCE_FORK", forced);
            let told = text(&succeeds(&mut command).stdout);
            assert_eq!(told, wanted, "{what}, {workers} workers, forced: {forced}");
        }
    }
}

#[test]
fn orphaned_tasks_run_in_order() {
    let at = folder("orphans_serial");
    write(&at, "serial.c", include_str!("orphaned_tasks/serial.c"));
    for level in LEVELS {
        accepts(&at, &format!("cc -fopenmp {level} serial.c -o serial"));
        let wanted = "0 0 1\n";
        prints(&at, "serial", &["2", "4"], wanted, level);
    }
}

#[test]
fn order_dependent_orphaned_tasks() {
    let at = folder("orphans_relies");
    write(&at, "relies.c", include_str!("orphaned_tasks/relies.c"));
    accepts(&at, "cc -O1 relies.c -o serial");
    let wanted = text(&succeeds(&mut Command::new(at.join("serial"))).stdout);
    for level in LEVELS {
        accepts(&at, &format!("cc -fopenmp {level} relies.c -o relies"));
        prints(&at, "relies", &["1", "4"], &wanted, level);
    }
}

#[test]
fn order_survives_intrinsics() {
    let at = folder("orphans_words");
    write(&at, "relies.c", include_str!("orphaned_tasks/relies.c"));
    accepts(&at, "cc -O1 relies.c -o serial");
    let wanted = text(&succeeds(&mut Command::new(at.join("serial"))).stdout);
    let written = "-fopenmp -c -emit-llvm --par-target=intrinsics";
    accepts(&at, &format!("cc -O2 {written} relies.c -o relies.bc"));
    accepts(&at, "cc -O2 -fopenmp relies.bc -o relies");
    prints(&at, "relies", &["1", "4"], &wanted, "words");
}

/// With `-g` clang moves the code of a region into a second function, which bitcode of `-O0` does not mark for inlining.
/// The second function receives its thread's number as an argument.
#[test]
fn region_in_debug_function_of_o0_bitcode() {
    let at = folder("orphans_debug");
    write(&at, "debug.c", include_str!("orphaned_tasks/debug.c"));
    let clang = std::env::var("GRADUS_CLANG").unwrap_or_else(|_| "clang-22".into());
    let flags = "-O0 -g -fopenmp -Xclang -disable-O0-optnone -c -emit-llvm";
    shell(&at, &format!("{clang} {flags} debug.c -o debug.bc"));
    for deterministic in ["", "--deterministic"] {
        for level in LEVELS {
            let flags = format!("{level} -fopenmp {deterministic}");
            accepts(&at, &format!("cc {flags} debug.bc -o debug"));
            for team in ["1", "3"] {
                let mut command = Command::new(at.join("debug"));
                command
                    .arg(team)
                    .env("GRADUS_NUM_THREADS", "4")
                    .env("GRADUS_FORCE_FORK", "1");
                let told = text(&succeeds(&mut command).stdout);
                assert_eq!(told, format!("1 {team} 6\n"), "{flags}");
            }
        }
    }
}

#[test]
fn regions_run_tasks_of_other_files() {
    let at = folder("orphans_inside");
    write(&at, "inside.c", include_str!("orphaned_tasks/inside.c"));
    write(&at, "meet.c", include_str!("orphaned_tasks/meet.c"));
    for level in LEVELS {
        let command = format!("cc -fopenmp {level} inside.c meet.c -o inside");
        accepts(&at, &command);
        let wanted = "single 1\npointer 1\nloop 1\nteam 1\n";
        prints(&at, "inside", &["2", "4"], wanted, level);
    }
}

#[test]
fn worksharing_functions_with_regions() {
    let at = folder("orphans_shares");
    write(&at, "shares.c", include_str!("orphaned_tasks/shares.c"));
    for level in ["-O1", "-O2", "-O3"] {
        let command = format!("cc -fopenmp {level} --par-report shares.c -o shares");
        let report = accepts(&at, &command);
        assert!(!report.contains("not raised"), "{level}: {report}");
        prints(&at, "shares", &["1", "2", "4"], "1 1.02298e+06 1\n", level);
    }
}

#[test]
fn nesting_level_queries() {
    let at = folder("orphans_level");
    let source = r#"
#include <omp.h>
#include <stdio.h>
__attribute__((noinline)) static int level(void) { return omp_get_level(); }
int main(void) {
  int of[4], one = 0;
#pragma omp parallel for
  for (int i = 0; i < 4; i++) of[i] = level();
#pragma omp parallel
#pragma omp single
  one = level();
  printf("%d %d %d %d %d %d\n", level(), of[0], of[1], of[2], of[3], one);
}
"#;
    write(&at, "level.c", source);
    for level in LEVELS {
        accepts(&at, &format!("cc -fopenmp {level} level.c -o level"));
        prints(&at, "level", &["1", "2", "4"], "0 1 1 1 1 1\n", level);
    }
}

#[test]
fn nested_region_has_one_thread() {
    let at = folder("orphans_nested");
    write(&at, "nested.c", include_str!("orphaned_tasks/nested.c"));
    for level in LEVELS {
        accepts(&at, &format!("cc -fopenmp {level} nested.c -o nested"));
        let wanted = "single 1\nasked 5\nsections 1\ncalled 1\nif 10\n";
        // A region with a single thread does not prevent nested regions with several.
        prints(&at, "nested", &["2", "4"], wanted, level);
    }
}

/// A long function whose loops are shared by the team of the calling region.
#[test]
fn long_functions_share_their_loops_in_derivatives() {
    let loops: String = (0..32)
        .map(|k| {
            let rows: String = (0..4)
                .map(|j| {
                    let (to, by, from) = (k % 3, (j + k) % 5, (k + 1) % 3);
                    format!(
                        "v[{to}][i][m] += 0.1 * u[i + {}][m] * u[i][{by}] / (2 + v[{from}][i][{j}]);\n",
                        j % 3 - 1
                    )
                })
                .collect();
            format!("#pragma omp for\nfor (int i = 1; i < N - 1; i++) for (int m = 0; m < 5; m++) {{\n{rows}}}\n")
        })
        .collect();
    let source = format!(
        "#include <stdio.h>
        extern int enzyme_dup, enzyme_const;
        void __enzyme_autodiff(void *, ...);
        enum {{ N = 200 }};
        static double u[N][5], v[3][N][5];
        static void sweep(void)
        {{
{loops}        }}
        static double f(const double *x)
        {{
            double sum = 0;
            for (int i = 0; i < N; i++) for (int m = 0; m < 5; m++)
                u[i][m] = x[i] * (m + 1), v[0][i][m] = v[1][i][m] = v[2][i][m] = 1;
            #pragma omp parallel
            sweep();
            for (int i = 0; i < N; i++) for (int m = 0; m < 5; m++) sum += v[0][i][m] * v[2][i][m];
            return sum;
        }}
        int main(void)
        {{
            static double x[N], dx[N];
            double all = 0;
            for (int i = 0; i < N; i++) x[i] = 1 + 0.001 * i;
            __enzyme_autodiff((void *)f, enzyme_dup, x, dx);
            for (int i = 0; i < N; i++) all += dx[i] * (i % 7);
            printf(\"%.10g\\n\", all);
            return 0;
        }}"
    );
    let at = folder("orphans_long");
    write(&at, "p.c", &source);
    accepts(&at, "cc -O1 p.c -o serial");
    let wanted = text(&succeeds(&mut Command::new(at.join("serial"))).stdout);
    let built = gradus(&at, "cc -O1 -fopenmp p.c -o p");
    let said = text(&built.stderr);
    assert!(
        built.status.success() && !said.contains("one thread"),
        "{said}"
    );
    prints(&at, "p", &["1", "3"], &wanted, "-O1");
}

/// A construct in an always-inlined function belongs to the team that runs its caller.
#[test]
fn inlined_constructs_bind_to_team() {
    let at = folder("orphans_inlined");
    write(&at, "inlined.c", include_str!("orphaned_tasks/inlined.c"));
    let wanted = "loops 100 100 100, sum 100, single 1, sections 2, first 1, each locked 1, not met 0, tasks 5, deep 200, pointer 200\n\
                  alone 200 200 200, sum 200, single 2, sections 4\n";
    for level in LEVELS {
        for more in ["", "-g", "--deterministic"] {
            let command = format!("cc -fopenmp {level} {more} inlined.c -o inlined");
            accepts(&at, &command);
            prints(&at, "inlined", &["1", "4"], wanted, &command);
        }
        let command = format!("cc -fopenmp -DIN_TURN_TOO {level} inlined.c -o inlined");
        accepts(&at, &command);
        let wanted = format!("in turn 20\n{wanted}");
        prints(&at, "inlined", &["4"], &wanted, &command);
    }
    accepts(&at, "cc -fopenmp -O2 -flto inlined.c -o inlined");
    prints(&at, "inlined", &["4"], wanted, "-flto");
}

/// A recursive always-inline function stays a call. Its constructs stay with libomp, with libomp's thread numbers.
#[test]
fn recursive_inlined_constructs_keep_thread_numbers() {
    let at = folder("orphans_recursive");
    let source = include_str!("orphaned_tasks/recursive.c");
    write(&at, "recursive.c", source);
    let clang = std::env::var("GRADUS_CLANG").unwrap_or_else(|_| "clang-22".into());
    let flags = "-O3 -fopenmp -c -emit-llvm";
    shell(&at, &format!("{clang} {flags} recursive.c -o optimised.bc"));
    let flags = ["", "-g", "--deterministic", "-DDERIVATIVE"];
    let of_source = flags.map(|flags| format!("{flags} recursive.c"));
    for input in of_source.iter().map(String::as_str).chain(["optimised.bc"]) {
        for level in ["-O0", "-O2"] {
            let command = format!("cc -fopenmp {level} {input} -o recursive");
            accepts(&at, &command);
            for (team, forced) in [("1", "0"), ("3", "1"), ("4", "0")] {
                let mut run = Command::new(at.join("recursive"));
                run.arg(team).env("GRADUS_NUM_THREADS", "4");
                run.env("GRADUS_FORCE_FORK", forced);
                let told = text(&succeeds(&mut run).stdout);
                assert_eq!(told, "0\n", "{command}, a team of {team}");
            }
        }
    }
}

#[test]
fn inlined_template_constructs() {
    let at = folder("orphans_templates");
    write(
        &at,
        "inlined.cpp",
        include_str!("orphaned_tasks/inlined.cpp"),
    );
    for level in LEVELS {
        for more in ["", "-g"] {
            let command = format!("c++ -fopenmp {level} {more} inlined.cpp -o inlined");
            accepts(&at, &command);
            prints(&at, "inlined", &["1", "4"], "499500 1 1000\n", &command);
        }
    }
}

#[test]
fn inlined_fortran_constructs() {
    let at = folder("orphans_procedures");
    let source = "
module shared_work
  implicit none
  integer :: times = 0, ones = 0
contains
  subroutine share()
    integer :: i
    !$omp do
    do i = 1, 100
      !$omp atomic
      times = times + 1
    end do
    !$omp end do
    !$omp single
    ones = ones + 1
    !$omp end single
  end subroutine
  subroutine walk()
    !dir$ forceinline
    call share()
  end subroutine
end module
program all
  use shared_work
  implicit none
  !$omp parallel
  call walk()
  !$omp end parallel
  print '(I0, A, I0)', times, ' ', ones
end program
";
    write(&at, "all.f90", source);
    for level in LEVELS {
        accepts(&at, &format!("fc -fopenmp {level} all.f90 -o all"));
        prints(&at, "all", &["1", "4"], "100 1\n", level);
    }
}

/// Compiles the file with the region and the file with the loop separately, one of them by clang or into an
/// archive.
#[test]
fn regions_of_other_files_share_the_loops_of_inlined_functions() {
    let at = folder("orphans_apart");
    let region = r#"
#include <stdio.h>
void walk(int *count);
int main(void) {
  int count = 0;
#pragma omp parallel
  walk(&count);
  printf("%d\n", count);
}
"#;
    let share = r#"
static inline __attribute__((always_inline)) void share(int *count) {
#pragma omp for
  for (int i = 0; i < 250; i++) __atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
#pragma omp single
  *count += 50;
}
static inline __attribute__((always_inline)) void twice(int *count) { share(count); share(count); }
void walk(int *count) { twice(count); }
"#;
    write(&at, "region.c", region);
    write(&at, "share.c", share);
    for level in LEVELS {
        for [first, second] in [
            ["gradus cc", "gradus cc"],
            ["clang-22", "gradus cc"],
            ["gradus cc", "clang-22"],
        ] {
            shell(
                &at,
                &format!("{first} -fopenmp {level} -c region.c -o region.o"),
            );
            shell(
                &at,
                &format!("{second} -fopenmp {level} -c share.c -o share.o"),
            );
            accepts(&at, "cc -fopenmp region.o share.o -o apart");
            let who = format!("{level}, {first} and {second}");
            prints(&at, "apart", &["1", "4"], "600\n", &who);
        }
        shell(
            &at,
            &format!("gradus cc -fopenmp {level} -c region.c -o region.o"),
        );
        shell(&at, "ar rc lib.a region.o");
        accepts(&at, &format!("cc -fopenmp {level} share.c lib.a -o apart"));
        prints(&at, "apart", &["4"], "600\n", "an archive");
    }
}

/// A file that requests a derivative is compiled in another order.
#[test]
fn inlined_constructs_with_derivatives() {
    let at = folder("orphans_beside");
    let source = r#"
#include <stdio.h>
extern int enzyme_dup;
void __enzyme_autodiff(void *, ...);
static inline __attribute__((always_inline)) void share(const double *x, double *y, int *count) {
#pragma omp for
  for (int i = 0; i < 100; i++) { y[i] += x[i] * x[i]; __atomic_fetch_add(count, 1, __ATOMIC_RELAXED); }
}
static int count;
static void body(const double *x, double *y) { share(x, y, &count); }
static double f(const double *x) {
  double y[100] = {0}, sum = 0;
#pragma omp parallel
  body(x, y);
  for (int i = 0; i < 100; i++) sum += y[i];
  return sum;
}
int main(void) {
  double x[100], dx[100] = {0}, y[100] = {0}, sum = 0;
  for (int i = 0; i < 100; i++) x[i] = i;
#pragma omp parallel
  body(x, y);
  for (int i = 0; i < 100; i++) sum += y[i];
  printf("%d %g %g", count, sum, f(x));
  __enzyme_autodiff((void *)f, enzyme_dup, x, dx);
  printf(" %g %g %d\n", dx[1], dx[99], count);
}
"#;
    write(&at, "beside.c", source);
    for level in LEVELS {
        let command = format!("cc -fopenmp {level} beside.c -o beside");
        accepts(&at, &command);
        let wanted = "100 328350 328350 2 198 300\n";
        prints(&at, "beside", &["1", "4"], wanted, &command);
    }
}

/// Returns the verdicts on the random call graphs of a batch.
fn random_graphs(at: &Path, batch: u64) -> Vec<Verdict> {
    let programs: Vec<_> = (batch * 10..batch * 10 + 10).map(shares_program).collect();
    let gradus = Path::new(env!("CARGO_BIN_EXE_gradus"));
    check_shares(&programs, &SharesWay::of(batch), gradus, at).expect("they are built")
}

/// `cargo xtask fuzz --shares --count N` does long runs.
#[test]
fn random_call_graphs() {
    let at = folder("orphans_random");
    for batch in 0..7 {
        let verdicts = random_graphs(&at, batch);
        let all_right = verdicts.iter().all(|v| *v == Verdict::Right);
        assert!(all_right, "batch {batch}: {verdicts:?}");
    }
}

#[test]
fn seeded_team_fault_is_detected() {
    let at = folder("orphans_mutant");
    plant(Some(Mutant::CallerTeamIgnored));
    let verdicts = random_graphs(&at, 0);
    plant(None);
    let is_wrong = |verdict: &Verdict| matches!(verdict, Verdict::Wrong(_));
    assert!(verdicts.iter().any(is_wrong), "{verdicts:?}");
}

#[test]
fn random_call_graph_coverage() {
    let all = (0..200).flat_map(|seed| shares_program(seed).features);
    let all: BTreeSet<&str> = all.collect();
    let table: BTreeSet<&str> = SHARES_FEATURES.iter().copied().collect();
    assert_eq!(all, table);
}
