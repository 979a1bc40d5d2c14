"""What is there to know about a file, and in which order is it found out?

Facts first, from metadata alone; then a sample of the data; then what reading costs;
findings last, since they rest on all of it.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Final

import h5py

from chunkwise.advise.readers import LIBRARIES, Reader, this_process
from chunkwise.beside import flush_beside
from chunkwise.inspect.collect import forget_filters, object_facts
from chunkwise.inspect.facts import FileFacts, ObjectFacts
from chunkwise.inspect.findings import find
from chunkwise.inspect.format import format_facts
from chunkwise.inspect.metadata import metadata_facts
from chunkwise.inspect.patterns import pattern_facts
from chunkwise.inspect.sampling import choose, take_sample
from chunkwise.objects import Address, Entry, walk
from chunkwise.opening import find_dataset, full_name
from chunkwise.unclosed import open_readable

# What sampling may take altogether: a person waits for it.
SAMPLING_S: Final = 1.5


def inspect(
    path: str | os.PathLike[str],
    dataset: str | None = None,
    *,
    readers: tuple[Reader, ...] | None = None,
    sample: bool = True,
    metadata: bool = True,
) -> FileFacts:
    """Collect the facts about a file, or about one dataset in it, and what is wrong.

    Parameters
    ----------
    path
        An HDF5 or netCDF-4 file.
    dataset
        The path of one dataset; None collects the whole file.
    readers
        Whom the file must serve well; None for every libhdf5 and netCDF-C, and the
        library of this process.
    sample
        Whether some chunks of the dataset, or of the file's largest ones, are read to
        measure how fast they decode and how well they compress.
    metadata
        Whether it is recorded what opening the file reads; not done for one dataset.

    Raises
    ------
    FileFormatError
        The file cannot be opened as HDF5.
    DatasetNotFoundError, NotADatasetError, CorruptDataError
        See `chunkwise.opening.find_dataset`.
    """
    readers = everyone() if readers is None else readers
    # A plugin may have been registered since the last call.
    forget_filters()
    flush_beside(path)
    # Without a cache, so that a chunk read twice for its speed is decoded twice.
    with open_readable(path, rdcc_nbytes=0) as file:
        entries = _entries(file, dataset)
        paths = _paths(entries, dataset)
        collected = [object_facts(file, entry, paths) for entry in entries]
        if sample:
            collected = _sampled(entries, collected)
        if dataset is not None or sample:
            collected = [_with_patterns(each, readers, dataset) for each in collected]
        facts = FileFacts(
            path=os.fspath(path),
            nbytes=Path(path).stat().st_size,
            hdf5_version=h5py.version.hdf5_version,
            h5py_version=h5py.version.version,
            file_format=format_facts(file, tuple(collected), path),
            metadata=None,
            objects=tuple(collected),
        )
    if metadata and dataset is None:
        facts = replace(facts, metadata=metadata_facts(path))
    return replace(facts, findings=find(facts, readers))


def everyone() -> tuple[Reader, ...]:
    """Return each reader that a file may meet, this process's own library last.

    It is left out where it has the defaults of one that is there.
    """
    here = this_process()
    defaults = {(each.cache_nbytes, each.nslots, each.w0) for each in LIBRARIES}
    own = () if (here.cache_nbytes, here.nslots, here.w0) in defaults else (here,)
    return LIBRARIES + own


def _entries(file: h5py.File, dataset: str | None) -> list[Entry]:
    if dataset is None:
        return list(walk(file))
    name = full_name(file, dataset)
    found = find_dataset(file, name)
    return [Entry("/" + name.strip("/"), 0, "dataset", found.id)]


def _paths(entries: list[Entry], dataset: str | None) -> dict[Address, str] | None:
    """Give the path of each dataset of a file by its address; None for one dataset."""
    if dataset is not None:
        return None
    return {
        each.address: each.path
        for each in entries
        if each.kind == "dataset" and each.address is not None
    }


def _sampled(entries: list[Entry], collected: list[ObjectFacts]) -> list[ObjectFacts]:
    """Read samples of the datasets that matter most, as far as time allows."""
    deadline = time.monotonic() + SAMPLING_S
    chosen = {each.path for each in choose(collected)}
    sampled = []
    for entry, each in zip(entries, collected, strict=True):
        if each.dataset is not None and each.path in chosen and time.monotonic() < deadline:
            found = take_sample(entry.identifier, each.dataset, deadline=deadline)
            each = replace(each, dataset=replace(each.dataset, sample=found))
        sampled.append(each)
    return sampled


def _with_patterns(
    each: ObjectFacts, readers: tuple[Reader, ...], dataset: str | None
) -> ObjectFacts:
    """Add the access patterns of the dataset asked for, or of one that was sampled."""
    facts = each.dataset
    if facts is None or (dataset is None and facts.sample is None):
        return each
    return replace(each, dataset=replace(facts, patterns=pattern_facts(facts, readers)))
