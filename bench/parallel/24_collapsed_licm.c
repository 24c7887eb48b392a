// invariant reading call: its operands are captured by reference
#include "t.h"
NOINL static double norm(const double*a,long n){double s=0;for(long i=0;i<n;i++)s+=a[i]*a[i];return sqrt(s);}
NOINL void f(double*restrict o,const double*restrict a,const double*restrict w,long n,long m){
#pragma omp parallel for collapse(2)
  for(long i=0;i<n;i++) for(long j=0;j<m;j++) o[i*m+j]=a[i*m+j]/norm(w,m);
}
int main(){long n=64,m=256;double*a=vec(n*m),*w=vec(m),*o=vec(n*m); BENCH("24_collapsed_licm",20,f(o,a,w,n,m);esc(o));}
