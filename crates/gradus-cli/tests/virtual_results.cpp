/* Virtual functions that return numbers beside integers. */
struct Part { int count; float number; };
struct Triple { float a, b; int count; };
struct Shape {
    virtual Part part(float x, int i) const = 0;
    virtual Triple turned(Triple r) const { return r; }
    virtual ~Shape() {}
};
struct Round : Shape {
    float k;
    explicit Round(float k) : k(k) {}
    Part part(float x, int i) const override { return {i, k * x * x}; }
};
struct Long : Shape {
    float k;
    explicit Long(float k) : k(k) {}
    Part part(float x, int i) const override { return {i + 1, i > 2 ? (k + x) * x : k + x}; }
    Triple turned(Triple r) const override { return {r.b * k, r.a, r.count + 1}; }
};
extern "C" double virtual_parts(const double *x, int n)
{
    Shape *shapes[2] = {new Round(float(x[0])), new Long(float(x[1]))};
    double s = 0;
    Triple r = {1, 2, 0};
    for (int i = 0; i < n; i++) {
        Part p = shapes[i & 1]->part(float(x[i]), i), q = shapes[(i + 1) & 1]->part(p.number, p.count);
        r.a += p.number;
        r.b *= q.number + 2;
        r = shapes[(i / 2) & 1]->turned(r);
        s += p.number * q.number * q.count + r.a;
    }
    delete shapes[0];
    delete shapes[1];
    return s + r.a * r.b * r.count;
}
