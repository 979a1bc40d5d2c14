"""Do all commands work with the oldest h5py, and with Debian's?"""

import json
from pathlib import Path

import pytest

from tests.support.h5pys import DEBIAN, OLDEST, ROOT, H5py

PROGRAM = """
import sys, h5py
with h5py.File(sys.argv[1]) as f:
    print(f["t2m"][3].shape)
"""
SELECTIONS = """
import sys, h5py, numpy as np
import chunkwise
with h5py.File(sys.argv[1]) as plain, chunkwise.open(sys.argv[1]) as f:
    want = plain["t2m"][()]
    d = f["t2m"]
    assert d.explain()["path"] == "chunked", d.explain()
    for index in np.s_[..., 3, 2:9:4, ::-1, [1, 5], -1, 1:2, 3:30:5]:
        assert np.array_equal(d[index], want[index]), index
    assert np.array_equal(d[:, want[0] > want[0].mean()], want[:, want[0] > want[0].mean()])
with chunkwise.open(sys.argv[2], "w") as f:
    d = f.create_dataset("x", want.shape, "f4", chunks=(5, 7, 9), compression=4, shuffle=True)
    assert d.explain_write()["path"] == "chunked", d.explain_write()
    d[...] = want
    d[3:7, ::2] = 5
    f["x"].attrs["units"] = "K"
    assert np.array_equal(d[3:7, ::2], np.full((4, *want[0, ::2].shape), 5))
want[3:7, ::2] = 5
with h5py.File(sys.argv[2]) as f:
    assert np.array_equal(f["x"][()], want) and f["x"].attrs["units"] == "K"
"""


@pytest.fixture(scope="module", params=[OLDEST, DEBIAN], ids=lambda build: build.name)
def build(request: pytest.FixtureRequest) -> H5py:
    found: H5py = request.param
    return found


@pytest.fixture(scope="module")
def cube(build: H5py, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cube") / "cube.h5"
    shape = ("--shape", "12x40x50", "--chunk", "1x40x50", "--filter", "shuffle+deflate:4")
    chunkwise(build, "sample", "cube", path, *shape)
    return path


def chunkwise(build: H5py, *arguments: object) -> str:
    return build.run("-m", "chunkwise", *arguments)


def test_the_oldest_is_what_pyproject_states() -> None:
    said = OLDEST.run("-c", "import h5py, click; print(h5py.__version__, click.__version__)")
    stated = (ROOT / "pyproject.toml").read_text("utf-8")
    h5py_version, click_version = (".".join(v.split(".")[:2]) for v in said.split())
    assert f'"h5py>={h5py_version}"' in stated
    assert f'"click>={click_version}"' in stated


def test_reads_and_writes(build: H5py, cube: Path, tmp_path: Path) -> None:
    build.run("-c", SELECTIONS, cube, tmp_path / "written.h5")


def test_inspects(build: H5py, cube: Path) -> None:
    assert "12 chunks of 1x40x50" in chunkwise(build, "inspect", cube)
    # A finding, or what is no error: nothing of this file is unreadable.
    found = json.loads(chunkwise(build, "inspect", "--json", cube))
    assert [one for one in found["findings"] if one["severity"] == "error"] == []
    metadata = found["metadata"]
    assert metadata["open_requests"] > 0
    assert metadata["unaccounted_nbytes"] >= 0


def test_repacks(build: H5py, cube: Path, tmp_path: Path) -> None:
    target = tmp_path / "packed.h5"
    asked = ("--chunk", "12x20x25", "--filter", "shuffle+deflate:1", "--verify", "full")
    chunkwise(build, "repack", cube, target, *asked)
    assert "4 chunks of 12x20x25" in chunkwise(build, "inspect", target)


def test_measures_and_reports(build: H5py, cube: Path, tmp_path: Path) -> None:
    readers = "h5py,chunkwise-py,libhdf5,chunkwise"
    asked = ("--access", "all", "--reader", readers, "--repeat", 1, "--json")
    measured = chunkwise(build, "bench", cube, *asked)
    saved = tmp_path / "runs.json"
    saved.write_text(measured, "utf-8")
    assert "no difference" in chunkwise(build, "compare", saved, saved)
    # Ends with another code where an element is wrong.
    assert "29,758" in chunkwise(build, "hstest", cube, "--count", 3, "--reader", readers)


def test_the_page_is_drawn(tmp_path: Path, build: H5py) -> None:
    if build is not OLDEST:
        pytest.skip("Debian's Python has no plotly here")
    page = tmp_path / "report.html"
    chunkwise(build, "report", ROOT / "docs/studies/two-ways-quick.json.gz", "-o", page)
    assert "plotly" in page.read_text("utf-8").lower()


def test_lists_studies_and_samples(build: H5py) -> None:
    assert "hyperslabs" in chunkwise(build, "study", "--list")
    assert "occam" in chunkwise(build, "sample", "--list")
    assert chunkwise(build, "--version").startswith("chunkwise, version ")


def test_runs_programs_patched(build: H5py, cube: Path, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, "utf-8")
    assert chunkwise(build, program, cube).split() == ["(40,", "50)"]
