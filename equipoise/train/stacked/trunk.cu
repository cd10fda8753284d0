// The body of a CIFAR ResNet, forward and backward, for all runs of a pack at once.
//
// Maps are bf16, (run, image, row, column, channel). A map is stored as its convolution leaves it; the norm and the ReLU
// that follow are applied by whoever loads it, and so are their derivatives on the way back. Sums for the norms are
// taken where values are made: each warp makes 64 pixels of one image, a unit, and each thread block writes the sums of
// its units. They are added in a fixed order that knows nothing of other runs.

typedef unsigned int u32;
typedef unsigned short u16;

enum Load { AS_IT_IS, NORMALIZED, GRADIENT, IMAGE };  // how a map is read, see `Source`
enum Store { WITH_MOMENTS, THROUGH_RELU, TO_BLOCK_BEFORE, TO_MAP };  // what happens to what a convolution has made
enum { UNIT = 64, IMAGE_CHANNELS = 4 };

#define INLINE __device__ __forceinline__

INLINE float low(u32 pair) { return __uint_as_float(pair << 16); }
INLINE float high(u32 pair) { return __uint_as_float(pair & 0xffff0000u); }
INLINE u32 pair_of(float first, float second) {
    u32 pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    return pair;
}

INLINE u32 positive_pair_of(float first, float second) {
    u32 pair;
    asm("cvt.rn.relu.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    return pair;
}

// First in every kernel, before it touches memory: the kernel before it may still run. Then the next may be set up.
INLINE void wait_for_kernel_before() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

INLINE u32 shared_address(const void *p) { return (u32)__cvta_generic_to_shared(p); }

// four 8 × 8 matrices of bf16; each lane gives the address of one row
INLINE void load_matrices(u32 (&out)[4], u32 address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3]) : "r"(address));
}
INLINE void load_transposed(u32 (&out)[4], u32 address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3]) : "r"(address));
}
INLINE void multiply_add(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// ---- reading maps ---------------------------------------------------------------------------------------------------

// A map and how to read it:
//   AS_IT_IS    x
//   NORMALIZED  relu(s x + t), `factors` (run, block, channel, 2) being s and t
//   GRADIENT    a x + b y + c, where x is the gradient behind a norm, y what the norm was given,
//               and `factors` (run, block, channel, 4) are a, b, c: the norm's derivative
//   IMAGE       x of up to four channels, the rest 0
struct Source {
    const u16 *x, *y;
    const float *factors;
};

// Examples of a norm's block share their statistics: `size[run]` consecutive ones do, and there are at most `most`
// blocks in a run.
struct Blocks {
    const int *size;
    int most;
};

template <int MODE, int OF> struct Reader {
    float f[MODE == GRADIENT ? 24 : MODE == NORMALIZED ? 16 : 1];

    INLINE void start(const Source &source, const Blocks &blocks, int run, int image, int channel) {
        if (MODE != NORMALIZED && MODE != GRADIENT) return;
        const int row = run * blocks.most + image / blocks.size[run];
        if (MODE == NORMALIZED) {
            const float4 *p = (const float4 *)(source.factors + (size_t)(row * OF + channel) * 2);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const float4 v = p[i];
                f[4 * i] = v.x, f[4 * i + 1] = v.y, f[4 * i + 2] = v.z, f[4 * i + 3] = v.w;
            }
        } else {
            const float4 *p = (const float4 *)(source.factors + (size_t)(row * OF + channel) * 4);
#pragma unroll
            for (int i = 0; i < 8; i++) {
                const float4 v = p[i];
                f[3 * i] = v.x, f[3 * i + 1] = v.y, f[3 * i + 2] = v.z;
            }
        }
    }

    INLINE float value(float x, float y, int i) const {
        if (MODE == NORMALIZED) return fmaf(f[2 * i], x, f[2 * i + 1]);
        if (MODE == GRADIENT) return fmaf(f[3 * i], x, fmaf(f[3 * i + 1], y, f[3 * i + 2]));
        return x;
    }

    INLINE u32 two(u32 x, u32 y, int i) const {
        const float first = value(low(x), low(y), i), second = value(high(x), high(y), i + 1);
        return MODE == NORMALIZED ? positive_pair_of(first, second) : pair_of(first, second);
    }

    // eight channels of a pixel
    INLINE uint4 operator()(uint4 x, uint4 y) const {
        if (MODE == AS_IT_IS || MODE == IMAGE) return x;
        return make_uint4(two(x.x, y.x, 0), two(x.y, y.y, 2), two(x.z, y.z, 4), two(x.w, y.w, 6));
    }
};

