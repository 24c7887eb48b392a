/* gradus/cilk.h: gradus/parallel.h in Cilk's words.
 *
 *     x = cilk_spawn f(a, b);    arguments and the place of the result are computed before the spawn
 *     cilk_sync;
 *     cilk_for (a; b; c) STATEMENT
 *     cilk_scope STATEMENT
 *
 * C: what is spawned gives a number, a pointer or nothing; a structure is spawned by
 * gr_spawn x = f(a, b);  and cilk_spawn x = f(a, b), the word before the place, is C++'s only.  C++ needs exceptions
 * (clang's default) for the word in front of a call. */
#ifndef GRADUS_CILK_H
#define GRADUS_CILK_H

#include <gradus/parallel.h>

#if !defined(__GRADUS__)
#define cilk_spawn
#elif defined(__cplusplus)
#define cilk_spawn !__gr_spawning_call() ? throw 0 :
#else
#define cilk_spawn !__gr_spawning_call() ? 0 :
#endif
#define cilk_sync gr_sync()
#define cilk_scope gr_scope
#define cilk_for gr_for

#endif
