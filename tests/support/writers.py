"""Which writers are sabotaged, each with a small run of its own?

Each function takes a folder, writes in it as a program would, and gives an exit code. `prepare`
makes what a writer reads.
"""

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np

import chunkwise
import chunkwise.fixing.render
from chunkwise.cli import repack as _repack  # noqa: F401
from chunkwise.cli.main import main as command_line
from chunkwise.errors import ChunkwiseError
from chunkwise.manifest import manifest as manifests
from tests.support.repacking import write_example

# Once for all runs, each of which is a fork: importing takes longer than most of them.
with contextlib.suppress(ImportError):
    import dask.array as da
    import xarray as xr

    import chunkwise.dask
    import chunkwise.xarray

VALUES = np.random.default_rng(3).integers(0, 90, (60, 40, 20), "i4").cumsum(axis=0, dtype="i4")
CHUNK = (20, 20, 20)


def _command(*words: str) -> int:
    sys.argv[1:] = words
    try:
        command_line()
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


def repack(_: Path) -> int:
    """`chunkwise repack` to a new file."""
    return _command(
        "repack", "in.h5", "out.h5", "--chunk", "cube:40x16x16", "--filter", "deflate:2"
    )


def repack_in_place(_: Path) -> int:
    """`chunkwise repack --in-place`."""
    return _command("repack", "--in-place", "in.h5", "--chunk", "cube:40x16x16", "--filter", "lzf")


def manifest(_: Path) -> int:
    """`chunkwise repack`, and `chunkwise.verify` that writes a manifest of the result."""
    code = _command("repack", "in.h5", "out.h5", "--filter", "lzf")
    if code:
        return code
    found = chunkwise.verify("out.h5", write_manifest="m.json")
    if found.verdict == "sound":
        return 0
    print(found, file=sys.stderr)
    return 1


def fix(folder: Path) -> int:
    """`chunkwise.fix`, in place."""
    try:
        chunkwise.fix(folder / "in.h5", in_place=True, seconds=0)
    except ChunkwiseError as error:
        print(error, file=sys.stderr)
        return int(error.exit_code)
    return 0


def opened(folder: Path) -> int:
    """A program that writes through `chunkwise.open`."""
    with chunkwise.open(folder / "out.h5", "w") as file:
        _fill(file)
    return 0


def changed(folder: Path) -> int:
    """A program that adds to a file through `chunkwise.open`."""
    with chunkwise.open(folder / "in.h5", "r+") as file:
        _fill(file)
    return 0


def patched(folder: Path) -> int:
    """A program of h5py's, patched."""
    from chunkwise.patching import patch_h5py

    patch_h5py()
    with h5py.File(folder / "out.h5", "w") as file:
        _fill(file)
    return 0


def _fill(file: Any) -> None:
    group = file.create_group("new")
    group.attrs["units"] = "K"
    group["text"] = "some text"
    cube = group.create_dataset(
        "cube", VALUES.shape, "i4", chunks=CHUNK, maxshape=(None, 40, 20), compression=2
    )
    for begin in range(0, 60, 30):
        cube[begin : begin + 30] = VALUES[begin : begin + 30]
    group.create_dataset("plain", data=VALUES[0])
    group.create_dataset("lines", data=VALUES[1], chunks=(10, 20), shuffle=True, compression=1)
    cube.attrs["long"] = np.arange(3000.0)


def to_netcdf(folder: Path) -> int:
    """`chunkwise.xarray.to_netcdf`, by threads."""
    lazy = da.from_array(VALUES, chunks=(20, 40, 20))
    made = xr.Dataset({"t": (("x", "y", "z"), lazy, {"units": "K"})}, {"x": np.arange(60.0)})
    deflated = {"t": {"zlib": True, "complevel": 1}}
    chunkwise.xarray.to_netcdf(made, folder / "out.nc", encoding=deflated)
    return 0


def to_hdf5(folder: Path) -> int:
    """`chunkwise.dask.to_hdf5`, by threads."""
    lazy = da.from_array(VALUES, chunks=(20, 40, 20))
    made = {"new/cube": lazy, "new/plain": lazy[0]}
    chunkwise.dask.to_hdf5(made, folder / "out.h5", filters="deflate:1")
    return 0


#: All of them; `REPACKING` have a source, which those `IN_PLACE` change.
REPACKING = ("repack", "repack_in_place", "manifest", "fix")
IN_PLACE = ("repack_in_place", "fix", "changed")
_ALL = (repack, repack_in_place, manifest, fix, opened, changed, patched, to_netcdf, to_hdf5)
WRITERS: dict[str, Callable[[Path], int]] = {one.__name__: one for one in _ALL}


def prepare(name: str, folder: Path) -> None:
    """Make what a writer reads."""
    if name == "changed" or name in REPACKING:
        write_example(folder / "in.h5")
    if name == "fix":
        with h5py.File(folder / "in.h5", "r+") as file:
            file.create_dataset("small", data=np.arange(60_000), chunks=(20,), compression=1)


def is_right(name: str, folder: Path, source: dict[str, Any]) -> bool:
    """Whether a writer's result is there, and whole; `source` is what its source holds."""
    written = folder / "m.json"
    if written.exists() and set(manifests.read(written)) != {"out.h5"}:
        return False
    path = folder / (
        "in.h5" if name in IN_PLACE else "out.nc" if name == "to_netcdf" else "out.h5"
    )
    if not path.exists():
        return False
    wanted = dict(source)
    if name == "to_netcdf":
        wanted = {"t": VALUES, "x": np.arange(60.0)}
    elif name == "to_hdf5":
        wanted = {"new/cube": VALUES, "new/plain": VALUES[0]}
    elif name not in REPACKING:
        wanted |= {"new/cube": VALUES, "new/plain": VALUES[0], "new/lines": VALUES[1]}
        wanted |= {"new/text": b"some text", "new@units": "K", "new/cube@long": np.arange(3000.0)}
    found = contents(path)
    # netCDF has dimensions as well, which hold nothing.
    as_many = name == "to_netcdf" or set(found) == set(wanted)
    return as_many and all(
        one in found and np.array_equal(found[one], wanted[one]) for one in wanted
    )


def contents(path: Path) -> dict[str, Any]:
    """All values of a file, and of its attributes but references; nothing if it is damaged."""
    found: dict[str, Any] = {}

    def look(name: str, one: Any) -> None:
        if _is_data(one):
            found[name] = one[()]
        for key, value in one.attrs.items():
            if not isinstance(value, h5py.Reference):
                found[f"{name}@{key}"] = value

    try:
        with h5py.File(path) as file:
            file.visititems(look)
    except (OSError, RuntimeError, KeyError):
        return {}
    return found


def _is_data(one: Any) -> bool:
    return isinstance(one, h5py.Dataset) and h5py.check_ref_dtype(one.dtype) is None