// A part of an image in shared memory, ROWS × COLUMNS pixels from (`top`, `left`) on, 0 outside of the image.
// SPREAD 2 puts zeros between the pixels: what a convolution with stride 2 is run backward on.
// Of the map's OF channels, C from `first_channel` on. A pixel takes C + 8 places: eight neighbours lie in other banks.
template <int MODE, int C, int OF, int SIDE, int SPREAD, int ROWS, int COLUMNS, int THREADS>
INLINE void load_part(u16 *part, const Source &source, const Blocks &blocks, int run, int image, int images, int top,
                      int left, int first_channel = 0) {
    constexpr int CHUNKS = C / 8, STEP = THREADS / CHUNKS, STORED = SIDE / SPREAD;
    static_assert(THREADS % CHUNKS == 0, "each thread keeps to its channels");
    const int channel = threadIdx.x % CHUNKS * 8;
    const bool there = image < images;
    Reader<MODE, OF> reader;
    if (there) reader.start(source, blocks, run, image, first_channel + channel);
    const size_t first = (size_t)(run * images + image) * STORED * STORED;
    constexpr int TURNS = (ROWS * COLUMNS + STEP - 1) / STEP;
    constexpr int AT_ONCE = MODE == GRADIENT ? 4 : 6;  // loads under way before the first of them is waited for
#pragma unroll
    for (int turn = 0; turn < TURNS; turn += AT_ONCE) {
        uint4 x[AT_ONCE], y[AT_ONCE];
        bool inside[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            const int p = threadIdx.x / CHUNKS + (turn + i) * STEP;
            const int row = p / COLUMNS + top, column = p % COLUMNS + left;
            inside[i] = there && p < ROWS * COLUMNS && row >= 0 && row < SIDE && column >= 0 && column < SIDE;
            if (SPREAD == 2) inside[i] = inside[i] && ((row | column) & 1) == 0;
            x[i] = y[i] = make_uint4(0, 0, 0, 0);
            const size_t pixel = first + (row / SPREAD) * STORED + column / SPREAD;
            if (MODE == IMAGE) {
                if (inside[i] && channel == 0) {
                    const uint2 half = __ldg((const uint2 *)(source.x + pixel * IMAGE_CHANNELS));
                    x[i].x = half.x, x[i].y = half.y;
                }
            } else if (inside[i]) {
                x[i] = __ldg((const uint4 *)(source.x + pixel * OF + first_channel + channel));
                if (MODE == GRADIENT) y[i] = __ldg((const uint4 *)(source.y + pixel * OF + first_channel + channel));
            }
        }
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            const int p = threadIdx.x / CHUNKS + (turn + i) * STEP;
            if (turn + i < TURNS && p < ROWS * COLUMNS)
                *(uint4 *)(part + p * (C + 8) + channel) = inside[i] ? reader(x[i], y[i]) : make_uint4(0, 0, 0, 0);
        }
    }
}

// ---- convolution ----------------------------------------------------------------------------------------------------

// What a convolution's values are stored as, and which sums are stored in `sums` (run, thread block, channel, 2):
//   WITH_MOMENTS     v;                                             v - shift and its square
//   THROUGH_RELU     g = v where the norm of `behind` was above 0;  g and g (behind - shift)
//   TO_BLOCK_BEFORE  g = v + the shortcut's gradient where `map`, the block's input, is above 0;  g and g (behind - shift)
//   TO_MAP           v + the shortcut's gradient;                   nothing
// `shift` (run, channel) is near the mean, so that little is lost in the differences.
struct Target {
    u16 *out;
    float *sums;
    const float *shift;
    const u16 *behind;
    const float *factors;   // of the norm of `behind`: s and t
    const u16 *map, *shortcut;
};

// WARPS of a thread block have a unit each, all of one image; SHARE warps share the channels of each unit.
template <int CI, int SIDE, int STRIDE, int WARPS, int SHARE> struct Geometry {
    static constexpr int THREADS = 32 * WARPS * SHARE;
    static constexpr int ROWS = UNIT / SIDE * WARPS;       // of the output
    static constexpr int PARTS = SIDE / ROWS;              // thread blocks for an image
    static constexpr int IN_SIDE = SIDE * STRIDE;
    static constexpr int IN_ROWS = (ROWS - 1) * STRIDE + 3, IN_COLUMNS = (SIDE - 1) * STRIDE + 3;
};

// A lane has two channels of the pixels q with q % 8 = lane / 4. Whoever adds up a gradient does it in this order, so
// that it comes to the same whichever kernel did it.
INLINE void add_gradient(float (&sum)[4], u32 g, u32 y, float2 shift) {
    sum[0] += low(g), sum[1] = fmaf(low(g), low(y) - shift.x, sum[1]);
    sum[2] += high(g), sum[3] = fmaf(high(g), high(y) - shift.y, sum[3]);
}
INLINE void store_sums(float (&sum)[4], float *of_unit) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
        sum[i] += __shfl_xor_sync(~0u, sum[i], 4);
        sum[i] += __shfl_xor_sync(~0u, sum[i], 8);
        sum[i] += __shfl_xor_sync(~0u, sum[i], 16);
    }
    if (threadIdx.x % 32 < 4) *(float4 *)of_unit = make_float4(sum[0], sum[1], sum[2], sum[3]);
}
template <int C, int WARPS> INLINE void add_units(const float (&of_units)[WARPS][C * 2], float *sums) {
    __syncthreads();
    for (int i = threadIdx.x; i < C * 2; i += blockDim.x) {
        float sum = 0.f;
#pragma unroll
        for (int u = 0; u < WARPS; u++) sum += of_units[u][i];
        sums[((size_t)blockIdx.y * gridDim.x + blockIdx.x) * C * 2 + i] = sum;
    }
}

