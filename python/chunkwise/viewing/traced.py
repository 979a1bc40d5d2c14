"""What has a program read of a file, read by read, as far as its trace says?"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from chunkwise.errors import UsageError
from chunkwise.names import printable, shell_word
from chunkwise.running.places import starts
from chunkwise.running.trace import Run, TracedDataset, patterns, read_trace
from chunkwise.viewing.costs import NOTHING, Costs, Setting
from chunkwise.viewing.film import film


@dataclass(frozen=True)
class Traced:
    """The reads of one file in a trace, those that took the most time first."""

    path: str  # Of the trace
    file: str
    datasets: tuple[TracedDataset, ...]
    others: tuple[str, ...]  # Other files that the trace has reads of

    @classmethod
    def of(cls, path: str, file: str | None = None) -> Traced:
        """Read a trace, of which this file is shown, or the one that took the most time."""
        found = [one for one in read_trace(path) if one.operation == "read"]
        if not found:
            raise UsageError(f"{printable(path)} has no read of any dataset: name a file")
        files = list(dict.fromkeys(one.file for one in found))
        if file is not None:
            same = [one for one in files if os.path.realpath(one) == os.path.realpath(file)]
            own = tuple(one for one in found if one.file in same or not same)
            return cls(path, file, own, ())
        here = next(filter(os.path.exists, files), None)
        if here is None:
            raise UsageError(
                f"{printable(path)}: {printable(files[0])} is not here; name the file that it "
                "became: chunkwise view FILE --trace TRACE"
            )
        own = tuple(one for one in found if one.file == here)
        return cls(path, here, own, tuple(one for one in files if one != here))

    @property
    def lines(self) -> list[dict[str, str]]:
        """Give the commands that show the other files."""
        trace = shell_word(self.path)
        return [
            {"what": "Also read", "line": f"chunkwise view {shell_word(one)} --trace {trace}"}
            for one in self.others
        ]

    def reads(self, numbers: Mapping[str, int]) -> dict[int, Sequence[str]]:
        """Give the access patterns that were read, by the number of the dataset."""
        named = ((numbers.get(one.dataset), [*map(str, patterns(one))]) for one in self.datasets)
        return {number: access for number, access in named if number is not None and access}

    def film(self, found: Costs, setting: Setting) -> dict[str, Any]:
        """Follow what was read through the chunk cache that the program had, or one to try."""
        one = next((one for one in self.datasets if one.dataset == found.path), None)
        if one is None or one.shape != found.shape:
            raise UsageError("the trace has no reads of this dataset as it is")
        who = setting.reader
        if setting.reader == found.setting(NOTHING).reader and one.cache_nslots:
            who = replace(who, cache_nbytes=one.cache_nbytes, nslots=one.cache_nslots)
        played = (run for run in one.runs if run.by is not None or run.in_order or run.times == 1)
        runs = sorted(played, key=lambda run: run.began)
        if not runs:
            raise UsageError("the trace has only points and unions, which cannot be played")
        operations = sum(run.times for run in runs)
        return film(_walk(runs, one.shape), operations, found, replace(setting, reader=who))


def _walk(runs: Sequence[Run], shape: tuple[int, ...]) -> Iterator[Any]:
    for run in runs:
        _, stride, count, block = zip(*run.first, strict=True)
        for number in range(run.times):
            (start,) = starts(run, np.array([number]), shape).tolist()
            yield start, stride, count, block
