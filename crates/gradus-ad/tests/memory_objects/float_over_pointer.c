/* The same bytes hold a pointer, then a float, then a pointer. The shadow of the pointer must not become an adjoint. */
#include <stdlib.h>
typedef union { REAL number; const REAL *link; REAL pair[2]; } Slot;
__attribute__((noinline)) static void set_number(Slot *at, REAL value) { at->number = value; }
__attribute__((noinline)) static void set_second(Slot *at, REAL value) { at->pair[1] = value; }
__attribute__((noinline)) static void set_link(Slot *at, const REAL *value) { at->link = value; }
__attribute__((noinline)) static REAL number(Slot *at) { return at->number; }
__attribute__((noinline)) static REAL second(Slot *at) { return at->pair[1]; }
__attribute__((noinline)) static REAL linked(Slot *at) { return *at->link; }
static REAL g(const REAL *x, int n) {
  Slot *slots = malloc(n * sizeof *slots);
  REAL sum = 0;
  for (int i = 0; i < n; i++) set_link(slots + i, x + i);
  for (int i = 0; i < n; i++) sum += linked(slots + i) * linked(slots + i);
  for (int i = 0; i < n; i++) set_number(slots + i, 3 * x[i]);
  for (int i = 0; i < n; i++) set_second(slots + i, x[i] * x[i]);
  for (int i = 0; i < n; i++) sum += number(slots + i) * second(slots + i);
  for (int i = 0; i < n; i++) set_link(slots + i, x + n - 1 - i);
  for (int i = 0; i < n; i++) sum *= 0.5 * linked(slots + i);
  for (int i = 0; i < n; i++) set_number(slots + i, x[i] * i);
  for (int i = 0; i < n; i++) sum += number(slots + i) * x[i];
  free(slots);
  return sum;
}
