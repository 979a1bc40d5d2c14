"""Which datasets of a file, or of many, are worth changing?

A rough answer without a proof.  One dataset of each kind is sampled.  The model says what the
usual patterns would gain in a year, if they run a stated number of times, and how long a copy
takes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import h5py

from chunkwise.advice import calibration, patterns, sampling, wishes
from chunkwise.errors import ChunkwiseError, UsageError
from chunkwise.files.around import Surroundings
from chunkwise.files.objects import HDF5_ERRORS, walk
from chunkwise.files.opening import find_dataset
from chunkwise.files.unclosed import open_readable
from chunkwise.inspection.folder import find_files
from chunkwise.measure.schedule import Step
from chunkwise.measure.target import Target, look
from chunkwise.measure.variants import scratch_folder
from chunkwise.model import worth
from chunkwise.model.layout import Layout
from chunkwise.model.search import Problem, by_rule, search
from chunkwise.model.seconds import Codec, Machine
from chunkwise.model.traffic import Pattern
from chunkwise.names import printable

# Smaller ones are read at once however they are stored.
LEAST_NBYTES: Final = 1 << 20
# In a file, the largest ones; in an archive, the kinds with the most bytes.
MOST_KINDS: Final = 20
# How often a year all patterns are run, where nobody said so.
READS_A_YEAR: Final = 100.0
_SAMPLE_S: Final = 0.5


@dataclass(frozen=True)
class Kind:
    """Datasets that are stored alike, and what touching them would gain."""

    file: str  # The first of them
    dataset: str
    files: int  # How many files have one
    shape: tuple[int, ...]  # Of the first, in elements, and bytes of one
    itemsize: int
    present: Layout  # How they are stored, and how they should be
    best: Layout
    present_s: float  # Seconds of all patterns, once, of one of them
    best_s: float
    present_nbytes: int  # Bytes of one of them in the file
    best_nbytes: int
    copy_s: float  # About how many seconds copying one of them takes
    gained_s: float  # Seconds a year, and bytes, for all of them; 0 or more
    gained_nbytes: int

    @property
    def is_worth_it(self) -> bool:
        """Whether it gains enough to be touched."""
        faster = self.present_s > worth.STATED * self.best_s
        smaller = self.present_nbytes > worth.SMALLER * self.best_nbytes
        return self.present != self.best and (faster or smaller)

    @property
    def worth(self) -> float:
        """Seconds gained in a year for each second that copying takes."""
        return self.gained_s / max(1e-9, self.copy_s * self.files)


@dataclass(frozen=True)
class Ranking:
    """Kinds of datasets, the cheapest gain first."""

    # Those worth touching first, by seconds gained for each second of copying.
    kinds: tuple[Kind, ...]
    reads_a_year: float  # How often all patterns of each dataset are run in a year
    files: int  # How many files were looked at
    too_small: int  # Datasets below 1 MiB, and those that cannot be advised on, with the reason
    left: dict[str, str] = field(default_factory=dict)
    reader: str = ""  # The stated reader, in words
    elapsed_s: float = 0.0  # What it took

    def as_dict(self) -> dict[str, Any]:
        """Return it as ``--json`` prints it (docs/advise.md)."""
        record = asdict(self)
        for one, kind in zip(record["kinds"], self.kinds, strict=True):
            one["worth_it"] = kind.is_worth_it
        return {"format": "chunkwise-advise-ranking", "version": 1, **record}


def rank(
    paths: Sequence[str | os.PathLike[str]],
    access: Sequence[str] = (),
    *,
    objective: str = "balanced",
    reader: str | None = None,
    max_size: str | None = None,
    reads_a_year: float = READS_A_YEAR,
    calibrate: bool = False,
    scratch: str | None = None,
    progress: Callable[[Step], None] | None = None,
) -> Ranking:
    """Rank the datasets of files and folders by the gain of another layout."""
    begun = time.monotonic()
    asked_for = wishes.read(objective, (), max_size, reader)
    if not reads_a_year > 0:
        raise UsageError(f"{reads_a_year:g} reads a year gain nothing: give more than 0")

    def say(text: str) -> None:
        if progress is not None:
            progress(Step(text))

    found = find_files([os.fspath(path) for path in paths])
    left = dict(found.unreadable)
    groups: dict[tuple[Any, ...], list[tuple[str, str]]] = {}
    sizes: dict[tuple[Any, ...], int] = {}
    too_small = 0
    for number, file in enumerate(found.files):
        say(f"looking at file {number + 1} of {len(found.files)}")
        try:
            for name, nbytes, key in _datasets(file):
                if nbytes < LEAST_NBYTES:
                    too_small += 1
                else:
                    groups.setdefault(key, []).append((file, name))
                    sizes[key] = sizes.get(key, 0) + nbytes
        except ChunkwiseError as error:
            left[file] = str(error)
    largest = sorted(groups, key=lambda key: -sizes[key])[:MOST_KINDS]
    kinds = []
    with scratch_folder(scratch) as folder:
        machine = calibration.machine(again=calibrate, say=say)
        for key in largest:
            members = groups[key]
            file, name = members[0]
            say(f"{printable(name)}")
            try:
                target = look(file, name)
                kinds.append(
                    _kind(target, len(members), access, asked_for, machine, folder, reads_a_year)
                )
            except ChunkwiseError as error:
                left[f"{file} {name}"] = str(error)
    kinds.sort(key=lambda kind: (not kind.is_worth_it, -kind.worth))
    elapsed_s = time.monotonic() - begun
    return Ranking(
        tuple(kinds), reads_a_year, len(found.files), too_small, left, asked_for.title, elapsed_s
    )


def _datasets(file: str) -> Iterator[tuple[str, int, tuple[Any, ...]]]:
    """Name the datasets of a file, with their bytes and what makes them alike."""
    with open_readable(file) as opened:
        # Advice is on a dataset with a path.
        for entry in walk(opened, references=False):
            if entry.kind != "dataset":
                continue
            try:
                one = h5py.Dataset(entry.identifier)
                shape, kind = one.shape, one.dtype
            except HDF5_ERRORS:
                continue
            if not shape or kind.hasobject:
                continue
            filters = entry.identifier.get_create_plist().get_nfilters()
            # Files may have different lengths of a growing dimension.
            alike = (entry.path, kind.str, one.chunks, filters, shape[1:])
            yield entry.path, int(one.size) * kind.itemsize, alike


def _kind(
    target: Target,
    files: int,
    access: Sequence[str],
    asked_for: wishes.Wishes,
    machine: Machine,
    folder: str,
    reads_a_year: float,
) -> Kind:
    """Estimate what one dataset would gain, and all like it."""
    if target.layout not in ("chunked", "contiguous") or not target.stored_nbytes:
        raise UsageError(f"{target.where} is {target.layout}, or holds nothing")
    try:
        asked = patterns.read(
            access,
            target.shape,
            target.itemsize,
            target.where,
            Surroundings(target.file, target.dataset),
        )
    except ChunkwiseError:
        # Patterns for one dataset need not fit another.
        asked = patterns.read((), target.shape, target.itemsize, target.where)
    asked_patterns = tuple(one.pattern for one in asked)
    present = Layout(target.chunks, target.filters)
    pipelines = wishes.pipelines(asked_for, present, target.itemsize)
    usual = patterns.usual_chunks(
        target.shape, target.itemsize, target.maxshape, asked, asked_for.readers
    )
    with open_readable(target.file) as file:
        samples = sampling.take(
            find_dataset(file, target.dataset),
            pipelines,
            [target.chunks or usual],
            machine,
            folder,
            deadline=time.monotonic() + _SAMPLE_S,
        )
    if samples.constant:
        raise UsageError(f"{target.where}: all elements of the sample are equal")
    codecs = sampling.corrected(samples.codecs, target)
    codecs.setdefault(present.filters, Codec(present.filters))
    compressed = present.filters != "none"
    problem = Problem(
        shape=target.shape,
        itemsize=target.itemsize,
        patterns=asked_patterns,
        reader=asked_for.reader,
        reader_name=asked_for.reader_name,
        machine=machine,
        codecs=codecs,
        present=present,
        objective=asked_for.objective,
        most_nbytes=asked_for.most_nbytes(target.stored_nbytes, compressed),
        maxshape=target.maxshape,
        barred=wishes.barred(asked_for, present),
        usual=usual,
    )
    found = search(problem)
    now, best = problem.outcome(present), by_rule(found, problem)
    copying = problem.pattern_s(best.layout, Pattern("", best.layout.chunks or target.shape,
                                                     writes=True))  # fmt: skip
    reading = problem.pattern_s(present, Pattern("", present.chunks or target.shape))
    return Kind(
        target.file,
        target.dataset,
        files,
        target.shape,
        target.itemsize,
        present,
        best.layout,
        now.read_s,
        best.read_s,
        target.stored_nbytes,
        best.nbytes,
        copying + reading,
        max(0.0, now.read_s - best.read_s) * reads_a_year * files,
        max(0, target.stored_nbytes - best.nbytes) * files,
    )
