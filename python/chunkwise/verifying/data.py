"""Is a dataset's data as it was written?

Stored chunks are examined in the file's bytes, on all threads.  libhdf5 reads the rest, chunk by
chunk: data stored in another way, chunks with other filters, and data on the file's heap.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import h5py
from h5py import h5d, h5s, h5t

from chunkwise import _native
from chunkwise._lib import library
from chunkwise.errors import ChunkwiseError
from chunkwise.files.boxes import Box, boxes, read_box
from chunkwise.files.causes import cause_of_values
from chunkwise.files.filters import is_available, lacking
from chunkwise.files.opening import is_plain
from chunkwise.inspection.collect import layout_of
from chunkwise.inspection.sources import sources, verdict_of_source
from chunkwise.names import HDF5_ERRORS, hdf5_reason
from chunkwise.verdicts import Verdict, worst_verdict
from chunkwise.verifying.records import MOST_DAMAGES, Damage, Note
from chunkwise.verifying.references import Targets
from chunkwise.words import counted

Beat = Callable[[int], None]

# What libhdf5 reads at a time of data without chunks.
_BOX_NBYTES: Final = 32 << 20
# Chunks that libhdf5 reads one by one; a damaged header may tell of any number.
_MOST_READ: Final = 50_000_000


@dataclass
class DataFound:
    """What was found of one dataset."""

    path: str
    targets: Targets  # What its references may lead to
    # At most `MOST_DAMAGES`, and how many there are.
    damages: list[Damage] = field(default_factory=list)
    damage_count: int = 0
    notes: list[Note] = field(default_factory=list)  # What a user should know
    chunks: int = 0  # Chunks that were read
    stored_nbytes: int = 0  # Bytes that were read

    def add(self, damage: Damage) -> None:
        """Add one damage."""
        self.damage_count += 1
        if len(self.damages) < MOST_DAMAGES:
            self.damages.append(damage)

    def note(self, reason: str, verdict: Verdict) -> None:
        """Add a note, once."""
        note = Note(self.path, reason, verdict)
        if note not in self.notes:
            self.notes.append(note)


def check_data(
    dataset: h5d.DatasetID, path: str, label: str, targets: Targets, beat: Beat
) -> DataFound:
    """Read all data of a dataset."""
    found = DataFound(path, targets)
    layout, _ = layout_of(dataset.get_create_plist())
    if layout in ("virtual", "external"):
        _look_for_sources(dataset, found, layout)
        return found
    if dataset.get_space().get_simple_extent_type() == h5s.NULL:
        return found
    if layout == "contiguous" and dataset.get_storage_size() == 0:
        # Nothing was written: there is nothing to read, however many elements it has.
        return found
    if layout == "compact" or dataset.shape == ():
        _read_by_library(dataset, found, [None], beat)
        return found
    try:
        examined = _native.examine_data(
            library(),
            dataset.id,
            label=label,
            most_flaws=MOST_DAMAGES,
            progress=_telling(beat, dataset),
        )
    except MemoryError as error:
        found.note(f"not checked: {error}", Verdict.UNJUDGED)
        return found
    _take(examined, found)
    if examined.unsound is not None:
        return found
    if examined.elsewhere is not None or examined.undecoded is not None:
        _decode_by_library(dataset, found, examined, beat)
    elif examined.undecided:
        _read_by_library(dataset, found, map(tuple, examined.undecided), beat)
    return found


def _telling(beat: Beat, dataset: h5d.DatasetID) -> Callable[[int, int, int], None]:
    """Turn bytes done so far into stored bytes since the last time."""
    told = 0
    whole = max(1, math.prod(dataset.shape) * dataset.get_type().get_size())
    ratio = min(1.0, _stored_nbytes(dataset) / whole)

    def tell(done: int, _read: int, _written: int) -> None:
        nonlocal told
        now = int(done * ratio)
        if now > told:
            beat(now - told)
            told = now

    return tell


def _stored_nbytes(dataset: h5d.DatasetID) -> int:
    from chunkwise.files.stored import stored_nbytes

    try:
        return stored_nbytes(dataset)
    except HDF5_ERRORS:
        return 0


def _take(examined: _native.Examined, found: DataFound) -> None:
    """Add what was found in the file's bytes."""
    found.chunks += examined.chunks
    found.stored_nbytes += examined.stored_nbytes
    for kind, origin, address, nbytes, reason in examined.flaws:
        found.damages.append(
            Damage(kind, found.path, reason, tuple(origin), address, nbytes)  # type: ignore[arg-type]
        )
    found.damage_count += examined.flaw_count
    if examined.unsound is not None:
        found.add(Damage("index", found.path, examined.unsound))


def _look_for_sources(dataset: h5d.DatasetID, found: DataFound, layout: str) -> None:
    """Say which files that hold the data are missing."""
    kind = "source" if layout == "virtual" else "external file"
    listed = sources(dataset, dataset.get_create_plist())
    missing = [one for one in listed if one.missing is not None]
    # For a missing source HDF5 gives the fill value; a missing external file is data not seen.
    for one in missing[:10]:
        name = one.file if one.dataset is None else f"{one.file}:{one.dataset}"
        found.note(f"{kind} {name}: {one.missing}", verdict_of_source(one))
    if len(missing) > 10:
        said = f"{counted(len(missing) - 10, f'further {kind}')} missing"
        found.note(said, worst_verdict(map(verdict_of_source, missing[10:])))


