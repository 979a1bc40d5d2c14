"""Does a file that patched h5py writes hold what h5py writes, whatever else was done to it?

The same random calls of h5py on three files, on one of them patched, on one of them without
filters: assignments of every kind, also below h5py's own methods, resizes, flushes, datasets
deleted and made anew, files closed and opened again.
"""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from h5py import h5d, h5p, h5s, h5t, h5z

import chunkwise
from chunkwise.writing import at_once
from tests.attack.writes import NUMBERS, OTHERS, PIPELINES, drawn
from tests.support.native import leave_partial_chunks_unfiltered

SHORT = 60

_OTHER_TYPES = ["u1", "<i2", ">i4", "<i8", "<f4", ">f8", "f2"]


def attempt(seed: int, folder: Path) -> None:
    """One dataset of each file, and all that is done to both."""
    rng = random.Random(seed)
    story = _Story(rng, folder)
    smallest, at_once.SMALLEST_NBYTES = at_once.SMALLEST_NBYTES, 0
    fast, at_once.SMALLEST_FAST_NBYTES = at_once.SMALLEST_FAST_NBYTES, 0
    try:
        story.run()
    except _LostByH5pyError:
        return
    except AssertionError as error:
        told = "\n  ".join(story.told)
        raise AssertionError(f"{error}\n  {told}") from error
    finally:
        at_once.SMALLEST_NBYTES, at_once.SMALLEST_FAST_NBYTES = smallest, fast


class _LostByH5pyError(Exception):
    """Plain h5py does not read what it has written itself.

    Where a new chunk takes as many bytes as the former one, of which libhdf5 had left filters
    out, or leaves them out now, it keeps the former's filter mask (`tests/upstream`).
    """


