// function pointer handed to a function with a region
#include "t.h"
static float clip(float x){return x>1?1:x<0?0:x;}
static inline void each(float*restrict o,const float*restrict a,long n,float(*g)(float)){
#pragma omp parallel for
  for(long i=0;i<n;i++) o[i]=g(a[i]);
}
NOINL void f(float*o,const float*a,long n){ each(o,a,n,clip); }
int main(){long n=50000;float*a=malloc(n*4),*o=malloc(n*4);for(long i=0;i<n;i++)a[i]=(i%7)*0.3f; BENCH("40_pointer_map",50,f(o,a,n);esc(o));}
