"""What do reads of a dataset cost as it is, and in another layout or with another cache?

The counts are those of `inspect`; the seconds are those of `advise`'s model, once the machine and
a sample of the data were measured.
"""

from __future__ import annotations

import math
import operator
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from chunkwise.advice import wishes
from chunkwise.advice.work import Work
from chunkwise.errors import ChunkwiseError, UsageError
from chunkwise.files.around import Surroundings
from chunkwise.grammar import Pipeline, format_size, parse_shape
from chunkwise.inspection.facts import DatasetFacts
from chunkwise.inspection.patterns import pieces
from chunkwise.measure.variants import scratch_folder
from chunkwise.model.chunk_cache import hash_slots
from chunkwise.model.cost import Stored, walk_cost
from chunkwise.model.layout import Layout
from chunkwise.model.readers import CHUNKWISE, Reader, reader, this_process
from chunkwise.model.search import Problem
from chunkwise.model.traffic import Pattern, contiguous_traffic, traffic
from chunkwise.names import HDF5_ERRORS, printable, shell_word
from chunkwise.patterns import Access, as_stated, done, parse
from chunkwise.remedy.commands import commands
from chunkwise.remedy.records import Anew, Copy, Present, SetCache
from chunkwise.remedy.spelling import in_short
from chunkwise.remedy.tools import shell_file

# Of which a quarter is for trying filters.
_BUDGET_S: Final = 16.0


