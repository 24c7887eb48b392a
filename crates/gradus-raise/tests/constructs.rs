//! Tests of OpenMP constructs: every construct, compiled at every optimisation level, is raised and run.
//! Results equal the serial program's; a construct that is not raised reports reason and line.

use crate::support::{Expected::*, Program, atomics_left, check};
#[allow(dead_code, reason = "the other tests use more of it")]
use gradus_ir::mutant::{Mutant, plant};

/// The outcome of each construct at `-O2 -Xclang -disable-llvm-passes`, as compiled by `gradus cc`.
// table
const PROGRAMS: &[Program] = &[
    Program("parallel for", Loops, "
        #pragma omp parallel for
        for (int i = 0; i < n; i++) a[i] = 2 * b[i];"),
    Program("zero trips", Loops, "
        #pragma omp parallel for
        for (int i = n; i < 5; i++) a[i] = 2 * b[i];"),
    Program("downwards, in steps", Loops, "
        #pragma omp parallel for
        for (long i = n - 1; i > 2; i -= 3) a[i] = b[i] + 1;"),
    Program("unsigned", Loops, "
        #pragma omp parallel for
        for (unsigned i = 3; i < (unsigned)n; i += 2) a[i] = b[i] + 1;"),
    Program("what two iterations read", Loops, "
        double s = 0;
        #pragma omp parallel for reduction(+ : s)
        for (long i = 1; i < n; i++) s += b[i] * b[i - 1];
        a[0] = s;"),
    Program("the same, dealt out as they come", Loops, "
        double s = 0;
        #pragma omp parallel for reduction(+ : s) schedule(dynamic)
        for (long i = 1; i < n; i++) s += b[i] * b[i - 1];
        a[0] = s;"),
    Program("static chunks", Loops, "
        #pragma omp parallel for schedule(static, 3)
        for (int i = 0; i < n; i++) a[i] = b[i] + i;"),
    Program("chunks of a size known late", Loops, "
        #pragma omp parallel for schedule(static, n / 7)
        for (int i = 0; i < n; i++) a[i] = b[i] + i;"),
    Program("dynamic", Loops, "
        #pragma omp parallel for schedule(dynamic)
        for (int i = 0; i < n; i++) a[i] = b[i] * i;"),
    Program("dynamic chunks", Loops, "
        #pragma omp parallel for schedule(dynamic, 4)
        for (int i = 0; i < n; i++) a[i] = b[i] * i;"),
    Program("what an iteration of a chunk leaves to the next", Loops, "
        #pragma omp parallel for schedule(dynamic, 5)
        for (int i = 0; i < n; i++) a[i] = i % 5 ? a[i - 1] + b[i] : b[i];"),
    Program("the same, in chunks of a size known late, and a sum", Loops, "
        int s = 0, m = n / 7;
        #pragma omp parallel for schedule(static, m) reduction(+ : s)
        for (int i = 0; i < n; i++) { a[i] = i % m ? a[i - 1] + b[i] : b[i]; s += i; }
        c[0] = s;"),
    Program("guided", Loops, "
        #pragma omp parallel for schedule(guided, 2)
        for (int i = 0; i < n; i++) a[i] = b[i] * i;"),
    Program("runtime", Loops, "
        #pragma omp parallel for schedule(runtime)
        for (int i = 0; i < n; i++) a[i] = b[i] * i;"),
    Program("collapse", Loops, "
        #pragma omp parallel for collapse(2)
        for (int i = 0; i < 6; i++) for (int j = 0; j < 7; j++) a[i * 7 + j] = i * 10 + j;"),
    Program("two loops, nowait", Loops, "
        #pragma omp parallel
        {
          #pragma omp for schedule(static) nowait
          for (int i = 0; i < n; i++) a[i] = b[i];
          #pragma omp for schedule(static)
          for (int i = 0; i < n; i++) a[i] += 3;
        }"),
    Program("a barrier between loops", Loops, "
        #pragma omp parallel
        {
          #pragma omp for
          for (int i = 0; i < n; i++) a[i] = b[i];
          #pragma omp for
          for (int i = 0; i < n; i++) c[i] = a[n - 1 - i];
        }"),
    Program("lastprivate", Loops, "
        int x = -1, i;
        #pragma omp parallel for lastprivate(x, i)
        for (i = 0; i < n; i++) x = 7 * i;
        a[0] = x + 1000 * i;"),
    Program("lastprivate, zero trips", Loops, "
        int x = -1;
        #pragma omp parallel for lastprivate(x)
        for (int i = n; i < 3; i++) x = 7 * i;
        a[0] = x;"),
    Program("lastprivate, chunks", Loops, "
        int x = -1;
        #pragma omp parallel for lastprivate(x) schedule(dynamic, 3)
        for (int i = 0; i < n; i++) x = 7 * i;
        a[0] = x;"),
    Program("firstprivate", Loops, "
        int k = 5, t[3] = {1, 2, 3};
        #pragma omp parallel for firstprivate(k, t)
        for (int i = 0; i < n; i++) a[i] = t[i % 3] + k;"),
    Program("private", Loops, "
        int t; double buf[2];
        #pragma omp parallel for private(t)
        for (int i = 0; i < n; i++) { t = i * i; a[i] = t; }
        #pragma omp parallel for
        for (int i = 0; i < n; i++) { double own[2] = {i, 2}; own[i % 2] += 1; c[i] = own[0] * own[1]; }"),
    Program("linear", Loops, "
        int k = 5;
        #pragma omp parallel for simd linear(k : 2)
        for (int i = 0; i < n; i++) { a[i] = k; k += 2; }
        a[0] += k;"),
    Program("what each thread counts", Team, "
        int all = 0;
        #pragma omp parallel
        {
          int own = 0;
          #pragma omp for nowait
          for (int i = 0; i < n; i++) { a[i] = b[i]; own++; }
          #pragma omp atomic
          all += own;
        }
        c[0] = all;"),
    Program("the same, in chunks, as they come, downwards", Team, "
        int all = 0, own = 7;
        #pragma omp parallel firstprivate(own)
        {
          #pragma omp for schedule(static, 2)
          for (int i = 0; i < n; i++) { a[i] = b[i]; own += 2; }
          #pragma omp for schedule(dynamic, 2) nowait
          for (int i = n - 1; i > 0; i--) { a[i] += 1; own -= 1; }
          #pragma omp for schedule(guided) nowait
          for (long i = 3; i < n; i += 2) { a[i] += 1; own++; }
          #pragma omp critical
          all += own - 7;
        }
        c[0] = all;"),
    Program("the last that an iteration sets", Team, "
        int x = 0;
        #pragma omp parallel for lastprivate(conditional : x)
        for (int i = 0; i < n; i++) if (i % 7 == 3) x = i;
        a[0] = x;"),
    Program("simd", Loops, "
        #pragma omp parallel for simd
        for (int i = 0; i < n; i++) a[i] = b[i] + 0.5;"),
    Program("sums", Loops, "
        double s = 3; long k = 1;
        #pragma omp parallel for reduction(+ : s, k)
        for (int i = 0; i < n; i++) { s += b[i]; k += i; }
        a[0] = s; a[1] = k;"),
    Program("a difference", Loops, "
        double s = 3;
        #pragma omp parallel for reduction(- : s)
        for (int i = 0; i < n; i++) s -= b[i];
        a[0] = s;"),
    Program("a product", Loops, "
        double p = 1; int q = 1;
        #pragma omp parallel for reduction(* : p, q)
        for (int i = 0; i < 5; i++) { p *= b[i] + 1; q *= i + 1; }
        a[0] = p; a[1] = q;"),
    Program("bits", Loops, "
        unsigned x = 0xff, y = 0, z = 5;
        #pragma omp parallel for reduction(& : x) reduction(| : y) reduction(^ : z)
        for (int i = 0; i < n; i++) { x &= 0xf0 | i; y |= i; z ^= 3 * i; }
        a[0] = x; a[1] = y; a[2] = z;"),
    Program("truth", Loops, "
        int all = 1, any = 0;
        #pragma omp parallel for reduction(&& : all) reduction(|| : any)
        for (int i = 0; i < n; i++) { all = all && b[i] >= 0; any = any || b[i] > 3; }
        a[0] = all; a[1] = any;"),
    Program("extremes", Loops, "
        int lo = 100, hi = -100; double x = -1e9, y = 1e9;
        #pragma omp parallel for reduction(min : lo, y) reduction(max : hi, x)
        for (int i = 0; i < n; i++) {
          int v = (i * 7) % 13;
          if (v < lo) lo = v;
          if (v > hi) hi = v;
          if (b[i] > x) x = b[i];
          if (b[i] < y) y = b[i];
        }
        a[0] = lo; a[1] = hi; a[2] = x; a[3] = y;"),
    Program("a reduction of the user's own", Team, "
        struct pair p = {0, 0};
        #pragma omp parallel for reduction(both : p)
        for (int i = 0; i < n; i++) { p.x += i; p.y += b[i]; }
        a[0] = p.x; a[1] = p.y;"),
    Program("an array of variable length in an iteration", Loops, "
        #pragma omp parallel for
        for (int i = 0; i < n; i++) {
          double own[i + 1];
          for (int k = 0; k <= i; k++) own[k] = b[k] + i;
          a[i] = own[i / 2];
        }"),
    Program("an array of variable length for each thread", Team, "
        int m = n / 4;
        #pragma omp parallel
        {
          double own[m];
          #pragma omp for
          for (int i = 0; i < n; i++) {
            for (int k = 0; k < m; k++) own[k] = b[i] + k;
            a[i] += own[i % m];
          }
        }"),
    Program("an array of variable length that iterations read", Loops, "
        int m = n / 4;
        #pragma omp parallel
        {
          double own[m];
          for (int k = 0; k < m; k++) own[k] = b[k];
          #pragma omp for
          for (int i = 0; i < n; i++) a[i] += own[i % m];
        }"),
    Program("a block of the heap for each thread", Team, "
        #pragma omp parallel
        {
          double *own = malloc(5 * sizeof *own);
          #pragma omp for
          for (int i = 0; i < n; i++) {
            for (int k = 0; k < 5; k++) own[k] = b[i] + k;
            a[i] += own[i % 5];
          }
          free(own);
        }"),
    Program("a block of the heap that iterations read", Loops, "
        #pragma omp parallel
        {
          double *own = malloc(5 * sizeof *own);
          for (int k = 0; k < 5; k++) own[k] = b[k];
          #pragma omp for
          for (int i = 0; i < n; i++) a[i] += own[i % 5];
          free(own);
        }"),
    Program("a block of the heap for each iteration", Loops, "
        #pragma omp parallel for
        for (int i = 0; i < n; i++) {
          double *own = malloc(5 * sizeof *own);
          for (int k = 0; k < 5; k++) own[k] = b[i] + k;
          a[i] += own[i % 5];
          free(own);
        }"),
    Program("a block behind a structure that a function makes", Team, "
        #pragma omp parallel
        {
          struct list own;
          begin(&own, 5);
          #pragma omp for
          for (int i = 0; i < n; i++) {
            for (int k = 0; k < own.length; k++) own.at[k] = b[i] + k;
            a[i] += own.at[i % 5];
          }
          free(own.at);
        }"),
    Program("memory of each thread by a way around", Team, "
        #pragma omp parallel
        {
          double own[5];
          struct list by = {own, 5};
          begin_at(&by, own);
          #pragma omp for
          for (int i = 0; i < n; i++) {
            for (int k = 0; k < by.length; k++) by.at[k] = b[i] + k;
            a[i] += by.at[i % 5];
          }
        }"),
    Program("a block that one thread allocates for all", Loops, "
        double *all = 0;
        #pragma omp parallel
        {
          #pragma omp single
          all = malloc(n * sizeof *all);
          #pragma omp for
          for (int i = 0; i < n; i++) all[i] = b[i] + 1;
          #pragma omp for
          for (int i = 0; i < n; i++) a[i] = all[n - 1 - i];
        }
        free(all);"),
    Program("a reduction of an array", Team, "
        double h[4] = {1, 2, 3, 4};
        #pragma omp parallel for reduction(+ : h[:4])
        for (int i = 0; i < n; i++) h[i % 4] += b[i];
        for (int i = 0; i < 4; i++) a[i] = h[i];"),
    Program("a reduction by hand", Loops, "
        double s = 0;
        #pragma omp parallel
        {
          double own = 0;
          #pragma omp for nowait
          for (int i = 0; i < n; i++) own += b[i];
          #pragma omp critical
          s += own;
        }
        a[0] = s;"),
    Program("sections", Loops, "
        #pragma omp parallel sections
        {
          #pragma omp section
          a[0] = 1;
          #pragma omp section
          a[1] = 2;
          #pragma omp section
          a[2] = 3;
        }"),
    Program("single", Loops, "
        #pragma omp parallel
        {
          #pragma omp single
          a[0] += 1;
          #pragma omp for
          for (int i = 1; i < n; i++) a[i] = a[0] + i;
        }"),
    Program("single, copied to all", Team, "
        #pragma omp parallel
        {
          int k;
          #pragma omp single copyprivate(k)
          k = n;
          #pragma omp critical
          c[0] = k;
        }
        a[0] = c[0];"),
    Program("master", Loops, "
        #pragma omp parallel
        {
          #pragma omp for
          for (int i = 1; i < n; i++) a[i] = b[i];
          #pragma omp master
          a[0] = a[1] + a[2];
        }"),
    Program("masked", Team, "
        #pragma omp parallel
        {
          #pragma omp masked filter(0)
          a[0] = 5;
        }"),
    Program("critical", Loops, "
        long s = 0;
        #pragma omp parallel for
        for (int i = 0; i < n; i++) {
          #pragma omp critical(gate)
          s += i;
        }
        a[0] = s;"),
    Program("atomic", Loops, "
        long s = 0; double d = 0;
        #pragma omp parallel for
        for (int i = 0; i < n; i++) {
          #pragma omp atomic
          s += i;
          #pragma omp atomic update
          d += b[i];
        }
        a[0] = s; a[1] = d;"),
    Program("barrier", Team, "
        long k = 0;
        #pragma omp parallel num_threads(4)
        {
          #pragma omp master
          c[0] = 4;
          #pragma omp barrier
          #pragma omp single
          a[0] = c[0] + 1;
        }"),
    Program("thread numbers", Team, "
        double part[64] = {0};
        #pragma omp parallel
        {
          int t = omp_get_thread_num();
          #pragma omp for
          for (int i = 0; i < n; i++) part[t] += b[i];
        }
        for (int i = 0; i < 64; i++) a[0] += part[i];"),
    Program("parts by hand", Team, "
        #pragma omp parallel
        {
          int t = omp_get_thread_num(), k = omp_get_num_threads();
          for (int i = n * t / k; i < n * (t + 1) / k; i++) a[i] = b[i];
        }"),
    Program("tasks", Loops, "
        #pragma omp parallel
        #pragma omp single
        a[0] = fib(9);"),
    Program("tasks in a loop", Loops, "
        #pragma omp parallel
        #pragma omp single
        for (int i = 0; i < n; i++) {
          #pragma omp task firstprivate(i)
          a[i] = 3 * i;
        }"),
    Program("a task with whole objects", Loops, "
        #pragma omp parallel
        #pragma omp single
        {
          int t[4] = {1, 2, 3, 4};
          for (int i = 0; i < 4; i++) {
            #pragma omp task
            a[i] = t[i];
          }
          #pragma omp taskwait
          t[0] = 9;
          #pragma omp task
          a[5] = t[0];
        }"),
    Program("a task under a condition", Loops, "
        #pragma omp parallel
        #pragma omp single
        {
          #pragma omp task if (n > 100)
          a[0] = 1;
          #pragma omp task if (0)
          a[1] = 2;
          #pragma omp taskwait
          a[2] = a[0] + a[1];
        }"),
    Program("untied tasks under a condition", Loops, "
        #pragma omp parallel
        #pragma omp single
        for (int i = 0; i < n; i++) {
          #pragma omp task untied if(i % 3 > 0) firstprivate(i)
          a[i] = b[i] + i;
        }"),
    Program("final and untied tasks", Loops, "
        #pragma omp parallel
        #pragma omp single
        a[0] = count(6);"),
    Program("a group of tasks", Loops, "
        #pragma omp parallel
        #pragma omp single
        {
          #pragma omp taskgroup
          {
            #pragma omp task
            a[0] = fib(7);
            #pragma omp task
            a[1] = fib(8);
          }
          a[2] = a[0] + a[1];
        }"),
    Program("taskloop", Loops, "
        #pragma omp parallel
        #pragma omp single
        #pragma omp taskloop grainsize(3)
        for (int i = 0; i < n; i++) a[i] = b[i] + i;"),
    Program("taskloop, lastprivate", Loops, "
        int x = 0;
        #pragma omp parallel
        #pragma omp single
        #pragma omp taskloop num_tasks(4) lastprivate(x)
        for (int i = 0; i < n; i++) x = i;
        a[0] = x;"),
    Program("taskloop, what an iteration of a piece leaves to the next", Loops, "
        #pragma omp parallel
        #pragma omp single
        {
          #pragma omp taskloop num_tasks(1)
          for (int i = 1; i < n; i++) a[i] = a[i - 1] + b[i];
          #pragma omp taskloop grainsize(strict : 5)
          for (int i = 0; i < n; i++) c[i] = i % 5 ? c[i - 1] + b[i] : b[i];
          #pragma omp taskloop grainsize(n)
          for (int i = n - 1; i > 0; i -= 2) b[i - 1] = b[i] + i;
        }"),
    Program("taskloop, not deferred", Loops, "
        int s = 0, t = 0;
        #pragma omp parallel
        #pragma omp single
        {
          #pragma omp taskloop if (n > 1000) grainsize(4)
          for (int i = 0; i < n; i++) s = (3 * s + i) % 1000;
          #pragma omp taskloop if (n < 1000) num_tasks(6)
          for (int i = 0; i < n; i++) a[i] = b[i] + i;
          #pragma omp taskloop if (0)
          for (int i = n; i < n; i++) t = 1;
        }
        c[0] = s; c[1] = t;"),
    Program("taskloop, final", Loops, "
        #pragma omp parallel
        #pragma omp single
        #pragma omp taskloop final(n > 5) grainsize(3)
        for (int i = 0; i < n; i++) {
          #pragma omp task
          a[i] = b[i] + i;
          #pragma omp task
          c[i] = 2 * b[i];
          #pragma omp taskwait
        }"),
    Program("nested", Loops, "
        #pragma omp parallel for
        for (int i = 0; i < 5; i++) {
          #pragma omp parallel for
          for (int j = 0; j < 6; j++) a[i * 6 + j] = i + 10 * j;
        }"),
    Program("a variable of an inner branch", Loops, "
        int s = 0;
        #pragma omp parallel for reduction(+ : s)
        for (int i = 0; i < n; i++)
          for (int j = 0; j < 3; j++)
            if ((i + j) % 2) {
              double x, y;
              halves(a[i] + j, &x, &y);
              b[i] += x;
              s += (int)(x + y);
            }
        c[0] = s;"),
    Program("orphaned", Team, "
        #pragma omp parallel
        { orphan(a, n); orphan(a, n); }"),
    Program("under a condition", Loops, "
        #pragma omp parallel for if (n > 100) num_threads(n / 10)
        for (int i = 0; i < n; i++) a[i] = i;"),
    Program("under a condition, of a number of threads that is computed", Team, "
        #pragma omp parallel for if (b[3] > 3) num_threads((int)b[3] - 3)
        for (int i = 1; i < n; i++) a[i] = a[i - 1] + i;"),
    Program("backwards", Loops, "
        #pragma omp parallel for
        for (int i = n - 1; i >= 0; i--) a[i] = i;"),
    Program("backwards in chunks", Loops, "
        #pragma omp parallel for schedule(dynamic, 3)
        for (long i = n - 1; i > 0; i -= 2) a[i] = b[i - 1];"),
    Program("for the first time in a loop", Loops, "
        for (int k = 0; k < 3; k++) {
          #pragma omp parallel for
          for (int i = 0; i < n; i++) a[i] += k * b[i];
        }"),
    Program("a loop in a team", Loops, "
        #pragma omp parallel
        for (int k = 0; k < 3; k++) {
          #pragma omp for
          for (int i = 0; i < n; i++) c[i] = a[i] + k;
          #pragma omp for
          for (int i = 0; i < n; i++) a[i] = c[n - 1 - i];
        }"),
    Program("threadprivate", Unraised("a `threadprivate` or `thread_local` variable is used"), "
        #pragma omp parallel
        own = 1;"),
    Program("ordered", Unraised("`ordered` is used"), "
        #pragma omp parallel for ordered
        for (int i = 0; i < n; i++) {
          #pragma omp ordered
          a[0] = 2 * a[0] + i;
        }"),
    Program("depend", Unraised("dependences between tasks or iterations are used"), "
        #pragma omp parallel
        #pragma omp single
        {
          #pragma omp task depend(out : a[0])
          a[0] = 1;
          #pragma omp task depend(in : a[0])
          a[1] = a[0];
        }"),
    Program("cancel", Unraised("cancellation is used"), "
        #pragma omp parallel for
        for (int i = 0; i < n; i++) {
          a[i] = i;
          #pragma omp cancel for if (a[i] < 0)
        }"),
    Program("locks", Unraised("an OpenMP lock is used"), "
        #pragma omp parallel
        { lock(); unlock(); }"),
    Program("a thread number in a call", Unraised("the region hands its thread number to `by_number`, which is not inlined"), "
        __kmpc_fork_call(0, 1, by_hand, a);"),
    Program("a comparison of the thread number", Unraised("a comparison reads the thread number"), "
        __kmpc_fork_call(0, 1, compares, a);"),
    Program("a switch on the thread number", Unraised("a branch depends on the thread number"), "
        __kmpc_fork_call(0, 1, branches, a);"),
    Program("an index from the thread number", Unraised("an address depends on the thread number"), "
        __kmpc_fork_call(0, 1, indexes, a);"),
    Program("a loop that counts to the thread number", Unraised("a comparison reads the thread number"), "
        __kmpc_fork_call(0, 1, counts, a);"),
    Program("an atomic add of the thread number", Unraised("the region stores its thread number"), "
        __kmpc_fork_call(0, 1, adds, a);"),
    Program("an atomic exchange for the thread number", Unraised("the region stores its thread number"), "
        __kmpc_fork_call(0, 1, exchanges, a);"),
    Program("a copy of the thread number's bytes", Unraised("`llvm.memcpy.p0.p0.i64` reads the thread number"), "
        __kmpc_fork_call(0, 1, copies, a);"),
    Program("a thread number that a loop carries into a call", Unraised("the region hands its thread number to `by_number`, which is not inlined"), "
        __kmpc_fork_call(0, 1, carries, a);"),
    Program("a thread number in calls of the runtime", Team, "
        __kmpc_fork_call(0, 1, only_calls, a);"),
    Program("a reduction over tasks", Unraised("a task reduction is used"), "
        int s = 0;
        #pragma omp parallel
        #pragma omp single
        #pragma omp taskloop reduction(+ : s)
        for (int i = 0; i < n; i++) s += i;"),
];

#[test]
fn constructs_are_raised_or_rejected() {
    check(PROGRAMS, crate::support::AS_BUILT, true);
}

at_levels!(PROGRAMS);

/// Optimised loops: iterations count from 0 and add their range's start; sums are in registers and still stored
/// to memory, also in nested loops.
#[rustfmt::skip]
const RENUMBERED: &[Program] = &[
    Program("rows", Loops, "
        #pragma omp parallel for
        for (int j = 1; j < 5; j++)
          for (int i = 1; i < 7; i++) a[j * 8 + i] = b[j * 8 + i - 1] + b[(j - 1) * 8 + i];"),
    Program("a sum", Loops, "
        double s = 0;
        #pragma omp parallel for reduction(+ : s)
        for (int i = 0; i < n; i++) s += b[i] * i;
        a[0] = s;"),
    Program("a sum over a nest", Loops, "
        double s = 1;
        #pragma omp parallel for reduction(+ : s)
        for (int j = 0; j < n / 8; j++)
          for (int i = 0; i < n % 9; i++) if (b[j * 8 + i] > j) s += b[j * 8 + i];
        a[0] = s;"),
    Program("part after part, asked for at the end of the one before", Loops, "
        double s = 0;
        #pragma omp parallel for schedule(dynamic, 3) reduction(+ : s)
        for (int i = 0; i < n; i++) {
          if (i % 3 == 1) a[i] = b[(i + 1) % 43];
          s += b[(i + 1) % 43] + i;
        }
        c[0] = s;"),
    Program("parts of a nest, and what the last one gives", Loops, "
        double x = -1;
        #pragma omp parallel for schedule(guided) lastprivate(x) collapse(2)
        for (int i = 0; i < 6; i++)
          for (int j = 0; j < 7; j++) { x = b[i * 7 + j] * 3; a[i * 7 + j] = x + b[(i + j * 5) % 43]; }
        c[0] = x;"),
    Program("chunks, and what the last one gives", Loops, "
        double x = -1;
        #pragma omp parallel for schedule(static, 4) lastprivate(x)
        for (int i = 0; i < n - 2; i++) { x = b[i] * 3; a[i / 4] += x + b[i + 1]; }
        c[0] = x;"),
    Program("chunks, backwards", Loops, "
        #pragma omp parallel for schedule(static, 4)
        for (long i = n - 1; i >= 0; i -= 2) a[i] = b[i] + i;"),
    Program("chunks, no iterations", Loops, "
        double x = -1;
        #pragma omp parallel for schedule(static, 4) lastprivate(x)
        for (int i = (int)b[3]; i < 4; i++) x = a[i] = i;
        c[0] = x;"),
    Program("the same, no iterations", Team, "
        double x = -1;
        #pragma omp parallel for schedule(guided) lastprivate(x) collapse(2)
        for (int i = 0; i < n - 40; i++)
          for (int j = n; j < 40; j++) x = a[i * 7 + j] = b[i] * 3;
        c[0] = x;"),
];

#[test]
fn renumbered_loops_are_raised_to_loops() {
    check(RENUMBERED, &["-O1"], true);
}

/// A variable only updated in a loop is a reduction. Loads, used old values, updates in tasks and an escaping
/// address prevent the reduction.
#[test]
fn atomic_updates_of_a_local_variable_are_reductions() {
    let loops = [
        ("s += i;", 0),
        ("if (i % 3) { s -= -i; } else { s += 2; }", 0),
        ("s += i; a[i] = s;", 1),
        ("{ long t; OLD t = s++; a[i] = t; }", 1),
        ("TASK s += i;", 1),
        (
            "s += i; static long *seen; __atomic_exchange_n(&seen, &s, 5);",
            2,
        ),
    ];
    for (statement, left) in loops {
        let body = format!(
            "#define TASK _Pragma(\"omp task\")\n#define OLD _Pragma(\"omp atomic capture\")\n\
             long s = 0;\n#pragma omp parallel for\nfor (int i = 0; i < n; i++) {{ {statement} }}\na[0] = s;"
        );
        let body = body.replace("s +=", "_Pragma(\"omp atomic\") s +=");
        let body = body.replace("s -=", "_Pragma(\"omp atomic\") s -=");
        assert_eq!(atomics_left(&body), left, "{body}");
    }
}

/// Computed conditions as compilers emit them: if a condition is false, iterations depend on each other.
#[rustfmt::skip]
const CONDITIONS: &[Program] = &[
    Program("under a condition that is computed", Loops, "
        #pragma omp parallel for if (b[3] > 100) schedule(static, 3)
        for (int i = 1; i < n; i++) a[i] = a[i - 1] + i;
        #pragma omp parallel if (b[3] < 100)
        {
          #pragma omp for
          for (int i = 0; i < n; i++) c[i] = a[n - 1 - i] * 2;
        }"),
];

#[test]
fn regions_under_conditions_are_raised_to_loops() {
    check(CONDITIONS, crate::support::AS_BUILT, true);
    check(CONDITIONS, &["-O0"], true);
}

/// Optimised loops that are still single loops.
#[test]
fn at_o2_without_copies_of_loops() {
    check(
        PROGRAMS,
        &["-O2", "-fno-vectorize", "-fno-unroll-loops"],
        false,
    );
}

#[test]
fn at_o3() {
    check(PROGRAMS, &["-O3"], false);
}

/// Static loops with bounds that a rank computes: at the end of the index type, and with chunks larger than the
/// loop. Most ranks have no iteration.
const COMPUTED_SHARES: &[Program] = &[
    Program(
        "bounds at the end of the type",
        Team,
        "
        __kmpc_fork_call(0, 1, ends_at_type, a);",
    ),
    Program(
        "chunks larger than the loop",
        Team,
        "
        __kmpc_fork_call(0, 1, has_huge_chunks, a);",
    ),
];

#[test]
fn computed_shares_stay_inside_of_the_type() {
    check(COMPUTED_SHARES, crate::support::AS_BUILT, true);
}

#[test]
fn seeded_fault_of_idle_shares_is_detected() {
    plant(Some(Mutant::IdleShareWraps));
    let found = crate::support::one(&COMPUTED_SHARES[0], crate::support::AS_BUILT, true);
    plant(None);
    assert!(
        found.is_err(),
        "the ranks without iterations are not noticed"
    );
}
