/* Pixels as numbers on the scale of a network's input: (byte / 255 − mean) / deviation of the pixel's channel, each step
   rounded as PyTorch rounds it.

   PyTorch writes the numbers once for each step; here they are written once. */

#include "kernels.h"

enum { PIXELS = 16, MOST_CHANNELS = 4 }; /* of a stretch of interleaved pixels; a multiple of any vector's length */

INLINE void write_stretch(int64_t count, const uint8_t *bytes, const float *mean, const float *std, float *out) {
    for (int64_t i = 0; i < count; i++) out[i] = ((float)bytes[i] / 255.0f - mean[i]) / std[i];
}

/* Images whose channels lie beside each other: `pixels` in all. */
EXPORT void equipoise_normalize_interleaved(int64_t pixels, int64_t channels, const uint8_t *bytes, const float *mean,
                                            const float *std, float *out) {
    float means[PIXELS * MOST_CHANNELS], stds[PIXELS * MOST_CHANNELS];
    for (int64_t i = 0; i < PIXELS * channels; i++) means[i] = mean[i % channels], stds[i] = std[i % channels];
    int64_t stretches = pixels / PIXELS, length = PIXELS * channels;
#pragma omp parallel for if (pixels * channels > GRAIN)
    for (int64_t s = 0; s < stretches; s++) write_stretch(length, bytes + s * length, means, stds, out + s * length);
    int64_t done = stretches * length;
    write_stretch(pixels * channels - done, bytes + done, means, stds, out + done);
}

/* Images whose channels lie behind each other, in `planes` of so many pixels. */
EXPORT void equipoise_normalize_planes(int64_t planes, int64_t channels, int64_t pixels, const uint8_t *bytes,
                                       const float *mean, const float *std, float *out) {
#pragma omp parallel for if (planes * pixels > GRAIN)
    for (int64_t p = 0; p < planes; p++) {
        float m = mean[p % channels], s = std[p % channels];
        for (int64_t i = p * pixels; i < (p + 1) * pixels; i++) out[i] = ((float)bytes[i] / 255.0f - m) / s;
    }
}
