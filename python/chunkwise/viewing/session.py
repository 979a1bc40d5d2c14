"""What does the page request about a file, and what is answered?"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Final

import numpy as np

from chunkwise import system
from chunkwise.errors import ChunkwiseError, DatasetNotFoundError, UsageError
from chunkwise.files.contained import Outcome, contained_each
from chunkwise.files.opening import find_dataset, full_name
from chunkwise.inspection import DatasetFacts, FileFacts, Finding, ObjectFacts, inspect
from chunkwise.inspection.finding import SEVERITIES
from chunkwise.inspection.records import plain
from chunkwise.inspection.sampling import logical_nbytes
from chunkwise.names import HDF5_ERRORS, printable, shell_word
from chunkwise.viewing.apart import Running
from chunkwise.viewing.bytemap import Numbers, Rest, Spans, all_spans
from chunkwise.viewing.chunkmap import SIDE, VALUES, ChunkMap
from chunkwise.viewing.costs import NOTHING, Costs, Tried
from chunkwise.viewing.drawn import USUAL, Drawn
from chunkwise.viewing.film import film
from chunkwise.viewing.source import Looked, Source, look
from chunkwise.viewing.traced import Traced

# Lists of chunks that are kept: of ten million chunks, one takes 240 MB.
_MAPS_KEPT: Final = 2
# More datasets take seconds to list.
_MOST_MAPPED: Final = 5_000
_MOST_LINES: Final = 6
Query = Mapping[str, Sequence[str]]


@dataclass
class Session:
    """One file, as a page looks at it."""

    path: str
    quick: FileFacts  # Without a sample, which takes seconds
    dataset: str | None = None  # What is shown first, by its path
    access: tuple[str, ...] = ()
    tried: Tried = NOTHING
    drawn: Drawn = USUAL
    # What a program read of the datasets of this file, and of other files.
    trace: Traced | None = None
    requests: int | None = None  # Requests that opening and listing a file far away took
    known: FileFacts | None = None  # What `inspect` has said of the file, or of `dataset`
    # Gives the facts with a sample, once.
    looks: Iterator[Outcome[Looked]] | None = None
    _asking: int = -1  # A pipe: a byte lets it begin
    _maps: OrderedDict[int, ChunkMap] = field(default_factory=OrderedDict)
    _work: Running | None = None
    _costs: dict[int, Costs] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    # Held for seconds.
    _slow: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def of(
        cls,
        path: str,
        dataset: str | None = None,
        access: Sequence[str] = (),
        tried: Tried = NOTHING,
        drawn: Drawn = USUAL,
        trace: Traced | None = None,
        found: FileFacts | None = None,  # What `inspect` has found for these reads
    ) -> Session:
        """Look at a file, in processes of their own: libhdf5 crashes on some damaged files."""
        # Both processes begin now: later, other threads may hold locks that a copy of this process
        # never gets back.  The second waits until the page asks for what it finds.  What is far
        # away is not sampled.
        source = Source(path)
        quick = partial(look, path, sample=False, metadata=False)
        works = [partial(quick, dataset=dataset, access=access)]
        waiting, asking = os.pipe()
        if not source.is_far and (found is None or dataset is not None):
            works.append(partial(_when_requested, waiting, asking, path))
        looks = contained_each(((work, source.shown) for work in works), 1)
        facts, requests = next(looks).get()
        made = cls(
            path, facts, None, tuple(access), tried, drawn, trace, requests, found,
            None if source.is_far else looks, asking,
        )  # fmt: skip
        if dataset is not None:
            made._choose(dataset)
        elif tried != Tried(reader=tried.reader):
            raise UsageError("--chunk, --filter and --cache are tried for one dataset: name it")
        elif drawn != USUAL:
            raise UsageError("--draw, --at, --colour and --zoom are for one dataset: name it")
        return made

    def _choose(self, dataset: str) -> None:
        """Show a dataset first; what cannot be tried of it is said now."""
        with self.source.file() as file:
            self.dataset = "/" + full_name(file, dataset).strip("/")
        number = self._numbers.get(self.dataset)
        if number is None or self.quick.objects[number].dataset is None:
            raise DatasetNotFoundError(f"{self.source.shown}: has no dataset {printable(dataset)}")
        if self.tried != NOTHING:
            costs = self.costs_of({"dataset": [str(number)]})
            self.tried = costs.by_lengths(self.tried)
            costs.setting(self.tried)
        self.view_of(number)

    def view_of(self, number: int) -> dict[str, Any]:
        """Say which plane of a dataset is drawn, as far as it was stated."""
        one = self.quick.objects[number]
        if one.path != self.dataset or one.dataset is None:
            return {}
        return self.drawn.view(one.dataset)

    @cached_property
    def source(self) -> Source:
        """The file, as it is opened again and again."""
        return Source(self.path)

    @cached_property
    def _numbers(self) -> Mapping[str, int]:
        return {one.path: i for i, one in enumerate(self.quick.objects)}

    # --- the file -------------------------------------------------------------------------

    def first(self) -> dict[str, Any]:
        """Say what the page shows at once."""
        chosen = self.chosen
        return {
            **self._described(self.quick),
            "chosen": chosen,
            "access": self.access,
            "tried": plain(self.tried),
            "drawn": {} if chosen is None else self.view_of(chosen),
            "traced": {} if self.trace is None else self.trace.reads(self._numbers),
            "lines": [] if self.trace is None else self.trace.lines,
            "trace": "" if self.trace is None else f" --trace {shell_word(self.trace.path)}",
            "objects": [_row(one) for one in self.quick.objects],
        }

    @cached_property
    def full(self) -> FileFacts:
        """What `inspect` says of the file, with a sample of its data."""
        if self.known is not None and self.dataset is None:
            return self.known
        if self.source.is_far:
            return self.quick
        if self.looks is None:
            found = inspect(self.path)
        else:
            os.write(self._asking, b".")
            found = next(self.looks).get()[0]
        if self.known is None:
            return found
        others = [one for one in found.findings if one.path != self.dataset]
        own = [one for one in self.known.findings if one.path == self.dataset]
        both = sorted((*own, *others), key=lambda one: -SEVERITIES.index(one.severity))
        return replace(found, findings=tuple(both))

    def facts(self, _: Query) -> dict[str, Any]:
        """Say what a sample of the data shows, too, and what opening the file costs."""
        with self._slow:
            return self._described(self.full)

    def _described(self, facts: FileFacts) -> dict[str, Any]:
        far = self.source.is_far
        return {
            "file": self.source.shown,
            "far": {"requests": self.requests, **plain(self.source.link)} if far else None,
            "nbytes": facts.nbytes,
            "hdf5": facts.hdf5_version,
            "verdict": str(facts.verdict),
            "metadata": plain(facts.metadata),
            # Remedies are for a file that is here.
            "findings": [_finding(one, self._numbers, remedies=not far) for one in facts.findings],
            "commands": []
            if far
            else [{"what": fix.tool, "line": fix.text} for fix in facts.commands],
        }

    @cached_property
    def chosen(self) -> int | None:
        """The dataset that is shown first, by its number: the one named, or the worst one."""
        if self.dataset is not None:
            return self._numbers[self.dataset]
        return next(iter(self.worst(self.quick)), None)

    def prepare(self) -> None:
        """List the chunks that are drawn first, while the browser starts."""
        facts = None if self.chosen is None else self.quick.objects[self.chosen].dataset
        if facts is not None and facts.chunks is not None and facts.is_placed:
            with suppress(ChunkwiseError, *HDF5_ERRORS):
                self.chunks({"dataset": [str(self.chosen)]})

    def worst(self, facts: FileFacts) -> list[int]:
        """List datasets by their numbers: those with the worst findings first, then large ones."""
        ranks: dict[str | None, int] = {}
        for one in facts.findings:
            rank = SEVERITIES.index(one.severity)
            ranks[one.path] = max(rank, ranks.get(one.path, 0))
        rows = [(i, one) for i, one in enumerate(self.quick.objects) if one.dataset is not None]
        rows.sort(
            key=lambda row: (ranks.get(row[1].path, -1), logical_nbytes(row[1])), reverse=True
        )
        return [number for number, _ in rows]

    # --- a dataset ------------------------------------------------------------------------

    def _object(self, query: Query) -> tuple[int, ObjectFacts, DatasetFacts]:
        number = _integer(query, "dataset")
        if not 0 <= number < len(self.quick.objects):
            raise UsageError("there is no such object")
        one = self.quick.objects[number]
        if one.dataset is None:
            raise UsageError("this object is no dataset")
        return number, one, one.dataset

    def dataset_facts(self, query: Query) -> dict[str, Any]:
        """Give the facts that `inspect` has about a dataset."""
        _, one, facts = self._object(query)
        found: dict[str, Any] = plain(facts) | {"path": printable(one.path)}
        names = facts.dimensions or ()
        found["dimensions"] = [None if name is None else printable(name) for name in names]
        for key in ("dtype", "filters", "fill_value", "unlisted"):
            found[key] = None if found[key] is None else printable(found[key])
        return found | {"sources": None, "reads": usual_reads(facts.shape or ())}

    def _map(self, query: Query) -> ChunkMap:
        number, one, _ = self._object(query)
        with self._lock:
            found = self._maps.get(number)
            if found is None:
                with self.source.dataset(one.path) as dataset:
                    found = ChunkMap.of(dataset)
                self._maps[number] = found
                while len(self._maps) > _MAPS_KEPT:
                    self._maps.popitem(last=False)
            return found

    def chunks(self, query: Query) -> dict[str, Any]:
        """Describe the grid of a dataset's chunks."""
        found = self._map(query)
        return {
            "grid": found.grid,
            "chunk": found.chunk,
            "written": int(found.positions.size),
            "ranges": found.ranges,
            "side": SIDE,
        }

    def tile(self, query: Query) -> bytes:
        """Give a tile of a drawing, as 32-bit floats of this machine's order."""
        found = self._map(query)
        rank = len(found.grid)
        at = _integers(query, "at")
        vertical, horizontal = _integer(query, "vertical"), _integer(query, "horizontal")
        down, right, row, column = _integers(query, "tile")
        what = _text(query, "what")
        if what not in VALUES or len(at) != rank or not -1 <= vertical < rank:
            raise UsageError("there is no such tile")
        if not (0 <= horizontal < rank and 0 <= down < 64 and 0 <= right < 64):
            raise UsageError("there is no such tile")
        with self._lock:
            plane = found.plane(None if vertical < 0 else vertical, horizontal, at)
        return found.tile(plane, what, (down, right), (row, column)).tobytes()

    @cached_property
    def _filled(self) -> tuple[Numbers, Rest | None]:
        with self.source.file() as file:
            datasets = [one.path for one in self.quick.objects if one.dataset is not None]
            found = all_spans(find_dataset(file, path) for path in datasets[:_MOST_MAPPED])
            rest = None if self.source.is_far else Rest.of(self.path, file)
        return found.shares(self.quick.nbytes), rest

    def bytes_of(self, query: Query) -> dict[str, Any]:
        """Say how much of each equal part of the file is a dataset's data, others', metadata."""
        _, one, _ = self._object(query)
        nbytes = self.quick.nbytes
        with self._slow, self.source.dataset(one.path) as dataset:
            own = Spans.of(dataset).shares(nbytes)
            filled, rest = self._filled
        shares = {"own": own, "others": np.clip(filled - own, 0.0, 1.0)}
        known = {}
        if rest is not None:
            shares["metadata"] = rest.shares(nbytes, np.maximum(filled, own))
            for name in ("metadata_nbytes", "free_nbytes", "unaccounted_nbytes"):
                known[name] = getattr(rest, name)
        return {name: np.round(one, 5).tolist() for name, one in shares.items()} | known

    def chunk(self, query: Query) -> Mapping[str, Any]:
        """Say where one chunk lies."""
        found, index = self._map(query), _integers(query, "index")
        if len(index) != len(found.grid) or any(
            not 0 <= i < n for i, n in zip(index, found.grid, strict=True)
        ):
            raise UsageError("there is no such chunk")
        return found.one(index)

    # --- costs ----------------------------------------------------------------------------

    def costs_of(self, query: Query) -> Costs:
        """Give what knows the costs of a dataset's reads."""
        number, one, facts = self._object(query)
        if not facts.is_placed:
            raise UsageError(f"a dataset that is {facts.layout} or empty has no chunks to compare")
        with self._lock:
            if number not in self._costs:
                self._costs[number] = Costs(self.source, one.path, facts)
            return self._costs[number]

    def costs(self, query: Query) -> dict[str, Any]:
        """Say what reads cost now, and in the layout and with the cache that are tried."""
        found = self.costs_of(query)
        return found.answer(query.get("read", ()), _tried(query))

    def measure(self, query: Query) -> dict[str, Any]:
        """Measure the machine and a sample of a dataset, so that there are seconds."""
        found = self.costs_of(query)
        found.measure()
        return {"obstacle": found.obstacle}

    def film(self, query: Query) -> dict[str, Any]:
        """Play the first read pattern through the chunk cache, or what a program read."""
        found = self.costs_of(query)
        text = _text(query, "read")
        if text:
            walk = found.read(text)[0].walk(found.shape)
            reads = (walk[number] for number in range(walk.operations))
            return film(reads, walk.operations, found, found.setting(_tried(query)))
        if self.trace is None:
            raise UsageError("there is no trace: chunkwise view TRACE.json")
        return self.trace.film(found, found.setting(_tried(query)))

    def picture(self, query: Query) -> dict[str, Any]:
        """Read some values of a plane, in a process of its own."""
        _, one, facts = self._object(query)
        rank = len(facts.shape or ())
        at, shown = _integers(query, "at"), _integers(query, "shown")
        if not facts.is_placed or len(at) != rank or len(shown) != 2:
            raise UsageError("there is no such plane")
        if not (-1 <= shown[0] < rank and 0 <= shown[1] < rank and shown[0] != shown[1]):
            raise UsageError("there is no such plane")
        with self._slow:
            work = Running("picture")
            found: dict[str, Any] = work.run(self.path, one.path, *shown, at)
        if work.error:
            raise ChunkwiseError(work.error)
        return found

    # --- work ---------------------------------------------------------------------------------

    def begin(self, query: Query) -> dict[str, Any]:
        """Begin to measure, to look for the best layout, or to write a file; one at a time."""
        if self.source.is_far:
            raise UsageError("this file is far away: download it first")
        found, tried, reads = self.costs_of(query), _tried(query), tuple(query.get("read", ()))
        then = found.setting(tried)
        what, whom = _text(query, "work"), tried.reader or None
        if what == "best":
            given: tuple[Any, ...] = (found.path, reads, whom)
        elif what == "bench":
            given = (found.path, reads, whom, then.layout)
        elif what == "write":
            said = found.written(tried, then)
            assert said is not None
            out = _text(query, "out")
            if not out.strip():
                raise UsageError("name the new file")
            if os.path.lexists(out):
                raise UsageError(f"{printable(out)} exists: give the new file another name")
            given = (
                out, found.path,
                said["chunk"] or None, said["filters"] or None,
            )  # fmt: skip
        else:
            raise UsageError("there is no such work")
        with self._lock:
            if self._work is not None and self._work.is_running:
                raise UsageError("other work is running: wait for its end, or end it")
            self._work = Running(what)
            self._work.begin(self.path, *given)
            return self._work.state()

    def cancel(self, _: Query) -> dict[str, Any]:
        """End the work that is running."""
        if self._work is not None:
            self._work.cancel()
        return self.work({})

    def work(self, _: Query) -> dict[str, Any]:
        """Say how far the work is."""
        return {} if self._work is None else self._work.state()

    @property
    def deeds(self) -> Mapping[str, Callable[[Query], Any]]:
        """What a button may do, by name."""
        return {"begin": self.begin, "cancel": self.cancel}

    @property
    def answers(self) -> Mapping[str, Callable[[Query], Any]]:
        """What the page may request, by name."""
        return {
            "facts": self.facts,
            "dataset": self.dataset_facts,
            "chunks": self.chunks,
            "tile": self.tile,
            "chunk": self.chunk,
            "bytes": self.bytes_of,
            "costs": self.costs,
            "measure": self.measure,
            "film": self.film,
            "picture": self.picture,
            "work": self.work,
        }


