"""Is a dataset's data as it was written?"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

import h5py
from h5py import h5d, h5s, h5t

from chunkwise import _native
from chunkwise._lib import library
from chunkwise.errors import ChunkwiseError
from chunkwise.files.causes import cause_of_values
from chunkwise.files.filters import is_available, lacking
from chunkwise.files.opening import is_plain
from chunkwise.files.references import dangling
from chunkwise.files.stored import read_box
from chunkwise.grammar import Shape
from chunkwise.grammar.boxes import Box, boxes, chunk_at
from chunkwise.inspection.collect import layout_of
from chunkwise.inspection.sources import sources, verdict_of_source
from chunkwise.names import HDF5_ERRORS, hdf5_reason
from chunkwise.verdicts import FileVerdict, worst_verdict
from chunkwise.verifying.records import MOST_DAMAGES, Damage, Findings, Note
from chunkwise.words import counted

Beat = Callable[[int], None]

# What libhdf5 reads at a time of data without chunks.
_BOX_NBYTES: Final = 32 << 20
# Chunks that libhdf5 reads one by one; a damaged header may name any number.
_MOST_READ: Final = 50_000_000


def check_data(dataset: h5d.DatasetID, path: str, label: str, beat: Beat) -> Findings:
    """Read all data of a dataset."""
    reading = _Reading(dataset, path, beat)
    reading.check(label)
    return reading.found


@dataclass
class _Reading:
    """Reads one dataset."""

    dataset: h5d.DatasetID
    path: str
    beat: Beat
    found: Findings = field(default_factory=lambda: Findings(most=MOST_DAMAGES))

    def check(self, label: str) -> None:
        dataset = self.dataset
        strange = unknown_text(dataset.get_type())
        if strange is not None:
            self._note(strange, FileVerdict.UNJUDGED)
        layout, _ = layout_of(dataset.get_create_plist())
        if layout in ("virtual", "external"):
            self._look_for_sources(layout)
            return
        if dataset.get_space().get_simple_extent_type() == h5s.NULL:
            return
        if layout == "contiguous" and dataset.get_storage_size() == 0:
            # Nothing was written: there is nothing to read, however many elements it has.
            return
        if layout == "compact" or dataset.shape == ():
            self._read_by_library([None])
            return
        try:
            examined = _native.examine_data(
                library(),
                dataset.id,
                label=label,
                most_flaws=MOST_DAMAGES,
                progress=_stored_bytes(self.beat, dataset),
            )
        except MemoryError as error:
            self._note(f"not checked: {error}", FileVerdict.UNJUDGED)
            return
        self._take(examined)
        if examined.unsound is not None:
            return
        if examined.elsewhere is not None or examined.undecoded is not None:
            self._decode_by_library(examined)
        elif examined.undecided:
            self._read_by_library(map(tuple, examined.undecided))

    def _note(self, reason: str, verdict: FileVerdict) -> None:
        """Add a note, once."""
        note = Note(self.path, reason, verdict)
        if note not in self.found.notes:
            self.found.notes.append(note)

    def _take(self, examined: _native.Examined) -> None:
        """Add what was found in the file's bytes."""
        found = self.found
        found.chunks += examined.chunks
        found.stored_nbytes += examined.stored_nbytes
        for kind, origin, address, nbytes, reason in examined.flaws:
            found.damages.append(
                Damage(kind, self.path, reason, tuple(origin), address, nbytes)  # type: ignore[arg-type]
            )
        found.damage_count += examined.flaw_count
        if examined.unsound is not None:
            found.add(Damage("index", self.path, examined.unsound))

    def _look_for_sources(self, layout: str) -> None:
        """Say which files that hold the data are missing."""
        kind = "source" if layout == "virtual" else "external file"
        listed = sources(self.dataset, self.dataset.get_create_plist())
        missing = [one for one in listed if one.missing is not None]
        # For a missing source HDF5 gives the fill value; a missing external file is data not seen.
        for one in missing[:10]:
            name = one.file if one.dataset is None else f"{one.file}:{one.dataset}"
            self._note(f"{kind} {name}: {one.missing}", verdict_of_source(one))
        if len(missing) > 10:
            said = f"{counted(len(missing) - 10, f'further {kind}')} missing"
            self._note(said, worst_verdict(map(verdict_of_source, missing[10:])))

    def _decode_by_library(self, examined: _native.Examined) -> None:
        """Let libhdf5 read and decode what is not decoded here."""
        dcpl = self.dataset.get_create_plist()
        codes = [dcpl.get_filter(i)[0] for i in range(dcpl.get_nfilters())]
        missing = [code for code in codes if not is_available(code)]
        if missing:
            said = f"not decoded: {'; '.join(map(lacking, missing))}"
            self._note(f"its chunks are where they should be, {said}", FileVerdict.UNJUDGED)
            return
        damaged = {tuple(origin) for _, origin, *_ in examined.flaws}
        if examined.elsewhere is not None:
            self.found.stored_nbytes += _stored_nbytes(self.dataset)
        origins = (at for at in self._origins() if at not in damaged)
        self._read_by_library(origins, counts=examined.elsewhere is not None)

    def _origins(self) -> Iterator[Shape | None]:
        """Give the origins of all written chunks; None for all of a dataset without chunks."""
        if self.dataset.get_create_plist().get_layout() != h5d.CHUNKED:
            yield None
            return
        yield from map(tuple, library().written_origins(self.dataset.id, _MOST_READ))

    def _read_by_library(self, origins: Iterable[Shape | None], *, counts: bool = False) -> None:
        """Read chunks, or all of a dataset (None), by libhdf5."""
        datatype = h5t.TypeID.copy(self.dataset.get_type())
        plain = is_plain(datatype)
        try:
            for origin in origins:
                for box in self._boxes(origin, datatype.get_size()):
                    try:
                        if plain:
                            read_box(self.dataset, datatype, box)
                        else:
                            self._read_objects(box)
                    except (*HDF5_ERRORS, MemoryError) as error:
                        self._take_error(error, box.start, origin)
                    self.beat(box.size * datatype.get_size())
                self.found.chunks += counts and origin is not None
        except ChunkwiseError as error:
            self.found.add(Damage("index", self.path, str(error)))

    def _boxes(self, origin: Shape | None, itemsize: int) -> Iterator[Box]:
        shape = tuple(self.dataset.shape)
        if origin is None:
            yield from boxes(shape, (1,) * len(shape), max(1, _BOX_NBYTES // itemsize))
        else:
            yield chunk_at(shape, self.dataset.get_create_plist().get_chunk(), origin)

    def _read_objects(self, box: Box) -> None:
        """Read elements of variable length, and follow references."""
        lost = dangling(h5py.Dataset(self.dataset)[box.slices], self.dataset)
        if lost:
            said = (
                f"{counted(lost, 'reference')} leading nowhere, from element {list(box.start)} on"
            )
            self._note(said, FileVerdict.LOOSE)

    def _take_error(self, error: BaseException, start: Shape, chunk: Shape | None) -> None:
        """Add a damage or a note for a box that libhdf5 cannot read."""
        if isinstance(error, MemoryError):
            self._note("not read: no memory for it", FileVerdict.UNJUDGED)
            return
        if is_unknown_type(error):
            self._note(f"not read: {hdf5_reason(error)}", FileVerdict.UNJUDGED)
            return
        cause = cause_of_values(error, self.dataset.get_create_plist())
        if cause.verdict is FileVerdict.DAMAGED:
            self.found.add(self._placed(hdf5_reason(error), start, chunk))
        else:
            self._note(f"not read: {cause}", cause.verdict)

    def _placed(self, reason: str, start: Shape, chunk: Shape | None) -> Damage:
        """Say where a chunk lies that cannot be read."""
        if chunk is None:
            return Damage("values", self.path, reason, start)
        try:
            info = self.dataset.get_chunk_info_by_coord(chunk)
        except HDF5_ERRORS:
            return Damage("values", self.path, reason, chunk)
        return Damage("values", self.path, reason, chunk, info.byte_offset, info.size)


def _stored_bytes(beat: Beat, dataset: h5d.DatasetID) -> Callable[[int, int, int], None]:
    """Turn bytes done so far into stored bytes since the last call."""
    known = 0
    whole = max(1, math.prod(dataset.shape) * dataset.get_type().get_size())
    ratio = min(1.0, _stored_nbytes(dataset) / whole)

    def add(done: int, _read: int, _written: int) -> None:
        nonlocal known
        now = int(done * ratio)
        if now > known:
            beat(now - known)
            known = now

    return add


def _stored_nbytes(dataset: h5d.DatasetID) -> int:
    from chunkwise.files.stored import stored_nbytes

    try:
        return stored_nbytes(dataset)
    except HDF5_ERRORS:
        return 0


def unknown_text(datatype: h5t.TypeID) -> str | None:
    """Say what is strange about text in a type; None for what is known."""
    # libhdf5 reads text of a character set that the format only reserves; h5py refuses it.
    if isinstance(datatype, h5t.TypeStringID):
        number = datatype.get_cset()
        if number in (h5t.CSET_ASCII, h5t.CSET_UTF8):
            return None
        return f"text of character set {number}, which HDF5 has not defined so far"
    inner: list[h5t.TypeID] = []
    if isinstance(datatype, h5t.TypeCompoundID):
        inner = [datatype.get_member_type(number) for number in range(datatype.get_nmembers())]
    elif isinstance(datatype, h5t.TypeArrayID | h5t.TypeVlenID):
        inner = [datatype.get_super()]
    return next(filter(None, map(unknown_text, inner)), None)


def is_unknown_type(error: BaseException) -> bool:
    """Return whether h5py has no type for a value, which says nothing of the file."""
    said = "No NumPy equivalent", "Unknown reference type"
    return isinstance(error, TypeError) and any(words in str(error) for words in said)
