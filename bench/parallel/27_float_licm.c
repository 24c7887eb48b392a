// invariant reading call: its operands are captured by reference
#include "t.h"
NOINL static float norm(const float*a,long n){float s=0;for(long i=0;i<n;i++)s+=a[i]*a[i];return sqrtf(s);}
NOINL void f(float*restrict o,const float*restrict a,long n){
#pragma omp parallel for
  for(long i=0;i<n;i++) o[i]=a[i]/norm(a,n);
}
int main(){long n=4096;float*a=malloc(n*4),*o=malloc(n*4);for(long i=0;i<n;i++)a[i]=i%7; BENCH("27_float_licm",20,f(o,a,n);esc(o));}
