"""Is the diagnosis right about what people complained of in public, and does following it help?

Each report (complaints.toml) is rebuilt small, diagnosed, fixed or given the chunk cache that
`advise` names, and read before and after, in processor time.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import h5py
import numpy as np

import chunkwise
from chunkwise.advice.answer import CacheAdvice
from chunkwise.errors import UsageError
from chunkwise.fixing.records import Fixed
from chunkwise.grammar import format_shape, parse_size
from chunkwise.names import printable
from chunkwise.patterns import Dataset, as_stated, read
from chunkwise_lab.regret.reading import (
    Cost,
    by_chunkwise,
    by_h5py,
    compare,
    selections,
    succeeded,
)

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE: Final = Path(__file__).with_name("complaints.toml")
# Of reads that this makes faster by less, nobody notices it.
GAIN: Final = 1.1
# How long `advise` may take: the model's answer.
_ADVICE_S: Final = 1.0
# What a program does that `trace` watches.
_PROGRAM: Final = """
import contextlib, h5py, json, sys
with contextlib.suppress(ImportError):
    import hdf5plugin
with h5py.File(sys.argv[1]) as file:
    for one in json.loads(sys.argv[2]):
        file["x"][tuple(slice(*bounds) for bounds in one)]
"""
_TRACED: Final = 50


@dataclass(frozen=True)
class Complaint:
    """One report, as complaints.toml has it."""

    on: str
    about: str
    shape: tuple[int, ...]
    reads: tuple[str, ...]
    right: frozenset[str]
    chunks: tuple[int, ...] | str | None = None
    type: str = "f4"
    filters: str = ""
    grows: bool = False
    reported: str = ""
    cache: str = ""

    def write(self, path: Path) -> None:
        """Write its data: neighbours are alike, as in what is measured."""
        rng = np.random.default_rng(0)
        walk = np.cumsum(rng.integers(-9, 10, math.prod(self.shape))) + 1000
        shuffle, _, deflate = self.filters.rpartition("+")
        options: dict[str, Any] = {}
        if deflate == "bitshuffle":
            import hdf5plugin

            options = dict(hdf5plugin.Bitshuffle())
        elif deflate:
            name, _, level = deflate.partition(":")
            options = {"compression": int(level) if level else name, "shuffle": bool(shuffle)}
        with h5py.File(path, "w") as file:
            file.create_dataset(
                "x",
                data=walk.astype(self.type).reshape(self.shape),
                chunks=True if self.chunks == "h5py" else self.chunks,
                maxshape=(None, *self.shape[1:]) if self.grows else None,
                **options,
            )

    @property
    def h5py_cache(self) -> dict[str, int]:
        """The chunk cache of the reader, as h5py takes it; that of libhdf5 1.10 is stated."""
        return {"rdcc_nbytes": parse_size(self.cache), "rdcc_nslots": 521} if self.cache else {}


@dataclass
class Outcome:
    """What was said of a report, and what following it did."""

    complaint: Complaint
    chunks: tuple[int, ...] | None = None
    found: list[str] = field(default_factory=list)  # Codes of `inspect --access`
    traced: str = ""  # What `trace` says is wrong; empty for nothing
    advised: str = ""  # Chunks and filters, or `leave`
    followed: str = ""  # What was changed; empty for nothing
    # For each reader and pattern; and the sizes of the file.
    costs: dict[str, list[Cost]] = field(default_factory=dict)
    nbytes: tuple[int, int] = (0, 0)

    @property
    def is_harmful(self) -> bool:
        """Whether a stated read became slower."""
        return any(cost.is_slower for costs in self.costs.values() for cost in costs)

    @property
    def gains(self) -> bool:
        """Whether what was changed makes a read faster for some reader, or the file smaller."""
        costs = [cost for costs in self.costs.values() for cost in costs]
        faster = any(cost.judged(GAIN).word == "faster" for cost in costs)
        return faster or self.nbytes[0] >= GAIN * self.nbytes[1]

    @property
    def is_right(self) -> bool:
        """Whether it found what is wrong, and nothing else, and following it helps."""
        wanted = self.complaint.right
        judged = bool(wanted & set(self.found)) if wanted else not self.followed
        return (
            not self.is_harmful
            and (self.gains if self.followed else not wanted or judged)
            and (judged or self.gains)
        )


def complaints() -> list[Complaint]:
    """Read the reports."""

    def frozen(name: str, value: Any) -> Any:
        kind = frozenset if name == "right" else tuple
        return kind(value) if isinstance(value, list) else value

    listed = tomllib.loads(FILE.read_text(encoding="utf-8"))["complaint"]
    return [Complaint(**{name: frozen(name, one[name]) for name in one}) for one in listed]


def try_it(
    complaint: Complaint, folder: Path, *, all_of_it: bool = True, most_s: float = 0.1
) -> Outcome:
    """Rebuild one report, ask, follow and measure; or ask neither `trace` nor `advise`."""
    before, after = folder / "before.h5", folder / "after.h5"
    after.unlink(missing_ok=True)
    complaint.write(before)
    facts = chunkwise.inspect(before, access=complaint.reads)
    dataset = next(one.dataset for one in facts.objects if one.path == "/x")
    assert dataset is not None
    here = Dataset(complaint.shape, dataset.itemsize, "'/x'")
    stated = read(complaint.reads)
    access = [as_stated(one.on(here), complaint.shape, one)[0] for one in stated]
    outcome = Outcome(complaint, None if dataset.chunks is None else dataset.chunks.shape)
    outcome.found = list(
        dict.fromkeys(one.code for one in facts.findings if one.path == "/x" and not one.is_offer)
    )
    cache = None
    if all_of_it:
        reads = [selections(one, complaint.shape) for one in access]
        outcome.traced = _traced(before, folder, reads)
        outcome.advised, cache = _advised(before, complaint.reads)
    fixed = chunkwise.fix(before, after, access=complaint.reads, seconds=0)
    readers: dict[str, tuple[Any, Any]]
    own = complaint.h5py_cache
    if fixed.outcome == "fixed":
        outcome.followed = _in_words(fixed)
        readers = {"h5py": (by_h5py(**own), by_h5py(**own)), "chunkwise": (by_chunkwise,) * 2}
    elif cache is not None and cache.nbytes:
        after = before
        outcome.followed = f"a chunk cache of {cache.nbytes >> 20} MiB"
        larger = {"rdcc_nbytes": cache.nbytes, "rdcc_nslots": cache.nslots or 521}
        readers = {"h5py": (by_h5py(**own), by_h5py(**larger))}
    else:
        return outcome
    outcome.nbytes = before.stat().st_size, after.stat().st_size
    for name, (old, new) in readers.items():
        outcome.costs[name] = [
            compare(
                (before, old), (after, new), "x", selections(one, complaint.shape), most_s=most_s
            )
            for one in access
        ]
    return outcome


def _advised(path: Path, reads: Sequence[str]) -> tuple[str, CacheAdvice | None]:
    try:
        advice = chunkwise.advise(path, "x", reads, budget_s=_ADVICE_S)
    except UsageError:  # What is read at once, however it is stored.
        return "leave", None
    return "leave" if advice.leave else str(advice.best), advice.cache


def _in_words(fixed: Fixed) -> str:
    said = []
    for change in fixed.changes:
        if change.chunk is not None:
            said.append(f"chunks {format_shape(change.chunk)}")
        if change.filters is not None:
            said.append(change.filters)
    return ", ".join(said) or (fixed.options or "written anew")


def _traced(path: Path, folder: Path, reads: Sequence[Sequence[Any]]) -> str:
    """Say which finding `trace` has for a program that reads so."""
    record = folder / "trace.json"
    few = [
        [(part.start, part.stop, part.step) for part in index]
        for one in reads
        for index in one[:_TRACED]
    ]
    trace = ["-m", "chunkwise", "trace", "--observe-only", "-o", str(record), "--"]
    program = [sys.executable, "-c", _PROGRAM, str(path), json.dumps(few)]
    succeeded([sys.executable, *trace, *program])
    found = json.loads(record.read_text())["found"]
    return "" if found is None else str(found["code"])


def run(wanted: Sequence[Complaint], say: Callable[[str], None]) -> Iterator[Outcome]:
    """Try reports, one after another."""
    for complaint in wanted:
        with tempfile.TemporaryDirectory(prefix="chunkwise-") as folder:
            outcome = try_it(complaint, Path(folder))
        say(f"{complaint.on}: {'right' if outcome.is_right else 'WRONG'}")
        yield outcome


def lines(found: Sequence[Outcome]) -> Iterator[str]:
    """Write the table of docs/complaints.md."""
    yield "| report | data | reads | inspect | trace | advise | followed | h5py | chunkwise | |"
    yield "| --- | --- | --- | --- | --- | --- | --- | ---: | ---: | --- |"
    for one in found:
        what = one.complaint
        stored = "contiguous" if one.chunks is None else f"chunks {format_shape(one.chunks)}"
        filters = f", {what.filters}" if what.filters else ""
        reported = f" (reported: {what.reported})" if what.reported else ""
        size = f", {one.nbytes[1] / one.nbytes[0]:.0%} of the size" if one.nbytes[0] else ""
        cells = (
            f"[{what.on}]({_address(what.on)}): {what.about}",
            f"{format_shape(what.shape)} {what.type}, {stored}{filters}{reported}",
            "; ".join(f"`{text}`" for text in what.reads),
            _codes(one.found),
            _codes([one.traced] if one.traced else []),
            one.advised,
            f"{one.followed}{size}" if one.followed else "-",
            *(_times(one.costs.get(name)) for name in ("h5py", "chunkwise")),
            "right" if one.is_right else "harmful" if one.is_harmful else "wrong",
        )
        yield f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"
    yield ""
    right, harmful = (
        sum(getattr(one, name) for one in found) for name in ("is_right", "is_harmful")
    )
    yield f"{right} of {len(found)} are right; following makes a stated read slower in {harmful}."


def _address(on: str) -> str:
    place, _, number = on.partition("#")
    return f"https://github.com/{place}/issues/{number}" if number else f"https://{place}"


def _codes(codes: Sequence[str]) -> str:
    return ", ".join(f"[{one}](findings.md#{one})" for one in codes) or "nothing"


def _times(costs: Sequence[Cost] | None) -> str:
    return ", ".join(f"{printable(f'{one.times:.3g}')}x" for one in costs or ()) or "-"
