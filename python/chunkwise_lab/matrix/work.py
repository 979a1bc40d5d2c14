"""What does a case do, and how long does it take one of the two libraries?"""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np

import chunkwise
from chunkwise.measure.process import finished, python

LAYOUTS = {
    # Shape, and a chunk's or None: elements of 4 bytes.
    "tiny": ((16, 16, 16), None),
    "tiny-4K": ((16, 16, 16), (4, 16, 16)),
    "contiguous": ((256, 256, 64), None),
    "4K": ((256, 256, 64), (4, 4, 64)),
    "64K": ((256, 256, 64), (16, 16, 64)),
    "1M": ((256, 256, 64), (64, 64, 64)),
    "16M": ((256, 256, 64), (256, 256, 64)),
    # 256 MiB: only where axes are varied one at a time.
    "large": ((1024, 1024, 64), (64, 64, 64)),
    "large-64M": ((1024, 1024, 64), (512, 512, 64)),
    "large-contiguous": ((1024, 1024, 64), None),
}
MAIN_LAYOUTS = ("tiny", "tiny-4K", "contiguous", "4K", "64K", "1M", "16M")
FILTERS = ("none", "deflate", "shuffle+deflate", "lzf")
READS = ("element", "row", "line", "box", "stride", "points", "all")
# The file is opened for each; is open, and nothing cached; once more the same; its neighbours.
PHASES = ("open", "first", "again", "walk")
TYPES = ("<f4", ">f4", "<f8", "<i2", "record")
CONVERSIONS = ("native", "f4", "f8", "i4")
WRITES = ("create", "assign", "part", "rows", "append", "many")


@dataclass(frozen=True, order=True)
class Case:
    """One thing to do, by both libraries."""

    work: str  # ``read`` or ``write``
    how: str  # Of `READS` or `WRITES`
    layout: str  # What the dataset is: of `LAYOUTS`, `FILTERS` and `TYPES`
    filters: str = "none"
    dtype: str = "<f4"
    phase: str = "open"  # Of `PHASES`; writes have none
    wanted: str = "native"  # The type that is read: of `CONVERSIONS`
    threads: int = 1  # That call at a time
    face: str = "open"  # ``open`` (chunkwise's files) or ``patched`` (h5py's, patched)
    process: str = "same"  # ``same``, or ``fresh`` for each sample

    @property
    def name(self) -> str:
        """All values that are not usual, and the first four; no two cases have the same."""
        usual = {field.name: field.default for field in fields(self)}
        said = [self.work, self.how, self.layout, self.filters, self.phase]
        for axis in ("dtype", "wanted", "threads", "face", "process"):
            value = getattr(self, axis)
            if value != usual[axis]:
                said.append(f"{axis}={value}")
        return "/".join(said)


def cases() -> Iterator[Case]:
    """All cases, each once."""
    seen: set[Case] = set()
    for case in itertools.chain(_reads(), _writes()):
        if case not in seen:
            seen.add(case)
            yield case


def _reads() -> Iterator[Case]:
    for layout, filters, how in itertools.product(MAIN_LAYOUTS, FILTERS, READS):
        if LAYOUTS[layout][1] is not None or filters == "none":
            phases = ("open", "again") if how != "all" else ("open",)
            for phase in phases:
                yield Case("read", how, layout, filters, phase=phase)
    usual = [
        Case("read", how, layout, filters)
        for how in ("row", "box", "all")
        for layout, filters in (("contiguous", "none"), ("64K", "deflate"), ("1M", "none"))
    ]
    for case in usual:
        for dtype in TYPES:
            yield replace(case, dtype=dtype)
        for wanted in CONVERSIONS:
            yield replace(case, wanted=wanted)
            yield replace(case, wanted=wanted, dtype=">f4")
        for phase in PHASES:
            yield replace(case, phase=phase)
            yield replace(case, phase=phase, face="patched")
        yield replace(case, threads=4)
        yield replace(case, process="fresh")
    for layout in ("large", "large-64M", "large-contiguous"):
        for how in ("element", "row", "box", "stride", "all"):
            filters = "none" if LAYOUTS[layout][1] is None else "deflate"
            yield Case("read", how, layout, filters)


def _writes() -> Iterator[Case]:
    for layout, filters, how in itertools.product(MAIN_LAYOUTS, FILTERS, WRITES):
        chunked = LAYOUTS[layout][1] is not None
        if (chunked or filters == "none") and (chunked or how != "append"):
            yield Case("write", how, layout, filters)
    for how in WRITES:
        yield Case("write", how, "64K", "deflate", face="patched")
        for dtype in TYPES:
            yield Case("write", how, "64K", "deflate", dtype=dtype)


READERS = ("h5py", "chunkwise")
_OPTIONS: dict[str, dict[str, Any]] = {
    "none": {},
    "deflate": {"compression": "gzip", "compression_opts": 1},
    "shuffle+deflate": {"compression": "gzip", "compression_opts": 1, "shuffle": True},
    "lzf": {"compression": "lzf"},
}
RECORD = np.dtype([("a", "<i2"), ("b", "<u2")])
# Steps of a walk, and datasets of which there are many.
STEPS, MANY = 16, 200


