"""How matrix units really compute: bit-exact models, and probes for whatever multiplies matrices.

>>> import mxprobe, numpy as np
>>> h100 = mxprobe.model("h100")
>>> h100.matmul(np.ones((2, 3), np.float16), np.ones((3, 1), np.float16))
array([[3.],
       [3.]], dtype=float32)
"""

from __future__ import annotations

from fractions import Fraction

from . import _mxprobe, testing
from ._device import Device, device
from ._errors import DeviceError, Error, FormatError, InvalidError, NotIdentifiedError
from ._model import Model, Operation, Trace, model, models
from ._recipe import Recipe, recipe, recipes
from ._reports import (
    Comparison,
    Distinction,
    Identification,
    Report,
    Result,
    Unit,
    Verification,
    compare,
    distinguish,
    identify,
    read,
    run,
    verify,
)

__version__ = _mxprobe.__version__

# Errors and results are displayed under their public names.
for _class in (
    *(DeviceError, Error, FormatError, InvalidError, NotIdentifiedError),
    *(Device, Model, Operation, Recipe, Trace, Unit),
    *(Comparison, Distinction, Identification, Report, Result, Verification),
):
    _class.__module__ = "mxprobe"
del _class

__all__ = [
    "Comparison",
    "Device",
    "DeviceError",
    "Distinction",
    "Error",
    "FormatError",
    "Identification",
    "InvalidError",
    "Model",
    "NotIdentifiedError",
    "Operation",
    "Recipe",
    "Report",
    "Result",
    "Trace",
    "Unit",
    "Verification",
    "compare",
    "decode",
    "device",
    "distinguish",
    "identify",
    "model",
    "models",
    "read",
    "recipe",
    "recipes",
    "run",
    "testing",
    "verify",
]


def decode(format: str, bits: int) -> Fraction | float:
    """The exact value of a format's bits; a float for an infinity or a NaN, and 0 for a zero of either sign.

    >>> decode("f16", 0x3555)
    Fraction(1365, 4096)

    Raises ``InvalidError`` if the format does not exist or has fewer bits.
    """
    if bits < 0 or bits >> 64:
        raise InvalidError(f"{bits:#x} is not the bits of a number of 64 bits or fewer")
    special, significand, exponent = _mxprobe.decode(format, bits)
    if special:
        return float(special)
    return Fraction(significand) * Fraction(2) ** exponent
