/* Pointers to blocks that lie 8 MiB apart, and floats in the same bytes later. The low halves of such addresses include
   numbers of every magnitude. */
#include <stdlib.h>
enum { BLOCKS = 256, BYTES = 8 << 20 };
typedef union { REAL number; REAL *link; } Slot;
__attribute__((noinline)) static void set_number(Slot *at, REAL value) { at->number = value; }
__attribute__((noinline)) static void set_link(Slot *at, REAL *value) { at->link = value; }
__attribute__((noinline)) static REAL number(Slot *at) { return at->number; }
static REAL g(const REAL *x, int n) {
  Slot *slots = malloc(BLOCKS * sizeof *slots);
  REAL *blocks[BLOCKS], sum = 0;
  for (int i = 0; i < BLOCKS; i++) {
    blocks[i] = malloc(BYTES);
    blocks[i][0] = x[i % n];
    set_link(slots + i, blocks[i]);
  }
  for (int i = 0; i < BLOCKS; i++) sum += *slots[i].link * *slots[i].link;
  for (int i = 0; i < BLOCKS; i++) set_number(slots + i, 3 * x[i % n]);
  for (int i = 0; i < BLOCKS; i++) sum += number(slots + i) * x[i % n];
  for (int i = 0; i < BLOCKS; i++) free(blocks[i]);
  free(slots);
  return sum / BLOCKS;
}
