//! Guarantees to programs: the requested number of threads of a region, also in derivatives, the order of
//! final tasks, and regions that stay with OpenMP's library.

use crate::support::{folder, succeeds, text};
use std::path::Path;
use std::process::{Command, Output};

fn build(folder: &Path, driver: &str, source: &str, options: &[&str]) -> String {
    let file = match driver {
        "c++" => "program.cpp",
        _ => "program.c",
    };
    std::fs::write(folder.join(file), source).expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_gradus"));
    command.arg(driver).args(options);
    command.args(["-fopenmp", file, "-o", "program", "-lm", "-lpthread"]);
    text(&succeeds(command.current_dir(folder)).stderr)
}

/// Checks the program's output for each default number of threads, with and without forced forks.
fn prints(folder: &Path, wanted: &str) {
    for threads in ["1", "2", "4"] {
        for forced in ["0", "1"] {
            let mut command = Command::new(folder.join("program"));
            command.env("OMP_NUM_THREADS", threads);
            command.env("GRADUS_FORCE_FORK", forced);
            let told = text(&succeeds(&mut command).stdout);
            assert_eq!(told, wanted, "{threads} threads, forced: {forced}");
        }
    }
}

/// Four threads, each with a quarter of the work.
const QUARTERS: &str = "
#include <omp.h>
#include <stdio.h>
void squares(const double *x, double *y, int n) {
#pragma omp parallel num_threads(4)
  {
    int t = omp_get_thread_num();
    for (int i = t * n / 4; i < (t + 1) * n / 4; i++) y[i] = x[i] * x[i];
  }
}
double sum(const double *x, int n) {
  double y[1000], s = 0;
  for (int i = 0; i < n; i++) y[i] = 0;
  squares(x, y, n);
  for (int i = 0; i < n; i++) s += y[i];
  return s;
}
";

