// invariant reading call of another file
#include "t.h"
// with mag_ext.c
__attribute__((pure)) double mag(const double*a,long n);
NOINL void f(double*restrict o,const double*restrict in,long n){
#pragma omp parallel for
  for(long i=0;i<n;i++) o[i]=in[i]/mag(in,n);
}
int main(){long n=4096;double*a=vec(n),*o=vec(n); BENCH("30_norm_pure",20,f(o,a,n);esc(o));}
