//! Test support: C programs compiled with and without OpenMP, raised, and run by the interpreter.

use gradus_interp::{Machine, Options};
use gradus_ir::{Op, OpKind, Unit};
use gradus_llvm::{Host, Pipeline};
use gradus_raise::{Orphans, Outcome, Raised, raise};
use std::io::Write;
use std::process::{Command, Stdio};

/// A program: name, expected outcome of its region, and the body of a function with `n` = 43 and the arrays
/// `a`, `b` and `c`.
pub struct Program(pub &'static str, pub Expected, pub &'static str);

/// The expected outcome of a program's first region.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Expected {
    /// No ranks are left.
    Loops,
    /// A team is left.
    Team,
    /// The region remains, for the given reason.
    Unraised(&'static str),
}

/// The flags of `gradus cc`.
pub const AS_BUILT: &[&str] = &["-O2", "-Xclang", "-disable-llvm-passes"];

/// Declarations for the programs. Without OpenMP directives have no effect, and one thread exists.
const BEFORE: &str = "
#include <stdlib.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
static omp_lock_t gate_;
static void lock(void) { omp_set_lock(&gate_); }
static void unlock(void) { omp_unset_lock(&gate_); }
#else
static int omp_get_thread_num(void) { return 0; }
static int omp_get_num_threads(void) { return 1; }
static void lock(void) {}
static void unlock(void) {}
#endif
struct pair { int x; double y; };
static void add_pair(struct pair *a, struct pair *b) { a->x += b->x; a->y += b->y; }
#pragma omp declare reduction(both : struct pair : add_pair(&omp_out, &omp_in)) \\
    initializer(omp_priv = (struct pair){0, 0})
struct list { double *at; int length; };
static void begin(struct list *l, int length) { l->at = malloc(length * sizeof *l->at); l->length = length; }
static void begin_at(struct list *l, double *at) { l->at = at; }
static int own;
#pragma omp threadprivate(own)
static long fib(long n) {
  long x, y;
  if (n < 2) return n;
  #pragma omp task shared(x)
  x = fib(n - 1);
  #pragma omp task shared(y)
  y = fib(n - 2);
  #pragma omp taskwait
  return x + y;
}
static long count(long n) {
  long x = 0, y = 0;
  if (n < 1) return 1;
  #pragma omp task shared(x) final(n < 4)
  x = count(n - 1);
  #pragma omp task shared(y) untied
  y = count(n - 2);
  #pragma omp taskwait
  return x + y;
}
__attribute__((noinline)) static void halves(double v, double *x, double *y) {
  *x = v > 4 ? v - 4 : 0;
  *y = v > 4 ? 4 : v;
}
__attribute__((noinline)) static double use_pair(struct pair *p) { return p->x * 3 + p->y; }
__attribute__((noinline)) static double use_bytes(char *p) { return p[3] + 2 * p[6]; }
static double twice(double x) { return 2 * x; }
static double thrice(double x) { return 3 * x; }
static double (*pick(int n))(double) { return n > 40 ? twice : thrice; }
struct big { int x; double y[5]; };
static double first(struct big s) { return s.x + s.y[0]; }
static double last(struct big s) { return s.x + s.y[4]; }
static double (*pick_big(int n))(struct big) { return n > 40 ? first : last; }
#ifdef _OPENMP
extern void __kmpc_fork_call(void *, int, void *, ...), __kmpc_barrier(void *, int);
extern void __kmpc_for_static_init_4(void *, int, int, int *, int *, int *, int *, int, int);
extern void __kmpc_for_static_fini(void *, int);
#else
#define __kmpc_fork_call(place, count, code, a) code(&(int){0}, &(int){0}, a)
static void __kmpc_barrier(void *place, int number) {}
static void __kmpc_for_static_init_4(void *place, int number, int schedule, int *last, int *lower, int *upper, int *stride, int step, int chunk) {}
static void __kmpc_for_static_fini(void *place, int number) {}
#endif
__attribute__((noinline)) static double by_number(int number) { return number < 0; }
static void by_hand(int *number, int *bound, double *a) { a[7] = by_number(*number); }
static int number_sum;
static void compares(int *number, int *bound, double *a) { if (*number == 0) a[7] = 1; }
static void branches(int *number, int *bound, double *a) { switch (*number) { case 0: a[7] = 1; break; case 1: a[8] = 1; } }
static void indexes(int *number, int *bound, double *a) { a[*number] = 1; }
static void adds(int *number, int *bound, double *a) { __atomic_fetch_add(&number_sum, *number, 0); }
static void exchanges(int *number, int *bound, double *a) { int none = -1; __atomic_compare_exchange_n(&number_sum, &none, *number, 0, 0, 0); }
static void copies(int *number, int *bound, double *a) { memcpy(a, number, sizeof *number); }
static void carries(int *number, int *bound, double *a) {
  int k = *number;
  for (int i = 0; i < 3; i++) k = k * 2 + 1;
  a[7] = by_number(k);
}
static void counts(int *number, int *bound, double *a) { for (int i = 0; i < *number; i++) a[7] = 1; }
static void only_calls(int *number, int *bound, double *a) { __kmpc_barrier(0, *number); __atomic_fetch_add(&number_sum, 1, 0); }
static inline __attribute__((always_inline)) void share(int number, int schedule, int first, int last, int chunk, double *a) {
  int is_last = 0, lower = first, upper = last, stride = 1;
  __kmpc_for_static_init_4(0, number, schedule, &is_last, &lower, &upper, &stride, 1, chunk);
  for (long i = lower; i <= upper; i += 2) __atomic_fetch_add((long *)&a[i - first], 1, 0);
  for (long i = lower + 1L; i <= upper; i += 2) __atomic_fetch_add((long *)&a[i - first], 1, 0);
  __kmpc_for_static_fini(0, number);
}
static void ends_at_type(int *number, int *bound, double *a) { share(*number, 34, 2147483645, 2147483647, 1, a); }
static void has_huge_chunks(int *number, int *bound, double *a) { share(*number, 33, 0, 9, 1 << 30, a); }
static void orphan(double *a, int n) {
  #pragma omp for
  for (int i = 0; i < n; i++) a[i] += i;
}
";

