// Kernels with barriers in the cases of a `switch`, compared with threads of the host that run the same text. Between
// two barriers no thread reads what another thread writes.
#include "check.h"
#include <condition_variable>
#include <mutex>
#include <thread>

const int N = 12;

struct Device {
    __device__ void sync() { __syncthreads(); }
};
struct Host {
    std::mutex mutex;
    std::condition_variable met;
    int here = 0, meeting = 0;
    void sync()
    {
        std::unique_lock<std::mutex> lock(mutex);
        int now = meeting;
        if (++here == N) here = 0, meeting++, met.notify_all();
        else met.wait(lock, [&] { return meeting != now; });
    }
};

#define KERNEL(name) \
    struct name { template <class B> static __host__ __device__ unsigned run(B &b, unsigned *s, int t, int n)
#define SYNC b.sync()
#define NEXT s[(t + 5) % N]
// A step in which the threads read what others wrote.
#define SWAP do { SYNC; unsigned other = NEXT; SYNC; s[t] = other * 3 + s[t]; } while (0)

KERNEL(falls) {
    for (int i = 0; i < n; i++) {
        switch (i % 4) {
        case 0: s[t] += 1;
        case 1: SYNC; s[t] += 2; break;
        case 2: s[t] *= 2; SYNC;
        default: s[t] -= 1;
        }
    }
    return s[t];
} };
KERNEL(falls_below) {
    int i = 0;
    do {
        switch (i % 4) {
        case 0: s[t] += 1;
        case 1: SYNC; s[t] += 2; break;
        case 2: s[t] *= 2; SYNC;
        default: s[t] -= 1;
        }
    } while (++i < n);
    return s[t];
} };
KERNEL(falls_while) {
    int i = n;
    while (i-- > 0) {
        switch (i & 3) {
        case 0: SWAP;
        case 3: s[t] += t;
        case 2: SWAP; break;
        case 1: s[t] ^= 5; SYNC;
        }
    }
    return s[t];
} };
KERNEL(default_first) {
    unsigned a = t;
    for (int i = 0; i < n; i++) {
        switch (i % 5) {
        default: a += 7; SYNC;
        case 1: SWAP; a ^= s[t]; break;
        case 3: a *= 3;
        case 4: SYNC; a += i;
        }
    }
    return a;
} };
KERNEL(all_cases) {
    unsigned a = 1;
    for (unsigned i = 0; i < unsigned(n); i++) {
        switch (i & 3) {
        case 0: a += 1; break;
        case 1: SWAP; a += s[t]; break;
        case 2: a <<= 1; SYNC; break;
        case 3: SWAP;
        }
    }
    return a + s[t];
} };
KERNEL(nested) {
    for (int i = 0; i < n; i++) {
        switch (i % 3) {
        case 0:
            switch (n & 1) {
            case 0: SWAP; break;
            default: s[t] += 3; SYNC;
            }
        case 1: SYNC; s[t] += 1; break;
        default:
            switch (i & 1) {
            case 1: SWAP;
            case 0: SYNC; s[t] ^= i;
            }
        }
    }
    return s[t];
} };
KERNEL(continues) {
    unsigned a = 0;
    for (int i = 0; i < n; i++) {
        switch (i % 4) {
        case 0: SWAP; continue;
        case 1: a += 1;
        case 2: SYNC; break;
        default: a += s[t]; continue;
        }
        a = a * 5 + i;
        SYNC;
    }
    return a ^ s[t];
} };
KERNEL(leaves) {
    unsigned a = 0;
    for (int i = 0;; i++) {
        switch (i & 3) {
        case 0: SWAP;
        case 1: a += s[t]; SYNC; break;
        case 2: if (i >= n) goto done; SWAP; break;
        case 3: a ^= 9;
        }
    }
done:
    SYNC;
    return a + NEXT;
} };
KERNEL(returns) {
    for (int i = 0; i < 9; i++) {
        switch (i % 3) {
        case 0: SWAP;
        case 1: s[t] += i; SYNC; break;
        default: SWAP; if (i > n) return s[t] + i;
        }
    }
    return s[t];
} };
KERNEL(early_case) {
    unsigned a = t * t;
    switch (n % 4) {
    case 0: return a;
    case 1: SWAP;
    case 2: SYNC; a += NEXT; break;
    default: SYNC;
    }
    SYNC;
    return a + s[t];
} };
KERNEL(own_cases) {
    // Threads take different cases between barriers.
    unsigned a = 0;
    for (int i = 0; i < n; i++) {
        switch ((t + i) & 3) {
        case 0: a += 1;
        case 1: a ^= i; break;
        case 2: s[t] += a;
        case 3: a += 2;
        }
        SWAP;
        SYNC;
        switch (i & 1) {
        case 0: SYNC;
        case 1: a += NEXT;
        }
        SYNC;
    }
    return a;
} };
KERNEL(own_around) {
    // The barrier is in a case of a loop that all threads leave alike; the value that decides is each thread's own.
    unsigned a = t;
    for (int i = 0; i < n; i++) {
        switch (i % 3) {
        case 0: if (t & 1) a += s[t]; SYNC; break;
        case 1: for (int j = 0; j < t; j++) a += j; SWAP;
        default: switch (t % 3) { case 0: a++; case 1: a *= 2; break; case 2: a ^= 1; } SYNC;
        }
    }
    return a + s[t];
} };
KERNEL(loops_in_cases) {
    for (int i = 0; i < n; i++) {
        switch (i & 3) {
        case 0: for (int j = 0; j < 3; j++) { if (j == i) continue; SWAP; }
        case 1: { int j = i; do { s[t] += j; SYNC; } while (j-- > 0); } break;
        case 2: while (true) { SWAP; if (n > 0) break; }
        case 3: SYNC;
        }
    }
    return s[t];
} };
KERNEL(loop_from_case) {
    // The first case enters a loop in its middle.
    int i = n & 3;
    switch (i) {
    case 0: do { SWAP;
    case 3: s[t] += 3; SYNC;
    case 2: SWAP;
    case 1: s[t] ^= i;
            } while (++i < n);
    }
    SYNC;
    return s[t] + NEXT;
} };
KERNEL(wide) {
    unsigned long long a = t;
    for (long long i = 0; i < n; i++) {
        switch (i << 33) {
        case 0ll: a += 1; SYNC; break;
        case 1ll << 33: SWAP;
        case 1ll << 34: a += s[t]; break;
        case -1: SYNC;
        default: a *= 3; SYNC;
        }
    }
    return unsigned(a ^ a >> 32);
} };
KERNEL(signed_cases) {
    for (int i = -3; i < n; i++) {
        switch (i) {
        case -3: SWAP;
        case -1: s[t] += 1; break;
        case 0 ... 2: SYNC; s[t] *= 3;
        default: SWAP;
        case 7: SYNC;
        }
    }
    return s[t];
} };
KERNEL(same_cases) {
    unsigned a = 0;
    for (int i = 0; i < n; i++) {
        switch (i % 6) {
        case 0: case 2: case 4: SWAP; a += s[t]; break;
        case 1: case 3: a += 1; break;
        case 5: SYNC; break;
        }
    }
    return a;
} };
KERNEL(only_default) {
    for (int i = 0; i < n; i++)
        switch (i) {
        default: SWAP;
        }
    return s[t];
} };
KERNEL(never) {
    // The compiler is told that there are no other numbers.
    unsigned a = 0;
    for (int i = 0; i < n; i++) {
        switch (i & 1) {
        case 0: SWAP; a = a * 2 + s[t]; break;
        case 1: a += 1; SYNC; break;
        default: __builtin_unreachable();
        }
        if (i > 100) __builtin_unreachable();
        SYNC;
    }
    return a;
} };
KERNEL(never_own) {
    unsigned a = 0;
    for (int i = 0; i < n; i++) {
        switch ((t ^ i) & 1) {
        case 0: a += s[t]; break;
        case 1: a ^= i; break;
        default: __builtin_unreachable();
        }
        switch (i % 3) {
        case 0: SWAP; SYNC;
        case 1: a += NEXT; break;
        case 2: SYNC; if (n < 0) __builtin_unreachable(); break;
        default: SYNC; s[t] = 0; SYNC; __builtin_trap();
        }
        SYNC;
    }
    return a;
} };
KERNEL(carried) {
    // Several values leave each case.
    unsigned a = t, c = 1, d = n;
    for (int i = 0; i < n; i++) {
        switch (d & 3) {
        case 0: a = c + s[t]; d += 1; SYNC; break;
        case 1: c = a; SWAP; d += 3;
        case 2: a ^= s[t]; d = d * 2 + 1; break;
        case 3: SYNC; c += NEXT; a += c; d = i; SYNC;
        }
    }
    return a + c * 3 + d * 7;
} };
KERNEL(machine) {
    // A machine of states.
    unsigned a = 0;
    int state = 0, left = n * 2;
    while (state != 4) {
        if (left-- <= 0) state = 3;
        switch (state) {
        case 0: SWAP; state = n & 1 ? 1 : 2; break;
        case 1: a += s[t]; state = 2;
        case 2: SYNC; a ^= NEXT; state = left & 1; break;
        case 3: SWAP; state = 4; break;
        default: a = 0; SYNC; state = 4;
        }
    }
    return a;
} };

