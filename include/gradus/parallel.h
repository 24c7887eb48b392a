/* gradus/parallel.h: fork and join for C and C++.
 *
 *     gr_spawn STATEMENT         the statement is a task: it may run while what follows does
 *     gr_sync();                 waits for the tasks that this function has made so far
 *     gr_scope STATEMENT         at its end its tasks are waited for; a function's end waits for its own
 *     gr_for (a; b; c) STATEMENT the iterations may run at once
 *
 * A program without races means what it means without these words, and that is what every other compiler
 * makes of it: there they stand for nothing. `gradus cc` and `gradus c++` make parallel code of them.
 *
 * A local variable whose address is not taken: a task takes along the value that it has at the spawn, and
 * what the task leaves in it is there after the next gr_sync (gr_spawn x = f(n - 1);). What is declared in
 * a task or an iteration is its own. All other memory is shared.
 * A gr_for whose iterations only add to a local variable, multiply it, or take the larger or smaller, is a
 * reduction: gr_for (long i = 0; i < n; i++) s += x[i];  Sums are then put together in another order.
 * A statement that is left by break, goto or return, and a loop whose number of iterations is not known when
 * it starts, run where they stand; the compiler says so.
 * C++: an exception that leaves a task arrives at the gr_sync or the scope's end that waits for it, one that
 * leaves an iteration at the loop's end, after all others have ended; of several, one arrives. A statement
 * whose exception would end a variable of the function around it, or meet a handler there, runs where it
 * stands.
 *
 * C++: gr::join(f, g), gr::for_each(lo, hi, f) and gr::sum(lo, hi, start, f) take lambdas.
 * Cilk's words: #include <gradus/cilk.h>. */
#ifndef GRADUS_PARALLEL_H
#define GRADUS_PARALLEL_H

#if defined(__GRADUS__)

#ifdef __cplusplus
extern "C" {
#define GR_NOTHROW noexcept
#else
#define GR_NOTHROW
#endif
#define GR_MARKER __attribute__((nothrow, convergent, nomerge))
GR_MARKER int __gr_spawning(void) GR_NOTHROW;
GR_MARKER int __gr_spawning_call(void) GR_NOTHROW;
GR_MARKER int __gr_looping(void) GR_NOTHROW;
GR_MARKER int __gr_scoping(void) GR_NOTHROW;
GR_MARKER void __gr_syncing(void) GR_NOTHROW;
#undef GR_MARKER
#undef GR_NOTHROW
#ifdef __cplusplus
}
#endif

#define gr_spawn if (!__gr_spawning()) {} else
#define gr_scope if (!__gr_scoping()) {} else
/* The property tells the loop from those inside of it, if an optimiser takes it away. */
#define gr_for if (!__gr_looping()) {} else _Pragma("clang loop pipeline(disable)") for
#define gr_sync() __gr_syncing()

#else

#define gr_spawn
#define gr_scope
#define gr_for for
#define gr_sync() ((void)0)

#endif

#ifdef __cplusplus
namespace gr {

/* Both calls, possibly at once. */
template <typename First, typename Second>
void join(First first, Second second) {
  gr_scope {
    gr_spawn { first(); }
    second();
  }
}

/* f(i) for every i from lo up to hi, in any order. */
template <typename Index, typename Body>
void for_each(Index lo, Index hi, Body body) {
  gr_for (Index i = lo; i < hi; ++i) { body(i); }
}

/* start + f(lo) + … + f(hi - 1). */
template <typename Value, typename Index, typename Body>
Value sum(Index lo, Index hi, Value start, Body body) {
  gr_for (Index i = lo; i < hi; ++i) { start += body(i); }
  return start;
}

} // namespace gr
#endif

#endif
