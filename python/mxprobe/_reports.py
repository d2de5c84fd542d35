"""Sessions with devices, and their results."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _mxprobe
from ._device import Device, reach
from ._errors import InvalidError, NotIdentifiedError
from ._files import replace
from ._model import Model
from ._progress import progress as telling

if TYPE_CHECKING:
    import pandas

#: The line width of text without a terminal.
_COLUMNS = 100


class Result:
    """A result, in every format of the command: text, JSON, Markdown, CSV and HTML."""

    def __init__(self, inner: _mxprobe.Shown) -> None:
        self._inner = inner

    def text(self, format: str = "table", *, evidence: bool = False, columns: int = _COLUMNS) -> str:
        """The result as ``table``, ``json``, ``markdown``, ``csv`` or ``html``; with its bits if ``evidence``."""
        return self._inner.text(format, columns, evidence)

    def to_dict(self) -> Any:
        """The JSON as Python objects; ``mxprobe schema`` documents it."""
        return json.loads(self.text("json"))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a file: HTML, Markdown or CSV by its extension, otherwise JSON."""
        endings = {".html": "html", ".md": "markdown", ".csv": "csv"}
        replace(Path(path), self.text(endings.get(Path(path).suffix, "json"), evidence=True))

    def to_pandas(self) -> pandas.DataFrame:
        """A table with a row for each finding or operation. Needs pandas."""
        import pandas

        return pandas.read_csv(io.StringIO(self.text("csv")), keep_default_na=False, na_values=[""])

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        import html

        page = html.escape(self.text("html"), quote=True)
        return f'<iframe srcdoc="{page}" style="width:100%;height:32em;border:0" sandbox></iframe>'


class Report(Result):
    """The report of ``run`` on a device."""

    @property
    def findings(self) -> list[dict[str, Any]]:
        """Every finding: ``operation``, ``probe``, ``outcome``, ``value``, ``statement``, ``reason`` and ``evidence``."""
        found = []
        for operation in self.to_dict()["operations"]:
            for finding in operation["findings"]:
                row = {"operation": operation["id"], "value": None, "reason": None, "evidence": []}
                found.append({**row, **finding})
        return found

    def finding(self, probe: str, op: str | None = None) -> dict[str, Any]:
        """The finding of a probe, for the operation with this id or the first one.

        Raises ``InvalidError`` if there is none.
        """
        for finding in self.findings:
            if finding["probe"] == probe and op in (None, finding["operation"]):
                return finding
        raise InvalidError(f"the report has no finding `{probe}`" + (f" of {op}" if op else ""))

    def to_pandas(self) -> pandas.DataFrame:
        """A table with a row for each finding, without its evidence. Needs pandas."""
        import pandas

        columns = ["operation", "probe", "outcome", "value", "statement", "reason"]
        return pandas.DataFrame(self.findings, columns=columns)


class Identification(Result):
    """The results of ``identify``, operation by operation."""


class Verification(Result):
    """The comparison of a device with a model, bit for bit."""

    @property
    def dots(self) -> int:
        """The number of dots compared."""
        return sum(operation["dots"] for operation in self.to_dict()["operations"])

    @property
    def mismatches(self) -> int:
        """The number of dots with different bits."""
        return sum(operation["mismatches"] for operation in self.to_dict()["operations"])

    @property
    def failures(self) -> list[str]:
        """Why operations were not compared completely."""
        return [operation["failed"] for operation in self.to_dict()["operations"] if operation.get("failed")]

    @property
    def matches(self) -> bool:
        """Whether every operation was compared completely without a difference."""
        return self.mismatches == 0 and not self.failures


class Comparison(Result):
    """The differences between reports."""

    def __init__(self, inner: _mxprobe.Shown, differ: bool) -> None:
        super().__init__(inner)
        #: Whether anything differs.
        self.differ = differ


class Distinction(Result):
    """Whether two models differ."""

    def __init__(self, inner: _mxprobe.Shown, verdict: str) -> None:
        super().__init__(inner)
        #: ``differ``, ``equal`` (proved) or ``undecided``.
        self.verdict = verdict

    @property
    def evidence(self) -> dict[str, Any] | None:
        """The dot on which they differ, as bits."""
        found: dict[str, Any] | None = self.to_dict().get("evidence")
        return found


