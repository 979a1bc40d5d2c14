"""Are many files mended, each for itself, and those that need nothing left alone?"""

import json
from pathlib import Path

import h5py
import numpy as np
import pytest

from chunkwise.inspection import inspect
from tests.repack.test_archives import stamps
from tests.support.commands import run
from tests.support.golden import assert_golden, mistakes

TINY = np.arange(512 * 512, dtype="<i4").reshape(512, 512)


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three files with tiny chunks, and two in which there is nothing to mend."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "archive"
    (folder / "sub").mkdir(parents=True)
    for i in range(3):
        with h5py.File(folder / f"bad{i}.h5", "w") as file:
            file.create_dataset("t", data=TINY + i, chunks=(8, 8))
    for name in ("good.h5", "sub/good.nc"):
        with h5py.File(folder / name, "w") as file:
            file.create_dataset("t", data=TINY)
    return folder


def is_mended(path: Path, offset: int) -> bool:
    with h5py.File(path) as file:
        same = bool(np.array_equal(file["t"][...], TINY + offset))
    return same and not any(one.layout for one in inspect(path).findings)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_folder_in_place(jobs: int, archive: Path) -> None:
    before = stamps(archive)
    arguments = (archive, "--in-place", "--jobs", jobs, "--json")
    code, out, err = run("fix", *arguments)
    assert code == 0, err
    told = {Path(one["source"]).name: one for one in map(json.loads, out.splitlines())}
    assert {name: one["outcome"] for name, one in told.items()} == {
        **{f"bad{i}.h5": "fixed" for i in range(3)},
        "good.h5": "skipped",
        "good.nc": "skipped",
    }
    assert told["bad0.h5"]["format"] == "chunkwise-fix-file"
    assert told["bad0.h5"]["fixed"]["changes"][0]["why"] == ["small-chunks"]
    assert told["good.h5"]["fixed"]["outcome"] == "nothing to mend"
    after = stamps(archive)
    assert set(after) == set(before)
    assert {name for name in after if after[name] == before[name]} == {"good.h5", "sub/good.nc"}
    assert all(is_mended(archive / f"bad{i}.h5", i) for i in range(3))
    code, out, _ = run("fix", archive, "--in-place", "--jobs", jobs)
    assert "5 files: 5 skipped" in out
    assert stamps(archive) == after


def test_a_folder_of_results(archive: Path, tmp_path: Path) -> None:
    before = stamps(archive)
    for task in ("1/2", "2/2"):
        code, _, err = run("fix", archive, "-o", "fixed", "--task", task)
        assert code == 0, err
    assert stamps(archive) == before
    assert all(is_mended(tmp_path / "fixed" / f"bad{i}.h5", i) for i in range(3))
    copied = (tmp_path / "fixed" / "sub" / "good.nc").read_bytes()
    assert copied == (archive / "sub" / "good.nc").read_bytes()
    arguments = (archive, "-o", "fixed", "--task", "1/2", "--resume")
    code, out, _ = run("fix", *arguments)
    assert code == 0
    assert "done before" in out


def test_a_dry_run_of_many(archive: Path) -> None:
    before = stamps(archive)
    (archive / "cut.h5").write_bytes((archive / "bad0.h5").read_bytes()[:3000])
    code, out, _ = run("fix", archive, "--dry-run")
    assert code == 1
    assert out.count("planned") == 4  # three files, and their number
    assert "(small-chunks)" in out
    assert "FAILED" in out
    assert "(nothing to mend)" in out
    del (after := stamps(archive))["cut.h5"]
    assert after == before


def test_mistakes_are_one_line(archive: Path) -> None:
    Path("text.h5").write_text("no")
    before = stamps(archive)
    said = mistakes("""
fix
fix archive
fix archive --in-place --jobs 2 --budget 5s
fix archive --in-place --unchanged copy
fix archive/bad0.h5 --in-place --task 1/2
fix archive --in-place --task 3/2
fix --files-from none.txt --in-place
fix archive/bad0.h5
fix archive/bad0.h5 -o b.h5 --in-place
fix archive/bad0.h5 --dry-run --no-measure --budget 5s
fix archive/bad0.h5 --dry-run --access nonsense
fix archive/bad0.h5 -o archive/bad0.h5
fix archive/bad0.h5 -o nowhere/b.h5
fix archive/bad0.h5 --in-place --budget soon
fix archive --in-place --jobs 2 --advise 9s
fix archive/bad0.h5 -o b.h5 --access 1x1x1x1
fix text.h5 --in-place
fix text.h5 --dry-run
fix text.h5 -o b.h5
fix none.h5 --dry-run
""")
    assert_golden("fix-mistakes", said.replace(str(archive.parent), "FOLDER"))
    assert stamps(archive) == before
