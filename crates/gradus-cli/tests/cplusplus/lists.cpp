// Lists of numbers, of structures and of what has memory of its own: filled at both ends, taken out of, spliced, sorted,
// merged, swapped and moved; one whose nodes come and go for long.
#include "check.h"
#include <list>
#include <vector>
#include <string>
#include <iterator>
struct Point { double value; int kind; };
struct Body { double place; std::vector<double> past; std::string name; };
static double numbers(const double *x, int count) {
  std::list<double> all;
  for (int i = 0; i < 3 * count; i++) {
    if (i % 3)
      all.push_back(x[i % count] * (i + 1));
    else
      all.push_front(x[i % count] * x[(i + 1) % count]);
  }
  double sum = 0;
  int place = 1;
  for (double v : all) sum += v * v * place++;
  for (auto it = all.begin(); it != all.end();) {
    if (place++ % 3 == 0) it = all.erase(it);
    else { *it *= x[1]; ++it; }
  }
  all.sort();
  all.reverse();
  std::list<double> other(all);
  other.push_back(x[0] * x[0]);
  all.splice(std::next(all.begin()), other, other.begin(), std::prev(other.end()));
  all.swap(other);
  other.sort();
  all.sort();
  other.merge(all);
  all.push_back(x[4] * sum * 1e-3);
  place = 1;
  for (double v : other) sum += v * v * place++;
  for (auto it = all.rbegin(); it != all.rend(); ++it) sum += *it * *it * place++;
  return sum + all.size() * x[2] + other.size();
}
static double points(const double *x, int count) {
  std::list<Point> all;
  for (int i = 0; i < 20; i++) all.push_back({x[i % count] * (1 + 0.3 * i), i % 4});
  all.remove_if([](const Point &p) { return p.kind == 2; });
  all.sort([](const Point &a, const Point &b) { return a.value < b.value; });
  std::list<Point> moved = std::move(all);
  all.assign(3, Point{x[3], 1});
  all.insert(all.begin(), moved.begin(), std::next(moved.begin(), 4));
  double sum = 0;
  int i = 1;
  for (const Point &p : all) sum += p.value * p.value * p.kind * i++;
  for (const Point &p : moved) sum += p.value * p.kind * i++;
  return sum;
}
static double bodies(const double *x, int count) {
  std::list<Body> all;
  for (int i = 0; i < count; i++) {
    Body b;
    b.place = x[i] * x[(i + 1) % count];
    for (int k = 0; k <= i; k++) b.past.push_back(x[k] * x[i]);
    b.name = "a long name that does not fit in place " + std::to_string(i);
    all.push_back(b);
  }
  all.pop_front();
  all.splice(all.begin(), all, std::prev(all.end()));
  double sum = 0;
  int n = 1;
  for (Body &b : all) {
    b.past.push_back(b.place);
    for (double p : b.past) sum += p * p * n++;
    sum += b.name.size() * b.place;
  }
  return sum;
}
static double queue(const double *x, int count) {
  std::list<double> open(3, x[0]);
  double sum = 0;
  for (int i = 0; i < 200; i++) {
    open.push_back(open.front() * 0.5 + x[i % count]);
    if (i % 3) { sum += open.front() * open.back() * i; open.pop_front(); }
    if (i % 5 == 0) open.splice(open.end(), open, open.begin());
    if (i % 50 == 49) { std::list<double> kept; kept.splice(kept.begin(), open, open.begin()); open.clear(); open.swap(kept); }
  }
  for (double v : open) sum += v * v;
  return 1e-3 * sum;
}
static double value(const double *x, int count) { return numbers(x, count) + points(x, count) + bodies(x, count) + queue(x, count); }
JUDGE(value)
