/* A toolkit's C++ headers ask here which compiler reads them. It is clang: what nvcc alone understands is not
   for it, though sources find nvcc's name defined. */
#pragma push_macro("__NVCC__")
#undef __NVCC__
#include_next <cuda/std/__cccl/compiler.h>
#pragma pop_macro("__NVCC__")
