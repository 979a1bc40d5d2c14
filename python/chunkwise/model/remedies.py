"""Which lines can be pasted to give a dataset another cache, other chunks or filters?

Commands copy the file and are complete.  Lines for a program come in two
kinds.  Lines that read open the file themselves.  Lines that write belong where the
program creates the dataset, and use its own names for its own values (``file``,
``data``, ``datatype``, ``dimensions``; in C ``file``, ``type``, ``space``).

Names are quoted for the language of the line.  If a tool cannot express something
(a path with a comma for h5repack, a bitshuffle filter for netCDF4), there is no line for it.
"""

from __future__ import annotations

import importlib.util
import math
import operator
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final

from chunkwise import _native
from chunkwise.grammar import Filter, Pipeline, format_size
from chunkwise.grammar.codecs import CODECS
from chunkwise.grammar.parameters import carried
from chunkwise.model.chunk_cache import hash_slots
from chunkwise.model.fix import Fix, Tool
from chunkwise.model.layout import AS_IT_IS, DatasetLayout, FileLayout
from chunkwise.model.readers import LIBHDF5_1, LIBHDF5_2
from chunkwise.names import octal, shell_word

# What h5repack and nccopy have in every build.  With any other filter, h5repack may
# write an empty dataset or file and still end with exit code 0.
H5REPACK_FILTERS: Final = frozenset(
    {"deflate", "shuffle", "fletcher32", "szip", "nbit", "scaleoffset"}
)
NCCOPY_FILTERS: Final = frozenset({"deflate", "shuffle", "fletcher32"})
# libhdf5's default preemption policy (H5Pset_cache), in every version.
DEFAULT_W0: Final = 0.75
# netCDF-C's rule for names, as far as HDF5 allows others (netCDF User's Guide, "Name").
_FIRST: Final = r"[A-Za-z0-9_\u0080-\ud7ff\ue000-\U0010ffff]"
_LATER: Final = r"[^\x00-\x1f/\x7f\ud800-\udfff]"
_NETCDF_NAME: Final = re.compile(rf"{_FIRST}(?:{_LATER}*(?! ){_LATER})?")
# nccopy reads -F differently for other names unless they are escaped.
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9_]+", re.ASCII)
_NATIVE: Final = tuple(_native.filters().values())
_DECODED: Final = frozenset(one["name"] for one in _NATIVE if one["decoded"])
ENCODED_FILTERS: Final = frozenset(one["name"] for one in _NATIVE if one["encoded"])
# What writers have by default, at least and at most; netCDF-C since 4.9 at least.
LIBHDF5_SMALLEST_NBYTES: Final = LIBHDF5_1.cache_nbytes
LIBHDF5_LARGEST_NBYTES: Final = LIBHDF5_2.cache_nbytes
NETCDF_C_SMALLEST_NBYTES: Final = 16 << 20
# Of a line of Fortran (2018: 132 characters).
_FORTRAN_WIDTH: Final = 132
_WRITER: Final = "in the program that writes it"
# A question mark may begin a trigraph.
_C_SPECIAL: Final = '"\\?'


def larger_cache(
    file: str, dataset: str, nbytes: int, nslots: int, *, filters: str = "none"
) -> tuple[Fix, ...]:
    """Give the lines that open a dataset with another chunk cache."""
    path = _path(dataset)
    fixes = [
        Fix(
            "h5py",
            f"file = h5py.File({file!r}, rdcc_nbytes={nbytes}, rdcc_nslots={nslots})\n"
            f"dataset = file[{python_path(path)}]",
        )
    ]
    if "lzf" in _names(Pipeline.parse(filters)):
        return tuple(fixes)
    if _in_netcdf(path):
        fixes.append(
            Fix(
                "netCDF4",
                f"variable = netCDF4.Dataset({file!r})[{path!r}]\n"
                f"variable.set_var_chunk_cache({nbytes}, {nslots}, {DEFAULT_W0})",
            )
        )
    fixes.append(
        Fix(
            "C",
            "hid_t dapl = H5Pcreate(H5P_DATASET_ACCESS);\n"
            f"H5Pset_chunk_cache(dapl, {nslots}, {nbytes}, H5D_CHUNK_CACHE_W0_DEFAULT);\n"
            f"hid_t file = H5Fopen({_c(file)}, H5F_ACC_RDONLY, H5P_DEFAULT);\n"
            f"hid_t dataset = H5Dopen2(file, {_c(path)}, dapl);",
        )
    )
    return tuple(fixes)