template <int STORE, int CO, int WIDE, int SIDE, int SHORTCUT_CHANNELS>
INLINE void store_unit(const float (&v)[4][WIDE / 8][4], const Target &target, const Blocks &blocks, int run, int image,
                       int images, int unit, int first_channel, float *sums) {
    const int lane = threadIdx.x % 32;
    const size_t first = (size_t)(run * images + image) * SIDE * SIDE + unit * UNIT;
    const int block = run * blocks.most + (STORE == THROUGH_RELU ? image / blocks.size[run] : 0);
#pragma unroll
    for (int n = 0; n < WIDE / 8; n++) {
        const int channel = first_channel + n * 8 + lane % 4 * 2;
        float sum[4] = {0.f, 0.f, 0.f, 0.f};
        float2 shift = make_float2(0.f, 0.f);
        float4 factors = make_float4(0.f, 0.f, 0.f, 0.f);
        if (STORE != TO_MAP) shift = *(const float2 *)(target.shift + run * CO + channel);
        if (STORE == THROUGH_RELU) factors = *(const float4 *)(target.factors + (size_t)(block * CO + channel) * 2);
#pragma unroll
        for (int m = 0; m < 4; m++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int q = m * 16 + half * 8 + lane / 4;
                const size_t at = (first + q) * CO + channel;
                float a = v[m][n][2 * half], b = v[m][n][2 * half + 1];
                if (STORE == TO_BLOCK_BEFORE || STORE == TO_MAP) {
                    u32 s = 0;
                    if (SHORTCUT_CHANNELS == CO) {
                        s = __ldg((const u32 *)(target.shortcut + at));
                    } else {  // the shortcut took every second position and put its channels in the middle
                        const int p = unit * UNIT + q, row = p / SIDE, column = p % SIDE;
                        if (((row | column) & 1) == 0) {
                            const size_t small = ((size_t)(run * images + image) * (SIDE / 2) + row / 2) * (SIDE / 2) + column / 2;
                            s = __ldg((const u32 *)(target.shortcut + small * SHORTCUT_CHANNELS + (SHORTCUT_CHANNELS - CO) / 2 + channel));
                        }
                    }
                    a += low(s), b += high(s);
                }
                u32 y = 0;
                if (STORE == THROUGH_RELU || STORE == TO_BLOCK_BEFORE) y = __ldg((const u32 *)(target.behind + at));
                if (STORE == THROUGH_RELU) {
                    if (!(fmaf(factors.x, low(y), factors.y) > 0.f)) a = 0.f;
                    if (!(fmaf(factors.z, high(y), factors.w) > 0.f)) b = 0.f;
                }
                if (STORE == TO_BLOCK_BEFORE) {
                    const u32 x = __ldg((const u32 *)(target.map + at));
                    if (!(low(x) > 0.f)) a = 0.f;
                    if (!(high(x) > 0.f)) b = 0.f;
                }
                const u32 rounded = pair_of(a, b);
                *(u32 *)(target.out + at) = rounded;
                if (STORE == WITH_MOMENTS) {
                    a = low(rounded) - shift.x, b = high(rounded) - shift.y;
                    sum[0] += a, sum[1] = fmaf(a, a, sum[1]), sum[2] += b, sum[3] = fmaf(b, b, sum[3]);
                } else if (STORE != TO_MAP) {
                    add_gradient(sum, rounded, y, shift);
                }
            }
        if (STORE != TO_MAP) store_sums(sum, sums + channel * 2);
    }
}

