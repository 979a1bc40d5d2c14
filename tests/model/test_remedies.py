"""Do the lines that are offered do what they say, pasted as they are?"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chunkwise
from chunkwise.grammar import Pipeline
from chunkwise.names import decode_name
from chunkwise.remedy.fix import Fix, Tool
from chunkwise.remedy.records import Copy, Present, in_chunks
from tests.support.filtered import Case, create
from tests.support.processes import ran
from tests.support.remedied import (
    among,
    larger_cache,
    read_natively,
    read_once,
    rechunk,
    refilter,
    repack,
)
from tests.support.tools import paste as run
from tests.support.tools import require_tool

DATA = np.arange(2400, dtype="<i4").reshape(40, 60)
# Names that shells, Python, C and the tools' own little languages read differently.
ODD_NAMES = [
    "odd name", "it's", 'say "hi"', "a$b", "back\\slash", "é", " lead", "star*", "new\nline",
    "-dash", "a=b", "[1]", "why??=",
]  # fmt: skip


# Filters of `make_netcdf`.
NETCDF = "shuffle+deflate:2"


def text(fixes: tuple[Fix, ...], tool: Tool) -> str:
    (found,) = [fix.text for fix in fixes if fix.tool == tool]
    return found


def tools(fixes: tuple[Fix, ...]) -> list[str]:
    return [fix.tool for fix in fixes]


def paste(command: str, folder: Path) -> Path:
    """Run a command as a user's shell would, and give the file that it made."""
    before = set(folder.iterdir())
    run(command, folder)
    (made,) = set(folder.iterdir()) - before
    return made


def stored(path: Path, name: str) -> tuple[tuple[int, ...] | None, str]:
    """Chunks and filters of a dataset, once its values were seen to be the same."""
    with h5py.File(path) as file:
        dataset = file[name]
        assert np.array_equal(dataset[...], DATA)
        return dataset.chunks, str(Pipeline.from_dcpl(dataset.id.get_create_plist()))


def make(path: Path, name: str = "t", filters: str = "none") -> Path:
    dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    dcpl.set_chunk((40, 60))
    Pipeline.parse(filters).apply(dcpl)
    with h5py.File(path, "w") as file:
        file.create_dataset(name, data=DATA, dcpl=dcpl)
    return path


def make_netcdf(path: Path, *names: str) -> Path:
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("x", 40)
        file.createDimension("y", 60)
        for name in names:
            variable = file.createVariable(
                name, "i4", ("x", "y"), compression="zlib", complevel=2, chunksizes=(40, 60)
            )
            variable[:] = DATA
    return path


def execute(lines: str, **names: Any) -> dict[str, Any]:
    scope = {"h5py": h5py, "netCDF4": netCDF4, **names}
    exec(lines, scope)
    return scope


# --- a larger cache --------------------------------------------------------------------


def test_larger_cache_in_h5py(tmp_path: Path) -> None:
    path = make(tmp_path / 'it\'s "a" b.h5', "g/t u")
    scope = execute(text(larger_cache(str(path), "/g/t u", 3 << 20, 1009), "h5py"))
    cache = scope["dataset"].id.get_access_plist().get_chunk_cache()
    assert cache[:2] == (1009, 3 << 20)
    assert np.array_equal(scope["dataset"], DATA)
    scope["file"].close()


@pytest.mark.parametrize("name", ["t", "g/t", "g h/it's"])
def test_larger_cache_in_netcdf4(tmp_path: Path, name: str) -> None:
    path = make_netcdf(tmp_path / "a b.nc", name)
    scope = execute(text(larger_cache(str(path), name, 3 << 20, 1009), "netCDF4"))
    nbytes, nelems, preemption = scope["variable"].get_var_chunk_cache()
    assert (nbytes, nelems, preemption) == (3 << 20, 1009, 0.75)
    assert np.array_equal(scope["variable"], DATA)


def test_larger_cache_in_c() -> None:
    lines = text(larger_cache('a"\\.h5', decode_name(b"/n\n\xff?"), 3 << 20, 1009), "C")
    assert "H5Pset_chunk_cache(dapl, 1009, 3145728, H5D_CHUNK_CACHE_W0_DEFAULT);" in lines
    assert r'H5Fopen("a\042\134.h5", H5F_ACC_RDONLY, H5P_DEFAULT);' in lines
    assert lines.endswith(r'H5Dopen2(file, "/n\012\377\077", dapl);')


