// tasks without a cut-off
#include "t.h"
static long place(int n,int row,unsigned cols,unsigned d1,unsigned d2){ if(row==n)return 1; long c[16]={0};
  for(int k=0;k<n;k++){ unsigned b=1u<<k; if((cols|d1|d2)&b)continue;
#pragma omp task shared(c)
    c[k]=place(n,row+1,cols|b,(d1|b)<<1,(d2|b)>>1);
  }
#pragma omp taskwait
  long s=0; for(int k=0;k<n;k++)s+=c[k]; return s; }
NOINL long top(int n){ long r;
#pragma omp parallel
#pragma omp single
  r=place(n,0,0,0,0);
  return r; }
int main(){long s=0; volatile int n=9; BENCH("56_tasks_queens",3,s+=top(n)); fprintf(stderr,"%ld\n",s);}
