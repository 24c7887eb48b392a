/* gradus/steps.h: the gradient of many steps from few copies of the state, where a tape of all steps would
 * not fit, or is larger than what the steps change.
 *
 *     void step(struct sim *s, long k);                          one step, the k-th from 0
 *     void state(struct sim *s, struct gradus_state *c) {        all memory that steps change and read
 *         gradus_keep(c, &s->time, sizeof s->time);
 *         gradus_keep(c, s->x, s->n * sizeof *s->x);
 *     }
 *     GRADUS_STEPS(run, struct sim, step, state);                at file scope
 *
 * makes a function
 *
 *     void run(struct sim *s, long steps, long copies);
 *
 * which does step(s, 0), step(s, 1) and so on. In reverse mode it has a gradient of its own: the forward
 * sweep keeps `copies` copies of the state, or one for each step where `copies` is 0. The reverse pass
 * goes back to a copy, runs the steps behind it again and undoes the last one with a tape of one step; it makes
 * a copy of the end, too, and puts that back when it is through. With a copy for each step, each runs once more
 * than it would anyway. With fewer, c of them, each of n steps runs at most t times more, where t is the
 * smallest number with (c + t)! / (c! t!) >= n, and once with its gradient: five times for a thousand steps and
 * nine copies. Where the copies lie is Griewank's choice (revolve).
 *
 * What `state` names may lie anywhere, and it may name different things by what it finds, but the same ones
 * at the same places before and after each step: what a step allocates it frees, and pointers that it
 * exchanges are as before when it ends. A step done again must do the same: no input, no clock, no random
 * numbers but from the state. Both are tested: the program stops with a message where a step that is run again
 * does not leave the bytes that it left before. Where they may differ in the last place, as with floats added
 * up in the order in which threads come, define GRADUS_STEPS_ROUGH before the first #include; then only the
 * places are tested. */
#ifndef GRADUS_STEPS_H
#define GRADUS_STEPS_H

#include <gradus.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum gradus_doing { GRADUS_MEASURE, GRADUS_SAVE, GRADUS_RESTORE };

/* What is done with the memory that `state` names. */
struct gradus_state {
    char *copy;
    unsigned long bytes;
    unsigned long long places, sums[4];
    enum gradus_doing doing;
};

/* The copies that are held, and what each step left. */
struct gradus_steps {
    long slots, used, *at;
    char **copies;
    unsigned long bytes;
    unsigned long long places, *left;
};

static inline void __gradus_steps_fail(const char *what)
{
    fprintf(stderr, "gradus/steps.h: %s\n", what);
    abort();
}

static inline void *__gradus_steps_memory(unsigned long bytes)
{
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory)
        __gradus_steps_fail("no memory for copies of the state: ask for fewer");
    return memory;
}

static inline unsigned long long __gradus_steps_mix(unsigned long long sum, unsigned long long word)
{
    sum = (sum ^ word) * 0x9e3779b97f4a7c15ull;
    return sum ^ sum >> 29;
}

/* Names `bytes` bytes from `memory` on as a part of the state. */
static inline void gradus_keep(struct gradus_state *c, void *memory, unsigned long bytes)
{
    c->places = __gradus_steps_mix(__gradus_steps_mix(c->places, (unsigned long long)memory), bytes);
    if (c->doing == GRADUS_SAVE)
        memcpy(c->copy + c->bytes, memory, bytes);
    else if (c->doing == GRADUS_RESTORE)
        memcpy(memory, c->copy + c->bytes, bytes);
#ifndef GRADUS_STEPS_ROUGH
    else {
        const char *from = (const char *)memory;
        unsigned long done = 0;
        for (; done + 32 <= bytes; done += 32) {
            unsigned long long words[4];
            memcpy(words, from + done, 32);
            for (int lane = 0; lane < 4; lane++)
                c->sums[lane] = __gradus_steps_mix(c->sums[lane], words[lane]);
        }
        for (; done < bytes; done++)
            c->sums[0] = __gradus_steps_mix(c->sums[0], (unsigned char)from[done]);
    }
#endif
    c->bytes += bytes;
}

/* How many of `steps` steps lie before the next copy, where `copies` are left, the one before them counted. */
static inline long __gradus_steps_split(long steps, long copies)
{
    double before = 1, reach = copies + 1;
    for (long t = 1; reach < steps; t++) {
        before = reach;
        reach = reach * (copies + t + 1) / (t + 1);
    }
    return (long)before;
}

