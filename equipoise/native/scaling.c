/* A photograph scaled down bilinearly, to the bit as Pillow does it along rows first: every output is a weighted mean of all
   pixels that it covers, along rows, then along columns, with weights of 22 bits after the point and bytes in between. */

#include <stdlib.h>

#include "kernels.h"

enum { WEIGHT_BITS = 22, HALF = 1 << (WEIGHT_BITS - 1), CHANNELS = 3, STORED = 4 }; /* Pillow's pixels have a fourth byte */

typedef int32_t ints4 __attribute__((vector_size(16)));

struct taps {
    int64_t most;     /* weights of an output, at most */
    int32_t *first;   /* the first pixel of each output */
    int32_t *count;   /* and how many it is made of */
    int32_t *weights; /* (outputs, most) */
};

/* What each output along an axis is made of. Volatile numbers are rounded where Pillow rounds them: no product is fused
   with the sum that follows it. */
static int set_taps(struct taps *taps, int64_t inputs, int64_t outputs) {
    double step = (double)inputs / outputs, inverse = 1.0 / step;
    taps->most = 2 * (int64_t)ceil(step) + 1;
    taps->first = malloc(outputs * sizeof(int32_t));
    taps->count = malloc(outputs * sizeof(int32_t));
    taps->weights = malloc(outputs * taps->most * sizeof(int32_t));
    double *exact = malloc(taps->most * sizeof(double));
    int ready = taps->first && taps->count && taps->weights && exact;
    for (int64_t i = 0; ready && i < outputs; i++) {
        volatile double centre = (i + 0.5) * step;
        int64_t first = (int64_t)(centre - step + 0.5), end = (int64_t)(centre + step + 0.5);
        first = first < 0 ? 0 : first;
        end = end > inputs ? inputs : end;
        double total = 0.0;
        for (int64_t k = 0; k < end - first; k++) {
            volatile double distance = (k + first - centre + 0.5) * inverse;
            double away = fabs(distance);
            exact[k] = away < 1.0 ? 1.0 - away : 0.0;
            total += exact[k];
        }
        for (int64_t k = 0; k < end - first; k++)
            taps->weights[i * taps->most + k] = (int32_t)(0.5 + exact[k] / total * (1 << WEIGHT_BITS));
        taps->first[i] = (int32_t)first;
        taps->count[i] = (int32_t)(end - first);
    }
    free(exact);
    return ready;
}

static void free_taps(struct taps *taps) {
    free(taps->first);
    free(taps->count);
    free(taps->weights);
}

/* A row of `width` outputs. Little-endian: the first byte of a pixel is the lowest of its 32 bits. */
static void scale_row(const struct taps *taps, int64_t width, const uint8_t *row, uint8_t *out) {
    const ints4 shifts = {0, 8, 16, 24};
    for (int64_t j = 0; j < width; j++) {
        ints4 total = {HALF, HALF, HALF, HALF};
        const uint8_t *pixel = row + STORED * (int64_t)taps->first[j];
        const int32_t *weights = taps->weights + j * taps->most;
        for (int64_t k = 0; k < taps->count[j]; k++) {
            int32_t bits;
            memcpy(&bits, pixel + STORED * k, STORED);
            ints4 pixels = {bits, bits, bits, bits};
            total += ((pixels >> shifts) & 255) * weights[k];
        }
        total >>= WEIGHT_BITS;
        for (int c = 0; c < CHANNELS; c++) out[CHANNELS * j + c] = (uint8_t)total[c];
    }
}

INLINE void add_row(int64_t count, int32_t weight, const uint8_t *row, int32_t *totals) {
    for (int64_t x = 0; x < count; x++) totals[x] += weight * row[x];
}

/* Row `i` of the output, `count` bytes, of `rows` that are scaled along x. */
static void scale_columns(const struct taps *taps, int64_t i, int64_t count, const uint8_t *rows, int32_t *totals,
                          uint8_t *out) {
    for (int64_t x = 0; x < count; x++) totals[x] = HALF;
    for (int64_t k = 0; k < taps->count[i]; k++)
        add_row(count, taps->weights[i * taps->most + k], rows + (taps->first[i] + k) * count, totals);
    for (int64_t x = 0; x < count; x++) out[x] = (uint8_t)(totals[x] >> WEIGHT_BITS);
}

/* An image (height, width, 4) as (new_height, new_width, 3), without the fourth byte; 1 where memory is short. */
EXPORT int equipoise_scale_down(const uint8_t *image, int64_t height, int64_t width, int64_t new_height,
                                int64_t new_width, uint8_t *out) {
    int64_t count = CHANNELS * new_width;
    struct taps across = {0}, down = {0};
    uint8_t *rows = malloc(height * count);
    int32_t *totals = malloc(count * sizeof(int32_t));
    int ready = set_taps(&across, width, new_width) & set_taps(&down, height, new_height) & (rows && totals);
    if (ready) {
        for (int64_t i = 0; i < height; i++)
            scale_row(&across, new_width, image + STORED * i * width, rows + i * count);
        for (int64_t i = 0; i < new_height; i++)
            scale_columns(&down, i, count, rows, totals, out + i * count);
    }
    free_taps(&across);
    free_taps(&down);
    free(rows);
    free(totals);
    return !ready;
}
