// Fourier's transform by even and odd places
#include "page.h"

struct complex { double re, im; };

static void combine(struct complex *out, long n, const struct complex *w, long stride, long lo, long hi) {
  if (hi - lo > 512) {
    TASKS;
    long middle = (lo + hi) / 2;
    SPAWN(combine(out, n, w, stride, lo, middle));
    combine(out, n, w, stride, middle, hi);
    SYNC;
    return;
  }
  for (long k = lo; k < hi; k++) {
    struct complex t = w[k * stride], o = out[k + n / 2], e = out[k];
    double re = t.re * o.re - t.im * o.im, im = t.re * o.im + t.im * o.re;
    out[k].re = e.re + re;
    out[k].im = e.im + im;
    out[k + n / 2].re = e.re - re;
    out[k + n / 2].im = e.im - im;
  }
}

static void fft(const struct complex *in, struct complex *out, long n, long stride, const struct complex *w) {
  if (n == 1) {
    *out = *in;
    return;
  }
  TASKS;
  SPAWN(fft(in, out, n / 2, 2 * stride, w));
  fft(in + stride, out + n / 2, n / 2, 2 * stride, w);
  SYNC;
  combine(out, n, w, stride, 0, n / 2);
}

int main(void) {
  long n = 1 << 17;
  struct complex *x = (struct complex *)numbers(2 * n), *y = (struct complex *)malloc(n * sizeof *y);
  struct complex *w = (struct complex *)malloc(n / 2 * sizeof *w);
  for (long k = 0; k < n / 2; k++) {
    w[k].re = cos(-2 * M_PI * k / n);
    w[k].im = sin(-2 * M_PI * k / n);
  }
  BENCH("fft", , fft(x, y, n, 1, w));
  double s = 0;
  for (long i = 0; i < n; i++) s = s * 0.999 + y[i].re - y[i].im;
  printf("%.12g\n", s);
}
