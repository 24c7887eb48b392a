//! Derivatives requested inside parallel regions: each thread requests the derivatives for its share of the
//! work, and worksharing functions work for any enclosing region.

use crate::support::{accepts, folder, refuses, succeeds, text, write};
use std::path::Path;
use std::process::Command;

const LEVELS: [&str; 4] = ["-O0", "-O1", "-O2", "-O3"];
const WANTED: &str = "loops 270 steps 5 parts 6104 number 90\ncalled 182\n";

fn is_right(at: &Path, program: &str, what: &str) {
    for workers in ["1", "2", "4"] {
        for forced in ["0", "1"] {
            let mut command = Command::new(at.join(program));
            command.env("GRADUS_NUM_THREADS", workers);
            command.env("GRADUS_FORCE_FORK", forced);
            let told = text(&succeeds(&mut command).stdout);
            assert_eq!(told, WANTED, "{what}, {workers} workers, forced: {forced}");
        }
    }
}

#[test]
fn threads_request_derivatives() {
    let at = folder("grad_inside_region");
    write(&at, "asks.c", include_str!("grad_inside_region/asks.c"));
    for level in LEVELS {
        accepts(&at, &format!("cc -fopenmp {level} asks.c -o asks"));
        is_right(&at, "asks", level);
    }
}

/// The region is in a file, and the worksharing function with the request in another.
#[test]
fn orphaned_requests_in_other_files() {
    let at = folder("asked_in_regions_apart");
    let source = include_str!("grad_inside_region/asks.c");
    let (asking, main) = source.split_once("int main").expect("two parts");
    write(&at, "asking.c", &asking.replace("static double", "double"));
    let declared = "#include <stdio.h>
double loops(void), steps(int), parts(void), by_number(void);
void shared(double *, int), tasks(double *, int);
int main";
    write(&at, "main.c", &format!("{declared}{main}"));
    for level in LEVELS {
        accepts(&at, &format!("cc -fopenmp {level} -c asking.c -o asking.o"));
        accepts(&at, &format!("cc -fopenmp {level} -c main.c -o main.o"));
        accepts(&at, "cc -fopenmp asking.o main.o -o asks");
        is_right(&at, "asks", level);
    }
}

/// A call whose function is defined elsewhere is deferred to the link, next to a call lowered here.
#[test]
fn requests_in_regions_wait_for_link() {
    let at = folder("asked_in_regions_later");
    let asking = "extern int enzyme_out;
double __enzyme_autodiff(void *, ...);
double fixed__enzyme_autodiff(void *, int, double);
static double square(double r) { return r * r; }
double other(double);
void both(double *g, double *h, int n) {
#pragma omp parallel for
  for (int i = 0; i < n; i++) {
    g[i] = __enzyme_autodiff((void *)square, enzyme_out, (double)i);
    h[i] = fixed__enzyme_autodiff((void *)other, enzyme_out, (double)i);
  }
}
";
    write(&at, "asking.c", asking);
    let main = "#include <stdio.h>
double other(double x) { return x * x * x; }
void both(double *, double *, int);
int main(void) {
  double g[4], h[4];
  both(g, h, 4);
  printf(\"%g %g\\n\", g[3], h[3]);
}
";
    write(&at, "main.c", main);
    for output in ["", "-emit-llvm"] {
        let build = format!("cc -O2 -fopenmp -c {output}");
        accepts(&at, &format!("{build} asking.c -o asking.o"));
        accepts(&at, &format!("{build} main.c -o main.o"));
        if output.is_empty() {
            accepts(&at, "cc -O2 -fopenmp asking.o main.o -o both");
        } else {
            let mut link = Command::new("llvm-link-22");
            link.args(["asking.o", "main.o", "-o", "both.bc"]);
            succeeds(link.current_dir(&at));
            accepts(&at, "cc -O2 -fopenmp both.bc -o both");
        }
        let told = text(&succeeds(&mut Command::new(at.join("both"))).stdout);
        assert_eq!(told, "6 27\n", "{output}");
    }
}

/// A worksharing function whose derivative every thread of the region requests: the derivative of a share
/// is not that of the whole function.
#[test]
fn worksharing_gradients_are_refused() {
    let at = folder("asked_in_regions_shares");
    let source = "extern int enzyme_dup, enzyme_const;
void __enzyme_autodiff(void *, ...);
void f(const double *x, double *y, int n) {
#pragma omp for
  for (int i = 0; i < n; i++) y[i] += x[i] * x[i];
}
static void ask(const double *x, double *dx, double *y, double *dy, int n) {
  __enzyme_autodiff((void *)f, enzyme_dup, x, dx, enzyme_dup, y, dy, enzyme_const, n);
}
int main(void) {
  double x[8] = {1}, dx[8] = {0}, y[8] = {0}, dy[8] = {1};
#ifdef INSIDE
#pragma omp parallel
#endif
  ask(x, dx, y, dy, 8);
  return dx[0] != 2;
}
";
    write(&at, "shares.c", source);
    for level in LEVELS {
        let build = format!("cc -fopenmp -g {level} shares.c -o shares");
        accepts(&at, &build);
        succeeds(&mut Command::new(at.join("shares")));
        let said = refuses(&at, &format!("{build} -DINSIDE"), "GRD0011");
        assert!(said.contains("shares.c:8:"), "{said}");
    }
}