#define GRADUS_STEPS(name, type, step, state)                                                                 \
    __attribute__((noinline)) void name(type *s, long steps, long copies)                                     \
    {                                                                                                         \
        (void)copies;                                                                                         \
        for (long k = 0; k < steps; k++)                                                                      \
            step(s, k);                                                                                       \
    }                                                                                                         \
    static struct gradus_state name##_copied(type *s, struct gradus_steps *held, char *copy, int restore)     \
    {                                                                                                         \
        struct gradus_state c = {copy, 0, 0, {1, 2, 3, 4}, GRADUS_MEASURE};                                   \
        if (copy)                                                                                             \
            c.doing = restore ? GRADUS_RESTORE : GRADUS_SAVE;                                                 \
        state(s, &c);                                                                                         \
        if (held->used && (c.places != held->places || c.bytes != held->bytes))                               \
            __gradus_steps_fail(#state " names other memory after a step of " #name " than before");          \
        return c;                                                                                             \
    }                                                                                                         \
    /* A number for what the state holds. */                                                                  \
    static unsigned long long name##_sum(type *s, struct gradus_steps *held)                                  \
    {                                                                                                         \
        struct gradus_state c = name##_copied(s, held, 0, 0);                                                 \
        for (int lane = 1; lane < 4; lane++)                                                                  \
            c.sums[0] = __gradus_steps_mix(c.sums[0], c.sums[lane]);                                          \
        return c.sums[0];                                                                                     \
    }                                                                                                         \
    /* Goes on from step `k` to the next place for a copy before `end`, and makes it; false where there is    \
     * none. */                                                                                               \
    static int name##_place(type *s, struct gradus_steps *held, long *k, long end, int first)                 \
    {                                                                                                         \
        if (end - *k < 2 || held->used == held->slots)                                                        \
            return 0;                                                                                         \
        long next = *k + __gradus_steps_split(end - *k, held->slots - held->used + 1);                        \
        for (; *k < next; ++*k) {                                                                             \
            step(s, *k);                                                                                      \
            if (first)                                                                                        \
                held->left[*k] = name##_sum(s, held);                                                         \
        }                                                                                                     \
        held->copies[held->used] = (char *)__gradus_steps_memory(held->bytes);                                \
        name##_copied(s, held, held->copies[held->used], 0);                                                  \
        held->at[held->used++] = *k;                                                                          \
        return 1;                                                                                             \
    }                                                                                                         \
    static void *name##_augmented(type *s, type *s_adj, long steps, long copies)                              \
    {                                                                                                         \
        (void)s_adj;                                                                                          \
        if (steps <= 0)                                                                                       \
            return 0;                                                                                         \
        struct gradus_steps *held = (struct gradus_steps *)__gradus_steps_memory(sizeof *held);               \
        held->slots = copies > 0 && copies < steps ? copies : steps;                                          \
        held->used = 0;                                                                                       \
        held->at = (long *)__gradus_steps_memory(held->slots * sizeof *held->at);                             \
        held->copies = (char **)__gradus_steps_memory(held->slots * sizeof *held->copies);                    \
        held->left = (unsigned long long *)__gradus_steps_memory(steps * sizeof *held->left);                 \
        struct gradus_state c = name##_copied(s, held, 0, 0);                                                 \
        held->bytes = c.bytes;                                                                                \
        held->places = c.places;                                                                              \
        held->copies[0] = (char *)__gradus_steps_memory(held->bytes);                                         \
        name##_copied(s, held, held->copies[0], 0);                                                           \
        held->at[held->used++] = 0;                                                                           \
        long k = 0;                                                                                           \
        while (name##_place(s, held, &k, steps, 1)) {}                                                        \
        for (; k < steps; k++) {                                                                              \
            step(s, k);                                                                                       \
            held->left[k] = name##_sum(s, held);                                                              \
        }                                                                                                     \
        return held;                                                                                          \
    }                                                                                                         \
    static void name##_reverse(type *s, type *s_adj, long steps, long copies, void *tape)                     \
    {                                                                                                         \
        (void)copies;                                                                                         \
        if (!tape)                                                                                            \
            return;                                                                                           \
        struct gradus_steps *held = (struct gradus_steps *)tape;                                              \
        char *end = (char *)__gradus_steps_memory(held->bytes);                                               \
        name##_copied(s, held, end, 0);                                                                       \
        for (long last = steps - 1; last >= 0; last--) {                                                      \
            long k = held->at[held->used - 1];                                                                \
            name##_copied(s, held, held->copies[held->used - 1], 1);                                          \
            while (name##_place(s, held, &k, last + 1, 0)) {}                                                 \
            for (; k < last; k++)                                                                             \
                step(s, k);                                                                                   \
            gradus_vjp(step, gradus_dup, s, s_adj, gradus_const, last);                                       \
            if (name##_sum(s, held) != held->left[last])                                                      \
                __gradus_steps_fail("a step of " #name " did not do again what it did: " #state               \
                                    " leaves something out, or steps depend on more than memory");            \
            if (held->at[held->used - 1] == last)                                                             \
                free(held->copies[--held->used]);                                                             \
        }                                                                                                     \
        held->used = 1;                                                                                       \
        name##_copied(s, held, end, 1);                                                                       \
        free(end);                                                                                            \
        free(held->left);                                                                                     \
        free(held->copies);                                                                                   \
        free(held->at);                                                                                       \
        free(held);                                                                                           \
    }                                                                                                         \
    GRADUS_GRADIENT(name, name##_augmented, name##_reverse)

#endif