class _Story:
    """The files, and what was done to all."""

    shape: tuple[int, ...]
    edges: bool

    def __init__(self, rng: random.Random, folder: Path) -> None:
        self.rng = rng
        self.told: list[str] = []
        self.paths = tuple(folder / f"{name}.h5" for name in ("plain", "patched", "unfiltered"))
        self.libver = rng.choice(["earliest", "latest", "v110"])
        self.driver: dict[str, Any] = rng.choice([{}, {}, {"driver": "core"}])
        self.options = self.driver | {"rdcc_nbytes": rng.choice([0, 300, 5000, 1 << 20])}
        self.told.append(f"libver {self.libver}, {self.options}")
        self.files: list[h5py.File] = []
        self.held: list[h5py.Dataset] = []

    def run(self) -> None:
        """Make the dataset, work on it, close, and compare what is in the files."""
        for mode in ["w", "r+"][: self.rng.choice([1, 1, 2])]:
            self.files = [
                h5py.File(path, mode, libver=self.libver, **self.options) for path in self.paths
            ]
            if mode == "w":
                self._make(None)
            self.held = [file["x"] for file in self.files]
            for _ in range(self.rng.randint(2, 10)):
                self._step()
            self.held = []
            for file in self.files:
                file.close()
            self.told.append("close")
            self._compare_closed()

    def _compare_closed(self) -> None:
        contents = []
        for path in self.paths:
            with h5py.File(path) as file:
                contents.append(_read_all(file["x"], plain=path == self.paths[0]))
        plain, patched, unfiltered = contents
        self._same(plain, patched, unfiltered, "what h5py reads")
        with chunkwise.open(self.paths[1]) as ours:
            self._same(plain, ours["x"][...], unfiltered, "what chunkwise reads")

    def _step(self) -> None:
        steps = ["put"] * 8 + ["whole"] * 3 + ["direct", "below", "resize", "resize", "flush"]
        steps += ["read", "again", "anew"]
        getattr(self, "_" + self.rng.choice(steps))()

    # What is done ---------------------------------------------------------------------

    def _put(self) -> None:
        index = self._index()
        value = self._value(index)
        self._both(f"[{index}] = {_described(value)}", lambda d: d.__setitem__(index, value))

    def _whole(self) -> None:
        index = self.rng.choice([..., (), slice(None)])
        value = self._value(...)
        self._both(f"[{index}] = {_described(value)}", lambda d: d.__setitem__(index, value))

    def _direct(self) -> None:
        index = self._index()
        value = self._value(index)
        if not isinstance(value, np.ndarray):
            return
        self._both(f"write_direct to {index}", lambda d: d.write_direct(value, None, index))

    def _below(self) -> None:
        """By the low-level function, which nobody patches."""
        if self.shape and 0 not in self.shape:
            box = [self._bounds(n) for n in self.shape]
            start, count = tuple(a for a, _ in box), tuple(b - a for a, b in box)
            values = self._values(count)

            def write(d: h5py.Dataset) -> None:
                space = d.id.get_space()
                space.select_hyperslab(start, count)
                d.id.write(h5s.create_simple(count), space, values)

            self._both(f"low-level write of {box}", write)

    def _resize(self) -> None:
        if self.edges:
            return  # libhdf5 loses chunks, whoever has written them.
        new = tuple(
            self.rng.choice([n, n + self.rng.randint(0, 9), self.rng.randint(1, n + 9)])
            for n in self.shape
        )
        self._both(f"resize to {new}", lambda d: d.resize(new))
        self.shape = new

    def _flush(self) -> None:
        self._both("flush", lambda d: d.file.flush())

    def _again(self) -> None:
        """Go on with other objects of the same dataset."""
        self.told.append("other objects")
        self.held = [file["x"] for file in self.files]

    def _anew(self) -> None:
        """Make another dataset in its place, maybe at the same address."""
        if self.rng.random() < 0.4:
            self.held = []
            for file in self.files:
                del file["x"]
            self._make(self._values)

    def _read(self) -> None:
        plain, patched, unfiltered = (_read_all(d, plain=d is self.held[0]) for d in self.held)
        self._same(plain, patched, unfiltered, "what is read meanwhile")

    # With what ------------------------------------------------------------------------

    def _make(self, data: Callable[[tuple[int, ...]], Any] | None) -> None:
        rng = self.rng
        self.pipeline = rng.choice(list(PIPELINES))
        few = self.pipeline.startswith(("szip", "scaleoffset"))
        self.dtype = np.dtype(rng.choice(NUMBERS if few or rng.random() < 0.6 else OTHERS))
        rank = rng.choice([1, 1, 2, 2, 3])
        most = {1: 80, 2: 14, 3: 7}[rank]
        self.shape = tuple(rng.randint(1, most) for _ in range(rank))
        self.chunks = tuple(rng.randint(1, max(n // 2, 2)) for n in self.shape)
        if "szip" in self.pipeline:
            # At least one block.
            self.chunks = (*self.chunks[:-1], rng.randint(16, 40))
        self.edges = rng.random() < 0.2 and self.libver != "earliest"
        limits = [
            None if chunk > n else (n, None, n + 30)[rng.randrange(3)]
            for n, chunk in zip(self.shape, self.chunks, strict=True)
        ]
        dcpl = h5p.create(h5p.DATASET_CREATE)
        dcpl.set_chunk(self.chunks)
        alloc = rng.choice([h5d.ALLOC_TIME_EARLY, h5d.ALLOC_TIME_INCR, h5d.ALLOC_TIME_LATE])
        dcpl.set_alloc_time(alloc)
        dcpl.set_fill_time(rng.choice([h5d.FILL_TIME_ALLOC, h5d.FILL_TIME_IFSET]))
        if self.dtype.kind in "iufc" and not self.dtype.metadata and rng.random() < 0.5:
            dcpl.set_fill_value(np.array(7, self.dtype))
        bare = dcpl.copy()
        for case in PIPELINES[self.pipeline]:
            dcpl.set_filter(case.number, h5z.FLAG_OPTIONAL, case.cd_values)
        if self.edges:
            leave_partial_chunks_unfiltered(dcpl)
        self.told.append(
            f"{self.pipeline}, {self.dtype}, shape {self.shape} of {limits}, "
            f"chunks {self.chunks}, unfiltered edges {self.edges}, alloc {alloc}"
        )
        values = None if data is None else data(self.shape)

        def make(file: h5py.File, dcpl: h5p.PropDCID) -> h5py.Dataset:
            if values is not None:
                return file.create_dataset(
                    "x", self.shape, self.dtype, values, maxshape=tuple(limits), dcpl=dcpl,
                    chunks=self.chunks, track_order=True,
                )  # fmt: skip
            most = tuple(h5s.UNLIMITED if n is None else n for n in limits)
            space = h5s.create_simple(self.shape, most)
            kind = h5t.py_create(self.dtype, logical=True)
            return h5py.Dataset(h5d.create(file.id, b"x", kind, space, dcpl))

        plain, unfiltered = make(self.files[0], dcpl), make(self.files[2], bare)
        with chunkwise.patch_h5py():
            self.held = [plain, make(self.files[1], dcpl), unfiltered]

    def _both(self, what: str, work: Callable[[h5py.Dataset], Any]) -> None:
        self.told.append(what)
        outcomes = [_outcome(work, self.held[0])]
        with chunkwise.patch_h5py():
            outcomes.append(_outcome(work, self.held[1]))
        _outcome(work, self.held[2])
        assert outcomes[0] == outcomes[1], f"{what}: {outcomes}"

    def _bounds(self, size: int) -> tuple[int, int]:
        begin, end = sorted(self.rng.choices(range(size + 1), k=2))
        return (0, size) if begin == end else (begin, end)

    def _index(self) -> Any:
        """Mostly a box of elements; now and then one that h5py alone takes, or refuses."""
        index: list[Any] = []
        for size, chunk in zip(self.shape, self.chunks, strict=True):
            begin, end = self._bounds(size)
            if self.rng.random() < 0.5:
                begin = begin // chunk * chunk
                end = min(-(-end // chunk) * chunk, size)
            step = self.rng.choice([None] * 8 + [1, 2])
            index.append(slice(begin, end, step))
            if self.rng.random() < 0.1:
                index[-1] = self.rng.choice([begin, begin - size, size + 3, [begin]])
        if self.rng.random() < 0.1:
            index.pop()
        return tuple(index)

    def _value(self, index: Any) -> Any:
        try:
            shape = np.empty(self.shape, "V1")[index].shape
        except IndexError:
            shape = (1,)
        kind = self.rng.random()
        if kind < 0.1:
            return self._values(())[()]
        if kind < 0.15 and self.dtype.kind in "iuf":
            return self.rng.choice([3, 2.5, -1, 300])
        if kind < 0.2 and shape:
            return self._values(shape[1:])
        if kind < 0.25:
            return self._values((*shape, 2))
        values = self._values(shape)
        if kind < 0.4 and self.dtype.kind in "iuf" and not self.dtype.metadata:
            with np.errstate(all="ignore"):
                values = values.astype(self.rng.choice(_OTHER_TYPES))
        if kind > 0.9:
            values = np.asfortranarray(values)
        return values

    def _values(self, shape: tuple[int, ...]) -> Any:
        return drawn(self.rng, self.dtype, shape, 0.5)

    def _same(self, plain: Any, patched: Any, unfiltered: Any, what: str) -> None:
        assert plain.shape == patched.shape, f"{what} has the shape {patched.shape}"
        differs = np.atleast_1d(plain != patched)
        if self.pipeline == "none":
            # With late allocation libhdf5 leaves memory in edge chunks of a dataset that is first
            # written whole, which a resize brings to light: what that is nobody can say.
            differs &= np.atleast_1d(plain == unfiltered)
        elif differs.any() and np.array_equal(patched, unfiltered):
            raise _LostByH5pyError
        wrong = np.flatnonzero(differs)
        assert not wrong.size, f"{what} is wrong at {wrong[:20].tolist()} ({wrong.size})"


def _read_all(dataset: h5py.Dataset, *, plain: bool) -> Any:
    try:
        return dataset[...]
    except OSError as error:
        if plain:
            raise _LostByH5pyError from error
        raise


def _outcome(work: Callable[[h5py.Dataset], Any], dataset: h5py.Dataset) -> Any:
    try:
        work(dataset)
    except Exception as error:
        # Some messages name the file.
        return type(error), str(error).replace("patched.h5", "plain.h5")
    return None


def _described(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} of shape {value.shape}"
    return repr(value)
