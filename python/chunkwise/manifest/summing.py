"""What are the checksums of all values of a file, of its datasets and its attributes?"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any, Final

import h5py
import numpy as np
import numpy.typing as npt
from h5py import h5a, h5d, h5s, h5t

from chunkwise._native import thread_count
from chunkwise.dataset import Dataset
from chunkwise.errors import CannotJudgeError, ChunkwiseError, reason_of
from chunkwise.file import wrap
from chunkwise.files.leading import External
from chunkwise.files.objects import Entry, attribute_names, walk
from chunkwise.files.opening import is_plain
from chunkwise.files.references import Paths
from chunkwise.files.stored import read_attribute, read_box, written_boxes
from chunkwise.grammar import Shape, format_size
from chunkwise.grammar.boxes import Box
from chunkwise.manifest.canonical import canonical, element_nbytes, is_exact, type_text
from chunkwise.manifest.manifest import FileManifest, Known
from chunkwise.manifest.tiles import Tiles, boxes
from chunkwise.names import HDF5_ERRORS, decode_name
from chunkwise.words import counted

Beat = Callable[[int], None]

# Values that are read at a time.
_BOX_NBYTES: Final = 256 << 20
# So few are read, written or not.
_FEW: Final = 4
# The most whose checksums are put together though nothing was written in nearly all of them.
_MOST: Final = 1 << 24
# No file holds more values in its bytes (deflate makes 1,032 of one), except in small files.
_VALUES_OF_A_BYTE: Final = 2_000
_SMALL_NBYTES: Final = 1 << 30
# Of values whose files nobody could find beforehand.
_UNKNOWN_NBYTES: Final = 64 << 30


def sum_values(
    file: h5py.File,
    beat: Beat = lambda _: None,  # Called with the bytes summed since its last call
    unread: list[tuple[str, str]] | None = None,  # Gets paths, and why their values are not summed
    external: External = "folder",
) -> FileManifest:
    """Sum all values of a file."""
    entries = list(walk(file))
    with ThreadPoolExecutor(thread_count()) as pool:
        unread = [] if unread is None else unread
        summing = _Summing(Paths(entries), pool, beat, unread, external)
        return {entry.path: summing.of(entry) for entry in entries}


@dataclass(frozen=True)
class _Summing:
    """Sums the values of one file."""

    paths: Paths
    pool: ThreadPoolExecutor
    beat: Beat
    unread: list[tuple[str, str]]
    external: External

    def of(self, entry: Entry) -> Known:
        """Sum the values of one object."""
        known: Known = {"kind": entry.kind}
        if entry.target is not None:
            known["target"] = entry.target
        if entry.reason is not None:
            raise OSError(f"{entry.path}: {entry.reason}")
        identifier = entry.identifier
        if identifier is None:
            return known
        if isinstance(identifier, h5t.TypeID):
            known["type"] = type_text(identifier)
        elif isinstance(identifier, h5d.DatasetID):
            known |= self._values(entry.path, identifier, partial(self._dataset, identifier))
        attributes = known["attributes"] = {}
        for raw in sorted(attribute_names(identifier)):
            attribute, name = h5a.open(identifier, raw), decode_name(raw)
            read = partial(self._attribute, identifier, raw, attribute)
            attributes[name] = self._values(f"{entry.path}@{name}", attribute, read)
        return known

    def _values(self, path: str, holder: Any, read: Callable[[Shape], str]) -> Known:
        """Say the type and shape of values, and sum them."""
        space, datatype = holder.get_space(), holder.get_type()
        known: Known = {"type": type_text(datatype), "shape": None}
        if space.get_simple_extent_type() == h5s.NULL:
            return {**known, "sha256": hashlib.sha256(b"").hexdigest()}
        shape = tuple(space.get_simple_extent_dims())
        known["shape"] = list(shape)
        try:
            return {**known, "sha256": read(shape)}
        except (ChunkwiseError, *HDF5_ERRORS) as error:
            said = f"its values are not in the manifest: {reason_of(error)}"
            self.unread.append((path, said))
            return {**known, "sha256": None}

    def _dataset(self, identifier: h5d.DatasetID, shape: Shape) -> str:
        dcpl = identifier.get_create_plist()
        chunk = dcpl.get_chunk() if dcpl.get_layout() == h5d.CHUNKED else (1,) * len(shape)
        datatype = identifier.get_type()
        dtype = _exact_type(datatype)
        dataset = wrap(h5py.Dataset(identifier), external=self.external)
        if dtype is None:
            dataset._check_bounds()
            return self._as_stored(dataset, h5t.TypeID.copy(datatype), shape, chunk)
        tiles = Tiles(
            shape, element_nbytes(dtype), partial(canonical, paths=self.paths), self.pool
        )
        return self._tiled(
            dataset, tiles, chunk, lambda box: np.asarray(dataset[box.slices], dtype)
        )

    def _as_stored(self, dataset: Dataset, datatype: Any, shape: Shape, chunk: Shape) -> str:
        """Sum values of a type that NumPy lacks."""
        nbytes = datatype.get_size()
        tiles = Tiles(shape, nbytes, lambda part: part.tobytes(), self.pool)

        def read(box: Box) -> Any:
            return read_box(dataset.id, datatype, box).view(f"V{nbytes}").reshape(box.shape)

        return self._tiled(dataset, tiles, chunk, read)

    def _tiled(
        self, dataset: Dataset, tiles: Tiles, chunk: Shape, read: Callable[[Box], Any]
    ) -> str:
        """Sum the values of a dataset, tile by tile."""
        written = written_tiles(dataset, tiles, chunk)
        parts = (
            boxes(dataset.shape, tiles.tile, chunk, tiles.element_nbytes, _BOX_NBYTES)
            if written is None
            else map(tiles.box, written.tolist())
        )
        for box in parts:
            values = read(box)
            tiles.add(box, values)
            self.beat(values.nbytes)
        return tiles.hexdigest(None if written is None else read)

    def _attribute(self, owner: Any, name: bytes, attribute: Any, shape: Shape) -> str:
        dtype = _exact_type(attribute.get_type())
        if dtype is None:
            return hashlib.sha256(read_attribute(attribute)).hexdigest()
        made = np.zeros(shape, dtype)
        if dtype.hasobject:
            given = h5py.AttributeManager(SimpleNamespace(id=owner))[name]
            if shape == ():
                made[()] = given
            else:
                made = np.asarray(given, dtype)
        elif made.size:
            attribute.read(made, mtype=h5t.py_create(dtype))
        return hashlib.sha256(canonical(made, self.paths)).hexdigest()


def _exact_type(datatype: Any) -> np.dtype[Any] | None:
    """Give NumPy's type; None if it has none that is the same, bit for bit."""
    try:
        dtype: np.dtype[Any] = datatype.dtype
    except (TypeError, ValueError):
        if is_plain(datatype):
            return None
        raise
    # h5py does not read opaque values that have a tag.
    stored = is_plain(datatype) and datatype.detect_class(h5t.OPAQUE)
    return None if stored or not (dtype.hasobject or is_exact(dtype)) else dtype


