"""Devices: callables, models, and the devices of this machine."""

from __future__ import annotations

import atexit
import importlib
import threading
from collections.abc import Callable
from typing import Any

from . import _mxprobe
from ._arrays import Array, bits_of, check_format, dtype_of, from_bytes, to_bytes
from ._command import again
from ._errors import FormatError, InvalidError
from ._model import Model

#: The default time limit of one call, in seconds; the command's limit for hardware is the same.
TIMEOUT = 60.0


class Device:
    """Something that computes D = A·B + C and can be probed. ``mxprobe.device`` makes one from a callable."""

    def __init__(self, inner: _mxprobe.Device) -> None:
        self._inner = inner

    @property
    def name(self) -> str:
        """Its display name."""
        return self._inner.name

    @property
    def operations(self) -> list[str]:
        """The ids of its operations."""
        return self._inner.operations()

    def __repr__(self) -> str:
        return f"<mxprobe device {self._inner.selector}: {', '.join(self.operations[:3])}>"


def device(
    compute: Callable[..., Any],
    a: str,
    b: str | None = None,
    c: str | None = None,
    d: str = "f32",
    *,
    shape: tuple[int, int, int],
    name: str | None = None,
    batched: bool = False,
    arrays: str = "numpy",
    timeout: float = TIMEOUT,
) -> Device:
    """Makes a device with one operation, ``gemm.mMnNkK.D.A.B.C``, from a callable of this process.

    ``compute(a, b, c)`` gets a of m×k, b of k×n and c of m×n, and returns D, m×n, in the format of D: nothing is
    converted. With ``batched``, each has the number of tiles as a first dimension. ``a``, ``b`` (default: that of a),
    ``c`` (default: that of d) and ``d`` are formats; ``shape`` is (m, n, k). ``arrays`` selects the type of its
    arguments: ``numpy`` (with the types of ml_dtypes), ``torch``, or ``bits``, unsigned integers; it may return any of
    these.

    An exception becomes the error of the operation, with the same message. If one call takes longer than ``timeout``
    seconds, the operation has failed, and the device is not asked again until the call returns. The callable runs on
    its own thread, one call at a time.
    """
    formats = {"a": check_format(a), "b": check_format(b or a), "c": check_format(c or d), "d": check_format(d)}
    if len(shape) != 3 or not all(isinstance(size, int) and 1 <= size <= 1 << 16 for size in shape):
        raise InvalidError(f"the shape is {shape}; (m, n, k) is expected, each from 1 to 65536")
    if not callable(compute):
        raise InvalidError(f"{compute!r} cannot be called")
    if arrays not in ("numpy", "torch", "bits"):
        raise InvalidError(f"arrays={arrays!r} is neither numpy, torch nor bits")
    m, n, k = shape
    sizes = {"a": (m, k), "b": (k, n), "c": (m, n)}
    if arrays == "numpy":
        for format in formats.values():
            if dtype_of(format) is None:
                raise FormatError(f"NumPy has no type for {format}: install ml_dtypes, or take arrays='bits'")
    make = {"numpy": _numpy, "torch": _torch, "bits": _bits}[arrays]

    def call(tiles: int, *operands: bytes) -> bytes:
        given = [
            make(data, formats[which], (tiles, *sizes[which])) for which, data in zip(("a", "b", "c"), operands)
        ]
        if batched:
            return to_bytes(compute(*given), "what the callable returned", formats["d"], (tiles, m, n))[0]
        found = (compute(*(tile[at] for tile in given)) for at in range(tiles))
        return b"".join(to_bytes(one, "what the callable returned", formats["d"], (m, n))[0] for one in found)

    words = name if name is not None else getattr(compute, "__qualname__", type(compute).__qualname__)
    id = f"gemm.m{m}n{n}k{k}.{formats['d']}.{formats['a']}.{formats['b']}.{formats['c']}"
    inner, calls = _mxprobe.Device.of_callable(words, id, float(timeout))
    # A daemon thread: a callable that never returns must not keep the program from exiting.
    threading.Thread(target=_answer, args=(calls, call), name=f"mxprobe {words}", daemon=True).start()
    return Device(inner)


# Runs before the interpreter ends its threads.
atexit.register(_mxprobe.ending)


def _answer(calls: _mxprobe.Calls, call: Callable[..., bytes]) -> None:
    """Makes calls until the device is gone."""
    while (asked := calls.next()) is not None:
        try:
            d = call(*asked)
        except BaseException as raised:
            calls.failed(raised)
        else:
            calls.done(d)
        del asked


def reach(of: Device | Model | str, op: list[str], timeout: float | None) -> _mxprobe.Device:
    """The device for a function's argument: a device, a model, or a selector such as ``cpu:0`` or ``exec:COMMAND``.

    Operations of a program that leave their sizes open get the sizes of the ids in ``op``.
    """
    if isinstance(of, Device):
        return of._inner
    if isinstance(of, Model):
        return _mxprobe.Device.of_model(of._inner)
    if isinstance(of, str):
        return _mxprobe.Device.open(of, op, TIMEOUT if timeout is None else float(timeout), again())
    raise InvalidError(f"{of!r} is not a device, a model or a selector; `mxprobe.device` makes a device of a callable")


def _numpy(data: bytes, format: str, shape: tuple[int, ...]) -> Array:
    # A copy, so that a callable may write into it.
    return from_bytes(bytearray(data), format, shape)


def _bits(data: bytes, format: str, shape: tuple[int, ...]) -> Array:
    return from_bytes(bytearray(data), format, shape).view(bits_of(format))


def _torch(data: bytes, format: str, shape: tuple[int, ...]) -> Any:
    torch = importlib.import_module("torch")
    dtype = dtype_of(format)
    named = getattr(torch, dtype.name, None) if dtype is not None else None
    if named is None:
        raise FormatError(f"torch has no type for {format}")
    return torch.frombuffer(bytearray(data), dtype=named).reshape(shape)
