// tasks without a cut-off
#include "t.h"
NOINL void f(double*restrict o,const double*restrict a,long n){
#pragma omp parallel
#pragma omp single
  for(long i=0;i<n;i++) {
#pragma omp task firstprivate(i)
    o[i]=a[i]*a[i]+1;
  }
}
int main(){long n=10000;double*a=vec(n),*o=vec(n); BENCH("58_tasks_loop",10,f(o,a,n);esc(o));}
