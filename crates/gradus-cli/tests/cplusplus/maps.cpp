// Trees: maps and sets of numbers and structures, by numbers and by names; found, gone through both ways, taken out of,
// copied, swapped; inserted into and taken out of in no order.
#include "check.h"
#include <map>
#include <set>
#include <string>
#include <vector>
struct Point { double value; int kind; };
static double numbers(const double *x, int count) {
  std::map<int, double> all;
  for (int i = 0; i < 60; i++) all[(i * 37) % 101] += x[i % count] * (i + 1);
  double sum = 0;
  int place = 1;
  for (auto &[key, v] : all) sum += v * v * place++ * 1e-3 * key;
  for (int i = 0; i < 101; i += 2) all.erase(i);
  for (auto &[key, v] : all) v *= x[key % count];
  std::map<int, double> other = all;
  other[7] = x[2] * x[3];
  for (auto it = other.rbegin(); it != other.rend(); ++it) sum += it->second * place++ * 1e-3;
  all.clear();
  all.insert({3, x[0]});
  all.emplace(5, x[0] * x[5]);
  other.swap(all);
  for (auto &[key, v] : other) sum += v * v * place++;
  for (auto &[key, v] : all) sum += v * v * place++ * 1e-4;
  auto found = all.find(31);
  if (found != all.end()) sum += found->second;
  return sum + all.lower_bound(20)->second + all.size();
}
static double names(const double *x, int count) {
  std::map<std::string, std::vector<double>> all;
  const char *keys[] = {"mass", "a name that is longer than what fits", "charge"};
  for (int i = 0; i < 12; i++) all[keys[i % 3]].push_back(x[i % count] * x[(i * 5) % count]);
  double sum = 0;
  for (auto &entry : all) for (double v : entry.second) sum += v * v * entry.first.size();
  all.erase("mass");
  sum += all.at("charge")[1] * all.begin()->second[2];
  return sum;
}
static double several(const double *x, int count) {
  std::multimap<int, Point> all;
  for (int i = 0; i < 24; i++) all.insert({i % 5, Point{x[i % count] * (1 + i), i}});
  auto range = all.equal_range(3);
  double sum = 0;
  int n = 1;
  for (auto it = range.first; it != range.second; ++it) sum += it->second.value * it->second.kind * n++;
  all.erase(2);
  for (auto &[k, p] : all) sum += p.value * p.value * n++;
  return sum;
}
static double sets(const double *x, int count) {
  std::set<double> all;
  for (int i = 0; i < 30; i++) all.insert(x[i % count] * (1 + 0.37 * (i / count)));
  double sum = 0;
  int n = 1;
  for (double v : all) sum += v * v * n++;
  all.erase(all.begin());
  all.erase(std::prev(all.end()));
  std::multiset<double> more(all.begin(), all.end());
  more.insert(x[0]);
  for (double v : more) sum += v * n++;
  return sum + *all.upper_bound(1.0) * all.size();
}
// Inserts and takes out in no order, so that trees are balanced in every way.
static double worn(const double *x, int count) {
  std::map<unsigned, double> all;
  unsigned next = 12345;
  double sum = 0;
  for (int i = 0; i < 600; i++) {
    next = next * 1664525u + 1013904223u;
    unsigned key = next >> 25;
    if (next >> 8 & 1)
      all[key] += x[i % count] * (1 + i % 7);
    else
      all.erase(key);
    auto at = all.lower_bound(key / 2);
    if (at != all.end() && at != all.begin())
      sum += at->second * std::prev(at)->second * 1e-3;
  }
  int place = 1;
  for (auto at = all.rbegin(); at != all.rend(); ++at)
    sum += at->second * place++;
  while (!all.empty()) {
    all.erase(place++ % 2 ? all.begin() : std::prev(all.end()));
    if (!all.empty())
      sum += all.begin()->second * all.rbegin()->second * 1e-3;
  }
  return sum;
}
static double value(const double *x, int count) { return numbers(x, count) + names(x, count) + several(x, count) + sets(x, count) + worn(x, count); }
JUDGE(value)
