"""Recipes: a library's products, bit for bit, and traces of their elements."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import mxprobe

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def operands():
    random = np.random.default_rng(3)
    a, b = (random.standard_normal(shape).astype(np.float32) for shape in [(4, 1000), (1000, 4)])
    return a, b, random.standard_normal((4, 4)).astype(np.float32)


def by_lanes(a, b):
    """16 lanes, each a chain of fused multiply-adds, merged in pairs: reimplemented in NumPy."""
    fused = lambda x, y, z: np.float32(np.longdouble(x) * np.longdouble(y) + np.longdouble(z))
    lanes = [np.float32(0)] * 16
    for at, (x, y) in enumerate(zip(a, b)):
        lanes[at % 16] = fused(x, y, lanes[at % 16])
    while len(lanes) > 1:
        lanes = [one + other for one, other in zip(lanes[::2], lanes[1::2])]
    return lanes[0]


def test_a_shipped_recipe_computes_what_its_words_say(operands):
    a, b, c = operands
    recipe = mxprobe.recipe("openblas-skylakex-f32")
    d = recipe.matmul(a, b, c)
    assert d.dtype == np.float32 and d.shape == (4, 4)
    for row, column in [(0, 0), (3, 1)]:
        assert d[row, column] == by_lanes(a[row], b[:, column]) + c[row, column]
    assert "16" in recipe.explain() and recipe.model == "fma-chain" and "m4n4k1000" in recipe.cases
    with pytest.raises(mxprobe.InvalidError, match="no case of recipe openblas-skylakex-f32 holds for 3×4×1000"):
        recipe.matmul(a[:3], b)


def test_an_element_and_its_steps_are_those_of_the_matrix(operands):
    a, b, c = operands
    recipe = mxprobe.recipe("openblas-skylakex-f32", case="m4n4k1000")
    d, trace = recipe.element(a[2], b[:, 3], c[2, 3])
    assert d.dtype == np.float32 and d == recipe.matmul(a, b, c)[2, 3]
    assert trace.splitlines()[-1].startswith("d = ") and repr(trace) == str(trace)


def test_numbers_of_a_case_and_inputs_of_its_epilogue(operands):
    a, b = (matrix.astype(ml_dtypes.float8_e4m3fn) for matrix in operands[:2])
    whole = mxprobe.recipe("cublaslt-sm89-fp8", case="fast-f32")
    split = mxprobe.recipe("cublaslt-sm89-fp8", case="fast-split-serial-f32", slices=4)
    one, other = whole.matmul(a, b), split.matmul(a, b)
    assert (one != other).any() and np.allclose(one, other, atol=0.5)
    # Powers of two commute with every rounding.
    assert (whole.matmul(a, b, inputs={"scale_a": 0.5, "scale_b": np.float32(4)}) == 2 * one).all()
    assert whole.operations[0].shape == (16, 8, 32)
    d, _ = split.element(a[1], b[:, 2], inputs={"scale_a": 2})
    assert d == 2 * other[1, 2]


def test_a_file_is_a_recipe(tmp_path, operands):
    text = (ROOT / "models/recipes/openblas-skylakex-f32.toml").read_text()
    (tmp_path / "mine.toml").write_text(text)
    a, b, c = operands
    mine = mxprobe.recipe(tmp_path / "mine.toml")
    assert mine.matmul(a, b, c).tobytes() == mxprobe.recipe("numpy-skylakex-f32").matmul(a, b, c).tobytes()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda a, b: mxprobe.recipe("nope"), "unknown recipe `nope`; the recipes are cublaslt-"),
        (lambda a, b: mxprobe.recipe("cublaslt-sm89-fp8", case="nope"), "has no case `nope`; its cases are"),
        (lambda a, b: mxprobe.recipe("cublaslt-sm89-fp8", case="fast-f32", slices=4).matmul(a, b), "`slices`"),
        (lambda a, b: mxprobe.recipe("cublaslt-sm89-fp8").matmul(a, b, op="f16->f32"), "is for mma.m16n8k32"),
        (lambda a, b: mxprobe.recipe("cublaslt-sm89-fp8").matmul(a, b, inputs={"x": 1}), "`x` is not an input"),
        (lambda a, b: mxprobe.recipe("cublaslt-sm89-fp8").matmul(a, b, scale_a=1), "takes no block scales"),
        (lambda a, b: mxprobe.recipe("cublaslt-sm89-fp8").matmul(a, b[:4]), r"b has the shape \(4, 4\)"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(operands, call, words):
    a, b = (matrix.astype(ml_dtypes.float8_e4m3fn) for matrix in operands[:2])
    with pytest.raises(mxprobe.InvalidError, match=words):
        call(a, b)
    with pytest.raises(mxprobe.FormatError, match="a is float32"):
        mxprobe.recipe("cublaslt-sm89-fp8").matmul(operands[0], b, op="mma.m16n8k32.f32.e4m3.e4m3.f32")


def test_the_recipes_that_come_along_are_listed():
    assert {"cublaslt-sm89-fp8", "openblas-skylakex-f32", "onednn-avx512-bf16"} <= set(mxprobe.recipes())
    assert repr(mxprobe.recipe("onednn-avx512-bf16")).startswith("<mxprobe recipe onednn-avx512-bf16: oneDNN 3.2")
