"""The contents of the package: the command, its examples in documents, and types that a checker accepts."""

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import mxprobe

ROOT = Path(__file__).resolve().parents[2]


def test_the_command_is_the_one_of_this_version_and_starts_processes_of_devices(tmp_path):
    done = subprocess.run(["mxprobe", "--version"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0 and done.stdout.startswith(f"mxprobe {mxprobe.__version__}")
    assert Path(sys.prefix) in Path(subprocess.check_output(["which", "mxprobe"], text=True).strip()).parents
    # A backend's discovery runs in another process, this one started again: no refusal says that it did not start.
    for program in (["mxprobe"], [sys.executable, "-m", "mxprobe"]):
        arguments = [*program, "list", "--backend", "cpu", "--format", "json"]
        done = subprocess.run(arguments, capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode in (0, 3) and "search for" not in done.stdout + done.stderr, done.stderr
    wrong = subprocess.run(["mxprobe", "nope"], capture_output=True, text=True)
    assert wrong.returncode == 2 and "nope" in wrong.stderr
    assert subprocess.run(["mxprobe", "explain", "--help"], capture_output=True).returncode == 0


def test_what_stands_beside_the_command_is_not_imported_by_a_process_of_a_device(tmp_path):
    for name in ("mxprobe", "signal", "importlib"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported')")
    arguments = ["mxprobe", "list", "--backend", "cpu"]
    environment = {**os.environ, "PYTHONPATH": ""}
    done = subprocess.run(arguments, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode in (0, 3) and "search for" not in done.stdout + done.stderr, done.stderr


@pytest.mark.parametrize("page", ["README.md", "python/README.md"])
def test_the_lines_of_a_readme_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S)
    assert blocks, f"{page} has no Python"
    for block in blocks:
        exec(compile(block, page, "exec"), {})


def test_the_examples_of_the_page_give_what_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    found = doctest.testfile(str(ROOT / "docs/python.md"), module_relative=False, optionflags=options)
    assert found.attempted > 15 and found.failed == 0
    for module in (mxprobe,):
        found = doctest.testmod(module, optionflags=options)
        assert found.attempted > 1 and found.failed == 0


def test_a_type_checker_agrees(tmp_path):
    program = tmp_path / "use.py"
    program.write_text(
        "import mxprobe\n"
        "from fractions import Fraction\n"
        "d, why = mxprobe.model('h100').dot([1.0], [1.0], trace=True)\n"
        "words: str = why\n"
        "value: Fraction | float = mxprobe.decode('f16', 1)\n"
        "count: int = mxprobe.verify(mxprobe.model('h100'), mxprobe.model('a100')).mismatches\n"
    )
    arguments = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), "--follow-imports=silent"]
    arguments += ["--disable-error-code", "import-untyped"]  # pandas ships no types
    environment = {**os.environ, "MYPYPATH": ""}
    package = Path(mxprobe.__file__).parent
    files = [str(program), *map(str, sorted(package.glob("*.py"))), str(package / "_mxprobe.pyi")]
    done = subprocess.run([*arguments, *files], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
