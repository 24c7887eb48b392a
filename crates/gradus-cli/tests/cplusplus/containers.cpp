// Containers of structures that grow, are gone through from begin to end, sorted and moved: numbers beside integers,
// strings and lists, inserted and taken out; a deque, from both of whose ends is taken; pairs that are sorted and selected from.
#include "check.h"
#include <algorithm>
#include <deque>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

struct Point {
  double value;
  int kind;
};

struct Particle {
  double place[3];
  float mass;
  int kind;
  bool fixed;
  std::string name;
  std::vector<int> neighbours;
};

static double points(const double *x, int count) {
  std::vector<Point> all;
  for (int i = 0; i < 5 * count; i++)
    all.push_back({x[i % count] * x[i % 4], i % 3});
  double sum = 0;
  for (Point point : all)
    sum += point.value * point.kind;
  return sum;
}

static double particles(const double *x, int count) {
  std::vector<Particle> all;
  for (int i = 0; i < count; i++) {
    Particle one{};
    one.place[0] = x[i];
    one.place[1] = x[(i + 1) % count];
    one.mass = 1 + i;
    one.kind = i;
    one.fixed = i % 3 == 0;
    one.name = "a name of more than fifteen characters " + std::to_string(i);
    for (int j = 0; j < i; j++)
      one.neighbours.push_back(j);
    all.push_back(one);
  }
  std::sort(all.begin(), all.end(), [](const Particle &a, const Particle &b) { return a.place[0] < b.place[0]; });
  double sum = 0;
  for (const Particle &one : all)
    if (!one.fixed)
      for (int j : one.neighbours)
        sum += (one.place[0] - all[j].place[0]) * one.place[1] * one.mass + one.name.size();
  return sum;
}

static double queue(const double *x, int count) {
  std::deque<double> open;
  double sum = 0;
  for (int i = 0; i < 200; i++) {
    open.push_back(x[i % count] * i);
    if (i % 3 == 2) {
      sum += open.front() * open.back();
      open.pop_front();
    }
  }
  return std::accumulate(open.begin(), open.end(), 0.01 * sum);
}

static double pairs(const double *x, int count) {
  std::vector<std::pair<double, int>> all;
  for (int i = 0; i < 40; i++)
    all.push_back({x[i % count] * (1 + 0.137 * (i / count)), i});
  std::sort(all.begin(), all.end());
  double sum = 0;
  for (int i = 0; i < 40; i++)
    sum += all[i].first * i + all[i].second;
  std::vector<double> middle(x, x + count);
  std::nth_element(middle.begin(), middle.begin() + count / 2, middle.end());
  return sum + middle[count / 2] * std::inner_product(middle.begin(), middle.end(), x, 0.0);
}

static double edited(const double *x, int count) {
  std::vector<Point> all;
  for (int i = 0; i < count; i++)
    all.emplace_back(Point{x[i], i});
  all.insert(all.begin() + 2, Point{x[0] * x[1], 99});
  all.erase(all.begin() + 4);
  std::vector<Point> others = all;
  others.insert(others.end(), all.rbegin(), all.rend());
  std::rotate(others.begin(), others.begin() + 3, others.end());
  all.swap(others);
  all.resize(all.size() + 2, Point{x[2], 1});
  double sum = 0;
  for (std::size_t i = 0; i < all.size(); i++)
    sum += all[i].value * all[i].value * (i + 1) + all[i].kind;
  for (const Point &one : others)
    sum += one.value * one.kind;
  return sum;
}

static double value(const double *x, int count) {
  return edited(x, count) + points(x, count) + particles(x, count) + queue(x, count) + pairs(x, count);
}

JUDGE(value)
