"""What happens when a study is run, experiment by experiment?

All experiments are measured with half of the repeats, and then with the others: a machine is
slower in one quarter of an hour than in the next.  Trials are saved as soon as they are done.
What cannot be measured here is left out, with a reason; a full disk ends the study.
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
import shutil
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from itertools import product
from pathlib import Path
from typing import Any, Final

import h5py
import numpy as np
import numpy.typing as npt

from chunkwise import measure, patterns
from chunkwise.errors import CannotWriteError, ChunkwiseError, UsageError
from chunkwise.grammar import Pipeline
from chunkwise.measure.axes import DEFAULT
from chunkwise.measure.run import MOST_SECONDS
from chunkwise.measure.schedule import Step
from chunkwise.measure.space import Space
from chunkwise.measure.target import Target
from chunkwise.measure.variants import SAMPLE_NBYTES
from chunkwise.names import printable
from chunkwise.trials.environment import describe
from chunkwise.trials.readers import check_reader
from chunkwise.trials.unions import index_of
from chunkwise.words import nearest
from chunkwise_lab import sample
from chunkwise_lab.studies import own_data as own
from chunkwise_lab.studies.claims import Undecided, undecided
from chunkwise_lab.studies.context import Context
from chunkwise_lab.studies.folder import Folder
from chunkwise_lab.studies.libraries import Library, expand, labels_of
from chunkwise_lab.studies.libraries import find as find_libraries
from chunkwise_lab.studies.pace import Pace, Round, rounds
from chunkwise_lab.studies.probes import PROBES
from chunkwise_lab.studies.results import Outcome, StudyResults, labelled
from chunkwise_lab.studies.study import Data, Experiment, Run, Scale, Study

# Generated files have this time: the same options make the same bytes, and trials are kept.
_MTIME_S: Final = 1_000_000_000


def dataset_of(data: Data) -> str:
    """Return the dataset's path in the file."""
    return data.dataset or sample.SAMPLES[data.sample].datasets[0]


def generate(data: Data, scale: Scale, path: Path) -> None:
    """Write a study's data to a new file."""
    options: dict[str, Any] = dict(data.options[scale])
    if data.nonzero:
        whole = path.with_suffix(".whole.h5")
        try:
            sample.write(data.sample, whole, force=True, **options)
            _keep_nonzero(whole, dataset_of(data), data.nonzero, path)
        finally:
            whole.unlink(missing_ok=True)
    else:
        sample.write(data.sample, path, **options)
    os.utime(path, (_MTIME_S, _MTIME_S))


def _keep_nonzero(source: Path, name: str, pattern: str, path: Path) -> None:
    """Copy what is not 0 into one dimension, in chunks of as many elements as before."""
    with h5py.File(source) as whole, h5py.File(path, "w") as file:
        dataset = whole[name]
        # Counted first: a dataset that can grow has another chunk index.
        length = sum(part.size for part in _nonzero(dataset, pattern))
        pipeline = Pipeline.from_dcpl(dataset.id.get_create_plist())
        dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        dcpl.set_obj_track_times(False)
        dcpl.set_chunk((min(length, math.prod(dataset.chunks)),))
        pipeline.apply(dcpl)
        space = h5py.h5s.create_simple((length,))
        made = h5py.Dataset(
            h5py.h5d.create(file.id, name.encode(), dataset.id.get_type(), space, dcpl)
        )
        first = 0
        for part in _nonzero(dataset, pattern):
            made[first : first + part.size] = part
            first += part.size


def _nonzero(dataset: h5py.Dataset, pattern: str) -> Iterator[npt.NDArray[Any]]:
    """Return the part of each block of a pattern that is not 0, in one dimension."""
    found = patterns.parse(pattern, dataset.shape, dataset.dtype.itemsize, dataset.name)
    walk = found.walk(dataset.shape)
    for number in range(walk.operations):
        block = dataset[index_of(walk[number])]
        yield block[np.not_equal(block, 0)]


# Errors of a full disk.
_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)
# What results say about the user's dataset.
_OF_TARGET: Final = ("file", "dataset", "shape", "dtype", "chunks", "filters")
# This many repeats at a time of what is undecided: again over as long a time as possible.
_MORE: Final = 3
Progress = Callable[[Step], None]


