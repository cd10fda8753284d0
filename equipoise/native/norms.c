/* Normalization layers: inference with example weighing, and training over blocks of examples and channel groups.

   An example is a matrix of C channels and P positions, in one of two layouts: a row of P numbers for each channel
   (contiguous tensors), or a row of C numbers for each position (channels-last ones: `columns`). Four operations on an
   example know the layout; the rest works with one number for each channel. Every example is summed by itself and the
   examples are then added in order, so that the results do not depend on the number of threads. */

#include "kernels.h"

#ifdef __SSE__
#include <xmmintrin.h>
enum { CAN_STREAM = 1 };
#else
enum { CAN_STREAM = 0 };
#endif

typedef int64_t Count;

/* What follows the norm in training. Wherever numbers are worked on it is a constant: each has loops of its own. */
typedef enum { NOTHING, RELU, SHORTCUT_RELU } After; /* the last: a shortcut is added, then comes the ReLU */

typedef struct {
    Count channels, positions, columns;
    Count past_cache; /* whether results are written past the cache */
    Count ahead;      /* how far ahead to fetch what is read next, while results are written; 0 is not at all */
} Shape;

enum {
    TILE = 1024, /* channels whose sums are kept at hand */
    FILL = 128,  /* numbers that fill the vector units; of fewer channels several positions are taken at a time */
    PANEL = 64,  /* channels that are summed over examples together */
    GUESS = 256, /* positions for each one that is looked at to guess the mean */
    /* numbers, by what caches hold */
    NEXT = 1 << 16,          /* of an example that can be fetched while the one before is at work */
    LARGE = 1 << 22,         /* of a result that is gone from the cache before it is used */
    LARGE_TRAINED = 1 << 20, /* the same in training, where what it was made of is kept besides */
};

INLINE Count least(Count a, Count b) { return a < b ? a : b; }

static Shape shape_of(Count n, Count channels, Count positions, Count columns, Count large) {
    Count past_cache = CAN_STREAM && n * channels * positions >= large;
    return (Shape){.channels = channels, .positions = positions, .columns = columns, .past_cache = past_cache};
}

/* Where to make numbers that belong at `to`, and bringing them there. Past the cache they are made in `line` and stored
   without reading first what was there, which is a third of the traffic of a result that is written usually. */
INLINE float *staging(Shape s, float *to, float *line) { return s.past_cache ? line : to; }

INLINE void stream_out(Shape s, float *to, const float *line, Count n) {
    if (!s.past_cache) return;
#ifdef __SSE__
    if ((uintptr_t)to % 16 == 0 && n % 4 == 0) {
        for (Count i = 0; i < n; i += 4) _mm_stream_ps(to + i, _mm_loadu_ps(line + i));
        return;
    }
#endif
    memcpy(to, line, (size_t)n * sizeof(float));
}

/* Before other threads are told that the numbers are there. */
INLINE void fence(Shape s) {
#ifdef __SSE__
    if (s.past_cache) _mm_sfence();
#else
    (void)s;
#endif
}

/* Fetch n numbers from as far ahead of x as the next example is; past the last one it does nothing. */
INLINE void fetch_ahead(Shape s, const float *x, Count n) {
    for (Count i = 0; s.ahead && i < n; i += 16) __builtin_prefetch(x + s.ahead + i);
}

/* -- what follows the norm ----------------------------------------------------------------------------------------- */

/* y of x. NaN passes the ReLU, both ways, as it does in PyTorch. */
INLINE float result(After after, float x, float scale, float shift, float shortcut) {
    float v = x * scale + shift;
    if (after == SHORTCUT_RELU) v += shortcut;
    return after != NOTHING && v < 0 ? 0 : v;
}

/* Where the ReLU was open is read `from` y where there was a shortcut, else from x, of which y is made once more. */
typedef struct {
    const float *from, *scale, *shift;
    float *behind; /* what of dy comes through the ReLU, which is the gradient of the shortcut, where there was one */
} Gate;

INLINE float through(After after, float dy, float from, float scale, float shift) {
    float y = after == RELU ? result(NOTHING, from, scale, shift, 0) : from;
    return after != NOTHING && y <= 0 ? 0 : dy;
}

/* -- an example as rows, one for each channel ---------------------------------------------------------------------- */

/* Four rows are read at once, for several sums to be under way, and a quarter of the example apart: memory is read
   ahead in several places then, which is twice as fast as in one. This is the c-th row of quarter q; the last one again
   where there are no more. */
INLINE Count quarter(Shape s) { return (s.channels + 3) / 4; }
INLINE Count row(Shape s, Count c, Count q) { return least(c + q * quarter(s), s.channels - 1); }

/* A number near the mean. The deviation of the first n of P values from the mean is at most sqrt(P / n) standard
   deviations, so that sums of x - guess lose at most P / n units in the last place, here 256, whatever the values. */
