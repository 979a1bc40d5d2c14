"""The grammar of filters: what is printed parses back, and says what the file has."""

import os
import sys
from pathlib import Path
from typing import Any

import h5py
import hdf5plugin
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunkwise.errors import UsageError
from chunkwise.grammar import Filter, Pipeline, parse_shape, parse_size
from tests.support.golden import assert_golden, refused
from tests.support.processes import ran

DATA = np.arange(100 * 200, dtype="f4").reshape(100, 200)


def options(*parts: Any) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.tuples(
        *(part if isinstance(part, st.SearchStrategy) else st.just(part) for part in parts)
    )


def prefixes(*parts: Any) -> st.SearchStrategy[tuple[Any, ...]]:
    """All of the options, or only the first few of them."""
    return st.integers(0, len(parts)).flatmap(lambda count: options(*parts[:count]))


BLOCKS = st.integers(1, 2**29 - 1).map(lambda n: f"block={8 * n}")
FILTERS = st.one_of(
    st.sampled_from(["shuffle", "fletcher32", "nbit", "lzf", "lz4"]).map(Filter),
    prefixes(st.integers(0, 9)).map(lambda o: Filter("deflate", o)),
    prefixes(st.integers(0, 9)).map(lambda o: Filter("gzip", o)),
    st.sampled_from(["deflate", "gzip"]).map(lambda name: Filter(name, ("fast",))),
    prefixes(st.integers(1, 9)).map(lambda o: Filter("bzip2", o)),
    prefixes(st.integers(-131072, 22)).map(lambda o: Filter("zstd", o)),
    prefixes(st.sampled_from(["nn", "ec"]), st.integers(1, 16).map(lambda n: 2 * n)).map(
        lambda o: Filter("szip", o)
    ),
    st.one_of(options(), options("in", st.integers(0, 64)), options("ds", st.integers(-9, 9))).map(
        lambda o: Filter("scaleoffset", o)
    ),
    prefixes(
        st.sampled_from(["blosclz", "lz4", "lz4hc", "zlib", "zstd"]),
        st.integers(0, 9),
        st.sampled_from(["noshuffle", "shuffle", "bitshuffle"]),
    ).flatmap(lambda o: st.sampled_from(["blosc", "blosc2"]).map(lambda n: Filter(n, o))),
    st.one_of(
        options(),
        options("none", BLOCKS),
        options("lz4", BLOCKS),
        options("lz4"),
        options("zstd", st.integers(0, 22), BLOCKS),
        options("zstd"),
    ).map(lambda o: Filter("bitshuffle", o)),
    options(BLOCKS).map(lambda o: Filter("lz4", o)),
    st.builds(
        lambda number, values: Filter(f"filter-{number}", tuple(values)),
        st.integers(1, 65535),
        st.lists(st.integers(0, 2**32 - 1), max_size=20),
    ),
)
PIPELINES = st.lists(FILTERS, max_size=6).map(lambda filters: Pipeline(tuple(filters)))


@given(PIPELINES)
def test_a_printed_pipeline_parses_to_an_equal_one(pipeline: Pipeline) -> None:
    assert Pipeline.parse(str(pipeline)) == pipeline


@given(PIPELINES)
def test_a_printed_pipeline_is_unchanged_by_case_and_spaces(pipeline: Pipeline) -> None:
    text = " " + " + ".join(map(str, pipeline.filters)).upper() if pipeline.filters else " None "
    assert Pipeline.parse(text) == pipeline


@given(st.text(alphabet="abdefghilnoprstz0123456789+:-,= ", max_size=30))
def test_any_text_is_parsed_or_refused_with_one_line(text: str) -> None:
    for parse in (Pipeline.parse, parse_shape, parse_size):
        message = ""
        try:
            parse(text)
        except UsageError as wrong:
            message = str(wrong)
        assert "\n" not in message


TYPED = """
none gzip:6 deflate shuffle+deflate:4+fletcher32 szip szip:ec shuffle+zstd:3 zstd:-5 blosc
blosc:zstd:3:shuffle blosc2:zstd:5:bitshuffle bitshuffle:none bitshuffle:zstd
bitshuffle:lz4:block=0 scaleoffset filter-32123:1,2,3 filter-00007 SHUFFLE+GZIP:FAST
"""
REFUSED = """
+deflate none+deflate deflat:4 xyzzy deflate:10 deflate:x deflate:4:4 shuffle:4 szip:nn:7 szip:xx
blosc:lz5:5 blosc:lz4:10 blosc2:snappy bitshuffle:lz4:3 bitshuffle:lz4:block=7 lz4:5 filter-0
filter-70000 filter-9:x filter-9:4294967296 zstd:fast shuffle:fast deflate:fast:1 deflate:1:fast
"""
# What h5repack and nccopy are given.
TOLD = """
none shuffle+deflate:4 szip:nn:32 scaleoffset:ds:2 nbit+fletcher32 zstd:3 filter-32123 shuffle+lzf
shuffle+deflate:1 deflate:0 deflate:4+shuffle shuffle+shuffle+deflate:4
"""


