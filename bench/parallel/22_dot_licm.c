// invariant reading call: its operands are captured by reference
#include "t.h"
NOINL static double dot(const double*a,const double*b,long n){double s=0;for(long i=0;i<n;i++)s+=a[i]*b[i];return s;}
NOINL void f(double*restrict o,const double*restrict a,const double*restrict b,long n){
#pragma omp parallel for
  for(long i=0;i<n;i++) o[i]=a[i]*dot(a,b,n);
}
int main(){long n=4096;double*a=vec(n),*b=vec(n),*o=vec(n); BENCH("22_dot_licm",20,f(o,a,b,n);esc(o));}
