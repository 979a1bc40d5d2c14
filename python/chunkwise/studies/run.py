"""What happens when a study is run, experiment by experiment?

Data is generated, each run's space goes to `chunkwise.bench.run`, and what it gives is
collected.  Each trial is saved as it is done, so that a study that was stopped goes on
where it was.
"""

from __future__ import annotations

import os
import shutil
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

from chunkwise import bench, sample
from chunkwise.bench.run import MOST_SECONDS
from chunkwise.bench.schedule import Step
from chunkwise.bench.space import Space
from chunkwise.bench.target import Target
from chunkwise.errors import ChunkwiseError, UsageError
from chunkwise.grammar import format_size
from chunkwise.names import printable
from chunkwise.studies import own
from chunkwise.studies.libraries import Found, expand
from chunkwise.studies.libraries import find as find_libraries
from chunkwise.studies.probes import PROBES, Context
from chunkwise.studies.results import Outcome, StudyResults, labelled
from chunkwise.studies.study import Data, Experiment, Run, Scale, Study

RESULTS: Final = "results.json.gz"
# Generated files have this time of change, so that trials on them can be found again after
# they were generated anew: the same options make the same bytes.
_MTIME_S: Final = 1_000_000_000
# Of the user's dataset, what results say.
_TOLD: Final = ("file", "dataset", "shape", "dtype", "chunks", "filters")
Progress = Callable[[Step], None]


@dataclass(frozen=True)
class Options:
    """What is asked of a run.

    Attributes
    ----------
    scale : Scale
    out : Path
        A folder: trials, generated files while it runs, results.
    only : tuple of str
        Ids of experiments; empty for all.
    drivers : tuple of str
        Drivers that are measured; empty for all that the study names.
    libhdf5 : tuple of str
        Further libraries, as `chunkwise bench --libhdf5` takes them.
    repeat : int or None
        How often; None for the study's own number.
    resume : bool
        Whether trials of an earlier run in the same folder are used.
    file, dataset : str or None
        Measured in the place of the study's own data (`chunkwise.studies.own`).
    """

    scale: Scale
    out: Path
    only: tuple[str, ...] = ()
    drivers: tuple[str, ...] = ()
    libhdf5: tuple[str, ...] = ()
    repeat: int | None = None
    resume: bool = False
    file: str | None = None
    dataset: str | None = None


