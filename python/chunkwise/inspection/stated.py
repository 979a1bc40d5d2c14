"""Which datasets of a file do the patterns that a user states read, and how?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import h5py

from chunkwise.errors import SelectionError
from chunkwise.files.around import Surroundings
from chunkwise.inspection.facts import DatasetFacts, FileFacts, ObjectFacts
from chunkwise.model.traffic import Pattern
from chunkwise.names import printable
from chunkwise.patterns import of_stored, told


def of_each(
    access: Sequence[str],
    file: h5py.File,
    objects: Iterable[ObjectFacts],
    coordinates: Mapping[str, str],
) -> dict[str, tuple[Pattern, ...]]:
    """Read the patterns for each dataset that they fit."""
    found: dict[str, tuple[Pattern, ...]] = {}
    reasons: list[SelectionError] = []
    for one in objects:
        dataset = one.dataset
        if dataset is None or one.path in coordinates or not can_be_chunked(dataset):
            continue
        assert dataset.shape is not None
        try:
            found[one.path] = tuple(
                of_stored(
                    access,
                    dataset.shape,
                    dataset.itemsize,
                    dataset.maxshape,
                    f"'{printable(one.path)}'",
                    Surroundings(file, one.path),
                )
            )
        except SelectionError as wrong:
            reasons.append(wrong)
    if reasons and not found:
        raise reasons[0]
    return found


def taken_for(facts: FileFacts) -> tuple[str, ...]:
    """Say what each stated pattern was taken for, once for all datasets; nothing without any."""
    datasets = ((one.path, one.dataset) for one in facts.objects if one.dataset is not None)
    return told((path, one.logical_nbytes or 0, one.taken_for) for path, one in datasets)


def can_be_chunked(dataset: DatasetFacts) -> bool:
    """Whether a dataset has elements of its own, and HDF5 tells how they lie."""
    if not dataset.shape or 0 in dataset.shape or dataset.variable_length:
        return False
    return dataset.layout in ("chunked", "contiguous") and not dataset.unlisted
