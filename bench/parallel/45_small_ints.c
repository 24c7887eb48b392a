// small region: the fork costs more than the work
#include "t.h"
NOINL void f(int*restrict o,const int*restrict a,int n){
#pragma omp parallel for
  for(int i=0;i<n;i++) o[i]=(a[i]<<3)^a[i];
}
int main(){int n=16,a[16],o[16];for(int i=0;i<n;i++)a[i]=i; BENCH("45_small_ints",200000,f(o,a,n);esc(o));}
