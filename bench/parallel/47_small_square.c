// small region: the fork costs more than the work
#include "t.h"
NOINL void f(double*restrict o,const double*restrict a){
#pragma omp parallel for collapse(2)
  for(int i=0;i<4;i++) for(int j=0;j<4;j++) o[i*4+j]=a[j*4+i];
}
int main(){double*a=vec(16),*o=vec(16); BENCH("47_small_square",200000,f(o,a);esc(o));}
