"""Do the lines that bench prints store the data as it was measured?"""

from pathlib import Path

import h5py
import numpy as np
import pytest

from chunkwise.grammar import Pipeline
from chunkwise.measure.explain import copied
from chunkwise.measure.target import Target, look
from chunkwise.measure.variants import Variant
from chunkwise.remedy.fix import Fix
from chunkwise.remedy.spelling import spelled
from tests.support.tools import paste

DATA = np.arange(24 * 30 * 20, dtype="<i4").reshape(24, 30, 20)
STORED = "shuffle+deflate:2"
LAYOUTS = {
    "other chunks": Variant((12, 10, 20), STORED),
    "other filters": Variant((1, 30, 20), "deflate:5"),
    "no filter": Variant((1, 30, 20), "none"),
    "both": Variant((24, 5, 5), "shuffle+deflate:6"),
    "contiguous": Variant(None, "none"),
}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    with h5py.File("a file.nc", "w") as made:
        made.create_dataset("t", data=DATA, chunks=(1, 30, 20), compression=2, shuffle=True)
    return tmp_path / "a file.nc"


def commands(target: Target, variant: Variant) -> list[Fix]:
    return [fix for fix in spelled(copied(target, variant)) if not fix.writing]


def layout_of(path: Path) -> tuple[tuple[int, ...] | None, str]:
    with h5py.File(path) as made:
        assert np.array_equal(made["t"], DATA)
        return made["t"].chunks, str(Pipeline.from_dcpl(made["t"].id.get_create_plist()))


@pytest.mark.parametrize("variant", LAYOUTS.values(), ids=LAYOUTS)
def test_each_line_gives_its_layout_as_pasted(file: Path, variant: Variant) -> None:
    target = look(file.name, "t")
    lines = commands(target, variant)
    tools = [fix.tool for fix in lines]
    assert tools[0] == "chunkwise"
    # Of a layout without chunks, nccopy knows nothing.
    wanted = {"chunkwise", "h5repack"} | ({"nccopy"} if variant.chunks is not None else set())
    assert set(tools) == wanted
    for fix in lines:
        before = set(file.parent.iterdir())
        paste(fix.text, file.parent)
        (made,) = set(file.parent.iterdir()) - before
        assert layout_of(made) == (variant.chunks, variant.filters), fix.text
        made.unlink()


def test_a_tool_that_would_lose_another_dataset_is_not_offered(file: Path) -> None:
    with h5py.File(file, "r+") as made:
        made.create_dataset("other", data=DATA, chunks=(1, 30, 20), compression="lzf")
    for variant in LAYOUTS.values():
        (fix,) = commands(look(file.name, "t"), variant)
        assert fix.tool == "chunkwise"


def test_nccopy_is_not_offered_for_chunks_longer_than_the_data(tmp_path: Path) -> None:
    path = tmp_path / "grows.nc"
    with h5py.File(path, "w") as made:
        made.create_dataset("t", data=DATA, chunks=(1, 30, 20), maxshape=(None, 30, 20))
    found = commands(look(path, "t"), Variant((100, 30, 20), "none"))
    assert [fix.tool for fix in found] == ["chunkwise", "h5repack"]
