"""torch's matrix product on the CPU as a device: `torch.addmm`, in bf16 throughout and in f32.

The implementation depends on the size: for bf16, torch 2.15 uses its own loops up to m·n·k = 16³, and oneDNN above,
which chooses by the CPU; `ONEDNN_VERBOSE=1` shows its choice. f32 uses a BLAS. Probe several sizes, as in

    mxprobe --device 'exec:python3 examples/workers/python/torch_matmul.py' --op '*.bf16' --shape 4x4x8
    mxprobe --device 'exec:python3 examples/workers/python/torch_matmul.py' --op '*.bf16' --shape 16x17x16
"""

import torch

from mxprobe_worker import Device, Operation, serve


def in_bf16(a, b, c):
    # The bits of bf16, which NumPy lacks.
    a, b, c = (torch.from_numpy(bits.view("int16")).view(torch.bfloat16) for bits in (a, b, c))
    return torch.addmm(c, a, b).view(torch.int16).numpy().view("uint16")


def in_f32(a, b, c):
    a, b, c = (torch.from_numpy(operand) for operand in (a, b, c))
    return torch.addmm(c, a, b).numpy()


torch.set_grad_enabled(False)
operations = [
    Operation("gemm.m*n*k*.bf16.bf16.bf16.bf16", in_bf16, bits=True),
    Operation("gemm.m*n*k*.f32.f32.f32.f32", in_f32),
]
serve(Device("torch", operations, version=torch.__version__))
