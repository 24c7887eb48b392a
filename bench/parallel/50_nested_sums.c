// nested regions: each iteration pays for a team
#include "t.h"
NOINL void f(double*restrict o,const double*restrict a,long n,long m){
#pragma omp parallel for
  for(long i=0;i<n;i++){ double s=0;
#pragma omp parallel for reduction(+:s)
    for(long j=0;j<m;j++) s+=a[i*m+j];
    o[i]=s; }
}
int main(){long n=2000,m=32;double*a=vec(n*m),*o=vec(n); BENCH("50_nested_sums",20,f(o,a,n,m);esc(o));}
