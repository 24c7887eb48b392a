// Virtual calls on objects made inside and outside, an object in a place of its own, destructors
// called by address.
#include "check.h"
#include <memory>
#include <new>
#include <vector>

struct Shape {
    virtual double area(double scale) const = 0;
    virtual void grow(double by) = 0;
    virtual ~Shape() {}
};

struct Circle : Shape {
    double radius;
    explicit Circle(double r) : radius(r) {}
    double area(double scale) const override { return 3.14 * radius * radius * scale; }
    void grow(double by) override { radius *= by; }
};

struct Box : Shape {
    double a, b;
    Box(double x, double y) : a(x), b(y) {}
    double area(double scale) const override { return a * b * std::sin(scale); }
    void grow(double by) override { a += by; }
};

// What stands outside of its class has two names: the constructor of the whole object, and that of a base.
struct Named : Shape {
    double side;
    explicit Named(double s);
    ~Named() override;
    double area(double scale) const override;
    void grow(double by) override;
};
Named::Named(double s) : side(s * s) {}
Named::~Named() { side = 0; }
double Named::area(double scale) const { return side * side * scale; }
void Named::grow(double by) { side += by; }

__attribute__((noinline)) static double total(Shape *const *shapes, int n, double scale)
{
    double sum = 0;
    for (int i = 0; i < n; i++) {
        shapes[i]->grow(scale);
        sum += shapes[i]->area(scale);
    }
    return sum;
}

static double value(const double *x, int n)
{
    Circle circle(x[0]);
    Box box(x[1], x[2]);
    Shape *shapes[3] = {&circle, &box, &circle};
    if (x[3] > 1)
        shapes[2] = &box;
    double sum = total(shapes, 3, x[4] * x[5]);

    Named named(x[5]);
    named.grow(x[0]);
    sum += named.area(x[1]);

    std::vector<std::unique_ptr<Shape>> owned;
    owned.emplace_back(new Named(x[2]));
    for (int i = 0; i < n; i++) {
        if (i % 2)
            owned.emplace_back(new Circle(x[i]));
        else
            owned.emplace_back(new Box(x[i], x[(i + 1) % n]));
    }
    for (auto &shape : owned)
        sum += shape->area(x[0]);

    // The vtable pointer of an object that takes another's place is laundered.
    alignas(Box) unsigned char place[sizeof(Box)];
    Shape *first = new (place) Circle(x[1]);
    sum += first->area(x[2]);
    first->~Shape();
    Shape *second = std::launder(reinterpret_cast<Shape *>(new (place) Box(x[3], x[4])));
    sum += second->area(x[5]) * 2;
    second->~Shape();
    return sum;
}

JUDGE(value)
