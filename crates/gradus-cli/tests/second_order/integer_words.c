/* Numbers carried by integer loads and stores. n = 3. */
#include <stdint.h>
double integer_words(int n, double *x, double s) {
    int64_t bits;
    double t = x[0] * s, u;
    memcpy(&bits, &t, 8);
    memcpy(&u, &bits, 8);
    return u * u * x[1] + x[2] * u;
}
