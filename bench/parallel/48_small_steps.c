// small region: the fork costs more than the work
#include "t.h"
NOINL void f(double*restrict o,const double*restrict a,long n,long steps){
  for(long t=0;t<steps;t++){
#pragma omp parallel for
    for(long i=1;i<n-1;i++) o[i]=o[i]*0.5+a[i-1]+a[i+1];
  }
}
int main(){long n=64;double*a=vec(n),*o=vec(n); BENCH("48_small_steps",2000,f(o,a,n,100);esc(o));}
