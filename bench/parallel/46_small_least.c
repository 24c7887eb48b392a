// small region: the fork costs more than the work
#include "t.h"
NOINL double f(const double*restrict a,long n){ double s=1e30;
#pragma omp parallel for reduction(min:s)
  for(long i=0;i<n;i++) s=a[i]<s?a[i]:s;
  return s; }
int main(){long n=100;double*a=vec(n);double s=0; BENCH("46_small_least",100000,s+=f(a,n);esc(a)); fprintf(stderr,"%g\n",s);}
