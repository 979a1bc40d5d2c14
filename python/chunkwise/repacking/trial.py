"""Can HDF5 make such a dataset in a file in memory, and which values does it give the filters?"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

import h5py
import numpy as np
from h5py import h5d, h5g, h5p, h5s, h5t, h5z

from chunkwise.files.stored import read_fill
from chunkwise.grammar import Pipeline, Shape, format_shape
from chunkwise.names import HDF5_ERRORS, hdf5_reason
from chunkwise.repacking.facts import SourceDataset

StoredFilters: TypeAlias = tuple[tuple[int, int, tuple[int, ...]], ...]

# Numbers below are HDF5's own filters.
_FIRST_PLUGIN: Final = 256


@contextmanager
def scratch() -> Iterator[h5py.File]:
    """Open a file in memory that is never written anywhere."""
    name = f"chunkwise-{secrets.token_hex(8)}"
    with h5py.File(name, "w", driver="core", backing_store=False, libver="latest") as file:
        yield file


def stored_filters(dcpl: Any) -> StoredFilters:
    """Give number, flags and values of each filter."""
    filters = (dcpl.get_filter(i) for i in range(dcpl.get_nfilters()))
    return tuple((code, flags, tuple(values)) for code, flags, values, _ in filters)


def has_plugins(dcpl: Any) -> bool:
    """Return whether a list has filters that are not HDF5's own."""
    return any(code >= _FIRST_PLUGIN for code, _, _ in stored_filters(dcpl))


def creation_list(source: SourceDataset, chunk: Shape | None, pipeline: Pipeline) -> Any:
    """Make the property list from which the target's dataset is made."""
    # Fill value, times, attribute order and all else stay as in the source.
    stored = source.identifier.get_create_plist()
    made = _without_files(source, stored) if source.layout == "external" else stored.copy()
    if h5g.get_objinfo(source.identifier).mtime == 0:
        # Headers of the first version do not say so in their creation properties.
        made.set_obj_track_times(False)
    if made.get_nfilters():
        made.remove_filter(h5z.FILTER_ALL)
    if chunk is None:
        made.set_layout(h5d.CONTIGUOUS)
        made.set_alloc_time(h5d.ALLOC_TIME_LATE)
        return made
    if source.layout != "chunked":
        made.set_layout(h5d.CHUNKED)
        made.set_alloc_time(h5d.ALLOC_TIME_INCR)
    made.set_chunk(chunk)
    pipeline.apply(made)
    if pipeline == source.pipeline:
        _set_flags(made, [flag for _, flag, _ in stored_filters(stored)])
    return made


def refusal(
    file: h5py.File, source: SourceDataset, chunk: Shape | None, dcpl: Any
) -> tuple[str | None, StoredFilters]:
    """Make the dataset in a scratch file."""
    if chunk is None:
        return None, ()
    flags = [one[1] for one in stored_filters(dcpl)]
    # Nothing should be allocated, for any allocation time of the target.
    dcpl = dcpl.copy()
    dcpl.set_alloc_time(h5d.ALLOC_TIME_INCR)
    if chunk != source.chunk or Pipeline.from_dcpl(dcpl) != source.pipeline:
        # HDF5 does not say that an optional filter cannot take a type.
        _set_flags(dcpl, [h5z.FLAG_MANDATORY] * len(flags))
    shape = source.shape or ()
    limits = tuple(h5s.UNLIMITED if n is None else n for n in source.maxshape)
    space = h5s.create_simple(shape, limits)
    try:
        datatype = h5t.TypeID.copy(source.identifier.get_type())
        made = h5d.create(file.id, None, datatype, space, dcpl)
    except HDF5_ERRORS as error:
        how = f"chunk {format_shape(chunk)}, filters {Pipeline.from_dcpl(dcpl)}"
        return f"HDF5 cannot store its type with {how}: {hdf5_reason(error)}", ()
    filters = stored_filters(made.get_create_plist())
    pairs = zip(filters, flags, strict=True)
    return None, tuple((code, flag, values) for (code, _, values), flag in pairs)


def _without_files(source: SourceDataset, stored: Any) -> Any:
    """Copy a list without its external files, which no call of HDF5's removes."""
    made = h5p.create(h5p.DATASET_CREATE)
    made.set_fill_time(stored.get_fill_time())
    made.set_obj_track_times(stored.get_obj_track_times())
    made.set_attr_phase_change(*stored.get_attr_phase_change())
    made.set_attr_creation_order(stored.get_attr_creation_order())
    if stored.fill_value_defined() == h5d.FILL_VALUE_USER_DEFINED:
        fill = np.zeros((), h5py.Dataset(source.identifier).dtype)
        read_fill(stored, source.identifier.get_type(), fill)
        made.set_fill_value(fill)
    return made


def _set_flags(made: Any, flags: Sequence[int]) -> None:
    """Give each filter of a list its flags: mandatory, or optional."""
    filters = stored_filters(made)
    if [flag for _, flag, _ in filters] == list(flags):
        return
    made.remove_filter(h5z.FILTER_ALL)
    for (code, _, values), flag in zip(filters, flags, strict=True):
        made.set_filter(code, flag, values)
