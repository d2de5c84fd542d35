"""Makes Python callables a device for mxprobe. One file, standard library only: copy it next to your program.

    from mxprobe_worker import Device, Operation, serve

    def matmul(a, b, c):            # arrays of m×k, k×n and m×n
        return a @ b + c            # an array of m×n

    serve(Device("my library", [Operation("gemm.m*n*k*.f32.f32.f32.f32", matmul)]))

    $ mxprobe --device 'exec:python3 my_program.py'

An operation is named FAMILY.mMnNkK.D.A.B.C, formats last; `*` leaves a size to the user (`--shape MxNxK`).

With NumPy, a callable receives arrays of the formats' types; bf16, fp8 and narrower formats have `ml_dtypes` types if
it is installed, otherwise they are bits in unsigned integers. Without NumPy, it receives two-dimensional memoryviews.
It returns the same for D, in D's type and shape, or its bytes, row-major and little-endian. An exception becomes the
answer `failed`.
"""

import json
import os
import re
import sys
import traceback

try:
    import numpy
except ImportError:
    numpy = None
try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

__all__ = ["Device", "Operation", "serve"]

PROTOCOL = "mxprobe-device/1"

# Format: bytes per element, NumPy's type, ml_dtypes' type, memoryview's code. Elements of less than 8 bits take one
# byte whose high bits are zero; tf32 and xf32 are f32 whose low 13 bits have no meaning.
FORMATS = {
    "f64": (8, "float64", None, "d"),
    "f32": (4, "float32", None, "f"),
    "tf32": (4, "float32", None, "f"),
    "xf32": (4, "float32", None, "f"),
    "f16": (2, "float16", None, "H"),
    "bf16": (2, "uint16", "bfloat16", "H"),
    "e4m3": (1, "uint8", "float8_e4m3fn", "B"),
    "e5m2": (1, "uint8", "float8_e5m2", "B"),
    "e4m3fnuz": (1, "uint8", "float8_e4m3fnuz", "B"),
    "e5m2fnuz": (1, "uint8", "float8_e5m2fnuz", "B"),
    "e3m2": (1, "uint8", "float6_e3m2fn", "B"),
    "e2m3": (1, "uint8", "float6_e2m3fn", "B"),
    "e2m1": (1, "uint8", "float4_e2m1fn", "B"),
    "ue8m0": (1, "uint8", "float8_e8m0fnu", "B"),
    "ue4m3": (1, "uint8", None, "B"),
    "s8": (1, "int8", None, "b"),
    "u8": (1, "uint8", None, "B"),
    "s4": (1, "uint8", "int4", "B"),
    "u4": (1, "uint8", "uint4", "B"),
    "s16": (2, "int16", None, "h"),
    "s32": (4, "int32", None, "i"),
    "u32": (4, "uint32", None, "I"),
}


