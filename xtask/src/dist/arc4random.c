/* `arc4random` for programs of the packages. glibc has the function since release 2.36; with a copy, the programs start
   on older systems. LLVM and the C++ library take seeds of random names from the function. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

uint32_t arc4random(void)
{
    uint32_t number;
    while (getrandom(&number, sizeof number, 0) != sizeof number)
        if (errno != EINTR)
            abort();
    return number;
}
