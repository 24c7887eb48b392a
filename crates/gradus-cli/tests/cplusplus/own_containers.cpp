// Containers that are an iteration's own, in a parallel loop.
#include "check.h"
#include <list>
#include <map>
#include <set>
#include <unordered_map>
#include <vector>
static double one(const double *x, int count, int i) {
  std::list<double> open;
  std::map<int, double> table;
  std::unordered_map<int, double> hashed;
  std::set<double> sorted;
  for (int k = 0; k < 12 + i % 5; k++) {
    double v = x[(k + i) % count] * (1 + 0.1 * k);
    open.push_back(v);
    table[k * i % 7] += v * v;
    hashed[k * 5 % 11] += v;
    sorted.insert(v * x[i % count]);
    if (k % 4 == 3) { open.pop_front(); table.erase(table.begin()); sorted.erase(sorted.begin()); hashed.erase(k); }
  }
  open.sort();
  double sum = 0;
  int n = 1;
  for (double v : open) sum += v * n++;
  for (auto &[k, v] : table) sum += v * n++;
  for (auto &[k, v] : hashed) sum += v * v * n++;
  for (double v : sorted) sum += v * n++;
  return sum;
}
static double value(const double *x, int count) {
  double sum = 0;
#pragma omp parallel for reduction(+ : sum)
  for (int i = 0; i < 300; i++) sum += 1e-3 * one(x, count, i);
  return sum;
}
JUDGE(value)