def run(study: Study, options: Options, progress: Progress | None = None) -> StudyResults:
    """Run a study, or some of its experiments.

    Results are in ``options.out``, also of a run that was interrupted: then without what was
    not measured.  Generated files are removed at the end.

    Raises
    ------
    UsageError
        An experiment that there is not, a folder with other results in it, too little
        room, or values that make no sense.
    ChunkwiseError
        As from `chunkwise.bench.run`.
    """
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
        self.repeat = options.repeat or study.repeat[options.scale]
        self.files, self.trials = options.out / "files", options.out / "trials"
        self.libraries: Mapping[str, Found] = {}

    def run(self) -> StudyResults:
        begun = time.monotonic()
        self._claim_folder()
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        results = StudyResults(self.study.name, self.options.scale, self.repeat, now)
        if self.target is not None:
            results.target = {name: getattr(self.target, name) for name in _TOLD}
            results.values = {axis: dict(texts) for axis, texts in self.values.items()}
        try:
            self.libraries = find_libraries(self.options.libhdf5)
            results.libraries = {name: str(one) for name, one in self.libraries.items()}
            for number, experiment in enumerate(self.experiments):
                outcome = results.outcomes[experiment.id] = Outcome()
                self._measure(experiment, outcome, f"{number + 1}/{len(self.experiments)}")
            results.complete = True
        finally:
            shutil.rmtree(self.files, ignore_errors=True)
            results.elapsed_s = time.monotonic() - begun
            results.save(self.options.out / RESULTS)
        return results

    def _claim_folder(self) -> None:
        """Make the folders, or refuse to mix results."""
        out = self.options.out
        if self.trials.exists() and not self.options.resume:
            raise UsageError(
                f"{printable(str(out))}: there are trials of an earlier run: go on with it "
                "(--resume), or name another folder (--out)"
            )
        try:
            for folder in (self.files, self.trials):
                folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(
                f"{printable(str(out))}: cannot be written to: {error.strerror}; name another "
                "folder (--out)"
            ) from None
        if self.target is not None:
            return  # bench looks for itself how much it needs
        needed = self.study.disk_nbytes[self.options.scale]
        free = shutil.disk_usage(out).free
        if free < needed:
            raise UsageError(
                f"{printable(str(out))}: {self.study.name} needs about {format_size(needed)}, "
                f"and {format_size(free)} are free; name another folder (--out)"
            )

    def _measure(self, experiment: Experiment, outcome: Outcome, place: str) -> None:
        begun = time.monotonic()

        def say(step: Step) -> None:
            self.progress(replace(step, text=f"{place} {experiment.title}: {step.text}"))

        try:
            for number, one in enumerate(experiment.runs):
                self._measure_run(experiment, number, one, outcome, say)
        finally:
            outcome.elapsed_s = time.monotonic() - begun

    def _measure_run(
        self, experiment: Experiment, number: int, one: Run, outcome: Outcome, say: Progress
    ) -> None:
        space, reasons = self._space(one)
        outcome.skipped += [f"{experiment.title}: {reason}" for reason in reasons]
        if one.probe is not None:
            context = Context(
                {name: self._file(name, say) for name in one.data},
                one.settings[self.options.scale],
                one.repeat or self.repeat,
                self.libraries,
                self.files,
                self.options.drivers,
                say,
            )
            for point, records in PROBES[one.probe](context):
                outcome.records += labelled(records, dict(one.labels), point)
            return
        if space is None:
            return
        for name in one.data:
            path, dataset, labels = self._file(name, say)
            try:
                results = bench.run(
                    path,
                    dataset,
                    space,
                    repeat=one.repeat or self.repeat,
                    seconds=one.seconds[self.options.scale] or MOST_SECONDS,
                    progress=say,
                    save=self.trials / f"{experiment.id}-{number}-{name}.jsonl",
                    scratch=str(self.files),
                    check=one.check and self._known(name, say),
                )
            except UsageError as wrong:
                raise UsageError(f"{self.study.name}, {experiment.id}, {name}: {wrong}") from None
            for cell in results.cells:
                made = [measurement.to_record() for measurement in cell.measurements]
                outcome.records += labelled(made, {**one.labels, **labels}, cell.point)
            outcome.mismatches += [*map(str, results.mismatches), *results.wrong]

    def _space(self, one: Run) -> tuple[Space | None, list[str]]:
        """Leave out drivers that are not wanted, and put in the libraries that were found."""
        space, reasons = expand(one.spaces[self.options.scale], self.libraries)
        wanted = self.options.drivers
        if space is None or not wanted:
            return space, reasons
        drivers = tuple(d for d in space.axes.get("driver", ()) if d in wanted)
        trials = tuple(t for t in space.trials if t.get("driver", wanted[0]) in wanted)
        if not (trials if space.trials else drivers):
            return None, [*reasons, f"none of {', '.join(wanted)} takes part"]
        axes = {**space.axes, "driver": drivers} if drivers else space.axes
        return replace(space, axes=axes, trials=trials), reasons

    def _file(self, name: str, say: Progress) -> tuple[str, str, dict[str, str]]:
        """Return a dataset's file, generated if it is not there, its path and its labels."""
        data = self.study.data[name]
        if self.target is not None:
            return self.target.file, self.target.dataset, dict(data.labels)
        path = self.files / f"{name}.h5"
        if not path.exists():
            say(Step(f"generating {name}"))
            _generate(data, self.options.scale, path)
        return (
            str(path),
            data.dataset or sample.SAMPLES[data.sample].datasets[0],
            dict(data.labels),
        )

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


def _generate(data: Data, scale: Scale, path: Path) -> None:
    options: dict[str, Any] = dict(data.options[scale])
    sample.write(data.sample, path, **options)
    os.utime(path, (_MTIME_S, _MTIME_S))


def _chosen(study: Study, only: Sequence[str]) -> list[Experiment]:
    known = {experiment.id: experiment for experiment in study.experiments}
    for name in only:
        if name not in known:
            raise UsageError(
                f"{study.name} has no experiment '{name}': choose from {', '.join(known)}"
            )
    return [known[name] for name in known if not only or name in only]


__all__ = ["RESULTS", "ChunkwiseError", "Options", "run"]
