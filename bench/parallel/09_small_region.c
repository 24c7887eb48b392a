// small region: the fork costs more than the work
#include "t.h"
// eight iterations: no team is worth forking
NOINL void f(double*restrict o,const double*restrict a){
#pragma omp parallel for
  for(int i=0;i<8;i++) o[i]=a[i]*2;
}
int main(){double*a=vec(8),*o=vec(8); BENCH("09_small_region",200000,f(o,a);esc(o));}
