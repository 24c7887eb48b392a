// Eigen's solvers: Cholesky, with and without square roots, and LU with pivoting. Each gradient is compared
// with differences, where the matrix's columns fill whole vectors of numbers and where they do not.
#include <Eigen/Dense>
#include <cmath>
#include <cstdio>
#include <gradus.h>

using namespace Eigen;

static MatrixXd symmetric(const double *p, int n)
{
    MatrixXd a(n, n);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            a(i, j) = std::cos(p[i] - p[j]) + (i == j ? n : 0);
    return a;
}

static double cholesky(const double *p, int n)
{
    Map<const VectorXd> x(p, n);
    VectorXd b = x.array().square();
    VectorXd y = symmetric(p, n).llt().solve(b);
    return y.dot(x);
}

static double rootless(const double *p, int n)
{
    Map<const VectorXd> x(p, n);
    VectorXd b = x.array().square();
    VectorXd y = symmetric(p, n).ldlt().solve(b);
    return y.dot(x);
}

static double pivoted(const double *p, int n)
{
    Map<const VectorXd> x(p, n);
    MatrixXd a(n, n);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            a(i, j) = std::cos(p[i] - 1.3 * p[j] + i * j) + (i == (j + 3) % n ? 5 : 0);
    return a.partialPivLu().solve(x).sum();
}

typedef double function(const double *, int);
typedef void gradient(const double *, double *, int);

static int differs(const char *name, function f, gradient g, int n)
{
    double x[8], adjoint[8] = {0}, worst = 0, most = 0;
    for (int i = 0; i < n; i++)
        x[i] = 0.6 + std::sin(1.7 * i) * 0.3;
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
    if (worst <= 1e-7 && most > 1e-3)
        return 0;
    std::printf("%s of %d: %g of %g\n", name, n, worst, most);
    return 1;
}

template <function f> static int differs(const char *name)
{
    gradient *g = [](const double *x, double *adjoint, int n) {
        gradus_vjp(f, gradus_dup, x, adjoint, gradus_const, n);
    };
    return differs(name, f, g, 8) + differs(name, f, g, 7);
}

int main()
{
    return differs<cholesky>("cholesky") + differs<rootless>("rootless") + differs<pivoted>("pivoted");
}
