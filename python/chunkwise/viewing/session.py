"""What does the page ask about a file, and what is answered?

Each answer is plain data.  Objects are named by their numbers in the list of all: names may hold
anything.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Final

import numpy as np

from chunkwise.advice.answer import Advice
from chunkwise.advice.api import advise
from chunkwise.errors import ChunkwiseError, DatasetNotFoundError, UsageError
from chunkwise.files.contained import Outcome, contained_each
from chunkwise.files.opening import find_dataset, full_name
from chunkwise.files.unclosed import open_readable
from chunkwise.inspection import DatasetFacts, FileFacts, Finding, ObjectFacts, inspect
from chunkwise.inspection.finding import SEVERITIES
from chunkwise.inspection.records import plain
from chunkwise.measure.schedule import Step
from chunkwise.names import HDF5_ERRORS, printable
from chunkwise.viewing.bytemap import Numbers, Spans, all_spans
from chunkwise.viewing.chunkmap import SIDE, VALUES, ChunkMap
from chunkwise.viewing.costs import Costs, Setting
from chunkwise.viewing.film import film

# Lists of chunks that are kept: of ten million chunks, one takes 240 MB.
_MAPS_KEPT: Final = 2
# More datasets take seconds to list.
_MOST_MAPPED: Final = 5_000
Asked = Mapping[str, Sequence[str]]


@dataclass
class Search:
    """One run of `advise`, which goes on while the page asks how far it is."""

    key: tuple[str, ...]
    is_running: bool = True
    step: Step | None = None
    advice: Advice | None = None
    error: str = ""

    def begin(self, file: str, dataset: str, access: Sequence[str]) -> None:
        """Start."""
        threading.Thread(target=self._run, args=(file, dataset, access), daemon=True).start()

    def _run(self, file: str, dataset: str, access: Sequence[str]) -> None:
        def follow(step: Step) -> None:
            self.step = step

        try:
            self.advice = advise(file, dataset, access, progress=follow)
        except (ChunkwiseError, *HDF5_ERRORS) as error:
            self.error = printable(str(error))
        finally:
            self.is_running = False

    def state(self) -> dict[str, Any]:
        """Say how far it is, and what was found."""
        return {
            "running": self.is_running,
            "step": plain(self.step),
            "error": self.error,
            "advice": None if self.advice is None else plain(self.advice.as_dict()),
        }


@dataclass
class Session:
    """One file, as a page looks at it."""

    path: str
    quick: FileFacts  # Without a sample, which takes seconds
    dataset: str | None = None  # What is shown first, by its path
    access: tuple[str, ...] = ()
    # Gives the facts with a sample, once.
    looks: Iterator[Outcome[FileFacts]] | None = None
    _maps: OrderedDict[int, ChunkMap] = field(default_factory=OrderedDict)
    _search: Search | None = None
    _costs: dict[int, Costs] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    # Held for seconds.
    _slow: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def of(cls, path: str, dataset: str | None = None, access: Sequence[str] = ()) -> Session:
        """Look at a file, in processes of their own: libhdf5 crashes on some damaged files."""
        # Both begin now: later, other threads may hold locks that a copy of this process never
        # gets back.
        works = [partial(inspect, path, sample=False, metadata=False), partial(inspect, path)]
        looks = contained_each(((work, printable(path)) for work in works), len(works))
        facts = next(looks).get()
        if dataset is not None:
            with open_readable(path) as file:
                dataset = "/" + full_name(file, dataset).strip("/")
            if dataset not in {one.path for one in facts.objects if one.dataset}:
                raise DatasetNotFoundError(
                    f"{printable(path)}: has no dataset {printable(dataset)}"
                )
        return cls(path, facts, dataset, tuple(access), looks)

    # --- the file -------------------------------------------------------------------------

    def first(self) -> dict[str, Any]:
        """Say what the page shows at once."""
        numbers = {one.path: i for i, one in enumerate(self.quick.objects)}
        chosen = None if self.dataset is None else numbers[self.dataset]
        return {
            **self._described(self.quick),
            "chosen": chosen,
            "access": self.access,
            "objects": [_row(one) for one in self.quick.objects],
        }

    @cached_property
    def _full(self) -> FileFacts:
        return inspect(self.path) if self.looks is None else next(self.looks).get()

    def facts(self, _: Asked) -> dict[str, Any]:
        """Say what a sample of the data shows, too, and what opening the file costs."""
        with self._slow:
            return self._described(self._full)

    def _described(self, facts: FileFacts) -> dict[str, Any]:
        numbers = {one.path: i for i, one in enumerate(self.quick.objects)}
        return {
            "file": printable(os.fspath(self.path)),
            "nbytes": facts.nbytes,
            "hdf5": facts.hdf5_version,
            "verdict": str(facts.verdict),
            "metadata": plain(facts.metadata),
            "findings": [_finding(one, numbers) for one in facts.findings],
            "commands": [{"what": fix.tool, "line": fix.text} for fix in facts.commands],
        }

    def worst(self) -> list[int]:
        """List datasets by their numbers: those with the worst findings first, then large ones."""
        ranks: dict[str | None, int] = {}
        for one in self._full.findings:
            rank = SEVERITIES.index(one.severity)
            ranks[one.path] = max(rank, ranks.get(one.path, 0))
        rows = [(i, one) for i, one in enumerate(self.quick.objects) if one.dataset is not None]
        rows.sort(
            key=lambda row: (ranks.get(row[1].path, -1), _logical_nbytes(row[1])), reverse=True
        )
        return [number for number, _ in rows]

    @staticmethod
    def is_drawn(facts: DatasetFacts) -> bool:
        """Whether a dataset has elements that lie in this file, at places that are known."""
        if not facts.shape or 0 in facts.shape or facts.unlisted:
            return False
        return facts.layout in ("chunked", "contiguous")

    # --- a dataset ------------------------------------------------------------------------

    def _object(self, asked: Asked) -> tuple[int, ObjectFacts, DatasetFacts]:
        number = _integer(asked, "dataset")
        if not 0 <= number < len(self.quick.objects):
            raise UsageError("there is no such object")
        one = self.quick.objects[number]
        if one.dataset is None:
            raise UsageError("this object is no dataset")
        return number, one, one.dataset

    def dataset_facts(self, asked: Asked) -> dict[str, Any]:
        """Give the facts that `inspect` has about a dataset."""
        _, one, facts = self._object(asked)
        found: dict[str, Any] = plain(facts) | {"path": printable(one.path)}
        names = facts.dimensions or ()
        found["dimensions"] = [None if name is None else printable(name) for name in names]
        for key in ("dtype", "filters", "fill_value", "unlisted"):
            found[key] = None if found[key] is None else printable(found[key])
        return found | {"sources": None}

    def _map(self, asked: Asked) -> ChunkMap:
        number, one, _ = self._object(asked)
        with self._lock:
            found = self._maps.get(number)
            if found is None:
                with open_readable(self.path) as file:
                    found = ChunkMap.of(find_dataset(file, one.path))
                self._maps[number] = found
                while len(self._maps) > _MAPS_KEPT:
                    self._maps.popitem(last=False)
            return found

    def chunks(self, asked: Asked) -> dict[str, Any]:
        """Describe the grid of a dataset's chunks."""
        found = self._map(asked)
        return {
            "grid": found.grid,
            "chunk": found.chunk,
            "written": int(found.positions.size),
            "ranges": found.ranges,
            "side": SIDE,
        }

    def tile(self, asked: Asked) -> bytes:
        """Give a tile of a drawing, as 32-bit floats of this machine's order."""
        found = self._map(asked)
        rank = len(found.grid)
        at = _integers(asked, "at")
        vertical, horizontal = _integer(asked, "vertical"), _integer(asked, "horizontal")
        down, right, row, column = _integers(asked, "tile")
        what = _text(asked, "what")
        if what not in VALUES or len(at) != rank or not -1 <= vertical < rank:
            raise UsageError("there is no such tile")
        if not (0 <= horizontal < rank and 0 <= down < 64 and 0 <= right < 64):
            raise UsageError("there is no such tile")
        with self._lock:
            plane = found.plane(None if vertical < 0 else vertical, horizontal, at)
        return found.tile(plane, what, (down, right), (row, column)).tobytes()

    @cached_property
    def _filled(self) -> Numbers:
        with open_readable(self.path) as file:
            datasets = [one.path for one in self.quick.objects if one.dataset is not None]
            found = all_spans(find_dataset(file, path).id for path in datasets[:_MOST_MAPPED])
        return found.shares(self.quick.nbytes)

    def bytes_of(self, asked: Asked) -> dict[str, Any]:
        """Say which part of each part of the file holds a dataset's data, and that of others."""
        _, one, _ = self._object(asked)
        with self._slow, open_readable(self.path) as file:
            own = Spans.of(find_dataset(file, one.path).id).shares(self.quick.nbytes)
            others = np.clip(self._filled - own, 0.0, 1.0)
        return {"own": np.round(own, 4).tolist(), "others": np.round(others, 4).tolist()}

    def chunk(self, asked: Asked) -> Mapping[str, Any]:
        """Say where one chunk lies."""
        found, index = self._map(asked), _integers(asked, "index")
        if len(index) != len(found.grid) or any(
            not 0 <= i < n for i, n in zip(index, found.grid, strict=True)
        ):
            raise UsageError("there is no such chunk")
        return found.one(index)

    # --- costs ----------------------------------------------------------------------------

    def costs_of(self, asked: Asked) -> Costs:
        """Give what knows the costs of a dataset's reads."""
        number, one, facts = self._object(asked)
        if not self.is_drawn(facts):
            raise UsageError(f"a dataset that is {facts.layout} or empty has no chunks to compare")
        with self._lock:
            if number not in self._costs:
                self._costs[number] = Costs(self.path, one.path, facts)
            return self._costs[number]

    def costs(self, asked: Asked) -> dict[str, Any]:
        """Say what reads cost now, and in the layout and with the cache that are tried."""
        found = self.costs_of(asked)
        texts = asked.get("read", ())
        return found.answer(texts, found.setting("", "", ""), _setting(found, asked))

    def measure(self, asked: Asked) -> dict[str, Any]:
        """Measure the machine and a sample of a dataset, so that there are seconds."""
        found = self.costs_of(asked)
        found.measure()
        return {"obstacle": found.obstacle}

    def film(self, asked: Asked) -> dict[str, Any]:
        """Play the first read pattern through the chunk cache."""
        found = self.costs_of(asked)
        setting = _setting(found, asked)
        access, _ = found.read(_text(asked, "read"))
        return film(access, found.shape, found.facts.itemsize, setting)

    def best(self, asked: Asked) -> dict[str, Any]:
        """Run `advise` for some reads, or say how far it is; one such work runs at a time."""
        found = self.costs_of(asked)
        key = found.path, *asked.get("read", ())
        with self._lock:
            if self._search is None or self._search.key != key:
                if self._search is not None and self._search.is_running:
                    raise UsageError("other measurements are running: wait for their end")
                self._search = Search(key)
                self._search.begin(self.path, found.path, asked.get("read", ()))
            return self._search.state()

    @property
    def answers(self) -> Mapping[str, Callable[[Asked], Any]]:
        """What can be asked, by name."""
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
            "best": self.best,
        }


def _logical_nbytes(one: ObjectFacts) -> int:
    return (one.dataset and one.dataset.logical_nbytes) or 0


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


def _finding(one: Finding, numbers: Mapping[str, int]) -> dict[str, Any]:
    return {
        "code": one.code,
        "severity": one.severity,
        "rank": SEVERITIES.index(one.severity),
        "object": None if one.path is None else numbers.get(one.path),
        "summary": printable(one.summary),
        "source": one.source,
        "fixes": [
            {"what": fix.tool, "line": fix.text} for fix in one.fixes[:3] if not fix.writing
        ],
    }


def _setting(found: Costs, asked: Asked) -> Setting:
    return found.setting(*(_text(asked, name) for name in ("chunk", "filters", "cache")))


def _text(asked: Asked, name: str) -> str:
    return next(iter(asked.get(name, ())), "")


def _integers(asked: Asked, name: str) -> tuple[int, ...]:
    text = _text(asked, name)
    try:
        return tuple(map(int, text.split(","))) if text else ()
    except ValueError:
        raise UsageError(f"{name}: numbers with commas between them") from None


def _integer(asked: Asked, name: str) -> int:
    found = _integers(asked, name)
    if len(found) != 1:
        raise UsageError(f"{name}: one number")
    return found[0]
