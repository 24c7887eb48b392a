// function pointer handed to a function with a region
#include "t.h"
static double square(double x){return x*x+1;}
static inline double total(const double*a,long n,double(*g)(double)){ double s=0;
#pragma omp parallel for reduction(+:s)
  for(long i=0;i<n;i++) s+=g(a[i]);
  return s; }
NOINL double f(const double*a,long n){ return total(a,n,square); }
int main(){long n=50000;double*a=vec(n);double s=0; BENCH("39_pointer_sum",50,s+=f(a,n);esc(a)); fprintf(stderr,"%g\n",s);}