def test_the_page() -> None:
    """What is read of what people type, what is refused, and what other tools are given."""
    told = []
    for text in TOLD.split():
        one = Pipeline.parse(text)
        told.append(f"{text}: {one.h5repack('/a b')}; {one.nccopy()}")
    assert Pipeline.parse("deflate:4").h5repack("/a:b") is None
    assert_golden(
        "filters",
        "\n".join(f"{text}: {Pipeline.parse(text)}" for text in TYPED.split()),
        refused(Pipeline.parse, ["", *REFUSED.split(), "+".join(["nbit"] * 33)]),
        "\n".join(told),
    )
    with pytest.raises(UsageError, match="write deflate:fast"):
        Filter("zstd", (3,), "fast")


def make(
    file: h5py.File, name: str, pipeline: Pipeline, data: npt.NDArray[Any] = DATA
) -> h5py.Dataset:
    """A dataset with the pipeline, made through the low-level interface."""
    dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    dcpl.set_chunk((50, *data.shape[1:]))
    pipeline.apply(dcpl)
    space = h5py.h5s.create_simple(data.shape)
    made = h5py.h5d.create(file.id, name.encode(), h5py.h5t.py_create(data.dtype), space, dcpl)
    dataset = h5py.Dataset(made)
    dataset[...] = data
    return dataset


@pytest.mark.parametrize(
    "text",
    [
        "none", "deflate:0", "deflate:6", "shuffle", "shuffle+deflate:4+fletcher32",
        "fletcher32+shuffle+deflate:1", "szip:nn:32", "szip:ec:8", "nbit", "scaleoffset:ds:2",
        "lzf", "lz4", "lz4:block=4096", "bzip2:9", "zstd:3", "zstd:-7", "shuffle+zstd:19",
        "bitshuffle", "bitshuffle:lz4", "bitshuffle:zstd:3", "bitshuffle:lz4:block=2048",
        "bitshuffle:none:block=256", "blosc:lz4:5", "blosc:zstd:9:bitshuffle",
        "blosc:zstd:9:noshuffle", "blosc2:zstd:5", "blosc2:lz4:1:delta",
    ],
)  # fmt: skip
def test_a_dataset_made_from_a_pipeline_has_that_pipeline(tmp_path: Path, text: str) -> None:
    path = tmp_path / "made.h5"
    with h5py.File(path, "w") as file:
        make(file, "x", Pipeline.parse(text))
    with h5py.File(path) as file:
        dataset = file["x"]
        assert str(Pipeline.from_dcpl(dataset.id.get_create_plist())) == text
        np.testing.assert_allclose(dataset[...], DATA, rtol=0, atol=0.01)
        # No chunk was left unfiltered because an optional filter failed in silence.
        assert dataset.id.get_chunk_info(0).filter_mask == 0


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (
            {"compression": "gzip", "shuffle": True, "fletcher32": True},
            "shuffle+deflate:4+fletcher32",
        ),
        ({"compression": "szip"}, "szip:nn:8"),
        ({"compression": "szip", "compression_opts": ("ec", 16)}, "szip:ec:16"),
        ({"compression": "lzf"}, "lzf"),
        ({"scaleoffset": 2}, "scaleoffset:ds:2"),
        (dict(hdf5plugin.Blosc("lz4", 5)), "blosc:lz4:5"),
        (dict(hdf5plugin.Blosc("zstd", 2, hdf5plugin.Blosc.NOSHUFFLE)), "blosc:zstd:2:noshuffle"),
        ({"compression": 32001}, "blosc:blosclz:5"),
        (dict(hdf5plugin.Blosc2("zstd", 5)), "blosc2:zstd:5"),
        (dict(hdf5plugin.Bitshuffle()), "bitshuffle:lz4"),
        (dict(hdf5plugin.Bitshuffle(256, "zstd", 4)), "bitshuffle:zstd:4:block=256"),
        ({"compression": 32008}, "bitshuffle"),
        (dict(hdf5plugin.LZ4()), "lz4"),
        ({"compression": 32004}, "lz4"),
        (dict(hdf5plugin.BZip2()), "bzip2:9"),
        (dict(hdf5plugin.Zstd(-3)), "zstd:-3"),
        ({"compression": 32015}, "zstd:3"),
    ],
)
def test_what_h5py_and_hdf5plugin_make_is_read_in_our_words(
    tmp_path: Path, arguments: dict[str, Any], printed: str
) -> None:
    with h5py.File(tmp_path / "made.h5", "w") as file:
        dataset = file.create_dataset("x", data=DATA, chunks=(50, 200), **arguments)
        assert str(Pipeline.from_dcpl(dataset.id.get_create_plist())) == printed


