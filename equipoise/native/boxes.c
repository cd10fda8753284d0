/* Boxes of images of any shape, scaled to one size. equipoise/data/boxes.py says what is computed: whole numbers alone, so
   that PyTorch gives the same.

   A row of the image is scaled along x once and kept, with as many others as an output row is made of. */

#include <stdlib.h>

#include "kernels.h"

enum { WEIGHT_BITS = 14, ROW_BITS = 6, CHANNELS = 3 };

INLINE int32_t shifted(int32_t value, int bits) { return (value + (1 << (bits - 1))) >> bits; }

/* One row (of pixels of three bytes) scaled along x. */
static void scale_row(const uint8_t *row, int64_t width, int64_t stride, int64_t used, const int32_t *pixels,
                      const int16_t *weights, int16_t *out) {
    for (int64_t j = 0; j < width; j++) {
        int32_t red = 0, green = 0, blue = 0;
        for (int64_t k = 0; k < used; k++) {
            const uint8_t *pixel = row + CHANNELS * (int64_t)pixels[j * stride + k];
            int32_t weight = weights[j * stride + k];
            red += weight * pixel[0];
            green += weight * pixel[1];
            blue += weight * pixel[2];
        }
        out[CHANNELS * j] = (int16_t)shifted(red, WEIGHT_BITS - ROW_BITS);
        out[CHANNELS * j + 1] = (int16_t)shifted(green, WEIGHT_BITS - ROW_BITS);
        out[CHANNELS * j + 2] = (int16_t)shifted(blue, WEIGHT_BITS - ROW_BITS);
    }
}

INLINE void add_row(int64_t count, int32_t weight, const int16_t *row, int32_t *totals) {
    for (int64_t x = 0; x < count; x++) totals[x] += weight * row[x];
}

INLINE void write_row(int64_t count, const int32_t *totals, uint8_t *out) {
    for (int64_t x = 0; x < count; x++) {
        int32_t value = shifted(totals[x], WEIGHT_BITS + ROW_BITS);
        out[x] = (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
    }
}

struct kept_rows {
    int64_t slots;    /* rows r and r + slots share a place; those of one output row are fewer apart */
    int64_t *which;   /* the row that lies in each place, or -1 */
    int16_t *rows;    /* (slots, count) */
    int32_t *totals;  /* (count,) */
};

EXPORT int equipoise_read_boxes(int64_t n, int64_t height, int64_t width, int64_t most_rows, int64_t most_columns,
                                const uint8_t *arena, const int64_t *first, const int64_t *widths,
                                const int32_t *row_pixels, const int16_t *row_weights, const int32_t *rows_used,
                                const int32_t *column_pixels, const int16_t *column_weights,
                                const int32_t *columns_used, uint8_t *out) {
    int64_t count = CHANNELS * width;
    int failed = 0;
#pragma omp parallel if (n * height * count > GRAIN)
    {
        struct kept_rows kept = {most_rows, malloc(most_rows * sizeof(int64_t)),
                                 malloc(most_rows * count * sizeof(int16_t)), malloc(count * sizeof(int32_t))};
        int ready = kept.which && kept.rows && kept.totals;
        if (!ready) {
#pragma omp atomic write
            failed = 1;
        }
#pragma omp for schedule(dynamic)
        for (int64_t image = 0; image < n; image++) {
            if (!ready) continue;
            const uint8_t *pixels = arena + CHANNELS * first[image];
            for (int64_t slot = 0; slot < most_rows; slot++) kept.which[slot] = -1;
            for (int64_t i = 0; i < height; i++) {
                int64_t at = (image * height + i) * most_rows;
                memset(kept.totals, 0, count * sizeof(int32_t));
                for (int64_t k = 0; k < rows_used[image]; k++) {
                    int32_t weight = row_weights[at + k];
                    if (weight == 0) continue;
                    int64_t row = row_pixels[at + k], slot = row % kept.slots;
                    int16_t *scaled = kept.rows + slot * count;
                    if (kept.which[slot] != row) {
                        scale_row(pixels + CHANNELS * row * widths[image], width, most_columns, columns_used[image],
                                  column_pixels + image * width * most_columns,
                                  column_weights + image * width * most_columns, scaled);
                        kept.which[slot] = row;
                    }
                    add_row(count, weight, scaled, kept.totals);
                }
                write_row(count, kept.totals, out + (image * height + i) * count);
            }
        }
        free(kept.which);
        free(kept.rows);
        free(kept.totals);
    }
    return failed;
}
