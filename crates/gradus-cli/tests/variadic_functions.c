#include <stdarg.h>
struct point { double x, y, z; };
struct pair { float x, y; };
__attribute__((noinline)) static double sum(int n, ...)
{
    va_list list;
    double s = 0;
    va_start(list, n);
    while (n-- > 0)
        s += va_arg(list, double);
    va_end(list);
    return s;
}
double numbers(double x) { return sum(3, x * x, x, 2.0) * sum(0) + sum(2, x, sum(1, x * x)) * x; }
static double product(int n, va_list list)
{
    double s = 1;
    while (n-- > 0)
        s *= *va_arg(list, double *);
    return s;
}
__attribute__((noinline)) static double twice(int n, ...)
{
    va_list list, again;
    va_start(list, n);
    va_copy(again, list);
    double r = product(n, list) + product(n - 1, again);
    va_end(list);
    va_end(again);
    return r;
}
double addresses(double x)
{
    double a = x * x, b = 3 * x, c = x + 1;
    return twice(3, &a, &b, &c);
}
__attribute__((noinline)) static double norms(int n, ...)
{
    va_list list;
    double s = 0;
    va_start(list, n);
    for (int i = 0; i < n; i++) {
        struct point p = va_arg(list, struct point);
        s += p.x * p.y + p.z;
    }
    va_end(list);
    return s;
}
double structures(double x)
{
    struct point p = {x, x * x, 2}, q = {1, x, x * x * x};
    return norms(2, p, q) * x;
}
__attribute__((noinline)) static float pairs(int n, ...)
{
    va_list list;
    float s = 0;
    va_start(list, n);
    for (int i = 0; i < n; i++) {
        struct pair p = va_arg(list, struct pair);
        s += p.x * p.y;
    }
    va_end(list);
    return s;
}
float in_registers(float f)
{
    struct pair p = {f, f * f}, q = {2, f}, many = {f, 1};
    return pairs(10, p, q, many, p, q, many, p, q, many, p) * f;
}
__attribute__((noinline)) static double nested(int depth, ...)
{
    va_list list;
    va_start(list, depth);
    double x = va_arg(list, double), y = va_arg(list, double);
    va_end(list);
    return depth == 0 ? x * y : nested(depth - 1, x * y, y) + x;
}
double recursive(double x)
{
    double s = 0;
    for (int i = 0; i < 3; i++)
        s += nested(i, x * i, x);
    return s;
}
__attribute__((noinline)) static void add(struct point *p, int n, ...)
{
    va_list list;
    va_start(list, n);
    while (n-- > 0)
        p->x += p->y * va_arg(list, int);
    va_end(list);
}
double integers(double x)
{
    struct point p = {x * x, x, 0};
    add(&p, 8, 1, 2, 3, 4, 5, 6, 7, 8);
    return p.x;
}
