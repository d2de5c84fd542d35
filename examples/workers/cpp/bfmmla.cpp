// Arm's BFMMLA and BFDOT: products of bf16, added in f32. Runs on an Arm CPU that has them, or in QEMU:
//
//     scripts/emulators
//     .emulators/aarch64-c++ -std=c++17 -O1 -march=armv8.6-a -o bfmmla examples/workers/cpp/bfmmla.cpp
//     mxprobe --device 'exec:.emulators/qemu-aarch64 ./bfmmla'
#include <arm_neon.h>

#include "mxprobe_worker.hpp"

// D = A·B + C, 2×2. The instruction takes B column by column.
static void bfmmla(const mxprobe::tile &t) {
    std::uint16_t columns[8];
    for (int k = 0; k < 4; ++k)
        for (int n = 0; n < 2; ++n) columns[4 * n + k] = t.b<std::uint16_t>()[2 * k + n];
    const bfloat16x8_t a = vreinterpretq_bf16_u16(vld1q_u16(t.a<std::uint16_t>()));
    const bfloat16x8_t b = vreinterpretq_bf16_u16(vld1q_u16(columns));
    vst1q_f32(t.d<float>(), vbfmmlaq_f32(vld1q_f32(t.c<float>()), a, b));
}

// One of four lanes: two products and c.
static void bfdot(const mxprobe::tile &t) {
    std::uint16_t a[4] = {}, b[4] = {};
    float d[2] = {t.c<float>()[0], 0};
    std::memcpy(a, t.a<std::uint16_t>(), 4);
    std::memcpy(b, t.b<std::uint16_t>(), 4);
    const bfloat16x4_t pair = vreinterpret_bf16_u16(vld1_u16(a)), other = vreinterpret_bf16_u16(vld1_u16(b));
    vst1_f32(d, vbfdot_f32(vld1_f32(d), pair, other));
    t.d<float>()[0] = d[0];
}

int main() {
    mxprobe::device device("Arm BFMMLA");
    device.fingerprint = "arm-bf16";
    device.add("bfmmla.m2n2k4.f32.bf16.bf16.f32", bfmmla, "thread", "BFMMLA");
    device.add("dot.m1n1k2.f32.bf16.bf16.f32", bfdot, "thread", "BFDOT");
    return mxprobe::serve({device});
}
