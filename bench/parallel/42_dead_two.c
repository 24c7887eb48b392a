// dead parallel loop: memory that is only written
#include "t.h"
NOINL double f(const double*restrict a,long n){
  double*t=malloc(n*8),*u=malloc(n*8);
#pragma omp parallel for
  for(long i=0;i<n;i++){ t[i]=a[i]/3; u[i]=a[i]*exp(a[i]); }
  free(t);free(u);
  return a[n/2];
}
int main(){long n=20000;double*a=vec(n);double s=0; BENCH("42_dead_two",50,s+=f(a,n);esc(a)); fprintf(stderr,"%g\n",s);}