/// The initial contents of the arrays: integers, hence sums are exact in every order.
const AROUND: &str = "
double test(void) {
  double a[64], b[64], c[64];
  for (int i = 0; i < 64; i++) { a[i] = 0; b[i] = (i * 5) % 11; c[i] = 0; }
  body(a, b, c, 43);
  double sum = 0;
  for (int i = 0; i < 64; i++) sum += a[i] * (i + 1) + 3 * c[i];
  return sum;
}
";

fn source(body: &str) -> String {
    format!(
        "{BEFORE}__attribute__((noinline)) static void body(double *a, double *b, double *c, int n) {{\n\
         {body}\n}}\n{AROUND}"
    )
}

/// Compiles C to bitcode.
pub fn bitcode(source: &str, flags: &[&str]) -> Vec<u8> {
    let clang = std::env::var("GRADUS_CLANG").unwrap_or_else(|_| "clang-22".into());
    let mut child = Command::new(clang)
        .args(["-x", "c", "-", "-c", "-emit-llvm", "-o", "-", "-g1", "-w"])
        .args(flags)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("clang starts");
    let written = child
        .stdin
        .take()
        .map(|mut i| i.write_all(source.as_bytes()));
    let output = child.wait_with_output().expect("clang ends");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}\n{source}");
    assert!(matches!(written, Some(Ok(()))));
    output.stdout
}

/// Imports a program as on the parallel path.
pub fn imported(bytes: &[u8]) -> Unit {
    let mut host = Host::parse(bytes, "program.bc").expect("bitcode");
    host.run(Pipeline::EarlyPlain).expect("the pipeline");
    let imported = host.import_all();
    assert!(imported.refused.is_empty());
    imported.unit
}

/// Raises a unit and verifies the result.
pub fn raised(unit: &mut Unit) -> Raised {
    let raised = raise(unit, &Orphans::Raise);
    let findings = gradus_ir::verify(unit);
    if let Some(first) = findings.first() {
        panic!("{first} {:?}\n{}", first.notes, gradus_ir::print(unit));
    }
    raised
}

