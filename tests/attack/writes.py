"""Is what was written what is read, whatever was written how, and whoever reads it?

Random writes, resizes and flushes of one dataset, of any type behind any filters, beside the same
ones of a NumPy array.  Where libhdf5 leaves no filter out, h5py writes and resizes in turns with
us.
"""

import random
from pathlib import Path
from typing import Any

import h5py
import hdf5plugin
import numpy as np
from h5py import h5z

import chunkwise
from tests.support.filtered import Case, create, of_plugin

SHORT = 60

SHUFFLE, DEFLATE, FLETCHER32 = (Case(h5z.FILTER_SHUFFLE), h5z.FILTER_DEFLATE, Case(3))
PIPELINES: dict[str, list[Case]] = {
    "none": [],
    **{f"deflate {level}": [Case(DEFLATE, (level,))] for level in (0, 1, 6, 9)},
    "shuffle+deflate": [SHUFFLE, Case(DEFLATE, (4,))],
    "shuffle+deflate+fletcher32": [SHUFFLE, Case(DEFLATE, (1,)), FLETCHER32],
    "fletcher32": [FLETCHER32],
    "szip nn": [Case(h5z.FILTER_SZIP, (32, 8))],
    "szip ec": [Case(h5z.FILTER_SZIP, (4, 16))],
    "szip nn+fletcher32": [Case(h5z.FILTER_SZIP, (32, 4)), FLETCHER32],
    "lzf": [Case(h5z.FILTER_LZF)],
    "shuffle+lzf": [SHUFFLE, Case(h5z.FILTER_LZF)],
    "nbit": [Case(h5z.FILTER_NBIT)],
    "scaleoffset": [Case(h5z.FILTER_SCALEOFFSET, (2, 0))],
    "lz4": [of_plugin(hdf5plugin.LZ4())],
    "zstd": [of_plugin(hdf5plugin.Zstd(3))],
    "bitshuffle": [of_plugin(hdf5plugin.Bitshuffle(cname="lz4"))],
    "bitshuffle zstd": [of_plugin(hdf5plugin.Bitshuffle(cname="zstd"))],
    "blosc": [of_plugin(hdf5plugin.Blosc(cname="lz4", clevel=5, shuffle=1))],
    "blosc stored": [of_plugin(hdf5plugin.Blosc(clevel=0))],
    "blosc blosclz": [of_plugin(hdf5plugin.Blosc(cname="blosclz", clevel=9, shuffle=2))],
    "blosc2": [of_plugin(hdf5plugin.Blosc2(cname="zstd", clevel=3, filters=1))],
    "bzip2": [of_plugin(hdf5plugin.BZip2(1))],
}
NUMBERS = ["u1", "<i2", ">i2", "<u4", "<i8", ">u8"]
OTHERS = [
    "<f4",
    ">f8",
    "<c8",
    "?",
    "S5",
    "V3",
    h5py.enum_dtype({"A": 0, "B": 1, "C": 2}, basetype="i2"),
    np.dtype([("a", "<i4"), ("b", ">f4"), ("c", "S2"), ("d", "<i2", (2,))]),
]


def attempt(seed: int, folder: Path, pipeline: str | None = None) -> None:
    """One dataset, its writes, and what is read of it meanwhile and at last."""
    rng = random.Random(seed)
    name = pipeline or rng.choice(list(PIPELINES))
    few = name.startswith(("szip", "scaleoffset"))
    dtype = np.dtype(rng.choice(NUMBERS if few or rng.random() < 0.5 else OTHERS))
    story = _Story(rng, dtype, name, folder / "x.h5")
    try:
        story.run()
    except AssertionError as error:
        told = "\n  ".join(story.told)
        raise AssertionError(f"{name}, {dtype}: {error}\n  {told}") from error


def drawn(rng: random.Random, dtype: np.dtype[Any], shape: tuple[int, ...], noise: float) -> Any:
    """Values of the type, all the same or noise: any bytes, but for what is compared as a number.

    Bytes of ASCII are numbers, text and, as any, characters.
    """
    numbers_of = np.random.default_rng(rng.getrandbits(32))
    count, is_noise = int(np.prod(shape)), rng.random() < noise
    if is_noise and dtype.kind in "iu" and not dtype.metadata:
        return np.frombuffer(numbers_of.bytes(count * dtype.itemsize), dtype).reshape(shape).copy()
    low = 0 if dtype.kind == "b" or dtype.metadata else 1
    most = 1 if dtype.kind == "b" else 2 if dtype.metadata else 100
    numbers = np.broadcast_to(numbers_of.integers(low, most + 1, count if is_noise else 1), count)
    if dtype.fields is None:
        some = numbers.astype("S3") if dtype.kind in "SV" else numbers
        some = some.view("V3") if dtype.kind == "V" else some.astype(dtype)
        return np.ascontiguousarray(some).reshape(shape)
    made: Any = np.zeros(count, dtype)
    for name in ("a", "b", "c"):
        made[name] = numbers
    made["d"] = numbers[:, None]
    return made.reshape(shape)