@dataclass(frozen=True)
class Setting:
    """A layout, and who reads it with which cache."""

    layout: Layout
    reader: Reader

    def with_cache(self, nbytes: int | None) -> Setting:
        """Give the reader another chunk cache, with slots for the chunks that it holds."""
        if nbytes is None or nbytes == self.reader.cache_nbytes:
            return self
        chunk = math.prod(self.layout.chunks or (1,))
        nslots = max(self.reader.nslots or 0, hash_slots(nbytes // max(1, chunk)))
        return replace(self, reader=replace(self.reader, cache_nbytes=nbytes, nslots=nslots))


class Costs:
    """The costs of one dataset's reads."""

    def __init__(self, file: str, path: str, facts: DatasetFacts) -> None:
        self.file, self.path, self.facts = file, path, facts
        self.shape = facts.shape or ()
        self.layout = Layout(facts.chunks.shape if facts.chunks else None, facts.filters)
        self.obstacle = ""  # Why there are no seconds
        self.is_measuring = True  # Whether there will be seconds soon
        self._problem: Problem | None = None
        self._lock = threading.Lock()

    # --- the machine and the data ---------------------------------------------------------

    def measure(self) -> None:
        """Measure the machine, if nobody did, and how a sample of the data compresses."""
        with self._lock:
            if not self.is_measuring:
                return
            try:
                work = Work.of(
                    self.file, self.path, (), wishes.read("balanced", None),
                    begun=time.monotonic(), budget_s=_BUDGET_S,
                )  # fmt: skip
                with scratch_folder(None) as folder:
                    self._problem, _ = work.modelled(folder, calibrate=False)
            except (ChunkwiseError, *HDF5_ERRORS) as error:
                self.obstacle = printable(str(error))
            finally:
                self.is_measuring = False

    @property
    def filters(self) -> list[str]:
        """The filters whose effect on this data is known, the present ones first."""
        found = list(self._problem.codecs) if self._problem is not None else []
        return list(dict.fromkeys([self.layout.filters, *found]))

    # --- what is asked for ----------------------------------------------------------------

    def read(self, text: str) -> tuple[Access, Pattern]:
        """Read a pattern as `advise` does: without an order, single reads at any places."""
        around, (what, rest) = Surroundings(self.file, self.path), done(text)
        if what != "read":
            raise UsageError(f"'{printable(text)}': this page shows reads")
        where = f"'{printable(self.path)}'"
        meant = parse(rest, self.shape, self.facts.itemsize, where, around)
        return as_stated(meant, self.shape, text)

    def setting(self, chunk: str, filters: str, cache: str) -> Setting:
        """Read a layout and a cache, each empty for what there is."""
        shape: tuple[int, ...] | None = self.layout.chunks
        if chunk:
            parsed = parse_shape(chunk)
            if isinstance(parsed, str):
                raise UsageError(f"chunk shape '{printable(chunk)}': write lengths such as 1x8x8")
            shape = tuple(parsed)
            # Of a dataset that may grow, chunks may be longer than it is.
            most = map(max, self.shape, self.layout.chunks or self.shape)
            if len(shape) != len(self.shape) or any(map(operator.gt, shape, most)):
                raise UsageError(f"chunk shape '{printable(chunk)}' does not fit the dataset")
        layout = Layout(shape, str(Pipeline.parse(filters)) if filters else self.layout.filters)
        found = Setting(layout, this_process())
        return found.with_cache(int(cache) if cache else None)

    # --- answers --------------------------------------------------------------------------

    def answer(self, texts: Sequence[str], now: Setting, then: Setting) -> dict[str, Any]:
        """Say what reads cost in two settings, and which commands say the same."""
        reads = [(text, *self.read(text)) for text in texts]
        patterns = [pattern for *_, pattern in reads]
        return {
            "reads": [
                {
                    "text": text,
                    "words": self._in_words(access, pattern),
                    "first": self._first(access),
                    "now": self._row(pattern, now),
                    "then": self._row(pattern, then),
                }
                for text, access, pattern in reads
            ],
            "now": self._described(now, patterns),
            "then": self._described(then, patterns),
            "measuring": self.is_measuring,
            "obstacle": self.obstacle,
            "filters": self.filters,
            "commands": self.commands(texts, then),
        }

    def _in_words(self, access: Access, pattern: Pattern) -> str:
        one = replace(access, limit=1) if pattern.of_one_read else access
        return one.in_words(self.shape, self.facts.itemsize)

    def _first(self, access: Access) -> list[Any]:
        """Give start, stride, count and block of the hyperslabs of the first read."""
        first = access.walk(self.shape)[0]
        return [first] if isinstance(first[0][0], int) else list(first)

    def _row(self, pattern: Pattern, setting: Setting) -> dict[str, Any]:
        layout, who = setting.layout, setting.reader
        itemsize = self.facts.itemsize
        if layout.chunks is None:
            found = contiguous_traffic(self.shape, itemsize, pattern, who)
            one = {
                "chunks": pieces(self.shape, pattern.block),
                "selected_nbytes": found.selected_nbytes / found.operations,
                "decoded_nbytes": found.selected_nbytes / found.operations,
            }
        else:
            stored = Stored(self.shape, layout.chunks, itemsize, layout.filters != "none")
            found = traffic(stored, pattern, who)
            if pattern.selections is None:
                # As `inspect` has it: the most that one read touches.
                cost = walk_cost(stored, pattern.block, who)
                one = {
                    "chunks": cost.chunks,
                    "selected_nbytes": cost.selected_nbytes,
                    "decoded_nbytes": cost.decoded_nbytes,
                }
            else:
                touched = found.touches / found.operations
                one = {
                    "chunks": touched,
                    "selected_nbytes": found.selected_nbytes / found.operations,
                    "decoded_nbytes": touched * stored.chunk_nbytes,
                }
        return one | {
            "reads": found.operations / pattern.reads,
            "loads": found.loads / pattern.reads,
            "touches": found.touches / pattern.reads,
            "libhdf5_s": self._seconds(pattern, layout, who, "libhdf5"),
            "chunkwise_s": self._seconds(pattern, layout, reader(CHUNKWISE), CHUNKWISE),
        }

    def _seconds(self, pattern: Pattern, layout: Layout, who: Reader, name: str) -> float | None:
        if self._problem is None:
            return None
        problem = replace(self._problem, reader=who, reader_name=name)
        return problem.pattern_s(layout, pattern) / pattern.reads

    def _described(self, setting: Setting, patterns: Sequence[Pattern]) -> dict[str, Any]:
        layout, who = setting.layout, setting.reader
        chunks = layout.chunks
        nbytes: int | None = self.facts.stored_nbytes
        if layout != self.layout:
            nbytes = None
            if self._problem is not None:
                anew = replace(self._problem, patterns=tuple(patterns), known={}, timed={})
                nbytes = anew.outcome(layout).nbytes
        return {
            "chunks": chunks,
            "filters": layout.filters,
            "chunk_nbytes": None if chunks is None else math.prod(chunks) * self.facts.itemsize,
            "grid": None
            if chunks is None
            else [-(-n // c) for n, c in zip(self.shape, chunks, strict=True)],
            "stored_nbytes": nbytes,
            "reader": who.title,
            "cache_nbytes": who.cache_nbytes,
            "nslots": who.nslots,
            "w0": who.w0,
        }

    def commands(self, texts: Sequence[str], then: Setting) -> list[dict[str, str]]:
        """Write what the page shows as lines to paste."""
        file, path = shell_file(self.file), shell_word(self.path)
        access = "".join(f" --access {shell_word(text)}" for text in texts)
        found = [
            ("This page", f"chunkwise view {file} {path}{access}"),
            ("Explain it", f"chunkwise inspect {file} {path}{access}"),
            ("Measure it", f"chunkwise bench {file} {path}{access}"),
            ("Find the best layout, and measure it", f"chunkwise advise {file} {path}{access}"),
        ]
        if then.layout != self.layout and then.layout.chunks is not None:
            now = Present(self.layout.filters, self.layout.chunks, self.shape, self.facts.itemsize)
            filters = then.layout.filters if then.layout.filters != self.layout.filters else None
            chunks = then.layout.chunks if then.layout.chunks != self.layout.chunks else None
            copy = Copy(self.file, (Anew(self.path, chunks, filters, now),))
            found += (
                (f"Write a copy in this layout ({fix.tool})", fix.text) for fix in commands(copy)
            )
        who = then.reader
        if who.cache_nbytes != this_process().cache_nbytes and who.nslots is not None:
            remedy = SetCache(self.file, self.path, who.cache_nbytes, who.nslots)
            what = f"Read with a cache of {format_size(remedy.nbytes)}"
            found.append((what, in_short(remedy) or ""))
        return [{"what": what, "line": line} for what, line in found if line]
