// an atomic addition in each of a few iterations
#include "t.h"
NOINL double f(const double*restrict a,long n){ double s=0;
#pragma omp parallel for
  for(long i=0;i<n;i++){ double x=a[i]*a[i];
#pragma omp atomic
    s+=x; }
  return s; }
int main(){long n=64;double*a=vec(n);double s=0; BENCH("64_atomic_few",50000,s+=f(a,n);esc(a)); fprintf(stderr,"%g\n",s);}
