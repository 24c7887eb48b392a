// parameters in a structure: captured by reference, they are read anew in every iteration
#include "t.h"
struct par{double a,b,c,d;long n;double*out;const double*in;};
NOINL void f(struct par p){
#pragma omp parallel for
  for(long i=0;i<p.n;i++){ double x=p.in[i]; p.out[i]=((p.a*x+p.b)*x+p.c)*x+p.d; }
}
int main(){long n=65536;struct par p={1,2,3,4,n,vec(n),vec(n)}; BENCH("13_struct_params",200,f(p);esc(p.out));}
