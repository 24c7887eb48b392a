//! Functions that no parallel region stands around. Their tasks are, outside of all regions, the work of the thread that
//! makes them, in its order, and inside of one others come to them. What they share between the ranks of a team is that
//! team's, and the regions that they begin are their own.

mod support;

use std::path::Path;
use std::process::Command;
use support::{accepts, folder, gradus, succeeds, text, write};

const LEVELS: [&str; 4] = ["-O0", "-O1", "-O2", "-O3"];

/// What a program prints on so many workers, at every loop's own size and with all forked.
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
fn tasks_outside_of_regions_are_one_threads_in_its_order() {
    let at = folder("orphans_serial");
    write(&at, "serial.c", include_str!("orphans/serial.c"));
    for level in LEVELS {
        accepts(&at, &format!("cc -fopenmp {level} serial.c -o serial"));
        let wanted = "0 0 1\n";
        prints(&at, "serial", &["2", "4"], wanted, level);
    }
}

#[test]
fn programs_that_rely_on_that_order_compute_what_serial_ones_do() {
    let at = folder("orphans_relies");
    write(&at, "relies.c", include_str!("orphans/relies.c"));
    accepts(&at, "cc -O1 relies.c -o serial");
    let wanted = text(&succeeds(&mut Command::new(at.join("serial"))).stdout);
    for level in LEVELS {
        accepts(&at, &format!("cc -fopenmp {level} relies.c -o relies"));
        prints(&at, "relies", &["1", "4"], &wanted, level);
    }
}

#[test]
fn that_order_is_kept_where_code_goes_on_as_words() {
    let at = folder("orphans_words");
    write(&at, "relies.c", include_str!("orphans/relies.c"));
    accepts(&at, "cc -O1 relies.c -o serial");
    let wanted = text(&succeeds(&mut Command::new(at.join("serial"))).stdout);
    let written = "-fopenmp -c -emit-llvm --par-target=words";
    accepts(&at, &format!("cc -O2 {written} relies.c -o relies.bc"));
    accepts(&at, "cc -O2 -fopenmp relies.bc -o relies");
    prints(&at, "relies", &["1", "4"], &wanted, "words");
}

#[test]
fn regions_come_to_the_tasks_of_other_files() {
    let at = folder("orphans_inside");
    write(&at, "inside.c", include_str!("orphans/inside.c"));
    write(&at, "meet.c", include_str!("orphans/meet.c"));
    for level in LEVELS {
        let command = format!("cc -fopenmp {level} inside.c meet.c -o inside");
        accepts(&at, &command);
        let wanted = "single 1\npointer 1\nloop 1\nteam 1\n";
        prints(&at, "inside", &["2", "4"], wanted, level);
    }
}

#[test]
fn functions_that_share_work_have_regions_of_their_own() {
    let at = folder("orphans_shares");
    write(&at, "shares.c", include_str!("orphans/shares.c"));
    for level in ["-O1", "-O2", "-O3"] {
        let command = format!("cc -fopenmp {level} --par-report shares.c -o shares");
        let report = accepts(&at, &command);
        assert!(!report.contains("left as it is"), "{level}: {report}");
        prints(&at, "shares", &["1", "2", "4"], "1 1.02298e+06 1\n", level);
    }
}

#[test]
fn functions_are_told_how_many_regions_are_around() {
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
fn a_region_in_a_region_has_one_thread() {
    let at = folder("orphans_nested");
    write(&at, "nested.c", include_str!("orphans/nested.c"));
    for level in LEVELS {
        accepts(&at, &format!("cc -fopenmp {level} nested.c -o nested"));
        let wanted = "single 1\nasked 5\nsections 1\ncalled 1\nif 10\n";
        // One of one thread alone lets others have several.
        prints(&at, "nested", &["2", "4"], wanted, level);
    }
}

/// A function whose loops are shared by the team of the region that calls it may be long.
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