@dataclass(frozen=True)
class Options:
    """What a run is to do."""

    scale: Scale
    out: Path  # A folder: trials, generated files while it runs, results
    only: tuple[str, ...] = ()  # Ids of experiments; empty for all
    readers: tuple[str, ...] = ()  # Readers that are measured; empty for all that the study names
    libhdf5: tuple[str, ...] = ()  # Further libraries, as `chunkwise bench --libhdf5` takes them
    repeat: int | None = None  # How often; None for the study's own number
    resume: bool = False  # Whether trials of an earlier run in the same folder are used
    # Measured in the place of the study's own data (`chunkwise_lab.studies.own_data`).
    file: str | None = None
    dataset: str | None = None
    source: str = ""  # The folder that the study was read from, where it is none of this package
    # Seconds of a trial's operations, about; more is estimated; None for the study's.
    seconds: float | None = None
    # Numbers of MPI processes; empty for the study's own.
    ranks: tuple[int, ...] = ()
    # The most repeats of an undecided claim; None for no more than others.
    undecided: int | None = None


def run(study: Study, options: Options, progress: Progress | None = None) -> StudyResults:
    """Run a study, or some of its experiments."""
    target: Target | None = None
    values: own.Values = {}
    if options.file is not None:
        target, values = own.values_for(study, options.file, options.dataset)
        study = own.adapted(study, values)
    return _Running(study, options, progress or (lambda _: None), target, values).run()


