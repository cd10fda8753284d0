/* Losses: the value of each sample and the slope of its logits, in one pass over a row while it is in the cache.

   z is (n, c), y is (n,), values (n,), slope (n, c). `total` is the sum of the values times `share`, 1 / n for a mean, and
   the slope is that of the total. Every function returns 0, or the number of the first row, counted from 1, whose label is not a class. */

#include <float.h>

#include "kernels.h"

EXPORT int equipoise_version(void) { return EQUIPOISE_VERSION; }

/* Short rows are taken together, so that their exponentials fill vectors. */
enum { FEW = 64, TOGETHER = 64 };

static int64_t rows_together(int64_t c) { return c <= FEW ? TOGETHER : 1; }

#define SMALLEST_NORM 1e-6f /* as in `logit_norm.py` */

struct softmax_loss {
    const float *scale, *shift, *at_label; /* each (c,) or NULL: u = scale z + shift, and at the label + at_label */
    const float *rare;                     /* (c,), 1 where a class may be left out; or NULL */
    uint32_t left_out;                     /* how often it is, of 2^24 times */
    float tau;                             /* logits are brought to length 1 / tau, unless it is 0 */
    float smooth;                          /* this times the mean cost of all classes is added */
    float gamma;                           /* (1 - p)^gamma multiplies the value */
};

static int64_t wrong_label(int64_t n, int64_t c, const int64_t *y) {
    for (int64_t i = 0; i < n; i++)
        if (y[i] < 0 || y[i] >= c) return i + 1;
    return 0;
}

static float total_of(int64_t n, const float *values, float share) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += values[i];
    return (float)(sum * share);
}

INLINE float dot(int64_t c, const float *a, const float *b) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t k = 0; k < c; k++) sum += a[k] * b[k];
    return sum;
}

/* Whether class k of the row with this seed is left out: a hash of both, as good as a random number. */
INLINE int drawn(uint32_t seed, int64_t k, uint32_t left_out) {
    uint32_t h = seed + (uint32_t)k * 0x9E3779B9u;
    h = (h ^ (h >> 16)) * 0x85EBCA6Bu;
    h = (h ^ (h >> 13)) * 0xC2B2AE35u;
    return ((h ^ (h >> 16)) >> 8) < left_out;
}

/* u from z. */
INLINE void move(const struct softmax_loss *loss, int64_t c, const float *z, int64_t y, uint32_t seed, float gain,
                 float *u) {
    const float *scale = loss->scale, *shift = loss->shift, *rare = loss->rare;
    if (rare) {
        for (int64_t k = 0; k < c; k++) u[k] = (rare[k] != 0) & drawn(seed, k, loss->left_out) ? -INFINITY : z[k];
        u[y] = z[y];
    } else if (scale && shift) {
        for (int64_t k = 0; k < c; k++) u[k] = scale[k] * z[k] + shift[k];
    } else if (scale) {
        for (int64_t k = 0; k < c; k++) u[k] = scale[k] * z[k];
    } else if (shift) {
        for (int64_t k = 0; k < c; k++) u[k] = z[k] + shift[k];
    } else {
        for (int64_t k = 0; k < c; k++) u[k] = gain * z[k];
    }
    if (loss->at_label) u[y] += loss->at_label[y];
}

/* What is known of a row before its exponentials: its length and what it is multiplied by, the largest u, that of the
   label, and the sum of their distances from the label's. */
struct row {
    float norm, gain, top, u_y, distances;
};

/* u - max u, in the place of the slope. */
INLINE struct row begin_row(const struct softmax_loss *loss, int64_t c, const float *z, int64_t y, uint32_t seed,
                            float *u) {
    struct row row = {0, 1, -INFINITY, 0, 0};
    if (loss->tau > 0) {
        row.norm = sqrtf(dot(c, z, z));
        row.gain = 1 / (loss->tau * (row.norm < SMALLEST_NORM ? SMALLEST_NORM : row.norm));
    }
    move(loss, c, z, y, seed, row.gain, u);
    float top = -INFINITY, distances = 0, u_y = u[y];
#pragma omp simd reduction(max : top)
    for (int64_t k = 0; k < c; k++) top = u[k] > top ? u[k] : top;
    if (loss->smooth > 0) {
#pragma omp simd reduction(+ : distances)
        for (int64_t k = 0; k < c; k++) distances += u[k] - u_y;
    }
    for (int64_t k = 0; k < c; k++) u[k] -= top;
    row.top = top, row.u_y = u_y, row.distances = distances;
    return row;
}