INLINE float guess(const float *x, Count positions) {
    Count n = positions / GUESS + 1;
    if (n == 1) return x[0];
    float sum = 0;
    for (Count i = 0; i < n; i++) sum += x[i];
    return sum / (float)n;
}

INLINE void close_moments(float sum, float square, float near, float share, float *mean, float *var) {
    float step = sum * share, v = square * share - step * step;
    *mean = near + step;
    *var = v < 0 ? 0 : v; /* NaN stays */
}

INLINE void rows_moments(Shape s, const float *x, float *mean, float *var) {
    Count n = s.positions;
    float share = 1.0f / (float)n;
    for (Count c = 0; c < quarter(s); c++) {
        Count i0 = row(s, c, 0), i1 = row(s, c, 1), i2 = row(s, c, 2), i3 = row(s, c, 3);
        const float *x0 = x + i0 * n, *x1 = x + i1 * n, *x2 = x + i2 * n, *x3 = x + i3 * n;
        float g0 = guess(x0, n), g1 = guess(x1, n), g2 = guess(x2, n), g3 = guess(x3, n);
        float s0 = 0, s1 = 0, s2 = 0, s3 = 0, q0 = 0, q1 = 0, q2 = 0, q3 = 0;
#pragma omp simd simdlen(8) reduction(+ : s0, s1, s2, s3, q0, q1, q2, q3)
        for (Count i = 0; i < n; i++) {
            float d0 = x0[i] - g0, d1 = x1[i] - g1, d2 = x2[i] - g2, d3 = x3[i] - g3;
            s0 += d0, s1 += d1, s2 += d2, s3 += d3;
            q0 += d0 * d0, q1 += d1 * d1, q2 += d2 * d2, q3 += d3 * d3;
        }
        close_moments(s0, q0, g0, share, mean + i0, var + i0);
        close_moments(s1, q1, g1, share, mean + i1, var + i1);
        close_moments(s2, q2, g2, share, mean + i2, var + i2);
        close_moments(s3, q3, g3, share, mean + i3, var + i3);
    }
}

/* What comes through the gate to a shortcut is not written past the cache: it is read again for dx. */
INLINE void rows_sums(Shape s, After after, Gate gate, const float *dy, const float *x, const float *mean, float *dot,
                      float *total) {
    Count n = s.positions;
    const float *from = gate.from;
    for (Count c = 0; c < quarter(s); c++) {
        Count i0 = row(s, c, 0), i1 = row(s, c, 1), i2 = row(s, c, 2), i3 = row(s, c, 3);
        float m0 = mean[i0], m1 = mean[i1], m2 = mean[i2], m3 = mean[i3];
        float a0 = 0, a1 = 0, a2 = 0, a3 = 0, b0 = 0, b1 = 0, b2 = 0, b3 = 0;
        if (after == RELU) {
            a0 = gate.scale[i0], a1 = gate.scale[i1], a2 = gate.scale[i2], a3 = gate.scale[i3];
            b0 = gate.shift[i0], b1 = gate.shift[i1], b2 = gate.shift[i2], b3 = gate.shift[i3];
        }
        float t0 = 0, t1 = 0, t2 = 0, t3 = 0, p0 = 0, p1 = 0, p2 = 0, p3 = 0;
#pragma omp simd simdlen(8) reduction(+ : t0, t1, t2, t3, p0, p1, p2, p3)
        for (Count i = 0; i < n; i++) {
            Count k0 = i0 * n + i, k1 = i1 * n + i, k2 = i2 * n + i, k3 = i3 * n + i;
            float d0 = through(after, dy[k0], from[k0], a0, b0), d1 = through(after, dy[k1], from[k1], a1, b1);
            float d2 = through(after, dy[k2], from[k2], a2, b2), d3 = through(after, dy[k3], from[k3], a3, b3);
            if (after == SHORTCUT_RELU)
                gate.behind[k0] = d0, gate.behind[k1] = d1, gate.behind[k2] = d2, gate.behind[k3] = d3;
            t0 += d0, t1 += d1, t2 += d2, t3 += d3;
            p0 += d0 * (x[k0] - m0), p1 += d1 * (x[k1] - m1);
            p2 += d2 * (x[k2] - m2), p3 += d3 * (x[k3] - m3);
        }
        total[i0] = t0, total[i1] = t1, total[i2] = t2, total[i3] = t3;
        dot[i0] = p0, dot[i1] = p1, dot[i2] = p2, dot[i3] = p3;
    }
}

/* How many numbers of a result are made at a time. Past the cache they are not cut where rows begin, which would be
   badly aligned. */
INLINE Count portion(Shape s) { return s.past_cache ? TILE : s.channels * s.positions; }

