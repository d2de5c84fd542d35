"""Executable models of matrix units."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, overload

from . import _mxprobe
from ._arrays import FORMATS, Array, format_of, from_bytes, to_bytes
from ._errors import InvalidError
from ._files import replace


@dataclass(frozen=True)
class Operation:
    """One operation of a unit: a shape, the formats of A, B, C and D, and further properties."""

    id: str
    shape: tuple[int, int, int]
    a: str
    b: str
    c: str
    d: str
    #: Consecutive k that share a scale, if the operation has block scales.
    block: int | None
    #: The format of those scales.
    scale: str | None
    instruction: str | None
    aliases: list[str]

    def __str__(self) -> str:
        return self.id


class Trace(str):
    """How a model computes a dot, addition by addition, as text; ``print`` it."""

    def __repr__(self) -> str:
        return str(self)


class Model:
    """An executable model of a matrix unit, bit for bit.

    ``mxprobe.model(name)`` loads one.
    """

    def __init__(self, inner: _mxprobe.Model) -> None:
        self._inner = inner

    @property
    def name(self) -> str:
        """The name it was loaded by: ``h100``, ``./mine.toml``."""
        return self._inner.name

    @property
    def title(self) -> str:
        """The unit's display name."""
        return self._inner.title

    @property
    def variants(self) -> dict[str, str]:
        """Alternative models of the same unit if sources disagree: ``model("NAME@VARIANT")``."""
        return dict(self._inner.variants)

    @property
    def operations(self) -> list[str]:
        """The ids of its operations."""
        return self._inner.operations()

    def operation(self, op: str) -> Operation:
        """Finds an operation by name.

        ``op`` is an id, an instruction, an alias, or formats: ``f16->f32`` is the operation with the longest k that
        multiplies f16 into f32, ``e4m3*e5m2->f32`` names A and B separately.

        Raises ``InvalidError`` if there is none, or if several match that compute differently.
        """
        return Operation(**self._inner.operation_named(op))

    def matmul(
        self,
        a: Any,
        b: Any,
        c: Any = None,
        op: str | None = None,
        *,
        scale_a: Any = None,
        scale_b: Any = None,
    ) -> Array:
        """D = A·B + C of any sizes, as the unit computes it with consecutive operations along k.

        ``a`` is m×k, ``b`` k×n, ``c`` m×n (default: +0); the result is m×n, in the format of D. Arguments may be arrays
        of NumPy and ml_dtypes, or objects with the buffer protocol or DLPack (including torch's bfloat16), in the
        operation's own formats, or unsigned integers of the same width, which are bits; nothing is rounded. ``op`` is
        as in ``operation``; the default follows from the types of ``a`` and ``b`` (with f32 or s32 results, f64 for
        f64). tf32 takes float32, whose low 13 bits the unit does not read.

        An operation with block scales takes ``scale_a``, m×⌈k/block⌉, and ``scale_b``, ⌈k/block⌉×n.

        Each element of D goes through ⌈k / the operation's k⌉ operations, k ascending, each with the previous d as its
        c; the last is padded with +0. All cores compute, without the interpreter's lock, and Ctrl-C works. If NumPy and
        ml_dtypes lack the format of D, or ml_dtypes is not installed, D is an array of bits.

        Raises ``FormatError`` for a wrong type, ``InvalidError`` for a wrong shape or operation.
        """
        of, (m, n, k), operands = self._operands(a, b, c, op, scale_a, scale_b)
        found = self._inner.multiply(of.id, (m, n, k), *operands)
        return from_bytes(found, of.d, (m, n))

    def intervals(
        self,
        a: Any,
        b: Any,
        c: Any = None,
        op: str | None = None,
        order: Literal["given", "chain", "any"] = "any",
        *,
        scale_a: Any = None,
        scale_b: Any = None,
    ) -> tuple[Array, Array]:
        """The lowest and highest admissible values of D = A·B + C in an order, as two m×n arrays of float64.

        Operands, ``op`` and errors are as in ``matmul``, orders as in ``mxprobe.testing.assert_mma_close``. Both ends
        are values of the format of D and belong to the interval. They are NaN if the element is a NaN, and −∞ and ∞ if
        a partial sum may overflow.
        """
        of, (m, n, k), operands = self._operands(a, b, c, op, scale_a, scale_b)
        low, high = self._inner.intervals(of.id, (m, n, k), *operands, order)
        return from_bytes(low, "f64", (m, n)), from_bytes(high, "f64", (m, n))

    def _check(
        self, a: Any, b: Any, c: Any, d: Any, op: str | None, order: str, scale_a: Any, scale_b: Any
    ) -> tuple[int, int, list[tuple[int, int, float, float, float, float, float, float]]]:
        of, (m, n, k), operands = self._operands(a, b, c, op, scale_a, scale_b)
        judged, _ = to_bytes(d, "d", of.d, (m, n))
        return self._inner.check(of.id, (m, n, k), *operands, judged, order)

    def _operands(
        self, a: Any, b: Any, c: Any, op: str | None, scale_a: Any, scale_b: Any
    ) -> tuple[Operation, tuple[int, int, int], tuple[bytes, bytes, bytes | None, bytes | None, bytes | None]]:
        of = self.operation(op if op is not None else self._default(a, b))
        left, (m, k) = to_bytes(a, "a", of.a, (None, None))
        right, (_, n) = to_bytes(b, "b", of.b, (k, None))
        added = None if c is None else to_bytes(c, "c", of.c, (m, n))[0]
        return of, (m, n, k), (left, right, added, *scales_of(of, scale_a, scale_b, (m,), (n,), k))

    @overload
    def dot(self, a: Any, b: Any, c: Any = ..., op: str | None = ..., *, trace: Literal[False] = ...) -> Any: ...

    @overload
    def dot(self, a: Any, b: Any, c: Any = ..., op: str | None = ..., *, trace: Literal[True]) -> tuple[Any, Trace]: ...

    def dot(
        self,
        a: Any,
        b: Any,
        c: Any = None,
        op: str | None = None,
        *,
        trace: bool = False,
        scale_a: Any = None,
        scale_b: Any = None,
    ) -> Any:
        """d = Σ aᵢ·bᵢ + c by one operation; with ``trace``, also the unit's computation of it.

        ``a`` and ``b`` have as many elements as the operation's k, or fewer: the rest is +0. ``c`` is one element
        (default: +0). Types, ``op`` and errors are as in ``matmul``. Returns a scalar of the format of D, or that and a
        ``Trace``: for each addition its terms with exact values and exponents, the grid, what was kept and lost of each
        term, and the rounding.
        """
        of = self.operation(op if op is not None else self._default(a, b))
        k = of.shape[2]
        left, (length,) = to_bytes(a, "a", of.a, (None,))
        right, _ = to_bytes(b, "b", of.b, (length,))
        if length > k:
            raise InvalidError(f"a has {length} elements; {of.id} takes {k}, and `matmul` chains longer sums")
        size = len(left) // max(1, length) * k
        left, right = left.ljust(size, b"\0"), right.ljust(len(right) // max(1, length) * k, b"\0")
        if length == 0:
            left, right = self._zeros(of.a, k), self._zeros(of.b, k)
        added = self._zeros(of.c, 1) if c is None else to_bytes(c, "c", of.c, ())[0]
        one, other = scales_of(of, scale_a, scale_b, (), (), k)
        scales = None if one is None or other is None else (one, other)
        found, words = self._inner.dot(of.id, left, right, added, scales, trace)
        d = from_bytes(found, of.d, (1,))[0]
        return (d, Trace(words)) if trace else d

    def explain(self) -> str:
        """Describes the model: its trees, its adders, and the source of each value."""
        return self._inner.explain()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model to a TOML file that ``model`` and the command can load."""
        replace(Path(path), self._inner.to_toml())

    @staticmethod
    def _zeros(format: str, count: int) -> bytes:
        return bytes(FORMATS[format][1] * count)

    @staticmethod
    def _default(a: Any, b: Any) -> str:
        left, right = format_of(a, "a"), format_of(b, "b")
        integers = left in ("s8", "u8", "s4", "u4", "s16")
        d = "s32" if integers else "f64" if left == "f64" else "f32"
        return f"{left}->{d}" if left == right else f"{left}*{right}->{d}"

    def __repr__(self) -> str:
        return f"<mxprobe model {self.name}: {self.title}, {len(self.operations)} operations>"


def scales_of(
    of: Operation, scale_a: Any, scale_b: Any, rows: tuple[int, ...], columns: tuple[int, ...], k: int, hint: str = ""
) -> tuple[bytes | None, bytes | None]:
    """The bytes of both block scales, or ``None`` twice for an operation without them.

    ``hint`` is appended to the error if such an operation is given some.
    """
    if of.block is None or of.scale is None:
        if scale_a is not None or scale_b is not None:
            raise InvalidError(f"{of.id} takes no block scales{hint}")
        return None, None
    if scale_a is None or scale_b is None:
        raise InvalidError(f"{of.id} takes scale_a and scale_b, one {of.scale} for {of.block} elements of k")
    blocks = -(-k // of.block)
    one, _ = to_bytes(scale_a, "scale_a", of.scale, (*rows, blocks))
    other, _ = to_bytes(scale_b, "scale_b", of.scale, (blocks, *columns))
    return one, other


def model(name: str | os.PathLike[str]) -> Model:
    """Loads a model by name (``h100``), alias (``hopper``), variant (``NAME@VARIANT``) or TOML file.

    Raises ``InvalidError`` if there is none, or the file cannot be read.
    """
    return Model(_mxprobe.Model(os.fspath(name)))


def models() -> list[str]:
    """The names of the models that come with the package."""
    return _mxprobe.models()
