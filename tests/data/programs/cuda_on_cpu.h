// What a CUDA source needs to be compiled by a C++ compiler: a thread block is as many threads of the CPU, one block at a
// time, so that `__shared__` memory is static and `__syncthreads` a barrier.

#include <barrier>
#include <cmath>
#include <cstddef>
#include <thread>
#include <vector>

struct Dimensions {
    int x = 0, y = 0, z = 0;
};
static thread_local Dimensions threadIdx, blockIdx;
static Dimensions blockDim;
static std::barrier<> *gate;

#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(threads)
#define __shared__ static

inline void __syncthreads() { gate->arrive_and_wait(); }
inline int atomicAdd(int *place, int value) { return __atomic_fetch_add(place, value, __ATOMIC_RELAXED); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }

template <class Kernel> void launch(int blocks, int threads, Kernel kernel) {
    std::barrier<> barrier(threads);
    gate = &barrier, blockDim = {threads, 1, 1};
    std::vector<std::thread> all;
    for (int thread = 0; thread < threads; thread++)
        all.emplace_back([=] {
            threadIdx.x = thread;
            for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++) {
                kernel();
                __syncthreads();
            }
        });
    for (auto &thread : all) thread.join();
}
