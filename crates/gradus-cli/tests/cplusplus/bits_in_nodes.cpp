// The bits of numbers in a list, changed under another name: where a node has a number, the head has an integer.
#include "check.h"
#include <list>

static double value(const double *x, int count) {
  std::list<double> all;
  for (int i = 0; i < count; i++)
    all.push_back(x[i]);
  for (double &one : all)
    *(long *)&one += 1L << 52;
  double sum = 0;
  for (double one : all)
    sum += one * one;
  return sum;
}

JUDGE(value)
