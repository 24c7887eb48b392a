// Bodies of flang's run-time functions (flang-rt 22), one translation unit of the files below.
//
// A body has the leading parameters of the library's function, and after them the constants that the
// compiler derives from the descriptors of a call: rank, layout of the elements, size in bytes. The
// compiler specialises a body for the constants of each call: the call's constants are inlined, loops over
// dimensions and scalars are unrolled. Each memory access of a specialised body then has a scalar type.
#include "flang/descriptor.h"

#include "flang/allocate.c"
#include "flang/assign.c"
#include "flang/constructor.c"
#include "flang/contiguous.c"
#include "flang/derived.c"
#include "flang/numeric.c"
#include "flang/pointer.c"
#include "flang/transform.c"
#include "flang/reduce.c"
