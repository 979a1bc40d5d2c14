"""What a dataset shall be: by rules, by what it is, and by what HDF5 makes of it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from chunkwise.errors import UsageError
from chunkwise.grammar import Pipeline
from chunkwise.repacking.decide import NewLayout, decide
from chunkwise.repacking.facts import SourceDataset, look
from chunkwise.repacking.rules import Rules
from chunkwise.repacking.trial import creation_list, refusal, scratch, stored_filters


@pytest.fixture
def file(tmp_path: Path) -> Iterator[h5py.File]:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("cube", (20, 30, 40), "f4", chunks=(1, 30, 40), compression=4)
        file.create_dataset("plane", (30, 40), ">i2")
        file.create_dataset("line", (40,), "f8", maxshape=(None,), chunks=(10,), fletcher32=True)
        file["scalar"] = 1.0
        file["null"] = h5py.Empty("f4")
        file.create_dataset("words", (5,), h5py.string_dtype())
        file.create_dataset("pointers", (5,), h5py.ref_dtype)
        dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        dcpl.set_layout(h5py.h5d.COMPACT)
        space = h5py.h5s.create_simple((5,))
        h5py.h5d.create(file.id, b"compact", h5py.h5t.NATIVE_INT32, space, dcpl)
        layout = h5py.VirtualLayout((20, 30, 40), "f4")
        layout[:] = h5py.VirtualSource(file["cube"])
        file.create_virtual_dataset("virtual", layout)
        external = [(str(tmp_path / "x.bin"), 0, 48)]
        file.create_dataset("external", (12,), "f4", external=external, fillvalue=7)
        file["again"] = file["cube"]
        yield file


def source_of(file: h5py.File, name: str) -> SourceDataset:
    return next(one for one in look(file).sources if f"/{name}" in one.names)


def wanted(file: h5py.File, name: str, chunk: Any, filters: Any, **options: Any) -> NewLayout:
    rules = Rules.of(chunk, filters, options.pop("min_nbytes", 0))
    return decide(source_of(file, name), rules, merge=options.pop("merge", False), **options)


def test_the_facts_are_those_of_h5py(file: h5py.File) -> None:
    cube = source_of(file, "cube")
    assert set(cube.names) == {"/cube", "/again"}
    assert (cube.shape, cube.chunk, str(cube.pipeline)) == ((20, 30, 40), (1, 30, 40), "deflate:4")
    assert (cube.nbytes, cube.plain) == (96_000, True)
    assert source_of(file, "line").maxshape == (None,)
    layouts = {path: source_of(file, path).layout for path in ("virtual", "external", "compact")}
    assert layouts == {path: path for path in layouts}
    assert source_of(file, "null").shape is None
    assert source_of(file, "scalar").shape == ()
    assert not source_of(file, "words").plain
    assert not source_of(file, "pointers").plain


def test_without_rules_nothing_changes(file: h5py.File) -> None:
    for source in look(file).sources:
        assert not decide(source, Rules(), merge=False).changes(source)


@pytest.mark.parametrize(
    ("name", "chunk", "filters", "chunk_wanted", "filters_wanted"),
    [
        ("cube", "20x5x5", None, (20, 5, 5), "deflate:4"),
        ("cube", None, "none", (1, 30, 40), "none"),
        ("cube", "contiguous", None, None, "none"),
        ("cube", "contiguous", "none", None, "none"),
        ("cube", {"cube": "20x5x5", "again": "5x5x5"}, None, (5, 5, 5), "deflate:4"),
        ("cube", "20x5x5", {"*": "lzf", "cube": "stored"}, (20, 5, 5), "deflate:4"),
        ("line", "30", None, (30,), "fletcher32"),
        ("line", "4000", None, (4000,), "fletcher32"),
        ("plane", "10x10", "shuffle+lzf", (10, 10), "shuffle+lzf"),
        ("plane", None, "lzf", (30, 40), "lzf"),
        ("compact", {"compact": "5"}, None, (5,), "none"),
        ("words", {"words": "2"}, {"words": "deflate:1"}, (2,), "deflate:1"),
    ],
)
def test_rules_are_followed(
    file: h5py.File, name: str, chunk: Any, filters: Any, chunk_wanted: Any, filters_wanted: str
) -> None:
    found = wanted(file, name, chunk, filters)
    assert (found.chunk, str(found.pipeline), found.left) == (chunk_wanted, filters_wanted, ())


@pytest.mark.parametrize(
    ("name", "chunk", "filters", "said"),
    [
        ("cube", "5x5", None, "has 3 dimensions (20x30x40), the chunk 5x5 has 2"),
        ("line", "5x5", None, "has 1 dimension (40), the chunk 5x5 has 2"),
        ("cube", "20x31x5", None, "fixed length of 30 in dimension 1"),
        ("line", "contiguous", None, "can grow, and contiguous data cannot"),
        ("scalar", "5", None, "is a scalar"),
        ("scalar", None, "lzf", "is a scalar"),
        ("null", "5", None, "has no data"),
        ("null", None, "lzf", "has no data"),
        ("virtual", "5x5x5", None, "--merge"),
        ("external", None, "lzf", "--merge"),
        ("compact", "5", None, "is compact"),
        ("words", None, "lzf", "filters do not reach"),
        ("plane", "contiguous", "lzf", "only chunks can have filters"),
    ],
)
def test_a_pattern_passes_over_and_a_name_is_refused(
    file: h5py.File, name: str, chunk: Any, filters: Any, said: str
) -> None:
    source = source_of(file, name)
    found = wanted(file, name, chunk, filters)
    assert said in found.left[0]
    assert not found.changes(source)
    if name in ("compact", "words"):
        return  # asked for by name, these are done
    with pytest.raises(UsageError, match=f"'/{name}' ") as wrong:
        wanted(file, name, None if chunk is None else {name: chunk}, filters and {name: filters})
    assert said in str(wrong.value)


def test_small_datasets_are_left_unless_named(file: h5py.File) -> None:
    assert wanted(file, "plane", "10x10", None, min_nbytes=2400).chunk == (10, 10)
    assert wanted(file, "plane", "10x10", None, min_nbytes=2401).chunk is None
    assert wanted(file, "plane", {"plane": "10x10"}, None, min_nbytes=2401).chunk == (10, 10)


def test_merged_data_are_the_files_own(file: h5py.File) -> None:
    assert wanted(file, "external", None, None, merge=True) == NewLayout(
        None, Pipeline(), merged=True
    )
    assert wanted(file, "virtual", "5x5x5", "lzf", merge=True).chunk == (5, 5, 5)
    dcpl = creation_list(source_of(file, "external"), None, source_of(file, "external").pipeline)
    made = h5py.Dataset(
        h5py.h5d.create(file.id, b"own", h5py.h5t.IEEE_F32LE, h5py.h5s.create_simple((12,)), dcpl)
    )
    assert (made.external, made.fillvalue) == (None, 7)


@pytest.mark.parametrize(
    ("name", "chunk", "filters", "said"),
    [
        ("words", (2,), "scaleoffset:in:0", "chunk 2, filters scaleoffset:in:0"),
        ("plane", (30, 40), "szip:nn:32", None),
        ("cube", (20, 30, 40), "deflate:1", None),
    ],
)
def test_hdf5_is_asked(
    file: h5py.File, name: str, chunk: Any, filters: str, said: str | None
) -> None:
    source = source_of(file, name)
    pipeline = Rules.of(None, filters).filters[0].setting
    assert pipeline != "stored"
    with scratch() as memory:
        dcpl = creation_list(source, chunk, pipeline)
        reason, stored = refusal(memory, source, chunk, dcpl)
    if said is None:
        assert reason is None
        assert len(stored) == len(pipeline.filters)
    else:
        assert said in str(reason)


def test_values_of_filters_are_those_that_hdf5_completes(file: h5py.File) -> None:
    source = source_of(file, "cube")
    with scratch() as memory:
        dcpl = creation_list(source, source.chunk, source.pipeline)
        _, filters = refusal(memory, source, source.chunk, dcpl)
    assert filters == stored_filters(source.identifier.get_create_plist())
    assert np.array_equal(file["cube"].fillvalue, 0)


@pytest.mark.parametrize(
    ("chunk", "filters", "chunk_wanted", "filters_wanted", "why"),
    [
        (None, None, (1, 30, 40), "deflate:4", "its sources have such chunks and filters"),
        (None, "stored", (1, 30, 40), "deflate:4", "its sources have such chunks and filters"),
        (None, "lzf", (1, 30, 40), "lzf", "its sources have such chunks"),
        (None, "none", (1, 30, 40), "none", "its sources have such chunks"),
        ("5x5x5", None, (5, 5, 5), "deflate:4", ""),
        ("contiguous", None, None, "none", ""),
    ],
)
def test_merged_data_are_stored_as_their_sources_are(
    file: h5py.File, chunk: Any, filters: Any, chunk_wanted: Any, filters_wanted: str, why: str
) -> None:
    found = wanted(file, "virtual", chunk, filters, merge=True)
    assert (found.chunk, str(found.pipeline), found.why) == (chunk_wanted, filters_wanted, why)
    assert found.merged


def test_stacked_and_rounded_sources(file: h5py.File) -> None:
    file.create_dataset("deep", (30, 40), "f4", chunks=(10, 40), compression=1)
    file.create_dataset("coarse", (30, 40), "f4", chunks=(15, 40), scaleoffset=2)
    for name, axis in (("deep", 0), ("deep", 1), ("coarse", 2), ("plane", 0)):
        shape = [30, 40]
        shape.insert(axis, 3)
        layout = h5py.VirtualLayout(tuple(shape), "f4")
        for at in range(3):
            layout[(slice(None),) * axis + (at,)] = h5py.VirtualSource(file[name])
        file.create_virtual_dataset(f"{name} {axis}", layout)
    found = {
        name: wanted(file, name, None, None, merge=True)
        for name in ("deep 0", "deep 1", "coarse 2", "plane 0")
    }
    assert [(one.chunk, str(one.pipeline)) for one in found.values()] == [
        ((1, 10, 40), "deflate:1"),
        ((10, 1, 40), "deflate:1"),
        ((15, 40, 1), "none"),  # Rounding again would change values.
        (None, "none"),  # Contiguous, and of another type.
    ]


@pytest.mark.parametrize(("name", "stored"), [("x%%b", "x%b"), ("x%%%%", "x%%")])
def test_percent_signs_in_names_of_sources(file: h5py.File, name: str, stored: str) -> None:
    for other in ("x%b", "x%0", "x%%"):
        file.create_dataset(other, (20, 40), "f4", chunks=(5 if other == stored else 7, 40))
    layout = h5py.VirtualLayout((20, 40), "f4")
    layout[...] = h5py.VirtualSource(".", name, (20, 40))
    file.create_virtual_dataset("signs", layout)
    assert wanted(file, "signs", None, None, merge=True).chunk == (5, 40)
