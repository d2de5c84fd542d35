"""Converts arrays to the bytes of a format, and back."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _mxprobe
from ._errors import FormatError, InvalidError

Array = npt.NDArray[Any]

#: The bits of an element, and the bytes that store it, by format name.
FORMATS = {name: (bits, size) for name, bits, size in _mxprobe.formats()}

#: The NumPy or ml_dtypes type of each format.
_DTYPES = {
    "f64": "float64",
    "f32": "float32",
    "tf32": "float32",
    "xf32": "float32",
    "f16": "float16",
    "bf16": "bfloat16",
    "e4m3": "float8_e4m3fn",
    "e5m2": "float8_e5m2",
    "e4m3fnuz": "float8_e4m3fnuz",
    "e5m2fnuz": "float8_e5m2fnuz",
    "e3m2": "float6_e3m2fn",
    "e2m3": "float6_e2m3fn",
    "e2m1": "float4_e2m1fn",
    "ue8m0": "float8_e8m0fnu",
    "s8": "int8",
    "u8": "uint8",
    "s4": "int4",
    "u4": "uint4",
    "s16": "int16",
    "s32": "int32",
    "u32": "uint32",
}

#: The format of a type if nothing else specifies one.
_OF_DTYPE = {name: format for format, name in reversed(_DTYPES.items())}


def check_format(format: str) -> str:
    """Returns the name if it is a format's; otherwise raises ``InvalidError``."""
    if format not in FORMATS:
        raise InvalidError(f"`{format}` is not a format; the formats are {', '.join(FORMATS)}")
    return format


def dtype_of(format: str) -> np.dtype[Any] | None:
    """The array type of a format; ``None`` if it needs ml_dtypes, which is not installed, or there is none."""
    name = _DTYPES.get(format)
    if name is None:
        return None
    try:
        return np.dtype(name)
    except TypeError:
        pass
    try:
        types = importlib.import_module("ml_dtypes")
    except ImportError:
        return None
    found = getattr(types, name, None)
    return None if found is None else np.dtype(found)


def bits_of(format: str) -> np.dtype[Any]:
    """The type of an array of bits: ``uint16`` for f16."""
    return np.dtype(f"u{FORMATS[format][1]}")


def array_of(value: Any, name: str) -> tuple[str, Array]:
    """The name of an array's type, and the array; elements without a NumPy type are returned as bits."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.dtype.name, np.asarray(value)
    try:
        return _of_buffer(value)
    except (TypeError, ValueError, BufferError):
        pass
    if hasattr(value, "__dlpack__"):
        dtype, shape, data = _mxprobe.dlpack(value.__dlpack__(), name)
        size = len(data) // max(1, int(np.prod(shape)))
        return dtype, np.frombuffer(data, f"u{max(1, size)}").reshape(shape)
    found = np.asarray(value)
    return found.dtype.name, found


def _of_buffer(value: Any) -> tuple[str, Array]:
    found = np.asarray(memoryview(value))
    return found.dtype.name, found


def format_of(value: Any, name: str) -> str:
    """The format that an array's own type implies."""
    dtype, _ = array_of(value, name)
    format = _OF_DTYPE.get(dtype)
    if format is None:
        raise FormatError(f"{name} is {dtype}, which does not match any format; `op` names the operation")
    return format


def to_bytes(value: Any, name: str, format: str, shape: tuple[int | None, ...]) -> tuple[bytes, tuple[int, ...]]:
    """The bytes of an array of a format, row-major, and its shape; ``None`` in ``shape`` accepts any length."""
    dtype, array = array_of(value, name)
    fits = len(array.shape) == len(shape) and all(want in (None, have) for want, have in zip(shape, array.shape))
    if not fits:
        wanted = "(" + ", ".join("any" if length is None else str(length) for length in shape) + ")"
        raise InvalidError(f"{name} has the shape {_tuple(array.shape)}; {wanted} is expected")
    bits, size = FORMATS[format]
    wanted_type = _DTYPES.get(format)
    unsigned = bits_of(format)
    integers = format[0] in "su" and format != "ue8m0" and format != "ue4m3"
    if dtype == wanted_type or (dtype == unsigned.name and not integers):
        pass
    elif format == "ue4m3" and dtype == "float8_e4m3fn":
        pass
    else:
        wanted_words = [word for word in (wanted_type, None if integers else f"{unsigned.name} of bits") if word]
        raise FormatError(f"{name} is {dtype}; {format} takes {' or '.join(dict.fromkeys(wanted_words))}")
    if array.dtype.itemsize != size:
        raise FormatError(f"{name} has elements of {array.dtype.itemsize} bytes; {format} has {size}")
    array = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False)).reshape(array.shape)
    if bits < 8 and dtype == wanted_type:
        array = array.view(np.uint8) & np.uint8((1 << bits) - 1)
    return array.tobytes(), tuple(array.shape)


def from_bytes(data: bytes | bytearray | memoryview, format: str, shape: tuple[int, ...]) -> Array:
    """An array of a format that shares the bytes; an array of bits if the format has no type."""
    bits, _ = FORMATS[format]
    dtype = dtype_of(format)
    found = np.frombuffer(data, bits_of(format).newbyteorder("<")).reshape(shape)
    if dtype is None:
        return found
    if bits < 8 and format[0] == "s":  # int4 is sign-extended to the whole byte
        high = np.uint8((0xFF << (bits - 1)) & 0xFF)
        found = np.where(found & np.uint8(1 << (bits - 1)), found | high, found).astype(np.uint8)
    return found.view(dtype)


def _tuple(shape: tuple[int, ...]) -> str:
    return "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"