// 3 × 3, `weights` (run, 9, CI / 16, CO / 8, lane, 4) in the order in which lanes want them.
template <int MODE, int STORE, int CI, int CO, int SIDE, int STRIDE, int SPREAD, int SHORTCUT_CHANNELS, int WARPS, int SHARE, int RESIDENT>
__global__ void __launch_bounds__(32 * WARPS * SHARE, RESIDENT)
convolution(Source source, Target target, const u16 *weights, Blocks blocks, int images) {
    wait_for_kernel_before();
    using G = Geometry<CI, SIDE, STRIDE, WARPS, SHARE>;
    constexpr int WIDE = CO / SHARE;
    __shared__ __align__(16) u16 part[G::IN_ROWS * G::IN_COLUMNS * (CI + 8)];
    __shared__ __align__(16) float sums_of_units[WARPS][CO * 2];
    const int run = blockIdx.y, unit = threadIdx.x / 32 / SHARE, lane = threadIdx.x % 32;
    const int first_channel = threadIdx.x / 32 % SHARE * WIDE;
    const int image = blockIdx.x / G::PARTS, first_row = blockIdx.x % G::PARTS * G::ROWS;
    load_part<MODE, CI, CI, G::IN_SIDE, SPREAD, G::IN_ROWS, G::IN_COLUMNS, G::THREADS>(
        part, source, blocks, run, image, images, first_row * STRIDE - 1, -1);
    __syncthreads();

    u32 address[4];
#pragma unroll
    for (int m = 0; m < 4; m++) {
        const int q = unit * UNIT + m * 16 + lane % 16;
        const int pixel = (q / SIDE * STRIDE) * G::IN_COLUMNS + q % SIDE * STRIDE;
        address[m] = shared_address(part + pixel * (CI + 8) + lane / 16 * 8);
    }
    float sums[4][WIDE / 8][4];
#pragma unroll
    for (int m = 0; m < 4; m++)
#pragma unroll
        for (int n = 0; n < WIDE / 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) sums[m][n][i] = 0.f;

    const uint2 *fragment = (const uint2 *)weights + (size_t)run * 9 * (CI / 16) * (CO / 8) * 32 + first_channel / 8 * 32 + lane;
#pragma unroll 1
    for (int row = 0; row < 3; row++)
#pragma unroll
        for (int column = 0; column < 3; column++)
#pragma unroll
            for (int k = 0; k < CI / 16; k++) {
                uint2 b[WIDE / 8];
#pragma unroll
                for (int n = 0; n < WIDE / 8; n++)
                    b[n] = __ldg(fragment + (((row * 3 + column) * (CI / 16) + k) * (CO / 8) + n) * 32);
                const u32 offset = ((row * G::IN_COLUMNS + column) * (CI + 8) + k * 16) * 2;
#pragma unroll
                for (int m = 0; m < 4; m++) {
                    u32 a[4];
                    load_matrices(a, address[m] + offset);
#pragma unroll
                    for (int n = 0; n < WIDE / 8; n++) multiply_add(sums[m][n], a, b[n].x, b[n].y);
                }
            }

    store_unit<STORE, CO, WIDE, SIDE, SHORTCUT_CHANNELS>(sums, target, blocks, run, image, images,
                                                         first_row * SIDE / UNIT + unit, first_channel,
                                                         sums_of_units[unit]);
    if (STORE != TO_MAP) add_units<CO, WARPS>(sums_of_units, target.sums);
}

// ---- gradients of weights -------------------------------------------------------------------------------------------

// Σ over pixels of the output's gradient (GRADIENT of `behind`) times the input at each of nine offsets. A thread block
// takes every `gridDim.x`th part of the images, ROWS rows each; `out` (run, thread block, OF, 3, 3, CI) is added up by
// `add_parts`. It has CO of the output's OF channels, a warp 16 of them, WIDE of the input's, and a row of three offsets.
template <int CI, int CO, int WIDE> struct Warps {
    static constexpr int OF_CO = CO / 16, OF_CI = CI / WIDE, NUMBER = OF_CO * OF_CI * 3;
};

template <int MODE, int CI, int CO, int OF, int SIDE, int STRIDE, int ROWS, int WIDE, int RESIDENT>
__global__ void __launch_bounds__(Warps<CI, CO, WIDE>::NUMBER * 32, RESIDENT)
weight_gradient(Source source, Source behind, float *out, Blocks blocks, int images) {
    wait_for_kernel_before();
    using W = Warps<CI, CO, WIDE>;
    constexpr int THREADS = W::NUMBER * 32, PARTS = SIDE / ROWS;
    constexpr int IN_ROWS = (ROWS - 1) * STRIDE + 3, IN_COLUMNS = (SIDE - 1) * STRIDE + 3;
    __shared__ __align__(16) u16 inputs[IN_ROWS * IN_COLUMNS * (CI + 8)];
    __shared__ __align__(16) u16 gradients[ROWS * SIDE * (CO + 8)];
    const int run = blockIdx.y, warp = threadIdx.x / 32, lane = threadIdx.x % 32, first_channel = blockIdx.z * CO;
    const int co = warp % W::OF_CO * 16, ci = warp / W::OF_CO % W::OF_CI * WIDE, offset = warp / (W::OF_CO * W::OF_CI);
    float sums[3][WIDE / 8][4];
#pragma unroll
    for (int t = 0; t < 3; t++)
#pragma unroll
        for (int n = 0; n < WIDE / 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) sums[t][n][i] = 0.f;

    for (int part = blockIdx.x; part < images * PARTS; part += gridDim.x) {
        const int image = part / PARTS, top = part % PARTS * ROWS;
        load_part<MODE, CI, CI, SIDE * STRIDE, 1, IN_ROWS, IN_COLUMNS, THREADS>(inputs, source, blocks, run, image, images,
                                                                                top * STRIDE - 1, -1);
        load_part<GRADIENT, CO, OF, SIDE, 1, ROWS, SIDE, THREADS>(gradients, behind, blocks, run, image, images, top, 0,
                                                                  first_channel);
        __syncthreads();
#pragma unroll 2
        for (int step = 0; step < ROWS * SIDE / 16; step++) {
            u32 a[4];
            const int of_output = step * 16 + lane / 16 * 8 + lane % 8;
            load_transposed(a, shared_address(gradients + of_output * (CO + 8) + co + lane / 8 % 2 * 8));
            const int q = step * 16 + lane / 8 % 2 * 8 + lane % 8;
            const int pixel = (q / SIDE * STRIDE + offset) * IN_COLUMNS + q % SIDE * STRIDE;
            const u32 address = shared_address(inputs + pixel * (CI + 8) + ci + lane / 16 * 8);
#pragma unroll
            for (int t = 0; t < 3; t++)
#pragma unroll
                for (int k = 0; k < WIDE / 16; k++) {
                    u32 b[4];
                    load_transposed(b, address + (t * (CI + 8) + k * 16) * 2);
                    multiply_add(sums[t][2 * k], a, b[0], b[1]);
                    multiply_add(sums[t][2 * k + 1], a, b[2], b[3]);
                }
        }
        __syncthreads();
    }

    float *total = out + (size_t)(run * gridDim.x + blockIdx.x) * OF * 9 * CI;
#pragma unroll
    for (int t = 0; t < 3; t++)
#pragma unroll
        for (int n = 0; n < WIDE / 8; n++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int row = (first_channel + co + lane / 4 + half * 8) * 9 + offset * 3 + t;
                *(float2 *)(total + row * CI + ci + n * 8 + lane % 4 * 2) =
                    make_float2(sums[t][n][2 * half], sums[t][n][2 * half + 1]);
            }
}