INLINE void rows_affine(Shape s, After after, const float *x, const float *scale, const float *shift,
                        const float *shortcut, float *y) {
    float line[TILE];
    Count numbers = s.channels * s.positions, c = 0, end = s.positions; /* of row c */
    for (Count start = 0; start < numbers; start += portion(s)) {
        Count stop = least(start + portion(s), numbers);
        float *restrict to = staging(s, y + start, line);
        for (Count i = start; i < stop;) {
            if (i == end) c++, end += s.positions;
            float a = scale[c], b = shift[c];
            Count piece = least(end, stop);
            fetch_ahead(s, x + i, piece - i);
#pragma omp simd
            for (Count k = i; k < piece; k++)
                to[k - start] = result(after, x[k], a, b, after == SHORTCUT_RELU ? shortcut[k] : 0);
            i = piece;
        }
        stream_out(s, y + start, line, stop - start);
    }
}

INLINE void rows_gradient(Shape s, After after, Gate gate, const float *dy, const float *x, const float *of_dy,
                          const float *of_x, const float *rest, float *dx) {
    float line[TILE];
    Count numbers = s.channels * s.positions, c = 0, end = s.positions; /* of row c */
    for (Count start = 0; start < numbers; start += portion(s)) {
        Count stop = least(start + portion(s), numbers);
        float *restrict to = staging(s, dx + start, line);
        for (Count i = start; i < stop;) {
            if (i == end) c++, end += s.positions;
            float a = of_dy[c], b = of_x[c], d = rest[c];
            float scale = after == RELU ? gate.scale[c] : 0, shift = after == RELU ? gate.shift[c] : 0;
            Count piece = least(end, stop);
#pragma omp simd
            for (Count k = i; k < piece; k++)
                to[k - start] = a * through(after, dy[k], x[k], scale, shift) + (b * x[k] + d);
            i = piece;
        }
        stream_out(s, dx + start, line, stop - start);
    }
}

/* -- an example as columns: a matrix (positions, channels) --------------------------------------------------------- */

/* Up to TILE channels of all positions, as `lines` of `width` numbers and one of `rest`. A line has the channels of one
   position, or of `repeat` consecutive ones. */
typedef struct {
    Count first, channels, repeat, width, lines, stride, rest;
} Tile;

INLINE Tile tile_from(Shape s, Count first) {
    Tile t = {.first = first, .channels = least(TILE, s.channels - first), .repeat = 1};
    if (s.channels < FILL) t.repeat = least(FILL / s.channels, s.positions);
    t.width = t.channels * t.repeat;
    t.lines = s.positions / t.repeat;
    t.stride = s.channels * t.repeat;
    t.rest = s.positions % t.repeat * s.channels;
    return t;
}

/* The values of a tile's channels as often as a line has them. */
INLINE void repeated(Tile t, const float *values, float *line) {
    for (Count r = 0; r < t.repeat; r++) memcpy(line + r * t.channels, values, (size_t)t.channels * sizeof(float));
}

/* Add what belongs to the same channel into the first of them. */
INLINE void fold(Tile t, float *line) {
    for (Count r = 1; r < t.repeat; r++)
        for (Count c = 0; c < t.channels; c++) line[c] += line[r * t.channels + c];
}

INLINE void columns_guess(Shape s, Tile t, const float *x, float *near) {
    Count n = s.positions / GUESS + 1;
    memcpy(near, x, (size_t)t.channels * sizeof(float));
    for (Count i = 1; i < n; i++)
        for (Count c = 0; c < t.channels; c++) near[c] += x[i * s.channels + c];
    for (Count c = 0; c < t.channels; c++) near[c] /= (float)n;
    for (Count r = 1; r < t.repeat; r++) memcpy(near + r * t.channels, near, (size_t)t.channels * sizeof(float));
}

INLINE void columns_moments(Shape s, const float *x, float *mean, float *var) {
    float near[TILE], sum[TILE], square[TILE], share = 1.0f / (float)s.positions;
    for (Count first = 0; first < s.channels; first += TILE) {
        Tile t = tile_from(s, first);
        const float *line = x + first;
        columns_guess(s, t, line, near);
        memset(sum, 0, (size_t)t.width * sizeof(float));
        memset(square, 0, (size_t)t.width * sizeof(float));
        Count quarter = t.lines / 4 * t.stride;
        for (Count i = 0; i < t.lines / 4; i++, line += t.stride) {
            const float *x0 = line, *x1 = x0 + quarter, *x2 = x1 + quarter, *x3 = x2 + quarter;
            for (Count c = 0; c < t.width; c++) {
                float d0 = x0[c] - near[c], d1 = x1[c] - near[c], d2 = x2[c] - near[c], d3 = x3[c] - near[c];
                sum[c] += (d0 + d1) + (d2 + d3);
                square[c] += (d0 * d0 + d1 * d1) + (d2 * d2 + d3 * d3);
            }
        }
        line += 3 * quarter;
        for (Count i = t.lines / 4 * 4; i <= t.lines; i++, line += t.stride) {
            Count width = i < t.lines ? t.width : t.rest;
            for (Count c = 0; c < width; c++) {
                float d = line[c] - near[c];
                sum[c] += d;
                square[c] += d * d;
            }
        }
        fold(t, sum), fold(t, square);
        for (Count c = 0; c < t.channels; c++)
            close_moments(sum[c], square[c], near[c], share, mean + first + c, var + first + c);
    }
}

