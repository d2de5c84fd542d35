"""Tolerances: a result that some order gives passes, and one that no order gives does not."""

import ml_dtypes
import numpy as np
import pytest

import mxprobe
from mxprobe.testing import assert_mma_close

OP = "mma.m16n8k16.f32.f16.f16.f32"


@pytest.fixture
def product(h100):
    random = np.random.default_rng(5)
    a, b = (random.standard_normal(shape).astype(np.float16) for shape in [(3, 256), (256, 5)])
    c = random.standard_normal((3, 5)).astype(np.float32)
    return a, b, c, h100.matmul(a, b, c, op=OP)


def test_a_unit_s_own_product_passes_in_every_order(product):
    a, b, c, d = product
    for order in ["given", "chain", "any"]:
        assert_mma_close(a, b, d, model="h100", op=OP, order=order, c=c)


def test_products_in_another_order_and_slices_of_k_pass_but_not_in_the_given_one(h100, product):
    a, b, c, _ = product
    turned = np.random.default_rng(1).permutation(256)
    other = h100.matmul(a[:, turned], b[turned], c, op=OP)
    assert_mma_close(a, b, other, model=h100, op=OP, order="chain", c=c)
    halves = h100.matmul(a[:, :128], b[:128], op=OP) + h100.matmul(a[:, 128:], b[128:], c, op=OP)
    assert_mma_close(a, b, halves, model=h100, op=OP, c=c)
    with pytest.raises(AssertionError, match="the given order"):
        assert_mma_close(a, b, halves, model=h100, op=OP, order="given", c=c)


def test_what_no_order_gives_fails_with_its_place_and_distance(product):
    a, b, c, d = product
    wrong = d.copy()
    wrong[1, 2] -= np.float32(a[1, 7]) * np.float32(b[7, 2]) + 0.01
    with pytest.raises(AssertionError, match=r"1 of 15 elements .* any order\n  d\[1, 2\] = .* beyond by"):
        assert_mma_close(a, b, wrong, model="h100", op=OP, c=c)
    with pytest.raises(AssertionError, match="15 of 15"):
        assert_mma_close(a, b, np.full_like(d, np.nan), model="h100", op=OP, c=c)


def test_intervals_hold_the_product_and_nan_and_infinity_are_what_they_are(h100, product):
    a, b, c, d = product
    low, high = h100.intervals(a, b, c, op=OP)
    assert low.dtype == np.float64 and (low <= d).all() and (d <= high).all() and (high - low < 1e-2).all()
    a[0, 0], a[1, 0], b[0, :] = np.nan, np.inf, 1
    low, high = h100.intervals(a, b, c, op=OP)
    assert np.isnan(low[0]).all() and (low[1] == np.inf).all() and np.isfinite(high[2]).all()
    assert_mma_close(a, b, h100.matmul(a, b, c, op=OP), model=h100, op=OP, c=c)


def test_other_formats_and_bad_input(h100):
    a = np.ones((2, 64), ml_dtypes.bfloat16)
    d = h100.matmul(a, a.T.copy(), op="bf16->f32")
    assert_mma_close(a, a.T.copy(), d, model="h100", op="bf16->f32")
    with pytest.raises(mxprobe.InvalidError, match="`every` is not an order"):
        assert_mma_close(a, a.T.copy(), d, model="h100", op="bf16->f32", order="every")
    with pytest.raises(mxprobe.FormatError, match="d is float64"):
        assert_mma_close(a, a.T.copy(), d.astype(np.float64), model="h100", op="bf16->f32")
    with pytest.raises(mxprobe.InvalidError, match="d has the shape"):
        assert_mma_close(a, a.T.copy(), d[:1], model="h100", op="bf16->f32")
