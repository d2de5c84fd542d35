"""Models: products, dots, types and errors."""

import array
import ctypes
import signal
import subprocess
import sys
import threading
import time

import ml_dtypes
import numpy as np
import pytest

import mxprobe

RANDOM = np.random.default_rng(1)


def drawn(shape, dtype=np.float16):
    return RANDOM.standard_normal(shape).astype(dtype)


def bits(found):
    return found.view(f"u{found.dtype.itemsize}")


def command(*arguments, folder):
    done = subprocess.run(["mxprobe", *arguments], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("with_c", [False, True])
@pytest.mark.parametrize("op", ["mma.m16n8k16.f32.f16.f16.f32", "mma.m16n8k16.f16.f16.f16.f16"])
def test_products_have_the_bits_of_the_command(h100, tmp_path, op, with_c):
    a, b = drawn((37, 50)), drawn((50, 21))
    c = drawn((37, 21), np.float32 if op.split(".")[2] == "f32" else np.float16) if with_c else None
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", b)
    more = []
    if with_c:
        np.save(tmp_path / "c.npy", c)
        more = ["--c", "c.npy"]
    files = ["--a", "a.npy", "--b", "b.npy", "--out", "d.npy", *more]
    command("gemm", "--device", "sim:h100", "--op", op, *files, folder=tmp_path)
    d = h100.matmul(a, b, c, op=op)
    wanted = np.load(tmp_path / "d.npy")
    assert d.dtype == wanted.dtype and d.shape == (37, 21)
    assert (bits(d) == bits(wanted)).all()


def test_a_product_of_many_rows_at_a_time_is_that_of_each_row():
    # Enough products for several parts: at least 256 rows are computed at a time.
    unit = mxprobe.model("serial")
    op = next(id for id in unit.operations if ".f32.f16.f16.f32" in id)
    a, b = drawn((1, 2048)), drawn((2048, 8192))
    rows = np.repeat(a, 300, axis=0)
    one = unit.matmul(a, b, op=op)
    assert (bits(unit.matmul(rows, b, op=op)) == bits(np.repeat(one, 300, axis=0))).all()


def test_types_choose_the_operation_and_none_is_rounded(h100):
    ones = lambda dtype: (np.ones((2, 4)).astype(dtype), np.ones((4, 3)).astype(dtype))
    for dtype, op in [
        (np.float16, "f16->f32"),
        (ml_dtypes.bfloat16, "bf16->f32"),
        (ml_dtypes.float8_e4m3fn, "mma.m16n8k32.f32.e4m3.e4m3.f32"),
        (ml_dtypes.float8_e5m2, "mma.m16n8k32.f32.e5m2.e5m2.f32"),
        (np.float32, "mma.m16n8k8.f32.tf32.tf32.f32"),
    ]:
        d = h100.matmul(*ones(dtype), op=op)
        assert d.dtype == np.float32 and (d == 4).all(), op
    assert h100.matmul(*ones(np.float16)).dtype == np.float32
    assert h100.matmul(*ones(ml_dtypes.bfloat16)).dtype == np.float32
    assert h100.matmul(*ones(np.int8)).dtype == np.int32
    assert h100.matmul(*ones(np.float64)).dtype == np.float64
    # Bits, as unsigned integers of the same width.
    a, b = ones(np.float16)
    assert (h100.matmul(a.view(np.uint16), b.view(np.uint16), op="f16->f32") == 4).all()


def test_narrow_integers_keep_their_signs():
    unit = mxprobe.model("a100")
    op = next(id for id in unit.operations if ".s32.s4.s4.s32" in id and "satfinite" not in id)
    a = np.array([[-8, 7, -1, 3]]).astype(ml_dtypes.int4)
    assert unit.matmul(a, a.T, op=op)[0, 0] == 64 + 49 + 1 + 9
    bits = np.array([[0x8, 0x7, 0xF, 0x3]], np.uint8)
    with pytest.raises(mxprobe.FormatError, match="a is uint8; s4 takes int4"):
        unit.matmul(bits, bits.T, op=op)


def test_block_scales_are_operands():
    unit = mxprobe.model("b200")
    op = next(id for id in unit.operations if id.endswith(".f32.e2m1.e2m1.f32.block16.ue4m3"))
    of = unit.operation(op)
    m, n, k = 3, 2, of.shape[2]
    a = np.ones((m, k)).astype(ml_dtypes.float4_e2m1fn)
    b = np.ones((k, n)).astype(ml_dtypes.float4_e2m1fn)
    scale_a = np.full((m, k // 16), 2.0).astype(ml_dtypes.float8_e4m3fn)
    scale_b = np.full((k // 16, n), 4.0).astype(ml_dtypes.float8_e4m3fn)
    assert (unit.matmul(a, b, op=op, scale_a=scale_a, scale_b=scale_b) == 8 * k).all()
    with pytest.raises(mxprobe.InvalidError, match="takes scale_a and scale_b, one ue4m3 for 16"):
        unit.matmul(a, b, op=op)
    d = unit.dot(a[0], b[:, 0], np.float32(1), op=op, scale_a=scale_a[0], scale_b=scale_b[:, 0])
    assert d == 8 * k + 1
    with pytest.raises(mxprobe.InvalidError, match="takes no block scales"):
        mxprobe.model("h100").matmul(drawn((2, 2)), drawn((2, 2)), scale_a=scale_a)


def test_buffers_strides_and_byte_orders_are_read(h100):
    numbers = array.array("d", [1.0, 2.0, 3.0])
    assert h100.dot(numbers, numbers, op="f64->f64") == 14.0
    a, b = drawn((8, 6)), drawn((6, 8))
    wanted = bits(h100.matmul(a, b))
    wide = np.zeros((16, 12), np.float16)
    wide[::2, ::2] = a
    for other in (wide[::2, ::2], np.asfortranarray(a), a.astype(">f2"), memoryview(a)):
        assert (bits(h100.matmul(other, b)) == wanted).all()


class Tensor(ctypes.Structure):
    """DLManagedTensor of dlpack.h."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("dimensions", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
    ]


class Exporter:
    """An array of another library, like the bfloat16 that torch exports: NumPy itself cannot read it."""

    def __init__(self, data, code, device=1, strides=None):
        self.data, self.deleted = data, 0
        shape = (ctypes.c_int64 * data.ndim)(*data.shape)
        steps = (ctypes.c_int64 * data.ndim)(*strides) if strides else None

        def delete(_):
            self.deleted += 1

        self.tensor = Tensor(
            data.ctypes.data, device, 0, data.ndim, code, data.itemsize * 8, 1, shape, steps, 0, None,
            Tensor._fields_[-1][1](delete),
        )  # fmt: skip

    def __dlpack__(self, **_):
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return make(ctypes.addressof(self.tensor), b"dltensor", None)


def test_tensors_come_through_dlpack_and_are_given_back_once(h100):
    a, b = drawn((4, 6), ml_dtypes.bfloat16), drawn((6, 5), ml_dtypes.bfloat16)
    wanted = bits(h100.matmul(a, b))
    left, right = Exporter(a, 4), Exporter(b, 4)
    assert (bits(h100.matmul(left, right, op="bf16->f32")) == wanted).all()
    assert (left.deleted, right.deleted) == (1, 1)
    # Transposed by its strides, and of a type that the operation does not accept.
    turned = Exporter(np.ascontiguousarray(a.T).reshape(4, 6), 4, strides=(1, 4))
    assert (bits(h100.matmul(turned, b, op="bf16->f32")) == wanted).all()
    with pytest.raises(mxprobe.FormatError, match="a is bfloat16; f16 takes float16"):
        h100.matmul(Exporter(a, 4), drawn((6, 5)), op="f16->f32")
    elsewhere = Exporter(a, 4, device=2)
    with pytest.raises(TypeError, match="a is on another device .DLPack kind 2.; move it to the host first"):
        h100.matmul(elsewhere, b, op="bf16->f32")
    assert elsewhere.deleted == 1


def test_errors_are_one_sentence_with_the_value(h100):
    a, b = drawn((4, 6)), drawn((6, 5))
    for call, kind, words in [
        (lambda: h100.matmul(a.astype(np.float32), b, op="f16->f32"), TypeError, "a is float32; f16 takes float16 or uint16 of bits"),
        (lambda: h100.matmul(a, b[:3]), ValueError, "b has the shape (3, 5); (6, any) is expected"),
        (lambda: h100.matmul(a[0], b), ValueError, "a has the shape (6,); (any, any) is expected"),
        (lambda: h100.matmul(a, b, np.zeros((4, 4), np.float32)), ValueError, "c has the shape (4, 4); (4, 5)"),
        (lambda: h100.matmul(a, b, op="f99->f32"), ValueError, "`f99`"),
        (lambda: h100.matmul(a, b, op="bf16->f16"), ValueError, "h100 has no operation `bf16->f16`; it has "),
        (lambda: h100.operation("e4m3->f32"), ValueError, "`e4m3->f32` matches 4 operations of h100, which compute differently: "),
        (lambda: h100.matmul(a.astype(np.complex64), b), TypeError, "a is complex64, which does not match any format"),
        (lambda: h100.dot(np.zeros(17, np.float16), np.zeros(17, np.float16)), ValueError, "a has 17 elements; mma.m16n8k16.f32.f16.f16.f32 takes 16"),
        (lambda: mxprobe.model("h1000"), ValueError, "unknown model `h1000`"),
        (lambda: mxprobe.model("./no.toml"), ValueError, "`./no.toml`"),
        (lambda: mxprobe.decode("f8", 0), ValueError, "`f8`"),
        (lambda: mxprobe.decode("e4m3", 256), ValueError, "0x100 is wider than e4m3, which has 8 bits"),
        (lambda: mxprobe.decode("f16", -1), ValueError, "-0x1"),
    ]:  # fmt: skip
        with pytest.raises(kind) as raised:
            call()
        assert isinstance(raised.value, mxprobe.Error)
        assert words in str(raised.value) and "\n" not in str(raised.value), str(raised.value)


def test_dots_are_padded_and_traced(h100):
    a = np.array([3.0, 2.0**-14], np.float16)
    b = np.array([2.0, 2.0**-14], np.float16)
    d, why = h100.dot(a, b, np.float32(1), trace=True)
    assert d.dtype == np.float32 and d == 7.0 and h100.dot(a, b, np.float32(1)) == d
    # 2^-28 lies below the grid of 25 bits under 2^2.
    assert "lost 0x1p-28" in why and why.rstrip().endswith("d = 0x40e00000 = 7")
    assert h100.dot(np.zeros(0, np.float16), np.zeros(0, np.float16)) == 0


def test_values_are_exact_fractions():
    from fractions import Fraction

    for format, dtype in [("f16", np.float16), ("bf16", ml_dtypes.bfloat16), ("e4m3", ml_dtypes.float8_e4m3fn)]:
        width = 16 if format != "e4m3" else 8
        for code in range(0, 1 << width, 7 if width == 16 else 1):
            known = float(np.array([code], f"u{width // 8}").view(dtype)[0])
            found = mxprobe.decode(format, code)
            if np.isfinite(known):
                assert isinstance(found, Fraction) and found == Fraction(known)
            else:
                assert isinstance(found, float) and (found == known or (found != found and known != known))
    assert mxprobe.decode("s8", 0x80) == -128 and mxprobe.decode("u32", 0xFFFFFFFF) == 2**32 - 1
    assert mxprobe.decode("f64", 0x0010000000000000) == Fraction(2) ** -1022
    assert mxprobe.decode("ue8m0", 0) == Fraction(2) ** -127


def test_a_saved_model_is_the_same_model(h100, tmp_path):
    h100.save(tmp_path / "mine.toml")
    again = mxprobe.model(tmp_path / "mine.toml")
    assert again.operations == h100.operations and again.title == h100.title
    a, b = drawn((5, 40)), drawn((40, 7))
    assert (bits(again.matmul(a, b)) == bits(h100.matmul(a, b))).all()
    assert "h100" in repr(h100) and "fraction_bits" in h100.explain() or "below" in h100.explain()


def test_the_interpreter_is_free_while_a_model_computes(h100):
    a, b = drawn((1024, 1024)), drawn((1024, 1024))
    ticks, done = 0, threading.Event()

    def work():
        h100.matmul(a, b)
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    while not done.is_set():
        ticks += 1
        time.sleep(0.001)
    thread.join()
    assert ticks >= 3


def test_ctrl_c_ends_a_product(interruptible):
    # Hours of work, unless it is stopped.
    program = """
import mxprobe, numpy as np
a = np.ones((4096, 65536), np.float16)
print("begun", flush=True)
try:
    mxprobe.model("serial").matmul(a, np.ones((65536, 4096), np.float16), op="f16->f32")
except KeyboardInterrupt:
    print("stopped")
"""
    child = interruptible(program)
    assert child.stdout.readline() == "begun\n"
    time.sleep(0.5)
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=300)[0] == "stopped\n" and child.returncode == 0
