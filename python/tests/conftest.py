"""Fixtures shared by the tests."""

import signal
import subprocess
import sys

import numpy as np
import pytest

import mxprobe


@pytest.fixture(scope="session")
def h100():
    return mxprobe.model("h100")


@pytest.fixture(scope="session")
def small(h100):
    """A device in this process that computes like the H100."""

    def tiles(a, b, c):
        return np.stack([h100.matmul(*tile, op="f16->f32") for tile in zip(a, b, c)])

    return mxprobe.device(tiles, a="f16", d="f32", shape=(4, 4, 16), batched=True)


@pytest.fixture
def interruptible():
    """Starts a program that Ctrl-C reaches, even if these tests run in the background and are not reached."""

    def start(program):
        # Python turns Ctrl-C into KeyboardInterrupt only if the signal is not ignored at startup.
        heard = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
        return subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, preexec_fn=heard)

    return start
