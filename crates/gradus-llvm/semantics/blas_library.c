// Definitions of the core routines of BLAS by calls of the program's library.
#define REAL double
#define PREFIX d
#include "blas/types.h"
#include "blas/library.h"
#undef REAL
#undef PREFIX
#define REAL float
#define PREFIX s
#include "blas/library.h"
