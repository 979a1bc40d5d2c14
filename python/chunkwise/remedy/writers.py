"""Which lines of a program that writes make a dataset as it should be stored?

They belong where the program creates the dataset, and use its own names for its own values
(``file``, ``data``, ``datatype``, ``dimensions``; in C and Fortran ``file``, ``type``, ``space``).
If a library cannot express something (a bitshuffle filter for netCDF4), there is no line for it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from chunkwise.grammar import Filter, Pipeline, format_size
from chunkwise.grammar.codecs import CODECS
from chunkwise.model.held import Cache, holding
from chunkwise.model.readers import DEFAULT_W0, LIBHDF5_1, LIBHDF5_2
from chunkwise.remedy.fix import Fix, Tool
from chunkwise.remedy.records import CONTIGUOUS, Anew, Chunks, Copy, Present
from chunkwise.remedy.tools import absolute, beside, c_text, is_in_netcdf, python_path
from chunkwise.words import counted

# netCDF-C's default chunk cache, at the least since 4.9.
_NETCDF_C_NBYTES: Final = 16 << 20
# Of a line of Fortran (2018: 132 characters).
_FORTRAN_WIDTH: Final = 132
_WRITER: Final = "in the program that writes it"


def writers(copy: Copy) -> Iterator[Fix]:
    """Give the lines that write the first dataset of a copy as it is there."""
    if not copy.datasets or copy.by_us or copy.exact or copy.datasets[0].chunks == CONTIGUOUS:
        return
    one = copy.datasets[0]
    written = _Written(absolute(one.path), _pipeline(one), one.chunks or one.now.chunks, one.now)
    found: tuple[tuple[Tool, str | None], ...] = (
        ("h5py", _h5py(written)),
        ("netCDF4", _netcdf4(written)),
        ("C", _c(written)),
        ("Fortran", _fortran(written)),
    )
    for tool, text in found:
        if text is not None:
            yield Fix(tool, text, writing=True, rechunks=copy.rechunks)


@dataclass(frozen=True)
class _Written:
    """A dataset that a program creates."""

    path: str
    pipeline: Pipeline
    chunks: Chunks | None
    now: Present

    @cached_property
    def step(self) -> _Step | None:
        """What a writer needs that writes step by step; None if it needs nothing."""
        shape, itemsize = self.now.shape, self.now.itemsize
        if shape is None or itemsize is None or (self.chunks or (1,))[:1] == (1,):
            return None
        assert self.chunks is not None
        touched = math.prod(-(-n // c) for n, c in zip(shape[1:], self.chunks[1:], strict=True))
        nbytes = math.prod(self.chunks) * itemsize
        if touched == 1 and nbytes <= LIBHDF5_1.cache_nbytes // 2:
            return None
        least = LIBHDF5_2.cache_nbytes
        return _Step(touched, holding(max(1, touched), nbytes, least_nbytes=least, unit=1))


@dataclass(frozen=True)
class _Step:
    """What writing one step along the slowest dimension needs."""

    chunks: int  # How many chunks it touches, each in part
    cache: Cache  # What holds them until they are full

    def __str__(self) -> str:
        size = format_size(self.cache.nbytes)
        return (
            f"Each step touches {counted(self.chunks, 'chunk')}; this cache ({size} of memory) "
            "holds them until they are full, so that each is encoded once"
        )


def _pipeline(one: Anew) -> Pipeline:
    return Pipeline.parse(one.now.filters if one.filters is None else one.filters)


# --- Python ----------------------------------------------------------------------------


def _h5py(written: _Written) -> str | None:
    of_filters = _h5py_options(written.pipeline)
    if of_filters is None:
        return None
    chunks, shape = written.chunks, written.now.shape
    options: dict[str, object] = {} if chunks is None else {"chunks": chunks}
    if chunks is not None and shape is not None and any(map(operator.gt, chunks, shape)):
        # h5py takes chunks longer than the data only if it can grow.
        pairs = zip(shape, chunks, strict=True)
        options["maxshape"] = tuple(None if c > n else n for n, c in pairs)
    keywords = _keywords(options | of_filters)
    arguments = ", ".join([python_path(written.path), "data=data", *keywords])
    # Below 256 are HDF5's own filters; LZF comes with h5py.
    needs = any(one.filter_id >= 256 and one.name != "lzf" for one in written.pipeline.filters)
    plugin = "import hdf5plugin\n" if needs else ""
    return f"# {_WRITER}:\n{plugin}file.create_dataset({arguments})"


def _netcdf4(written: _Written) -> str | None:
    of_filters = _netcdf_options(written.pipeline)
    if of_filters is None or not is_in_netcdf(written.path):
        return None
    chunks, step = written.chunks, written.step
    options = {**({} if chunks is None else {"chunksizes": chunks}), **of_filters}
    if step is not None and step.cache.nbytes > _NETCDF_C_NBYTES:
        options["chunk_cache"] = step.cache.nbytes
    keywords = _keywords(options)
    arguments = ", ".join([repr(written.path), "datatype", "dimensions", *keywords])
    return f"# {_WRITER}:\nfile.createVariable({arguments})"


def by_xarray(copy: Copy) -> Iterator[Fix]:
    """Give the ``encoding=`` of a variable, for a program that has it in ``ds``."""
    one = copy.datasets[0]
    name, chunks = one.path.strip("/"), one.now.chunks if one.chunks is None else one.chunks
    options = _netcdf_options(_pipeline(one))
    if options is None or "/" in name or not chunks:
        return
    compression = options.pop("compression", None)
    words: dict[str, object] = {"chunksizes": tuple(chunks), "zlib": compression is not None}
    encoding = f"{{{name!r}: {words | options!r}}}"
    text = (
        "# in the program that writes it, which has the data in ds:\n"
        f"ds.to_netcdf({beside(copy.file, 'rechunked')!r}, encoding={encoding})"
    )
    yield Fix("xarray", text, writing=True, rechunks=True)


def _keywords(options: dict[str, object]) -> list[str]:
    return [f"{name}={value!r}" for name, value in options.items()]


def _h5py_options(pipeline: Pipeline) -> dict[str, object] | None:
    """Give the keywords of create_dataset; None for what they cannot say."""
    options: dict[str, object] = {}
    compressed = False
    # h5py's own order; fletcher32 may stand anywhere in a file and always comes last here.
    order = [one for one in pipeline.filters if one.name != "fletcher32"]
    for one in order:
        if compressed or one.name == "nbit":
            return None
        if one.name == "scaleoffset" and not options and int(one.options[1]) >= 0:
            options["scaleoffset"] = one.options[1]
        elif one.name == "shuffle" and "shuffle" not in options:
            options["shuffle"] = True
        elif one.name != "scaleoffset":
            options |= _h5py_compression(one)
            compressed = True
        else:
            return None
    fletchers = len(pipeline.filters) - len(order)
    if fletchers > 1 or (fletchers and "scaleoffset" in options):
        return None
    return options | ({"fletcher32": True} if fletchers else {})


def _h5py_compression(one: Filter) -> dict[str, object]:
    if one.name == "deflate":
        return {"compression": "gzip", "compression_opts": one.options[0]}
    if one.name == "szip":
        return {"compression": "szip", "compression_opts": one.options}
    if one.name == "lzf":
        return {"compression": "lzf"}
    return {"compression": one.filter_id, "compression_opts": one.cd_values}


def _netcdf_options(pipeline: Pipeline) -> dict[str, object] | None:
    """Give the keywords of netCDF4's createVariable; None for what they cannot say."""
    names = [one.name for one in pipeline.filters]
    kept = [name for name in names if name != "fletcher32"]
    if kept not in ([], ["deflate"], ["shuffle", "deflate"]):
        return None
    options: dict[str, object] = {}
    if kept:
        level = pipeline.filters[names.index("deflate")].options[0]
        if level == 0:  # to netCDF4, no filter at all
            return None
        options = {"compression": "zlib", "complevel": level, "shuffle": "shuffle" in kept}
    return options | ({"fletcher32": True} if "fletcher32" in names else {})


