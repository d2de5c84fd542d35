"""Callables as devices: their findings, and the errors of faulty ones."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import mxprobe


def f32(compute, shape=(4, 4, 8), **more):
    return mxprobe.device(compute, a="f32", d="f32", shape=shape, name="mine", **more)


def exact(a, b, c):
    return (a.astype(np.float64) @ b.astype(np.float64) + c).astype(np.float32)


@pytest.fixture(scope="module")
def identified(small):
    return mxprobe.identify(small, name="mine")


def test_a_callable_is_identified_verified_and_told_from_its_model(small, identified, tmp_path):
    unit = identified
    assert "h100" in " ".join(unit.report.to_dict()["operations"][0]["equals"])
    unit.save(tmp_path / "mine.toml")
    again = mxprobe.model(tmp_path / "mine.toml")
    assert again.operations == ["gemm.m4n4k16.f32.f16.f16.f32"]
    found = mxprobe.verify(small, again, count=100_000)
    assert found.matches and found.dots >= 100_000
    # A model with one more bit is distinguished from it.
    text = (tmp_path / "mine.toml").read_text()
    assert "fraction_bits = 25" in text
    (tmp_path / "other.toml").write_text(text.replace("fraction_bits = 25", "fraction_bits = 24"))
    other = mxprobe.verify(small, mxprobe.model(tmp_path / "other.toml"), count=20_000)
    assert not other.matches and other.mismatches > 0


def test_a_report_says_how_a_callable_computes(small):
    report = mxprobe.run(small, probe=["alignment", "order.products_at_once", "rounding.result"])
    assert report.finding("alignment.fraction_bits")["value"] == 25
    assert report.finding("order.products_at_once")["value"] == 16
    head = report.to_dict()
    assert head["device"]["backend"] == "python" and head["device"]["kind"] == "software"
    assert head["plan"]["operations"] == ["gemm.m4n4k16.f32.f16.f16.f32"] and not head["time"]["interrupted"]


def test_batched_callables_get_all_tiles_at_once():
    shapes = set()

    def batched(a, b, c):
        shapes.add(a.shape[1:])
        assert a.ndim == b.ndim == c.ndim == 3
        return (a.astype(np.float64) @ b.astype(np.float64) + c).astype(np.float32)

    report = mxprobe.run(f32(batched, batched=True), probe="self_test")
    assert report.finding("self_test")["outcome"] == "measured" and shapes == {(4, 8)}


def test_arrays_have_the_types_of_the_formats():
    seen = []

    def look(a, b, c):
        seen.append((a.dtype, b.dtype, c.dtype, a.flags.writeable))
        a += a.dtype.type(1)  # its argument is a copy
        raise ValueError("seen enough")

    mxprobe.run(mxprobe.device(look, a="bf16", b="e4m3", c="f16", d="f32", shape=(2, 2, 2)), probe="self_test")
    assert seen[0] == (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, np.float16, True)
    seen.clear()

    def bits(a, b, c):
        seen.append((a.dtype, b.dtype, c.dtype))
        raise ValueError("seen enough")

    mxprobe.run(mxprobe.device(bits, a="e2m1", d="f32", shape=(2, 2, 2), arrays="bits"), probe="self_test")
    assert seen[0] == (np.uint8, np.uint8, np.uint32)


def said(device, probe="self_test"):
    """The reason of the first finding."""
    finding = mxprobe.run(device, probe=probe).findings[0]
    assert finding["outcome"] == "failed", finding
    return finding["reason"]


def raises(a, b, c):
    raise ValueError("no tensor today")


def test_what_a_callable_raises_is_the_reason(identified):
    assert "ValueError: no tensor today" in said(f32(raises))
    with pytest.raises(mxprobe.NotIdentifiedError, match="ValueError: no tensor today") as raised:
        mxprobe.identify(f32(raises))
    assert raised.value.report.to_dict()["operations"][0]["outcome"] == "failed"
    unit = mxprobe.device(raises, a="f16", d="f32", shape=(4, 4, 16))
    assert mxprobe.verify(unit, identified).failures == ["ValueError: no tensor today"]


def exact_chain(a, b, c):
    """Products and sums, each rounded."""
    d = c.copy()
    for k in range(a.shape[1]):
        d = d + a[:, k : k + 1] * b[k : k + 1, :]
    return d


def test_another_shape_or_type_is_named():
    assert "the callable returned has the shape (8, 4); (4, 4) is expected" in said(f32(lambda a, b, c: a.T @ a @ b))
    assert "what the callable returned is float64; f32 takes float32" in said(
        f32(lambda a, b, c: a.astype(np.float64) @ b + c)
    )
    assert "what the callable returned has the shape (); (4, 4) is expected" in said(f32(lambda a, b, c: None))


def test_a_callable_that_sleeps_is_given_up():
    def sleeps(a, b, c):
        time.sleep(3)
        return exact(a, b, c)

    reason = said(f32(sleeps, timeout=0.2))
    assert "the callable did not return within 0.2 s" in reason
    for wrong in (0, -1, float("nan")):
        with pytest.raises(mxprobe.InvalidError, match=f"a timeout of {wrong} s".replace(".", r"\.").replace("nan", "(NaN|nan)")):
            f32(sleeps, timeout=wrong)


def test_a_program_ends_while_a_callable_sleeps():
    program = """
import time
import mxprobe
def sleeps(a, b, c):
    time.sleep({})
