/* What the programs of a survey share: a function under survey in one shape, and its test points.
 * Every function becomes y = f(x): its real arguments in x, its real results in y, in order. */
#ifndef JUDGE_H
#define JUDGE_H

#ifdef __cplusplus
#define JUDGE_C extern "C"
#else
#define JUDGE_C extern
#endif

typedef struct {
    int nx;             /* entries of x */
    const double *x;    /* where to differentiate */
    const int *fixed;   /* the integer arguments */
    const char *text;   /* the string argument, or NULL */
    int spare;          /* judged only in place of the one before, where that has no finite value */
} judge_point;

JUDGE_C const int judge_ny;
JUDGE_C const int judge_points_count;
JUDGE_C const judge_point judge_points[];

JUDGE_C void judge_primal(const double *x, double *y, const int *fixed, const char *text, int *status);
/* NULL where that mode is not judged */
JUDGE_C void (*const judge_tangent)(const double *x, const double *x_tan, double *y, double *y_tan,
                                    const int *fixed, const char *text);
JUDGE_C void (*const judge_adjoint)(const double *x, double *x_adj, double *y, double *y_adj,
                                    const int *fixed, const char *text);

#endif
