"""Triton's `tl.dot` as a device, on an NVIDIA or AMD GPU: what its compiler makes of one product of two blocks, and c.

    mxprobe run --device 'exec:python3 examples/workers/python/triton_dot.py'
    mxprobe identify --device 'exec:python3 examples/workers/python/triton_dot.py' --op 'dot.*f16.f16*' --out triton.toml

`tf32x3` and `bf16x3` are `input_precision` of those names: f32 from three products of its words. `imprecise` is
`max_num_imprecise_acc=32`: how many products of fp8 are added before the sum goes to a register of f32. With
TRITON_INTERPRET=1, Triton's interpreter computes on the CPU.
"""

import os

import torch
import triton
import triton.language as tl

from mxprobe_worker import Device, Operation, serve

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
WHERE = "cpu" if INTERPRETED else "cuda"
# Format: torch's type, and the integers that carry its bits.
TYPES = {
    "f32": (torch.float32, torch.int32),
    "tf32": (torch.float32, torch.int32),
    "f16": (torch.float16, torch.int16),
    "bf16": (torch.bfloat16, torch.int16),
    "e4m3": (torch.float8_e4m3fn, torch.int8),
    "e5m2": (torch.float8_e5m2, torch.int8),
    "s8": (torch.int8, torch.int8),
    "s32": (torch.int32, torch.int32),
}


@triton.jit
def block(
    a,
    b,
    c,
    d,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    TYPE: tl.constexpr,
    PRECISION: tl.constexpr,
    IMPRECISE: tl.constexpr,
):
    tile = tl.program_id(0)
    row = tl.arange(0, M)[:, None]
    column = tl.arange(0, N)[None, :]
    along = tl.arange(0, K)
    left = tl.load(a + tile * M * K + row * K + along[None, :])
    right = tl.load(b + tile * K * N + along[:, None] * N + column)
    start = tl.load(c + tile * M * N + row * N + column)
    sum = tl.dot(left, right, start, input_precision=PRECISION, max_num_imprecise_acc=IMPRECISE, out_dtype=TYPE)
    tl.store(d + tile * M * N + row * N + column, sum)


def dot(family, shape, d, a, b, precision=None, imprecise=None):
    m, n, k = shape
    kind = {"f32": tl.float32, "f16": tl.float16, "s32": tl.int32}[d]

    def run(*operands):
        tiles = operands[0].shape[0]
        on = []
        for (of, bits), operand in zip((TYPES[name] for name in (a, b, d)), operands):
            on.append(torch.from_numpy(operand.view(f"i{operand.itemsize}")).view(of).to(WHERE))
        result = torch.empty((tiles, m, n), dtype=TYPES[d][0], device=WHERE)
        if tiles > 0:
            block[(tiles,)](*on, result, m, n, k, kind, precision, imprecise)
        bits = result.view(TYPES[d][1]).cpu().numpy()
        return bits.view(f"u{bits.itemsize}")

    return Operation(f"{family}.m{m}n{n}k{k}.{d}.{a}.{b}.{d}", run, batch=True, bits=True)


SMALL, WIDE = (16, 16, 32), (64, 64, 32)
operations = []
for shape in (SMALL, WIDE):
    operations += [
        dot("dot", shape, "f32", "f16", "f16"),
        dot("dot", shape, "f16", "f16", "f16"),
        dot("dot", shape, "f32", "bf16", "bf16"),
        dot("dot", shape, "f32", "tf32", "tf32", "tf32"),
        dot("dot", shape, "f32", "f32", "f32", "ieee"),
        dot("tf32x3", shape, "f32", "f32", "f32", "tf32x3"),
        dot("bf16x3", shape, "f32", "f32", "f32", "bf16x3"),
        dot("dot", shape, "f32", "e4m3", "e4m3"),
        dot("dot", shape, "f32", "e5m2", "e5m2"),
        dot("dot", shape, "s32", "s8", "s8"),
    ]
operations += [
    dot("dot", (64, 64, 128), "f32", "e4m3", "e4m3"),
    dot("imprecise32", (64, 64, 128), "f32", "e4m3", "e4m3", imprecise=32),
]
if INTERPRETED:
    serve(Device("Triton's interpreter", operations, version=triton.__version__))
else:
    name = f"Triton on {torch.cuda.get_device_name()}"
    serve(Device(name, operations, kind="hardware", version=triton.__version__))
