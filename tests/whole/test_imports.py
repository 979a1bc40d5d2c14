"""Does a program that opens a local file import only what that needs?"""

from pathlib import Path

import h5py
import numpy as np

from tests.support.processes import python

# What each step has imported, as one line: after h5py, chunkwise, opening and reading.
STEPS = """
import sys
def tell():
    print(*sys.modules)
if sys.argv[2] == "h5py first":
    import h5py
    with h5py.File(sys.argv[1]) as file:
        file["x"][:2]
tell()
import chunkwise
tell()
with chunkwise.open(sys.argv[1]) as file:
    tell()
    read = file["x"][:2]
    assert read.tolist() == [[0, 1, 2], [3, 4, 5]]
tell()
"""
AT_ONCE = {"_lazy", "_native", "errors", "names", "settings", "system", "verdicts", "workers"}
FACE = {"dataset", "file", "group", "selection"}
ROOMS = {"_lib", "files", "handles", "routing", "selecting", "words", "writing"}
# Modules of those rooms that wait for a file that is damaged, remote, written or created.
LATER = {
    "files.causes", "files.filters", "handles.sidecar", "writing.alike", "writing.at_once",
    "writing.creating",
}  # fmt: skip
# Other packages, of which a local file that is read needs nothing.
NOT_OURS = {
    *("aiohttp", "click", "dask", "distributed", "fsspec", "netCDF4", "numpy.typing", "pandas"),
    *("rich", "xarray"),
    *("asyncio", "concurrent", "decimal", "difflib", "hashlib", "json", "secrets", "socket"),
    *("ssl", "uuid"),
}


def steps(tmp_path: Path, how: str) -> list[set[str]]:
    path = tmp_path / "local.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=np.arange(12).reshape(4, 3), chunks=(2, 3), shuffle=True)
    return [set(line.split()) for line in python(STEPS, path, how).splitlines()]


def ours(modules: set[str]) -> set[str]:
    return {name.removeprefix("chunkwise.") for name in modules if name.startswith("chunkwise.")}


def test_importing_imports_neither_h5py_nor_numpy(tmp_path: Path) -> None:
    before, imported, *_ = steps(tmp_path, "chunkwise first")
    assert not {"h5py", "numpy"} & (imported - before)
    assert ours(imported) == AT_ONCE


def test_opening_and_reading_import_what_they_need(tmp_path: Path) -> None:
    before, _, opened, read = steps(tmp_path, "h5py first")
    for modules in (opened, read):
        names = ours(modules)
        assert {name.partition(".")[0] for name in names} <= AT_ONCE | FACE | ROOMS
        assert not names & LATER
        assert not (modules - before) & NOT_OURS
