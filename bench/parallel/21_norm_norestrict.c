// invariant reading call that may read what the loop writes, but for races
#include "t.h"
// without restrict only the freedom from races tells that mag may leave the loop
NOINL static double mag(const double*a,long n){double s=0;for(long i=0;i<n;i++)s+=a[i]*a[i];return sqrt(s);}
NOINL void normalize(double*out,const double*in,long n){
#ifdef BY_HAND
  double m=mag(in,n);
  for(long i=0;i<n;i++) out[i]=in[i]/m;
#else
#pragma omp parallel for
  for(long i=0;i<n;i++) out[i]=in[i]/mag(in,n);
#endif
}
int main(int c,char**v){long n=c>1?atol(v[1]):16384;double*a=vec(n),*o=vec(n);
 BENCH("21_norm_norestrict",1,normalize(o,a,n);esc(o)); fprintf(stderr,"%g\n",o[n/2]);}
