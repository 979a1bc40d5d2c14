"""What can each tool read and write, and which names does it take?"""

from __future__ import annotations

import importlib.util
import re
from functools import cache
from pathlib import Path
from typing import Final

from chunkwise import _native
from chunkwise.grammar import Pipeline
from chunkwise.names import octal, shell_word

# A question mark may begin a trigraph.
_C_SPECIAL: Final = '"\\?'


def absolute(dataset: str) -> str:
    """Return the path of a dataset from the root of its file."""
    return "/" + dataset.strip("/")


def shell_file(file: str) -> str:
    """Quote a file's name for a shell; one that begins with a dash is no option."""
    return shell_word(f"./{file}" if file.startswith("-") else file)


def python_path(path: str) -> str:
    """Quote an HDF5 path for h5py, which takes bytes if a name is not UTF-8."""
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return repr(path.encode("utf-8", "surrogateescape"))
    return repr(path)


def c_text(text: str) -> str:
    """Write a string of C's."""
    return f'"{octal(text, _C_SPECIAL)}"'


def beside(file: str, word: str) -> str:
    """Return the name of a copy: that of the file with a word behind it, in this folder."""
    source = Path(file)
    return source.with_name(f"{source.stem}_{word}{source.suffix}").name


# What h5repack and nccopy have in every build.  With any other filter, h5repack may
# write an empty dataset or file and still end with exit code 0.
H5REPACK_FILTERS: Final = frozenset(
    {"deflate", "shuffle", "fletcher32", "szip", "nbit", "scaleoffset"}
)
NCCOPY_FILTERS: Final = frozenset({"deflate", "shuffle", "fletcher32"})
NATIVE_FILTERS: Final = frozenset(_native.filters().values())
# netCDF-C's rule for names, as far as HDF5 allows others (netCDF User's Guide, "Name").
_FIRST: Final = r"[A-Za-z0-9_\u0080-\ud7ff\ue000-\U0010ffff]"
_LATER: Final = r"[^\x00-\x1f/\x7f\ud800-\udfff]"
_NETCDF_NAME: Final = re.compile(rf"{_FIRST}(?:{_LATER}*(?! ){_LATER})?")


@cache
def names(filters: str) -> frozenset[str]:
    """Name the filters of a pipeline."""
    return frozenset(one.name for one in Pipeline.parse(filters).filters)


def can_repack(filters: str) -> bool:
    """Whether `h5repack` can be trusted with a pipeline such as ``shuffle+deflate:4``."""
    return names(filters) <= H5REPACK_FILTERS


@cache
def can_encode(name: str) -> bool:
    """Whether chunkwise repack can write a filter here."""
    if name in H5REPACK_FILTERS or name == "lzf":
        return True
    return name in NATIVE_FILTERS and importlib.util.find_spec("hdf5plugin") is not None


def decodes_natively(filters: str) -> bool:
    """Whether chunkwise itself decodes a pipeline."""
    pipeline = Pipeline.parse(filters)
    return names(filters) <= NATIVE_FILTERS and not any(
        "snappy" in one.options for one in pipeline.filters
    )


def is_in_netcdf(path: str) -> bool:
    """Whether netCDF has names like those of a path."""
    return all(_NETCDF_NAME.fullmatch(name) for name in path[1:].split("/"))


def is_in_netcdf_root(file: str, path: str) -> bool:
    """Whether nccopy can take a dataset, which only works for a netCDF file."""
    fits = Path(file).suffix in (".nc", ".nc4") and path.count("/") == 1
    return fits and is_in_netcdf(path) and not set(path) & set(":,")
