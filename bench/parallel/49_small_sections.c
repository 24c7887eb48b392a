// small region: the fork costs more than the work
#include "t.h"
NOINL void f(double*restrict o,const double*restrict a){
#pragma omp parallel sections
  {
#pragma omp section
    o[0]=a[0]+a[1];
#pragma omp section
    o[1]=a[2]*a[3];
  }
}
int main(){double*a=vec(8),*o=vec(8); BENCH("49_small_sections",200000,f(o,a);esc(o));}