class Operation:
    """One multiply-add: D = function(A, B, C), with the scales of A and of B after C if its id names block scales.

    `function` computes one tile. With `batch=True` it computes all tiles of a request: its arrays have the tile as
    an additional first dimension. With `bits=True` it receives and returns bits in unsigned integers, for any format.
    """

    def __init__(self, id, function, *, batch=False, bits=False, scope=None, instruction=None):
        words = id.split(".")
        pattern = re.fullmatch(r"m(\*|[1-9]\d*)n(\*|[1-9]\d*)k(\*|[1-9]\d*)", words[1]) if len(words) >= 6 else None
        if not pattern:
            raise ValueError(f"`{id}` is not an operation id: the form is FAMILY.mMnNkK.D.A.B.C")
        unknown = [name for name in words[2:6] if name not in FORMATS]
        if unknown:
            raise ValueError(f"`{id}`: no format `{unknown[0]}`; the formats are {' '.join(FORMATS)}")
        self.id, self.function, self.batch, self.bits = id, function, batch, bits
        self.described = {"id": id}
        if scope is not None:
            self.described["scope"] = scope
        if instruction is not None:
            self.described["instruction"] = instruction
        self._words, self._sizes = words, pattern.groups()
        scale = re.search(r"\.block([1-9]\d*)\.(\w+)", id)
        self._block, self._scale = (int(scale[1]), scale[2]) if scale else (None, None)

    def sizes_of(self, id):
        """m, n and k of a fixed id; None if it belongs to another operation."""
        words = id.split(".")
        sizes = re.fullmatch(r"m(\d+)n(\d+)k(\d+)", words[1]) if len(words) == len(self._words) else None
        if not sizes or words[:1] + words[2:] != self._words[:1] + self._words[2:]:
            return None
        if any(own not in ("*", size) for own, size in zip(self._sizes, sizes.groups())):
            return None
        return tuple(int(size) for size in sizes.groups())

    def run(self, sizes, tiles, parts):
        """Computes the bytes of D of a batch of tiles."""
        m, n, k = sizes
        d, a, b, c = self._words[2:6]
        operands = [(a, m, k), (b, k, n), (c, m, n)]
        if self._block:
            blocks = -(-k // self._block)
            operands += [(self._scale, m, blocks), (self._scale, blocks, n)]
        if len(parts) != len(operands):
            raise ProtocolError(f"{len(parts)} operands were sent for {self.id}, which takes {len(operands)}")
        arrays = []
        for part, (name, rows, columns) in zip(parts, operands):
            if len(part) != tiles * rows * columns * FORMATS[name][0]:
                raise ProtocolError(f"{len(part)} bytes were sent for {tiles} tiles of {rows}×{columns} {name}")
            arrays.append(self._array(name, part, (tiles, rows, columns)))
        if self.batch:
            return self._bytes(d, self.function(*arrays), (tiles, m, n))
        results = []
        for tile in range(tiles):
            operands = [_tile_of(array, tile) for array in arrays]
            results.append(self._bytes(d, self.function(*operands), (m, n)))
        return b"".join(results)

    def _type(self, name):
        size, plain, narrow, _ = FORMATS[name]
        if self.bits:
            plain, narrow = f"uint{8 * size}", None
        own = getattr(ml_dtypes, narrow, None) if ml_dtypes and narrow else None
        return numpy.dtype(own) if own else numpy.dtype(plain).newbyteorder("<")

    def _array(self, name, part, shape):
        if numpy:
            return numpy.frombuffer(part, dtype=self._type(name)).reshape(shape)
        size, code = FORMATS[name][0], FORMATS[name][3]
        if self.bits:
            code = {1: "B", 2: "H", 4: "I", 8: "Q"}[size]
        # A memoryview without elements cannot be given a shape: an empty batch is a flat one.
        return memoryview(part).cast(code, shape) if part else memoryview(part).cast(code)

    def _bytes(self, name, result, shape):
        count = FORMATS[name][0]
        for size in shape:
            count *= size
        if isinstance(result, (bytes, bytearray)):
            data = bytes(result)
        elif numpy and isinstance(result, (numpy.ndarray, numpy.generic)):
            wanted = self._type(name)
            if result.dtype != wanted:
                raise TypeError(f"the result is {result.dtype}, but D is {name} ({wanted})")
            if result.shape != shape:
                raise ValueError(f"the result has the shape {result.shape}, but D has {shape}")
            data = result.tobytes()
        else:
            data = memoryview(result).tobytes()
        if len(data) != count:
            raise ValueError(f"the result has {len(data)} bytes, but D has {count}")
        return data


class Device:
    """A display name and operations. `fingerprint`: a name for programs, identical for all devices of the same kind;
    `kind`: `hardware`, `software` or `model`; `version`: of the underlying library; `properties`: details to record."""

    def __init__(self, name, operations, *, selector="0", fingerprint=None, kind="software", version=None, properties=None):
        self.operations, self.selector = list(operations), selector
        self.described = {"selector": selector, "name": name, "kind": kind}
        if fingerprint is not None:
            self.described["fingerprint"] = fingerprint
        if version is not None:
            self.described["driver"] = {"name": name, "version": version, "api_version": ""}
        if properties:
            self.described["properties"] = {key: str(value) for key, value in properties.items()}
        self.described["operations"] = [operation.described for operation in self.operations]


class ProtocolError(Exception):
    """The error for a request that cannot be answered, with its kind."""

    def __init__(self, message, kind="invalid"):
        super().__init__(message)
        self.kind = kind


def serve(devices):
    """Answers mxprobe's requests about one or several devices until standard input closes."""
    devices = [devices] if isinstance(devices, Device) else list(devices)
    requests, answers = _streams()
    while True:
        line = requests.readline()
        if not line:
            return
        if not line.strip():
            continue
        part = None
        try:
            request = _request(line)
            parts = _parts(requests, request.get("bytes", []))
            if parts is None:
                return
            answer, part = _answer(devices, request, parts)
        except Exception as error:  # an exception of the callable becomes the answer
            if not isinstance(error, ProtocolError):
                traceback.print_exc()
            answer = {"answer": "failed", "kind": _kind(error), "message": _one_line(error)}
        if part is not None:
            answer["bytes"] = [len(part)]
        try:
            answers.write(json.dumps(answer).encode() + b"\n" + (part or b""))
            answers.flush()
        except BrokenPipeError:
            return


def _streams():
    """The protocol's standard input and output. From now on, output that a library prints goes to standard error, and
    its input is empty, so that neither can mix with the protocol's bytes."""
    sys.stdout.flush()
    given, taken = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    if os.name == "nt":
        import msvcrt

        for stream in (given, taken):
            msvcrt.setmode(stream, os.O_BINARY)
    return os.fdopen(given, "rb", buffering=1 << 20), os.fdopen(taken, "wb", buffering=1 << 20)


def _request(line):
    request = json.loads(line)
    lengths = request.get("bytes", []) if isinstance(request, dict) else None
    if not isinstance(lengths, list) or not all(type(length) is int and length >= 0 for length in lengths):
        raise ProtocolError(f"{line[:80]!r} is not a request of {PROTOCOL}")
    return request


def _parts(stream, lengths):
    """Reads parts of these lengths into writable memory; None if the stream ends early."""
    parts = []
    for length in lengths:
        try:
            part = bytearray(length)
        except (MemoryError, OverflowError):
            # The rest of the stream cannot be understood.
            sys.exit(f"no memory for an operand of {length} bytes")
        if stream.readinto(part) != length:
            return None
        parts.append(part)
    return parts


def _answer(devices, request, parts):
    ask = request.get("ask")
    if ask == "discover":
        if request.get("protocol") != PROTOCOL:
            raise ProtocolError(f"the protocol `{request.get('protocol')}` is not {PROTOCOL}")
        return {"answer": "found", "protocol": PROTOCOL, "devices": [device.described for device in devices]}, None
    device = next((device for device in devices if device.selector == request.get("device")), None)
    if device is None:
        raise ProtocolError(f"unknown device `{request.get('device')}`")
    if ask == "open":
        return {"answer": "opened", "device": device.described}, None
    if ask != "execute":
        raise ProtocolError(f"this program does not answer `{ask}`", "unsupported")
    id, tiles = request.get("operation"), request.get("tiles")
    if not isinstance(id, str) or type(tiles) is not int or tiles < 0:
        raise ProtocolError("`execute` needs an operation and a number of tiles")
    for operation in device.operations:
        sizes = operation.sizes_of(id)
        if sizes:
            return {"answer": "done"}, operation.run(sizes, tiles, parts)
    raise ProtocolError(f"the device `{device.selector}` has no operation {id}")


def _tile_of(array, tile):
    if numpy:
        return array[tile]
    # A memoryview of several dimensions cannot be sliced to fewer dimensions.
    _, rows, columns = array.shape
    size = rows * columns * array.itemsize
    return array.cast("B")[tile * size : (tile + 1) * size].cast(array.format, (rows, columns))


def _kind(error):
    if isinstance(error, ProtocolError):
        return error.kind
    if isinstance(error, MemoryError):
        return "out_of_memory"
    if isinstance(error, NotImplementedError):
        return "unsupported"
    return "driver"


def _one_line(error):
    text = " ".join(str(error).split())
    if isinstance(error, ProtocolError):
        return text
    name = type(error).__name__
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{name}: {text} ({os.path.basename(last.filename)}, line {last.lineno})" if text else name
