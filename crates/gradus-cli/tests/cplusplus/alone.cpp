// An object that is counted and holds no other, beside a search that throws.
#include "check.h"
#include <memory>
#include <vector>

struct Node {
    double w;
    std::vector<std::shared_ptr<Node>> kids;
    double at(double x) const
    {
        double s = w * x;
        for (auto &kid : kids)
            s += std::tanh(kid->at(x + w));
        return s;
    }
};

static double search(std::vector<double> &x, int step)
{
    for (int k = 0;; k++) {
        for (auto &v : x)
            v *= 0.9;
        if (x[0] * x[0] < 0.3)
            return x[0];
        if (k > step)
            throw k;
    }
}

static double value(const double *p, int n)
{
    std::vector<double> x(p, p + n);
    double sum = 0;
    int failed = 0;
    for (int step = 0; step < 3; step++) {
        try {
            sum += search(x, step);
        } catch (int k) {
            failed += k;
        }
    }
    for (double v : x)
        sum += v * v;
    auto root = std::make_shared<Node>();
    root->w = p[0];
    return sum + failed + root->at(x[0]);
}

JUDGE(value)