def _all(dataset: h5d.DatasetID) -> Iterator[tuple[int, ...] | None]:
    """Give the origins of all written chunks; None for all of a dataset without chunks."""
    if dataset.get_create_plist().get_layout() != h5d.CHUNKED:
        yield None
        return
    yield from map(tuple, library().written_origins(dataset.id, _MOST_READ))


def _decode_by_library(
    dataset: h5d.DatasetID, found: DataFound, examined: _native.Examined, beat: Beat
) -> None:
    """Let libhdf5 read and decode what is not decoded here."""
    dcpl = dataset.get_create_plist()
    codes = [dcpl.get_filter(i)[0] for i in range(dcpl.get_nfilters())]
    missing = [code for code in codes if not is_available(code)]
    if missing:
        said = "; ".join(map(lacking, missing))
        found.note(f"its chunks are where they should be, not decoded: {said}", Verdict.UNJUDGED)
        return
    damaged = {tuple(origin) for _, origin, *_ in examined.flaws}
    _read_by_library(
        dataset,
        found,
        (at for at in _all(dataset) if at not in damaged),
        beat,
        counted_here=examined.elsewhere is not None,
    )


def _read_by_library(
    dataset: h5d.DatasetID,
    found: DataFound,
    origins: Iterator[tuple[int, ...] | None] | map[tuple[int, ...]] | list[None],
    beat: Beat,
    *,
    counted_here: bool = False,
) -> None:
    """Read chunks, or all of a dataset (None), by libhdf5."""
    datatype = h5t.TypeID.copy(dataset.get_type())
    plain = is_plain(datatype)
    try:
        for origin in origins:
            for box in _boxes(dataset, origin, datatype.get_size()):
                nbytes = math.prod(box[1]) * datatype.get_size()
                try:
                    _read_box(dataset, datatype, box, found, plain=plain)
                except (*HDF5_ERRORS, MemoryError) as error:
                    _take_error(error, dataset, box[0], found, chunk=origin)
                beat(nbytes)
            found.chunks += counted_here and origin is not None
    except ChunkwiseError as error:
        found.add(Damage("index", found.path, str(error)))


def _boxes(dataset: h5d.DatasetID, origin: tuple[int, ...] | None, itemsize: int) -> Iterator[Box]:
    shape = tuple(dataset.shape)
    if origin is None:
        most = max(1, _BOX_NBYTES // itemsize)
        yield from boxes(shape, (1,) * len(shape), most)
        return
    chunk = dataset.get_create_plist().get_chunk()
    yield origin, tuple(min(c, n - at) for c, n, at in zip(chunk, shape, origin, strict=True))


def _read_box(
    dataset: h5d.DatasetID, datatype: Any, box: Box, found: DataFound, *, plain: bool
) -> None:
    start, count = box
    if plain:
        read_box(dataset, datatype, start, count)
        return
    part = tuple(slice(s, s + n) for s, n in zip(start, count, strict=True))
    lost = found.targets.lost(h5py.Dataset(dataset)[part])
    if lost:
        said = f"{counted(lost, 'reference')} leading nowhere, from element {list(start)} on"
        found.note(said, Verdict.LOOSE)


def _take_error(
    error: BaseException,
    dataset: h5d.DatasetID,
    start: tuple[int, ...],
    found: DataFound,
    *,
    chunk: tuple[int, ...] | None,
) -> None:
    """Add what it means that libhdf5 cannot read a box."""
    if isinstance(error, MemoryError):
        found.note("not read: no memory for it", Verdict.UNJUDGED)
        return
    if is_unknown_type(error):
        found.note(f"not read: {hdf5_reason(error)}", Verdict.UNJUDGED)
        return
    cause = cause_of_values(error, dataset.get_create_plist())
    if cause.verdict is Verdict.DAMAGED:
        found.add(_placed(dataset, found.path, hdf5_reason(error), chunk, start))
    else:
        found.note(f"not read: {cause}", cause.verdict)


def is_unknown_type(error: BaseException) -> bool:
    """Tell whether h5py has no type for a value, which says nothing of the file."""
    said = "No NumPy equivalent", "Unknown reference type"
    return isinstance(error, TypeError) and any(words in str(error) for words in said)


def _placed(
    dataset: h5d.DatasetID,
    path: str,
    reason: str,
    chunk: tuple[int, ...] | None,
    start: tuple[int, ...],
) -> Damage:
    """Say where a chunk lies that cannot be read."""
    if chunk is None:
        return Damage("values", path, reason, start)
    try:
        info = dataset.get_chunk_info_by_coord(chunk)
    except HDF5_ERRORS:
        return Damage("values", path, reason, chunk)
    return Damage("values", path, reason, chunk, info.byte_offset, info.size)
