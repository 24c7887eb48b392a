/* A network of nodes that the caller owns: members of one byte, tables of nodes, member arrays that are indexed from their
 * end. `eval` is differentiated with respect to the weights. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void __enzyme_autodiff(void *, ...);
extern int enzyme_dup, enzyme_const;

typedef struct node {
    uint8_t dims, flag;
    uint16_t op;
    int32_t children, count, room;
    int32_t d[4];
    double scale[3];
    float *x;
    struct node **child;
    struct node *previous;
} node;
typedef struct {
    int n;
    node **v;
    float *weights;
} network;

static void copy_shape(node *to, const node *from)
{
    to->dims = from->dims;
    for (int i = 0; i < from->dims; i++)
        to->d[i] = from->d[i];
    for (int i = 0; i < from->flag; i++)
        to->scale[i] = from->scale[i];
}
static int length(const node *p)
{
    int n = 1;
    for (int i = 0; i < p->dims; i++)
        n *= p->d[i];
    return n;
}
static void weigh(node *p, network *net)
{
    node *q = p->child[0];
    copy_shape(p, q);
    for (int i = 0; i < length(p); i++)
        p->x[i] = q->x[i] * net->weights[i];
}
static void squash(node *p, network *net)
{
    node *q = p->child[0];
    (void)net;
    copy_shape(p, q);
    for (int i = 0; i < p->d[p->dims - 1]; i++)
        p->x[i] = tanhf(q->x[i]) / (float)p->children;
}
static void add(node *p, network *net)
{
    node *a = p->child[0], *b = p->child[1];
    (void)net;
    copy_shape(p, b);
    float part = 1.0f / (float)p->children;
    for (int i = 0; i < length(p); i++)
        p->x[i] = part * (float)a->scale[p->flag - 1] * a->x[i] * b->x[i];
}
static void (*const ops[])(node *, network *) = {0, weigh, squash, add};

double eval(network *net)
{
    for (int i = 0; i < net->n; i++)
        if (net->v[i]->children)
            ops[net->v[i]->op](net->v[i], net);
    node *last = net->v[net->n - 1];
    double sum = 0;
    for (int i = 0; i < last->d[last->dims - 1]; i++)
        sum += last->x[i] * last->scale[i % last->flag];
    return sum;
}

enum { SIZE = 4, NODES = 4 };
static node *make(int op, node *a, node *b, int is_shadow)
{
    node *p = calloc(1, sizeof *p);
    p->op = op;
    p->flag = 3;
    p->dims = 1;
    p->d[0] = SIZE;
    p->children = (a != 0) + (b != 0);
    p->child = malloc(2 * sizeof *p->child);
    p->child[0] = a;
    p->child[1] = b;
    p->previous = a;
    p->x = calloc(SIZE, sizeof *p->x);
    for (int i = 0; i < 3; i++)
        p->scale[i] = is_shadow ? 0 : 0.5 + i;
    return p;
}
static network *build(const float *weights, int is_shadow)
{
    network *net = malloc(sizeof *net);
    net->n = NODES;
    net->v = malloc(NODES * sizeof *net->v);
    net->v[0] = make(0, 0, 0, is_shadow);
    net->v[1] = make(1, net->v[0], 0, is_shadow);
    net->v[2] = make(2, net->v[1], 0, is_shadow);
    net->v[3] = make(3, net->v[1], net->v[2], is_shadow);
    net->weights = malloc(SIZE * sizeof(float));
    for (int i = 0; i < SIZE; i++) {
        net->weights[i] = is_shadow ? 0 : weights[i];
        net->v[0]->x[i] = is_shadow ? 0 : 0.3f * i - 0.4f;
    }
    return net;
}
static double value(const float *weights)
{
    return eval(build(weights, 0));
}
int main(void)
{
    float w[SIZE] = {0.7f, -0.4f, 0.9f, 0.2f};
    network *net = build(w, 0), *shadow = build(w, 1);
    __enzyme_autodiff((void *)eval, enzyme_dup, net, shadow);
    int wrong = 0;
    for (int i = 0; i < SIZE; i++) {
        float v[SIZE], h = 1e-2f;
        memcpy(v, w, sizeof v);
        v[i] += h;
        double up = value(v);
        v[i] -= 2 * h;
        double difference = (up - value(v)) / (2 * h), gradient = shadow->weights[i];
        wrong |= !(fabs(gradient - difference) < 1e-3 * (1 + fabs(difference)));
        printf("%g %g\n", gradient, difference);
    }
    return wrong;
}