@pytest.mark.parametrize("name", ["/ lead", "/trail ", "/new\nline", "/-x", decode_name(b"/\xff")])
def test_no_netcdf4_where_netcdf_has_no_such_name(name: str) -> None:
    assert set(tools(larger_cache("a.h5", name, 1, 1))) <= {"h5py", "C", "Fortran"}
    assert "netCDF4" not in tools(rechunk("a.nc", name, (1,), "none"))
    assert "nccopy" not in tools(rechunk("a.nc", name, (1,), "none"))


def test_names_that_are_not_text(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    name = b"\xff\xfe"
    with h5py.File(path, "w") as file:
        file[name] = DATA
    fixes = larger_cache(str(path), "/" + decode_name(name), 1 << 20, 521)
    scope = execute(text(fixes, "h5py"))
    assert np.array_equal(scope["dataset"], DATA)
    scope["file"].close()
    both: tuple[Tool, ...] = ("chunkwise", "h5repack")
    for tool in both:
        made = paste(text(rechunk("a.h5", decode_name(name), (10, 20), "none"), tool), tmp_path)
        with h5py.File(made) as file:
            assert file[name].chunks == (10, 20)
        made.unlink()


# --- other chunks ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["t", "g/t", *ODD_NAMES])
def test_commands_take_any_name(tmp_path: Path, name: str) -> None:
    make(tmp_path / "o 'd.h5", name, "shuffle+deflate:2")
    file, now = "o 'd.h5", "shuffle+deflate:2"
    made = paste(text(rechunk(file, name, (10, 20), now), "chunkwise"), tmp_path)
    assert stored(made, name) == ((10, 20), now)
    made.unlink()
    made = paste(text(refilter(file, name, "shuffle+deflate:3", stored=now), "h5repack"), tmp_path)
    assert stored(made, name) == ((40, 60), "shuffle+deflate:3")


@pytest.mark.parametrize(("name", "like"), [("star*", "stars"), ("why?", "whys"), ("a[b]", "ab")])
def test_a_name_that_could_be_a_pattern_means_itself_alone(
    tmp_path: Path, name: str, like: str
) -> None:
    make(tmp_path / "a.h5", name)
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        file.create_dataset(like, data=DATA, chunks=(40, 60))
    made = paste(text(rechunk("a.h5", name, (10, 20), "none"), "chunkwise"), tmp_path)
    assert stored(made, name) == ((10, 20), "none")
    assert stored(made, like) == ((40, 60), "none")


@pytest.mark.parametrize("filters", ["bitshuffle:lz4", "lzf", "shuffle+zstd:3", "nbit"])
def test_chunkwise_keeps_filters_that_h5repack_lacks(tmp_path: Path, filters: str) -> None:
    make(tmp_path / "a.h5", "t", filters)
    made = paste(text(rechunk("a.h5", "t", (10, 20), filters), "chunkwise"), tmp_path)
    assert stored(made, "t") == ((10, 20), filters)


@pytest.mark.parametrize(
    ("tool", "filters"),
    [
        *(("chunkwise", one) for one in ("none", "deflate:1", "shuffle+deflate:4+fletcher32")),
        *(("h5repack", one) for one in ("none", "deflate:1", "fletcher32", "shuffle+szip:nn:8")),
    ],
)
def test_other_filters_replace_those_that_were_there(
    tmp_path: Path, tool: Tool, filters: str
) -> None:
    make(tmp_path / "-a.h5", "t", "shuffle+deflate:9")
    made = paste(text(refilter("-a.h5", "t", filters, stored="shuffle+deflate:9"), tool), tmp_path)
    assert stored(made, "t") == ((40, 60), filters)


def test_refilter_of_contiguous_data_by_chunkwise(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["t"] = DATA
    fixes = refilter("a.h5", "t", "deflate:1", chunks=(10, 20))
    assert stored(paste(text(fixes, "chunkwise"), tmp_path), "t") == ((10, 20), "deflate:1")


@pytest.mark.parametrize("tool", ["chunkwise", "h5repack", "nccopy"])
def test_one_command_for_all_that_share_a_finding(tmp_path: Path, tool: Tool) -> None:
    make_netcdf(tmp_path / "a.nc", "v", "w", "other")
    datasets = [
        one
        for name, chunks in (("v", (10, 20)), ("w", (20, 10)))
        for copy in in_chunks("a.nc", name, chunks, Present("shuffle+deflate:2"))
        for one in copy.datasets
    ]
    made = paste(text(among([Copy("a.nc", tuple(datasets))], ()), tool), tmp_path)
    for name, chunks in (("v", (10, 20)), ("w", (20, 10)), ("other", (40, 60))):
        assert stored(made, name) == (chunks, "shuffle+deflate:2")


@pytest.mark.parametrize("name", ["v", "odd name", "it's", "sum(x)", "a.b", "é"])
def test_rechunk_by_nccopy(tmp_path: Path, name: str) -> None:
    make_netcdf(tmp_path / "a b.nc", name, "other")
    fixes = rechunk("a b.nc", name, (10, 20), "shuffle+deflate:2")
    assert tools(fixes)[:3] == ["chunkwise", "nccopy", "h5repack"]
    made = paste(text(fixes, "nccopy"), tmp_path)
    assert stored(made, name) == ((10, 20), "shuffle+deflate:2")
    assert stored(made, "other") == ((40, 60), "shuffle+deflate:2")


def test_nccopy_reads_what_h5py_wrote(tmp_path: Path) -> None:
    make(tmp_path / "a.nc")
    made = paste(text(rechunk("a.nc", "t", (10, 20), "none"), "nccopy"), tmp_path)
    assert stored(made, "t") == ((10, 20), "none")


@pytest.mark.parametrize(
    ("file", "name", "now", "filters", "offered"),
    [
        # Other chunks, under the same filters
        ("a.h5", "t", "none", None, ["h5repack"]),
        ("a.nc", "g/t", "none", None, ["h5repack"]),
        ("a.nc4", "t", "szip:nn:8", None, ["h5repack"]),
        ("a.h5", "t", "bitshuffle:lz4", None, []),
        ("a.nc", "t", "lzf", None, []),
        ("a.nc", "a:b", "none", None, []),
        ("a.nc", "a,b", "none", None, []),
        # Other filters
        ("a.h5", "t", "none", "deflate:1", ["h5repack"]),
        ("a.h5", "t", "bitshuffle:lz4", "deflate:1", []),
        ("a.h5", "t", "none", "bitshuffle:lz4", []),
        ("a.nc", "t", "zstd:3", "deflate:1", []),
        ("a.nc", "t", "szip:nn:8", "deflate:1", ["h5repack"]),
        ("a.nc", "t", "none", "deflate:1+fletcher32", ["h5repack"]),
        ("a.nc", "g/t", "none", "deflate:1", ["h5repack"]),
        ("a.nc", "odd name", "deflate:1", "none", ["h5repack"]),
        ("a.h5", "a:b", "none", "deflate:1", []),
    ],
)
def test_commands_that_are_offered(
    file: str, name: str, now: str, filters: str | None, offered: list[str]
) -> None:
    if filters is None:
        fixes = rechunk(file, name, (10, 20), now)
    else:
        fixes = refilter(file, name, filters, stored=now)
    assert [tool for tool in tools(fixes) if tool in ("h5repack", "nccopy")] == offered


WRITTEN = [
    "none", "shuffle", "deflate:0", "shuffle+deflate:5", "fletcher32",
    "shuffle+deflate:1+fletcher32", "szip:nn:16", "lzf", "scaleoffset:in:0+deflate:1",
    "bitshuffle:lz4", "shuffle+zstd:5",
]  # fmt: skip


@pytest.mark.parametrize("filters", WRITTEN)
def test_what_a_writer_with_h5py_does(tmp_path: Path, filters: str) -> None:
    lines = text(rechunk("a.h5", "/g/it's", (10, 20), filters), "h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        execute(lines, file=file, data=DATA)
    assert stored(tmp_path / "a.h5", "g/it's") == ((10, 20), filters)


IN_NETCDF = [
    "none", "shuffle+deflate:5", "deflate:1", "fletcher32", "shuffle+deflate:1+fletcher32",
]  # fmt: skip


@pytest.mark.parametrize("filters", IN_NETCDF)
def test_what_a_writer_with_netcdf4_does(tmp_path: Path, filters: str) -> None:
    lines = text(rechunk("a.nc", "/g/it's", (10, 20), filters), "netCDF4")
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as file:
        file.createDimension("x", 40)
        file.createDimension("y", 60)
        execute(lines, file=file, datatype="i4", dimensions=("x", "y"))
        file["/g/it's"][:] = DATA
    chunks, pipeline = stored(tmp_path / "a.nc", "g/it's")
    assert chunks == (10, 20)
    # netCDF puts fletcher32 first.
    assert set(pipeline.split("+")) == set(filters.split("+"))


def test_netcdf4_gets_the_cache_that_a_step_needs(tmp_path: Path) -> None:
    """Chunks of 20 steps of 1 MiB: more than netCDF-C's own cache of some versions."""
    shape, chunks = (40, 512, 512), (20, 256, 256)
    fixes = rechunk("a.nc", "t", chunks, "deflate:1", shape=shape, itemsize=4)
    (lines,) = [fix.text for fix in fixes if fix.tool == "netCDF4"]
    needed = 20 * 512 * 512 * 4
    assert f"chunk_cache={needed}" in lines
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as file:
        for name, length in zip("tyx", (None, *shape[1:]), strict=True):
            file.createDimension(name, length)
        execute(lines, file=file, datatype="f4", dimensions=tuple("tyx"))
        assert file["t"].get_var_chunk_cache()[0] == needed
        for step in range(40):
            file["t"][step] = step
    with h5py.File(tmp_path / "a.nc") as file:
        assert (file["t"].chunks, file["t"].compression) == (chunks, "gzip")
        assert (file["t"][...] == np.arange(40)[:, None, None]).all()


@pytest.mark.parametrize(
    ("tool", "filters"),
    [
        *(
            ("netCDF4", one)
            for one in ("shuffle", "deflate:0", "bitshuffle:lz4", "nbit+deflate:1")
        ),
        *(("h5py", one) for one in ("nbit", "deflate:1+shuffle", "scaleoffset:in:0+fletcher32")),
    ],
)
def test_no_line_for_a_pipeline_that_a_library_cannot_say(tool: str, filters: str) -> None:
    assert tool not in tools(rechunk("a.nc", "t", (10, 20), filters))


def test_what_a_writer_in_c_does() -> None:
    lines = text(rechunk("a.h5", "t", (10, 20), "shuffle+deflate:5+bitshuffle:lz4"), "C")
    calls = [
        "H5Pcreate(H5P_DATASET_CREATE);",
        "H5Pset_chunk(dcpl, 2, (hsize_t[]){10, 20});",
        "H5Pset_shuffle(dcpl);",
        "H5Pset_deflate(dcpl, 5);",
        "H5Pset_filter(dcpl, 32008, H5Z_FLAG_OPTIONAL, 2, (unsigned[]){0, 2});",
        'H5Dcreate2(file, "/t", type, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);',
    ]
    places = [lines.index(call) for call in calls]
    assert places == sorted(places)


# --- other filters ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("filters", "others"), [("shuffle+deflate:7", "shuffle+deflate:7"), ("none", NETCDF)]
)
def test_nccopy_changes_the_filters_of_all_variables_or_removes_those_of_one(
    tmp_path: Path, filters: str, others: str
) -> None:
    make_netcdf(tmp_path / "a b.nc", "v", "other")
    made = paste(text(refilter("a b.nc", "v", filters, stored=NETCDF), "nccopy"), tmp_path)
    assert stored(made, "v") == ((40, 60), filters)
    assert stored(made, "other") == ((40, 60), others)


def test_a_writer_keeps_the_chunks_if_they_are_known(tmp_path: Path) -> None:
    lines = text(refilter("a.h5", "t", "shuffle+deflate:1", present=(20, 30)), "h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        execute(lines, file=file, data=DATA)
    assert stored(tmp_path / "a.h5", "t") == ((20, 30), "shuffle+deflate:1")
    assert "chunks=" not in text(refilter("a.h5", "t", "deflate:1"), "h5py")
    assert "H5Pset_chunk" not in text(refilter("a.h5", "t", "deflate:1"), "C")


# --- a plain copy ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.h5", "a b.h5", "-a.h5", "it's.h5", "new\nline.h5"])
def test_repack(tmp_path: Path, name: str) -> None:
    make(tmp_path / name, "t", "deflate:1")
    for fix in repack(name):
        made = paste(fix.text, tmp_path)
        assert stored(made, "t") == ((40, 60), "deflate:1")
        made.unlink()


# --- the rest of the file --------------------------------------------------------------


def test_what_h5repack_does_to_a_dataset_whose_filter_it_lacks(tmp_path: Path) -> None:
    path = make(tmp_path / "a.h5", "t", "deflate:1")
    with h5py.File(path, "a") as file:
        other = create(file, "other", "i4", (40, 60), (40, 60), [Case(32123)])
        other.id.write_direct_chunk((0, 0), b"x")
    filters = ["deflate:1", "filter-32123"]
    offers: tuple[Callable[..., tuple[Fix, ...]], ...] = (
        partial(rechunk, "a.h5", "t", (10, 20), "deflate:1"),
        partial(refilter, "a.h5", "t", "none"),
    )
    for offered in offers:
        safe = offered(others=filters)
        (left_out,) = [fix for fix in offered(others=filters[:1]) if fix not in safe]
        assert left_out.tool == "h5repack"
        made = paste(left_out.text, tmp_path)
        with h5py.File(made) as copy:
            assert list(copy) == ["t"]
        made.unlink()
    for fix in repack("a.h5"):
        made = paste(fix.text, tmp_path)
        with h5py.File(made) as copy:
            assert copy["other"].id.read_direct_chunk((0, 0)) == (0, b"x")
        made.unlink()


def test_nccopy_writes_nothing_where_it_lacks_a_filter() -> None:
    for other, offered in (("shuffle+deflate:1", True), ("bitshuffle:lz4", False)):
        fixes = rechunk("a.nc", "t", (1,), "none", others=("none", other))
        assert ("nccopy" in tools(fixes)) == offered


# --- any name --------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.text(st.characters(exclude_characters="/\0", codec="utf-8"), min_size=1, max_size=8))
@pytest.mark.slow
def test_any_name_is_one_word_of_python(name: str) -> None:
    """A name comes out of the lines as it went in, and never ends them early."""
    opened: list[tuple[str, object]] = []

    class Recorder:
        def File(self, file: str, **_: object) -> Recorder:  # noqa: N802
            opened.append(("file", file))
            return self

        def __getitem__(self, path: object) -> None:
            opened.append(("dataset", path))

    exec(text(larger_cache(name, name, 1, 1), "h5py"), {"h5py": Recorder()})
    assert opened == [("file", name), ("dataset", "/" + name)]


# --- C -----------------------------------------------------------------------------------

PIPELINES = ["none", "shuffle+deflate:5+fletcher32", "szip:nn:32", "nbit", "lzf", "bitshuffle:lz4"]


def test_the_lines_for_c_compile(tmp_path: Path) -> None:
    # A writer has these already.
    have = "hid_t file = 0, type = 0, space = 0;\n"
    bodies = []
    for name in ("t", *ODD_NAMES):
        bodies.append(text(larger_cache(f"{name}.h5", name, 3 << 20, 1009), "C"))
        for one in PIPELINES:
            bodies.append(have + text(rechunk("a.h5", name, (10, 20), one), "C"))
            bodies.append(have + text(refilter("a.h5", name, one, present=(10, 20)), "C"))
    functions = (f"void f{i}(void) {{\n{body}\n}}\n" for i, body in enumerate(bodies))
    source = tmp_path / "fixes.c"
    source.write_text("#include <hdf5.h>\n" + "".join(functions))
    options = ["-std=c99", "-Wall", "-Werror", "-Wno-unused-variable"]
    compiled = ran([require_tool("h5cc"), *options, "-c", source], cwd=tmp_path)
    assert compiled.returncode == 0, compiled.stderr


# --- reading as it is ------------------------------------------------------------------


def test_reading_all_of_it_at_once(tmp_path: Path) -> None:
    path = make(tmp_path / "a file.h5", "it's", "shuffle+deflate:4")
    names: dict[str, Any] = {}
    (fix,) = read_once(str(path), "it's")
    exec(fix.text, {"h5py": h5py}, names)
    assert np.array_equal(names["array"], DATA)


def test_reading_through_chunkwise(tmp_path: Path) -> None:
    path = make(tmp_path / "a file.h5", "it's", "shuffle+deflate:4")
    (fix,) = read_natively(str(path), "it's", "shuffle+deflate:4")
    dataset = eval(fix.text, {"chunkwise": chunkwise})
    assert np.array_equal(dataset[...], DATA)
    assert dataset.explain()["path"] == "chunked"


def test_chunkwise_is_offered_only_for_filters_of_its_own() -> None:
    assert read_natively("a.h5", "x", "none")
    assert read_natively("a.h5", "x", "shuffle+zstd:3")
    assert not read_natively("a.h5", "x", "blosc:snappy:5")
    assert read_natively("a.h5", "x", "shuffle+blosc2")


def test_nccopy_takes_no_chunk_longer_than_the_dimension() -> None:
    assert "nccopy" in tools(rechunk("a.nc", "time", (1,), "none", shape=(1,)))
    assert "nccopy" not in tools(rechunk("a.nc", "time", (1024,), "none", shape=(1,)))
