"""What tests share."""

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
    """A device of this process that computes as the H100 does."""

    def tiles(a, b, c):
        return np.stack([h100.matmul(*tile, op="f16->f32") for tile in zip(a, b, c)])

    return mxprobe.device(tiles, a="f16", d="f32", shape=(4, 4, 16), batched=True)


@pytest.fixture
def interruptible():
    """Starts a program that Ctrl-C reaches, even where these tests run in a background to which it does not."""

    def start(program):
        # Python takes Ctrl-C for a KeyboardInterrupt only if it is not ignored at the start.
        heard = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
        return subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, preexec_fn=heard)

    return start
