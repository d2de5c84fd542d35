"""Python callables as devices, one selected by name. They check the arguments that the worker passes, and how it
handles returned values, exceptions and output."""

import os
import sys

if sys.argv[1] == "memoryviews":
    sys.modules["numpy"] = None  # as if NumPy were not installed

from array import array

from mxprobe_worker import Device, Operation, serve

F32 = "gemm.m*n*k*.f32.f32.f32.f32"


def prints(a, b, c):
    print("a library greets", flush=True)
    os.write(1, b'{"answer":"done","bytes":[4]}\n')
    os.system("echo so does a program that it starts")
    if sys.stdin.read() != "":
        raise ValueError("requests can be read")
    return a @ b + c


def raises(a, b, c):
    raise ValueError("no room\nfor this")


def ends(a, b, c):
    sys.exit(7)


def wrong_type(a, b, c):
    return (a @ b + c).astype("float64")


def wrong_shape(a, b, c):
    return (a @ b + c).ravel()


def wrong_bytes(a, b, c):
    return b"\0\0\0"


def nothing(a, b, c):
    return None


def unsupported(a, b, c):
    raise NotImplementedError("m = 1 alone")


def types(a, b, c):
    if (a.dtype.name, b.dtype.name, c.dtype.name) != ("bfloat16", "float8_e4m3fn", "float32"):
        raise TypeError(f"{a.dtype} {b.dtype} {c.dtype}")
    return a.astype("float32") @ b.astype("float32") + c


def words(a, b, c):
    if (a.dtype.name, b.dtype.name, c.dtype.name) != ("uint16", "uint8", "uint32"):
        raise TypeError(f"{a.dtype} {b.dtype} {c.dtype}")
    return c


def batched(a, b, c):
    if a.shape[0] != b.shape[0] or a.ndim != 3:
        raise ValueError(f"{a.shape} {b.shape}")
    return a @ b + c


def memoryviews(a, b, c):
    (m, k), n = a.shape, b.shape[1]
    dots = (c[row, column] + sum(a[row, at] * b[at, column] for at in range(k)) for row in range(m) for column in range(n))
    return array("f", dots)


NARROW = "gemm.m*n*k*.f32.bf16.e4m3.f32"
OPERATIONS = {
    "types": Operation(NARROW, types),
    "words": Operation(NARROW, words, bits=True),
    "batched": Operation(F32, batched, batch=True),
}
name = sys.argv[1]
serve(Device(name, [OPERATIONS.get(name) or Operation(F32, globals()[name])]))
