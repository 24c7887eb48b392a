// small region: the fork costs more than the work
#include "t.h"
NOINL void f(double*restrict o,const double*restrict a,long n){
#pragma omp parallel for
  for(long i=0;i<n;i++) o[i]=a[i]*a[i]+1;
}
int main(){long n=4;double*a=vec(8),*o=vec(8); BENCH("44_small_four",200000,f(o,a,n);esc(o));}
