"""Which cases are there?"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

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
    met: set[Case] = set()
    for case in itertools.chain(_reads(), _writes()):
        if case not in met:
            met.add(case)
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