def _when_requested(waiting: int, asking: int, path: str) -> Looked:
    """Look at a file with a sample of its data, once a pipe says so."""
    if system.FORKS:
        # If this process held it too, it would wait for ever when the other has ended.
        os.close(asking)
    if not os.read(waiting, 1):
        raise UsageError("the page did not request it")
    return look(path, sample=True, metadata=True)


def usual_reads(shape: Sequence[int]) -> list[str]:
    """Give the reads that are shown where nobody states any."""
    axes = [axis for axis, extent in enumerate(shape) if extent > 1][:_MOST_LINES]
    if len(axes) < 2:
        return ["all", "random:1000"]
    return [*(f"line:{axis}" for axis in axes), f"plane:{axes[0]}"]


def _row(one: ObjectFacts) -> dict[str, Any]:
    """Give what the tree shows of an object."""
    row: dict[str, Any] = {"path": printable(one.path), "depth": one.depth, "kind": one.kind}
    if one.dataset is not None:
        facts = one.dataset
        row |= {
            "shape": facts.shape,
            "dtype": printable(facts.dtype),
            "layout": facts.layout,
            "chunks": facts.chunks and facts.chunks.shape,
            "grid": facts.chunks and facts.chunks.grid,
            "filters": printable(facts.filters),
            "logical_nbytes": facts.logical_nbytes,
            "stored_nbytes": facts.stored_nbytes,
            "ratio": facts.ratio,
        }
    return row


