// invariant reading call: its operands are captured by reference
#include "t.h"
NOINL static double scale(const double*c,long k){double s=1;for(long i=0;i<k;i++)s=s*0.5+c[i];return s;}
NOINL void f(double*restrict o,const double*restrict a,const double*restrict c,long n,long k){
#pragma omp parallel for
  for(long i=0;i<n;i++) o[i]=a[i]*scale(c,k)+1;
}
int main(){long n=10000,k=300;double*a=vec(n),*c=vec(k),*o=vec(n); BENCH("26_poly_licm",20,f(o,a,c,n,k);esc(o));}
