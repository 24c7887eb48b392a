// tasks without a cut-off
#include "t.h"
static void sorted(int*a,int*t,long n){ if(n<2)return; long m=n/2;
#pragma omp task
  sorted(a,t,m);
  sorted(a+m,t+m,n-m);
#pragma omp taskwait
  long i=0,j=m,k=0; while(i<m&&j<n)t[k++]=a[i]<=a[j]?a[i++]:a[j++]; while(i<m)t[k++]=a[i++]; while(j<n)t[k++]=a[j++];
  memcpy(a,t,n*sizeof*a); }
NOINL void top(int*a,int*t,long n){
#pragma omp parallel
#pragma omp single
  sorted(a,t,n); }
int main(){long n=200000;int*a=malloc(n*4),*b=malloc(n*4),*t=malloc(n*4);unsigned s=1;for(long i=0;i<n;i++){s=s*1664525+1013904223;b[i]=s>>8;} BENCH("55_tasks_merge",1,memcpy(a,b,n*4);top(a,t,n);esc(a));}
