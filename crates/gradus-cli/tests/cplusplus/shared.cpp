// Objects that are shared and counted, behind virtual functions that call virtual functions: a list of
// shapes is a shape, each has a surface, and what was hit is told in a record with several vectors in it.
#include "check.h"
#include <memory>
#include <vector>

struct Vec {
    double e[3];
    Vec() : e{0, 0, 0} {}
    Vec(double a, double b, double c) : e{a, b, c} {}
    Vec operator+(const Vec &o) const { return Vec(e[0] + o.e[0], e[1] + o.e[1], e[2] + o.e[2]); }
    Vec operator*(double s) const { return Vec(s * e[0], s * e[1], s * e[2]); }
    double dot(const Vec &o) const { return e[0] * o.e[0] + e[1] * o.e[1] + e[2] * o.e[2]; }
};

struct Ray {
    Vec from, along;
    Ray() {}
    Ray(const Vec &a, const Vec &b) : from(a), along(b) {}
};

struct Surface;

struct Hit {
    Vec at, normal;
    std::shared_ptr<Surface> surface;
    double far;
    bool outside;
};

struct Surface {
    virtual ~Surface() = default;
    virtual bool scatter(const Ray &in, const Hit &hit, Vec &colour, Ray &out) const = 0;
};

struct Matt : Surface {
    Vec albedo;
    explicit Matt(const Vec &a) : albedo(a) {}
    bool scatter(const Ray &in, const Hit &hit, Vec &colour, Ray &out) const override
    {
        Vec direction = hit.normal + in.along * 0.1;
        if (direction.dot(direction) < 1e-8)
            direction = hit.normal;
        out = Ray(hit.at, direction);
        colour = albedo;
        return true;
    }
};

struct Glass : Surface {
    double index;
    explicit Glass(double i) : index(i) {}
    bool scatter(const Ray &in, const Hit &hit, Vec &colour, Ray &out) const override
    {
        out = Ray(hit.at, in.along * index + hit.normal * -0.5);
        colour = Vec(1, 0.9, 0.8);
        return index > 0.1;
    }
};

struct Shape {
    virtual ~Shape() = default;
    virtual bool hit(const Ray &ray, double nearest, double farthest, Hit &hit) const = 0;
};

struct Ball : Shape {
    Vec centre;
    double radius;
    std::shared_ptr<Surface> surface;
    Ball(const Vec &c, double r, std::shared_ptr<Surface> s) : centre(c), radius(r), surface(s) {}
    bool hit(const Ray &ray, double nearest, double farthest, Hit &hit) const override
    {
        Vec to = ray.from + centre * -1;
        double a = ray.along.dot(ray.along), half = to.dot(ray.along);
        double rest = half * half - a * (to.dot(to) - radius * radius);
        if (rest < 0)
            return false;
        double far = (-half - std::sqrt(rest)) / a;
        if (far <= nearest || far >= farthest)
            far = (-half + std::sqrt(rest)) / a;
        if (far <= nearest || far >= farthest)
            return false;
        hit.far = far;
        hit.at = ray.from + ray.along * far;
        Vec outward = (hit.at + centre * -1) * (1 / radius);
        hit.outside = ray.along.dot(outward) < 0;
        hit.normal = hit.outside ? outward : outward * -1;
        hit.surface = surface;
        return true;
    }
};

struct List : Shape {
    std::vector<std::shared_ptr<Shape>> shapes;
    bool hit(const Ray &ray, double nearest, double farthest, Hit &hit) const override
    {
        Hit one;
        bool any = false;
        for (const auto &shape : shapes)
            if (shape->hit(ray, nearest, farthest, one)) {
                any = true;
                farthest = one.far;
                hit = one;
            }
        return any;
    }
};

static Vec traced(const Ray &ray, int depth, const Shape &world)
{
    Hit hit;
    if (depth > 0 && world.hit(ray, 1e-3, 1e9, hit)) {
        Ray out;
        Vec colour;
        if (!hit.surface->scatter(ray, hit, colour, out))
            return Vec();
        Vec light = traced(out, depth - 1, world);
        return Vec(colour.e[0] * light.e[0], colour.e[1] * light.e[1], colour.e[2] * light.e[2]);
    }
    return Vec(1, 1, 1) * (1 + 0.3 * ray.along.e[1]);
}

static double value(const double *x, int n)
{
    auto matt = std::make_shared<Matt>(Vec(x[0], 0.5 * x[1], 0.3));
    auto glass = std::make_shared<Glass>(x[2]);
    List world;
    world.shapes.push_back(std::make_shared<Ball>(Vec(0, -100.5, -1), 100, matt));
    world.shapes.push_back(std::make_shared<Ball>(Vec(-1, 0.1 * x[3], -1), 0.5, glass));
    world.shapes.push_back(std::make_shared<Ball>(Vec(0.2, 0, -1), 0.25 * x[4], matt));
    double sum = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            Vec along(-1 + 0.4 * i, -0.6 + 0.21 * j + 0.01 * x[5], -1);
            Vec light = traced(Ray(Vec(0, 0, 0.5), along), 4, world);
            sum += light.dot(Vec(1, 0.5, 0.25));
        }
    return sum;
}

JUDGE(value)
