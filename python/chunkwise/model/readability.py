"""Who can read a file: which programs have its filters and know its format?

A table with its sources.  What no document says is ``not known``, and never counts as a yes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from chunkwise.errors import UsageError
from chunkwise.words import joined, offered

Can = Literal["yes", "with a plugin", "no", "not known"]

# Releases of libhdf5 between which the format of files grew, as `FormatFacts.oldest_reader`.
FORMATS: Final = ("1.6", "1.8", "1.10", "1.12", "2.0")
_OF_HDF5: Final = frozenset({"deflate", "shuffle", "fletcher32", "szip", "nbit", "scaleoffset"})


# The bound with which groups take less, and the oldest HDF5 that reads what it makes.
SMALLER_LOW: Final = "v110"
FORMAT_OF_LOW: Final = "1.10"


@dataclass(frozen=True, slots=True)
class Program:
    """A program or library that reads HDF5 files."""

    name: str  # As in ``--for``, and in words
    title: str
    filters: frozenset[str]  # Filters that it has itself
    others: Can  # Whether it reads those that are neither in `filters` nor in `unknown`
    unknown: frozenset[str] = frozenset()  # Filters that no document mentions for it
    # The newest of `FORMATS` that it knows; None if not known, or it depends on its libhdf5.
    newest: str | None = None
    # Whether it reads virtual datasets, and files with paged file space.
    virtual: Can = "not known"
    paged: Can = "not known"
    # What this rests on: documents or source code, by their addresses or titles.
    sources: tuple[str, ...] = ()

    def reads_filter(self, name: str) -> Can:
        """Return whether it decodes one filter, by its name in the grammar."""
        if name in self.filters:
            return "yes"
        return "not known" if name in self.unknown else self.others

    def reads_format(self, oldest_reader: str) -> Can:
        """Return whether it knows a format, named by the oldest libhdf5 that knows it."""
        if oldest_reader not in FORMATS or FORMATS.index(oldest_reader) <= FORMATS.index("1.8"):
            return "yes"
        if self.newest is None:
            return "not known"
        return "yes" if FORMATS.index(oldest_reader) <= FORMATS.index(self.newest) else "no"


@dataclass(frozen=True, slots=True)
class Needs:
    """What a file needs from a reader of all of it."""

    filters: frozenset[str] = frozenset()  # Names of all filters, as in the grammar
    oldest_reader: str = "1.6"  # The oldest libhdf5 that knows its format, of `FORMATS`
    virtual: bool = False  # Whether it has virtual datasets, and paged file space
    paged: bool = False


_DYNAMIC = "https://support.hdfgroup.org/HDF5/doc/Advanced/DynamicallyLoadedFilters"
_BUILT_IN = "https://support.hdfgroup.org/documentation/hdf5/latest/_h5_z__u_g.html"
_BOUNDS = "https://support.hdfgroup.org/HDF5/doc/RM/H5P/H5Pset_libver_bounds.htm"
_IN_1_10 = "https://support.hdfgroup.org/archive/support/HDF5/docNewFeatures/NewFeaturesReferenceDocs.html"
_LIBHDF5 = (_BUILT_IN, _DYNAMIC, _BOUNDS, _IN_1_10)


def _libhdf5(series: str, newest: str, *, new: bool) -> Program:
    can: Can = "yes" if new else "no"
    return Program(
        f"libhdf5-{series}",
        f"libhdf5 {series}, without plugins",
        _OF_HDF5,
        "with a plugin",
        newest=newest,
        virtual=can,
        paged=can if new else "not known",
        sources=_LIBHDF5,
    )


PROGRAMS: Final[tuple[Program, ...]] = (
    _libhdf5("1.8", "1.8", new=False),
    _libhdf5("1.10", "1.10", new=True),
    _libhdf5("1.12", "1.12", new=True),
    _libhdf5("1.14", "1.12", new=True),
    _libhdf5("2", "2.0", new=True),
    Program(
        "chunkwise",
        "chunkwise",
        _OF_HDF5 | {"lzf", "lz4", "zstd", "bitshuffle", "blosc", "blosc2", "bzip2"},
        "with a plugin",
        newest="2.0",
        virtual="yes",
        paged="yes",
        sources=("filters.md",),
    ),
    Program(
        "h5py",
        "h5py without hdf5plugin",
        _OF_HDF5 | {"lzf"},
        "with a plugin",
        virtual="yes",
        paged="yes",
        sources=(
            "https://github.com/h5py/h5py/blob/master/h5py/_hl/filters.py",
            "https://docs.h5py.org/en/2.10.0/whatsnew/2.9.html",
            "https://pypi.org/project/hdf5plugin/",
        ),
    ),
    Program(
        "netcdf-c",
        "netCDF-C (netCDF4, xarray, ncdump)",
        _OF_HDF5,
        "with a plugin",
        sources=("https://github.com/Unidata/netcdf-c/blob/main/docs/filters.md",),
    ),
    Program(
        "matlab",
        "MATLAB (h5read)",
        frozenset({"deflate", "shuffle", "fletcher32"}),
        "with a plugin",
        unknown=frozenset({"szip", "nbit", "scaleoffset"}),
        sources=(
            "https://uk.mathworks.com/help/matlab/import_export/"
            "read-and-write-hdf5-datasets-using-dynamically-loaded-filters.html",
            "https://uk.mathworks.com/matlabcentral/answers/"
            "393621-how-can-i-import-a-lzf-compressed-hdf5-dataset-in-matlab",
        ),
    ),
    Program(
        "idl",
        "IDL (H5D_READ)",
        frozenset({"deflate", "shuffle", "fletcher32"}),
        "not known",
        # The guide says that its functions are libhdf5's, but not which version or plugins.
        sources=("IDL Reference Guide, 'The IDL HDF5 Library'",),
    ),
    Program(
        "netcdf-java",
        "netCDF-Java (Panoply, THREDDS, ToolsUI)",
        frozenset({"deflate", "shuffle", "fletcher32"}),
        "no",
        # It has a library for szip, but no document says whether it reads HDF5 files with it.
        unknown=frozenset({"szip", "scaleoffset", "nbit"}),
        sources=(
            "https://github.com/Unidata/thredds/issues/555",
            "https://github.com/apache/sedona/issues/1951",
            "https://github.com/Unidata/netcdf-java/issues/1447",
            "https://github.com/Unidata/netcdf-java/tree/develop/cdm/core/src/main/java/ucar/nc2/filter",
        ),
    ),
    Program(
        "jhdf",
        "jHDF (Java)",
        frozenset({"deflate", "shuffle", "fletcher32", "lzf", "lz4", "bitshuffle", "scaleoffset"}),
        "no",
        sources=(
            "https://github.com/jamesmudd/jhdf/tree/master/jhdf/src/main/java/io/jhdf/filter",
            "https://github.com/jamesmudd/jhdf/blob/master/CHANGES.md",
        ),
    ),
    Program(
        "h5wasm",
        "h5wasm (browsers, H5Web)",
        _OF_HDF5,
        "with a plugin",
        newest="1.12",
        virtual="not known",
        paged="yes",
        sources=(
            "https://github.com/h5wasm/h5wasm-plugins",
            "https://github.com/usnistgov/h5wasm/blob/main/CHANGELOG.md",
        ),
    ),
    Program(
        "kerchunk",
        "kerchunk (zarr)",
        frozenset({"deflate", "shuffle", "fletcher32", "blosc", "zstd"}),
        "no",
        sources=("https://github.com/fsspec/kerchunk/blob/main/kerchunk/hdf.py",),
    ),
    Program(
        "virtualizarr",
        "VirtualiZarr (zarr)",
        frozenset({"deflate", "shuffle", "blosc", "zstd"}),
        "not known",
        unknown=frozenset({"fletcher32"}),
        sources=(
            "https://github.com/zarr-developers/VirtualiZarr/blob/main/virtualizarr/parsers/hdf/"
            "filters.py",
        ),
    ),
)
PROGRAM_NAMES: Final = tuple(program.name for program in PROGRAMS)


@dataclass(frozen=True, slots=True)
class Loss:
    """A program that reads less of a new file than of the one before."""

    program: Program  # Which
    why: tuple[str, ...]  # What it lacks, in words: ``the filter zstd``
    can: Can  # What it does with that: ``with a plugin``, ``no`` or ``not known``


def program(name: str) -> Program:
    """Return the program of a name."""
    for one in PROGRAMS:
        if one.name == name:
            return one
    raise UsageError(f"no reader is called '{name}'{offered(name, PROGRAM_NAMES)}")


def losses(
    before: Needs, after: Needs, programs: Iterable[Program] = PROGRAMS
) -> tuple[Loss, ...]:
    """Return which programs read less of a file than of the one before."""
    return tuple(loss for one in programs if (loss := _loss(one, before, after)) is not None)


def _loss(one: Program, before: Needs, after: Needs) -> Loss | None:
    found: list[tuple[Can, str]] = []
    for name in sorted(after.filters - before.filters):
        found.append((one.reads_filter(name), f"the filter {name}"))
    if after.oldest_reader != before.oldest_reader and _is_newer(after, before):
        can = one.reads_format(after.oldest_reader)
        found.append((can, f"the format of HDF5 {after.oldest_reader}"))
    if after.virtual and not before.virtual:
        found.append((one.virtual, "virtual datasets"))
    if after.paged and not before.paged:
        found.append((one.paged, "paged file space"))
    order: tuple[Can, ...] = ("no", "with a plugin", "not known")
    for worst in order:
        why = tuple(what for can, what in found if can == worst)
        if why:
            return Loss(one, why, worst)
    return None


def _is_newer(after: Needs, before: Needs) -> bool:
    known = [needs.oldest_reader in FORMATS for needs in (after, before)]
    if not all(known):
        return True
    return FORMATS.index(after.oldest_reader) > FORMATS.index(before.oldest_reader)


def sentences(found: Sequence[Loss]) -> list[str]:
    """Say which programs read less, one sentence for each reason."""
    groups: dict[tuple[Can, tuple[str, ...]], list[str]] = {}
    for loss in found:
        groups.setdefault((loss.can, loss.why), []).append(loss.program.title)
    said = {
        "no": "cannot be read any more by",
        "with a plugin": "is read only with a plugin by",
        "not known": "may not be read by (not known)",
    }
    return [
        f"it {said[can]} {joined(titles)}: {joined(why)}" for (can, why), titles in groups.items()
    ]


def require(names: Sequence[str], before: Needs, after: Needs, what: str) -> None:
    """Refuse a file that one of some programs would read less of."""
    for loss in losses(before, after, map(program, names)):
        verb = {
            "no": "cannot read",
            "with a plugin": "reads only with a plugin",
            "not known": "is not known to read",
        }[loss.can]
        raise UsageError(
            f"{what}: {loss.program.title} {verb} {joined(loss.why)} (--for {loss.program.name}); "
            "choose another filter or format, or leave that reader out"
        )
