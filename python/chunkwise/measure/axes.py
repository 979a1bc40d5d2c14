"""What can be varied from trial to trial, and how is it written?"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from chunkwise.errors import UsageError
from chunkwise.grammar import format_size, parse_size
from chunkwise.measure.wheels import is_wheel, library_of
from chunkwise.trials.formats import FORMATS, NETCDF4, is_netcdf3
from chunkwise.trials.pagecache import PAGE_CACHES
from chunkwise.trials.readers import NATIVE, READERS, is_shared_library
from chunkwise.trials.readers import WITH_LIBRARY_CACHE as _CACHED

DEFAULT: Final = "default"


@dataclass(frozen=True)
class Axis:
    """One thing that is varied."""

    name: str  # In TOML files, in ``--set``, and in messages
    field: str | None  # The field of `Trial`; None if the value decides several of them
    default: str  # The value if none is given
    parse: Callable[[str], Any]  # Reads a value other than the default; raises UsageError
    show: Callable[[Any], str]  # Writes a parsed value as short as a table needs it
    readers: frozenset[str]  # The readers that it concerns
    operations: tuple[str, ...]  # The operations that it concerns
    about: str  # What it is, with the function of the library
    hdf5: bool = False  # Whether it concerns HDF5 files alone, and no files of netCDF-3

    def value(self, text: str) -> Any:
        """Read a value; None is the default's."""
        return None if text == self.default == DEFAULT else self.parse(text)

    def label(self, text: str) -> str:
        """Write a value for a table, with what it is a value of."""
        if text == self.default == DEFAULT:
            return f"{self.name} {text}"
        return self.show(self.value(text))

    def concerns(self, point: Mapping[str, str]) -> bool:
        """Whether a combination's value on this axis makes a difference to its reader."""
        reader, text = point["reader"], point[self.name]
        if reader not in self.readers or point["operation"] not in self.operations:
            return False
        if self.hdf5 and is_netcdf3(point["format"]):
            return False
        # A library by its path is loaded by readers that bring none of their own.
        return not (
            self.name == "libhdf5" and is_shared_library(text) and not READERS[reader].any_libhdf5
        )