#[test]
fn num_threads_is_honored() {
    let folder = folder("teams-quarters");
    let main = "int main(void) { double x[1000]; for (int i = 0; i < 1000; i++) x[i] = i;
      printf(\"%g\\n\", sum(x, 1000)); }";
    for more in [&[][..], &["--deterministic"]] {
        let options = [&["-O2"], more].concat();
        build(&folder, "cc", &format!("{QUARTERS}{main}"), &options);
        prints(&folder, "3.32834e+08\n");
    }
}

#[test]
fn concurrent_and_nested_num_threads() {
    let folder = folder("teams-at-once");
    let source = r#"
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
static void *work(void *given) {
  long *total = given;
  for (int r = 0; r < 50; r++) {
    long s[4] = {0, 0, 0, 0};
#pragma omp parallel num_threads(4)
    {
      int t = omp_get_thread_num();
      s[t] = t + 1;
#pragma omp barrier
      if (s[(t + 1) % 4] == 0) s[t] = -1000;
    }
    *total += s[0] + s[1] + s[2] + s[3];
  }
  return 0;
}
static long nested(int levels) {
  long c = 0;
  omp_set_max_active_levels(levels);
#pragma omp parallel num_threads(2)
  {
#pragma omp parallel num_threads(3)
    {
#pragma omp atomic
      c += 1 + omp_get_thread_num();
    }
  }
  return c;
}
static int only_the_last(void) {
  int found = 0;
#pragma omp parallel num_threads(4)
  {
    if (omp_get_thread_num() == 3) found = 3;
#pragma omp for
    for (int i = 0; i < 8; i++) { }
  }
  return found;
}
static int tasks_of_each(void) {
  int made = 0;
#pragma omp parallel num_threads(4)
  {
#pragma omp task shared(made)
    {
#pragma omp atomic
      made++;
    }
  }
  return made;
}
int main(void) {
  long a = 0, b = 0;
  pthread_t other;
  pthread_create(&other, 0, work, &a);
  work(&b);
  pthread_join(other, 0);
  printf("%ld %ld %ld", a, b, nested(2));
  printf(" %ld %d %d\n", nested(1), only_the_last(), tasks_of_each());
}
"#;
    build(&folder, "cc", source, &["-O2"]);
    prints(&folder, "500 500 12 2 3 4\n");
}

fn check(folder: &Path, source: &str, argument: &str) -> Output {
    std::fs::write(folder.join("sum.c"), source).expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_gradus"));
    command.args([
        "check", "sum.c", "-f", "sum", "--arg", "n=100", "--arg", argument,
    ]);
    command
        .args(["--", "-O2", "-g", "-fopenmp"])
        .current_dir(folder);
    command.output().expect("it runs")
}

#[test]
fn num_threads_in_derivatives() {
    let folder = folder("teams-derived");
    let output = check(&folder, QUARTERS, "x=rand(n)");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let meeting = QUARTERS.replace(
        "y[i] = x[i] * x[i];\n",
        "y[i] = x[i] * x[i];\n#pragma omp barrier\n    y[t] += y[n - 1 - t];\n",
    );
    let output = check(&folder, &meeting, "x=rand(n)");
    assert!(output.status.success(), "{}", text(&output.stderr));
    // With a flush, threads may wait for each other: the team cannot be split into loops.
    let waiting = meeting.replace(
        "#pragma omp barrier",
        "#pragma omp barrier\n#pragma omp flush",
    );
    let output = check(&folder, &waiting, "x=rand(n)");
    let said = text(&output.stderr);
    assert!(!output.status.success(), "{said}");
    assert!(
        said.contains("error[GRD0011]") && said.contains("sum.c:5"),
        "{said}"
    );
}

#[test]
fn children_of_final_tasks_undeferred() {
    let folder = folder("teams-final");
    let source = r#"
#include <omp.h>
#include <stdio.h>
static void more(int *b, int *same, int thread) {
#pragma omp task shared(b, same)
  {
    *same &= thread == omp_get_thread_num();
    *b += 5;
#pragma omp task shared(b)
    { *b /= 3; }
  }
#pragma omp task shared(b)
  { *b *= 7; }
}
int main(int argc, char **argv) {
  int same = 1, wrong = 0;
  for (int round = 0; round < 200; round++) {
    int b[8], ended = argc;
#pragma omp parallel num_threads(4)
    {
#pragma omp single
      for (int t = 0; t < 8; t++) {
        b[t] = 10;
#pragma omp task final(ended) shared(b, same) firstprivate(t)
        more(&b[t], &same, omp_get_thread_num());
      }
    }
    for (int t = 0; t < 8; t++) wrong += b[t] != 35;
  }
  printf("%d %d\n", same, wrong);
}
"#;
    build(&folder, "cc", source, &["-O2"]);
    prints(&folder, "1 0\n");
}

#[test]
fn unraised_region_with_num_threads() {
    let folder = folder("teams-kept");
    let source = r#"
#include <stdio.h>
int main(void) {
  int a[100], sum = 0;
  for (int i = 0; i < 100; i++) a[i] = i;
#pragma omp parallel num_threads(4) shared(a, sum)
  {
#pragma omp single
#pragma omp taskloop reduction(+ : sum)
    for (int i = 0; i < 100; i++) sum += a[i];
  }
  printf("%d\n", sum);
}
"#;
    let said = build(&folder, "cc", source, &["-O2"]);
    assert!(said.contains("GRD0036"), "{said}");
    prints(&folder, "4950\n");
}

#[test]
fn queries_in_cplusplus_invokes() {
    let folder = folder("teams-invokes");
    let source = r#"
#include <omp.h>
#include <cstdio>
__attribute__((noinline)) double half(double *x, double y) { *x = y * 0.5; return y; }
int main() {
  double last = 0, start = 1024;
  int np = 20, k, steps = 0;
#pragma omp parallel num_threads(1)
  {
    int i, half_of, kk;
    for (k = 1; k <= np; k++) {
      kk = k;
      int thread = omp_get_thread_num();
      for (i = 1; i <= 100; i++) {
        half_of = kk / 2;
        if (half_of == 0) break;
        last = half(&start, start + thread);
        kk = half_of;
        steps += i;
      }
    }
  }
  std::printf("%d %d %g\n", k, steps, last);
}
"#;
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        build(&folder, "c++", source, &[level]);
        prints(&folder, "21 112 1.13687e-13\n");
    }
}

