/* Structures of numbers and integers, changed through pointers. n = 4. */
struct particle { double a; int k; double b; };
static double particle_step(struct particle *q, double s) {
    q->a = q->a * q->b + s;
    q->k++;
    return q->a * q->k;
}
double structures(int n, double *x, double s) {
    struct particle q[4];
    for (int i = 0; i < n; i++) q[i] = (struct particle){x[i], i, s * i};
    double r = 0;
    for (int i = 0; i < n; i++) {
        r += particle_step(&q[i], x[0]);
        r += particle_step(&q[i], r);
    }
    return r;
}
