// invariant call of a parallel function in a serial loop
#include "t.h"
NOINL static double least(const double*a,long n){ double s=1e30;
#pragma omp parallel for reduction(min:s)
  for(long i=0;i<n;i++) s=a[i]<s?a[i]:s;
  return s; }
NOINL double f(const double*restrict a,long n,long m){ double t=0;
  for(long k=0;k<m;k++) t+=a[k]-least(a,n);
  return t; }
int main(){long n=20000,m=100;double*a=vec(n);double s=0; BENCH("61_invariant_least",10,s+=f(a,n,m);esc(a)); fprintf(stderr,"%g\n",s);}