/// Returns the reason why the first region of a body is a team of ranks, and its line in the body, counted from
/// 0.
pub fn team_reason(body: &str) -> Option<(String, u32)> {
    let source = source(body);
    let flags: Vec<&str> = AS_BUILT.iter().copied().chain(["-fopenmp"]).collect();
    let mut unit = imported(&bitcode(&source, &flags));
    let regions = raised(&mut unit).regions;
    let first = regions.into_iter().find(|r| r.function == "body")?;
    let Outcome::Team(Some(why)) = first.outcome else {
        return None;
    };
    let before = source.split(body).next()?.lines().count() as u32;
    Some((why.text, why.span?.line.checked_sub(before)?))
}

/// Returns the number of atomic updates left in a body.
pub fn atomics_left(body: &str) -> usize {
    let source = source(body);
    let flags: Vec<&str> = AS_BUILT.iter().copied().chain(["-fopenmp"]).collect();
    let mut unit = imported(&bitcode(&source, &flags));
    raised(&mut unit);
    let func = unit.function("body").expect("it is defined");
    let body = unit.functions[func].body.as_deref().expect("it is raised");
    let is_update = |op: &Op| matches!(body.kind(*op), OpKind::AtomicRmw(..));
    body.walk(body.root()).filter(is_update).count()
}

/// Returns the result of `test` with `team` ranks per team, in a random order if given.
pub fn run(unit: &Unit, team: u64, random_order: Option<u64>) -> Result<f64, String> {
    let options = Options {
        team,
        random_order,
        ..Options::default()
    };
    match Machine::with_options(unit, options).call("test", &[]) {
        Ok(Some(value)) => value.as_f64().ok_or("no number".into()),
        other => Err(format!("{other:?}")),
    }
}

/// Checks all programs; with `shapes` also the outcomes of their regions.
pub fn check(programs: &[Program], flags: &[&str], shapes: bool) {
    let mut wrong = Vec::new();
    for program in programs {
        if let Err(why) = one(program, flags, shapes) {
            wrong.push(format!("{}: {why}", program.0));
        }
    }
    assert!(wrong.is_empty(), "{flags:?}\n{}", wrong.join("\n"));
}

/// Checks a program; with `shapes` also the outcome of its region.
pub fn one(program: &Program, flags: &[&str], shapes: bool) -> Result<(), String> {
    let source = source(program.2);
    let serial = run(&imported(&bitcode(&source, &["-O1"])), 1, None)?;
    let flags: Vec<&str> = flags.iter().copied().chain(["-fopenmp"]).collect();
    let mut unit = imported(&bitcode(&source, &flags));
    let raised = raised(&mut unit);
    let first = raised.regions.iter().find(|r| r.function == "body");
    let Some(first) = first else {
        // An optimiser has removed the region.
        return if shapes {
            Err("no region is recorded".into())
        } else {
            Ok(())
        };
    };
    if let Outcome::Unraised(reason) = &first.outcome {
        let line = reason.span.as_ref().map_or(0, |s| s.line);
        return match program.1 {
            Expected::Unraised(text) if text == reason.text && line > 0 => Ok(()),
            // Earlier optimisation may prevent raising.
            _ if !shapes => Ok(()),
            _ => Err(format!("kept at line {line}: {}", reason.text)),
        };
    }
    let fits = match (&first.outcome, program.1) {
        (Outcome::Loops, Expected::Loops) | (Outcome::Team(_), Expected::Team) => true,
        (_, Expected::Unraised(_)) if shapes => return Err(format!("raised: {:?}", first.outcome)),
        _ => !shapes,
    };
    for (team, order) in [(1, None), (4, None), (3, Some(7)), (5, Some(12345))] {
        let own =
            run(&unit, team, order).map_err(|e| format!("{e}\n{}", gradus_ir::print(&unit)))?;
        if own != serial {
            let text = gradus_ir::print(&unit);
            return Err(format!("{own} and not {serial} with {team} ranks\n{text}"));
        }
    }
    match fits {
        true => Ok(()),
        false => Err(format!("{:?}\n{}", first.outcome, gradus_ir::print(&unit))),
    }
}

/// Tests of the programs after optimisation: results are correct, whatever the outcome of the regions.
#[allow(unused_macros, reason = "a test of other programs has its own levels")]
macro_rules! at_levels {
    ($programs:expr) => {
        #[test]
        fn at_o0() {
            check($programs, &["-O0"], false);
        }

        #[test]
        fn at_o1() {
            check($programs, &["-O1"], false);
        }

        #[test]
        fn at_o2() {
            check($programs, &["-O2"], false);
        }
    };
}
