/* Interpreters with computed gotos: a table of labels, a table of distances, labels in variables. */
enum { PUSH, ADD, MUL, SQUARE, END };
static const int code[] = {PUSH, 0, PUSH, 1, MUL, SQUARE, PUSH, 2, ADD, END};
double by_table(int n, const double *x) {
  static const void *const table[] = {&&push, &&add, &&mul, &&square, &&end};
  double stack[16];
  int top = 0, pc = 0;
  goto *table[code[pc++]];
push:
  stack[top++] = x[code[pc++] % n];
  goto *table[code[pc++]];
add:
  top--;
  stack[top - 1] += stack[top];
  goto *table[code[pc++]];
mul:
  top--;
  stack[top - 1] *= stack[top];
  goto *table[code[pc++]];
square:
  stack[top - 1] *= stack[top - 1];
  goto *table[code[pc++]];
end:
  return stack[0];
}
double by_distances(int n, const double *x) {
  static const int table[] = {&&push - &&push, &&add - &&push, &&mul - &&push, &&square - &&push, &&end - &&push};
  double stack[16];
  int top = 0, pc = 0;
  goto *(&&push + table[code[pc++]]);
push:
  stack[top++] = x[code[pc++] % n];
  goto *(&&push + table[code[pc++]]);
add:
  top--;
  stack[top - 1] += stack[top];
  goto *(&&push + table[code[pc++]]);
mul:
  top--;
  stack[top - 1] *= stack[top];
  goto *(&&push + table[code[pc++]]);
square:
  stack[top - 1] *= stack[top - 1];
  goto *(&&push + table[code[pc++]]);
end:
  return stack[0];
}
static double power(double x, int n) {
  void *next = n > 2 ? &&high : &&low;
  double result = x;
  goto *next;
high:
  result *= x * x;
low:
  if (--n > 0 && next != &&low) {
    next = n > 2 ? &&high : &&low;
    goto *next;
  }
  return result * x;
}
double by_variable(int n, const double *x) {
  double sum = 0;
  for (int i = 0; i < n; i++)
    sum += power(x[i], i) * x[0];
  return sum;
}