template <class K> __global__ void kernel(unsigned *out, int n)
{
    __shared__ unsigned s[N];
    Device b;
    int t = threadIdx.x;
    s[t] = t * 7 + 1;
    __syncthreads();
    out[blockIdx.x * N + t] = K::run(b, s, t, n);
}

template <class K> void check(const char *name)
{
    unsigned *out;
    OK(cudaMallocManaged(&out, 2 * N * sizeof(unsigned)));
    for (int n : {0, 1, 2, 3, 4, 7, 10}) {
        kernel<K><<<2, N>>>(out, n);
        OK(cudaDeviceSynchronize());
        Host b;
        unsigned s[N];
        unsigned wanted[N];
        for (int t = 0; t < N; t++) s[t] = t * 7 + 1;
        std::vector<std::thread> threads;
        for (int t = 0; t < N; t++)
            threads.emplace_back([&, t] { wanted[t] = K::run(b, s, t, n); });
        for (std::thread &thread : threads) thread.join();
        for (int i = 0; i < 2 * N; i++)
            if (out[i] != wanted[i % N]) {
                printf("%s, n = %d, thread %d: %u instead of %u\n", name, n, i, out[i], wanted[i % N]);
                wrong++;
                break;
            }
    }
    OK(cudaFree(out));
}
#define CHECK(name) check<name>(#name)

int main()
{
    CHECK(falls), CHECK(falls_below), CHECK(falls_while), CHECK(default_first), CHECK(all_cases);
    CHECK(nested), CHECK(continues), CHECK(leaves), CHECK(returns), CHECK(early_case), CHECK(own_cases);
    CHECK(own_around), CHECK(loops_in_cases), CHECK(loop_from_case), CHECK(wide), CHECK(signed_cases);
    CHECK(same_cases), CHECK(only_default), CHECK(never), CHECK(never_own), CHECK(carried), CHECK(machine);
    return wrong;
}
