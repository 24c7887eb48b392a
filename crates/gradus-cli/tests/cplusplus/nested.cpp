// Containers in containers and in structures beside numbers; nodes that iterators and addresses elsewhere lead to, used
// after others came and went.
#include "check.h"
#include <list>
#include <map>
#include <unordered_map>
struct Entry { int key; double value; };
struct Cache {
  std::list<Entry> order;
  std::unordered_map<int, std::list<Entry>::iterator> where;
};
static double lookup(Cache &cache, int key, const double *x, int count) {
  auto found = cache.where.find(key);
  if (found != cache.where.end()) {
    cache.order.splice(cache.order.begin(), cache.order, found->second);
    found->second->value *= 1.01;
    return found->second->value;
  }
  if (cache.order.size() == 4) {
    cache.where.erase(cache.order.back().key);
    cache.order.pop_back();
  }
  cache.order.push_front(Entry{key, std::sin(x[key % count] * key)});
  cache.where[key] = cache.order.begin();
  return cache.order.front().value;
}
// Containers beside numbers of their structure.
struct Table {
  int count = 0;
  double weight = 1;
  std::map<int, double> entries;
  int last = 0;
};
struct Window {
  int steps = 0;
  std::list<double> open;
  double weight = 1;
};
static double beside(const double *x, int count) {
  Table table;
  Window window;
  for (int i = 0; i < 25; i++) {
    double a = x[i % count];
    table.entries[i % 7] += a * table.weight;
    table.count++;
    table.last = i;
    table.weight *= 1 + 0.01 * a;
    window.open.push_back(a * window.weight);
    window.weight *= 1 - 0.01 * a;
    window.steps += 2;
    if (window.open.size() > 4)
      window.open.pop_front();
  }
  double sum = table.count * table.weight + window.steps * window.weight + table.last;
  for (auto &[key, v] : table.entries)
    sum += v * v * key;
  for (double v : window.open)
    sum += v * v * window.open.size();
  return sum;
}
static double value(const double *x, int count) {
  Cache cache;
  double sum = beside(x, count);
  for (int i = 0; i < 100; i++) sum += lookup(cache, i * i % 7, x, count) * x[i % count];
  for (const Entry &e : cache.order) sum += e.value * e.value;
  std::map<int, std::map<int, double>> sparse;
  for (int i = 0; i < 40; i++) sparse[i * 7 % 5][i % 6] += x[i % count] * (1 + i);
  for (auto row = sparse.begin(); row != sparse.end();) {
    if (row->first % 2) row = sparse.erase(row);
    else { double p = 1; for (auto &entry : row->second) p *= 1 + 0.01 * entry.second; sum += p; ++row; }
  }
  double *held = &sparse[2][1];
  for (int i = 0; i < 50; i++) { sparse[2][100 + i] = x[i % count]; if (i > 10) sparse[2].erase(90 + i); *held *= 1.001; }
  sum += *held * sparse[2].size();
  std::map<double, double> steps;
  for (int i = 0; i < 30; i++) steps[x[i % count] * (1 + 1.137 * (i / count))] += x[(i + 2) % count];
  double last = 0;
  for (auto &[at, height] : steps) { sum += (at - last) * height; last = at; }
  return sum;
}
JUDGE(value)