/* The value, and the slope from the exponentials, which are in its place. */
INLINE float end_row(const struct softmax_loss *loss, struct row row, int64_t c, const float *z, int64_t y, float share,
                     float *slope) {
    float sum = 0, value;
#pragma omp simd reduction(+ : sum)
    for (int64_t k = 0; k < c; k++) sum += slope[k];
    float cost = logf(sum) + (row.top - row.u_y); /* -log p_y */
    if (loss->gamma > 0) {
        float q = -expm1f(-cost); /* 1 - p_y */
        q = q < FLT_MIN ? FLT_MIN : q;
        float fade = loss->gamma == 2 ? q * q : powf(q, loss->gamma);
        share *= fade + loss->gamma * fade / q * (1 - q) * cost;
        value = fade * cost;
    } else {
        value = loss->smooth > 0 ? cost + loss->smooth * (cost - row.distances / (float)c) : cost;
    }

    float each = share * (1 + loss->smooth) / sum, all = share * loss->smooth / (float)c;
    for (int64_t k = 0; k < c; k++) slope[k] = slope[k] * each - all;
    slope[y] -= share;
    if (loss->scale)
        for (int64_t k = 0; k < c; k++) slope[k] *= loss->scale[k];
    if (loss->tau > 0) { /* only what is at right angles to z reaches the logits */
        float along = row.norm > SMALLEST_NORM ? dot(c, slope, z) / (row.norm * row.norm) : 0;
        for (int64_t k = 0; k < c; k++) slope[k] = row.gain * (slope[k] - along * z[k]);
    }
    return value;
}

EXPORT int64_t equipoise_softmax_loss(int64_t n, int64_t c, const float *z, const int64_t *y, float share,
                                      float *values, float *slope, float *total, const float *scale, const float *shift,
                                      const float *at_label, const float *rare, const int64_t *seeds, uint32_t left_out,
                                      float tau, float smooth, float gamma) {
    struct softmax_loss loss = {scale, shift, at_label, rare, left_out, tau, smooth, gamma};
    int64_t wrong = wrong_label(n, c, y), together = rows_together(c);
    if (wrong) return wrong;
#pragma omp parallel for schedule(static) if (n * c > GRAIN)
    for (int64_t first = 0; first < n; first += together) {
        struct row rows[TOGETHER];
        int64_t last = first + together < n ? first + together : n;
        for (int64_t i = first; i < last; i++)
            rows[i - first] = begin_row(&loss, c, z + i * c, y[i], seeds ? (uint32_t)seeds[i] : 0, slope + i * c);
        float *u = slope + first * c;
#pragma omp simd
        for (int64_t k = 0; k < (last - first) * c; k++) u[k] = exp_negative(u[k]);
        for (int64_t i = first; i < last; i++)
            values[i] = end_row(&loss, rows[i - first], c, z + i * c, y[i], share, slope + i * c);
    }
    *total = total_of(n, values, share);
    return 0;
}

/* log(1 + e) for 0 <= e <= 1: 2 atanh(e / (2 + e)) by its series. */
INLINE float log1p_unit(float e) {
    float s = e / (2 + e), t = s * s;
    float p = 1.0f / 15;
    p = p * t + 1.0f / 13;
    p = p * t + 1.0f / 11;
    p = p * t + 1.0f / 9;
    p = p * t + 1.0f / 7;
    p = p * t + 1.0f / 5;
    p = p * t + 1.0f / 3;
    return 2 * s + 2 * s * t * p;
}

