"""torch's matrix product of bf16 on the CPU, behind mxprobe: `torch.addmm`, in which C and D are bf16 too.

Which code computes depends on the size: torch 2.15 takes loops of its own up to m·n·k = 16³, and oneDNN above, which chooses
by the CPU. `ONEDNN_VERBOSE=1` shows it. Ask both, as in

    mxprobe --device 'exec:python3 examples/workers/python/torch_matmul.py' --shape 4x4x8
    mxprobe --device 'exec:python3 examples/workers/python/torch_matmul.py' --shape 16x17x16
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
