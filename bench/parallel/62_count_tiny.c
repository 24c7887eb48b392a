// small region: the fork costs more than the work
#include "t.h"
NOINL long f(const int*restrict a,long n,int x){ long s=0;
#pragma omp parallel for reduction(+:s)
  for(long i=0;i<n;i++) s+=a[i]==x;
  return s; }
int main(){long n=200;int a[200];for(int i=0;i<200;i++)a[i]=i%9;long s=0; BENCH("62_count_tiny",50000,s+=f(a,n,3);esc(a)); fprintf(stderr,"%ld\n",s);}
