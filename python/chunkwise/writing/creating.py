"""How is a dataset created: with which type, shape, chunks and filters, and is that possible?

libhdf5's refusal names no argument, and it leaves out a filter that does not take the type: both
are checked first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import index as as_int
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import h5py
import numpy as np
from h5py import h5d, h5f, h5p, h5s, h5t, h5z

from chunkwise.errors import ChunkwiseError, UsageError, like
from chunkwise.files import unwritten
from chunkwise.grammar import Effort, Pipeline, format_shape, parse_shape
from chunkwise.names import HDF5_ERRORS, encode_name, hdf5_reason, shown
from chunkwise.words import counted

if TYPE_CHECKING:
    import numpy.typing as npt

Chunks: TypeAlias = int | Sequence[int] | str | bool | None
MaxShape: TypeAlias = int | Sequence[int | None] | bool | None

# HDF5 keeps the bytes of a chunk in 32 bits.
_CHUNK_LIMIT: Final = 2**32
# Keywords of h5py's that stand for filters.
_H5PY_FILTERS: Final = ("compression", "shuffle", "fletcher32", "scaleoffset")
# Filters that take every type.
_UNDEMANDING: Final = frozenset({"deflate", "shuffle", "fletcher32"})
# The types that scaleoffset's ways are for.
_SCALED: Final[Mapping[str | int, int]] = {"in": h5t.INTEGER, "ds": h5t.FLOAT}
_OF_NUMPY: Final = (np.ndarray, np.generic)
# The part that the dataset keeps of a value on the file's heap.
_REFERENCE_NBYTES: Final = 16


@dataclass(frozen=True)
class Request:
    """What the caller of `Group.create_dataset` wants; see there."""

    shape: int | Sequence[int] | None
    dtype: Any
    data: Any
    chunks: Chunks
    maxshape: MaxShape
    filters: Pipeline | str | None
    access: str | Sequence[str]
    fillvalue: Any
    options: dict[str, Any]


@dataclass(frozen=True)
class Created:
    """A new dataset."""

    dataset: h5py.Dataset  # As h5py has it
    effort: Effort  # For encoding its chunks
    # Still to be written, of the dataset's shape; None if h5py has written it.
    data: npt.NDArray[Any] | None


def create(group: h5py.Group, name: str | bytes | None, where: str, request: Request) -> Created:
    """Make a dataset in a group; `where` begins every message."""
    data, plain = _data(request, where)
    shape, kind = _shape(request, data, where), _kind(request, data, where)
    pipeline = _pipeline(request, where)
    options = {**request.options, "dcpl": h5p.create(h5p.DATASET_CREATE)}
    if shape:
        maxshape = _maxshape(request.maxshape, shape, where)
        chunk = _chunk(request, shape, maxshape, kind, pipeline, where)
        if maxshape != shape:
            options["maxshape"] = maxshape
        if chunk is not None:
            options["dcpl"].set_chunk(chunk)
            pipeline.apply(options["dcpl"])
            _try_out(chunk, kind, pipeline, where)
            if "maxshape" in options or _asks_h5py(options):
                options["chunks"] = chunk  # Or h5py would guess.
    elif pipeline.filters or request.chunks or request.maxshape or request.access:
        raise UsageError(
            f"{where}: a dataset without dimensions, scalar or Empty, takes no chunks, filters, "
            "maxshape or access; give it a shape"
        )
    if plain:
        # Its type is that of the data; written is it later, by the engine.
        options["dtype"] = data.dtype if request.dtype is None else request.dtype
        options["shape"] = shape
    else:
        options |= {"dtype": request.dtype, "shape": shape, "data": data}
        if data is None and request.dtype is None:
            options["dtype"] = np.dtype("=f4")
    # Named when it is there and written: a failure leaves no groups that would have led to it.
    at_once = plain or request.data is None
    named = name if at_once and plain_name(name) else None
    try:
        made = group.create_dataset(named, fillvalue=request.fillvalue, **options)
        if not at_once:
            unwritten.flush(made.id)
        if name is not None and named is None:
            group[name] = made
            # Under its name, with the same chunk cache and prefixes.
            raw = encode_name(name) if isinstance(name, str) else name
            made = h5py.Dataset(h5d.open(group.id, raw, made.id.get_access_plist()))
    except HDF5_ERRORS as error:
        if isinstance(error, ChunkwiseError):
            raise
        raise like(UsageError, error)(f"{where}: cannot be made: {hdf5_reason(error)}") from error
    return Created(made, pipeline.effort, data.reshape(shape) if plain else None)


def plain_name(name: Any) -> bool:
    """Whether a name is plain ASCII text that leads through no other group."""
    if type(name) is not str or not (name.isascii() and name.isprintable()):
        return False
    return name not in ("", ".") and "/" not in name


def _data(request: Request, where: str) -> tuple[Any, bool]:
    """Give the data, and whether it and its type in the file are plain bytes."""
    data = request.data
    if data is None or isinstance(data, h5py.Empty):
        return data, False
    try:
        if request.dtype is None:
            array = np.asarray(data)
            stored = array.dtype
        else:
            stored = _kind(request, data, where).dtype
            # To NumPy, large integers are floats; libhdf5 before 2.0 rounds wrongly to `f2`.
            is_half = (stored.base.kind, stored.base.itemsize) == ("f", 2)
            as_it_is = isinstance(data, np.ndarray) and not is_half
            array = np.asarray(data, None if as_it_is else stored.base)
    except (TypeError, ValueError, OverflowError):
        return data, False  # h5py knows what it is, or why it is nothing.
    if array.dtype.kind == "S" and request.dtype is None and not isinstance(data, _OF_NUMPY):
        return data, False  # Of bytes h5py makes strings of variable length.
    plain = array.dtype.kind in "biufcSV" and not array.dtype.hasobject and not stored.hasobject
    return (array, True) if plain else (data, False)


def _shape(request: Request, data: Any, where: str) -> tuple[int, ...] | None:
    """The shape; None for a null dataspace."""
    if request.shape is None:
        if data is None:
            if request.dtype is None:
                raise UsageError(f"{where}: give its shape and dtype, or data")
            return None
        return None if isinstance(data, h5py.Empty) else tuple(np.shape(data))
    shape = _lengths(request.shape, where, "shape {} is no shape; write (365, 20)")
    if any(n < 0 for n in shape):
        raise UsageError(f"{where}: shape {format_shape(shape)} has a negative length")
    if data is not None and math.prod(shape) != math.prod(np.shape(data)):
        raise UsageError(
            f"{where}: shape {format_shape(shape)} does not hold data of shape "
            f"{format_shape(np.shape(data))}"
        )
    return shape


def _kind(request: Request, data: Any, where: str) -> h5t.TypeID:
    """The type in the file."""
    dtype = request.dtype
    if isinstance(dtype, h5py.Datatype):
        return dtype.id
    if isinstance(dtype, h5t.TypeID):
        return dtype
    try:
        if dtype is None:
            plain = isinstance(data, np.ndarray) and data.dtype.kind not in "OU"
            dtype = data.dtype if plain else h5py.string_dtype() if data is not None else "=f4"
        return h5t.py_create(np.dtype(dtype), logical=True)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{where}: dtype {shown(dtype)} has no place in HDF5: {error}") from None


def _pipeline(request: Request, where: str) -> Pipeline:
    if request.filters is None:
        return Pipeline()
    if _asks_h5py(request.options):
        raise UsageError(f"{where}: give filters, or h5py's compression and its like, not both")
    return (
        request.filters
        if isinstance(request.filters, Pipeline)
        else Pipeline.parse(request.filters)
    )


def _asks_h5py(options: dict[str, Any]) -> bool:
    return any(options.get(one) not in (None, False) for one in _H5PY_FILTERS)


def _compresses(pipeline: Pipeline, options: dict[str, Any]) -> bool:
    if options.get("compression") not in (None, False):
        return True
    return any(one.compresses for one in pipeline.filters)


def _maxshape(given: MaxShape, shape: tuple[int, ...], where: str) -> tuple[int | None, ...]:
    if given is None or given is False:
        return shape
    if given is True:
        return (None,) * len(shape)
    maxshape = _lengths(given, where, "maxshape {} is no shape; write (None, 20)", open=True)
    if len(maxshape) != len(shape):
        raise UsageError(
            f"{where}: maxshape has {counted(len(maxshape), 'dimension')}, shape "
            f"{format_shape(shape)} has "
            f"{len(shape)}: give one number for each, None if it may grow without limit"
        )
    if any(most is not None and most < n for most, n in zip(maxshape, shape, strict=True)):
        raise UsageError(
            f"{where}: maxshape {maxshape} is smaller than shape {format_shape(shape)}"
        )
    return maxshape


def _chunk(
    request: Request,
    shape: tuple[int, ...],
    maxshape: tuple[int | None, ...],
    kind: h5t.TypeID,
    pipeline: Pipeline,
    where: str,
) -> tuple[int, ...] | None:
    """The shape of chunks; None for contiguous data."""
    wanted: Any = (
        parse_shape(request.chunks) if isinstance(request.chunks, str) else request.chunks
    )
    filtered = bool(pipeline.filters) or _asks_h5py(request.options)
    # Files beside this one hold contiguous data that may grow.
    grows = maxshape != shape and not request.options.get("external")
    needed = filtered or grows
    if wanted is False or wanted == "contiguous":
        if needed or request.access:
            raise UsageError(
                f"{where}: contiguous data takes no filters, no access and cannot grow; leave "
                "chunks out, or give their shape"
            )
        return None
    if wanted == "stored":
        raise UsageError(f"{where}: a new dataset has no stored chunks: write auto, or a shape")
    itemsize = max(1, _REFERENCE_NBYTES if kind.get_class() == h5t.VLEN else kind.get_size())
    if wanted is None or wanted is True or wanted == "auto":
        # As in h5py, if a largest shape is named, even the present one.
        named = request.maxshape not in (None, False) and not request.options.get("external")
        if wanted is None and not (needed or named or request.access):
            return None
        from chunkwise import patterns
        from chunkwise.model.chunk_shape import GROWN_NBYTES, default_chunk

        texts = [request.access] if isinstance(request.access, str) else list(request.access)
        stated = patterns.stated(texts, shape, itemsize, maxshape, where)
        # Compressed data takes no more room in larger chunks that are mostly empty.
        room = GROWN_NBYTES if _compresses(pipeline, request.options) else None
        return default_chunk(shape, itemsize, maxshape, stated, grown_nbytes=room)
    return _checked_chunk(wanted, shape, maxshape, itemsize, where)


def _checked_chunk(
    wanted: Any,
    shape: tuple[int, ...],
    maxshape: tuple[int | None, ...],
    itemsize: int,
    where: str,
) -> tuple[int, ...]:
    """A shape as it was given, if HDF5 can have it."""
    chunk = _lengths(wanted, where, "chunks {} are no shape; write (365, 20, 20)")
    lengths = format_shape(chunk)
    if len(chunk) != len(shape):
        raise UsageError(
            f"{where}: chunks {lengths} have {counted(len(chunk), 'dimension')}, shape "
            f"{format_shape(shape)} "
            f"has {len(shape)}: give one number for each"
        )
    if any(n < 1 for n in chunk):
        raise UsageError(f"{where}: chunks {lengths}: each number must be at least 1")
    if any(most is not None and n > max(1, most) for n, most in zip(chunk, maxshape, strict=True)):
        raise UsageError(
            f"{where}: chunks {lengths} are larger than the dataset, {format_shape(shape)}, may "
            "become: make them smaller, or give a larger maxshape"
        )
    if math.prod(chunk) * itemsize >= _CHUNK_LIMIT:
        raise UsageError(
            f"{where}: chunks {lengths} take {math.prod(chunk) * itemsize:,} bytes, and HDF5 has "
            "less than 4 GiB for one: make them smaller"
        )
    return chunk


def _lengths(given: Any, where: str, remedy: str, *, open: bool = False) -> tuple[Any, ...]:
    """Whole numbers, of which one alone needs no tuple; some None if that is `open`."""
    try:
        several = (given,) if np.ndim(given) == 0 else given
        return tuple(None if open and one is None else as_int(one) for one in several)
    except (TypeError, ValueError):
        raise UsageError(f"{where}: {remedy.format(shown(given))}") from None


def _try_out(
    chunk: tuple[int, ...],
    kind: h5t.TypeID,
    pipeline: Pipeline,
    where: str,
) -> None:
    """Raise UsageError for a filter that cannot take the type: it would just be left out."""
    if all(one.name in _UNDEMANDING for one in pipeline.filters):
        return
    dcpl = h5p.create(h5p.DATASET_CREATE)
    dcpl.set_chunk(chunk)
    pipeline.apply(dcpl)
    stored = [dcpl.get_filter(place) for place in range(dcpl.get_nfilters())]
    fapl = h5p.create(h5p.FILE_ACCESS)
    fapl.set_fapl_core(backing_store=False)
    file = h5f.create(b"filters", h5f.ACC_TRUNC, fapl=fapl)
    try:
        for one, (code, _, values, _) in zip(pipeline.filters, stored, strict=True):
            # This one libhdf5 itself finds out only when it encodes.
            if one.name == "scaleoffset" and kind.get_class() != _SCALED[one.options[0]]:
                raise UsageError(
                    f"{where}: filter {one} does not work on {_words(kind)}; write "
                    "scaleoffset:in:BITS for integers, scaleoffset:ds:DIGITS for floats"
                )
            alone = h5p.create(h5p.DATASET_CREATE)
            alone.set_chunk(chunk)
            alone.set_filter(code, h5z.FLAG_MANDATORY, tuple(values))
            space = h5s.create_simple(chunk)
            try:
                h5d.create(file, None, kind, space, alone)
            except HDF5_ERRORS as error:
                raise UsageError(
                    f"{where}: filter {one} does not work on {_words(kind)} in chunks "
                    f"{format_shape(chunk)} ({hdf5_reason(error)}); leave it out"
                ) from None
    finally:
        file.close()


def _words(kind: h5t.TypeID) -> str:
    try:
        return str(kind.dtype)
    except HDF5_ERRORS:
        return "this type"
