// AutoAugment's operations, and the shift and mirror after them, on images of bytes (N, channel, HEIGHT, WIDTH): a thread
// block takes one image into shared memory and does there what was drawn for it. Numbers are those of _operations.py,
// rounding by rounding: no product is fused with a sum.

typedef unsigned char u8;

enum Operation {  // in the order of OPERATIONS
    NONE = -1, SHEAR_X, SHEAR_Y, TRANSLATE_X, TRANSLATE_Y, ROTATE,
    AUTO_CONTRAST, INVERT, EQUALIZE, SOLARIZE, POSTERIZE, CONTRAST, COLOR, BRIGHTNESS, SHARPNESS
};
enum { LEVELS = 256, FILL = 128 };

#define INLINE __device__ __forceinline__

INLINE float plus(float a, float b) { return __fadd_rn(a, b); }
INLINE float minus(float a, float b) { return __fsub_rn(a, b); }
INLINE float times(float a, float b) { return __fmul_rn(a, b); }
INLINE float over(float a, float b) { return __fdiv_rn(a, b); }
INLINE u8 byte_of(float x) { return (u8)fminf(fmaxf(x, 0.f), 255.f); }

template <int CHANNELS> INLINE int grey_of(const u8 *image, int pixel, int pixels) {
    if (CHANNELS == 1) return image[pixel];
    return (19595 * image[pixel] + 38470 * image[pixel + pixels] + 7471 * image[pixel + 2 * pixels] + 32768) >> 16;
}

// Σ over the threads of a block, a power of two of them
INLINE int sum_of_all(int value, int *scratch) {
    scratch[threadIdx.x] = value;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) scratch[threadIdx.x] += scratch[threadIdx.x + half];
        __syncthreads();
    }
    return scratch[0];
}

// ShearX, ShearY, TranslateX, TranslateY and Rotate, reading the nearest pixel
template <int CHANNELS, int HEIGHT, int WIDTH> INLINE void warp(const u8 *image, u8 *out, int operation, float strength) {
    constexpr int PIXELS = HEIGHT * WIDTH;
    const float angle = operation == ROTATE ? times(strength, 0.017453292519943295f) : 0.f;
    const float sine = sinf(angle), cosine = cosf(angle);
    const float shear_x = operation == SHEAR_X ? strength : 0.f, shear_y = operation == SHEAR_Y ? strength : 0.f;
    const float shift_x = operation == TRANSLATE_X ? strength : 0.f, shift_y = operation == TRANSLATE_Y ? strength : 0.f;
    for (int pixel = threadIdx.x; pixel < PIXELS; pixel += blockDim.x) {
        const float x = pixel % WIDTH + 0.5f, y = pixel / WIDTH + 0.5f, u = x - WIDTH / 2.f, v = y - HEIGHT / 2.f;
        const float turned_x = plus(minus(times(cosine, u), times(sine, v)), WIDTH / 2.f);
        const float turned_y = plus(plus(times(sine, u), times(cosine, v)), HEIGHT / 2.f);
        const float column = floorf(plus(plus(turned_x, times(shear_x, y)), times(shift_x, WIDTH)));
        const float row = floorf(plus(plus(turned_y, times(shear_y, x)), times(shift_y, HEIGHT)));
        const bool inside = column >= 0 && column < WIDTH && row >= 0 && row < HEIGHT;
        const int source = inside ? (int)row * WIDTH + (int)column : 0;
        for (int c = 0; c < CHANNELS; c++) out[c * PIXELS + pixel] = inside ? image[c * PIXELS + source] : FILL;
    }
}

// What each grey level of one channel becomes: AutoContrast
INLINE float stretched(int level, int low, int high) {
    return high > low ? over(times(255.f, level - low), high - low) : level;
}

// Equalize; `up_to`: pixels of this level and darker
INLINE float equalized(int level, int up_to, int count, int below_lightest) {
    const int step = below_lightest / 255;
    return step > 0 ? over(plus(up_to - count, step / 2.f), step) : level;
}

// Solarize, Posterize, Contrast, Brightness, Invert
INLINE float changed(int operation, int level, float strength, float mean) {
    if (operation == INVERT) return 255 - level;
    if (operation == SOLARIZE) return level < strength ? level : 255 - level;
    if (operation == POSTERIZE) {
        const int dropped = (int)fminf(fmaxf(8.f - strength, 0.f), 8.f);
        return level >> dropped << dropped;
    }
    if (operation == CONTRAST) return plus(mean, times(strength, minus(level, mean)));
    return times(strength, level);  // BRIGHTNESS
}

