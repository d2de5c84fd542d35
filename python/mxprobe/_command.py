"""The command ``mxprobe``."""

from __future__ import annotations

import signal
import sys

from . import _mxprobe

#: Loads the compiled half by its path, ignoring the environment and the current folder, and runs the command in it.
_AGAIN = """\
import sys, signal
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
signal.signal(signal.SIGINT, signal.SIG_DFL)
path = sys.argv[1]
loader = ExtensionFileLoader("_mxprobe", path)
module = module_from_spec(spec_from_file_location("_mxprobe", path, loader=loader))
loader.exec_module(module)
sys.exit(module.main(["mxprobe", *sys.argv[2:]], [sys.executable, "-I", "-c", sys.orig_argv[3], path]))
"""


def again() -> list[str]:
    """The command line that starts this command again, for device processes."""
    return [sys.executable, "-I", "-c", _AGAIN, str(_mxprobe.__file__)]


def main() -> None:
    """Runs the command with the arguments of this process."""
    # From here on, Rust handles signals.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_mxprobe.main(["mxprobe", *sys.argv[1:]], again()))
