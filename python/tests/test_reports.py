"""Reports: tables, files, pages, comparisons and proofs."""

import json
import subprocess

import pytest

import mxprobe
from mxprobe import _progress


@pytest.fixture(scope="module")
def two():
    op = "mma.m16n8k16.f32.f16.f16.f32"
    probes = ["alignment", "order", "monotone"]
    return [mxprobe.run(mxprobe.model(name), op=op, probe=probes) for name in ("a100", "h100")]


def test_a_report_is_a_table_a_page_and_a_file_that_the_command_reads(two, tmp_path):
    table = two[0].to_pandas()
    row = table[table["probe"] == "alignment.fraction_bits"].iloc[0]
    assert row["value"] == 24 and row["outcome"] == "measured"
    assert list(table.columns) == ["operation", "probe", "outcome", "value", "statement", "reason"]
    two[0].save(tmp_path / "a.json")
    done = subprocess.run(["mxprobe", "validate", "a.json"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    again = mxprobe.read(tmp_path / "a.json")
    assert [report.to_dict() for report in again] == [two[0].to_dict()]
    assert str(two[0]).startswith("sim:a100") and "<iframe srcdoc=" in two[0]._repr_html_()
    two[0].save(tmp_path / "a.html")
    assert (tmp_path / "a.html").read_text().startswith("<!")
    assert "alignment.fraction_bits" in two[0].text("csv") and two[0].text("markdown").startswith("#")
    with pytest.raises(mxprobe.InvalidError, match="`xml` is not a form"):
        two[0].text("xml")
    (tmp_path / "b.json").write_text("{}")
    with pytest.raises(mxprobe.InvalidError, match="b.json` is not a report"):
        mxprobe.read(tmp_path / "b.json")
    with pytest.raises(mxprobe.InvalidError, match="has no finding `nope`"):
        two[0].finding("nope")


def test_reports_are_compared_as_the_command_compares_them(two, tmp_path):
    found = mxprobe.compare(*two)
    assert found.differ and "order.products_at_once" in found.text()
    assert not mxprobe.compare(two[0], two[0]).differ
    for name, report in zip("ab", two):
        report.save(tmp_path / f"{name}.json")
    arguments = ["mxprobe", "compare", "a.json", "b.json", "--format", "json"]
    done = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    of_files = mxprobe.compare(tmp_path / "a.json", tmp_path / "b.json").to_dict()
    assert of_files["matches"] == json.loads(done.stdout)["matches"]
    assert len(found.to_pandas()) > 3
    with pytest.raises(mxprobe.InvalidError, match="two reports or more, not 1"):
        mxprobe.compare(two[0])


def test_models_are_told_apart_or_proved_equal():
    a100, h100 = mxprobe.model("a100"), mxprobe.model("h100")
    op = "mma.m16n8k16.f32.f16.f16.f32"
    found = mxprobe.distinguish(a100, h100, op)
    assert found.verdict == "differ"
    dot = found.evidence
    assert dot["output"] != dot["rivals"][0]["output"] if "output" in dot else dot
    assert mxprobe.distinguish(h100, h100, op).verdict == "equal"
    with pytest.raises(mxprobe.InvalidError, match="the model `v100` has no operation"):
        mxprobe.distinguish(h100, mxprobe.model("v100"), op)


def test_progress_is_shown_to_somebody_alone(capfd, monkeypatch):
    monkeypatch.setattr(_progress, "_QUIET_SECONDS", 0)
    monkeypatch.setattr(_progress, "_PAUSE_SECONDS", 0)
    unit = mxprobe.model("v100")
    arguments = {"op": "mma.m8n8k4.f32.f16.f16.f32", "probe": "alignment.fraction_bits"}
    mxprobe.run(unit, **arguments)
    assert capfd.readouterr().err == ""
    mxprobe.run(unit, **arguments, progress=True)
    assert "0/1 mma.m8n8k4.f32.f16.f16.f32" in capfd.readouterr().err
    assert _progress.line(1, 4, "a\x1b" + "b" * 100, 40) == "[#####...............] 1/4 a?" + "b" * 10


def test_an_exception_in_progress_ends_the_run():
    from mxprobe import _mxprobe

    def tell(done, of, words):
        raise LookupError("enough")

    device = _mxprobe.Device.of_model(mxprobe.model("v100")._inner)
    with pytest.raises(LookupError, match="enough"):
        _mxprobe.run(device, [], ["alignment.fraction_bits"], None, tell)
