"""How does a study answer its questions about a user's dataset?

A table says what replaces each value that means something only on the study's own data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final

from chunkwise.errors import UsageError
from chunkwise.grammar import format_shape, format_size
from chunkwise.measure.target import Target, look
from chunkwise.model.chunk_shape import shrunk
from chunkwise.model.geometry import Walk, line
from chunkwise_lab.studies.results import StudyResults
from chunkwise_lab.studies.study import Experiment, Study

# By axis: a value of the study's, and what stands in its place.
Values = Mapping[str, Mapping[str, str]]
# libhdf5's default chunk cache before 2.0: readers that set nothing may have no more.
_OLD_DEFAULT_NBYTES: Final = 1 << 20
_MOST_CACHE_NBYTES: Final = 512 << 20


def values_for(study: Study, file: str, dataset: str | None) -> tuple[Target, Values]:
    """Look at a user's dataset, and work out what is measured on it."""
    if study.own is None:
        raise UsageError(
            f"{study.name} measures what it generates, as its settings mean nothing on other "
            "data: leave --file out, or use `chunkwise bench` on your file"
        )
    target = look(file, dataset)
    _refuse(target)
    found = {
        axis: {ours: _value(theirs, target) for ours, theirs in texts.items()}
        for axis, texts in study.own.values.items()
    }
    return target, found


def adapted(study: Study, values: Values) -> Study:
    """Put a user's values in the place of the study's."""
    data = study.own.data if study.own else ""
    experiments = (_experiment(one, data, values) for one in study.experiments)
    return replace(
        study,
        experiments=tuple(one for one in experiments if one.runs),
        # Bench looks for itself what copies of the user's data need.
        disk_nbytes=dict.fromkeys(study.disk_nbytes, 0),
    )


def study_of(study: Study, results: StudyResults) -> Study:
    """Return the study that results are of: as it is, or as put to the user's dataset."""
    return study if results.target is None else adapted(study, results.values)


def _experiment(one: Experiment, data: str, values: Values) -> Experiment:
    runs = tuple(run for run in one.runs if run.own and run.data == (data,))
    found: Experiment = _put(replace(one, runs=runs, published=(), note=""), values)
    return found


def _put(one: Any, values: Values, axis: str = "") -> Any:
    """Translate each value of an axis, wherever it stands; what no table has stays."""
    if isinstance(one, str):
        return values.get(axis, {}).get(one, one)
    if isinstance(one, tuple):
        return tuple(_put(each, values, axis) for each in one)
    if isinstance(one, Mapping):
        # These are of the axis that a claim names.
        of_axis = {"value", "standard", "against"} if "axis" in one else set()
        return {
            name: _put(each, values, str(one["axis"]) if name in of_axis else name)
            for name, each in one.items()
        }
    if is_dataclass(one) and not isinstance(one, type):
        found = {field.name: getattr(one, field.name) for field in fields(one)}
        return replace(one, **{name: _put(each, values, name) for name, each in found.items()})
    return one


def _refuse(target: Target) -> None:
    """Raise UsageError if a chunk cache makes no difference to reading row by row."""
    if target.chunks is None:
        raise UsageError(
            f"{target.where} is {target.layout}, not chunked: it has no chunk cache and no "
            "filters; name a chunked dataset (--dataset), or make one with chunkwise repack "
            "--chunk auto"
        )
    if len(target.shape) < 2:
        raise UsageError(
            f"{target.where} has one dimension: a row is all of it, and there is nothing to be "
            "read in another order; name a dataset of two or more"
        )
    walk = _rows(target)
    if walk.decodes_per_chunk(0) == 1:
        raise UsageError(
            f"{target.where}: no two rows lie in the same chunk "
            f"({format_shape(target.chunks)}), so that no cache makes a difference"
        )


def _rows(target: Target) -> Walk:
    """Return the walk along the last dimension."""
    row = line(target.shape, len(target.shape) - 1)
    return Walk(target.shape, row, _chunk(target))


def _chunk(target: Target) -> tuple[int, ...]:
    """Return a chunk's shape, as far as the dataset reaches: what one read can ask for."""
    return tuple(map(min, target.chunks or target.shape, target.shape))


def _value(text: str, target: Target) -> str:
    if not text.startswith("@"):
        return text
    return PLACEHOLDERS[text](target)


def _row_chunks_nbytes(target: Target) -> int:
    return _rows(target).chunks_per_operation * target.chunk_nbytes


def _small_nbytes(target: Target) -> int:
    return min(target.chunk_nbytes // 2, _OLD_DEFAULT_NBYTES)


def _large_nbytes(target: Target) -> int:
    """Return what keeps the walk by rows from decoding any chunk twice, at most 512 MiB."""
    chunks = max(2, _rows(target).chunks_to_cache())
    return max(_row_chunks_nbytes(target), min(chunks * target.chunk_nbytes, _MOST_CACHE_NBYTES))


def _small_chunk(target: Target) -> str:
    """Cut the chunk, the slowest dimension first, until a row's chunks fit the small cache."""
    *slower, last = target.chunks or target.shape
    row_nbytes = -(-target.shape[-1] // last) * last * target.itemsize
    side = shrunk(slower, row_nbytes, _small_nbytes(target))
    if math.prod(side) * row_nbytes > _small_nbytes(target):
        raise UsageError(
            f"{target.where}: the chunks of one row take {format_size(row_nbytes)} and more, "
            "whatever their shape, so that smaller chunks cannot fit a small cache; use "
            "`chunkwise bench`"
        )
    return format_shape((*side, last))


# What a study's files may say instead of a value; see `load`.
PLACEHOLDERS: Final[Mapping[str, Callable[[Target], str]]] = {
    "@row": lambda target: f"row={format_shape(_rows(target).block)}",
    "@whole-chunk": lambda target: f"chunk={format_shape(_chunk(target))}",
    "@small-chunk": _small_chunk,
    "@small-cache": lambda target: str(_small_nbytes(target)),
    "@row-chunks-1": lambda target: str(_row_chunks_nbytes(target) - 1),
    "@row-chunks": lambda target: str(_row_chunks_nbytes(target)),
    "@large-cache": lambda target: str(_large_nbytes(target)),
    "@filters": lambda target: "deflate:6" if target.filters == "none" else "stored",
}
