"""What tests share."""

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
