// invariant library call
#include "t.h"
NOINL void f(int*restrict o,const int*restrict a,const char*restrict s,long n){
#pragma omp parallel for
  for(long i=0;i<n;i++) o[i]=a[i]%(int)strlen(s);
}
int main(){long n=20000;int*a=malloc(n*4),*o=malloc(n*4);char s[2000];memset(s,'x',1999);s[1999]=0;for(long i=0;i<n;i++)a[i]=i; BENCH("25_strlen_licm",20,f(o,a,s,n);esc(o));}