class _Story:
    """A dataset, a model of it, and what was done to both."""

    def __init__(self, rng: random.Random, dtype: np.dtype[Any], name: str, path: Path) -> None:
        self.rng, self.dtype, self.path = rng, dtype, path
        self.told: list[str] = []
        rank = rng.choice([1, 1, 1, 2, 2, 3])
        most = {1: 80, 2: 14, 3: 7}[rank]
        self.shape = tuple(rng.randint(1, most) for _ in range(rank))
        self.chunks = tuple(rng.randint(1, max(most // 2, 2)) for _ in range(rank))
        if rank == 1 and rng.random() < 0.5:
            self.chunks = (rng.randint(9, 40),)
        if "szip" in name:
            # At least one block.
            self.chunks = (*self.chunks[:-1], rng.randint(16, 40))
        self.model: Any = np.zeros(self.shape, dtype)
        # Zeros say what their bytes are also where a type has room between fields.
        libver = rng.choice(["earliest", "latest"])
        edges = rng.random() < 0.2 and libver == "latest"
        # Of a filter that was left out libhdf5 may keep the mask (`tests/upstream`).
        self.in_turns = name.startswith(("none", "deflate", "shuffle+deflate", "fletcher32"))
        self.limits = tuple(
            None if rng.random() < 0.7 else 4 * max(pair)
            for pair in zip(self.shape, self.chunks, strict=True)
        )
        # Little stays in libhdf5's cache, or all.
        self.cache: dict[str, Any] = {"rdcc_nbytes": rng.choice([0, 200, 1 << 20])}
        with h5py.File(path, "w", libver=libver) as file:
            self._create(file, PIPELINES[name], edges)
        self.noise = rng.choice([0.0, 0.3, 0.7, 1.0])
        self.told.append(
            f"shape {self.shape}, chunks {self.chunks}, libver {libver}, unfiltered edges {edges}"
        )

    def _create(self, file: h5py.File, filters: list[Case], edges: bool) -> None:
        made = create(
            file,
            "x",
            self.dtype,
            self.shape,
            self.chunks,
            filters,
            self.limits,
            unfiltered_edges=edges,
        )
        if edges:
            # Before a chunk was written, libhdf5 refuses to resize such a dataset.
            made[...] = self.model

    def run(self) -> None:
        """Do some of all that can be done, twice with the file closed between."""
        for _ in range(self.rng.choice([1, 1, 2])):
            with h5py.File(self.path, "r+", **self.cache) as file:
                d = chunkwise.wrap(file["x"])
                for _ in range(self.rng.randint(2, 12)):
                    self._step(d, file)
            self.told.append("close")
            with h5py.File(self.path) as file:
                self._same(file["x"][...], "what h5py reads")
                self._same(chunkwise.wrap(file["x"])[...], "what chunkwise reads")

    def _step(self, d: chunkwise.Dataset, file: h5py.File) -> None:
        steps = ["slice"] * 4 + ["list"] * 4 + ["mask", "points", "append", "resize", "resize"]
        steps += ["flush", "file flush", "read", "read by h5py", "whole"]
        steps += ["write by h5py"] * 3 * self.in_turns
        steps += ["field"] * 4 * (self.dtype.fields is not None)
        step = self.rng.choice(steps)
        if 0 in self.model.shape and step not in ("append", "resize"):
            return
        getattr(self, "_" + step.replace(" ", "_"))(d, file)

    # What is done ---------------------------------------------------------------------

    def _slice(self, d: chunkwise.Dataset, _: h5py.File) -> None:
        self._put(d, tuple(self._range(size) for size in self.model.shape))

    def _whole(self, d: chunkwise.Dataset, _: h5py.File) -> None:
        self._put(d, (Ellipsis,))

    def _list(self, d: chunkwise.Dataset, _: h5py.File) -> None:
        index: list[Any] = [self._range(size) for size in self.model.shape]
        at = self.rng.randrange(len(index))
        size = self.model.shape[at]
        index[at] = sorted(self.rng.sample(range(size), self.rng.randint(1, size)))
        self._put(d, tuple(index))

    def _mask(self, d: chunkwise.Dataset, _: h5py.File) -> None:
        density = self.rng.random()
        mask = np.array([self.rng.random() < density for _ in range(self.model.size)])
        self._put(d, mask.reshape(self.model.shape))

    def _points(self, d: chunkwise.Dataset, _: h5py.File) -> None:
        places = self.rng.sample(range(self.model.size), self.rng.randint(1, self.model.size))
        coordinates = np.stack(np.unravel_index(places, self.model.shape), axis=1)
        values = self._values((len(places),))
        self.told.append(f"points {len(places)}")
        d.write(chunkwise.points(coordinates), values)
        self.model.reshape(-1)[places] = values

    def _field(self, d: chunkwise.Dataset, _: h5py.File) -> None:
        name = self.rng.choice(["a", "b", "c", "d"])
        index = tuple(self._range(size) for size in self.model.shape)
        values = self._values(self.model[index].shape)[name]
        if name == "d":
            # h5py takes an array of such a field from a record alone.
            whole = np.zeros(values.shape[:-1], [("d", "<i2", (2,))])
            whole["d"] = values
            d[(name, *index)] = whole
        else:
            d[(name, *index)] = values
        self.told.append(f"field {name} of {index}")
        self.model[name][index] = values

    def _write_by_h5py(self, d: chunkwise.Dataset, file: h5py.File) -> None:
        d.flush()
        index = tuple(self._range(size) for size in self.model.shape)
        self.told.append(f"{index} by h5py")
        file["x"][index] = self.model[index] = self._values(self.model[index].shape)

    def _append(self, d: chunkwise.Dataset, _: h5py.File) -> None:
        axis = self.rng.randrange(self.model.ndim)
        shape = list(self.model.shape)
        shape[axis] = self.rng.randint(1, 9)
        if (limit := self.limits[axis]) and self.model.shape[axis] + shape[axis] > limit:
            return
        values = self._values(tuple(shape))
        self.told.append(f"append {shape} along {axis}")
        d.append(values, axis)
        self.model = np.concatenate([self.model, values], axis)

    def _resize(self, d: chunkwise.Dataset, file: h5py.File) -> None:
        new = tuple(
            self.rng.choice([size, self.rng.randint(0, size + 9), self.rng.randint(1, size + 9)])
            for size in self.model.shape
        )
        new = tuple(n if m is None else min(n, m) for n, m in zip(new, self.limits, strict=True))
        # Of what was never written libhdf5 cannot (tests/upstream/grow_unwritten.c).
        by_h5py = self.in_turns and self.rng.random() < 0.3
        if by_h5py:
            d.flush()
            by_h5py = file["x"].id.get_storage_size() > 0
        self.told.append(f"resize to {new}{' by h5py' * by_h5py}")
        (file["x"] if by_h5py else d).resize(new)
        grown = np.zeros(new, self.dtype)
        both = tuple(slice(min(a, b)) for a, b in zip(new, self.model.shape, strict=True))
        grown[both] = self.model[both]
        self.model = grown

    def _flush(self, d: chunkwise.Dataset, _: h5py.File) -> None:
        self.told.append("flush")
        d.flush()

    def _file_flush(self, _: chunkwise.Dataset, file: h5py.File) -> None:
        self.told.append("flush of the file")
        file.flush()

    def _read(self, d: chunkwise.Dataset, _: h5py.File) -> None:
        self.told.append("read")
        self._same(d[...], "what is read meanwhile")

    def _read_by_h5py(self, d: chunkwise.Dataset, file: h5py.File) -> None:
        self.told.append("read by h5py")
        d.flush()
        self._same(file["x"][...], "what h5py reads meanwhile")

    # With what ------------------------------------------------------------------------

    def _put(self, d: chunkwise.Dataset, index: Any) -> None:
        values = self._values(self.model[index].shape)
        told = "mask" if isinstance(index, np.ndarray) else index
        self.told.append(f"{told}, {'same' if (values == values.flat[:1]).all() else 'noise'}")
        d[index] = values
        self.model[index] = values

    def _range(self, size: int) -> slice:
        begin, end = sorted(self.rng.choices(range(size + 1), k=2))
        if begin == end:
            begin, end = 0, size
        return slice(begin, end, self.rng.choice([1, 1, 1, 2, 3]))

    def _values(self, shape: tuple[int, ...]) -> Any:
        return drawn(self.rng, self.dtype, shape, self.noise)

    def _same(self, got: Any, what: str) -> None:
        assert got.shape == self.model.shape, f"{what} has the shape {got.shape}"
        wrong = np.flatnonzero(np.atleast_1d(got != self.model))
        assert not wrong.size, f"{what} is wrong at {wrong[:20].tolist()} ({wrong.size})"