// Σ over thread blocks of `parts` (run, count, CO, 9, CI), into `out` (run, …) from `offset` on, whose rows are `row`
// long; of each CI channels the first `kept`.
extern "C" __global__ void add_parts(const float *parts, float *out, int count, int size, int channels, int kept,
                                     long long row, long long offset) {
    wait_for_kernel_before();
    const int i = blockIdx.x * blockDim.x + threadIdx.x, run = blockIdx.y;
    if (i >= size) return;
    float sum = 0.f;
#pragma unroll 8
    for (int part = 0; part < count; part++) sum += parts[(size_t)(run * count + part) * size + i];
    if (i % channels < kept) out[run * row + offset + i / channels * kept + i % channels] = sum;
}

// ---- maps between blocks --------------------------------------------------------------------------------------------

// relu(s y + t + shortcut), eight channels a thread; SHORTCUT is its number of channels: C, half of C or 0 (none)
template <int C, int SIDE, int SHORTCUT>
__global__ void block_end(Source source, const u16 *shortcut, u16 *out, Blocks blocks, int images) {
    wait_for_kernel_before();
    const int run = blockIdx.y, at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= images * SIDE * SIDE * (C / 8)) return;
    const int channel = at % (C / 8) * 8, pixel = at / (C / 8), image = pixel / (SIDE * SIDE);
    const size_t here = (size_t)(run * images * SIDE * SIDE + pixel) * C + channel;
    const float4 *factors = (const float4 *)(source.factors + (size_t)((run * blocks.most + image / blocks.size[run]) * C + channel) * 2);
    const uint4 y = *(const uint4 *)(source.x + here);
    uint4 s = make_uint4(0, 0, 0, 0);
    if (SHORTCUT == C) {
        s = *(const uint4 *)(shortcut + here);
    } else if (SHORTCUT) {
        const int before = (C - SHORTCUT) / 2, q = pixel % (SIDE * SIDE), row = q / SIDE * 2, column = q % SIDE * 2;
        if (channel >= before && channel < before + SHORTCUT)
            s = *(const uint4 *)(shortcut + (((size_t)(run * images + image) * (2 * SIDE) + row) * (2 * SIDE) + column) * SHORTCUT + channel - before);
    }
    uint4 z;
    const u32 *ys = &y.x, *ss = &s.x;
    u32 *zs = &z.x;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float4 f = factors[i];
        zs[i] = pair_of(fmaxf(fmaf(f.x, low(ys[i]), f.y) + low(ss[i]), 0.f), fmaxf(fmaf(f.z, high(ys[i]), f.w) + high(ss[i]), 0.f));
    }
    *(uint4 *)(out + here) = z;
}

// The means of maps over their pixels, (run, image, C); a thread makes two channels of an image.
template <int C, int SIDE>
__global__ void pool(const u16 *map, u16 *out, int images) {
    wait_for_kernel_before();
    const int at = blockIdx.x * blockDim.x + threadIdx.x, channel = at % (C / 2) * 2;
    if (at >= images * (C / 2)) return;
    const size_t image = (size_t)blockIdx.y * images + at / (C / 2);
    float first = 0.f, second = 0.f;
#pragma unroll 16
    for (int q = 0; q < SIDE * SIDE; q++) {
        const u32 z = __ldg((const u32 *)(map + (image * SIDE * SIDE + q) * C + channel));
        first += low(z), second += high(z);
    }
    *(u32 *)(out + image * C + channel) = pair_of(first / (SIDE * SIDE), second / (SIDE * SIDE));
}

