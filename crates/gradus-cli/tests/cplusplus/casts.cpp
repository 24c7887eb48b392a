// Objects that are asked for their class, by address and by reference, also from a second base.
#include "check.h"
#include <memory>
#include <typeinfo>
#include <vector>

struct Named {
    virtual ~Named() {}
    int id = 3;
};
struct Shape {
    double scale = 1;
    virtual ~Shape() {}
    virtual double area() const = 0;
};
struct Circle : Shape {
    double r;
    Circle(double r) : r(r) {}
    double area() const override { return r * r * 3.14 * scale; }
};
struct Rect : Named, Shape {
    double w, h;
    Rect(double w, double h) : w(w), h(h) {}
    double area() const override { return w * h * scale; }
};
struct Square : Rect {
    Square(double w) : Rect(w, w) {}
};

static double value(const double *x, int n)
{
    std::vector<std::unique_ptr<Shape>> shapes;
    for (int i = 0; i < n; i++) {
        if (i % 3 == 0)
            shapes.emplace_back(new Circle(x[i]));
        else if (i % 3 == 1)
            shapes.emplace_back(new Rect(x[i], x[0]));
        else
            shapes.emplace_back(new Square(x[i]));
    }
    double sum = 0;
    for (auto &shape : shapes) {
        sum += shape->area();
        if (auto *circle = dynamic_cast<Circle *>(shape.get()))
            sum += circle->r * sin(circle->r);
        if (auto *rect = dynamic_cast<Rect *>(shape.get())) {
            sum += rect->w * rect->h * rect->id;
            rect->w *= 2;
        }
        if (auto *square = dynamic_cast<Square *>(shape.get()))
            sum += square->w;
        sum += shape->area() * x[1];
        try {
            sum += dynamic_cast<Rect &>(*shape).h;
        } catch (const std::bad_cast &) {
            sum += x[2];
        }
    }
    return sum;
}

JUDGE(value)
