// nested regions: each iteration pays for a team
#include "t.h"
NOINL void f(double*restrict o,const double*restrict a,long n){
#pragma omp parallel for
  for(long i=0;i<n;i++)
#pragma omp parallel for
    for(long j=0;j<n;j++)
#pragma omp parallel for
      for(long k=0;k<n;k++) o[(i*n+j)*n+k]=a[(i*n+j)*n+k]+1;
}
int main(){long n=32;double*a=vec(n*n*n),*o=vec(n*n*n); BENCH("51_nested_three",10,f(o,a,n);esc(o));}
