// Closures in `std::function` that know a vector by reference, which holds nothing but what a range gave it: as members,
// in vectors, exchanged; and vectors in a hashed container.
#include "check.h"
#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

typedef std::vector<double> Vector;

static double objective(const double *x, int n)
{
    Vector centre(x, x + n);
    std::function<double(const Vector &)> of = [&centre](const Vector &p) {
        double sum = 0;
        for (std::size_t i = 0; i < p.size(); i++)
            sum += centre[i] * p[i] * p[i];
        return sum;
    };
    Vector point(n, 2.0);
    point[0] = x[1];
    return of(point);
}

static double several(const double *x, int n)
{
    Vector kept(x, x + n);
    std::vector<std::function<double(double)>> all;
    all.push_back([&kept](double t) { return kept[0] * t; });
    all.push_back([&kept](double t) { return kept[1] * t * t; });
    all.push_back([&kept](double t) { return sin(kept[2] + t); });
    std::swap(all[0], all[2]);
    double sum = 0;
    for (std::size_t i = 0; i < all.size(); i++)
        sum += all[i](x[i]) * (i + 1);
    return sum;
}

static double cells(const double *x, int n)
{
    std::unordered_map<int, Vector> cells;
    for (int i = 0; i < 4 * n; i++)
        cells[i % 3].push_back(x[i % n] * (i + 1));
    double sum = 0;
    for (int k = 0; k < 3; k++) {
        double product = 1;
        for (double value : cells[k])
            product *= 1 + 0.01 * value;
        sum += product * (k + 1);
    }
    return sum;
}

static double value(const double *x, int n)
{
    return objective(x, n) + several(x, n) + cells(x, n);
}

JUDGE(value)
