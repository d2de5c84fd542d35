"""Assertions for tests of kernels: could a matrix unit have computed this product, whatever the order of its sums?

>>> import numpy as np
>>> from mxprobe.testing import assert_mma_close
>>> a = np.full((2, 300), 0.1, np.float16)
>>> d = a.astype(np.float32) @ a.T.astype(np.float32)
>>> assert_mma_close(a, np.ascontiguousarray(a.T), d, model="h100")
>>> assert_mma_close(a, np.ascontiguousarray(a.T), np.zeros_like(d), model="h100")
Traceback (most recent call last):
AssertionError: 4 of 4 elements are not what mma.m16n8k16.f32.f16.f16.f32 of h100 can give in any order...
"""

from __future__ import annotations

import os
from typing import Any, Literal

from ._model import Model, model as load

#: The number of elements listed in a message.
_SHOWN = 5


def assert_mma_close(
    a: Any,
    b: Any,
    d: Any,
    model: Model | str | os.PathLike[str],
    op: str | None = None,
    order: Literal["given", "chain", "any"] = "any",
    c: Any = None,
    *,
    scale_a: Any = None,
    scale_b: Any = None,
) -> None:
    """Raises ``AssertionError`` if an element of D = A·B + C is not admissible for the unit.

    ``a`` is m×k, ``b`` k×n, ``c`` m×n (default: +0), and ``d``, which is checked, m×n, all in the operation's formats;
    types, ``op`` and scales are as in ``Model.matmul``. ``model`` is a ``Model``, or an argument of ``mxprobe.model``.
    ``order`` selects the admissible sums: ``any`` tree of the unit's operations and of additions in the format of D or
    a wider one (split-K, outer accumulators); a ``chain`` of operations with the products in any order; or the
    ``given`` one, k ascending, which is equality with ``Model.matmul`` except for the bits of a NaN. The intervals are
    proved from the unit's adders, not guessed: an element outside is wrong. Zeros of either sign are equal. An element
    is not judged if a partial sum may overflow.

    Raises ``FormatError`` for a wrong type, ``InvalidError`` for a wrong shape, operation or order.
    """
    unit = model if isinstance(model, Model) else load(model)
    elements, unbounded, outside = unit._check(a, b, c, d, op, order, scale_a, scale_b)
    if not outside:
        return
    named = unit.operation(op if op is not None else unit._default(a, b)).id
    orders = {"given": "the given order", "chain": "any chain", "any": "any order"}
    lines = [f"{len(outside)} of {elements} elements are not what {named} of {unit.name} can give in {orders[order]}"]
    for row, column, value, low, high, exact, beyond, times in outside[:_SHOWN]:
        far = f", beyond by {beyond:.3g}, {times:.3g} times the tolerance" if beyond == beyond else ""
        lines.append(f"  d[{row}, {column}] = {value:.9g} is not in [{low:.9g}, {high:.9g}] (exactly {exact:.9g}){far}")
    if len(outside) > _SHOWN:
        lines.append(f"  and {len(outside) - _SHOWN} more")
    if unbounded:
        lines.append(f"  {unbounded} elements are not judged: a partial sum may overflow")
    raise AssertionError("\n".join(lines))


__all__ = ["assert_mma_close"]