# --- C and Fortran ---------------------------------------------------------------------


def c_cache(nslots: int, nbytes: int) -> str:
    """Give the lines of C that make ``dapl``, which sets a chunk cache."""
    return (
        "hid_t dapl = H5Pcreate(H5P_DATASET_ACCESS);\n"
        f"H5Pset_chunk_cache(dapl, {nslots}, {nbytes}, H5D_CHUNK_CACHE_W0_DEFAULT);"
    )


def fortran_cache(nslots: int, nbytes: int) -> tuple[str, ...]:
    """Give the same calls in Fortran, which declares ``dapl`` and has ``error``."""
    return (
        "call h5pcreate_f(H5P_DATASET_ACCESS_F, dapl, error)",
        f"call h5pset_chunk_cache_f(dapl, {nslots}_size_t, {nbytes}_size_t, {DEFAULT_W0}, error)",
    )


def _c(written: _Written) -> str:
    chunks, step = written.chunks, written.step
    lines = [f"/* {_WRITER}: */", "hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE);"]
    if chunks is not None:
        listed = ", ".join(map(str, chunks))
        lines.append(f"H5Pset_chunk(dcpl, {len(chunks)}, (hsize_t[]){{{listed}}});")
    lines += map(_c_filter, written.pipeline.filters)
    if step is not None:
        lines += [f"/* {step}: */", c_cache(step.cache.nslots, step.cache.nbytes)]
    dapl = "H5P_DEFAULT" if step is None else "dapl"
    path = c_text(written.path)
    lines.append(
        f"hid_t dataset = H5Dcreate2(file, {path}, type, space, H5P_DEFAULT, dcpl, {dapl});"
    )
    return "\n".join(lines)


