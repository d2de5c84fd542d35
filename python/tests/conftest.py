"""What tests share."""

import pytest

import mxprobe


@pytest.fixture(scope="session")
def h100():
    return mxprobe.model("h100")


@pytest.fixture
def small(h100):
    """A device of this process that computes as the H100 does."""

    def tile(a, b, c):
        return h100.matmul(a, b, c, op="f16->f32")

    return mxprobe.device(tile, a="f16", d="f32", shape=(4, 4, 16))
