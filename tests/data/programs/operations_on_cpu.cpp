#include "cuda_on_cpu.h"

#include "operations.cu"

extern "C" void operate_and_move_on_cpu(const u8 *images, const long long *operation, const float *strength,
                                        const long long *corner, const bool *mirrored, u8 *out, int pad, int count) {
    launch(count, LEVELS, [=] {
        operate_and_move<3, 32, 32>(images, operation, strength, corner, mirrored, out, pad, count);
    });
}