def test_an_unknown_filter_prints_with_its_values() -> None:
    pipeline = Pipeline((Filter.from_cd(32123, (1, 2, 4_000_000_000)),))
    assert str(pipeline) == "filter-32123:1,2,4000000000"
    assert Pipeline.parse(str(pipeline)) == pipeline


def test_a_filter_without_a_name_prints_with_the_values_that_make_it(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "made.h5", "w") as file:
        dataset = file.create_dataset("x", data=DATA, chunks=(50, 200), **hdf5plugin.Zfp(rate=8))
        pipeline = Pipeline.from_dcpl(dataset.id.get_create_plist())
        # 8 bits of each of the 16 elements of a block.
        assert str(pipeline) == f"filter-32013:4,0,128,128,64,{-1074 % 2**32}"
        again = file.create_dataset(
            "again",
            data=DATA,
            chunks=(50, 200),
            compression=32013,
            compression_opts=pipeline.filters[0].cd_values,
        )
        stored = [one.id.get_create_plist().get_filter(0)[2] for one in (dataset, again)]
    assert stored[0] == stored[1]
    assert Pipeline.parse(str(pipeline)) == pipeline


@pytest.mark.parametrize(
    ("number", "values"),
    [
        (4, (36, 8, 32, 200)),
        (4, ()),
        (6, (7, 0)),
        (32001, (2, 2, 4, 100, 5, 9, 1)),
        (32008, (0, 4, 4, 0, 9)),
    ],
)
def test_values_that_options_cannot_say_are_shown_as_they_are(
    number: int, values: tuple[int, ...]
) -> None:
    assert Filter.from_cd(number, values) == Filter(f"filter-{number}", values)


def test_negative_digits_of_scaleoffset_are_stored_unsigned() -> None:
    tens = Filter("scaleoffset", ("ds", -1))
    assert tens.cd_values == (0, 2**32 - 1)
    assert Filter.from_cd(6, (0, 2**32 - 1, 100, 1, 4)) == tens


def test_a_filter_that_nobody_has_is_refused() -> None:
    dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    with pytest.raises(UsageError, match=r"filter-32123 .* not available.*HDF5_PLUGIN_PATH"):
        Pipeline.parse("filter-32123:1").apply(dcpl)
    assert dcpl.get_nfilters() == 0


def run_python(code: str) -> str:
    """What a fresh interpreter, in which no filter was imported yet, prints."""
    # hdf5plugin, once imported, says where its filters lie to all child processes.
    env = {name: value for name, value in os.environ.items() if name != "HDF5_PLUGIN_PATH"}
    done = ran([sys.executable, "-c", code], env=env, check=True, timeout=60)
    return done.stdout.strip()


APPLY_ZSTD = """
import h5py
from chunkwise.grammar import Pipeline
dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
try:
    Pipeline.parse("shuffle+zstd:3").apply(dcpl)
    print("applied", dcpl.get_nfilters())
except ValueError as wrong:
    print(wrong)
"""


def test_hdf5plugin_is_imported_when_a_filter_needs_it() -> None:
    assert run_python(APPLY_ZSTD) == "applied 2"


def test_without_hdf5plugin_the_message_says_how_to_get_it() -> None:
    printed = run_python("import sys; sys.modules['hdf5plugin'] = None\n" + APPLY_ZSTD)
    assert (
        printed == "filter zstd (number 32015) is not available to libhdf5: pip install hdf5plugin"
    )


def test_fast_is_level_1_everywhere_but_where_chunkwise_writes() -> None:
    fast, level = Pipeline.parse("shuffle+deflate:fast"), Pipeline.parse("shuffle+deflate:1")
    assert (fast.effort, level.effort, Pipeline().effort) == ("fast", "as-stated", "as-stated")
    assert fast != level
    assert fast.h5repack("x") == level.h5repack("x")
    assert fast.nccopy() == level.nccopy() == "-d 1 -s"
    assert [one.cd_values for one in fast.filters] == [(), (1,)]
    dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    dcpl.set_chunk((10, 20))
    fast.apply(dcpl)
    assert dcpl.get_filter(1)[2] == (1,)
    # No file says it.
    assert str(Pipeline.from_dcpl(dcpl)) == "shuffle+deflate:1"
    assert Filter("deflate", (1,), "fast") == Filter("deflate", ("fast",))