device = mxprobe.device(sleeps, a="f32", shape=(4, 4, 8), timeout=0.2)
mxprobe.run(device, probe="self_test")
other = mxprobe.device(lambda a, b, c: a @ b + c, a="f32", shape=(4, 4, 8))
mxprobe.run(other, probe="self_test")
print("ended")
"""
    # Forever, or until about the time at which the interpreter ends its threads.
    for seconds in [600] + [0.2 + 0.01 * step for step in range(12)]:
        child = subprocess.run([sys.executable, "-c", program.format(seconds)], capture_output=True, text=True)
        assert (child.returncode, child.stdout) == (0, "ended\n"), child.stderr


def test_a_stochastic_callable_is_not_repeatable():
    random = np.random.default_rng(1)

    def stochastic(a, b, c):
        d = exact(a, b, c)
        noise = random.integers(0, 2, d.shape, np.uint32) * (np.abs(d) > 0) * (d != np.round(d))
        return (d.view(np.uint32) + noise.astype(np.uint32)).view(np.float32)

    device = f32(stochastic)
    with pytest.raises(mxprobe.NotIdentifiedError, match="unrepeatable"):
        mxprobe.identify(device)
    found = mxprobe.run(device, probe="determinism")
    assert [finding["value"] for finding in found.findings if finding["outcome"] == "measured"] == [False]


def test_a_callable_that_keeps_state_is_not_repeatable():
    last = np.zeros((4, 4), np.float32)

    def keeps(a, b, c):
        nonlocal last
        d = exact(a, b, c)
        kept = (last != 0).any() and (d != np.round(d)).any()
        last = d
        return np.nextafter(d, np.float32(np.inf)) if kept else d

    with pytest.raises(mxprobe.NotIdentifiedError, match="unrepeatable"):
        mxprobe.identify(f32(keeps))


def test_the_bits_of_an_odd_nan_are_reported():
    def odd(a, b, c):
        d = exact_chain(a, b, c)
        d.view(np.uint32)[np.isnan(d)] = 0x7F812345
        return d

    with np.errstate(all="ignore"):
        found = mxprobe.run(f32(odd), probe="specials.nan")
    assert "0x7f812345" in found.text("json")


def test_wrong_devices_are_refused_with_the_value():
    for call, words in [
        (lambda: mxprobe.device(exact, a="f33", shape=(2, 2, 2)), "`f33` is not a format"),
        (lambda: mxprobe.device(exact, a="f32", shape=(2, 2)), "the shape is (2, 2)"),
        (lambda: mxprobe.device(exact, a="f32", shape=(2, 2, 0)), "the shape is (2, 2, 0)"),
        (lambda: mxprobe.device(3, a="f32", shape=(2, 2, 2)), "3 cannot be called"),
        (lambda: mxprobe.device(exact, a="f32", shape=(2, 2, 2), arrays="jax"), "arrays='jax'"),
        (lambda: mxprobe.device(exact, a="ue4m3", shape=(2, 2, 2)), "NumPy has no type for ue4m3"),
        (lambda: mxprobe.run(f32(exact), op="mma*"), "python:mine has no operation `mma*`"),
        (lambda: mxprobe.run(f32(exact), probe="nope"), "unknown probe `nope`"),
        (lambda: mxprobe.run(3), "3 is not a device, a model or a selector"),
        (lambda: mxprobe.run("tpu:0"), "no backend `tpu`"),
        (lambda: mxprobe.verify(f32(exact), mxprobe.model("h100")), "the model `h100` has no operation gemm.m4n4k8"),
        (lambda: mxprobe.identify(f32(exact), nan="some"), "`some` is neither `bits` nor `any`"),
    ]:
        with pytest.raises(mxprobe.Error) as raised:
            call()
        assert words in str(raised.value), str(raised.value)


def test_a_selector_reaches_models_and_processes_of_devices():
    report = mxprobe.run("sim:v100", op="mma.m8n8k4.f32.f16.f16.f32", probe="alignment.fraction_bits")
    assert report.finding("alignment.fraction_bits")["value"] == 23
    # The scalar arithmetic of this processor, from a separate process: this interpreter, started again.
    if sys.platform == "linux":
        report = mxprobe.run("cpu:0", op="scalar.f32", probe="function.fma")
        assert report.to_dict()["device"]["backend"] == "cpu"
        assert report.findings, report.text()


def test_ctrl_c_ends_a_run_and_the_callable_is_not_called_any_more(interruptible):
    program = """
import time, threading
import numpy as np, mxprobe
calls = 0
def slow(a, b, c):
    global calls
    calls += 1
    if calls == 3:
        print("begun", flush=True)
    time.sleep(0.01)
    return a @ b + c
device = mxprobe.device(slow, a="f32", shape=(4, 4, 8))
try:
    mxprobe.identify(device)
except KeyboardInterrupt:
    time.sleep(0.3)
    seen = calls
    time.sleep(0.5)
    print("stopped", calls - seen)
"""
    child = interruptible(program)
    assert child.stdout.readline() == "begun\n"
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=300)[0] == "stopped 0\n" and child.returncode == 0


def test_a_program_is_a_device_of_a_selector():
    root = Path(__file__).resolve().parents[2]
    selector = f"exec:{sys.executable} {root}/examples/workers/python/numpy_matmul.py"
    op = "gemm.m4n4k8.f32.f32.f32.f32"
    report = mxprobe.run(selector, op=op, probe=["self_test", "rounding.result"])
    assert report.to_dict()["device"]["backend"] == "exec"
    assert [finding["outcome"] for finding in report.findings] == ["measured"] * 2
    with pytest.raises(mxprobe.Error, match="nowhere"):
        mxprobe.run("exec:/nowhere/worker", probe="self_test")