INLINE void columns_sums(Shape s, After after, Gate gate, const float *dy, const float *x, const float *mean,
                         float *dot, float *total) {
    float center[TILE], sum[TILE], product[TILE], a[TILE], b[TILE];
    const float *from = gate.from;
    for (Count first = 0; first < s.channels; first += TILE) {
        Tile t = tile_from(s, first);
        repeated(t, mean + first, center);
        if (after == RELU) repeated(t, gate.scale + first, a), repeated(t, gate.shift + first, b);
        memset(sum, 0, (size_t)t.width * sizeof(float));
        memset(product, 0, (size_t)t.width * sizeof(float));
        Count quarter = t.lines / 4 * t.stride, at = first;
        for (Count i = 0; i < t.lines / 4; i++, at += t.stride) {
#pragma omp simd
            for (Count c = 0; c < t.width; c++) {
                Count k0 = at + c, k1 = k0 + quarter, k2 = k1 + quarter, k3 = k2 + quarter;
                float m = center[c], u = a[c], v = b[c];
                float d0 = through(after, dy[k0], from[k0], u, v), d1 = through(after, dy[k1], from[k1], u, v);
                float d2 = through(after, dy[k2], from[k2], u, v), d3 = through(after, dy[k3], from[k3], u, v);
                if (after == SHORTCUT_RELU)
                    gate.behind[k0] = d0, gate.behind[k1] = d1, gate.behind[k2] = d2, gate.behind[k3] = d3;
                sum[c] += (d0 + d1) + (d2 + d3);
                product[c] += (d0 * (x[k0] - m) + d1 * (x[k1] - m)) + (d2 * (x[k2] - m) + d3 * (x[k3] - m));
            }
        }
        at += 3 * quarter;
        for (Count i = t.lines / 4 * 4; i <= t.lines; i++, at += t.stride) {
            Count width = i < t.lines ? t.width : t.rest;
#pragma omp simd
            for (Count c = 0; c < width; c++) {
                float d = through(after, dy[at + c], from[at + c], a[c], b[c]);
                if (after == SHORTCUT_RELU) gate.behind[at + c] = d;
                sum[c] += d;
                product[c] += d * (x[at + c] - center[c]);
            }
        }
        fold(t, sum), fold(t, product);
        memcpy(total + first, sum, (size_t)t.channels * sizeof(float));
        memcpy(dot + first, product, (size_t)t.channels * sizeof(float));
    }
}

INLINE void columns_affine(Shape s, After after, const float *x, const float *scale, const float *shift,
                           const float *shortcut, float *y) {
    float a[TILE], b[TILE], line[TILE];
    for (Count first = 0; first < s.channels; first += TILE) {
        Tile t = tile_from(s, first);
        repeated(t, scale + first, a), repeated(t, shift + first, b);
        for (Count i = 0, at = first; i <= t.lines; i++, at += t.stride) {
            Count width = i < t.lines ? t.width : t.rest;
            float *restrict to = staging(s, y + at, line);
            fetch_ahead(s, x + at, width);
            for (Count c = 0; c < width; c++)
                to[c] = result(after, x[at + c], a[c], b[c], after == SHORTCUT_RELU ? shortcut[at + c] : 0);
            stream_out(s, y + at, line, width);
        }
    }
}

INLINE void columns_gradient(Shape s, After after, Gate gate, const float *dy, const float *x, const float *of_dy,
                             const float *of_x, const float *rest, float *dx) {
    float a[TILE], b[TILE], d[TILE], scale[TILE], shift[TILE], line[TILE];
    for (Count first = 0; first < s.channels; first += TILE) {
        Tile t = tile_from(s, first);
        repeated(t, of_dy + first, a), repeated(t, of_x + first, b), repeated(t, rest + first, d);
        if (after == RELU) repeated(t, gate.scale + first, scale), repeated(t, gate.shift + first, shift);
        for (Count i = 0, at = first; i <= t.lines; i++, at += t.stride) {
            Count width = i < t.lines ? t.width : t.rest;
            float *restrict to = staging(s, dx + at, line);
            for (Count c = 0; c < width; c++)
                to[c] = a[c] * through(after, dy[at + c], x[at + c], scale[c], shift[c]) + (b[c] * x[at + c] + d[c]);
            stream_out(s, dx + at, line, width);
        }
    }
}

/* -- an example in either layout ----------------------------------------------------------------------------------- */

/* Mean and biased variance of each channel. */
static void moments(Shape s, const float *x, float *mean, float *var) {
    if (s.columns) columns_moments(s, x, mean, var);
    else rows_moments(s, x, mean, var);
}

/* y = scale x + shift, and what follows */
INLINE void affine_after(Shape s, After after, const float *x, const float *scale, const float *shift,
                         const float *shortcut, float *y) {
    if (s.columns) columns_affine(s, after, x, scale, shift, shortcut, y);
    else rows_affine(s, after, x, scale, shift, shortcut, y);
}