// Those that look a grey level up; a thread makes one level's entry of the table
template <int CHANNELS, int PIXELS> INLINE void look_up(u8 *image, int operation, float strength, int *scratch) {
    __shared__ int count[LEVELS], up_to[LEVELS];
    __shared__ u8 table[LEVELS];
    const int level = threadIdx.x;
    float mean = 0.f;
    if (operation == CONTRAST) {
        int sum = 0;
        for (int pixel = threadIdx.x; pixel < PIXELS; pixel += blockDim.x) sum += grey_of<CHANNELS>(image, pixel, PIXELS);
        mean = floorf(plus(over(sum_of_all(sum, scratch), PIXELS), 0.5f));
    }
    const bool counts = operation == AUTO_CONTRAST || operation == EQUALIZE;
    for (int c = 0; c < CHANNELS; c++) {
        u8 *channel = image + c * PIXELS;
        float value;
        if (counts) {
            count[level] = 0;
            __syncthreads();
            for (int pixel = threadIdx.x; pixel < PIXELS; pixel += blockDim.x) atomicAdd(&count[channel[pixel]], 1);
            __syncthreads();
            up_to[level] = count[level];
            __syncthreads();
            for (int reach = 1; reach < LEVELS; reach *= 2) {
                const int darker = level >= reach ? up_to[level - reach] : 0;
                __syncthreads();
                up_to[level] += darker;
                __syncthreads();
            }
            // where the counts begin and end: each is seen by one level alone
            if (count[level] && up_to[level] == count[level]) scratch[0] = level;
            if (count[level] && up_to[level] == PIXELS) scratch[1] = level;
            __syncthreads();
            const int low = scratch[0], high = scratch[1];
            value = operation == AUTO_CONTRAST ? stretched(level, low, high)
                                               : equalized(level, up_to[level], count[level], PIXELS - count[high]);
        } else {
            value = changed(operation, level, strength, mean);
        }
        table[level] = byte_of(value);
        __syncthreads();
        for (int pixel = threadIdx.x; pixel < PIXELS; pixel += blockDim.x) channel[pixel] = table[channel[pixel]];
        __syncthreads();
    }
}

// Color and Sharpness: away from the grey image, or from the smooth one, for strengths above 1; towards it below
template <int CHANNELS, int HEIGHT, int WIDTH> INLINE void blend(const u8 *image, u8 *out, int operation, float strength) {
    constexpr int PIXELS = HEIGHT * WIDTH;
    for (int pixel = threadIdx.x; pixel < PIXELS; pixel += blockDim.x) {
        const int row = pixel / WIDTH, column = pixel % WIDTH;
        const bool inner = row > 0 && row < HEIGHT - 1 && column > 0 && column < WIDTH - 1;
        for (int c = 0; c < CHANNELS; c++) {
            const u8 *p = image + c * PIXELS + pixel;
            float base = *p;
            if (operation == COLOR) {
                base = grey_of<CHANNELS>(image, pixel, PIXELS);
            } else if (inner) {
                int around = 4 * *p;
                for (int i = -1; i <= 1; i++)
                    for (int j = -1; j <= 1; j++) around += p[i * WIDTH + j];
                base = rintf(over(around, 13.f));
            }
            out[c * PIXELS + pixel] = byte_of(plus(base, times(strength, minus(*p, base))));
        }
    }
}

// `operation` and `strength` (N, 2); `corner` (2, N) and `mirrored` (N), which may be absent, as `draw_moves` has them.
template <int CHANNELS, int HEIGHT, int WIDTH>
__global__ void __launch_bounds__(LEVELS)
operate_and_move(const u8 *images, const long long *operation, const float *strength, const long long *corner,
                 const bool *mirrored, u8 *out, int pad, int count) {
    constexpr int PIXELS = HEIGHT * WIDTH, SIZE = CHANNELS * PIXELS;
    __shared__ u8 first[SIZE], second[SIZE];
    __shared__ int scratch[LEVELS];
    const int number = blockIdx.x;
    u8 *image = first, *spare = second;
    for (int i = threadIdx.x; i < SIZE; i += blockDim.x) image[i] = images[(size_t)number * SIZE + i];
    __syncthreads();
    for (int slot = 0; slot < 2; slot++) {
        const int what = (int)operation[number * 2 + slot];
        const float amount = strength[number * 2 + slot];
        if (what == NONE) continue;
        if (what > ROTATE && what != COLOR && what != SHARPNESS) {
            look_up<CHANNELS, PIXELS>(image, what, amount, scratch);
            continue;
        }
        if (what <= ROTATE) warp<CHANNELS, HEIGHT, WIDTH>(image, spare, what, amount);
        else blend<CHANNELS, HEIGHT, WIDTH>(image, spare, what, amount);
        __syncthreads();
        u8 *changed_image = spare;
        spare = image;
        image = changed_image;
    }
    const int top = (int)corner[number] - pad, left = (int)corner[count + number] - pad;
    const bool turn = mirrored && mirrored[number];
    for (int i = threadIdx.x; i < SIZE; i += blockDim.x) {
        const int column = i % WIDTH, y = i % PIXELS / WIDTH + top, x = (turn ? WIDTH - 1 - column : column) + left;
        const bool inside = y >= 0 && y < HEIGHT && x >= 0 && x < WIDTH;
        out[(size_t)number * SIZE + i] = inside ? image[i / PIXELS * PIXELS + y * WIDTH + x] : 0;
    }
}