# --- what was never written ---------------------------------------------------------

# Shapes may claim any size: tiles without data have one checksum for each shape.


def written_tiles(dataset: Dataset, tiles: Tiles, chunk: Shape) -> npt.NDArray[np.int64] | None:
    """Number the tiles in which something was written; None if all are to be read."""
    if tiles.count <= _FEW:
        return None
    dcpl = dataset.id.get_create_plist()
    layout = dcpl.get_layout()
    if layout == h5d.VIRTUAL or dcpl.get_external_count():
        _check_elsewhere(dataset)
        return None
    found: npt.NDArray[np.int64] | None
    if layout == h5d.CONTIGUOUS:
        found = None if dataset.id.get_storage_size() else np.zeros(0, np.int64)
    else:
        places = written_boxes(dataset.id, chunk, tiles.tile, share=4, most=_MOST)
        found = None if places is None else tiles.numbers(places)
    if found is None or 4 * len(found) >= tiles.count:
        return None
    if tiles.count > _MOST:
        raise CannotJudgeError(
            f"it has {counted(tiles.count, 'tile')} of at most 4 MiB, and values were written in "
            f"{len(found):,} of them: too many to be summed (up to {_MOST:,})"
        )
    return found


def _check_elsewhere(dataset: Dataset) -> None:
    """Refuse values in other files that are far more than these files have bytes."""
    try:
        sources = getattr(dataset._bound().bound, "sources", None)
    except TypeError:
        # Of a type that NumPy lacks.
        sources = None
    nbytes = math.prod(dataset.shape) * dataset.id.get_type().get_size()
    most = _UNKNOWN_NBYTES if sources is None else _VALUES_OF_A_BYTE * sources.nbytes
    if nbytes > max(most, _SMALL_NBYTES):
        raise CannotJudgeError(
            f"it has {format_size(nbytes)} of values, far more than the files to which it leads "
            "can hold: too many to be summed"
        )
