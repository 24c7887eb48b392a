// Strings beside numbers, numbers made into text.
#include "check.h"
#include <array>
#include <iostream>
#include <string>

struct Named {
    std::array<double, 3> v;
    std::string name;
};

__attribute__((noinline)) static double weight(const Named &n)
{
    return n.v[0] * n.v[1] + n.v[2] * (double)n.name.size();
}

static double value(const double *x, int n)
{
    Named a{{x[0], x[1], x[2]}, "a name that is long enough to lie on the heap"};
    Named b = a;
    b.v[0] *= x[3];
    b.name += "!";
    double sum = weight(a) * weight(b);
    char line[64];
    for (int i = 0; i < n; i++) {
        sum += x[i] * x[i];
        snprintf(line, sizeof line, "%g", sum);
        if (line[0] == '#')
            std::cout << "odd " << sum << std::endl;
    }
    if (sum < 0)
        std::cerr << "negative: " << std::to_string(sum) << "\n";
    return sum;
}

JUDGE(value)
