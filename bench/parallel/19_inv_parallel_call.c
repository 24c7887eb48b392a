// invariant call of a parallel function in a serial loop
#include "t.h"
// a parallel function of values that do not change, called in a serial loop
NOINL static double norm(const double*a,long n){ double s=0;
#pragma omp parallel for reduction(+:s)
  for(long i=0;i<n;i++) s+=a[i]*a[i];
  return sqrt(s); }
NOINL void f(double*restrict o,const double*restrict in,long n,long m){
  for(long k=0;k<m;k++) o[k]=in[k]/norm(in,n);
}
int main(){long n=65536,m=256;double*a=vec(n),*o=vec(m); BENCH("19_inv_parallel_call",1,f(o,a,n,m);esc(o));}