def rechunk(
    file: str,
    dataset: str,
    chunks: Sequence[int],
    filters: str,
    *,
    shape: Sequence[int] | None = None,
    itemsize: int | None = None,
) -> tuple[Fix, ...]:
    """Give the lines that store a dataset in other chunks, under the filters that it has."""
    path = _path(dataset)
    chunks = tuple(map(int, chunks))
    own = Pipeline.parse(filters)
    pipeline = carried(own, math.prod(chunks))
    if isinstance(pipeline, str):
        return ()
    if pipeline != own:
        found = refilter(
            file, dataset, pipeline, stored=filters, chunks=chunks, chunked=False,
            shape=shape, itemsize=itemsize,
        )  # fmt: skip
        return tuple(replace(fix, rechunks=True) for fix in found)
    copy = copy_name(file)
    spelled = "x".join(map(str, chunks))
    fixes = _rules(DatasetLayout(path, chunks), {*_names(pipeline)}, file, copy)
    within = shape is None or all(c <= n for c, n in zip(chunks, shape, strict=True))
    if within and in_netcdf_root(file, path) and _names(pipeline) <= NCCOPY_FILTERS:
        lengths = f"{path[1:]}:{','.join(map(str, chunks))}"
        # Without -M 0 nccopy ignores chunks of less than 8 KiB.
        fixes.append(
            _command("nccopy", "-M 0", file, copy, of_dataset=f"-c {shell_word(lengths)}")
        )
    if can_repack(filters) and not set(path) & set(":,"):
        layout = f"{path}:CHUNK={spelled}"
        fixes.append(_command("h5repack", "", file, copy, of_dataset=f"-l {shell_word(layout)}"))
    fixes += _writer(path, pipeline, chunks, shape, itemsize)
    return tuple(replace(fix, rechunks=True) for fix in fixes)


def refilter(
    file: str,
    dataset: str,
    filters: Pipeline | str,
    *,
    stored: str = "none",
    chunks: Sequence[int] | None = None,
    chunked: bool = True,
    shape: Sequence[int] | None = None,
    itemsize: int | None = None,
) -> tuple[Fix, ...]:
    """Give the lines that store a dataset under other filters."""
    path = _path(dataset)
    pipeline = filters if isinstance(filters, Pipeline) else Pipeline.parse(filters)
    copy = repacked_name(file)
    sides = None if chunks is None or chunked else tuple(map(int, chunks))
    layout = DatasetLayout(path, sides, str(pipeline))
    fixes = _rules(layout, _names(pipeline) | _names(Pipeline.parse(stored)), file, copy)
    if in_netcdf_root(file, path) and _names(Pipeline.parse(stored)) <= NCCOPY_FILTERS:
        words = pipeline.nccopy() if pipeline.filters else _nccopy_none(path)
        lengths = ""
        if sides is not None:
            # Else nccopy would choose chunks itself, which may outgrow a cache.
            spelled = ",".join(map(str, sides))
            lengths = f"-c {shell_word(f'{path[1:]}:{spelled}')}"
            words = words and f"-M 0 {words}"
        if words is not None:
            fixes.append(_command("nccopy", words, file, copy, of_dataset=lengths))
    words = pipeline.h5repack(path)
    if words is not None and sides is not None:
        spelled = "x".join(map(str, sides))
        words = f"-l {shlex.quote(f'{path}:CHUNK={spelled}')} {words}"
    if words is not None and can_repack(stored) and can_repack(str(pipeline)):
        # Quoted by the grammar, but not for names that a terminal would not show.
        words = " ".join(map(shell_word, shlex.split(words)))
        fixes.append(_command("h5repack", "", file, copy, of_dataset=words))
    kept = None if chunks is None else tuple(map(int, chunks))
    return (*fixes, *_writer(path, pipeline, kept, shape, itemsize))


