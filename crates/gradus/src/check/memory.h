/* The memory of a check: arrays between guard pages, and the messages when a call dies. An array ends at a page
 * that cannot be touched, so that an access to the first element after it faults. Every buffer has its own part
 * of the address space, so that a wild index is attributed to the array that it began at. */
#include <errno.h>
#include <fenv.h>
#include <math.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <execinfo.h>
#endif

enum gr_kind { GR_DOUBLE, GR_FLOAT, GR_BYTES };

/* An argument: a number by value, or an array. */
typedef struct {
    const char *name;
    enum gr_kind kind;
    int is_array, is_active;
    size_t size;          /* bytes of an element */
    size_t count;         /* elements */
    void *start;          /* what a call begins with */
    void *primal;         /* what a call works on */
    void *low;            /* the same, at the beginning of its pages */
    void *tangent, *adjoint;
    double *direction;    /* the tangent that goes in */
    double *cotangent;    /* the adjoint that goes in: zero where the function does not write */
    double *reverse;      /* the adjoint that came out */
    double *wobble;       /* how far that changes where the arguments change by rounding */
    unsigned char *changed; /* whether a call changes the element */
    int written;
} gr_arg;

static gr_arg gr_args[GR_ARG_COUNT + 1];
static const int gr_arg_count = GR_ARG_COUNT;

static FILE *gr_out; /* ours; what the function prints goes nowhere */

/* A buffer between guard pages. */
typedef struct {
    int arg;
    const char *of; /* "", or whose buffer it is: "the adjoint of " */
    char *from;
    size_t bytes;
} gr_room;

enum { GR_ROOMS = 6 * GR_ARG_COUNT + 1 };
static gr_room gr_rooms[GR_ROOMS];
static int gr_room_count;
static const size_t gr_apart = (size_t)1 << 37;                 /* between two buffers */
static const uintptr_t gr_first_room = (uintptr_t)1 << 45;
static const size_t gr_guard = (size_t)1 << 18;
static int gr_done;                                             /* the check's own end, not the function's */
static volatile size_t gr_refused;                              /* bytes that the system refused, if any */

static void gr_out_of_memory(size_t bytes)
{
    dprintf(fileno(gr_out), "@refused %zu\n", bytes);
    gr_done = 1;
    _exit(1);
}

static void *gr_memory(size_t bytes)
{
    void *memory = calloc(1, bytes + 64);
    if (!memory)
        gr_out_of_memory(bytes);
    return memory;
}

/* The alignment of every array in bytes, beyond that of its elements. */
static size_t gr_alignment(void)
{
    const char *asked = getenv("GRADUS_CHECK_ALIGN");
    return asked ? (size_t)atoi(asked) : 1;
}

/* Allocates a buffer of an argument's size, at the end of its pages or at their beginning. */
static void *gr_between_guards(int a, const char *of, int at_end)
{
    const gr_arg *arg = &gr_args[a];
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), align = gr_alignment();
    const size_t bytes = (arg->count * arg->size + align - 1) / align * align;
    const size_t pages = (bytes + page - 1) / page * page, all = pages + 2 * gr_guard;
    char *const wish = (char *)(gr_first_room + (uintptr_t)gr_room_count * gr_apart);
    if (arg->count > (size_t)-1 / 4 / arg->size)
        gr_out_of_memory((size_t)-1);
    char *memory = MAP_FAILED;
#ifdef MAP_FIXED_NOREPLACE
    if (sizeof(void *) == 8 && gr_room_count < 384)
        memory = mmap(wish, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
#endif
    if (memory == MAP_FAILED)
        memory = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || (pages && mprotect(memory + gr_guard, pages, PROT_READ | PROT_WRITE)))
        gr_out_of_memory(bytes);
    char *const from = memory + gr_guard + (at_end ? pages - bytes : 0);
    gr_rooms[gr_room_count++] = (gr_room){a, of, from, arg->count * arg->size};
    return from;
}

static void gr_array(int a, size_t count)
{
    gr_arg *arg = &gr_args[a];
    arg->count = count;
    if (arg->is_array) {
        arg->primal = gr_between_guards(a, "", 1);
        arg->low = gr_between_guards(a, "", 0);
        arg->tangent = gr_between_guards(a, "the tangent of ", 1);
        arg->adjoint = gr_between_guards(a, "the adjoint of ", 1);
    } else {
        arg->primal = arg->low = gr_memory(arg->size);
        arg->tangent = gr_memory(arg->size);
        arg->adjoint = gr_memory(arg->size);
    }
    arg->start = gr_memory(count * arg->size);
    arg->direction = gr_memory(count * sizeof(double));
    arg->cotangent = gr_memory(count * sizeof(double));
    arg->reverse = gr_memory(count * sizeof(double));
    arg->wobble = gr_memory(count * sizeof(double));
    arg->changed = gr_memory(count);
}

/* Ends the check: an argument cannot have this value or length. */
static void gr_misfit(int a, const char *what, long double value)
{
    fprintf(gr_out, "@misfit %d %s%.17Lg\n", a, what, value);
    fflush(gr_out);
    gr_done = 1;
    _exit(1);
}

