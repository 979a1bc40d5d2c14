"""What do reads of a dataset cost as it is, and in another layout or with another cache?"""

from __future__ import annotations

import math
import operator
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Final

from chunkwise.errors import UsageError
from chunkwise.files.around import Surroundings
from chunkwise.grammar import Pipeline, format_shape, format_size, parse_shape
from chunkwise.inspection.facts import DatasetFacts
from chunkwise.inspection.patterns import pieces
from chunkwise.model.chunk_cache import hash_slots
from chunkwise.model.cost import Stored, walk_cost
from chunkwise.model.far import Link
from chunkwise.model.layout import Layout
from chunkwise.model.readers import CHUNKWISE, LIBRARIES, Reader, reader, this_process
from chunkwise.model.search import Problem
from chunkwise.model.traffic import Pattern, traffic
from chunkwise.names import printable, shell_word, shown_url
from chunkwise.patterns import Access, Dataset, as_stated, read
from chunkwise.patterns.around import chunk_by_names
from chunkwise.remedy.commands import commands, copy_name
from chunkwise.remedy.records import Anew, Copy, Present, SetCache
from chunkwise.remedy.spelling import in_short
from chunkwise.remedy.tools import beside, shell_file
from chunkwise.viewing.apart import Running
from chunkwise.viewing.source import Source

# For whom costs can be shown: whose libhdf5, with which chunk cache.
READERS: Final = tuple(one.name for one in LIBRARIES)


@dataclass(frozen=True)
class Tried:
    """What the page tries, as the options of a command have it; empty for what there is."""

    chunk: str = ""
    filters: str = ""
    cache: str = ""  # Bytes
    reader: str = ""

    @property
    def options(self) -> str:
        """Write it as options of `chunkwise view`."""
        cache = self.cache and format_size(int(self.cache), exact=True)
        named = {
            "--for": self.reader, "--chunk": self.chunk, "--filter": self.filters, "--cache": cache
        }  # fmt: skip
        return "".join(f" {name} {shell_word(value)}" for name, value in named.items() if value)