def encode_anew(file: str, dataset: str, filters: str) -> tuple[Fix, ...]:
    """Give the command that applies the filters of a dataset to the chunks that lack them.

    None if chunkwise repack would leave it to libhdf5, which may leave filters out again.
    """
    names = _names(Pipeline.parse(filters))
    if not names <= ENCODED_FILTERS:
        return ()
    layout = DatasetLayout(_path(dataset), None, filters)
    return tuple(_rules(layout, names, file, repacked_name(file)))


def read_once(file: str, dataset: str) -> tuple[Fix, ...]:
    """Give the line that reads a dataset as a whole, which decodes each chunk once."""
    opened = f"h5py.File({file!r})[{python_path(_path(dataset))}]"
    return (Fix("h5py", f"array = {opened}[...]  # once; then index the array"),)


def read_natively(file: str, dataset: str, filters: str) -> tuple[Fix, ...]:
    """Return the line that reads through chunkwise, if it decodes the filters itself."""
    pipeline = Pipeline.parse(filters)
    if not _names(pipeline) <= _DECODED or any(
        "snappy" in one.options for one in pipeline.filters
    ):
        return ()
    return (Fix("chunkwise", f"chunkwise.open({file!r})[{_path(dataset)!r}]"),)


def repack(
    file: str, layout: FileLayout = AS_IT_IS, *, by_h5repack: str | None = None
) -> tuple[Fix, ...]:
    """Give the commands that copy a file, the chunks of each dataset in order.

    Both take chunks as they are stored: filters that they lack do no harm here.
    """
    copy = repacked_name(file)
    return (
        by_chunkwise(file, copy, layout),
        _command("h5repack", by_h5repack or "", file, copy),
    )


def merge(file: str) -> tuple[Fix, ...]:
    """Give the command that makes virtual and external datasets real data, in a copy."""
    return (by_chunkwise(file, repacked_name(file), FileLayout(merge=True)),)


def follow_writer(file: str) -> Fix:
    """Give the line that reads a file along with its writer (SWMR)."""
    return Fix("h5py", f"file = h5py.File({file!r}, 'r', swmr=True)")


def verify(file: str) -> Fix:
    """Return the command that says what of a file is damaged, element by element."""
    return Fix("chunkwise", f"chunkwise verify {shell_file(file)}")


def salvage(file: str) -> Fix:
    """Return the command that saves what is left of a damaged file."""
    source = Path(file)
    out = source.with_name(f"{source.stem}_salvaged{source.suffix}").name
    return Fix("chunkwise", f"chunkwise verify {shell_file(file)} --salvage {shell_file(out)}")


def save_unclosed(file: str) -> tuple[Fix, ...]:
    """Return the commands that copy a file whose writer was killed, so that the copy opens.

    Neither changes the file itself.  ``h5clear -s`` alone would cut it where its superblock
    ends it, which a SWMR writer does not keep up to date; ``--increment=0`` puts that end
    where the file ends first.
    """
    source = Path(file)
    cleared = shell_file(source.with_name(f"{source.stem}_cleared{source.suffix}").name)
    return (
        by_chunkwise(file, repacked_name(file), AS_IT_IS),
        Fix(
            "h5clear",
            f"cp {shell_file(file)} {cleared} && h5clear -s --increment=0 {cleared}",
        ),
    )


def can_repack(filters: str) -> bool:
    """Whether `h5repack` can be trusted with a pipeline such as ``shuffle+deflate:4``."""
    return {one.split(":")[0] for one in filters.split("+")} <= {*H5REPACK_FILTERS, "none"}


def keeps_all_data(fix: Fix, filters: Iterable[str]) -> bool:
    """Whether a command can be trusted with all datasets of its file, not only its own.

    With ``-l`` or ``-f``, h5repack leaves out every dataset whose filters it lacks, says
    so in a warning, and ends with exit code 0 (seen with 1.10.8).  A copy without options
    takes stored chunks as they are.  nccopy writes nothing at all and says so.
    """
    changes = fix.tool == "nccopy" or fix.text.startswith(("h5repack -l ", "h5repack -f "))
    return not changes or all(map(can_repack, set(filters)))


