// constant argument of a function with a region
#include "t.h"
static inline void apply(double*restrict o,const double*restrict a,long n,int exact){
#pragma omp parallel for
  for(long i=0;i<n;i++) o[i]=exact?exp(a[i])*cos(a[i]):a[i]*a[i]+(exact>1);
}
NOINL void f(double*o,const double*a,long n){ apply(o,a,n,0); }
int main(){long n=20000;double*a=vec(n),*o=vec(n); BENCH("36_constant_flag",100,f(o,a,n);esc(o));}
