/* Functions that say where numbers are: one address, two, and one with a number beside it. n = 3. */
static double places_first[4], places_second[4];
struct places_pair { double *a, *b; };
struct places_scaled { double by; double *a; };
__attribute__((noinline)) static double *places_one(int k) {
    return k > 100 ? places_second : places_first;
}
__attribute__((noinline)) static struct places_pair places_two(int k) {
    struct places_pair p = {places_first, places_second};
    if (k > 100) p.a = places_second;
    return p;
}
__attribute__((noinline)) static struct places_scaled places_with(int k, double by) {
    struct places_scaled p = {by * by, places_first};
    if (k > 100) p.a = 0;
    return p;
}
double returned_places(int n, double *x, double s) {
    for (int i = 0; i < n; i++) {
        places_one(n)[i] = x[i] * x[i] * s;
        places_two(n).b[i] = x[i] + s;
    }
    double r = 0;
    for (int i = 0; i < n; i++) {
        struct places_pair p = places_two(i);
        struct places_scaled q = places_with(i, 2), v = places_with(n, x[i]);
        r += p.a[i] * p.b[n - 1 - i] * q.a[i] * q.by + v.by * v.a[n - 1 - i];
    }
    return r;
}