# --- commands --------------------------------------------------------------------------


def _command(tool: Tool, options: str, file: str, copy: str, *, of_dataset: str = "") -> Fix:
    words = (tool, options, of_dataset, shell_file(file), shell_file(copy))
    return Fix(tool, " ".join(filter(None, words)), options=of_dataset)


def _rules(one: DatasetLayout, filters: set[str], file: str, copy: str) -> list[Fix]:
    """Give the command of chunkwise repack; none for filters that this machine lacks."""
    if not all(map(_can_encode, filters)):
        return []
    layout = FileLayout((one,))
    return [replace(by_chunkwise(file, copy, layout), options=layout.options())]


def by_chunkwise(file: str, copy: str, layout: FileLayout) -> Fix:
    """Give the command of chunkwise repack that copies a file in another layout."""
    words = f"repack {layout.options()}".rstrip()
    return replace(_command("chunkwise", words, file, copy), layout=layout)


@cache
def _can_encode(name: str) -> bool:
    """Whether chunkwise repack can write a filter here."""
    if name in H5REPACK_FILTERS or name == "lzf":
        return True
    return name in ENCODED_FILTERS and importlib.util.find_spec("hdf5plugin") is not None


def shell_file(file: str) -> str:
    """Quote a file's name for a shell; one that begins with a dash is no option."""
    return shell_word(f"./{file}" if file.startswith("-") else file)


def copy_name(file: str) -> str:
    """Return the name of a copy in other chunks."""
    source = Path(file)
    return source.with_name(f"{source.stem}_rechunked{source.suffix}").name


def repacked_name(file: str) -> str:
    """Return the name of a copy under other filters, or as it is."""
    source = Path(file)
    return source.with_name(f"{source.stem}_repacked{source.suffix}").name


def _nccopy_none(path: str) -> str | None:
    return f"-F {path[1:]},none" if _PLAIN_NAME.fullmatch(path[1:]) else None


def in_netcdf_root(file: str, path: str) -> bool:
    """Whether nccopy can take a dataset, which only works for a netCDF file."""
    fits = Path(file).suffix in (".nc", ".nc4") and path.count("/") == 1
    return fits and _in_netcdf(path) and not set(path) & set(":,")


def _in_netcdf(path: str) -> bool:
    return all(_NETCDF_NAME.fullmatch(name) for name in path[1:].split("/"))


def _names(pipeline: Pipeline) -> set[str]:
    return {one.name for one in pipeline.filters}


# --- what a writer does ----------------------------------------------------------------