// The gradient of a block's output through its ReLU, and the sums for its last norm: what TO_BLOCK_BEFORE does at once.
// POOLED: `gradient` (run, image, C) is that of the means over pixels.
template <int C, int SIDE, int WARPS, bool POOLED>
__global__ void gradient_of_end(const u16 *gradient, const u16 *map, const u16 *behind, const float *shift, u16 *out,
                                float *sums) {
    wait_for_kernel_before();
    __shared__ __align__(16) float sums_of_units[WARPS][C * 2];
    const int run = blockIdx.y, lane = threadIdx.x % 32, unit = threadIdx.x / 32;
    const size_t first = (((size_t)run * gridDim.x + blockIdx.x) * WARPS + unit) * UNIT;
#pragma unroll
    for (int n = 0; n < C / 8; n++) {
        const int channel = n * 8 + lane % 4 * 2;
        const float2 s = *(const float2 *)(shift + run * C + channel);
        float sum[4] = {0.f, 0.f, 0.f, 0.f};
        u32 of_each = 0;
        if (POOLED) {
            const u32 of_mean = __ldg((const u32 *)(gradient + first / (SIDE * SIDE) * C + channel));
            of_each = pair_of(low(of_mean) / (SIDE * SIDE), high(of_mean) / (SIDE * SIDE));
        }
#pragma unroll
        for (int q = lane / 4; q < UNIT; q += 8) {
            const size_t at = (first + q) * C + channel;
            u32 g = POOLED ? of_each : __ldg((const u32 *)(gradient + at));
            const u32 z = __ldg((const u32 *)(map + at)), y = __ldg((const u32 *)(behind + at));
            if (!(low(z) > 0.f)) g &= 0xffff0000u;
            if (!(high(z) > 0.f)) g &= 0x0000ffffu;
            *(u32 *)(out + at) = g;
            add_gradient(sum, g, y, s);
        }
        store_sums(sum, sums_of_units[unit] + channel * 2);
    }
    add_units<C, WARPS>(sums_of_units, sums);
}

// ---- norms ----------------------------------------------------------------------------------------------------------

// Σ over the sums of a block of examples, for each channel: two sums in `total` (C, 2). A thread block does one.
template <int C> INLINE void add_sums(const float *sums, int first, int last, float *scratch, float *total) {
    constexpr int PAIRS = C / 2;
    const int rows = blockDim.x / PAIRS, pair = threadIdx.x % PAIRS, row = threadIdx.x / PAIRS;
    float4 sum = make_float4(0.f, 0.f, 0.f, 0.f);
#pragma unroll 8
    for (int i = first + row; i < last; i += rows) {
        const float4 v = __ldg((const float4 *)(sums + ((size_t)i * C + pair * 2) * 2));
        sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
    }
    float4 *all = (float4 *)scratch;
    all[threadIdx.x] = sum;
    __syncthreads();
    for (int half = rows / 2; half > 0; half /= 2) {
        if (row < half) {
            const float4 v = all[threadIdx.x + half * PAIRS];
            float4 &own = all[threadIdx.x];
            own.x += v.x, own.y += v.y, own.z += v.z, own.w += v.w;
        }
        __syncthreads();
    }
    if (row == 0) *(float4 *)(total + pair * 4) = all[threadIdx.x];
    __syncthreads();
}

// Of each run's norm: examples of a block, channels that share a statistic, ε.
struct Norms {
    Blocks blocks;
    const int *channels;
    const float *epsilon, *gamma, *beta;  // γ and β of a run lie `row` after those of the run before
    long long row;
};

// From the sums, `parts` of each image, to what readers of the map want. `factors` (run, block, C, 2): s and t. `statistics`
// (run, block, C, 4): mean and variance of the channel, mean and 1/σ that it is normalized by.
template <int C>
__global__ void norm_forward(const float *sums, const float *shift, Norms norms, float *factors, float *statistics,
                             int images, int pixels, int parts) {
    wait_for_kernel_before();
    __shared__ __align__(16) float scratch[4096];
    __shared__ __align__(16) float total[2 * C];
    const int run = blockIdx.y, size = norms.blocks.size[run], first = blockIdx.x * size;
    if (first >= images) return;
    const int last = min(first + size, images), c = threadIdx.x;
    add_sums<C>(sums + (size_t)run * images * parts * C * 2, first * parts, last * parts, scratch, total);
    const float count = (float)(last - first) * pixels;
    float mean = 0.f, var = 0.f;
    if (c < C) {
        const float step = total[2 * c] / count;
        mean = shift[run * C + c] + step;
        var = fmaxf(total[2 * c + 1] / count - step * step, 0.f);
        scratch[c] = mean, scratch[C + c] = var;
    }
    __syncthreads();
    if (c >= C) return;
    const int share = norms.channels[run], from = c / share * share;
    float pooled = mean, spread = var;
    if (share > 1) {
        pooled = spread = 0.f;
        for (int i = from; i < from + share; i++) pooled += scratch[i] / share;
        for (int i = from; i < from + share; i++) spread += (scratch[C + i] + (scratch[i] - pooled) * (scratch[i] - pooled)) / share;
    }
    const float inverse = rsqrtf(spread + norms.epsilon[run]);
    const float s = norms.gamma[run * norms.row + c] * inverse;
    const size_t at = (size_t)(run * norms.blocks.most + blockIdx.x) * C + c;
    *(float2 *)(factors + at * 2) = make_float2(s, norms.beta[run * norms.row + c] - s * pooled);
    *(float4 *)(statistics + at * 4) = make_float4(mean, var, pooled, inverse);
}