class Work:
    """A case made ready: its file, and what is written."""

    def __init__(self, case: Case, folder: Path) -> None:
        self.case = case
        self.shape, self.chunk = LAYOUTS[case.layout]
        self.dtype = RECORD if case.dtype == "record" else np.dtype(case.dtype)
        self.folder = folder
        self.path = folder / f"{case.layout}-{case.filters}-{case.dtype.strip('<>')}"
        self.path = self.path.with_suffix(".be.h5" if ">" in case.dtype else ".h5")
        self.options = {"chunks": self.chunk, **_OPTIONS[case.filters]}
        self.data: Any = None
        if case.work == "write":
            self.data = self._elements()
        elif not self.path.exists():
            partial = self.path.with_suffix(".partial")
            with h5py.File(partial, "w") as file:
                file.create_dataset("d", data=self._elements(), **self.options)
            partial.rename(self.path)

    def seconds(self, reader: str) -> float:
        """Do it once, by one of `READERS`."""
        if self.case.process == "fresh":
            return self._in_a_process(reader)
        patched = reader == "chunkwise" and self.case.face == "patched"
        with chunkwise.patch_h5py() if patched else nullcontext():
            done = self._write if self.case.work == "write" else self._read
            return done(h5py.File if patched or reader == "h5py" else chunkwise.open)

    def check(self) -> None:
        """See that both read the same."""
        found = []
        for opened in (h5py.File, chunkwise.open):
            with opened(self.path, "r") as file:
                found.append(np.asarray(self._as_wanted(file["d"])[self._index(0)]).tobytes())
        if found[0] != found[1]:
            raise AssertionError(f"{self.case.name}: another result than h5py's")

    def _elements(self) -> Any:
        count = int(np.prod(self.shape))
        rng = np.random.default_rng(1)
        smooth = np.sin(np.arange(count) / 500) * 1000 + rng.integers(0, 8, count)
        if self.case.dtype == "record":
            return smooth.astype("<i4").view(RECORD).reshape(self.shape)
        return smooth.astype(self.dtype).reshape(self.shape)

    # Reading ------------------------------------------------------------------------

    def _read(self, opened: Callable[..., Any]) -> float:
        chunkwise.cache_clear()
        if self.case.phase == "open":
            begun = time.perf_counter()
            with opened(self.path, "r") as file:
                self._called(file["d"], 0)
                return time.perf_counter() - begun
        with opened(self.path, "r") as file:
            dataset = file["d"]
            if self.case.phase == "again":
                self._called(dataset, 0)
            begun = time.perf_counter()
            for step in range(STEPS if self.case.phase == "walk" else 1):
                self._called(dataset, step)
            return time.perf_counter() - begun

    def _called(self, dataset: Any, step: int) -> None:
        index = self._index(step)
        wanted = self._as_wanted(dataset)
        if self.case.threads == 1:
            wanted[index]
            return
        threads = [
            threading.Thread(target=lambda: wanted[index]) for _ in range(self.case.threads)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _as_wanted(self, dataset: Any) -> Any:
        return dataset if self.case.wanted == "native" else dataset.astype(self.case.wanted)

    def _index(self, step: int) -> Any:
        z, y, _ = self.shape
        at = (z // 2 + step) % z
        match self.case.how:
            case "element":
                return at, y // 2, 3
            case "row":
                return at, y // 2
            case "line":
                return slice(None), (y // 2 + step) % y, 5
            case "box":
                return slice(at // 2, at // 2 + z // 8), slice(y // 4, y // 4 + y // 8)
            case "stride":
                return slice(step, None, 8), slice(None, None, 8)
            case "points":
                return [*range(step % 3, z, 5)], y // 2
            case _:
                return ...

    def _in_a_process(self, reader: str) -> float:
        """As the first read of a program; importing is not counted."""
        face = "chunkwise.open" if reader == "chunkwise" else "h5py.File"
        code = (
            "import time, h5py, chunkwise\nchunkwise.open\n"
            f"begun = time.perf_counter()\nwith {face}({str(self.path)!r}, 'r') as file:\n"
            f"    file['d'][{self._index(0)!r}]\n    print(time.perf_counter() - begun)"
        )
        done = finished(python(code))
        if done.returncode:
            raise RuntimeError(f"{self.case.name}: a program {done.how}")
        return float(done.out)

    # Writing ------------------------------------------------------------------------

    def _write(self, opened: Callable[..., Any]) -> float:
        path = self.folder / f"written-{os.getpid()}.h5"
        path.unlink(missing_ok=True)
        how = self.case.how
        maxshape = (None, *self.shape[1:]) if how == "append" else None
        begun = time.perf_counter()
        with opened(path, "w", **({"sync": False} if opened is chunkwise.open else {})) as file:
            if how == "many":
                part = self.data[:4, :16].copy()
                chunks = None if self.chunk is None else part.shape
                for number in range(MANY):
                    options = {**self.options, "chunks": chunks}
                    file.create_dataset(f"d{number}", data=part, **options)
            elif how == "create":
                file.create_dataset("d", data=self.data, **self.options)
            else:
                shape = (0, *self.shape[1:]) if how == "append" else self.shape
                options = {**self.options, "maxshape": maxshape}
                self._fill(file.create_dataset("d", shape, self.dtype, **options))
        taken = time.perf_counter() - begun
        path.unlink()
        return taken

    def _fill(self, dataset: Any) -> None:
        rows = self.shape[0]
        match self.case.how:
            case "assign":
                dataset[...] = self.data
            case "part":
                dataset[rows // 4 : rows // 2, 1:-1] = self.data[rows // 4 : rows // 2, 1:-1]
            case "rows":
                for row in range(0, rows, 4):
                    dataset[row : row + 4] = self.data[row : row + 4]
            case _:
                for row in range(0, rows, 16):
                    dataset.resize(min(row + 16, rows), 0)
                    dataset[row : row + 16] = self.data[row : row + 16]
