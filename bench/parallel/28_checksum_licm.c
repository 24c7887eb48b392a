// invariant reading call: its operands are captured by reference
#include "t.h"
NOINL static unsigned check(const unsigned*a,long n){unsigned h=1;for(long i=0;i<n;i++)h=h*31+a[i];return h;}
NOINL void f(unsigned*restrict o,const unsigned*restrict a,long n){
#pragma omp parallel for
  for(long i=0;i<n;i++) o[i]=a[i]^check(a,n);
}
int main(){long n=4096;unsigned*a=malloc(n*4),*o=malloc(n*4);for(long i=0;i<n;i++)a[i]=i; BENCH("28_checksum_licm",20,f(o,a,n);esc(o));}