static void affine(Shape s, After after, const float *x, const float *scale, const float *shift, const float *shortcut,
                   float *y) {
    if (after == NOTHING) affine_after(s, NOTHING, x, scale, shift, NULL, y);
    else if (after == RELU) affine_after(s, RELU, x, scale, shift, NULL, y);
    else affine_after(s, SHORTCUT_RELU, x, scale, shift, shortcut, y);
    fence(s);
}

/* sum of dy (x - mean), and of dy, by what of dy comes through the gate */
INLINE void sums_after(Shape s, After after, Gate gate, const float *dy, const float *x, const float *mean, float *dot,
                       float *total) {
    if (s.columns) columns_sums(s, after, gate, dy, x, mean, dot, total);
    else rows_sums(s, after, gate, dy, x, mean, dot, total);
}

static void sums(Shape s, After after, Gate gate, const float *dy, const float *x, const float *mean, float *dot,
                 float *total) {
    if (after == NOTHING) sums_after(s, NOTHING, gate, dy, x, mean, dot, total);
    else if (after == RELU) sums_after(s, RELU, gate, dy, x, mean, dot, total);
    else sums_after(s, SHORTCUT_RELU, gate, dy, x, mean, dot, total);
}

/* dx = a dy + b x + c, by what of dy comes through the gate */
INLINE void gradient_after(Shape s, After after, Gate gate, const float *dy, const float *x, const float *a,
                           const float *b, const float *c, float *dx) {
    if (s.columns) columns_gradient(s, after, gate, dy, x, a, b, c, dx);
    else rows_gradient(s, after, gate, dy, x, a, b, c, dx);
}

static void gradient(Shape s, After after, Gate gate, const float *dy, const float *x, const float *a, const float *b,
                     const float *c, float *dx) {
    if (after == RELU) gradient_after(s, RELU, gate, dy, x, a, b, c, dx);
    else if (after == NOTHING) gradient_after(s, NOTHING, gate, dy, x, a, b, c, dx);
    else gradient_after(s, NOTHING, gate, gate.behind, x, a, b, c, dx); /* it went through the gate in `sums` */
    fence(s);
}

/* -- numbers of channels ------------------------------------------------------------------------------------------- */

/* Moments of channels -> those of the group they belong to, in place. */
INLINE void pool(Count channels, Count groups, float *mean, float *var) {
    Count width = channels / groups;
    float share = 1.0f / (float)width;
    for (Count g = 0; width > 1 && g < groups; g++, mean += width, var += width) {
        float center = 0, v = 0;
#pragma omp simd simdlen(8) reduction(+ : center)
        for (Count c = 0; c < width; c++) center += mean[c];
        center *= share;
#pragma omp simd simdlen(8) reduction(+ : v)
        for (Count c = 0; c < width; c++) v += var[c] + (mean[c] - center) * (mean[c] - center);
        v *= share;
        for (Count c = 0; c < width; c++) mean[c] = center, var[c] = v;
    }
}

/* scale and shift of scale x + shift = (x - mean) rstd gamma + beta; each may take the place of what it is made of. */
INLINE void as_affine(Count channels, const float *mean, const float *rstd, const float *weight, const float *bias,
                      float *scale, float *shift) {
    for (Count c = 0; c < channels; c++) {
        float a = weight ? rstd[c] * weight[c] : rstd[c];
        shift[c] = (bias ? bias[c] : 0) - mean[c] * a;
        scale[c] = a;
    }
}

/* Moments of consecutive examples, (n, stride) -> those of all together, for at most PANEL channels. */
INLINE void merge_panel(Count n, Count stride, Count channels, const float *means, const float *vars, float *mean,
                        float *var) {
    double m[PANEL] = {0}, v[PANEL] = {0};
    for (Count i = 0; i < n; i++)
        for (Count c = 0; c < channels; c++) m[c] += means[i * stride + c];
    for (Count c = 0; c < channels; c++) m[c] /= (double)n;
    for (Count i = 0; i < n; i++)
        for (Count c = 0; c < channels; c++) {
            double gap = means[i * stride + c] - m[c];
            v[c] += vars[i * stride + c] + gap * gap;
        }
    for (Count c = 0; c < channels; c++) mean[c] = (float)m[c], var[c] = (float)(v[c] / (double)n);
}

static void merge(Count n, Count channels, const float *means, const float *vars, float *mean, float *var) {
    for (Count c = 0; c < channels; c += PANEL)
        merge_panel(n, channels, least(PANEL, channels - c), means + c, vars + c, mean + c, var + c);
}

/* -- inference ----------------------------------------------------------------------------------------------------- */

