// Names and elementary functions of the BLAS rules.
//
// A function `BODY(name)` states the semantics of the library function `name` for analyses and derivatives.
// A function `CORE(name)` is a level-3 routine with column-major matrices and arguments by value. The
// compiler declares the core routines that a program needs, differentiates them by the rules in `rules.h`,
// and defines them by calls of the program's library (`library.h`).
//
// A derivative with respect to a factor exists where the factor is zero, although BLAS does not read the
// operands then. The bodies multiply by a zero alpha, unless an operand is not finite. The core routine
// `scale` multiplies by beta: its rules read the old contents of an output only if beta is active.
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define NAME(name) JOIN(PREFIX, name)
#define OWN(name) JOIN(__gr_blas_, name)
#define BODY(name) JOIN(__gr_blas_body_, name)
#define CORE(name) JOIN(__gr_blas_, NAME(name))
#define FORTRAN(name) BODY(JOIN(NAME(name), _))
#define CBLAS(name) BODY(JOIN(cblas_, NAME(name)))

#ifndef GR_BLAS_TYPES
#define GR_BLAS_TYPES
#define INLINE static inline __attribute__((always_inline))

typedef unsigned long word;
void *malloc(word bytes);
void free(void *block);

enum { ROW_MAJOR = 101, COLUMN_MAJOR = 102 };

// The flags of the C interface, as characters of the Fortran interface.
INLINE char trans_of(int flag) { return flag == 111 ? 'N' : 'T'; }
INLINE char uplo_of(int flag) { return flag == 121 ? 'U' : 'L'; }
INLINE char diag_of(int flag) { return flag == 131 ? 'N' : 'U'; }
INLINE char side_of(int flag) { return flag == 141 ? 'L' : 'R'; }

// The characters of the Fortran interface, as flags of the C interface.
INLINE int is(char flag, char letter);
INLINE int flag_of_trans(int c) { return is(c, 'N') ? 111 : is(c, 'T') ? 112 : 113; }
INLINE int flag_of_uplo(int c) { return is(c, 'U') ? 121 : 122; }
INLINE int flag_of_diag(int c) { return is(c, 'U') ? 132 : 131; }
INLINE int flag_of_side(int c) { return is(c, 'L') ? 141 : 142; }

INLINE char upper(char c) { return c & ~32; }
INLINE int is(char flag, char letter) { return upper(flag) == letter; }
INLINE char flip_trans(char c) { return is(c, 'N') ? 'T' : 'N'; }
INLINE char flip_uplo(char c) { return is(c, 'U') ? 'L' : 'U'; }
INLINE int is_upper(int uplo, int trans) { return is(uplo, 'U') == is(trans, 'N'); }
INLINE char flip_side(char c) { return is(c, 'L') ? 'R' : 'L'; }

// The index of a vector's first element: strides may be negative.
INLINE long first(int n, int stride) { return stride < 0 ? -(long)(n - 1) * stride : 0; }
INLINE long at(int i, int j, int ld) { return i + (long)j * ld; }
#endif
