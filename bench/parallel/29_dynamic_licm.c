// invariant reading call: its operands are captured by reference
#include "t.h"
NOINL static double mag(const double*a,long n){double s=0;for(long i=0;i<n;i++)s+=a[i]*a[i];return sqrt(s);}
NOINL void f(double*restrict o,const double*restrict a,long n){
#pragma omp parallel for schedule(dynamic,64)
  for(long i=0;i<n;i++) o[i]=a[i]/mag(a,n);
}
int main(){long n=4096;double*a=vec(n),*o=vec(n); BENCH("29_dynamic_licm",20,f(o,a,n);esc(o));}
