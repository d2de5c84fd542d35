"""NumPy's f32 matrix product as a device: `a @ b`, which is OpenBLAS's sgemm in the wheels, and then `+ c`.

    mxprobe --device 'exec:python3 examples/workers/python/numpy_matmul.py'
"""

import numpy

from mxprobe_worker import Device, Operation, serve


def matmul(a, b, c):
    with numpy.errstate(all="ignore"):  # overflow and NaN are tested too
        return a @ b + c


serve(Device("NumPy", [Operation("gemm.m*n*k*.f32.f32.f32.f32", matmul)], version=numpy.__version__))
