//! `schedule(runtime)`: ranks get the iterations determined by `OMP_SCHEDULE` or by the program, in loops
//! of a region and of its callees.

use crate::support::{folder, shell, text, write};

const PROGRAM: &str = r#"
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#define N 13
static int who[N], times[N];
static void shared(void) {
#pragma omp for schedule(runtime)
  for (int i = 0; i < N; i++) {
    who[i] = omp_get_thread_num();
#pragma omp atomic
    times[i]++;
  }
}
static void show(const char *name) {
  printf("%s:", name);
  for (int i = 0; i < N; i++) printf(" %d", times[i] == 1 ? who[i] : -1);
  for (int i = 0; i < N; i++) times[i] = 0;
  printf("\n");
}
int main(int argc, char **argv) {
#pragma omp parallel num_threads(3)
  {
    int me = omp_get_thread_num();
#pragma omp for schedule(runtime)
    for (int i = 0; i < N; i++) {
      who[i] = me;
#pragma omp atomic
      times[i]++;
    }
  }
  show("region");
#pragma omp parallel num_threads(3)
  shared();
  show("function");
  omp_set_schedule(omp_sched_static, 4);
#pragma omp parallel num_threads(3)
  {
    int me = omp_get_thread_num();
#pragma omp for schedule(runtime)
    for (int i = 0; i < N; i++) {
      who[i] = me;
#pragma omp atomic
      times[i]++;
    }
  }
  show("set");
  omp_sched_t kind;
  int chunk;
  omp_get_schedule(&kind, &chunk);
  printf("%d %d\n", (int)kind & 7, chunk);
  return 0;
}
"#;

#[test]
fn runtime_schedule_iterations() {
    let folder = folder("schedules");
    write(&folder, "program.c", PROGRAM);
    let blocks = "0 0 0 0 0 1 1 1 1 1 2 2 2";
    let pairs = "0 0 1 1 2 2 0 0 1 1 2 2 0";
    let fours = "0 0 0 0 1 1 1 1 2 2 2 2 0";
    for level in ["-O1", "-O3"] {
        shell(
            &folder,
            &format!("gradus cc -fopenmp {level} program.c -o program"),
        );
        for (variables, all) in [
            ("-u OMP_SCHEDULE", blocks),
            ("OMP_SCHEDULE=static", blocks),
            ("OMP_SCHEDULE=static,2", pairs),
            ("OMP_SCHEDULE=monotonic:static,2", pairs),
        ] {
            let run = shell(&folder, &format!("env {variables} ./program"));
            let wanted = format!("region: {all}\nfunction: {all}\nset: {fours}\n1 4\n");
            assert_eq!(text(&run.stdout), wanted, "{level} {variables}");
        }
        for schedule in ["dynamic", "dynamic,3", "guided,2"] {
            let run = shell(&folder, &format!("env OMP_SCHEDULE={schedule} ./program"));
            let printed = text(&run.stdout);
            // Each iteration ran exactly once, on any rank.
            assert!(!printed.contains("-1"), "{level} {schedule}: {printed}");
            assert!(
                printed.ends_with(&format!("set: {fours}\n1 4\n")),
                "{printed}"
            );
        }
    }
}
