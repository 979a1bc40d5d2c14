"""Is the example of docs/fix.md a run of this version, and is each command of it understood?"""

import importlib
import re
from pathlib import Path
from typing import Any

import h5py
import pytest

import chunkwise
from chunkwise.fixing.records import Fixed
from chunkwise.fixing.render import lines

ROOT = Path(__file__).parents[2]
fix_page: Any = importlib.import_module("fix_page")
readme: Any = importlib.import_module("readme")
PAGE = (ROOT / "docs" / "fix.md").read_text("utf-8")
# Where what is about the machine begins, and what is sized again after it.
TABLE = "One read by h5py"


def parts(text: str) -> tuple[list[str], list[str], list[str]]:
    """Divide an output into what is changed, what was measured, and the end."""
    found = fix_page.skeleton(text)
    begin = next(i for i, line in enumerate(found) if line.startswith(TABLE))
    end = next(i for i, line in enumerate(found) if "verified against the source" in line)
    return found[:begin], found[begin:end], found[end:]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Fixed, str]:
    if h5py.version.hdf5_version_tuple < (2, 0, 0):
        pytest.skip("the example is one of HDF5 2, whose chunk cache is larger")
    folder = tmp_path_factory.mktemp("page")
    fix_page.make(folder / fix_page.FILE)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        # As the command does, but for measuring.
        access = ("plane:0", "line:0")
        found = chunkwise.fix(fix_page.FILE, "model_fixed.nc", access=access, seconds=0)
    return found, "\n".join(lines(found))


def test_the_example_is_what_this_version_does(done: tuple[Fixed, str]) -> None:
    found, printed = done
    changed, measured, end = parts(fix_page.shown(PAGE))
    now_changed, _, now_end = parts(printed)
    again = "run python scripts/fix_page.py and look at docs/fix.md"
    assert changed == now_changed, again
    assert end == now_end, again
    told = "\n".join(measured)
    for gain in found.gains:
        block = "x".join(map(str, gain.block))
        assert f"{gain.path} {gain.pattern} {block} " in told, again


def test_the_example_s_figures_are_measured() -> None:
    text = fix_page.shown(PAGE)
    assert "as measured" in text
    assert re.search(r"[\d,.]+x \[[\d,./x]+, [\d,.]+x\]", text)
    assert max(map(len, text.splitlines())) <= 80
    assert readme.check(PAGE) == []


def test_what_a_machine_decides_is_left_out() -> None:
    one, other = (
        f"1x2 -> 3x4\n  /t  line 3x1x1  ~{a} ms  {b}x [1/{c}, {b}x]\n6.6 MiB -> {c}.1 MiB in {a} s"
        for a, b, c in ((12, 3.5, 5), (7.25, "1,100", 6))
    )
    assert fix_page.skeleton(one) == fix_page.skeleton(other)
    assert fix_page.skeleton(one)[0] == "1x2 -> 3x4"


def test_the_example_in_python_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(fix_page, "SHAPE", (120, 100, 100))
    fix_page.make(tmp_path / "model.nc")
    # As it stands, but for the time that measuring takes.
    assert code.count('access=["line:0"]') == 1
    exec(code.replace('access=["line:0"]', 'access=["line:0"], seconds=0'), {})
    assert (tmp_path / "model_fixed.nc").exists()