def _c_filter(one: Filter) -> str:
    if one.name == "deflate":
        return f"H5Pset_deflate(dcpl, {one.options[0]});"
    if one.name in ("shuffle", "fletcher32", "nbit"):
        return f"H5Pset_{one.name}(dcpl);"
    if one.name == "szip":
        return f"H5Pset_szip(dcpl, {one.cd_values[0]}, {one.cd_values[1]});"
    values = one.cd_values
    listed = f"(unsigned[]){{{', '.join(map(str, values))}}}" if values else "NULL"
    codec = CODECS.get(one.name)
    flag = "OPTIONAL" if codec is None or codec.optional else "MANDATORY"
    return f"H5Pset_filter(dcpl, {one.filter_id}, H5Z_FLAG_{flag}, {len(values)}, {listed});"


def _fortran(written: _Written) -> str | None:
    """Give the lines of Fortran, its dimensions in the reverse order; None for odd filters."""
    path, chunks, step = written.path, written.chunks, written.step
    calls = [_fortran_filter(one) for one in written.pipeline.filters]
    if None in calls or not path.isprintable() or not path.isascii():
        return None
    access = ""
    lines = [
        f"! {_WRITER}, which has file, type, space, dataset and error:",
        "block",
        "  integer(hid_t) :: dcpl, dapl",
        "  call h5pcreate_f(H5P_DATASET_CREATE_F, dcpl, error)",
    ]
    if chunks is not None:
        listed = ", ".join(f"{length}_hsize_t" for length in reversed(chunks))
        lines.append(f"  call h5pset_chunk_f(dcpl, {len(chunks)}, [{listed}], error)")
    lines += [f"  call {call}" for call in calls]
    if step is not None:
        access = ", dapl_id=dapl"
        cache = fortran_cache(step.cache.nslots, step.cache.nbytes)
        lines += [f"  ! {step}:", *(f"  {line}" for line in cache)]
    name = path.replace('"', '""')
    lines += [
        f'  call h5dcreate_f(file, "{name}", &',
        f"    type, space, dataset, error, dcpl{access})",
        "end block",
    ]
    return None if max(map(len, lines)) > _FORTRAN_WIDTH else "\n".join(lines)


def _fortran_filter(one: Filter) -> str | None:
    if one.name == "deflate":
        return f"h5pset_deflate_f(dcpl, {one.options[0]}, error)"
    if one.name in ("shuffle", "fletcher32", "nbit"):
        return f"h5pset_{one.name}_f(dcpl, error)"
    return None
