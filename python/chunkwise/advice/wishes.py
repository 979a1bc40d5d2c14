"""Which objective, filters and sizes does the user want?"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, cast

from chunkwise import _native
from chunkwise.errors import UsageError
from chunkwise.grammar import Pipeline, parse_size
from chunkwise.grammar.parameters import carried, rounds
from chunkwise.model.layout import Layout
from chunkwise.model.readability import program
from chunkwise.model.readers import CHUNKWISE, LIBRARIES, Reader, reader, this_process
from chunkwise.model.search import OBJECTIVES, Objective
from chunkwise.words import offered

KEEPABLE: Final = ("chunk", "filter")
# Filters that every build of libhdf5, and all programs built on it, can read.
_UNIVERSAL: Final = ("shuffle+deflate:1", "shuffle+deflate:4", "deflate:1", "none")
_SMALLEST: Final = ("shuffle+deflate:9",)
# With these plugins; the last ones are tried if there is time.
_PLUGINS: Final = ("bitshuffle:lz4", "shuffle+zstd:1", "shuffle+lz4", "shuffle+zstd:9")
_SHARE: Final = re.compile(r"\+(\d+(?:\.\d+)?)%")
# Zarr's readers read HDF5 by references that kerchunk makes.
_ALSO_CALLED: Final = {"zarr": "kerchunk"}
# By how much a file may grow with the balanced objective.
GROWTH: Final = 0.10


@dataclass(frozen=True)
class Wishes:
    """What was asked for, checked."""

    objective: Objective  # What the choice minimizes
    keep: frozenset[str]  # ``chunk``, ``filter``: what of the present layout stays
    reader: Reader  # For whom: whose cache
    reader_name: str  # As `bench` calls it
    title: str  # The reader, in words
    max_size: str | None = None  # As it was written; None for no limit but the objective's own
    lossless: bool = True  # Whether each value must stay the same
    # Who must be able to read what is chosen: a name of `readability.PROGRAM_NAMES`; None for
    # whoever reads what every libhdf5 reads.
    program: str | None = None

    @property
    def readers(self) -> tuple[Reader, ...]:
        """The readers whose caches decide about chunks: all if none is named, as for inspect."""
        return LIBRARIES if self.reader is this_process() else (self.reader,)

    def most_nbytes(self, present_nbytes: int | None, compressed: bool) -> int | None:
        """Return the most bytes that the dataset may take; None for any number."""
        if self.max_size is not None:
            share = _SHARE.fullmatch(self.max_size)
            if share is None:
                return parse_size(self.max_size)
            if present_nbytes is None:
                raise UsageError(
                    f"--max-size {self.max_size} is a share of what the dataset takes, and there "
                    "is no file yet: give a size such as 500MB"
                )
            return round(present_nbytes * (1 + float(share[1]) / 100))
        if self.objective == "balanced" and present_nbytes and compressed:
            return round(present_nbytes * (1 + GROWTH))
        return None


def read(
    objective: str,
    keep: Sequence[str],
    max_size: str | None,
    reader_name: str | None,
    *,
    lossless: bool = True,
) -> Wishes:
    """Check what was asked for."""
    reader_name = _ALSO_CALLED.get(reader_name or "", reader_name)
    if objective not in OBJECTIVES:
        raise UsageError(f"no objective is called '{objective}'{offered(objective, OBJECTIVES)}")
    for word in keep:
        if word not in KEEPABLE:
            raise UsageError(f"nothing called '{word}' can be kept{offered(word, KEEPABLE)}")
    if set(keep) == set(KEEPABLE):
        raise UsageError(
            "to keep chunk and filter leaves nothing to advise on but the cache: keep one of the "
            "two, or ask `chunkwise inspect` about the cache"
        )
    if max_size is not None and not _SHARE.fullmatch(max_size):
        try:
            parse_size(max_size)
        except UsageError:
            raise UsageError(
                f"--max-size {max_size}: give a size such as 500MB, or how much more than now, "
                "such as +10%"
            ) from None
    named, who, title = _reader(reader_name)
    return Wishes(
        cast("Objective", objective), frozenset(keep), who, named, title, max_size, lossless,
        reader_name,
    )  # fmt: skip


def _reader(name: str | None) -> tuple[str, Reader, str]:
    """Return who reads: as bench calls it, its cache, and in words."""
    who = this_process() if name is None else reader(name)
    return (CHUNKWISE if name == CHUNKWISE else "libhdf5"), who, who.title


def pipelines(wishes: Wishes, present: Layout | None, itemsize: int) -> list[str]:
    """List the filters that may be chosen, the most wanted first; the present ones among them.

    Those that every libhdf5 reads; others only for chunkwise, or where the dataset has such a
    filter already, so that whoever reads it has the plugin.
    """
    found = [present.filters] if present is not None and present.chunks is not None else []
    if "filter" in wishes.keep and present is not None:
        return [present.filters]
    if found and not isinstance(same := carried(Pipeline.parse(found[0])), str):
        found.append(str(same))
    wanted = [*_UNIVERSAL]
    if wishes.objective == "size":
        wanted[:0] = _SMALLEST
    if plugins_may_be_used(wishes, present):
        wanted += _PLUGINS
    if itemsize == 1:
        # There is nothing to shuffle.
        wanted = [_without_shuffle(text) for text in wanted]
    checked = present is not None and "fletcher32" in _names(present.filters)
    for text in wanted:
        # A checksum that somebody asked for stays.
        filters = text if not checked else _with_checksum(text)
        if _can_be_had(filters) and _is_read_by(filters, wishes.program):
            found.append(str(Pipeline.parse(filters)))
    return list(dict.fromkeys(found))


def barred(wishes: Wishes, present: Layout | None) -> frozenset[str]:
    """Return pipelines that stay where they are, but are given to no other chunks.

    They would round values again, or have parameters that belong to the chunks.
    """
    if present is None:
        return frozenset()
    own = Pipeline.parse(present.filters)
    if carried(own) == own or (rounds(own) and not wishes.lossless):
        return frozenset()
    if "filter" in wishes.keep:
        allowed = ", or allow it with --no-lossless" if rounds(own) else ""
        raise UsageError(
            f"the filters {present.filters} may change values in newly encoded chunks: leave "
            f"--keep filter out{allowed}"
        )
    return frozenset((present.filters,))


def plugins_may_be_used(wishes: Wishes, present: Layout | None) -> bool:
    """Whether filters that come as plugins may be chosen."""
    if wishes.reader_name == CHUNKWISE:
        return True
    usual = {"deflate", "shuffle", "fletcher32", "szip", "nbit", "scaleoffset", "lzf"}
    return present is not None and not _names(present.filters) <= usual


def _is_read_by(filters: str, name: str | None) -> bool:
    """Whether a program reads filters without more ado."""
    if name is None or name == CHUNKWISE:
        return True
    who = program(name)
    return all(who.reads_filter(one) == "yes" for one in _names(filters))


def _without_shuffle(filters: str) -> str:
    kept = (one for one in Pipeline.parse(filters).filters if one.name != "shuffle")
    return str(Pipeline(tuple(kept)))


def _with_checksum(filters: str) -> str:
    return "fletcher32" if filters == "none" else f"{filters}+fletcher32"


def _names(filters: str) -> set[str]:
    return {one.name for one in Pipeline.parse(filters).filters}


def _can_be_had(filters: str) -> bool:
    """Whether libhdf5 has the filters here, and chunkwise writes them."""
    known = {one["name"] for one in _native.filters().values() if one["encoded"]}
    usual = {"deflate", "shuffle", "fletcher32"}
    plugin = _names(filters) - usual
    return plugin <= known and (not plugin or importlib.util.find_spec("hdf5plugin") is not None)
