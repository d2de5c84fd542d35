"""Recipes: how a library computes products with a unit."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from . import _mxprobe
from ._arrays import Array, dtype_of, format_of, from_bytes, to_bytes
from ._errors import InvalidError
from ._model import Operation, Trace, scales_of

_NOT_SCALES = "; inputs of an epilogue go into `inputs`"


class Recipe:
    """A library's product: the unit's instruction, how k is divided and merged, and the result that is stored.

    ``mxprobe.recipe(name)`` loads one.
    """

    def __init__(self, inner: _mxprobe.Recipe) -> None:
        self._inner = inner

    @property
    def name(self) -> str:
        """The name it was loaded by: ``cublaslt-sm89-fp8``, ``./mine.toml``."""
        return self._inner.name

    @property
    def title(self) -> str:
        """A description."""
        return self._inner.title

    @property
    def model(self) -> str:
        """The name of the model whose operations it uses."""
        return self._inner.model

    @property
    def case(self) -> str | None:
        """The chosen case; ``None`` if the shape decides."""
        return self._inner.case

    @property
    def cases(self) -> list[str]:
        """The names of its cases."""
        return self._inner.cases()

    @property
    def operations(self) -> list[Operation]:
        """The operations of the chosen case, or of all cases."""
        return [Operation(**one) for one in self._inner.operations()]

    def explain(self) -> str:
        """Describes every case: its levels, outermost first, the unit, and the stored result."""
        return self._inner.explain()

    def matmul(
        self,
        a: Any,
        b: Any,
        c: Any = None,
        op: str | None = None,
        *,
        inputs: Mapping[str, Any] | None = None,
        scale_a: Any = None,
        scale_b: Any = None,
    ) -> Array:
        """D as the recipe computes it, bit for bit.

        ``a`` is m×k, ``b`` k×n, ``c`` m×n in the case's own format (default: +0); the result is m×n. Types are as in
        ``Model.matmul``. ``op`` names the operation; by default, the types of ``a`` and ``b`` select one of the
        recipe's. ``inputs`` are the further inputs of the epilogue, such as ``{"alpha": 0.5}``: numbers, which are
        rounded to the input's format, or arrays of it with one, m, n or m×n elements as the case requires. An operation
        with block scales takes ``scale_a`` and ``scale_b``.

        The case is the chosen one, otherwise the first that holds for the shape and the operation. All cores compute,
        without the interpreter's lock; the bits do not depend on their number.

        Raises ``FormatError`` for a wrong type, ``InvalidError`` if no case holds, or for a wrong shape, operation or input.
        """
        of = self._operation(a, b, op)
        left, (m, k) = to_bytes(a, "a", of.a, (None, None))
        right, (_, n) = to_bytes(b, "b", of.b, (k, None))
        c_format, d_format, _, wanted = self._inner.wanted(of.id, (m, n), k)
        added = None if c is None else to_bytes(c, "c", c_format, (m, n))[0]
        scales = scales_of(of, scale_a, scale_b, (m,), (n,), k, _NOT_SCALES)
        given = _given(wanted, inputs)
        found = self._inner.multiply(of.id, (m, n, k), left, right, added, *scales, given)
        return from_bytes(found, d_format, (m, n))

    def element(
        self,
        a: Any,
        b: Any,
        c: Any = None,
        op: str | None = None,
        *,
        inputs: Mapping[str, Any] | None = None,
        scale_a: Any = None,
        scale_b: Any = None,
    ) -> tuple[Any, Trace]:
        """One element of D and the recipe's computation of it, step by step, by the exact evaluator.

        ``a`` is a row of A, ``b`` a column of B, ``c`` one element; ``inputs`` are single numbers. The case is the
        chosen one, otherwise the first that holds for k, whatever m and n are. Types and errors are as in ``matmul``.
        Returns a scalar of the format of D, and a ``Trace``: the result of each addition inside the unit if there are
        few, each partial sum, each merge, and the stored result.
        """
        of = self._operation(a, b, op)
        left, (k,) = to_bytes(a, "a", of.a, (None,))
        right, _ = to_bytes(b, "b", of.b, (k,))
        c_format, d_format, _, wanted = self._inner.wanted(of.id, None, k)
        added = None if c is None else to_bytes(c, "c", c_format, ())[0]
        one, other = scales_of(of, scale_a, scale_b, (), (), k, _NOT_SCALES)
        scales = None if one is None or other is None else (one, other)
        found, words = self._inner.element(of.id, k, left, right, added, scales, _given(wanted, inputs))
        return from_bytes(found, d_format, (1,))[0], Trace(words)

    def _operation(self, a: Any, b: Any, op: str | None) -> Operation:
        if op is not None:
            return Operation(**self._inner.operation_named(op))
        known = self.operations
        if len(known) == 1:
            return known[0]
        formats = (format_of(a, "a"), format_of(b, "b"))
        found = [one for one in known if (one.a, one.b) == formats]
        if len(found) != 1:
            listed = ", ".join(one.id for one in found or known)
            raise InvalidError(f"`op` is missing: {self.name} has {len(found)} operations of these formats; it is for {listed}")
        return found[0]

    def __repr__(self) -> str:
        chosen = "" if self.case is None else f", case {self.case}"
        return f"<mxprobe recipe {self.name}: {self.title}{chosen}>"


def _given(wanted: list[tuple[str, str, list[int], bool]], inputs: Mapping[str, Any] | None) -> list[tuple[str, bytes]]:
    formats = {name: (format, tuple(shape)) for name, format, shape, _ in wanted}
    given = []
    for name, value in (inputs or {}).items():
        if name not in formats:
            listed = ", ".join(formats) or "none"
            raise InvalidError(f"`{name}` is not an input of this case; its inputs are {listed}")
        format, shape = formats[name]
        dtype = dtype_of(format)
        if isinstance(value, (int, float)) and dtype is not None:
            value = np.full(shape, value).astype(dtype)
        given.append((name, to_bytes(value, name, format, shape)[0]))
    missing = [name for name, _, _, required in wanted if required and name not in (inputs or {})]
    if missing:
        raise InvalidError(f"`inputs` lacks {', '.join(missing)}, which the case reads")
    return given


def recipe(name: str | os.PathLike[str], case: str | None = None, **parameters: int) -> Recipe:
    """Loads a recipe by name (``cublaslt-sm89-fp8``), alias or TOML file.

    ``case`` selects a case by name; by default, the first that holds for the shape is used. ``parameters`` are the
    numbers that the case lets a caller choose, such as ``slices=4``.

    Raises ``InvalidError`` for an unknown recipe or case, or if the file cannot be read.
    """
    return Recipe(_mxprobe.Recipe(os.fspath(name), case, parameters))


def recipes() -> list[str]:
    """The names of the recipes that come with the package."""
    return _mxprobe.recipes()
