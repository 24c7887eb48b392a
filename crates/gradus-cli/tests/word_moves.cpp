#include <bit>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>
extern "C" double words(const double *x, int n)
{
    std::vector<uint64_t> v;
    double s = 0;
    for (int i = 0; i < n; i++)
        v.push_back(std::bit_cast<uint64_t>(x[i] * x[i]));
    for (int i = 0; i < n; i++)
        s += x[i] * std::bit_cast<double>(v[i]);
    return s;
}
extern "C" double reversed(const double *x, int n)
{
    std::vector<long> v(n), w(n);
    double s = 0;
    for (int i = 0; i < n; i++)
        v[i] = std::bit_cast<long>(x[i] * x[0]);
    for (int i = 0; i < n; i++)
        w[n - 1 - i] = v[i];
    for (int i = 0; i < n; i++)
        s += x[i] * std::bit_cast<double>(w[i]);
    return s;
}
