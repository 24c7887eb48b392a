/* Blocks made by one call, returned and overwritten by others: what the first read is gone in the reverse pass. n = 3. */
#include <stdlib.h>
struct returned_pair { double *a, *b; };
__attribute__((noinline)) static struct returned_pair *returned_make(int n, double *x, double s) {
    struct returned_pair *p = malloc(sizeof *p);
    p->a = malloc(n * sizeof(double));
    p->b = malloc(n * sizeof(double));
    double *a = p->a, *b = p->b;
    for (int i = 0; i < n; i++) a[i] = x[i] * s;
    for (int i = 0; i < n; i++) b[i] = a[i] * a[n - 1 - i];
    return p;
}
__attribute__((noinline)) static double returned_use(int n, struct returned_pair *p, double s) {
    double r = 0;
    for (int i = 0; i < n; i++) {
        r += p->a[i] * p->b[i];
        p->a[i] = s;
        p->b[i] = r * s;
    }
    return r;
}
double returned_blocks(int n, double *x, double s) {
    struct returned_pair *p = returned_make(n, x, s);
    double r = returned_use(n, p, s) + returned_use(n, p, x[0]);
    free(p->a);
    free(p->b);
    free(p);
    return r;
}
