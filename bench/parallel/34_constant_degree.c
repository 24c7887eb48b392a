// constant argument of a function with a region
#include "t.h"
static inline void horner(float*restrict o,const float*restrict in,long n,int deg){
#pragma omp parallel for
  for(long i=0;i<n;i++){ float r=1; for(int k=0;k<deg;k++) r=r*in[i]+0.5f; o[i]=r; }
}
NOINL void f(float*o,const float*in,long n){ horner(o,in,n,8); }
int main(){long n=50000;float*a=malloc(n*4),*o=malloc(n*4);for(long i=0;i<n;i++)a[i]=(i%7)*0.1f; BENCH("34_constant_degree",50,f(o,a,n);esc(o));}
