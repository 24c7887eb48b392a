// tasks without a cut-off
#include "t.h"
static long choose(int n,int k){ if(k==0||k==n)return 1; long a,b;
#pragma omp task shared(a)
  a=choose(n-1,k-1);
  b=choose(n-1,k);
#pragma omp taskwait
  return a+b; }
NOINL long top(int n,int k){ long r;
#pragma omp parallel
#pragma omp single
  r=choose(n,k);
  return r; }
int main(){long s=0; volatile int n=20; BENCH("57_tasks_choose",3,s+=top(n,9)); fprintf(stderr,"%ld\n",s);}