/* q^gamma log(1 + e^w) for q = sigmoid(w), and its slope. */
INLINE float sigmoid_cost(float w, float gamma, float *slope) {
    float e = exp_negative(w > 0 ? -w : w), rest = log1p_unit(e), inverse = 1 / (1 + e);
    float cost = (w > 0 ? w : 0) + rest;
    float q = (w > 0 ? 1 : e) * inverse;
    if (gamma == 0) {
        *slope = q;
        return cost;
    }
    float fade = exp_negative(gamma * ((w > 0 ? 0 : w) - rest)), other = (w > 0 ? e : 1) * inverse;
    *slope = fade * (q + gamma * other * cost);
    return fade * cost;
}

/* The costs of consecutive w in their place, and their slopes. */
INLINE void sigmoid_costs(int64_t count, float gamma, float share, float *w, float *slope) {
#pragma omp simd
    for (int64_t k = 0; k < count; k++) {
        float s;
        w[k] = sigmoid_cost(w[k], gamma, &s);
        slope[k] = share * s;
    }
}

EXPORT int64_t equipoise_sigmoid_loss(int64_t n, int64_t c, const float *z, const int64_t *y, float share,
                                      float *values, float *slope, float *total, float gamma) {
    enum { SOME = 1024 };
    int64_t wrong = wrong_label(n, c, y), together = rows_together(c), most = c < SOME ? c : SOME;
    if (wrong) return wrong;
#pragma omp parallel for schedule(static) if (n * c > GRAIN)
    for (int64_t first = 0; first < n; first += together) {
        int64_t last = first + together < n ? first + together : n;
        for (int64_t i = first; i < last; i++) values[i] = 0;
        for (int64_t begin = 0; begin < c; begin += most) { /* several rows whole, or a part of one */
            float w[TOGETHER * FEW > SOME ? TOGETHER * FEW : SOME];
            int64_t width = c - begin < most ? c - begin : most, at = first * c + begin;
            memcpy(w, z + at, (last - first) * width * sizeof(float));
            for (int64_t i = first; i < last; i++)
                if (y[i] >= begin && y[i] < begin + width) w[(i - first) * width + y[i] - begin] *= -1;
            if (gamma == 0) /* apart, so that the compiler leaves the power out */
                sigmoid_costs((last - first) * width, 0, share, w, slope + at);
            else
                sigmoid_costs((last - first) * width, gamma, share, w, slope + at);
            for (int64_t i = first; i < last; i++) {
                float sum = 0;
#pragma omp simd reduction(+ : sum)
                for (int64_t k = 0; k < width; k++) sum += w[(i - first) * width + k];
                values[i] += sum;
            }
        }
        for (int64_t i = first; i < last; i++) slope[i * c + y[i]] *= -1; /* the label's w was -z */
    }
    *total = total_of(n, values, share);
    return 0;
}

static void squared_row(int64_t c, const float *z, int64_t y, float kappa, float magnitude, float share,
                           float *value, float *slope) {
    float miss = z[y] - magnitude, sum = 0;
    for (int64_t k = 0; k < c; k++) slope[k] = 2 * share * z[k];
#pragma omp simd reduction(+ : sum)
    for (int64_t k = 0; k < c; k++) sum += k == y ? 0 : z[k] * z[k];
    *value = sum + kappa * miss * miss;
    slope[y] = 2 * share * kappa * miss;
}

EXPORT int64_t equipoise_squared_loss(int64_t n, int64_t c, const float *z, const int64_t *y, float share,
                                      float *values, float *slope, float *total, float kappa, float magnitude, float scale) {
    int64_t wrong = wrong_label(n, c, y);
    if (wrong) return wrong;
#pragma omp parallel for schedule(static) if (n * c > GRAIN)
    for (int64_t i = 0; i < n; i++) {
        squared_row(c, z + i * c, y[i], kappa, magnitude, scale * share, values + i, slope + i * c);
        values[i] *= scale;
    }
    *total = total_of(n, values, share);
    return 0;
}