def _writer(
    path: str,
    pipeline: Pipeline,
    chunks: tuple[int, ...] | None,
    shape: Sequence[int] | None,
    itemsize: int | None,
) -> list[Fix]:
    fixes = []
    step = None if chunks is None else _step(chunks, shape, itemsize)
    h5py_options = _h5py_options(pipeline)
    if h5py_options is not None:
        layout: dict[str, object] = {} if chunks is None else {"chunks": chunks}
        if chunks is not None and shape is not None and any(map(operator.gt, chunks, shape)):
            # h5py takes chunks longer than the data only if it can grow.
            pairs = zip(shape, chunks, strict=True)
            layout["maxshape"] = tuple(None if c > n else n for n, c in pairs)
        options = {**layout, **h5py_options}
        arguments = ", ".join([python_path(path), "data=data", *_keywords(options)])
        plugin = "import hdf5plugin\n" if any(map(_is_plugin, pipeline.filters)) else ""
        lines = f"# {_WRITER}:\n{plugin}file.create_dataset({arguments})"
        fixes.append(Fix("h5py", lines, writing=True))
    of_netcdf = netcdf_options(pipeline)
    if of_netcdf is not None and _in_netcdf(path):
        options = {**({} if chunks is None else {"chunksizes": chunks}), **of_netcdf}
        if step is not None and step.nbytes > NETCDF_C_SMALLEST_NBYTES:
            options["chunk_cache"] = step.nbytes
        arguments = ", ".join([repr(path), "datatype", "dimensions", *_keywords(options)])
        line = f"# {_WRITER}:\nfile.createVariable({arguments})"
        fixes.append(Fix("netCDF4", line, writing=True))
    c_lines = [f"/* {_WRITER}: */", "hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE);"]
    if chunks is not None:
        listed = ", ".join(map(str, chunks))
        c_lines.append(f"H5Pset_chunk(dcpl, {len(chunks)}, (hsize_t[]){{{listed}}});")
    c_lines += map(_c_filter, pipeline.filters)
    dapl = "H5P_DEFAULT"
    if step is not None:
        dapl = "dapl"
        cache = f"{step.nslots}, {step.nbytes}, H5D_CHUNK_CACHE_W0_DEFAULT"
        c_lines += [
            f"/* {step}: */",
            "hid_t dapl = H5Pcreate(H5P_DATASET_ACCESS);",
            f"H5Pset_chunk_cache(dapl, {cache});",
        ]
    c_lines.append(
        f"hid_t dataset = H5Dcreate2(file, {_c(path)}, type, space, H5P_DEFAULT, dcpl, {dapl});"
    )
    fixes.append(Fix("C", "\n".join(c_lines), writing=True))
    fortran = _fortran(path, pipeline, chunks, step)
    return [*fixes, *([] if fortran is None else [Fix("Fortran", fortran, writing=True)])]


@dataclass(frozen=True)
class _Step:
    """What writing one step along the slowest dimension needs."""

    chunks: int  # How many chunks it touches, each in part
    nbytes: int  # The chunk cache that holds them until they are full
    nslots: int

    def __str__(self) -> str:
        touched = f"{self.chunks:,} chunk{'s' * (self.chunks != 1)}"
        return (
            f"Each step touches {touched}; this cache ({format_size(self.nbytes)} of memory) "
            "holds them until they are full, so that each is encoded once"
        )


def _step(
    chunks: tuple[int, ...], shape: Sequence[int] | None, itemsize: int | None
) -> _Step | None:
    """Return what a writer that writes step by step needs; None if it needs nothing."""
    if shape is None or itemsize is None or chunks[:1] in ((), (1,)):
        return None
    touched = math.prod(-(-n // c) for n, c in zip(shape[1:], chunks[1:], strict=True))
    nbytes = max(1, touched) * math.prod(chunks) * itemsize
    if nbytes <= LIBHDF5_SMALLEST_NBYTES // 2 and touched == 1:
        return None
    return _Step(touched, max(nbytes, LIBHDF5_LARGEST_NBYTES), hash_slots(max(1, touched)))


def _fortran(
    path: str, pipeline: Pipeline, chunks: tuple[int, ...] | None, step: _Step | None
) -> str | None:
    """Give the lines of Fortran, its dimensions in the reverse order; None for odd filters."""
    calls = [_fortran_filter(one) for one in pipeline.filters]
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
        lines += [
            f"  ! {step}:",
            "  call h5pcreate_f(H5P_DATASET_ACCESS_F, dapl, error)",
            f"  call h5pset_chunk_cache_f(dapl, {step.nslots}_size_t, {step.nbytes}_size_t, "
            f"{DEFAULT_W0}, error)",
        ]
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


def _is_plugin(one: Filter) -> bool:
    # Below 256 are HDF5's own filters; LZF comes with h5py.
    return one.filter_id >= 256 and one.name != "lzf"


def netcdf_options(pipeline: Pipeline) -> dict[str, object] | None:
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


# --- names -----------------------------------------------------------------------------


def _path(dataset: str) -> str:
    return "/" + dataset.strip("/")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def python_path(path: str) -> str:
    """Quote an HDF5 path for h5py, which takes bytes if a name is not UTF-8."""
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return repr(_bytes(path))
    return repr(path)


def _c(text: str) -> str:
    return f'"{octal(text, _C_SPECIAL)}"'
