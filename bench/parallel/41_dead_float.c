// dead parallel loop: memory that is only written
#include "t.h"
NOINL void f(float*restrict o,const float*restrict a,long n){
  float*t=malloc(n*4);
#pragma omp parallel for
  for(long i=0;i<n;i++) t[i]=sqrtf(a[i])/(a[i]+1);
#pragma omp parallel for
  for(long i=0;i<n;i++) o[i]=a[i]*2;
  free(t);
}
int main(){long n=50000;float*a=malloc(n*4),*o=malloc(n*4);for(long i=0;i<n;i++)a[i]=i%7; BENCH("41_dead_float",50,f(o,a,n);esc(o));}