#[test]
fn large_scoped_arrays() {
    let folder = folder("teams-large");
    let source = r#"
#include <omp.h>
#include <stdio.h>
int main(void) {
  double total = 0;
#pragma omp parallel num_threads(3) reduction(+ : total)
  {
    double page[20000];
    for (int i = 0; i < 20000; i++) page[i] = i + omp_get_thread_num();
#pragma omp barrier
    for (int i = 0; i < 20000; i += 1000) total += page[i];
  }
  printf("%g\n", total);
}
"#;
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        build(&folder, "cc", source, &[level]);
        prints(&folder, "570060\n");
    }
}

/// An untied task is split into parts at its scheduling points: in a loop, a part runs repeatedly.
#[test]
fn untied_tasks_finish() {
    let folder = folder("teams-untied");
    let source = r#"
#include <stdio.h>
int main(void) {
  static double a[32][32];
  for (int i = 0; i < 32; i++)
    for (int j = 0; j < 32; j++) a[i][j] = i == j ? 40 : 1.0 / (1 + i + j);
#pragma omp parallel
#pragma omp single nowait
#pragma omp task untied
  for (int k = 0; k < 32; k++) {
    for (int i = k + 1; i < 32; i++)
#pragma omp task untied firstprivate(k, i) shared(a)
      a[i][k] /= a[k][k];
#pragma omp taskwait
    for (int i = k + 1; i < 32; i++)
#pragma omp task untied firstprivate(k, i) shared(a)
      for (int j = k + 1; j < 32; j++) a[i][j] -= a[i][k] * a[k][j];
#pragma omp taskwait
  }
  double product = 1;
  for (int k = 0; k < 32; k++) product *= a[k][k] / 40;
  printf("%.10f %.12f\n", product, a[31][30]);
}
"#;
    std::fs::write(folder.join("program.c"), source).expect("written");
    let mut serial = Command::new("clang-22");
    serial.args(["-O2", "-ffp-contract=off", "program.c", "-o", "serial"]);
    succeeds(serial.current_dir(&folder));
    let wanted = text(&succeeds(&mut Command::new(folder.join("serial"))).stdout);
    for level in ["-O1", "-O2", "-O3"] {
        build(&folder, "cc", source, &[level, "-ffp-contract=off"]);
        prints(&folder, &wanted);
    }
}

/// Children of an untied task are awaited where the program waits, not in each part.
#[test]
fn untied_task_children_are_parallel() {
    let folder = folder("teams-untied-beside");
    let source = r#"
#include <stdio.h>
#include <unistd.h>
static int second, met;
int main(void) {
#pragma omp parallel
#pragma omp single nowait
#pragma omp task untied
  {
    for (int i = 0; i < 2; i++)
#pragma omp task untied firstprivate(i)
      if (i == 0)
        for (int tries = 0; tries < 3000 && !met; tries++) {
          met = __atomic_load_n(&second, __ATOMIC_ACQUIRE);
          usleep(1000);
        }
      else
        __atomic_store_n(&second, 1, __ATOMIC_RELEASE);
#pragma omp taskwait
  }
  printf("%d\n", met);
}
"#;
    for level in ["-O1", "-O3"] {
        build(&folder, "cc", source, &[level]);
        let mut program = Command::new(folder.join("program"));
        program.env("OMP_NUM_THREADS", "2");
        assert_eq!(text(&succeeds(&mut program).stdout), "1\n", "{level}");
    }
}

