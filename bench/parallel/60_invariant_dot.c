// invariant call of a parallel function in a serial loop
#include "t.h"
NOINL static double dot(const double*a,const double*b,long n){ double s=0;
#pragma omp parallel for reduction(+:s)
  for(long i=0;i<n;i++) s+=a[i]*b[i];
  return s; }
NOINL void f(double*restrict o,const double*restrict a,const double*restrict b,long n,long m){
  for(long k=0;k<m;k++) o[k]=a[k]*dot(a,b,n);
}
int main(){long n=20000,m=100;double*a=vec(n),*b=vec(n),*o=vec(m); BENCH("60_invariant_dot",10,f(o,a,b,n,m);esc(o));}