/* An example's own mean and variance -> shift and scale, by those mixed with the moving ones, in place. */
static void mix(Count channels, Count groups, const float *mean, const float *var, const float *weight,
                const float *bias, float alpha, float eps, float *own_mean, float *own_var) {
    pool(channels, groups, own_mean, own_var);
    for (Count c = 0; c < channels; c++) {
        float gap = own_mean[c] - mean[c];
        float v = alpha * own_var[c] + (1 - alpha) * var[c] + alpha * (1 - alpha) * gap * gap;
        own_mean[c] = mean[c] + alpha * gap;
        own_var[c] = 1.0f / sqrtf(v + eps);
    }
    as_affine(channels, own_mean, own_var, weight, bias, own_var, own_mean);
}

/* Each example normalized with the share alpha of its own statistics. `work` has 2 (n + 1) C numbers. */
EXPORT void equipoise_weigh(Count n, Count channels, Count positions, Count columns, Count groups, double alpha,
                            double eps, Count threads, const float *x, const float *mean, const float *var,
                            const float *weight, const float *bias, float *y, float *work) {
    Shape s = shape_of(n, channels, positions, columns, LARGE);
    Count size = channels * positions;
    if (size <= NEXT && n * size >= LARGE / 4) s.ahead = size;
    float *moving = work + 2 * n * channels;
    memcpy(moving, mean, (size_t)channels * sizeof(float));
    memcpy(moving + channels, var, (size_t)channels * sizeof(float));
    pool(channels, groups, moving, moving + channels);
    if (n * size < GRAIN) threads = 1;
#pragma omp parallel for num_threads(threads)
    for (Count i = 0; i < n; i++) {
        float *own_mean = work + 2 * i * channels, *own_var = own_mean + channels;
        moments(s, x + i * size, own_mean, own_var);
        mix(channels, groups, moving, moving + channels, weight, bias, (float)alpha, (float)eps, own_mean, own_var);
        affine(s, NOTHING, x + i * size, own_var, own_mean, NULL, y + i * size);
    }
}

/* Mean and variance (C,) of the batch. `work` has 2 n C numbers. */
EXPORT void equipoise_batch_moments(Count n, Count channels, Count positions, Count columns, Count threads,
                                    const float *x, float *mean, float *var, float *work) {
    Shape s = shape_of(n, channels, positions, columns, LARGE_TRAINED);
    Count size = channels * positions;
    if (n * size < GRAIN) threads = 1;
#pragma omp parallel for num_threads(threads)
    for (Count i = 0; i < n; i++) moments(s, x + i * size, work + i * channels, work + (n + i) * channels);
    merge(n, channels, work, work + n * channels, mean, var);
}

/* -- training over blocks ------------------------------------------------------------------------------------------ */

/* `blocks` of `size` consecutive examples, the last with all that is left; `groups` of channels share statistics. What
   is named in the plural is (n, C), one number for each example and channel; mean, rstd and what dx or y is made with
   are (K, C), one for each block and channel. */
typedef struct {
    Shape shape;
    After after;
    Count n, size, blocks, groups;
    float eps;
    const float *x, *shortcut, *weight, *bias, *dy;
    float *y, *mean, *rstd, *scale, *shift;
    float *means, *vars;                                      /* forward */
    float *dx, *behind, *dots, *totals, *of_dy, *of_x, *rest; /* backward */
} Job;

static Count start_of(const Job *j, Count block) { return block < j->blocks ? block * j->size : j->n; }
static Count block_of(const Job *j, Count example) { return least(example / j->size, j->blocks - 1); }

typedef void Step(const Job *, Count);

static void measure_all(const Job *j, Count first, Count last, Step *measure) {
    for (Count i = first; i < last; i++) measure(j, i);
}

/* From the last on: what was measured last is still in the cache. */
static void apply_all(const Job *j, Count first, Count last, Step *apply) {
    for (Count i = last - 1; i >= first; i--) apply(j, i);
}

/* `measure` each example, then `close` its block, then `apply` that to each example. A thread does whole blocks where
   there are enough of them, and waits for nobody. Else each has its share of the examples. */
static void run(const Job *j, Count threads, Step *measure, Step *close, Step *apply) {
    Count n = j->n;
    if (n * j->shape.channels * j->shape.positions < GRAIN) threads = 1;
    if (j->blocks % threads == 0 || j->blocks >= 4 * threads) {
#pragma omp parallel for num_threads(threads)
        for (Count k = 0; k < j->blocks; k++) {
            measure_all(j, start_of(j, k), start_of(j, k + 1), measure);
            close(j, k);
            apply_all(j, start_of(j, k), start_of(j, k + 1), apply);
        }
        return;
    }
#pragma omp parallel num_threads(threads)
    {
#pragma omp for schedule(static)
        for (Count t = 0; t < threads; t++) measure_all(j, t * n / threads, (t + 1) * n / threads, measure);
#pragma omp for
        for (Count k = 0; k < j->blocks; k++) close(j, k);
#pragma omp for schedule(static)
        for (Count t = 0; t < threads; t++) apply_all(j, t * n / threads, (t + 1) * n / threads, apply);
    }
}

