// parameters in a structure: captured by reference, they are read anew in every iteration
#include "t.h"
struct par{double a,b,c;long n;const double*in;double*out;};
NOINL void f(struct par p){
#pragma omp parallel for schedule(static,1024)
  for(long i=0;i<p.n;i++) p.out[i]=p.a*p.in[i]*p.in[i]+p.b*p.in[i]+p.c;
}
int main(){long n=500;struct par p={1,2,3,n,vec(n),vec(n)}; BENCH("65_struct_sum",20000,f(p);esc(p.out));}
