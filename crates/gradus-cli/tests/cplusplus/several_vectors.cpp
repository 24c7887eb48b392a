// Structures that have several vectors, of numbers and of integers, which are made, resized, filled and moved by the same
// functions of the library.
#include "check.h"
#include <utility>
#include <vector>
struct Cells {
  std::vector<double> mass, place;
  std::vector<int> next;
  std::vector<double> force;
  std::vector<long> order;
  explicit Cells(int count) : mass(count), place(count) {}
  void link(int cell) {
    next.push_back((cell * 7 + 3) % int(mass.size()));
    order.insert(order.begin(), cell);
  }
};
struct Rows {
  std::vector<int> begin, column;
  std::vector<double> entry, left, right;
};
static double meshed(const double *x, int count) {
  Cells cells(count);
  for (int i = 0; i < count; i++) {
    cells.mass[i] = 1 + x[i] * x[i];
    cells.place[i] = 2 * x[i];
    cells.link(i);
  }
  cells.force.resize(count);
  for (int i = 0; i < count; i++)
    cells.force[cells.next[i]] += cells.mass[i] * (cells.place[i] - cells.place[cells.next[i]]);
  Cells moved = std::move(cells), copy = moved;
  copy.force.assign(count, x[0]);
  double sum = 0;
  for (long i : moved.order) sum += moved.force[i] * moved.place[i] + copy.force[i] * copy.mass[i];
  return sum;
}
static double multiplied(const double *x, int count) {
  Rows rows;
  rows.left.resize(count);
  rows.right.resize(count);
  for (int i = 0; i < count; i++) {
    rows.begin.push_back(int(rows.column.size()));
    rows.left[i] = x[i];
    for (int j = i % 3; j < count; j += 2) {
      rows.column.push_back(j);
      rows.entry.push_back(x[i] * x[j] + j);
    }
  }
  rows.begin.push_back(int(rows.column.size()));
  double sum = 0;
  for (int times = 0; times < 3; times++) {
    for (int i = 0; i < count; i++) {
      double dot = 0;
      for (int k = rows.begin[i]; k < rows.begin[i + 1]; k++) dot += rows.entry[k] * rows.left[rows.column[k]];
      rows.right[i] = dot / (1 + dot * dot);
    }
    rows.left.swap(rows.right);
    for (double v : rows.left) sum += v;
  }
  return sum;
}
static double value(const double *x, int count) { return meshed(x, count) + multiplied(x, count); }
JUDGE(value)
