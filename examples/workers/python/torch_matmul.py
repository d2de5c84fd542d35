"""torch's matrix product of bf16 on the CPU, behind mxprobe: oneDNN chooses how this CPU computes it. C and D are bf16.

    mxprobe --device 'exec:python3 examples/workers/python/torch_matmul.py'
"""

import torch

from mxprobe_worker import Device, Operation, serve


def matmul(a, b, c):
    # The bits of bf16, which NumPy does not have.
    a, b, c = (torch.from_numpy(bits.view("int16")).view(torch.bfloat16) for bits in (a, b, c))
    return torch.addmm(c, a, b).view(torch.int16).numpy().view("uint16")


torch.set_grad_enabled(False)
id = "gemm.m*n*k*.bf16.bf16.bf16.bf16"
serve(Device("torch", [Operation(id, matmul, bits=True)], version=torch.__version__))
