"""How should a dataset be stored that does not exist yet, by the model alone?"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import h5py
import numpy as np
import numpy.typing as npt

from chunkwise.advice import calibration, goals, patterns, sampling
from chunkwise.advice.answer import Advice, FrontPoint, PatternAdvice
from chunkwise.errors import UsageError
from chunkwise.files.opening import find_dataset, open_h5
from chunkwise.grammar import format_shape, parse_shape
from chunkwise.measure.schedule import Step
from chunkwise.measure.target import look
from chunkwise.measure.variants import scratch_folder
from chunkwise.model.chunk_shape import default_chunk, shrunk, suited_chunk
from chunkwise.model.search import Problem, by_rule, search, worth_a_look
from chunkwise.model.seconds import Codec
from chunkwise.remedy.records import Create, Present, under_filters
from chunkwise.words import joined

# The name in lines to paste if none was given.
DATASET: Final = "data"
# This much data is generated if the user has shown none.
_MADE_NBYTES: Final = 8 << 20
_SMALL_NBYTES: Final = 1 << 16


def advise_new(
    shape: str | Sequence[int],
    dtype: str,
    access: Sequence[str] = (),
    *,
    like: str | os.PathLike[str] | None = None,
    dataset: str = DATASET,
    objective: str = "balanced",  # As for `chunkwise.advise`
    reader: str | None = None,
    budget_s: float = 60.0,
    calibrate: bool = False,
    scratch: str | None = None,
    progress: Callable[[Step], None] | None = None,
) -> Advice:
    """Find the chunks and filters for a dataset before there is a file."""
    begun = time.monotonic()
    extents, kind = _described(shape, dtype)
    itemsize = kind.itemsize
    goal = goals.read(objective, reader)
    where = f"a dataset of {format_shape(extents)}"
    requested = patterns.read(access, extents, itemsize, where)

    def say(text: str) -> None:
        if progress is not None:
            progress(Step(text))

    with scratch_folder(scratch) as folder:
        machine = calibration.machine(again=calibrate, say=say)
        usual = suited_chunk(
            extents, itemsize, None, [one.pattern for one in requested], None, goal.readers
        )
        pipelines = goals.pipelines(goal, None, itemsize)
        file, name = _source_of(like) if like is not None else (_made(folder, kind), DATASET)
        deadline = begun + budget_s / 2
        with open_h5(file) as source:
            known = find_dataset(source, name)
            if like is not None:
                _check_like(like, known, kind)
            shapes = _within(known.shape, usual, itemsize)
            samples = sampling.take(
                known, pipelines, shapes, machine, folder, deadline=deadline, say=say
            )
    if samples.constant:
        raise UsageError(f"--like {like}: all elements of the sample are equal")
    problem = Problem(
        shape=extents,
        itemsize=itemsize,
        patterns=tuple(one.pattern for one in requested),
        reader=goal.reader,
        reader_name=goal.reader_name,
        machine=machine,
        codecs={n: _for_rank(one, usual) for n, one in samples.codecs.items()},
        objective=goal.objective,
        usual=usual,
    )
    ratio = min(one.ratio(usual) for one in problem.codecs.values())
    stored = math.prod(extents) * itemsize * min(1.0, ratio)
    problem = replace(problem, storage=calibration.storage_of(stored, machine))
    # A planned dataset may be larger by as much as a compressed one may grow.
    problem = replace(problem, most_nbytes=goal.most_nbytes(stored, stated=bool(access)))
    say("comparing layouts by the model")
    found = search(problem)
    best = by_rule(found, problem)
    chunks = best.layout.chunks or extents
    names = joined([f"'{one.pattern.name}'" for one in requested])
    source_words = "what --like shows" if like is not None else (
        "made-up smooth data: give --like FILE for an answer about yours"
    )  # fmt: skip
    nothing = Present(shape=extents, itemsize=itemsize)
    (copy,) = under_filters("new.nc", dataset, best.layout.filters, nothing, chunks)
    return Advice(
        file="",
        dataset=dataset,
        shape=extents,
        itemsize=itemsize,
        reader=goal.title,
        objective=objective,
        present=None,
        best=best.layout,
        patterns=tuple(
            PatternAdvice(
                one.pattern.name, one.text, one.pattern.block, one.weight,
                one.pattern.writes, None, None, None, best.pattern_s[i] / one.pattern.reads,
                of_one_read=one.pattern.of_one_read,
            )
            for i, one in enumerate(requested)
        ),
        stated=bool(access),
        front=tuple(
            FrontPoint(o.layout, o.read_s, o.write_s, o.nbytes, False)
            for o in worth_a_look(found.front, problem)
        ),
        present_nbytes=None,
        best_nbytes=best.nbytes,
        leave=False,
        verified=False,
        reason=f"For {goal.title} and {names}, {best.layout} suits best. There is no file "
        f"yet: this is the model's word, not proved, from {source_words}.",
        remedies=(Create(copy), Create(copy, by_xarray=True)),
        looked_at=found.looked_at,
        elapsed_s=time.monotonic() - begun,
    )  # fmt: skip


def _made(folder: str, kind: np.dtype[np.generic]) -> str:
    """Write something smooth to a file."""
    path = str(Path(folder) / "made.h5")
    with h5py.File(path, "w") as file:
        file.create_dataset(DATASET, data=_smooth(_MADE_NBYTES // kind.itemsize, kind))
    return path


def _within(
    known: tuple[int, ...], usual: tuple[int, ...], itemsize: int
) -> list[tuple[int, ...]]:
    """Give shapes in which a dataset that is there can be tried."""
    if len(known) == len(usual):
        fits = tuple(min(n, c) for n, c in zip(known, usual, strict=True))
    else:
        fits = default_chunk(known, itemsize, None, limit_nbytes=math.prod(usual) * itemsize)
    return [fits, shrunk(fits, itemsize, _SMALL_NBYTES)]


def _for_rank(codec: Codec, usual: tuple[int, ...]) -> Codec:
    """Let what was tried in another rank stand for all shapes of this one."""
    if codec.ratios and len(codec.ratios[0][0]) != len(usual):
        mean = sum(ratio for _, ratio in codec.ratios) / len(codec.ratios)
        return replace(codec, ratios=(((), mean),))
    return codec


def _described(
    shape: str | Sequence[int], dtype: str
) -> tuple[tuple[int, ...], np.dtype[np.generic]]:
    """Read the shape and the type of a dataset that is not there yet."""
    extents = parse_shape(shape) if isinstance(shape, str) else tuple(map(int, shape))
    if not isinstance(extents, tuple) or not extents or min(extents) < 1:
        raise UsageError(
            f"--shape {shape}: write the extents in elements, each at least 1, as 8760x721x1440"
        )
    try:
        kind = np.dtype(dtype)
    except TypeError:
        raise UsageError(f"--type {dtype}: write a type as NumPy does: f4, i2, >f8, u1") from None
    if kind.kind not in "iufcb":
        raise UsageError(f"--type {dtype}: only numbers can be described before there is a file")
    return extents, kind


def _source_of(like: str | os.PathLike[str]) -> tuple[str, str]:
    """Return the file and the dataset that ``--like FILE[:DATASET]`` names."""
    text = os.fspath(like)
    path, colon, name = text.rpartition(":")
    target = look(path, name) if colon and not Path(text).exists() else look(text)
    return target.file, target.dataset


def _check_like(like: str | os.PathLike[str], known: h5py.Dataset, kind: np.dtype[Any]) -> None:
    """Raise UsageError if similar data has elements of another size."""
    if known.dtype.itemsize != kind.itemsize:
        raise UsageError(
            f"--like {os.fspath(like)}: '{known.name}' has elements of {known.dtype.itemsize} "
            f"bytes, and {kind.str} has {kind.itemsize}: name data of that type, as FILE:DATASET"
        )


def _smooth(number: int, kind: np.dtype[np.generic], rows: int = 64) -> npt.NDArray[Any]:
    """Make up data: a walk at random along rows, its last digits noise."""
    generator = np.random.default_rng(0)
    steps = generator.normal(size=(rows, -(-number // rows))).cumsum(axis=1)
    if kind.kind in "iub":
        steps = np.abs(steps).round() % 120
    return steps.round(2).astype(kind)
