// Hashed maps, by numbers and by names, whose order is the library's own; lists with links in one direction.
#include "check.h"
#include <forward_list>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>
struct Point { double value; int kind; };
static double numbers(const double *x, int count) {
  std::unordered_map<int, double> all;
  for (int i = 0; i < 60; i++) all[(i * 37) % 101] += x[i % count] * (i + 1);
  double sum = 0;
  int place = 1;
  for (auto &[key, v] : all) sum += v * v * place++ * 1e-3 * key;
  for (int i = 0; i < 101; i += 2) all.erase(i);
  for (auto &[key, v] : all) v *= x[key % count];
  std::unordered_map<int, double> other;
  other.emplace(7, x[2] * x[3]);
  other.swap(all);
  for (auto &[key, v] : other) sum += v * v * place++ * 1e-4;
  auto found = other.find(7);
  if (found != other.end()) sum += found->second;
  std::unordered_map<int, double> moved = std::move(other);
  moved.rehash(500);
  for (auto &[key, v] : moved) sum += v * place++ * 1e-3;
  other.clear();
  return sum + all.at(7) * moved.size() + moved.count(3);
}
static double names(const double *x, int count) {
  std::unordered_map<std::string, Point> all;
  for (int i = 0; i < 30; i++) {
    Point &p = all["a name that is longer than what fits " + std::to_string(i % 7)];
    p.value += x[i % count] * x[(i * 5) % count];
    p.kind = i;
  }
  double sum = 0;
  int n = 1;
  for (auto &entry : all) sum += entry.second.value * entry.second.value * entry.second.kind * n++;
  return sum;
}
static double forward(const double *x, int count) {
  std::forward_list<Point> all;
  for (int i = 0; i < 20; i++) all.push_front({x[i % count] * (1 + 0.3 * i), i % 4});
  all.remove_if([](const Point &p) { return p.kind == 2; });
  all.sort([](const Point &a, const Point &b) { return a.value < b.value; });
  all.reverse();
  std::forward_list<Point> other(all);
  other.insert_after(other.begin(), {x[1] * x[2], 3});
  all.splice_after(all.before_begin(), other);
  double sum = 0;
  int n = 1;
  for (auto &p : all) sum += p.value * p.kind * n++ * x[3];
  return sum;
}
static double value(const double *x, int count) { return numbers(x, count) + names(x, count) + forward(x, count); }
JUDGE(value)
