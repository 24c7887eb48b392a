/* Structures of numbers and pointers that change places. n = 4. */
struct knot { double v; struct knot *next; int k; double w; };
__attribute__((noinline)) static void knot_twist(struct knot *a, struct knot *b) {
    struct knot t = *a;
    *a = *b;
    *b = t;
    a->v *= t.w;
}
double structure_copies(int n, double *x, double s) {
    struct knot a = {x[0], 0, 1, x[1]}, b = {x[2], &a, 2, s};
    a.next = &b;
    knot_twist(&a, &b);
    double r = 0;
    struct knot *p = &a;
    for (int i = 0; i < n; i++) {
        r += p->v * p->w * x[i] + p->k;
        p = p->next;
    }
    return r;
}
