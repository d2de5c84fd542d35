"""Shows the progress of long tasks on a line that is rewritten, at a terminal or in a notebook."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

#: Shorter tasks show nothing.
_QUIET_SECONDS = 0.5

#: The minimum time between two lines.
_PAUSE_SECONDS = 0.1


def in_notebook() -> bool:
    """Whether this runs in a Jupyter kernel."""
    shell = sys.modules.get("IPython")
    found: Any = shell.get_ipython() if shell is not None else None
    return found is not None and hasattr(found, "kernel")


def is_shown() -> bool:
    """Whether progress would be visible."""
    at_terminal = sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    return at_terminal or in_notebook()


def line(done: int, of: int, words: str, columns: int) -> str:
    """Formats one line, shorter than the terminal."""
    full = 20 * done // max(1, of)
    text = f"[{'#' * full}{'.' * (20 - full)}] {done}/{of} {words}"
    return "".join(letter if letter.isprintable() else "?" for letter in text)[: max(0, columns - 1)]


@contextmanager
def progress(wanted: bool | None) -> Iterator[Callable[[int, int, str], None] | None]:
    """Yields a function that shows progress, or ``None`` if it is not shown. ``wanted`` overrides the detection."""
    if not (is_shown() if wanted is None else wanted):
        yield None
        return
    start = last = time.monotonic()
    shown = False

    def tell(done: int, of: int, words: str) -> None:
        nonlocal last, shown
        now = time.monotonic()
        if now - start < _QUIET_SECONDS or now - last < _PAUSE_SECONDS:
            return
        last, shown = now, True
        columns = shutil.get_terminal_size().columns
        sys.stderr.write("\r" + line(done, of, words, columns).ljust(columns - 1))
        sys.stderr.flush()

    try:
        yield tell
    finally:
        if shown:
            sys.stderr.write("\r" + " " * (shutil.get_terminal_size().columns - 1) + "\r")
            sys.stderr.flush()