def _word(name: str, *words: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in words:
            raise UsageError(f"'{text}' is no {name}: choose from {', '.join(words)}")
        return text

    return parse


def _whole(name: str, least: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.isascii() or not text.isdigit() or int(text) < least:
            raise UsageError(f"'{text}' is no {name}: give a whole number from {least} on")
        return int(text)

    return parse


def _conversion_nbytes(text: str) -> int:
    nbytes = parse_size(text)
    if nbytes < 1:
        raise UsageError(
            "a conversion buffer of 0 bytes converts nothing: give a size such as 1MiB"
        )
    return nbytes


def _w0(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise UsageError(f"'{text}' is no w0: give a number from 0 to 1")
    return value


def _is_each(text: str) -> bool:
    return _word("way of opening", "once", "each")(text) == "each"


def _size(nbytes: int) -> str:
    return format_size(nbytes).replace(".0 ", " ")


def _sized(word: str) -> Callable[[int], str]:
    return lambda nbytes: f"{word} {_size(nbytes)}"


def _named(word: str) -> Callable[[Any], str]:
    return lambda value: f"{word} {value:g}" if isinstance(value, float) else f"{word} {value}"


_ALL = frozenset(READERS)
_HDF5 = frozenset({"libhdf5", "h5py"})
# Those that make files and datasets through libhdf5, with properties of ours.
_MAKING = _HDF5 | NATIVE
_BOTH = ("read", "write")
_READ, _WRITE = ("read",), ("write",)


def _same(text: str) -> str:
    return text


def _library(text: str) -> str:
    """Give the whole path: a bare name would be searched for elsewhere, by dlopen or exec."""
    if is_wheel(text):
        return library_of(text)
    path = Path(text).expanduser()
    found = shutil.which(text) if os.sep not in text and not path.exists() else None
    # A link is kept: it is what makes a virtual environment of a Python.
    return str(Path(found or path).absolute())


def _path(text: str) -> str:
    return str(Path(text).expanduser().absolute())


# In the order in which combinations are spelled out: the last one changes fastest.
AXES: Final[dict[str, Axis]] = {
    axis.name: axis
    for axis in (
        Axis(
            "operation", "operation", "read", _word("operation", *_BOTH), _same, _ALL, _BOTH,
            "read; or write to a new file",
        ),
        Axis("access", None, DEFAULT, _same, _same, _ALL, _BOTH, "the access pattern"),
        Axis(
            "format", "format", NETCDF4, _word("file format", *FORMATS), FORMATS.__getitem__,
            frozenset({"netcdf4"}), _BOTH, "the file format (nc_create)",
        ),
        Axis("chunk", None, "stored", _same, _same, _ALL, _BOTH, "the chunk shape", hdf5=True),
        Axis(
            "filter", None, "stored", _same, _same, _ALL, _BOTH, "the filter pipeline", hdf5=True
        ),
        Axis(
            "page-cache", "page_cache", "warm", _word("page cache", *PAGE_CACHES), _same, _ALL,
            _READ, "whether the file's bytes are in memory",
        ),
        Axis("reader", "reader", "h5py", _same, _same, _ALL, _BOTH, "who reads or writes"),
        Axis(
            "libhdf5", "libhdf5", DEFAULT, _library, _same, _ALL, _BOTH,
            "the library: a libhdf5.so, or a Python with an h5py of its own",
        ),
        Axis(
            "threads", "threads", DEFAULT, _whole("number of threads", 1), _named("threads"),
            NATIVE, _BOTH, "threads that chunkwise may use",
        ),
        Axis(
            "cache", "cache_nbytes", DEFAULT, parse_size, _size, _CACHED, _BOTH,
            "bytes of the chunk cache (H5Pset_chunk_cache)", hdf5=True,
        ),
        Axis(
            "nslots", "cache_nslots", DEFAULT, _whole("number of slots", 0), _named("nslots"),
            _CACHED, _BOTH, "slots of the chunk cache's hash table", hdf5=True,
        ),
        Axis(
            "w0", "cache_w0", DEFAULT, _w0, _named("w0"), _CACHED, _BOTH,
            "the chunk cache's preemption policy", hdf5=True,
        ),
        Axis(
            "sieve", "sieve_nbytes", DEFAULT, parse_size, _sized("sieve"), _HDF5, _BOTH,
            "the sieve buffer (H5Pset_sieve_buf_size)",
        ),
        Axis(
            "conversion", "conversion_nbytes", DEFAULT, _conversion_nbytes, _sized("conversion"),
            frozenset({"libhdf5"}), _BOTH, "the type conversion buffer (H5Pset_buffer)",
        ),
        Axis(
            "metadata-block", "metadata_block_nbytes", DEFAULT, parse_size,
            _sized("metadata block"), _MAKING, _WRITE,
            "what metadata is allocated in (H5Pset_meta_block_size)",
        ),
        Axis(
            "small-data", "small_data_block_nbytes", DEFAULT, parse_size,
            _sized("small data"), _MAKING, _WRITE,
            "what small data is allocated in (H5Pset_small_data_block_size)",
        ),
        Axis(
            "alloc-time", "alloc_time", DEFAULT,
            _word("allocation time", "early", "late", "incremental"), _named("alloc"),
            _MAKING, _WRITE, "when space is allocated (H5Pset_alloc_time)",
        ),
        Axis(
            "zlib", "zlib_path", DEFAULT, _path, lambda path: f"zlib {Path(path).name}", _CACHED,
            _BOTH, "a libz.so that takes the place of libhdf5's (LD_PRELOAD)",
        ),
        Axis(
            "engine-cache", "engine_cache_nbytes", DEFAULT, parse_size, _sized("engine cache"),
            NATIVE, _READ, "bytes of chunkwise's own cache of decoded chunks",
        ),
        Axis(
            "reopen", "reopen", "once", _is_each,
            lambda each: "opened each time" if each else "opened once", _HDF5 | NATIVE, _READ,
            "whether the file is opened once, or for each read, as a part of it",
        ),
    )
}  # fmt: skip

# What `--set NAME=VALUE,...` takes: axes without an option of their own, which come last.
PROPERTY_AXES: Final = tuple(AXES)[tuple(AXES).index("sieve") :]


def check_axis(name: str) -> Axis:
    """Return an axis, or raise UsageError with the names there are."""
    if name not in AXES:
        raise UsageError(f"nothing called '{name}' can be varied: choose from {', '.join(AXES)}")
    return AXES[name]
