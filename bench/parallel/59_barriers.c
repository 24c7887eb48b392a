// barriers between loops that need none
#include "t.h"
NOINL void f(double*restrict o,double*restrict q,double*restrict r,const double*restrict a,long n){
#pragma omp parallel
  {
#pragma omp for
    for(long i=0;i<n;i++) o[i]=a[i]*2;
#pragma omp for
    for(long i=0;i<n;i++) q[i]=a[i]+2;
#pragma omp for
    for(long i=0;i<n;i++) r[i]=a[i]-2;
  }
}
int main(){long n=128;double*a=vec(n),*o=vec(n),*q=vec(n),*r=vec(n); BENCH("59_barriers",50000,f(o,q,r,a,n);esc(o);esc(q);esc(r));}
