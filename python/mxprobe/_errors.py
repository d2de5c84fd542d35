"""The exceptions of the package. Each has one sentence, with the value that is wrong in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._reports import Identification


class Error(Exception):
    """Whatever mxprobe raises by itself."""


class InvalidError(Error, ValueError):
    """A wrong name, shape or number was passed."""


class FormatError(Error, TypeError):
    """An array has a type that the operation's format does not have."""


class DeviceError(Error, RuntimeError):
    """A device failed, did not answer in time, or is not there."""


class NotIdentifiedError(Error):
    """No model explains what the device computes. ``report`` says why, with the bits."""

    def __init__(self, message: str, report: Identification) -> None:
        super().__init__(message)
        #: What was found, operation by operation.
        self.report = report
