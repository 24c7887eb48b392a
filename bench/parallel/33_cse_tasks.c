// reading calls made again in tasks
#include "t.h"
NOINL static double g(const double*a,long n){double s=0;for(long i=0;i<n;i++)s+=a[i]*sqrt(a[i]);return s;}
NOINL void f(double*restrict x,const double*restrict a,long n){
#pragma omp parallel
#pragma omp single
 {
  double p,q;
#pragma omp task shared(p)
  p=g(a,n)+1;
#pragma omp task shared(q)
  q=g(a,n)+2;
  double r=g(a,n)+3;
#pragma omp taskwait
  x[0]=p;x[1]=q;x[2]=r;
 }
}
int main(){long n=50000;double*a=vec(n),x[3]; BENCH("33_cse_tasks",20,f(x,a,n);esc(x));}
