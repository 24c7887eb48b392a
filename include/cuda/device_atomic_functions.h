/* Part of what every CUDA program sees. */
#include "gradus_cuda.h"
