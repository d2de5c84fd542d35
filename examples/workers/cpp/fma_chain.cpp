// A chain of fused multiply-adds in f32, d = fma(a[k-1], b[k-1], … fma(a[0], b[0], c)), of bf16 or f32 operands.
//
//     c++ -std=c++17 -O1 -ffp-contract=off -o fma_chain examples/workers/cpp/fma_chain.cpp
//     mxprobe --device 'exec:./fma_chain'
#include <cmath>

#include "mxprobe_worker.hpp"

static float value(float element) { return element; }

// A bf16 is the upper half of an f32.
static float value(std::uint16_t bf16) {
    const std::uint32_t bits = std::uint32_t(bf16) << 16;
    float result;
    std::memcpy(&result, &bits, sizeof result);
    return result;
}

template <class T> static void chain(const mxprobe::tile &t) {
    for (std::size_t row = 0; row < t.m; ++row)
        for (std::size_t column = 0; column < t.n; ++column) {
            float sum = t.c<float>()[row * t.n + column];
            for (std::size_t k = 0; k < t.k; ++k)
                sum = std::fma(value(t.a<T>()[row * t.k + k]), value(t.b<T>()[k * t.n + column]), sum);
            t.d<float>()[row * t.n + column] = sum;
        }
}

int main() {
    mxprobe::device device("FMA chain");
    device.fingerprint = "fma-chain";
    device.add("gemm.m*n*k*.f32.f32.f32.f32", chain<float>);
    device.add("gemm.m*n*k*.f32.bf16.bf16.f32", chain<std::uint16_t>);
    return mxprobe::serve({device});
}
