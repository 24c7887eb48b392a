// sums in neighbouring cells of an array
#include "t.h"
#ifdef _OPENMP
#include <omp.h>
#else
static int omp_get_thread_num(void){ return 0; }
#endif
// each thread gathers in its own cell of an array
NOINL double f(const double*restrict a,long n){ double part[64]={0};
#pragma omp parallel
 { int t=omp_get_thread_num();
#pragma omp for
  for(long i=0;i<n;i++) part[t]+=a[i];
 }
 double s=0; for(int k=0;k<64;k++) s+=part[k]; return s; }
int main(){long n=1000000;double*a=vec(n);double s=0; BENCH("16_accum_array",5,s+=f(a,n);esc(a)); fprintf(stderr,"%g\n",s);}
