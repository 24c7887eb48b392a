// a team for work of one thread
#include "t.h"
NOINL void f(double*restrict o,const double*restrict a,long n){
#pragma omp parallel
#pragma omp single
  { double s=0; for(long i=0;i<n;i++) s+=a[i]; o[0]=s; }
}
int main(){long n=64;double*a=vec(n),*o=vec(8); BENCH("63_single_in_team",50000,f(o,a,n);esc(o));}
