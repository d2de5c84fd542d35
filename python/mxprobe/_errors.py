"""The exceptions of the package. Each message is one sentence that contains the wrong value."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._reports import Identification


class Error(Exception):
    """The base class of mxprobe's exceptions."""


class InvalidError(Error, ValueError):
    """A wrong name, shape or number was passed."""


class FormatError(Error, TypeError):
    """The type of an array does not match the operation's format."""


class DeviceError(Error, RuntimeError):
    """A device failed, did not answer in time, or was not found."""


class NotIdentifiedError(Error):
    """No model explains what the device computes. ``report`` gives the reason, with the bits."""

    def __init__(self, message: str, report: Identification) -> None:
        super().__init__(message)
        #: The results, operation by operation.
        self.report = report
