// Bodies of BLAS routines and the rules of their derivatives, one translation unit of the files below.
#define REAL double
#define PREFIX d
#define ABS __builtin_fabs
#define SQRT __builtin_sqrt
#define LARGE 0x1p+500
#define SMALL 0x1p-500
#define SHRINK 0x1p-600
#define GROW 0x1p+600
#include "blas/routines.h"
#undef REAL
#undef PREFIX
#undef ABS
#undef SQRT
#undef LARGE
#undef SMALL
#undef SHRINK
#undef GROW

#define REAL float
#define PREFIX s
#define ABS __builtin_fabsf
#define SQRT __builtin_sqrtf
#define LARGE 0x1p+60f
#define SMALL 0x1p-60f
#define SHRINK 0x1p-80f
#define GROW 0x1p+80f
#include "blas/routines.h"