// From Σ g and Σ g (y - shift) to the factors of GRADIENT, and each block's share of the gradients of γ and β
// (run, block, C, 2).
template <int C>
__global__ void norm_backward(const float *sums, const float *shift, Norms norms, const float *statistics,
                              float *factors, float *affine, int images, int pixels, int parts) {
    wait_for_kernel_before();
    __shared__ __align__(16) float scratch[4096];
    __shared__ __align__(16) float total[2 * C];
    const int run = blockIdx.y, size = norms.blocks.size[run], first = blockIdx.x * size;
    if (first >= images) return;
    const int last = min(first + size, images), c = threadIdx.x;
    add_sums<C>(sums + (size_t)run * images * parts * C * 2, first * parts, last * parts, scratch, total);
    const size_t at = (size_t)(run * norms.blocks.most + blockIdx.x) * C + c;
    float4 statistic = make_float4(0.f, 0.f, 0.f, 0.f);
    float gamma = 0.f, of_beta = 0.f, of_gamma = 0.f;
    if (c < C) {
        statistic = *(const float4 *)(statistics + at * 4);
        gamma = norms.gamma[run * norms.row + c];
        of_beta = total[2 * c];
        of_gamma = statistic.w * (total[2 * c + 1] - (statistic.z - shift[run * C + c]) * of_beta);
        scratch[c] = gamma * of_beta, scratch[C + c] = gamma * of_gamma;
        *(float2 *)(affine + at * 2) = make_float2(of_gamma, of_beta);
    }
    __syncthreads();
    if (c >= C) return;
    const int share = norms.channels[run], from = c / share * share;
    const float values = (float)(last - first) * pixels * share;
    float first_sum = 0.f, second_sum = 0.f;
    for (int i = from; i < from + share; i++) first_sum += scratch[i], second_sum += scratch[C + i];
    first_sum /= values, second_sum /= values;
    const float inverse = statistic.w, mean = statistic.z;
    *(float4 *)(factors + at * 4) = make_float4(inverse * gamma, -inverse * inverse * second_sum,
                                                inverse * (mean * inverse * second_sum - first_sum), 0.f);
}

// A channel of a norm. Per-channel arrays of the network have one norm after the other, `before` channels before this
// norm's: (run, block, channel) of a norm begins at before × runs × blocks.
struct Channel {
    long long gamma, beta;  // in a run's row of parameters
    int before, channel, channels, pixels;
};

INLINE size_t place(const Channel &c, int runs, int most, int run, int block) {
    return (size_t)c.before * runs * most + (size_t)(run * most + block) * c.channels + c.channel;
}

// The moving averages of all norms, one step each: see norms/_moving.py. `rate` (run,).
extern "C" __global__ void move_averages(const Channel *channels, int count, const float *statistics, Blocks blocks,
                                         const float *rate, float *mean, float *square, float *rest, float *var,
                                         int images) {
    wait_for_kernel_before();
    const int i = blockIdx.x * blockDim.x + threadIdx.x, run = blockIdx.y, runs = gridDim.y;
    if (i >= count) return;
    const Channel channel = channels[i];
    const int size = blocks.size[run], number = (images + size - 1) / size;
    double first = 0., second = 0.;
    for (int b = 0; b < number; b++) {
        const double share = (double)(min((b + 1) * size, images) - b * size) / images;
        first += share * statistics[place(channel, runs, blocks.most, run, b) * 4];
    }
    for (int b = 0; b < number; b++) {
        const double share = (double)(min((b + 1) * size, images) - b * size) / images;
        const float *p = statistics + place(channel, runs, blocks.most, run, b) * 4;
        second += share * (p[1] + (p[0] - first) * (p[0] - first));
    }
    const size_t at = place(channel, runs, 1, run, 0);
    const double r = rate[run], values = (double)images * channel.pixels;
    var[at] += (float)(r * (second * values / (values - 1.) - var[at]));
    double m = mean[at], v = square[at] - m * m + rest[at];
    const double step = first - m;
    v += r * (second - v) + r * (1. - r) * step * step;
    m += r * step;
    const float new_mean = (float)m, new_square = (float)(v + m * m);
    mean[at] = new_mean, square[at] = new_square;
    rest[at] = (float)(v - (new_square - (double)new_mean * new_mean));
}

// The gradients of γ and β of all norms: Σ over blocks.
extern "C" __global__ void add_affine(const Channel *channels, int count, const float *affine, Blocks blocks, float *out,
                                      int images, long long row) {
    wait_for_kernel_before();
    const int i = blockIdx.x * blockDim.x + threadIdx.x, run = blockIdx.y, runs = gridDim.y;
    if (i >= count) return;
    const Channel channel = channels[i];
    const int size = blocks.size[run], number = (images + size - 1) / size;
    float gamma = 0.f, beta = 0.f;
    for (int b = 0; b < number; b++) {
        const float *p = affine + place(channel, runs, blocks.most, run, b) * 2;
        gamma += p[0], beta += p[1];
    }
    out[run * row + channel.gamma] = gamma, out[run * row + channel.beta] = beta;
}

// ---- weights --------------------------------------------------------------------------------------------------------

// A convolution's weights (CO, 3, 3, CI) in a run's row of parameters, and where their fragments go.
struct Weights {
    long long from, forward, backward;
    int ci, co, padded, first;  // `first`: number of fragments of the convolutions before
};

