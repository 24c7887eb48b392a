// Vectors that grow, vectors of vectors, sorting, bounds that are checked.
#include "check.h"
#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <vector>

static double length(const std::vector<double> &v)
{
    double sum = 0;
    for (double e : v)
        sum += e * e;
    return std::sqrt(sum);
}

static double value(const double *x, int n)
{
    std::vector<double> grown;
    for (int i = 0; i < n; i++)
        grown.push_back(x[i] * x[i]);
    double sum = 0;
    for (double e : grown)
        sum += std::sin(e) * e;
    std::vector<std::vector<double>> table(n, std::vector<double>(n));
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            table[i][j] = grown[i] * x[j] + (i == j);
    for (auto &row : table)
        sum += length(row);
    std::sort(grown.begin(), grown.end());
    for (int i = 0; i < n; i++) {
        if (x[i] < 0)
            throw std::runtime_error("negative");
        sum += (i + 1) * grown.at(i) * grown.at(n - 1 - i);
    }
    return sum * std::accumulate(grown.begin(), grown.end(), 1.0);
}

JUDGE(value)