class _Running:
    """One run of a study."""

    def __init__(
        self,
        study: Study,
        options: Options,
        progress: Progress,
        target: Target | None,
        values: own.Values,
    ) -> None:
        self.study, self.options, self.progress = study, options, progress
        self.target, self.values = target, values
        self.experiments = _chosen(study, options.only)
        _check_readers(study, self.experiments, options)
        self.repeat = options.repeat or study.repeat[options.scale]
        self.folder = Folder(options.out)
        self.files, self.trials = self.folder.files, self.folder.trials
        self.pace = Pace(study, self.experiments, options.scale, self.repeat)
        self.libraries: Mapping[str, Library] = {}

    def run(self) -> StudyResults:
        # Before the folder is touched, as a library that the user names may be none.
        self.libraries = find_libraries(self.options.libhdf5)
        with self.folder.held():
            return self._run()

    def _rounds(self, one: Run) -> tuple[Round, ...]:
        return rounds(one.repeat or self.repeat)

    def _run(self) -> StudyResults:
        begun = time.monotonic()
        options = self.options
        # For a user's file, bench itself checks how much room it needs.
        needed = 0 if self.target else self.study.disk_nbytes[options.scale]
        new = self._empty()
        earlier = self.folder.claim(new, needed, options.resume)
        results = earlier or new
        before_s, results.repeat, results.complete = results.elapsed_s, self.repeat, False
        now = describe()
        self._warn_of_change(results.environment, now)
        results.source, results.environment = options.source, now
        try:
            # From now on the folder says whose it is, even if this run is killed.
            results.save(self.folder.results)
            results.libraries |= {name: str(one) for name, one in self.libraries.items()}
            runs = [one for experiment in self.experiments for one in experiment.runs]
            last = max(len(self._rounds(one)) for one in runs)
            for turn, (number, experiment) in product(range(last), enumerate(self.experiments)):
                place = f"{number + 1}/{len(self.experiments)}"
                self._add(results, experiment, place, turn)
                results.elapsed_s = before_s + time.monotonic() - begun
                results.save(self.folder.results)
            results.complete = all(one.complete for one in results.outcomes.values())
            if options.undecided is not None:
                self._decide(results, options.undecided)
        except OSError as error:
            if not isinstance(error, CannotWriteError) and error.errno not in _FULL:
                raise
            raise _full(self.folder, error) from None
        finally:
            # First, so that there is room for the results.
            shutil.rmtree(self.files, ignore_errors=True)
            results.elapsed_s = before_s + time.monotonic() - begun
            with contextlib.suppress(OSError):
                results.save(self.folder.results)
        return results

    def _decide(self, results: StudyResults, most: int) -> None:
        """Measure more often what decides the undecided claims."""
        while True:
            before = _measured_often(results)
            chosen = [one.id for one in self.experiments]
            found = list(undecided(self.study, results, most, chosen, _MORE))
            for number, one in enumerate(found):
                place = f"undecided {number + 1}/{len(found)}, {one.claim.id}:"
                self._add(results, one.experiment, place, again=one)
                results.save(self.folder.results)
            if _measured_often(results) == before:
                return

    def _warn_of_change(
        self, before: Mapping[str, str | int], now: Mapping[str, str | int]
    ) -> None:
        """Say so if an earlier part was measured on another machine, or with other versions."""
        changed = [f"{k} {before[k]}, now {now.get(k)}" for k in before if before[k] != now.get(k)]
        if changed:
            text = f"what is in {self.folder.name} was measured with {', '.join(changed)}"
            self.progress(Step(text, warning=True))

    def _empty(self) -> StudyResults:
        """Return results that say what is measured, and nothing else yet."""
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        results = StudyResults(self.study.name, self.options.scale, self.repeat, now)
        if self.target is not None:
            results.target = {name: getattr(self.target, name) for name in _OF_TARGET}
            results.values = {axis: dict(texts) for axis, texts in self.values.items()}
        return results

    def _add(
        self,
        results: StudyResults,
        experiment: Experiment,
        place: str,
        turn: int = 0,
        again: Undecided | None = None,
    ) -> None:
        """Measure of an experiment what is requested, and put it beside the others."""
        outcome, earlier = Outcome(complete=False), results.outcomes.get(experiment.id)
        if earlier is not None and (turn or again):
            outcome.skipped = list(earlier.skipped)
        try:
            self._measure(experiment, outcome, place, turn, again)
            outcome.complete = earlier.complete if again and earlier else True
        finally:
            found = results.outcomes | {
                experiment.id: outcome if earlier is None else outcome.after(earlier)
            }
            order = [one.id for one in self.study.experiments if one.id in found]
            results.outcomes = {name: found[name] for name in order}

    def _measure(
        self,
        experiment: Experiment,
        outcome: Outcome,
        place: str,
        turn: int,
        again: Undecided | None,
    ) -> None:
        """Measure a round of an experiment, or of what was measured what is to be `again`."""
        begun = time.monotonic()

        def saying(one: Run, now: Round) -> Progress:
            def say(step: Step) -> None:
                text = f"{place} {experiment.title}: {step.text}"
                step = replace(step, text=text)
                # How long is left is known of all, not of some trials.
                self.progress(step if again else self.pace.step(one, step, now))

            return say

        try:
            for number, one in enumerate(experiment.runs):
                if self.options.scale not in one.scales:
                    continue
                if again is not None and one.repeat == 1:
                    continue  # What is counted needs no repeats.
                turns = self._rounds(one)
                if turn >= len(turns):
                    continue
                now, run_begun = turns[turn], time.monotonic()
                say = saying(one, now)
                try:
                    self._measure_run(experiment, number, one, outcome, now, say, again)
                except (CannotWriteError, MemoryError):
                    raise
                except ChunkwiseError as wrong:
                    if str(wrong) not in outcome.skipped:
                        outcome.skipped.append(str(wrong))
                if again is None:
                    self.pace.finished(one, time.monotonic() - run_begun, now)
        finally:
            outcome.elapsed_s = time.monotonic() - begun

    def _measure_run(
        self,
        experiment: Experiment,
        number: int,
        one: Run,
        outcome: Outcome,
        now: Round,
        say: Progress,
        again: Undecided | None,
    ) -> None:
        repeat = now.until if again is None else again.repeat
        space, reasons = self._space(one)
        outcome.skipped += [reason for reason in reasons if reason not in outcome.skipped]
        if one.probe is not None:
            data = self._touched(one, again)
            if data is None:
                return
            context = Context(
                {name: self._file(name, say) for name in data},
                one.settings[self.options.scale],
                repeat,
                self.libraries,
                self.files,
                self.trials / f"{experiment.id}-{number}",
                self.options.readers,
                say,
                space,
                self.options.ranks,
                again,
            )
            for point, records in PROBES[one.probe](context):
                outcome.records += labelled(records, dict(one.labels), point)
            return
        if space is None:
            return
        for name, given in product(one.data, one.labels_at(self.options.scale)):
            within = space if again is None else self._part(space, again, name, given)
            if within is None:
                continue
            path, dataset, labels = self._file(name, say)
            place = f"{experiment.id}-{number}-{name}{given.get('dataset', '').replace('/', '-')}"
            results = measure.run(
                path,
                given.get("dataset", dataset),
                within,
                repeat=repeat,
                seconds=(one.seconds[self.options.scale] or MOST_SECONDS) * now.of_all,
                trial_seconds=self.options.seconds,
                progress=say,
                save=self.trials / f"{place}.jsonl",
                # A part of the data would not be the paper's experiment.
                sample_nbytes=SAMPLE_NBYTES if self.target else sys.maxsize,
                scratch=str(self.files),
                check=one.check and self._known(name, say),
                # Counts do not depend on who is first.
                touch=one.repeat != 1,
            )
            for cell in results.cells:
                made = [measurement.to_record() for measurement in cell.measurements]
                ours = labels_of(given, cell.point, self.libraries)
                outcome.records += labelled(made, {**ours, **labels}, cell.point)
            outcome.mismatches += [*map(str, results.mismatches), *results.wrong]

    def _space(self, one: Run) -> tuple[Space | None, list[str]]:
        """Leave out readers that are not wanted, and put in the libraries that were found."""
        space, reasons = expand(one.spaces[self.options.scale], self.libraries)
        wanted = self.options.readers
        if space is None or not wanted:
            return space, reasons
        # What concerned only those that are left out goes with them.
        points = space.points((DEFAULT,))
        kept = [point for point in points if point["reader"] in wanted]
        if not kept:
            return None, [*reasons, f"none of {', '.join(wanted)} takes part"]
        if len(kept) < len(points):
            space = Space(design="list", trials=tuple(kept))
        return space, reasons

    def _part(
        self, space: Space, again: Undecided, name: str, given: Mapping[str, str]
    ) -> Space | None:
        """Keep of a space what is to be measured again of a dataset; None for nothing."""
        labels = self.study.data[name].labels
        kept = tuple(
            point
            for point in space.points((DEFAULT,))
            if again.concerns({**labels_of(dict(given), point, self.libraries), **labels, **point})
        )
        return Space(design="list", trials=kept) if kept else None

    def _touched(self, one: Run, again: Undecided | None) -> Sequence[str] | None:
        """Return the data of which a probe is to measure something; None for no probe at all."""
        if again is None:
            return one.data
        labels = {name: {**one.labels, **self.study.data[name].labels} for name in one.data}
        kept = [name for name in one.data if again.touches(labels[name])]
        return kept if kept or (not one.data and again.touches(one.labels)) else None

    def _file(self, name: str, say: Progress) -> tuple[str, str, dict[str, str]]:
        """Return a dataset's file, generated if it is not there, its path and its labels."""
        data = self.study.data[name]
        if self.target is not None:
            return self.target.file, self.target.dataset, dict(data.labels)
        path = self.files / f"{name}.h5"
        if not path.exists():
            say(Step(f"generating {name}"))
            generate(data, self.options.scale, path)
        return (str(path), dataset_of(data), dict(data.labels))

    def _known(self, name: str, say: Progress) -> str | bool:
        """Return a file with a dataset's elements by their formula; True to read a user's."""
        if self.target is not None:
            return True
        data = self.study.data[name]
        kept = ("shape", "seed", "resolution")
        options: dict[str, Any] = {
            k: v for k, v in data.options[self.options.scale].items() if k in kept
        }
        # However it is stored, a sample of one shape is one array.
        key = zlib.crc32(repr((data.sample, data.dataset, sorted(options.items()))).encode())
        path = self.files / f"known-{key:08x}"
        if not path.exists():
            say(Step(f"working out what {name} holds"))
            sample.write_elements(data.sample, path, dataset=data.dataset, **options)
        return str(path)


