// oneDNN's matrix product of bf16 and of f32 on this CPU, with C added by its post-operation `sum`. oneDNN chooses the
// kernel.
//
//     python3 -m venv onednn && onednn/bin/pip install onednn-cpu-gomp==2023.2.0 onednn-devel-cpu-gomp==2023.2.0
//     c++ -std=c++17 -O1 -I onednn/include -o matmul examples/workers/cpp/onednn.cpp -L onednn/lib -l:libdnnl.so.3
//     LD_LIBRARY_PATH=onednn/lib mxprobe --device 'exec:./matmul'
#include <oneapi/dnnl/dnnl.hpp>

#include "mxprobe_worker.hpp"

using type = dnnl::memory::data_type;

static const dnnl::engine &cpu() {
    static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    return engine;
}

// The product that oneDNN chooses for these sizes and this format of A and B. Throws if it has none on this CPU.
static dnnl::matmul::primitive_desc product(std::size_t m, std::size_t n, std::size_t k, type operands) {
    const auto matrix = [](std::size_t rows, std::size_t columns, type format) {
        const dnnl::memory::dims sizes = {static_cast<dnnl_dim_t>(rows), static_cast<dnnl_dim_t>(columns)};
        return dnnl::memory::desc(sizes, format, dnnl::memory::format_tag::ab);
    };
    dnnl::post_ops sum;
    sum.append_sum(1.0f);
    dnnl::primitive_attr attributes;
    attributes.set_post_ops(sum);
    return {cpu(), matrix(m, k, operands), matrix(k, n, operands), matrix(m, n, type::f32), attributes};
}

static void matmul(const mxprobe::tile &t, type operands) {
    static dnnl::stream stream(cpu());
    const auto chosen = product(t.m, t.n, t.k, operands);
    // The post-operation adds to the contents of D.
    std::memcpy(t.d<float>(), t.c<float>(), t.m * t.n * sizeof(float));
    const auto at = [](const dnnl::memory::desc &of, const void *data) {
        return dnnl::memory(of, cpu(), const_cast<void *>(data));
    };
    dnnl::matmul(chosen).execute(stream, {{DNNL_ARG_SRC, at(chosen.src_desc(), t.operands[0])},
                                          {DNNL_ARG_WEIGHTS, at(chosen.weights_desc(), t.operands[1])},
                                          {DNNL_ARG_DST, at(chosen.dst_desc(), t.result)}});
    stream.wait();
}

// Whether oneDNN multiplies this format on this CPU: bf16 takes AVX-512.
static bool multiplies(type operands) {
    try {
        product(4, 4, 8, operands);
        return true;
    } catch (const dnnl::error &) {
        return false;
    }
}

int main() {
    const dnnl_version_t *const version = dnnl_version();
    mxprobe::device device("oneDNN");
    for (const int number : {version->major, version->minor, version->patch})
        device.version += (device.version.empty() ? "" : ".") + std::to_string(number);
    if (multiplies(type::bf16))
        device.add("gemm.m*n*k*.f32.bf16.bf16.f32", [](const mxprobe::tile &t) { matmul(t, type::bf16); });
    device.add("gemm.m*n*k*.f32.f32.f32.f32", [](const mxprobe::tile &t) { matmul(t, type::f32); });
    return mxprobe::serve({device});
}
