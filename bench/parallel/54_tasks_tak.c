// tasks without a cut-off
#include "t.h"
static int tak(int x,int y,int z){ if(y>=x)return z; int a,b,c;
#pragma omp task shared(a)
  a=tak(x-1,y,z);
#pragma omp task shared(b)
  b=tak(y-1,z,x);
  c=tak(z-1,x,y);
#pragma omp taskwait
  return tak(a,b,c); }
NOINL int top(int x,int y,int z){ int r;
#pragma omp parallel
#pragma omp single
  r=tak(x,y,z);
  return r; }
int main(){int s=0; volatile int x=15; BENCH("54_tasks_tak",3,s+=top(x,8,4)); fprintf(stderr,"%d\n",s);}
