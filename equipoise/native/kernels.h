/* What the kernels share: vectorised exponentials, and threads.

   The files are compiled once for each of three generations of processors (setup.py), and the best library that
   the machine can run is loaded. Loops over the numbers of a row are written so that the compiler turns them into vector
   instructions; sums are marked by `omp simd reduction`, which allows it to add in any order there and nowhere else. */

#ifndef EQUIPOISE_KERNELS_H
#define EQUIPOISE_KERNELS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define EQUIPOISE_VERSION 3 /* of the functions' arguments; `__init__.py` has the same */

#define EXPORT __attribute__((visibility("default")))
#define INLINE static inline __attribute__((always_inline))

enum { GRAIN = 1 << 15 }; /* numbers; below this a second thread costs more than it does */

/* e^x to 2 units in the last place for x <= 0, 0 from -87.7 on, NaN for NaN. */
INLINE float exp_negative(float x) {
    float bounded = x < -88.0f ? -88.0f : x; /* from -87.7 on k is -127, and 2^k comes out as 0 */
    int32_t k = (int32_t)(bounded * 1.44269504f - 0.5f); /* the nearest whole number */
    float n = (float)k;
    float r = bounded - n * 0.693359375f + n * 2.12194440e-4f; /* ln 2 in two parts */
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    uint32_t power = ((uint32_t)k + 127u) << 23; /* 2^k */
    float scale;
    memcpy(&scale, &power, 4);
    return p * scale;
}

#endif
