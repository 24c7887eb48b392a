// constant argument of a function with a region
#include "t.h"
static inline void rows(double*restrict o,const double*restrict a,long n,int m){
#pragma omp parallel for
  for(long i=0;i<n;i++){ double s=0; for(int k=0;k<m;k++) s+=a[i*m+k]; o[i]=s; }
}
NOINL void f(double*o,const double*a,long n){ rows(o,a,n,3); }
int main(){long n=30000;double*a=vec(3*n),*o=vec(n); BENCH("35_constant_width",50,f(o,a,n);esc(o));}
