// tasks without a cut-off
#include "t.h"
struct node{struct node*l,*r;long v;};
static struct node*make(long d){struct node*t=malloc(sizeof*t);t->v=d;t->l=d?make(d-1):0;t->r=d?make(d-1):0;return t;}
static long walk(const struct node*t){ if(!t)return 0; long x,y;
#pragma omp task shared(x)
  x=walk(t->l);
  y=walk(t->r);
#pragma omp taskwait
  return x+y+t->v; }
NOINL long top(const struct node*t){ long r;
#pragma omp parallel
#pragma omp single
  r=walk(t);
  return r; }
int main(){struct node*t=make(16);long s=0; BENCH("53_tasks_tree",3,s+=top(t);esc(t)); fprintf(stderr,"%ld\n",s);}
