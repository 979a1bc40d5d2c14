"""Which files are read, and where are they kept?"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

import chunkwise
from chunkwise.grammar import format_shape
from chunkwise.trials.pagecache import warm
from chunkwise_lab import sample
from chunkwise_lab.peers.objects import write_cells, write_groups, write_small

# The lists that the compiled program reads: 64-bit numbers.
_NUMBER = np.dtype("<u8")


@dataclass(frozen=True)
class Data:
    """A dataset in a file, or files in a folder."""

    path: Path
    name: str = ""  # The dataset's
    shape: tuple[int, ...] = ()  # In elements

    @property
    def arguments(self) -> dict[str, Any]:
        """What a task needs to open it."""
        kind = "folder" if self.path.is_dir() else "file"
        return {kind: str(self.path)} | ({"dataset": self.name} if self.name else {})


class Store:
    """A folder of generated files."""

    def __init__(
        self, folder: Path, small: bool = False, progress: Callable[[str], None] = lambda _: None
    ) -> None:
        self.folder = folder
        self.small = small  # Whether arrays are tiny, for a test of the comparisons themselves
        self._progress = progress
        folder.mkdir(parents=True, exist_ok=True)

    def shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return an array's shape, or that of its tiny stand-in."""
        return tuple(min(size, 24) for size in shape) if self.small else shape

    def few(self, count: int, most: int) -> int:
        """Return a count, or that of a tiny stand-in."""
        return min(count, most) if self.small else count

    def sampled(
        self,
        name: str,
        shape: tuple[int, ...],
        chunk: tuple[int, ...] | None = None,
        filters: str = "none",
    ) -> Data:
        """Give a sample of this shape and storage (chunk None: contiguous), in memory."""
        if self.small and chunk is not None:
            chunk = tuple(min(size, 10) if size > 1 else 1 for size in chunk)
        shape = self.shape(shape)
        stored = "contiguous" if chunk is None else format_shape(chunk)
        spelled = filters.replace(":", "-").replace("+", "-")
        wanted: Any = "contiguous" if chunk is None else chunk
        path = self.once(
            f"{name}-{format_shape(shape)}-{stored}-{spelled}.h5",
            lambda partial: sample.write(
                name, partial, shape=shape, chunk=wanted, filters=filters
            ),
        )
        return Data(path, sample.find(name).datasets[0], shape)

    def once(self, name: str, write: Callable[[Path], Any]) -> Path:
        """Give a file or a folder in memory, which an earlier run made, or `write` makes."""
        path = self.folder / name
        if not path.exists():
            self._progress(f"writing {name}")
            partial = path.with_name(f".{name}.partial")
            shutil.rmtree(partial, ignore_errors=True)
            partial.unlink(missing_ok=True)
            write(partial)
            partial.rename(path)
        for one in path.iterdir() if path.is_dir() else [path]:
            warm(str(one))
        return path

    def frames(self, shape: tuple[int, ...], filters: str) -> Data:
        """Give counts as a detector has them, 16 bits each, a frame a chunk, in memory."""
        shape = self.shape(shape)
        spelled = filters.replace(":", "-")

        def write(partial: Path) -> None:
            rng, chunks = np.random.default_rng(1), (1, *shape[1:])
            with chunkwise.open(partial, "w") as file:
                frames = file.create_dataset(
                    "frames", shape, "<u2", chunks=chunks, filters=filters
                )
                for number in range(shape[0]):
                    frame = rng.poisson(12, shape[1:]).astype("<u2")
                    frame[::97, ::89] += 1000
                    frames[number] = frame

        path = self.once(f"frames-{format_shape(shape)}-{spelled}.h5", write)
        return Data(path, "/frames", shape)

    def many_chunks(self, count: int) -> Data:
        """Give a dataset of this many chunks of 64 bytes, without filters, in memory."""
        count = self.few(count, 100)

        def write(partial: Path) -> None:
            with h5py.File(partial, "w") as file:
                made = file.create_dataset("chunks", (count, 16), "<i4", chunks=(1, 16))
                for row in range(count):
                    made.id.write_direct_chunk((row, 0), row.to_bytes(4, "little") * 16)

        return Data(self.once(f"chunks-{count}.h5", write), "/chunks", (count, 16))

    def copies(self, data: Data, count: int) -> Data:
        """Give a folder with this many copies of a file, each a file of its own."""
        count = self.few(count, 20)

        def write(partial: Path) -> None:
            partial.mkdir()
            for number in range(count):
                shutil.copyfile(data.path, partial / f"{number}.h5")

        return Data(self.once(f"{data.path.stem}-{count}-times", write), data.name)

    def mapped(
        self, shape: tuple[int, ...], chunk: tuple[int, ...], filters: str, count: int
    ) -> Data:
        """Give a virtual dataset over this many files, one behind the other, in memory."""
        length, *across = self.shape(shape)
        data = self.sampled("cube", (count * length, *across), chunk, filters)
        # Of a tiny stand-in there are fewer.
        count = min(count, data.shape[0] // length)

        def write(partial: Path) -> None:
            partial.mkdir()
            layout = h5py.VirtualLayout((count * length, *across), "f4")
            with chunkwise.open(data.path) as whole:
                values = whole[data.name]
                layout.dtype = values.dtype
                for number in range(count):
                    at = slice(number * length, (number + 1) * length)
                    with chunkwise.open(partial / f"{number}.h5", "w") as file:
                        file.create_dataset(
                            "x", data=values[at], chunks=values.chunks, filters=filters
                        )
                    layout[at] = h5py.VirtualSource(f"{number}.h5", "x", (length, *across))
            with h5py.File(partial / "virtual.h5", "w") as file:
                file.create_virtual_dataset("x", layout)

        folder = self.once(f"{data.path.stem}-in-{count}", write)
        return Data(folder / "virtual.h5", "x", (count * length, *across))

    def netcdf(self, data: Data) -> Data:
        """Give the same dataset with dimensions by name, as netCDF-4 has it, in memory."""

        def write(partial: Path) -> None:
            shutil.copyfile(data.path, partial)
            with h5py.File(partial, "r+") as file:
                for axis, (name, size) in enumerate(zip("tyx", data.shape, strict=True)):
                    scale = file.create_dataset(f"{data.name}_{name}", data=np.arange(size))
                    scale.make_scale(scale.name)
                    file[data.name].dims[axis].attach_scale(scale)

        path = self.once(f"{data.path.stem}.nc", write)
        return Data(path, data.name.strip("/"), data.shape)

    def series(self, count: int) -> Data:
        """Give a folder with this many netCDF-4 files, of ten days each, that make one series."""
        shape, count = self.shape((10, 90, 180)), self.few(count, 4)
        return Data(self.once(f"series-{count}", lambda partial: _series(partial, count, shape)))

    def variables(self, variables: int, count: int) -> Data:
        """Give a folder with files of this many variables, three of them coordinates."""
        variables, count = self.few(variables, 40), self.few(count, 3)
        name = f"variables-{variables}-{count}"
        return Data(self.once(name, lambda partial: _variables(partial, variables, count)))

    def apart(self, variables: int) -> Data:
        """Give a file as xarray writes it, with the data of each variable between its metadata."""
        variables = self.few(variables, 5)
        name = f"apart-{variables}.nc"
        return Data(self.once(name, lambda partial: _apart(partial, variables)))

    def groups(self, count: int, datasets: int) -> Data:
        """Give a file of this many groups, each with a few small datasets."""
        count = self.few(count, 20)
        name = f"groups-{count}-{datasets}.h5"
        return Data(self.once(name, lambda partial: write_groups(partial, count, datasets)))

    def cells(self, count: int) -> Data:
        """Give a file of references to this many small arrays, as MATLAB stores cells."""
        count = self.few(count, 20)
        return Data(self.once(f"cells-{count}.h5", lambda partial: write_cells(partial, count)))

    def small_files(self, count: int) -> Data:
        """Give a folder of this many small files."""
        count = self.few(count, 5)
        return Data(self.once(f"small-{count}", lambda partial: write_small(partial, count)))

    def one_of_many(self) -> Data:
        """Give a file of 1 GB, in 64 datasets, and one small dataset."""
        shape = (self.few(1_000_000_000, 64_000) // 64 // 4,)

        def write(partial: Path) -> None:
            random = np.random.default_rng(0)
            with h5py.File(partial, "w") as file:
                for number in range(64):
                    values = random.integers(0, 1 << 31, shape, "i4")
                    chunk = (min(shape[0], 1 << 18),)
                    file.create_dataset(f"large/{number}", data=values, chunks=chunk, shuffle=True)
                file["small"] = np.arange(1000.0)

        return Data(self.once(f"one-of-many-{256 * shape[0]}.h5", write), "large/63", shape)

    def many_small(self) -> Data:
        """Give a file of 100 datasets of 0.5 MiB in 10 groups, and one of 46 MiB."""
        shape, large = self.shape((8, 128, 128)), self.shape((184, 256, 256))

        def write(partial: Path) -> None:
            random = np.random.default_rng(0)
            with h5py.File(partial, "w") as file:
                for number in range(101):
                    lengths, rows = (large, 4) if number == 100 else (shape, 1)
                    # Numbers that wander, to two decimals, as instruments give them.
                    values = random.normal(size=lengths).cumsum(axis=0).round(2).astype("f4")
                    chunk = (min(lengths[0], rows), *lengths[1:])
                    file.create_dataset(f"{number % 10}/{number}", data=values, chunks=chunk)

        return Data(self.once(f"many-small-{format_shape(large)}.h5", write), "9/99", shape)

    def chunks(
        self, data: Data, wanted: Callable[[tuple[int, ...]], bool] = lambda _: True
    ) -> list[str]:
        """Arguments for ``limits decode``: the chunks whose first element is wanted."""
        rows: list[tuple[int, int, int]] = []
        with h5py.File(data.path) as file:
            dataset = file[data.name]

            def note(chunk: Any) -> None:
                if wanted(chunk.chunk_offset):
                    rows.append((chunk.byte_offset, chunk.size, chunk.filter_mask))

            dataset.id.chunk_iter(note)
            dcpl = dataset.id.get_create_plist()
            filters = ",".join(
                ":".join(map(str, (number, *values)))
                for number, _, values, _ in map(dcpl.get_filter, range(dcpl.get_nfilters()))
            )
            chunk_nbytes = int(np.prod(dataset.chunks)) * dataset.dtype.itemsize
        path = self.numbers(f"{data.path.stem}-{len(rows)}", sorted(rows))
        return ["decode", str(data.path), path, filters, str(chunk_nbytes)]

    def numbers(self, name: str, rows: Collection[tuple[int, ...]] | Any) -> str:
        """Write rows of numbers for the compiled program, and return the path."""
        path = self.folder / f"{name}.u64"
        path.write_bytes(np.asarray(rows, _NUMBER).tobytes())
        return str(path)


def _variables(folder: Path, variables: int, count: int) -> None:
    import netCDF4  # Here, as other groups do without.

    folder.mkdir()
    rng = np.random.default_rng(0)
    axes = {"time": np.arange(4.0), "lat": np.linspace(-85, 85, 18), "lon": np.arange(36) * 10.0}
    for number in range(count):
        with netCDF4.Dataset(folder / f"{number:03}.nc", "w") as file:
            for attribute in range(20):
                file.setncattr(f"attribute_{attribute}", f"what is said of all: {attribute}")
            for name, values in axes.items():
                file.createDimension(name, None if name == "time" else len(values))
                axis = file.createVariable(name, "f8", (name,))
                axis[:] = values + (4 * number if name == "time" else 0)
                axis.units = {"time": "days since 2000-01-01"}.get(name, "degrees")
            for variable in range(variables - len(axes)):
                made = file.createVariable(f"v{variable}", "f4", tuple(axes), zlib=True)
                made.units, made.long_name = "K", f"temperature number {variable}"
                made.standard_name = "air_temperature"
                made[:] = rng.integers(0, 99, (4, 18, 36))


def _apart(path: Path, variables: int) -> None:
    import xarray as xr  # Here, as other groups do without.

    rng = np.random.default_rng(0)
    axes = {"time": np.arange(2.0), "lat": np.linspace(-85, 85, 300), "lon": np.arange(200) * 1.8}
    attributes = {f"attribute_{number}": "what is said of it: " * 3 for number in range(8)}
    fields = {
        f"v{number:02}": (tuple(axes), rng.random((2, 300, 200), "f4"), attributes)
        for number in range(variables - len(axes))
    }
    xr.Dataset(fields, axes, attributes).to_netcdf(path, engine="netcdf4")


def _series(folder: Path, count: int, shape: tuple[int, ...]) -> None:
    import h5netcdf  # Here, as other groups do without.

    folder.mkdir()
    values = np.random.default_rng(0).normal(size=shape).astype("f4")
    axes = {"time": shape[0], "lat": shape[1], "lon": shape[2]}
    for number in range(count):
        with h5netcdf.File(folder / f"{number:04}.nc", "w") as file:
            file.attrs["Conventions"] = "CF-1.8"
            for name, size in axes.items():
                file.dimensions[name] = None if name == "time" else size
            file.resize_dimension("time", axes["time"])
            for name, size in axes.items():
                where = np.arange(size, dtype="f8") + (10 * number if name == "time" else 0)
                axis = file.create_variable(name, (name,), "f8", data=where)
                axis.attrs["units"] = "days since 2000-01-01" if name == "time" else "degrees"
            for name in ("t2m", "u10", "v10", "msl"):
                made = file.create_variable(
                    name, tuple(axes), "f4", chunks=(1, *shape[1:]), compression="gzip"
                )
                made[...] = values
                made.attrs.update(long_name=name, units="1", standard_name=name)
