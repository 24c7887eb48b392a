/* Work for zlib: three megabytes of text-like data compressed at three levels, checked, and taken back.
 * Prints a hash of every byte that came out and the processor time it took. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "zlib.h"

enum { SIZE = 3 << 20 };

static unsigned long long hash = 0xcbf29ce484222325u;

static void take_in(const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ p[i]) * 0x100000001b3u;
}

static void fill(unsigned char *p, size_t n)
{
    static const char *words[] = {"adjoint ", "tangent ", "sweep ", "tape ", "loop ", "region ", "the ", "of ", "a ", "\n"};
    unsigned state = 12345;
    size_t at = 0;
    while (at < n) {
        state = state * 1664525u + 1013904223u;
        const char *word = words[(state >> 16) % 10];
        const size_t length = strlen(word);
        if ((state >> 28) == 0) {
            p[at++] = (unsigned char)(state >> 20);
            continue;
        }
        for (size_t i = 0; i < length && at < n; i++)
            p[at++] = (unsigned char)word[i];
    }
}

int main(void)
{
    static const int levels[] = {1, 6, 9};
    unsigned char *plain = malloc(SIZE), *back = malloc(SIZE);
    const uLong bound = compressBound(SIZE);
    unsigned char *packed = malloc(bound);
    if (!plain || !back || !packed)
        return 2;
    fill(plain, SIZE);
    const clock_t start = clock();
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        uLongf packed_size = bound, back_size = SIZE;
        if (compress2(packed, &packed_size, plain, SIZE, levels[i]) != Z_OK)
            return 3;
        take_in(packed, packed_size);
        if (uncompress(back, &back_size, packed, packed_size) != Z_OK || back_size != SIZE ||
            memcmp(plain, back, SIZE) != 0)
            return 4;
        const unsigned long sums[] = {crc32(0, back, SIZE), adler32(1, back, SIZE)};
        take_in((const unsigned char *)sums, sizeof sums);
    }
    const double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    printf("hash %016llx\nseconds %.6f\n", hash, seconds);
    free(plain);
    free(back);
    free(packed);
    return 0;
}
