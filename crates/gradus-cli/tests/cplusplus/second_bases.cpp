// Virtual functions that are called by a second base, or by a virtual one, move the object's address first; tables of
// such bases begin with distances.
#include "check.h"

struct A {
    double a = 0;
    virtual double g(double t) { return a * t; }
    virtual ~A() {}
};
struct B {
    double b = 0;
    virtual double h(double t) { return b + t * t; }
    virtual ~B() {}
};
struct C : A, B {
    double c = 0;
    double g(double t) override { return c * t + b; }
    double h(double t) override { return a * c * t; }
};
struct V : virtual B {
    double v = 0;
    double h(double t) override { return b * v * t; }
};

static double value(const double *x, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) {
        B *p;
        if (i % 3 == 1) {
            C *c = new C;
            c->a = x[i];
            c->b = x[i - 1];
            c->c = x[i];
            sum += static_cast<A *>(c)->g(x[1]);
            p = c;
        } else if (i % 3 == 2) {
            V *v = new V;
            v->v = x[i];
            v->b = x[i - 1];
            p = v;
        } else {
            p = new B;
            p->b = x[i];
        }
        sum += p->h(x[0]);
        delete p;
    }
    return sum;
}

JUDGE(value)
