// tasks without a cut-off
#include "t.h"
static double sum(const double*a,long n){ if(n<4){double s=0;for(long i=0;i<n;i++)s+=a[i];return s;} double x,y;
#pragma omp task shared(x)
  x=sum(a,n/2);
  y=sum(a+n/2,n-n/2);
#pragma omp taskwait
  return x+y; }
NOINL double top(const double*a,long n){ double r;
#pragma omp parallel
#pragma omp single
  r=sum(a,n);
  return r; }
int main(){long n=200000;double*a=vec(n);double s=0; BENCH("52_tasks_sum",3,s+=top(a,n);esc(a)); fprintf(stderr,"%g\n",s);}