def _measured_often(results: StudyResults) -> int:
    """Count all repeats."""
    return sum(len(one.records) for one in results.outcomes.values())


def _chosen(study: Study, only: Sequence[str]) -> list[Experiment]:
    known = {experiment.id: experiment for experiment in study.experiments}
    for name in only:
        if name not in known:
            raise UsageError(
                f"{study.name} has no experiment '{printable(name)}'{nearest(name, known)}: "
                f"choose from {', '.join(known)}"
            )
    return [known[name] for name in known if not only or name in only]


def _check_readers(study: Study, experiments: Sequence[Experiment], options: Options) -> None:
    """Refuse unknown readers, or those that measure nothing that is requested."""
    for name in options.readers:
        check_reader(name)
    runs = [one for experiment in experiments for one in experiment.runs]
    points = [p for one in runs for p in one.spaces[options.scale].points((DEFAULT,))]
    known = dict.fromkeys(point["reader"] for point in points)
    probed = any(one.probe is not None for one in runs)
    if options.readers and not probed and not set(known) & set(options.readers):
        raise UsageError(
            f"{study.name} measures nothing of this with {', '.join(options.readers)}: choose "
            f"from {', '.join(known)}"
        )


def _full(folder: Folder, error: OSError) -> CannotWriteError:
    """Say what to do about a full disk."""
    reason = str(error) if isinstance(error, CannotWriteError) else error.strerror
    return CannotWriteError(
        f"{folder.name}: cannot be written to any more: {printable(str(reason))}; what was "
        "measured is kept: make room, and go on with --resume"
    )