static void gr_fits(int a, long double value, long double stored)
{
    if (value != stored)
        gr_misfit(a, "", value);
}

static size_t gr_length(int a, long double length)
{
    if (!(length >= 0) || length != floorl(length))
        gr_misfit(a, "length ", length);
    if (length > 0x1p60L)
        gr_out_of_memory((size_t)-1);
    return (size_t)length;
}

#include "descriptor.h"

/* Prints the array of an address, and its distance from the array. Returns 0 if there is no such array. */
static int gr_outside(int to, const char *at, const char *how)
{
    for (int r = 0; r < gr_room_count; r++) {
        const gr_room *room = &gr_rooms[r];
        const gr_arg *arg = &gr_args[room->arg];
        const uintptr_t first = gr_first_room + (uintptr_t)r * gr_apart;
        const int apart = (uintptr_t)room->from >= first && (uintptr_t)room->from < first + gr_apart;
        const char *low = room->from - gr_guard, *high = room->from + room->bytes + gr_guard;
        if (apart) {
            low = (const char *)(first - gr_apart / 4);
            high = (const char *)(first + gr_apart * 3 / 4);
        }
        if (at < low || at >= high)
            continue;
        const ptrdiff_t bytes = at - room->from, size = (ptrdiff_t)arg->size;
        const ptrdiff_t index = bytes >= 0 ? bytes / size : -((size - 1 - bytes) / size);
        dprintf(to, "@fault %d %s %td %zu %s\n", room->arg, how, index, arg->count, room->of);
        return 1;
    }
    return 0;
}

/* Prints the frames in which a signal struck, innermost first. */
static void gr_frames(int to, void *context)
{
    (void)context;
#if defined(__x86_64__)
    if (context)
        dprintf(to, "@frame %llx\n", (unsigned long long)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
    if (context)
        dprintf(to, "@frame %llx\n", (unsigned long long)((ucontext_t *)context)->uc_mcontext.pc);
#endif
#ifdef __GLIBC__
    void *frames[64];
    const int count = backtrace(frames, 64);
    for (int k = 0; k < count; k++) /* a call ends before the address to return to */
        dprintf(to, "@frame %llx\n", (unsigned long long)(uintptr_t)frames[k] - 1);
#endif
}

/* Describes a wrong address. */
static void gr_wrong_address(int to, const siginfo_t *info, void *context)
{
    const char *how = "uses", *at = info->si_addr;
    (void)context;
#if defined(__x86_64__)
    const greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    const char *stack = (const char *)registers[REG_RSP];
    how = registers[REG_ERR] & 2 ? "writes" : "reads";
    if (!at && info->si_code == SI_KERNEL) {
        dprintf(to, "@misaligned\n");
        return;
    }
    if (gr_outside(to, at, how))
        return;
    if (at < stack + 65536 && at > stack - (1 << 23))
        dprintf(to, "@stack\n");
#else
    gr_outside(to, at, how);
#endif
}

/* Handles a signal of the function: prints its frames and whether memory ran out, then dies of it. */
static void gr_died(int number, siginfo_t *info, void *context)
{
    const int to = fileno(gr_out);
    const size_t probe = (size_t)64 << 20;
    if (gr_refused)
        dprintf(to, "@refused %zu\n", (size_t)gr_refused);
    else if (mmap(NULL, probe, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
        dprintf(to, "@refused %zu\n", probe);
    if (number == SIGSEGV || number == SIGBUS)
        gr_wrong_address(to, info, context);
    gr_frames(to, context);
    signal(number, SIG_DFL);
    raise(number);
}

/* Catches signals on a separate stack, because the usual one may have run out. */
static void gr_catch(void)
{
    static char stack[1 << 16];
    const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP};
    const stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_sigaction = gr_died, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
#ifdef __GLIBC__
    void *frame; /* what backtrace needs is loaded now, not in a signal */
    backtrace(&frame, 1);
#endif
    sigaltstack(&own, NULL);
    sigemptyset(&action.sa_mask);
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
        sigaction(numbers[k], &action, NULL);
}

/* Reports that the function ended the program. */
static void gr_ended(void)
{
    if (gr_done)
        return;
    if (gr_refused)
        dprintf(fileno(gr_out), "@refused %zu\n", (size_t)gr_refused);
    dprintf(fileno(gr_out), "@exit\n");
    gr_frames(fileno(gr_out), NULL);
}

#if defined(__GLIBC__) && !defined(GR_SANITIZED)
/* Allocation functions that remember a refused size: a later fault does not state it. */
void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);

__attribute__((used)) void *malloc(size_t bytes)
{
    void *memory = __libc_malloc(bytes);
    if (!memory)
        gr_refused = bytes ? bytes : 1;
    return memory;
}

__attribute__((used)) void *calloc(size_t count, size_t bytes)
{
    void *memory = __libc_calloc(count, bytes);
    if (!memory)
        gr_refused = count * bytes ? count * bytes : 1;
    return memory;
}

__attribute__((used)) void *realloc(void *old, size_t bytes)
{
    void *memory = __libc_realloc(old, bytes);
    if (!memory && bytes)
        gr_refused = bytes;
    return memory;
}
#endif
