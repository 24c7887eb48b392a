// constant argument of a function with a region
#include "t.h"
static inline void raised(double*restrict o,const double*restrict a,long n,double e){
#pragma omp parallel for
  for(long i=0;i<n;i++) o[i]=pow(a[i],e)+1;
}
NOINL void f(double*o,const double*a,long n){ raised(o,a,n,0.5); }
int main(){long n=20000;double*a=vec(n),*o=vec(n); BENCH("37_constant_power",20,f(o,a,n);esc(o));}