static void measure_moments(const Job *j, Count i) {
    Count channels = j->shape.channels, numbers = channels * j->shape.positions;
    moments(j->shape, j->x + i * numbers, j->means + i * channels, j->vars + i * channels);
}

/* Compiled once: where y is made again, for backward to find the open ReLUs, it must come out the same to the bit. */
__attribute__((noinline)) static void affine_of_block(const Job *j, Count k) {
    Count channels = j->shape.channels, at = k * channels;
    as_affine(channels, j->mean + at, j->rstd + at, j->weight, j->bias, j->scale + at, j->shift + at);
}

static void close_moments_of_block(const Job *j, Count k) {
    Count channels = j->shape.channels, first = start_of(j, k), at = k * channels;
    float *mean = j->mean + at, *rstd = j->rstd + at;
    merge(start_of(j, k + 1) - first, channels, j->means + first * channels, j->vars + first * channels, mean, rstd);
    pool(channels, j->groups, mean, rstd);
    for (Count c = 0; c < channels; c++) rstd[c] = 1.0f / sqrtf(rstd[c] + j->eps); /* was the variance */
    affine_of_block(j, k);
}

static void apply_affine(const Job *j, Count i) {
    Count channels = j->shape.channels, at = i * channels * j->shape.positions, of_block = block_of(j, i) * channels;
    const float *shortcut = j->shortcut ? j->shortcut + at : NULL;
    affine(j->shape, j->after, j->x + at, j->scale + of_block, j->shift + of_block, shortcut, j->y + at);
}

static After after_of(Count relu, const float *shortcut) {
    return !relu ? NOTHING : shortcut ? SHORTCUT_RELU : RELU;
}

/* y, through a ReLU if `relu`, with the shortcut added before if there is one; mean and 1 / deviation (K, C) of the
   blocks; mean and variance (C,) of the batch. `work` has 2 (n + K) C numbers. */
EXPORT void equipoise_block_forward(Count n, Count channels, Count positions, Count columns, Count size, Count blocks,
                                    Count groups, double eps, Count threads, Count relu, const float *x,
                                    const float *shortcut, const float *weight, const float *bias, float *y,
                                    float *mean, float *rstd, float *batch_mean, float *batch_var, float *work) {
    Shape s = shape_of(n, channels, positions, columns, LARGE_TRAINED);
    Job j = {.shape = s, .after = after_of(relu, shortcut), .n = n, .size = size, .blocks = blocks, .groups = groups};
    j.eps = (float)eps, j.x = x, j.shortcut = shortcut, j.weight = weight, j.bias = bias, j.y = y;
    j.mean = mean, j.rstd = rstd;
    j.means = work, j.vars = j.means + n * channels;
    j.scale = j.vars + n * channels, j.shift = j.scale + blocks * channels;
    run(&j, threads, measure_moments, close_moments_of_block, apply_affine);
    merge(n, channels, j.means, j.vars, batch_mean, batch_var);
}

static Gate gate_of(const Job *j, Count i) {
    Count channels = j->shape.channels, at = i * channels * j->shape.positions, of_block = block_of(j, i) * channels;
    Gate gate = {.from = j->x + at, .scale = j->scale + of_block, .shift = j->shift + of_block};
    if (j->after == SHORTCUT_RELU) gate.from = j->y + at, gate.behind = j->behind + at;
    return gate;
}

static void measure_sums(const Job *j, Count i) {
    Count channels = j->shape.channels, at = i * channels * j->shape.positions;
    sums(j->shape, j->after, gate_of(j, i), j->dy + at, j->x + at, j->mean + block_of(j, i) * channels,
         j->dots + i * channels, j->totals + i * channels);
}

/* Sums over n examples, (n, C) -> (C,). */
static void add_examples(Count n, Count channels, const float *values, float *sum) {
    for (Count first = 0; first < channels; first += PANEL) {
        double total[PANEL] = {0};
        Count panel = least(PANEL, channels - first);
        for (Count i = 0; i < n; i++)
            for (Count c = 0; c < panel; c++) total[c] += values[i * channels + first + c];
        for (Count c = 0; c < panel; c++) sum[first + c] = (float)total[c];
    }
}

/* Sums of channels -> those of the group they belong to, in place. */
static void add_channels(Count channels, Count groups, float *sum) {
    Count width = channels / groups;
    for (Count g = 0; width > 1 && g < groups; g++, sum += width) {
        float total = 0;
        for (Count c = 0; c < width; c++) total += sum[c];
        for (Count c = 0; c < width; c++) sum[c] = total;
    }
}

/* dx = rstd (gamma dy - mean(gamma dy) - xhat mean(gamma dy xhat)), the means over the block and channel group, is
   of_dy dy + of_x x + rest. */
