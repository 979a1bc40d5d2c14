"""Do the facts about a file agree with what h5py reports, call by call?

Of files made here, and of those in the folder that ``CHUNKWISE_FOREIGN_FILES`` names.
"""

import ctypes
import math
import os
import statistics
from itertools import pairwise
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from h5py import h5d

from chunkwise.grammar import Pipeline
from chunkwise.inspection import inspect
from chunkwise.inspection.facts import DatasetFacts
from tests.support.inspect_files import MADE, make_indexes
from tests.support.versions import needs_chunk_iter

FOLDER = os.environ.get("CHUNKWISE_FOREIGN_FILES")
FOREIGN = [p for p in sorted(Path(FOLDER).rglob("*")) if h5py.is_hdf5(p)] if FOLDER else []


@pytest.fixture(scope="module", params=[*MADE, *FOREIGN], ids=lambda param: Path(param).name)
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if isinstance(request.param, Path):
        return request.param
    made = tmp_path_factory.mktemp("made") / "a.h5"
    MADE[request.param](made)
    return made


FILL_TIMES = {
    h5d.FILL_TIME_ALLOC: "alloc",
    h5d.FILL_TIME_NEVER: "never",
    h5d.FILL_TIME_IFSET: "if set",
}
ALLOCATION_TIMES = {
    h5d.ALLOC_TIME_EARLY: "early",
    h5d.ALLOC_TIME_LATE: "late",
    h5d.ALLOC_TIME_INCR: "incremental",
}
LAYOUTS = {
    h5d.COMPACT: "compact",
    h5d.CONTIGUOUS: "contiguous",
    h5d.CHUNKED: "chunked",
    h5d.VIRTUAL: "virtual",
}
INDEXES = ["v1 B-tree", "single chunk", "implicit", "fixed array", "extensible array"]
INDEXES += ["v2 B-tree"]


def index_of(dataset: h5d.DatasetID) -> str:
    """H5Dget_chunk_index_type, which h5py lacks, called in h5py's own libhdf5."""
    # Of Windows's libraries each has its own functions alone.
    library = Path(h5d.__file__).with_name("hdf5.dll")
    libhdf5 = ctypes.CDLL(str(library if library.exists() else h5d.__file__))
    found = ctypes.c_int()
    libhdf5.H5Dget_chunk_index_type.argtypes = [ctypes.c_int64, ctypes.c_void_p]
    assert libhdf5.H5Dget_chunk_index_type(dataset.id, ctypes.byref(found)) >= 0
    return INDEXES[found.value]


def stored_chunks(dataset: h5d.DatasetID, found: DatasetFacts) -> list[Any] | None:
    """Origin, address, size and filter mask in the order of the array.

    None where libhdf5 lists wrong coordinates: of an extensible array that grows along
    another dimension than the first.  Where nothing is missing, the order of its list
    tells the chunks: the growing dimension varies slowest in it.
    """
    chunks: list[Any] = []
    dataset.chunk_iter(chunks.append)
    assert found.maxshape is not None
    assert found.chunks is not None
    origins = [info.chunk_offset for info in chunks]
    grown = [axis for axis, most in enumerate(found.maxshape) if most is None]
    if chunks and index_of(dataset) == "extensible array" and grown != [0]:
        if len(chunks) < found.chunks.grid:
            return None
        grid = [range(0, n, c) for n, c in zip(found.shape or (), found.chunks.shape, strict=True)]
        corners = (tuple(each) for each in np.array(np.meshgrid(*grid)).reshape(len(grid), -1).T)
        order = sorted(corners, key=lambda o: (o[grown[0]], o))
        origins = [tuple(map(int, origin)) for origin in order]
    return sorted(
        (origin, info.byte_offset, info.size, info.filter_mask)
        for origin, info in zip(origins, chunks, strict=True)
    )


