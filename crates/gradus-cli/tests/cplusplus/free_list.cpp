// A pool in a vector: slots hold a number and the index of the next free one, and where a slot lies is counted from the
// vector's size.
#include "check.h"
#include <vector>

struct Slot {
    double v;
    int next;
};
struct Pool {
    std::vector<Slot> slots;
    int free = -1;
    int take(double v)
    {
        if (free >= 0) {
            int i = free;
            free = slots[i].next;
            slots[i] = {v, -1};
            return i;
        }
        slots.push_back({v, -1});
        return slots.size() - 1;
    }
    void give(int i)
    {
        slots[i].next = free;
        free = i;
    }
};

static double value(const double *x, int n)
{
    Pool pool;
    double sum = 0;
    int last = pool.take(x[0]);
    for (int i = 1; i < n; i++) {
        int a = pool.take(x[i] * x[0]), b = pool.take(x[i]);
        sum += pool.slots[a].v * pool.slots[b].v * pool.slots[last].v;
        pool.give(i % 2 ? a : last);
        last = i % 2 ? last : b;
    }
    return sum;
}

JUDGE(value)
