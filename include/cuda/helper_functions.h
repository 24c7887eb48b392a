/* The helpers of CUDA's samples. */
#ifndef GRADUS_CUDA_HELPER_FUNCTIONS_H
#define GRADUS_CUDA_HELPER_FUNCTIONS_H
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "helper_string.h"
#include "helper_timer.h"

/* Whether no element differs by more than `epsilon`. */
template <class T> static inline bool compareData(const T *reference, const T *data, unsigned int length, T epsilon, float threshold)
{
    unsigned int wrong = 0;
    for (unsigned int i = 0; i < length; i++) {
        T difference = reference[i] > data[i] ? reference[i] - data[i] : data[i] - reference[i];
        if (!(difference <= epsilon)) wrong++;
    }
    return (float)wrong <= threshold * (float)length;
}
/* Whether the difference's norm is less than `epsilon` of the reference's. */
static inline bool sdkCompareL2fe(const float *reference, const float *data, unsigned int length, float epsilon)
{
    double error = 0, norm = 0;
    for (unsigned int i = 0; i < length; i++) {
        double difference = (double)reference[i] - data[i];
        error += difference * difference;
        norm += (double)reference[i] * reference[i];
    }
    return norm > 0 && sqrt(error) / sqrt(norm) < epsilon;
}
#endif
