// irregular search: every child has a board of its own
#include "page.h"

static int fits(int row, int column, const char *board) {
  for (int i = 0; i < row; i++) {
    int d = board[i] - column;
    if (d == 0 || d == row - i || d == i - row) return 0;
  }
  return 1;
}

static long queens(int n, int row, const char *board) {
  if (row == n) return 1;
  TASKS;
  long room[16], *counts = room;
  for (int column = 0; column < n; column++) {
    counts[column] = 0;
    if (!fits(row, column, board)) continue;
    SPAWN_BLOCK({
      char next[16];
      memcpy(next, board, 16);
      next[row] = (char)column;
      counts[column] = queens(n, row + 1, next);
    });
  }
  SYNC;
  long all = 0;
  for (int column = 0; column < n; column++) all += counts[column];
  return all;
}

int main(void) {
  long r = 0;
  volatile int n = 10;
  char board[16] = {0};
  BENCH("nqueens", , r = queens(n, 0, board));
  printf("%ld\n", r);
}