// The weights of all convolutions in bf16, as lanes want them: forward, and turned around for the way back. A thread
// makes one lane's fragment of both.
extern "C" __global__ void arrange_weights(const Weights *all, int convolutions, const float *parameters, u16 *fragments,
                                           long long row, int count) {
    wait_for_kernel_before();
    const int i = blockIdx.x * blockDim.x + threadIdx.x, run = blockIdx.y;
    if (i >= count) return;
    int which = 0;
    while (which + 1 < convolutions && all[which + 1].first * 32 <= i) which++;
    const Weights w = all[which];
    const int lane = i % 32, fragment = i / 32 - w.first, wide = w.padded;
    const float *p = parameters + run * row + w.from;
    const int per_tap = wide / 16 * (w.co / 8), tap = fragment / per_tap;
    const bool has_backward = wide == w.ci;
    {
        const int k = fragment % per_tap / (w.co / 8) * 16 + lane % 4 * 2, n = fragment % (w.co / 8) * 8 + lane / 4;
        float v[4];
        for (int j = 0; j < 4; j++) {
            const int ci = k + j / 2 * 8 + j % 2;
            v[j] = ci < w.ci ? p[(n * 9 + tap) * w.ci + ci] : 0.f;
        }
        uint2 *out = (uint2 *)(fragments + w.forward + (size_t)run * w.co * 9 * wide) + fragment * 32 + lane;
        *out = make_uint2(pair_of(v[0], v[1]), pair_of(v[2], v[3]));
    }
    if (has_backward) {
        const int k = fragment % per_tap / (wide / 8) * 16 + lane % 4 * 2, n = fragment % (wide / 8) * 8 + lane / 4;
        float v[4];
        for (int j = 0; j < 4; j++) v[j] = p[((k + j / 2 * 8 + j % 2) * 9 + 8 - tap) * w.ci + n];
        uint2 *out = (uint2 *)(fragments + w.backward + (size_t)run * w.co * 9 * wide) + fragment * 32 + lane;
        *out = make_uint2(pair_of(v[0], v[1]), pair_of(v[2], v[3]));
    }
}

// ---- images ---------------------------------------------------------------------------------------------------------

// Where a run's images (count, channel, 32, 32) and their labels are, its place in the pack, and how wide frames are.
struct Images {
    const unsigned char *pixels;
    const long long *labels;
    int place, pad;
};

// The images and labels at `index` (place, image), each image in a black frame of which the part from `corner`
// (run, 2, image) on is seen, `mirrored` (run, image) or not; a level becomes what `levels` (run, channel, 256) says. A thread makes one pixel.
extern "C" __global__ void move_images(const Images *all, const long long *index, const long long *corner,
                                       const bool *mirrored, const u16 *levels, u16 *out, long long *labels, int images,
                                       int channels) {
    wait_for_kernel_before();
    enum { SIDE = 32, PIXELS = SIDE * SIDE };
    const int at = blockIdx.x * blockDim.x + threadIdx.x, run = blockIdx.y;
    const int image = at / PIXELS, row = at % PIXELS / SIDE, column = at % SIDE;
    if (image >= images) return;
    const Images of = all[run];
    const int y = row + (int)corner[2 * run * images + image] - of.pad;
    const int x = (mirrored[run * images + image] ? SIDE - 1 - column : column) +
                  (int)corner[(2 * run + 1) * images + image] - of.pad;
    const bool inside = y >= 0 && y < SIDE && x >= 0 && x < SIDE;
    const long long sample = index[of.place * images + image];
    if (at % PIXELS == 0) labels[of.place * images + image] = of.labels[sample];
    const unsigned char *pixel = of.pixels + (size_t)sample * channels * PIXELS + y * SIDE + x;
    u32 value[IMAGE_CHANNELS] = {};
    for (int c = 0; c < channels; c++) value[c] = levels[(run * channels + c) * 256 + (inside ? pixel[c * PIXELS] : 0)];
    *(uint2 *)(out + ((size_t)(of.place * images + image) * PIXELS + row * SIDE + column) * IMAGE_CHANNELS) =
        make_uint2(value[0] | value[1] << 16, value[2] | value[3] << 16);
}

// ---- weights --------------------------------------------------------------------------------------------------------

// One step of SGD for the runs of which `moves` (run,) says so: `decay` is of each weight, the rest of each run.
struct Descent {
    const bool *moves, *nesterov;
    const float *rate, *momentum, *decay;
};

extern "C" __global__ void move_weights(float *parameters, const float *gradients, float *velocities, Descent descent,
                                        int row) {
    wait_for_kernel_before();
    const int i = blockIdx.x * blockDim.x + threadIdx.x, run = blockIdx.y;
    if (i >= row || !descent.moves[run]) return;
    const size_t at = (size_t)run * row + i;
    const float weight = parameters[at], momentum = descent.momentum[run];
    const float gradient = fmaf(descent.decay[at], weight, gradients[at]);
    const float velocity = fmaf(momentum, velocities[at], gradient);
    velocities[at] = velocity;
    parameters[at] = fmaf(-descent.rate[run], descent.nesterov[run] ? fmaf(momentum, velocity, gradient) : velocity, weight);
}
