// constant argument of a function with a region
#include "t.h"
static inline void run(double*restrict o,const double*restrict a,long n,int op){
#pragma omp parallel for
  for(long i=0;i<n;i++){ double x=a[i]; for(int k=0;k<4;k++) switch(op){case 0:x=x+1;break;case 1:x=x*1.5;break;case 2:x=x-0.5;break;default:x=-x;} o[i]=x; }
}
NOINL void f(double*o,const double*a,long n){ run(o,a,n,1); }
int main(){long n=20000;double*a=vec(n),*o=vec(n); BENCH("38_constant_choice",50,f(o,a,n);esc(o));}
