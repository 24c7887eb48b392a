/* Arrays of a computed size in the middle of iterations and scopes, whose tasks use them. */
#include <gradus/parallel.h>
#include <stdio.h>
#include <string.h>

static int cells[40 * 40];

static void sum(const char *name) {
  int s = 0;
  for (int i = 0; i < 40 * 40; i++) s = s * 31 + cells[i];
  printf("%s %d\n", name, s);
  memset(cells, 0, sizeof cells);
}

static void iterations(int n) {
  gr_for (int i = 0; i < n; i++) {
    int row[n];
    row[0] = i;
    for (int j = 1; j < n; j++) row[j] = row[j - 1] + j;
    for (int j = 0; j < n; j++) { gr_spawn cells[i * n + j] = row[j] + 1; }
    gr_sync();
    row[0] = 5;
    for (int j = 0; j < n; j++) { gr_spawn cells[i * n + j] += row[j]; }
  }
}

static void scopes(int n) {
  for (int i = 0; i < n; i++) gr_scope {
    int row[n];
    row[0] = i;
    for (int j = 1; j < n; j++) row[j] = row[j - 1] + j;
    for (int j = 0; j < n; j++) { gr_spawn cells[i * n + j] = row[j] + 1; }
    gr_sync();
    row[0] = 5;
    for (int j = 0; j < n; j++) { gr_spawn cells[i * n + j] += row[j]; }
  }
}

static void inner_scopes(int n) {
  gr_for (int i = 0; i < n; i++) {
    int row[i + 1];
    for (int j = 0; j <= i; j++) row[j] = i - j;
    gr_scope {
      int *copy = __builtin_alloca((i + 1) * sizeof *copy);
      for (int j = 0; j <= i; j++) copy[j] = 2 * row[j];
      for (int j = 0; j <= i; j++) {
        if (row[j] == 3) continue;
        gr_spawn cells[i * n + j] = row[j] + copy[j];
      }
    }
    cells[i * n] += row[i];
  }
}

int main(void) {
  iterations(40);
  sum("iterations");
  scopes(40);
  sum("scopes");
  inner_scopes(40);
  sum("inner scopes");
}
