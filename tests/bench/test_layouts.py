"""Do the lines that bench prints, compiled or run as pasted, do what it says?"""

from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from chunkwise.grammar import Pipeline
from chunkwise.measure.explain import copied
from chunkwise.measure.target import Target, look
from chunkwise.measure.variants import Variant
from chunkwise.remedy.fix import Fix
from chunkwise.remedy.records import ReadOnce, SetCache
from chunkwise.remedy.spelling import in_c, spelled
from tests.bench.test_explain import ALL, CUBE, LINE, advise, cell
from tests.support.processes import ran
from tests.support.tools import paste, require_tool

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


# --- lines of C --------------------------------------------------------------------------


VALUES = np.arange(24 * 30, dtype=">i4").reshape(24, 30)
ODD_NAMES = ["t", "g/t", "it's", 'say "hi"', "back\\slash", "é", "new\nline", "why??=", "a%d"]
# Of each name: all is read once, then with the cache in force.
PROGRAM = r"""
#include <hdf5.h>
#include <stdlib.h>
#include <stdio.h>
static void cached_%(number)d(void) {
%(cached)s
  hid_t in_force = H5Dget_access_plist(dataset);
  size_t nslots, nbytes; double w0;
  H5Pget_chunk_cache(in_force, &nslots, &nbytes, &w0);
  printf("%%zu %%zu", nslots, nbytes);
}
static void read_%(number)d(void) {
%(once)s
  long long sum = 0;
  for (hssize_t i = 0; i < n; i++) sum += ((int *)array)[i];
  printf(" %%lld\n", sum);
}
"""


def test_lines_of_c_do_what_they_say(tmp_path: Path) -> None:
    parts, calls = [], []
    for number, name in enumerate(ODD_NAMES):
        path = tmp_path / f"{name.replace('/', '-')}.h5"
        with h5py.File(path, "w") as file:
            file.create_dataset(name, data=VALUES, chunks=(4, 30), compression=1)
        lines = {
            "cached": in_c(SetCache(path.name, name, 3 << 20, 1009)),
            "once": in_c(ReadOnce(path.name, name)),
        }
        parts.append(PROGRAM % {"number": number, **lines})
        calls.append(f"  cached_{number}(); read_{number}();")
    main = "int main(void) {\n" + "\n".join(calls) + "\n  return 0;\n}\n"
    (tmp_path / "pasted.c").write_text("".join(parts) + main, encoding="utf-8")
    options = ["-Wall", "-Werror", "-Wno-unused-variable", "-o", "pasted"]
    built = ran([require_tool("h5cc"), "pasted.c", *options], cwd=tmp_path, timeout=120)
    assert built.returncode == 0, built.stderr
    done = ran(["./pasted"], cwd=tmp_path, timeout=60)
    assert done.returncode == 0, done.stderr
    expected = f"1009 {3 << 20} {VALUES.sum()}"
    assert done.stdout.splitlines() == [expected] * len(ODD_NAMES)


def test_a_command_has_no_like_in_c() -> None:
    long = replace(CUBE, shape=(730, 600, 600))
    line = replace(LINE, block=(730, 1, 1))
    advice = advise(long, cell(long, line, 1.2e6), cell(long, replace(ALL, block=long.shape), 3.5))
    assert str(advice.fix).startswith("chunkwise repack")
    assert advice.in_c is None
