"""torch's matrix product as a device: `torch.addmm`, on the CPU in bf16 and f32, with `--cuda` on the GPU also in f16 and tf32.

The implementation depends on the size. On a CPU, for bf16, torch 2.15 uses its own loops up to m·n·k = 16³, and oneDNN
above, which chooses by the CPU; `ONEDNN_VERBOSE=1` shows its choice. f32 uses a BLAS. On a GPU, cuBLAS chooses. Probe
several sizes, as in

    mxprobe --device 'exec:python3 examples/workers/python/torch_matmul.py' --op '*.bf16' --shape 4x4x8
    mxprobe --device 'exec:python3 examples/workers/python/torch_matmul.py' --op '*.bf16' --shape 16x17x16
    mxprobe identify --gemm --device 'exec:python3 examples/workers/python/torch_matmul.py --cuda' --op '*.f16' \\
        --shapes 16x16x64,64x64x4096
"""

import sys

import torch

from mxprobe_worker import Device, Operation, serve

GPU = "--cuda" in sys.argv[1:]
WHERE = "cuda" if GPU else "cpu"


def of_bits(dtype):
    # torch reads the bits of types that NumPy lacks.
    def addmm(a, b, c):
        a, b, c = (torch.from_numpy(bits.view("int16")).view(dtype).to(WHERE) for bits in (a, b, c))
        return torch.addmm(c, a, b).view(torch.int16).cpu().numpy().view("uint16")

    return addmm


def in_f32(tf32):
    def addmm(a, b, c):
        torch.backends.cuda.matmul.allow_tf32 = tf32
        a, b, c = (torch.from_numpy(operand).to(WHERE) for operand in (a, b, c))
        return torch.addmm(c, a, b).cpu().numpy()

    return addmm


torch.set_grad_enabled(False)
operations = [
    Operation("gemm.m*n*k*.bf16.bf16.bf16.bf16", of_bits(torch.bfloat16), bits=True),
    Operation("gemm.m*n*k*.f32.f32.f32.f32", in_f32(tf32=False)),
]
if GPU:
    operations += [
        Operation("gemm.m*n*k*.f16.f16.f16.f16", of_bits(torch.float16), bits=True),
        Operation("gemm.m*n*k*.f32.tf32.tf32.f32", in_f32(tf32=True)),
    ]
name = f"torch on {torch.cuda.get_device_name()}" if GPU else "torch"
serve(Device(name, operations, kind="hardware" if GPU else "software", version=torch.__version__))
