// Eigen's vectors and matrices, of fixed and of free size: products, norms, an inverse, a determinant,
// rotations. Each gradient is compared with differences.
#include <Eigen/Dense>
#include <cmath>
#include <cstdio>
#include <gradus.h>

using namespace Eigen;

static double rotated(const double *p, int)
{
    Map<const Vector3d> a(p), b(p + 3);
    Matrix3d turn = AngleAxisd(p[6], Vector3d(1, 2, 2).normalized()).toRotationMatrix();
    Quaterniond q(p[7], p[8], p[9], p[10]);
    q.normalize();
    Affine3d moved = Translation3d(1, 2, 3) * q;
    Vector3d c = turn * a + a.cross(b);
    return c.norm() + a.dot(b) + (moved * (turn * b - a)).squaredNorm();
}

static double fixed(const double *p, int)
{
    Map<const Matrix4d> a(p);
    Matrix4d b = a * a.transpose() + Matrix4d::Identity() * 5;
    Vector4d v = b.inverse() * a.col(0);
    return v.dot(a.col(1)) + b.trace() + b.determinant() * 1e-3;
}

static double products(const double *p, int n)
{
    Map<const VectorXd> x(p, n);
    MatrixXd a = MatrixXd::Zero(n, n);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            a(i, j) = std::sin(x[i] * x[j]);
    VectorXd y = a * x;
    return y.squaredNorm() + (a.transpose() * y).sum();
}

typedef double function(const double *, int);
typedef void gradient(const double *, double *, int);

static int differs(const char *name, function f, gradient g)
{
    const int n = 16;
    double x[n], adjoint[n] = {0}, worst = 0, most = 0;
    for (int i = 0; i < n; i++)
        x[i] = 0.4 + std::sin(1.7 * i) * 0.3;
    g(x, adjoint, n);
    for (int i = 0; i < n; i++) {
        const double h = 1e-6, at = x[i];
        x[i] = at + h;
        double up = f(x, n);
        x[i] = at - h;
        double down = f(x, n);
        x[i] = at;
        double apart = std::fabs(adjoint[i] - (up - down) / (2 * h));
        worst = apart <= worst ? worst : apart;
        most = std::fmax(most, std::fabs(adjoint[i]));
    }
    if (worst <= 1e-6 * (1 + most) && most > 1e-3)
        return 0;
    std::printf("%s: %g of %g\n", name, worst, most);
    return 1;
}

#define DIFFERS(f)                                                                                 \
    differs(#f, f, [](const double *x, double *adjoint, int n) {                                   \
        gradus_vjp(f, gradus_dup, x, adjoint, gradus_const, n);                                    \
    })

int main()
{
    return DIFFERS(rotated) + DIFFERS(fixed) + DIFFERS(products);
}
