// restrict is lost: the vectoriser tests every pair of arrays
#include "t.h"
// six outputs from seven inputs: without restrict no run-time test of overlap is worth making
NOINL void f(double*restrict p,double*restrict q,double*restrict r,double*restrict s,double*restrict t,double*restrict u,
 const double*restrict a,const double*restrict b,const double*restrict c,const double*restrict d,const double*restrict e,
 const double*restrict g,const double*restrict h,long n){
#pragma omp parallel for
  for(long i=0;i<n;i++){ p[i]=a[i]+b[i]; q[i]=b[i]*c[i]; r[i]=c[i]-d[i]; s[i]=d[i]+e[i]; t[i]=e[i]*g[i]; u[i]=g[i]-h[i]; }
}
int main(){long n=1024;double*v[13];for(int k=0;k<13;k++)v[k]=vec(n);
 BENCH("06_restrict_vec",20000,f(v[0],v[1],v[2],v[3],v[4],v[5],v[6],v[7],v[8],v[9],v[10],v[11],v[12],n);esc(v[0]);esc(v[5]));}
