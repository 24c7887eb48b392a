// invariant reading call: its operands are captured by reference
#include "t.h"
NOINL static double most(const double*a,long n){double s=a[0];for(long i=1;i<n;i++)s=a[i]>s?a[i]:s;return s;}
NOINL void f(double*restrict o,const double*restrict a,long n){
#pragma omp parallel for
  for(long i=0;i<n;i++) o[i]=a[i]-most(a,n);
}
int main(){long n=4096;double*a=vec(n),*o=vec(n); BENCH("23_max_licm",20,f(o,a,n);esc(o));}
