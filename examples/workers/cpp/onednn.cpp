// oneDNN's matrix product of bf16 and of f32 on this CPU, with C added by its post-operation `sum`. oneDNN chooses the
// kernel.
//
//     python3 -m venv onednn && onednn/bin/pip install onednn-cpu-gomp==2023.2.0 onednn-devel-cpu-gomp==2023.2.0
//     c++ -std=c++17 -O1 -I onednn/include -o matmul examples/workers/cpp/onednn.cpp -L onednn/lib -l:libdnnl.so.3
//     LD_LIBRARY_PATH=onednn/lib mxprobe --device 'exec:./matmul'
#include <oneapi/dnnl/dnnl.hpp>

#include "mxprobe_worker.hpp"

using type = dnnl::memory::data_type;

static void matmul(const mxprobe::tile &t, type operands) {
    static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    static dnnl::stream stream(engine);
    const auto matrix = [](std::size_t rows, std::size_t columns, type format) {
        const dnnl::memory::dims sizes = {static_cast<dnnl_dim_t>(rows), static_cast<dnnl_dim_t>(columns)};
        return dnnl::memory::desc(sizes, format, dnnl::memory::format_tag::ab);
    };
    const auto a = matrix(t.m, t.k, operands), b = matrix(t.k, t.n, operands), d = matrix(t.m, t.n, type::f32);
    dnnl::post_ops sum;
    sum.append_sum(1.0f);
    dnnl::primitive_attr attributes;
    attributes.set_post_ops(sum);
    // The post-operation adds to the contents of D.
    std::memcpy(t.d<float>(), t.c<float>(), t.m * t.n * sizeof(float));
    const auto at = [](const dnnl::memory::desc &of, const void *data) {
        return dnnl::memory(of, engine, const_cast<void *>(data));
    };
    dnnl::matmul(dnnl::matmul::primitive_desc(engine, a, b, d, attributes))
        .execute(stream, {{DNNL_ARG_SRC, at(a, t.operands[0])},
                          {DNNL_ARG_WEIGHTS, at(b, t.operands[1])},
                          {DNNL_ARG_DST, at(d, t.result)}});
    stream.wait();
}

int main() {
    const dnnl_version_t *const version = dnnl_version();
    mxprobe::device device("oneDNN");
    for (const int number : {version->major, version->minor, version->patch})
        device.version += (device.version.empty() ? "" : ".") + std::to_string(number);
    device.add("gemm.m*n*k*.f32.bf16.bf16.f32", [](const mxprobe::tile &t) { matmul(t, type::bf16); });
    device.add("gemm.m*n*k*.f32.f32.f32.f32", [](const mxprobe::tile &t) { matmul(t, type::f32); });
    return mxprobe::serve({device});
}