class Unit(Model):
    """An identified model. ``save`` writes it; ``report`` shows how it was found."""

    def __init__(self, inner: _mxprobe.Model, report: Identification) -> None:
        super().__init__(inner)
        #: The results, operation by operation.
        self.report = report


def _names(names: str | Sequence[str] | None) -> list[str]:
    return [] if names is None else [names] if isinstance(names, str) else list(names)


def run(
    device: Device | Model | str,
    op: str | Sequence[str] | None = None,
    probe: str | Sequence[str] | None = None,
    *,
    expect: Model | None = None,
    timeout: float | None = None,
    progress: bool | None = None,
) -> Report:
    """Probes a device: how it rounds, aligns, orders and flushes, each answer with the bits that prove it.

    ``device`` is a ``Device``, a ``Model``, or a selector such as ``cpu:0`` or ``exec:COMMAND``; hardware and programs
    are accessed through their own process, and one request may take ``timeout`` seconds. ``op`` and ``probe`` are names
    or patterns with ``*``. With ``expect``, each operation is also compared with that model. Ctrl-C ends it.

    If the device fails, a finding says so. Raises ``InvalidError`` for unknown names.
    """
    with telling(progress) as tell:
        expected = None if expect is None else expect._inner
        return Report(_mxprobe.run(reach(device, _names(op), timeout), _names(op), _names(probe), expected, tell))


def identify(
    device: Device | Model | str,
    op: str | Sequence[str] | None = None,
    *,
    name: str = "identified",
    seed: int = 1,
    nan: str = "bits",
    timeout: float | None = None,
    progress: bool | None = None,
) -> Unit:
    """Finds a bit-exact model of anything that computes, from the outside, and tests it with inputs made to refute it.

    The model is called ``name``. ``nan="any"`` treats all NaNs as equal. Operations that could not be identified are
    only in ``report``.

    Raises ``NotIdentifiedError``, with the reason and the report, if none could.
    """
    with telling(progress) as tell:
        shown, _, model = _mxprobe.identify(reach(device, _names(op), timeout), _names(op), name, seed, nan, tell)
    report = Identification(shown)
    if model is None:
        operations = report.to_dict()["operations"]
        reasons = [f"{found['id']}: {found['outcome']}: {found.get('reason') or 'no reason'}" for found in operations]
        raise NotIdentifiedError("; ".join(reasons), report)
    return Unit(model, report)


def verify(
    device: Device | Model | str,
    model: Model,
    op: str | Sequence[str] | None = None,
    *,
    count: int = 1_000_000,
    seed: int = 1,
    nan: str = "bits",
    timeout: float | None = None,
    progress: bool | None = None,
) -> Verification:
    """Compares a device with a model, bit for bit, on at least ``count`` dots of each operation that both have."""
    with telling(progress) as tell:
        inner = reach(device, _names(op), timeout)
        return Verification(_mxprobe.verify(inner, model._inner, _names(op), count, seed, nan, tell))


def read(path: str | os.PathLike[str]) -> list[Report]:
    """Reads the reports in a file that ``run`` or the command saved.

    Raises ``InvalidError`` if the file is not a report.
    """
    text = Path(path).read_text(encoding="utf-8-sig")
    return [Report(shown) for shown in _mxprobe.read(text, os.fspath(path))]


def compare(*reports: Report | str | os.PathLike[str], all: bool = False) -> Comparison:
    """Compares reports, or files of them, by property and with the bits; lists equal properties too, if ``all``."""
    found: list[tuple[str, _mxprobe.Shown]] = []
    for at, report in enumerate(reports):
        if isinstance(report, Report):
            found.append((f"report {at + 1}", report._inner))
        else:
            found.extend((os.fspath(report), one._inner) for one in read(report))
    return Comparison(*_mxprobe.compare(found, all))


def distinguish(
    one: Model, other: Model, op: str, *, seed: int = 1, finite: bool = False, budget: float = 60.0
) -> Distinction:
    """Finds a dot on which two models differ, or a proof that there is none, within ``budget`` seconds.

    With ``finite``, only finite operands and c are considered.
    """
    return Distinction(*_mxprobe.distinguish(one._inner, other._inner, op, seed, finite, budget))
