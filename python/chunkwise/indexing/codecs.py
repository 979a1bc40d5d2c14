"""Which codecs let zarr decode the filters of a dataset, and which filters does it lack?

A filter has a codec if numcodecs stores the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from h5py import h5p

from chunkwise import _native
from chunkwise.grammar import Pipeline

Codec = dict[str, Any]

_BLOSC: Final = ("blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd")
_SHUFFLE: Final = 2
_FLETCHER32: Final = 3
_FLETCHER32_NBYTES: Final = 4


def _blosc(values: Sequence[int]) -> Codec:
    # Revision, version, size of an element and of a chunk come first.
    level, shuffle, number = (*values[4:7], 5, 1, 0)[:3] if len(values) < 7 else values[4:7]
    name = _BLOSC[number] if number < len(_BLOSC) else "blosclz"
    return {"id": "blosc", "cname": name, "clevel": level, "shuffle": shuffle, "blocksize": 0}


# By HDF5's numbers.  Levels are for who would write; all levels are read alike.
_CODECS: Final[dict[int, Callable[[Sequence[int]], Codec]]] = {
    1: lambda values: {"id": "zlib", "level": values[0] if values else 4},
    _SHUFFLE: lambda values: {"id": "shuffle", "elementsize": values[0]},
    _FLETCHER32: lambda _: {"id": "fletcher32"},
    307: lambda values: {"id": "bz2", "level": values[0] if values else 9},
    32001: _blosc,
    32015: lambda values: {"id": "zstd", "level": _signed(values[0]) if values else 3},
}


def _signed(level: int) -> int:
    return level - (1 << 32) if level >> 31 else level


def codecs_of(dcpl: h5p.PropDCID, chunk_nbytes: int) -> list[Codec] | str:
    """Give the codecs of a dataset's filters, in the order in which they were applied."""
    found: list[Codec] = []
    # What the filters so far make of a chunk's bytes; None if that is not known.
    nbytes: int | None = chunk_nbytes
    for number in range(dcpl.get_nfilters()):
        code, _, values, _ = dcpl.get_filter(number)
        if code not in _CODECS:
            return f"zarr has no codec for the filter {_name(dcpl, number)}"
        if code == _SHUFFLE:
            if not values:
                return "its filter shuffle states no element size"
            if nbytes is None or nbytes % values[0]:
                return "zarr's shuffle takes whole elements, and here it comes after other filters"
        elif code == _FLETCHER32:
            nbytes = None if nbytes is None else nbytes + _FLETCHER32_NBYTES
        else:
            nbytes = None
        found.append(_CODECS[code](values))
    return found


def _name(dcpl: h5p.PropDCID, number: int) -> str:
    code = dcpl.get_filter(number)[0]
    known = _native.filters().get(code)
    if known is not None:
        return known
    filters = Pipeline.from_dcpl(dcpl).filters
    return filters[number].name if number < len(filters) else str(code)