/// Functions whose bodies the import skips: text output, and code on no-return paths. Their writes are
/// assumed after the call.
const LEFT_OUT: &str = "
#include <cstdio>
#include <cstdlib>
#include <string>
static long told;
__attribute__((noinline)) void tell(double x) { told++; std::printf(\"%g\\n\", x); }
[[noreturn]] __attribute__((noinline)) void fail() { std::printf(\"%ld\\n\", told); std::exit(3); }
__attribute__((noinline)) double half(double x) {
  if (x < 0) {
    tell(x);
    fail();
  }
  return x / 2;
}
__attribute__((noinline)) long changed(long n) {
  std::string text = std::string(60, 'a') + std::to_string(n);
  const char *at = text.data();
  char before = at[50];
  text.replace(50, 1, 1, 'z');
  text.insert(text.size(), 1, '!');
  return (text.data()[50] - before) + long(text.size());
}
int main() {
  double s = 0, x[100];
  long t = 0;
#pragma omp parallel for
  for (int i = 0; i < 100; i++) x[i] = half(i);
#pragma omp parallel for reduction(+ : t)
  for (int i = 0; i < 2000; i++) t += changed(i);
  for (double v : x) s += v;
  std::printf(\"%g %ld\\n\", s, t);
}
";

#[test]
fn skipped_functions_have_no_region() {
    let folder = folder("left_out");
    let said = build(&folder, "c++", LEFT_OUT, &["-O3"]);
    assert!(!said.contains("GRD0036"), "{said}");
    // 2000 · (25 + 60 + 1) and the digits of the numbers.
    prints(&folder, "2475 178890\n");
}

/// A task of a region sets the number of threads of nested regions, and the number of nested active levels.
#[test]
fn settings_in_regions_are_scoped() {
    let folder = folder("teams-set-inside");
    let source = r#"
#include <omp.h>
#include <stdio.h>
static int count(void) {
  int threads = 0;
#pragma omp parallel
  {
#pragma omp atomic
    threads++;
#pragma omp barrier
    if (threads != omp_get_num_threads()) threads = -1000;
  }
  return threads;
}
int main(void) {
  omp_set_dynamic(0);
  omp_set_max_active_levels(2);
  int inside[2], most[2];
  omp_set_num_threads(2);
#pragma omp parallel
  {
    int t = omp_get_thread_num();
    omp_set_num_threads(7 + t);
    inside[t] = count();
    most[t] = omp_get_max_threads();
  }
  printf("%d %d %d %d\n", inside[0], inside[1], most[0], most[1]);
  printf("%d %d\n", count(), omp_get_max_threads());
  omp_set_max_active_levels(1);
#pragma omp parallel num_threads(2)
  inside[omp_get_thread_num()] = count();
  printf("%d %d\n", inside[0], inside[1]);
  omp_set_max_active_levels(0);
  printf("%d %d\n", count(), omp_get_max_active_levels());
}
"#;
    build(&folder, "cc", source, &["-O2"]);
    prints(&folder, "7 8 7 8\n2 2\n1 1\n1 0\n");
}

/// A list of thread counts has an entry per nesting level.
#[test]
fn numbers_of_threads_may_be_a_list() {
    let folder = folder("teams-list");
    let source = r#"
#include <omp.h>
#include <stdio.h>
int main(void) {
  int ranks = 0, first = 0;
#pragma omp parallel
  {
#pragma omp single
    first = omp_get_num_threads();
#pragma omp parallel reduction(+ : ranks)
    ranks += omp_get_num_threads() == 3;
  }
  printf("%d %d\n", first, ranks);
}
"#;
    build(&folder, "cc", source, &["-O2"]);
    let mut command = Command::new(folder.join("program"));
    command.env_remove("GRADUS_NUM_THREADS");
    command.env("OMP_NUM_THREADS", "2,3");
    assert_eq!(text(&succeeds(&mut command).stdout), "2 6\n");
}

/// A loop whose iterations all add to a variable has a race, and the serial result on a single thread.
#[test]
fn races_are_serial_on_one_thread() {
    let folder = folder("teams-one-thread");
    let source = r#"
#include <stdio.h>
static double u[1000];
static long g;
int main(void) {
  int a = 0;
  double s = 0;
  for (int i = 0; i < 1000; i++) u[i] = i;
#pragma omp parallel for
  for (int i = 0; i < 10; i++) a += 1;
#pragma omp parallel for
  for (int i = 0; i < 1000; i++) s += u[i];
#pragma omp parallel for collapse(2)
  for (int i = 0; i < 30; i++)
    for (int j = 0; j < 30; j++) g += i * j;
  printf("%d %g %ld\n", a, s, g);
}
"#;
    build(&folder, "cc", source, &["-O2"]);
    let mut command = Command::new(folder.join("program"));
    command.env("OMP_NUM_THREADS", "1");
    assert_eq!(text(&succeeds(&mut command).stdout), "10 499500 189225\n");
}

/// A captured float lies in memory with the TBAA type of a pointer-sized integer, and a nested region reads
/// it as a float. Here both regions are inlined into a single function.
#[test]
fn captured_floats_keep_values() {
    let folder = folder("teams-words");
    let source = r#"
#include <stdio.h>
static int q[25];
void scale(int rows) {
  for (int k = 0; k < 5; k++) {
    int tmp = 0;
#pragma omp target map(tofrom : tmp)
#pragma omp parallel for reduction(+ : tmp)
    for (int i = 0; i < rows; i++) tmp += q[i * 5 + k];
#pragma omp target
#pragma omp parallel for
    for (int i = 0; i < rows; i++) q[i * 5 + k] *= tmp;
  }
}
void again(int rows) {
  for (int k = 0; k < 5; k++) {
#pragma omp parallel num_threads(1) firstprivate(rows, k)
    {
#pragma omp parallel for
      for (int i = 0; i < rows; i++) q[i * 5 + k] += k;
    }
  }
}
int main(void) {
  for (int i = 0; i < 25; i++) q[i] = i;
  scale(5);
  int s = 0;
  for (int i = 0; i < 25; i++) s += q[i] * i;
  printf("%d\n", s);
  again(5);
  for (int i = 0; i < 25; i++) s += q[i] * i;
  printf("%d\n", s);
}
"#;
    for level in ["-O1", "-O2", "-O3"] {
        build(&folder, "cc", source, &[level]);
        prints(&folder, "300000\n600650\n");
    }
}

/// Sections and iterations that wait for each other through the operating system: each needs a thread of
/// its own, the first time and the thousandth.
#[test]
fn mutually_waiting_work_has_threads() {
    let folder = folder("teams-waiting");
    let source = r#"
#include <stdio.h>
#include <unistd.h>
int ends[2], bad;
FILE *in, *out;
void produce(void), consume(void);
static void take(char *text) { if (read(ends[0], text, 5) != 5) bad++; }
int main(void) {
  char text[32] = "", line[32] = "";
  if (pipe(ends)) return 1;
  in = fdopen(ends[0], "r");
  out = fdopen(ends[1], "w");
  alarm(60);
#pragma omp parallel sections num_threads(2)
  {
#pragma omp section
    take(text);
#pragma omp section
    if (write(ends[1], "hello", 5) != 5) bad++;
  }
#pragma omp parallel for num_threads(2) schedule(static, 1)
  for (int i = 0; i < 2; i++) {
    if (i == 0) bad += !fgets(line, 32, in);
    else { fputs("again\n", out); fflush(out); }
  }
  if (THREADS > 1)
    for (int i = 0; i < 5000; i++) {
#pragma omp parallel sections
      {
#pragma omp section
        consume();
#pragma omp section
        produce();
      }
    }
  printf("%s %s%d\n", text, line, bad);
}
"#;
    let other = r#"
#include <semaphore.h>
static sem_t there;
__attribute__((constructor)) static void begin(void) { sem_init(&there, 0, 0); }
void produce(void) { sem_post(&there); }
void consume(void) { sem_wait(&there); }
"#;
    std::fs::write(folder.join("other.c"), other).expect("written");
    for threads in ["1", "2", "4"] {
        let defined = format!("-DTHREADS={threads}");
        build(&folder, "cc", source, &["-O2", &defined, "other.c"]);
        let mut command = Command::new(folder.join("program"));
        command.env("OMP_NUM_THREADS", threads);
        let told = text(&succeeds(&mut command).stdout);
        assert_eq!(told, "hello again\n0\n", "{threads} threads");
    }
}

/// A region with more threads than the setting for later regions, and settings made by its threads.
#[test]
fn thread_settings_of_ranks() {
    let folder = folder("teams-set");
    let source = r#"
#include <omp.h>
#include <stdio.h>
int inner(void);
int main(void) {
  int told = 0, own = 0, kept = 0, inside = 0;
  omp_set_num_threads(2);
#pragma omp parallel num_threads(4) reduction(+ : told, own, kept, inside)
  {
    int t = omp_get_thread_num(), before = omp_get_max_threads();
    told += before;
    omp_set_num_threads(t + 1);
#pragma omp barrier
    own += omp_get_max_threads() == t + 1;
    inside += inner();
    omp_set_num_threads(before);
    kept += omp_get_max_threads() == 2;
  }
  printf("%d %d %d %d\n", told, own, kept, inside);
}
"#;
    // Slots for the maximum number of threads: the nested region has a single thread.
    let other = r#"
#include <omp.h>
int number(int i);
int inner(void) {
  int places[8] = {0}, most = omp_get_max_threads(), bad = 0;
#pragma omp parallel for
  for (int i = 0; i < 8; i++) places[i] = number(i);
  for (int i = 0; i < 8; i++) bad += places[i] >= most;
  return bad;
}
"#;
    let third = "#include <omp.h>\nint number(int i) { return omp_get_thread_num() + 0 * i; }\n";
    std::fs::write(folder.join("other.c"), other).expect("written");
    std::fs::write(folder.join("third.c"), third).expect("written");
    build(&folder, "cc", source, &["-O2", "other.c", "third.c"]);
    prints(&folder, "8 4 4 0\n");
}

/// The threads of all regions together stay within the program's limit.
#[test]
fn thread_limit_is_honored() {
    let folder = folder("teams-limit");
    let source = r#"
#include <omp.h>
#include <stdio.h>
static int ranks(void) {
  int n = 0;
#pragma omp parallel num_threads(2) reduction(+ : n)
  n += omp_get_num_threads() > 0;
  return n;
}
int main(void) {
  int given = 0, asked = 0, inside = 0;
#pragma omp parallel reduction(+ : given)
  given += omp_get_num_threads() > 0;
#pragma omp parallel num_threads(5) reduction(+ : asked)
  asked += omp_get_num_threads() > 0;
#pragma omp parallel num_threads(2) reduction(+ : inside)
  { int t = omp_get_thread_num(); inside += ranks() + 0 * t; }
  printf("%d %d %d\n", given, asked, inside);
}
"#;
    build(&folder, "cc", source, &["-O2"]);
    for (limit, wanted) in [
        ("1", "1 1 1\n"),
        ("3", "3 3 2\n"),
        ("4", "4 4 4\n"),
        ("9", "4 5 4\n"),
    ] {
        let mut command = Command::new(folder.join("program"));
        command.env("OMP_NUM_THREADS", "4");
        command.env("OMP_MAX_ACTIVE_LEVELS", "2");
        command.env("OMP_THREAD_LIMIT", limit);
        let told = text(&succeeds(&mut command).stdout);
        assert_eq!(told, wanted, "at most {limit}");
    }
}
