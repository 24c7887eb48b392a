/* Vector arithmetic, shuffles and a sum over lanes. n = 4. */
typedef double lanes __attribute__((vector_size(32)));
double vectors(int n, double *x, double s) {
    lanes a = {x[0], x[1], x[2], x[3]}, b = a * s;
    for (int k = 0; k < 3; k++) {
        lanes turned = __builtin_shufflevector(a, b, 1, 6, 3, 4);
        b = b * turned + 0.25 * a / (1 + turned * turned);
        for (int i = 0; i < 4; i++) a[i] = a[i] > b[i] ? a[i] : 0.5 * b[i] * b[i];
    }
    return a[0] * b[1] + a[2] * b[3] + b[0];
}
