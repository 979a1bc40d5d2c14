"""Which writers are sabotaged, each with a small run of its own?

Each function takes a folder, writes in it as a program would, and gives an exit code. `prepare`
makes what a writer reads.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np

import chunkwise
from chunkwise.cli.main import main as command_line
from chunkwise.manifest import manifest as manifests
from tests.support.repacking import write_example

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
    import dask.array as da
    import xarray as xr

    from chunkwise.xarray import to_netcdf as write

    lazy = da.from_array(VALUES, chunks=(20, 40, 20))
    made = xr.Dataset({"t": (("x", "y", "z"), lazy, {"units": "K"})}, {"x": np.arange(60.0)})
    write(made, folder / "out.nc", encoding={"t": {"zlib": True, "complevel": 1}})
    return 0


def to_hdf5(folder: Path) -> int:
    """`chunkwise.dask.to_hdf5`, by threads."""
    import dask.array as da

    from chunkwise.dask import to_hdf5 as write

    lazy = da.from_array(VALUES, chunks=(20, 40, 20))
    write({"new/cube": lazy, "new/plain": lazy[0]}, folder / "out.h5", filters="deflate:1")
    return 0


#: All of them; `REPACKING` have a source.
REPACKING = (repack, repack_in_place, manifest)
WRITERS: dict[str, Callable[[Path], int]] = {
    one.__name__: one for one in (*REPACKING, opened, changed, patched, to_netcdf, to_hdf5)
}


def prepare(name: str, folder: Path) -> None:
    """Make what a writer reads."""
    if name == "changed" or WRITERS[name] in REPACKING:
        write_example(folder / "in.h5")


def is_right(name: str, folder: Path, source: dict[str, Any]) -> bool:
    """Whether a writer's result is there, and whole; `source` is what its source holds."""
    kind, in_place = WRITERS[name], name in ("repack_in_place", "changed")
    written = folder / "m.json"
    if written.exists() and set(manifests.read(written)) != {"out.h5"}:
        return False
    path = folder / ("in.h5" if in_place else "out.nc" if kind is to_netcdf else "out.h5")
    if not path.exists():
        return False
    wanted = dict(source)
    if kind is to_netcdf:
        wanted = {"t": VALUES, "x": np.arange(60.0)}
    elif kind is to_hdf5:
        wanted = {"new/cube": VALUES, "new/plain": VALUES[0]}
    elif kind not in REPACKING:
        wanted |= {"new/cube": VALUES, "new/plain": VALUES[0], "new/lines": VALUES[1]}
        wanted["new/text"] = b"some text"
    found = contents(path)
    # netCDF has dimensions as well, which hold nothing.
    as_many = kind is to_netcdf or set(found) == set(wanted)
    return as_many and all(
        one in found and np.array_equal(found[one], wanted[one]) for one in wanted
    )


def contents(path: Path) -> dict[str, Any]:
    """All values of a file, by h5py; nothing if it cannot be read."""
    found: dict[str, Any] = {}
    try:
        with h5py.File(path) as file:
            file.visititems(
                lambda name, one: found.update({name: one[()]}) if _is_data(one) else None
            )
    except (OSError, RuntimeError, KeyError):
        return {}
    return found


def _is_data(one: Any) -> bool:
    return isinstance(one, h5py.Dataset) and h5py.check_ref_dtype(one.dtype) is None