def compare_chunks(dataset: h5py.Dataset, found: DatasetFacts) -> None:
    where, chunks, dcpl = dataset.name, found.chunks, dataset.id.get_create_plist()
    assert chunks is not None
    assert chunks.shape == dataset.chunks == dcpl.get_chunk(), where
    assert chunks.nbytes == math.prod(dataset.chunks) * dataset.id.get_type().get_size(), where
    sides = [-(-n // c) for n, c in zip(dataset.shape, dataset.chunks, strict=True)]
    assert chunks.grid == math.prod(sides), where
    count = dataset.id.get_num_chunks()
    assert chunks.allocated == count, where
    infos = [dataset.id.get_chunk_info(i) for i in range(min(count, 300))]
    sizes: list[int] = []
    dataset.id.chunk_iter(lambda info: sizes.append(info.size))
    assert sizes[:300] == [info.size for info in infos], where
    spread = (chunks.smallest_nbytes, chunks.median_nbytes, chunks.largest_nbytes)
    if not count:
        assert (chunks.index, *spread, chunks.span_nbytes) == (None, None, None, None, 0), where
        return
    assert chunks.index == index_of(dataset.id), where
    assert spread == (min(sizes), statistics.median_low(sizes), max(sizes)), where
    stored = stored_chunks(dataset.id, found)
    assert chunks.order_known, where
    if stored is None:
        # Known from the file alone; `test_stored_index` compares what is read by it.
        assert chunks.pairs == count - 1, where
        return
    pairs = list(pairwise(stored))
    assert chunks.pairs == len(pairs) == count - 1, where
    assert chunks.adjacent == sum(a[1] + a[2] == b[1] for a, b in pairs), where
    assert chunks.backward == sum(b[1] < a[1] for a, b in pairs), where
    assert chunks.span_nbytes == max(s[1] + s[2] for s in stored) - min(s[1] for s in stored)
    beyond = sum(
        chunks.nbytes
        - found.itemsize
        * math.prod(
            min(c, n - o) for o, c, n in zip(s[0], chunks.shape, dataset.shape, strict=True)
        )
        for s in stored
    )
    assert chunks.edge_nbytes == beyond, where
    partial_unfiltered = dataset.name.endswith("unfiltered edges")
    unfiltered = sum(
        s[3] != 0
        or (
            partial_unfiltered
            and any(o + c > n for o, c, n in zip(s[0], chunks.shape, dataset.shape, strict=True))
        )
        for s in stored
    )
    assert chunks.unfiltered == (unfiltered if dcpl.get_nfilters() else 0), where
    masked = sum(s[3] != 0 for s in stored)
    assert chunks.masked == (masked if dcpl.get_nfilters() else 0), where


@needs_chunk_iter
def test_agrees_with_h5py(path: Path) -> None:
    facts = inspect(path, sample=False, metadata=False)
    objects = {entry.path: entry for entry in facts.objects}
    ours = {name: each.dataset for name, each in objects.items() if each.dataset is not None}
    assert ours
    with h5py.File(path) as file:
        for name, found in ours.items():
            dataset = file[name]
            dcpl = dataset.id.get_create_plist()
            assert found.shape == dataset.shape, name
            if dataset.shape is not None:
                assert found.maxshape == dataset.maxshape, name
            assert found.itemsize == dataset.id.get_type().get_size(), name
            assert found.is_scale == dataset.is_scale, name
            assert found.filters == str(Pipeline.from_dcpl(dcpl)), name
            assert found.fill_time == FILL_TIMES[dcpl.get_fill_time()], name
            assert found.allocation_time == ALLOCATION_TIMES[dcpl.get_alloc_time()], name
            layout = "external" if dataset.external else LAYOUTS[dcpl.get_layout()]
            assert found.layout == layout, name
            assert objects[name].attributes == len(dataset.attrs), name
            nbytes = None if found.variable_length else (dataset.size or 0) * found.itemsize
            assert found.logical_nbytes == nbytes, name
            if found.layout != "virtual":
                assert found.stored_nbytes == dataset.id.get_storage_size(), name
            if found.chunks is None:
                assert dataset.chunks is None, name
            else:
                compare_chunks(dataset, found)


def test_every_kind_of_index_is_met(tmp_path: Path) -> None:
    met: set[str | None] = set()
    for number, libver in enumerate(("earliest", "latest")):
        make_indexes(tmp_path / f"{number}.h5", libver)
        facts = inspect(tmp_path / f"{number}.h5", sample=False, metadata=False)
        met |= {e.dataset.chunks.index for e in facts.objects if e.dataset and e.dataset.chunks}
    assert met == {*INDEXES, None}
