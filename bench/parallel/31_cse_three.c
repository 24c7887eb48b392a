// reading calls made again around two regions
#include "t.h"
NOINL static double mag(const double*a,long n){double s=0;for(long i=0;i<n;i++)s+=a[i]*a[i];return sqrt(s);}
NOINL double f(double*restrict o,double*restrict q,const double*restrict a,long n,long m){
  double x=mag(a,n);
#pragma omp parallel for
  for(long i=0;i<m;i++) o[i]=a[i]+x;
  double y=mag(a,n);
#pragma omp parallel for
  for(long i=0;i<m;i++) q[i]=a[i]-y;
  return x+y+mag(a,n);
}
int main(){long n=100000,m=500;double*a=vec(n),*o=vec(m),*q=vec(m);double s=0; BENCH("31_cse_three",20,s+=f(o,q,a,n,m);esc(o);esc(q)); fprintf(stderr,"%g\n",s);}