NOTHING: Final = Tried()


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

    def __init__(self, source: Source, path: str, facts: DatasetFacts) -> None:
        self.source, self.file, self.path, self.facts = source, source.path, path, facts
        self.shape = facts.shape or ()
        self.layout = Layout(facts.chunks.shape if facts.chunks else None, facts.filters)
        self.obstacle = ""  # Why there are no seconds
        # Whether there will be seconds soon.
        self.is_measuring = not source.is_far
        self._problem: Problem | None = None
        self._lock = threading.Lock()

    # --- the machine and the data ---------------------------------------------------------

    def measure(self) -> None:
        """Measure the machine, if nobody did, and how a sample of the data compresses."""
        with self._lock:
            if self.is_measuring:
                work = Running("sample")
                self._problem = work.run(self.file, self.path)
                self.obstacle, self.is_measuring = work.error, False

    @property
    def filters(self) -> list[str]:
        """The filters whose effect on this data is known, the present ones first."""
        found = list(self._problem.codecs) if self._problem is not None else []
        return list(dict.fromkeys([self.layout.filters, *found]))

    # --- the query ------------------------------------------------------------------------

    def _opened(self) -> AbstractContextManager[Any]:
        """Give the file, opened if it is far away; otherwise its name."""
        return self.source.file() if self.source.is_far else nullcontext(self.file)

    def read(self, text: str) -> tuple[Access, Pattern]:
        """Read a pattern as `advise` does: without an order, single reads at any places."""
        (stated,) = read((text,))
        if stated.does != "read":
            raise UsageError(f"'{printable(text)}': this page shows reads")
        where = f"'{printable(self.path)}'"
        with self._opened() as file:
            around = Surroundings(file, self.path)
            meant = stated.on(Dataset(self.shape, self.facts.itemsize, where, around))
        return as_stated(meant, self.shape, stated)

    def by_lengths(self, tried: Tried) -> Tried:
        """Give the lengths of a chunk whose dimensions are named."""
        with self._opened() as file:
            around = Surroundings(file, self.path)
            chunk = chunk_by_names(tried.chunk, self.shape, around, f"'{printable(self.path)}'")
        return tried if chunk is None else replace(tried, chunk=format_shape(chunk))

    def setting(self, tried: Tried) -> Setting:
        """Read a layout, a reader and its cache."""
        chunk, filters, cache = tried.chunk, tried.filters, tried.cache
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
        who = reader(tried.reader) if tried.reader else this_process()
        return Setting(layout, who).with_cache(int(cache) if cache else None)

    # --- answers --------------------------------------------------------------------------

    def answer(self, texts: Sequence[str], tried: Tried) -> dict[str, Any]:
        """Say what reads cost now and as it is tried, and which commands say the same."""
        now, then = self.setting(Tried(reader=tried.reader)), self.setting(tried)
        reads = [(text, *self.read(text)) for text in texts]
        patterns = [pattern for *_, pattern in reads]
        return {
            "reads": [
                {
                    "text": text,
                    "words": self._in_words(access, pattern),
                    "first": self._first(access),
                    "block": None
                    if access.has_unions or len(access.slabs or ()) > 1
                    else access.block,
                    "now": self._row(pattern, now),
                    "then": self._row(pattern, then),
                }
                for text, access, pattern in reads
            ],
            "now": self._described(now, patterns),
            "then": self._described(then, patterns),
            "measuring": self.is_measuring,
            "obstacle": self.obstacle,
            "filters": list(dict.fromkeys((*self.filters, then.layout.filters))),
            "readers": list(dict.fromkeys(("", *READERS, tried.reader))),
            "page": self.page(texts, tried),
            "commands": self.commands(texts, tried, then),
            "write": self.written(tried, then),
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
        stored = self._stored(layout)
        found = traffic(stored, pattern, who)
        selected_nbytes = found.selected_nbytes / found.operations
        if layout.chunks is None:
            chunks: float = pieces(self.shape, pattern.block)
            decoded_nbytes = selected_nbytes
        elif pattern.selections is None:
            # As `inspect` has it: the most that one read touches.
            cost = walk_cost(stored, pattern.block, who)
            chunks, decoded_nbytes = cost.chunks, cost.decoded_nbytes
            selected_nbytes = cost.selected_nbytes
        else:
            chunks = found.touches / found.operations
            decoded_nbytes = chunks * stored.chunk_nbytes
        return {
            "chunks": chunks,
            "selected_nbytes": selected_nbytes,
            "decoded_nbytes": decoded_nbytes,
            "reads": found.operations / pattern.reads,
            "loads": found.loads / pattern.reads,
            "touches": found.touches / pattern.reads,
            **self._seconds(pattern, layout, who, "libhdf5"),
            **self._seconds(pattern, layout, reader(CHUNKWISE), CHUNKWISE),
        }

    def _stored(self, layout: Layout) -> Stored:
        filtered = layout.filters != "none"
        return Stored.of(self.shape, layout.chunks, self.facts.itemsize, filtered=filtered)

    def _seconds(
        self, pattern: Pattern, layout: Layout, who: Reader, name: str
    ) -> dict[str, float | None]:
        link = self.source.link
        if link is not None:
            return self._far(link, pattern, layout, who, name)
        if self._problem is None:
            return {f"{name}_s": None}
        problem = replace(self._problem, reader=who, reader_name=name)
        return {f"{name}_s": problem.pattern_s(layout, pattern) / pattern.reads}

    def _far(
        self, link: Link, pattern: Pattern, layout: Layout, who: Reader, name: str
    ) -> dict[str, float | None]:
        """Count requests for a pattern, and how long they take, without decoding."""
        # A single read finds nothing in the cache; unfiltered chunks are fetched whole.
        stored = Stored.of(self.shape, layout.chunks, self.facts.itemsize)
        found = traffic(stored, pattern, who)
        if not stored.chunked:
            requests = float(pieces(self.shape, pattern.block)) * found.operations
            nbytes = found.selected_nbytes
        else:
            requests = found.touches if pattern.of_one_read else found.loads
            # In other chunks, the ratio is taken to stay.
            nbytes = requests * stored.chunk_nbytes / (self.facts.ratio or 1.0)
        at_once = name == CHUNKWISE
        taken_s = link.seconds(found.operations, requests, nbytes, at_once=at_once)
        each = found.operations if pattern.of_one_read else pattern.reads
        return {f"{name}_s": taken_s / each, f"{name}_requests": requests / each}

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

    def _copy(self, then: Setting) -> Copy:
        now = Present(self.layout.filters, self.layout.chunks, self.shape, self.facts.itemsize)
        filters = then.layout.filters if then.layout.filters != self.layout.filters else None
        chunks = then.layout.chunks if then.layout.chunks != self.layout.chunks else None
        return Copy(self.file, (Anew(self.path, chunks, filters, now),))

    def _is_other(self, then: Setting) -> bool:
        return then.layout != self.layout and then.layout.chunks is not None

    def written(self, tried: Tried, then: Setting) -> dict[str, str] | None:
        """Say which file can be written, and the command before its name; None from far away."""
        if self.source.is_far:
            return None
        if not self._is_other(then):
            out = beside(self.file, "fixed")
            return {
                "out": out, "chunk": "", "filters": "",
                "line": f"chunkwise fix {shell_file(self.file)}",
            }  # fmt: skip
        copy = self._copy(then)
        line = next((one.text for one in commands(copy) if one.tool == "chunkwise"), "")
        line = line.removesuffix(shell_file(copy_name(copy))).rstrip()
        return {
            "out": copy_name(copy), "chunk": tried.chunk, "filters": tried.filters, "line": line
        }  # fmt: skip

    @property
    def _named(self) -> str:
        far = self.source.is_far
        file = shell_word(shown_url(self.file)) if far else shell_file(self.file)
        return f"{file} {shell_word(self.path)}"

    def page(self, texts: Sequence[str], tried: Tried) -> dict[str, Any]:
        """Write what the page shows as parts of a line; the page knows what it draws."""
        return {
            "begin": f"chunkwise view {self._named}",
            "reads": list(map(shell_word, texts)),
            "options": tried.options,
        }

    def commands(self, texts: Sequence[str], tried: Tried, then: Setting) -> list[dict[str, str]]:
        """Write what can be done next as lines to paste; nothing from far away."""
        if self.source.is_far:
            return []
        said = self._named + "".join(f" --access {shell_word(text)}" for text in texts)
        whom = Tried(reader=tried.reader).options
        found = [
            ("Explain it", f"chunkwise inspect {said}{whom}"),
            ("Measure it", f"chunkwise bench {said}"),
            ("Find the best layout, and measure it", f"chunkwise advise {said}{whom}"),
        ]
        if self._is_other(then):
            found += (
                (f"Write a copy in this layout ({fix.tool})", fix.text)
                for fix in commands(self._copy(then))
            )
        who = then.reader
        if tried.cache and who.nslots is not None:
            remedy = SetCache(self.file, self.path, who.cache_nbytes, who.nslots)
            what = f"Read with a cache of {format_size(remedy.nbytes)}"
            found.append((what, in_short(remedy) or ""))
        return [{"what": what, "line": line} for what, line in found if line]