static void close_sums_of_block(const Job *j, Count k) {
    Count channels = j->shape.channels, first = start_of(j, k), n = start_of(j, k + 1) - first, at = k * channels;
    const float *mean = j->mean + at, *rstd = j->rstd + at;
    float *of_dy = j->of_dy + at, *of_x = j->of_x + at, *rest = j->rest + at;
    float share = 1.0f / (float)(n * j->shape.positions * (channels / j->groups));
    add_examples(n, channels, j->dots + first * channels, of_x);
    add_examples(n, channels, j->totals + first * channels, rest);
    memcpy(of_dy, rstd, (size_t)channels * sizeof(float));
    for (Count c = 0; j->weight && c < channels; c++) {
        of_dy[c] *= j->weight[c];
        of_x[c] *= j->weight[c];
        rest[c] *= j->weight[c];
    }
    add_channels(channels, j->groups, of_x);
    add_channels(channels, j->groups, rest);
    for (Count c = 0; c < channels; c++) {
        of_x[c] *= -share * rstd[c] * rstd[c] * rstd[c];
        rest[c] = -share * rstd[c] * rest[c] - of_x[c] * mean[c];
    }
}

static void apply_gradient(const Job *j, Count i) {
    Count channels = j->shape.channels, at = i * channels * j->shape.positions, of_block = block_of(j, i) * channels;
    gradient(j->shape, j->after, gate_of(j, i), j->dy + at, j->x + at, j->of_dy + of_block, j->of_x + of_block,
             j->rest + of_block, j->dx + at);
}

/* The gradients of gamma and beta: sums over all examples of dy xhat and of dy. */
static void parameter_gradients(const Job *j, float *d_weight, float *d_bias) {
    Count channels = j->shape.channels;
    for (Count first = 0; first < channels; first += PANEL) {
        double dot[PANEL] = {0};
        Count panel = least(PANEL, channels - first);
        for (Count i = 0; i < j->n; i++) {
            const float *rstd = j->rstd + block_of(j, i) * channels + first, *dots = j->dots + i * channels + first;
            for (Count c = 0; c < panel; c++) dot[c] += (double)dots[c] * rstd[c];
        }
        for (Count c = 0; c < panel; c++) d_weight[first + c] = (float)dot[c];
    }
    add_examples(j->n, channels, j->totals, d_bias);
}

/* dx, and the gradients of gamma and beta; `behind` is that of the shortcut, where there was one: then, and only then,
   it and y are given. `work` has (2 n + 5 K) C numbers. */
EXPORT void equipoise_block_backward(Count n, Count channels, Count positions, Count columns, Count size, Count blocks,
                                     Count groups, Count threads, Count relu, const float *dy, const float *x, float *y,
                                     const float *weight, const float *bias, float *mean, float *rstd, float *dx,
                                     float *behind, float *d_weight, float *d_bias, float *work) {
    Shape s = shape_of(n, channels, positions, columns, LARGE_TRAINED);
    Job j = {.shape = s, .after = after_of(relu, y), .n = n, .size = size, .blocks = blocks, .groups = groups};
    j.dy = dy, j.x = x, j.y = y, j.weight = weight, j.bias = bias, j.mean = mean, j.rstd = rstd;
    j.dx = dx, j.behind = behind;
    j.dots = work, j.totals = j.dots + n * channels, j.of_dy = j.totals + n * channels;
    j.of_x = j.of_dy + blocks * channels, j.rest = j.of_x + blocks * channels;
    j.scale = j.rest + blocks * channels, j.shift = j.scale + blocks * channels;
    for (Count k = 0; j.after == RELU && k < blocks; k++) affine_of_block(&j, k);
    run(&j, threads, measure_sums, close_sums_of_block, apply_gradient);
    parameter_gradients(&j, d_weight, d_bias);
}

/* -- moving averages: mean m, square s and what rounding took from the variance s - m^2, r ------------------------- */

/* max(0, s - m^2 + r) */
EXPORT void equipoise_moving_variance(Count channels, const float *mean, const float *square, const float *rest,
                                      float *var) {
    for (Count c = 0; c < channels; c++) {
        double m = mean[c], v = square[c] - m * m + rest[c];
        var[c] = v < 0 ? 0 : (float)v; /* NaN stays */
    }
}

/* One step of m and s towards E[x] and E[x^2] of a batch; the variance moves by its own rule, which cancels nothing.
   `var`, if there is one, moves towards the unbiased variance of the batch, `unbiased` times the other. */
EXPORT void equipoise_update_moving(Count channels, const float *batch_mean, const float *batch_var, double rate,
                                    double unbiased, float *mean, float *square, float *rest, float *var) {
    for (Count c = 0; c < channels; c++) {
        double m = mean[c], v = square[c] - m * m + rest[c], step = batch_mean[c] - m;
        v = (1 - rate) * v + rate * batch_var[c] + rate * (1 - rate) * step * step;
        m += rate * step;
        mean[c] = (float)m;
        square[c] = (float)(v + m * m);
        double rounded = mean[c];
        rest[c] = (float)(v - square[c] + rounded * rounded);
    }
    for (Count c = 0; var && c < channels; c++) var[c] = (float)(var[c] + rate * (unbiased * batch_var[c] - var[c]));
}
