// Vectors of structures with numbers beside integers: all but the first are filled from the first, at an address of
// which a multiple of the size and a constant are known.
#include "check.h"
#include <vector>

struct Node {
  int index;
  double value;
};

struct Entry {
  float weight;
  int next;
  double *at;
};

static double value(const double *x, int count) {
  const int n = 2 * count;
  std::vector<Node> nodes(3 * n);
  for (int i = 0; i < n; i++) {
    nodes[3 * i].index = 1 + i % 4;
    nodes[3 * i].value = std::sin(i * x[0]);
    nodes[3 * i + 1].index = 2;
    nodes[3 * i + 1].value = x[1 + i % 3] * x[0];
    nodes[3 * i + 2].index = -1;
  }
  std::vector<double> values(n, x[2]);
  std::vector<Entry> entries(n, Entry{0, -1, &values[0]});
  for (int i = 1; i < n; i++) {
    values[i] = values[i - 1] * x[3];
    entries[i - 1].next = i;
    if (i % 3)
      entries[i].at = &values[i];
  }
  double sum = 0;
  for (int i = 0; i < n; i++)
    for (const Node *node = &nodes[3 * i]; node->index != -1; node++)
      sum += node->value * node->index;
  for (int i = 0; i != -1; i = entries[i].next)
    sum += *entries[i].at * i;
  return sum;
}

JUDGE(value)
