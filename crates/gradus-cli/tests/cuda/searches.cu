/* Searches that look at many elements at once: what they find, where nothing is there to be found, where they begin in
   the midst of a stretch, and where memory ends behind what they find. */
#include "check.h"
#include <sys/mman.h>

__global__ void at_least(const double *table, const double *wanted, int *found, int n, int m)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= m) return;
    int index = -1;
    for (int x = 0; x < n; x++)
        if (table[x] >= wanted[i]) {
            index = x;
            break;
        }
    if (index == -1) index = n - 1;
    found[i] = index;
}

__global__ void marked(const unsigned *words, unsigned mask, int *found, int first, int n)
{
    int x = first + threadIdx.x;
    while (x < n && (words[x] & mask) == 0) x++;
    found[threadIdx.x] = x;
}

__global__ void ends(const char *text, long *length, long most)
{
    long n = 0;
    for (; n < most; n++)
        if (text[n] == 0) break;
    length[threadIdx.x] = n;
}

template <typename T> static T *given(const std::vector<T> &from)
{
    T *memory;
    OK(cudaMalloc(&memory, from.size() * sizeof(T)));
    OK(cudaMemcpy(memory, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice));
    return memory;
}

int main()
{
    const int n = 1003, m = 700;
    std::vector<double> table(n), wanted(m);
    for (int i = 0; i < n; i++) table[i] = i % 100 == 99 ? NAN : i;
    for (int i = 0; i < m; i++) wanted[i] = i * 1.5;
    std::vector<int> found(m);
    double *dt = given(table), *dw = given(wanted);
    int *df = given(found);
    for (int start = 0; start < 3; start++) {
        at_least<<<(m + 127) / 128, 128>>>(dt + start, dw, df, n - start, m);
        OK(cudaMemcpy(found.data(), df, m * 4, cudaMemcpyDeviceToHost));
        for (int i = 0; i < m; i++) {
            int x = start;
            while (x < n && !(table[x] >= wanted[i])) x++;
            expect(found[i] == (x < n ? x : n - 1) - start, "at_least");
        }
    }

    std::vector<unsigned> words(n);
    for (int i = 0; i < n; i++) words[i] = 1u << i % 30;
    words[997] = 1u << 31;
    unsigned *dwords = given(words);
    for (unsigned mask : {1u << 31, 1u << 30, 1u << 7}) {
        marked<<<1, 96>>>(dwords, mask, df, 0, n);
        OK(cudaMemcpy(found.data(), df, 96 * 4, cudaMemcpyDeviceToHost));
        for (int t = 0; t < 96; t++) {
            int x = t;
            while (x < n && !(words[x] & mask)) x++;
            expect(found[t] == x, "marked");
        }
    }

    /* The text's end is the last byte of its page, and none may touch the page behind it. */
    const long page = 4096;
    char *pages = (char *)mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    expect(pages != MAP_FAILED && mprotect(pages + page, page, PROT_NONE) == 0, "pages");
    for (long i = 0; i < page - 1; i++) pages[i] = 'x';
    pages[page - 1] = 0;
    std::vector<long> lengths(4);
    long *dl = given(lengths);
    for (long from : {page - 1, page - 127, page - 128, page - 300, page - 1024, 0L}) {
        ends<<<1, 4>>>(pages + from, dl, 1L << 40);
        OK(cudaMemcpy(lengths.data(), dl, 4 * sizeof(long), cudaMemcpyDeviceToHost));
        for (long length : lengths) expect(length == page - 1 - from, "ends");
    }
    return wrong;
}