def _finding(one: Finding, numbers: Mapping[str, int], *, remedies: bool = True) -> dict[str, Any]:
    return {
        "code": one.code,
        "severity": one.severity,
        "rank": SEVERITIES.index(one.severity),
        "object": None if one.path is None else numbers.get(one.path),
        "summary": printable(one.summary),
        "source": one.source,
        "fixes": [
            {"what": fix.tool, "line": fix.text}
            for fix in one.fixes[:3]
            if remedies and not fix.writing
        ],
    }


def _tried(query: Query) -> Tried:
    cache = _integers(query, "cache")
    if len(cache) > 1 or min(cache, default=0) < 0:
        raise UsageError("cache: one number of bytes")
    return Tried(*(_text(query, name) for name in ("chunk", "filters", "cache", "reader")))


def _text(query: Query, name: str) -> str:
    return next(iter(query.get(name, ())), "")


def _integers(query: Query, name: str) -> tuple[int, ...]:
    text = _text(query, name)
    try:
        return tuple(map(int, text.split(","))) if text else ()
    except ValueError:
        raise UsageError(f"{name}: numbers with commas between them") from None


def _integer(query: Query, name: str) -> int:
    found = _integers(query, name)
    if len(found) != 1:
        raise UsageError(f"{name}: one number")
    return found[0]
