"""Do the facts about a file agree with what HDF5's own tools and h5py report?

Of files made here, and of those in the folder that ``CHUNKWISE_FOREIGN_FILES`` names.
"""

from __future__ import annotations

import ctypes
import math
import os
import re
import statistics
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from h5py import h5d

from chunkwise.grammar import Pipeline
from chunkwise.inspection import inspect
from chunkwise.inspection.facts import DatasetFacts, ObjectFacts
from tests.support.inspect_files import MADE, NEWEST, make_indexes
from tests.support.tools import require_tool
from tests.support.versions import needs_chunk_iter

FOLDER = os.environ.get("CHUNKWISE_FOREIGN_FILES")
FOREIGN = [p for p in sorted(Path(FOLDER).rglob("*")) if h5py.is_hdf5(p)] if FOLDER else []


@pytest.fixture(scope="module", params=[*MADE, *FOREIGN], ids=lambda param: Path(param).name)
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that HDF5's tools can read."""
    if isinstance(request.param, Path):
        return request.param
    made = tmp_path_factory.mktemp("made") / "a.h5"
    MADE[request.param](made)
    return made


@pytest.fixture(scope="module")
def objects(path: Path) -> dict[str, ObjectFacts]:
    facts = inspect(path, sample=False, metadata=False)
    return {entry.path: entry for entry in facts.objects}


def datasets(objects: dict[str, ObjectFacts]) -> dict[str, DatasetFacts]:
    return {name: each.dataset for name, each in objects.items() if each.dataset is not None}


def run(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, check=False)
    return done.stdout.decode("utf-8", "surrogateescape")


# --- h5dump ----------------------------------------------------------------------------

# How h5dump writes a filter, and the project's grammar.
H5DUMP_FILTERS = {
    r"PREPROCESSING SHUFFLE": "shuffle",
    r"COMPRESSION DEFLATE \{ LEVEL (\d+) \}": "deflate:{}",
    r"CHECKSUM FLETCHER32": "fletcher32",
    r"COMPRESSION SZIP \{\s+PIXELS_PER_BLOCK (\d+)\s+MODE \S+\s+CODING NEAREST": "szip:nn:{}",
    r"COMPRESSION NBIT": "nbit",
    r"COMPRESSION SCALEOFFSET": "scaleoffset:in:0",
    r"FILTER_ID 32000\b": "lzf",
    r"FILTER_ID 32123\s[^}]*?PARAMS \{ 1 2 \}": "filter-32123:1,2",
    # bitshuffle: its version, the element's bytes, a block's elements, LZ4.
    r"FILTER_ID 32008\b": "bitshuffle",
}
FILL_TIMES = {"ALLOC": "alloc", "NEVER": "never", "IFSET": "if set"}
ALLOCATION_TIMES = {"EARLY": "early", "LATE": "late", "INCR": "incremental"}


def h5dump_blocks(path: Path) -> Iterator[tuple[str, str]]:
    """Give the path of each dataset, and what ``h5dump -pH`` says of it."""
    parents: list[str] = []
    lines = iter(run(require_tool("h5dump"), "-p", "-H", path).splitlines())
    for line in lines:
        head = re.match(r'( *)(GROUP|DATASET) "(.*)" \{$', line)
        if head is None:
            continue
        depth = len(head[1]) // 3
        parents[depth:] = ["" if head[3] == "/" else head[3]]
        if head[2] == "DATASET":
            block = []
            while (line := next(lines)) != head[1] + "}":
                block.append(line)
            yield "/".join(parents), "\n".join(block)


def test_agrees_with_h5dump(path: Path, objects: dict[str, ObjectFacts]) -> None:
    ours, compared = datasets(objects), 0
    for name, block in h5dump_blocks(path):
        if "HARDLINK" in block:
            continue
        found = ours[name]
        compared += 1
        layout = re.search(r"STORAGE_LAYOUT \{\s+(\w+)(?: \( ([\d, ]+) \))?", block)
        assert layout is not None, name
        # To h5dump raw files are contiguous; of a virtual dataset it lists the mappings.
        words = {"external": "CONTIGUOUS", "virtual": "MAPPING"}
        assert layout[1] == words.get(found.layout, found.layout.upper()), name
        if layout[2] is not None:
            assert found.chunks is not None, name
            assert found.chunks.shape == tuple(map(int, layout[2].split(","))), name
        compare_type(block, found, name)
        compare_sizes(block, found, name)
        compare_filters(block, found, name)
        compare_fill(block, found, name)
    assert compared == len(ours)


def compare_type(block: str, found: DatasetFacts, name: str) -> None:
    number = re.match(r" *DATATYPE +H5T_(STD_I|STD_U|IEEE_F)(\d+)(LE|BE)", block)
    if number:
        kind = {"STD_I": "int", "STD_U": "uint", "IEEE_F": "float"}[number[1]]
        assert found.dtype.split(" ")[0] == kind + number[2], name
        order = {"LE": "little", "BE": "big"}[number[3]] if number[2] != "8" else None
        assert found.byte_order == order, name
    text = re.match(r" *DATATYPE +H5T_STRING \{\s+STRSIZE (\w+);", block)
    if text:
        expected = "of variable length" if text[1] == "H5T_VARIABLE" else f"({text[1]})"
        assert found.dtype.removeprefix("string").strip() == expected, name


def compare_sizes(block: str, found: DatasetFacts, name: str) -> None:
    size = re.search(r"STORAGE_LAYOUT.*?SIZE (\d+)", block, re.DOTALL)
    if size and found.layout not in ("virtual", "external"):
        assert found.stored_nbytes == int(size[1]), name
    ratio = re.search(r"\(([\d.]+):1 COMPRESSION\)", block)
    if ratio and found.ratio is not None:
        assert f"{found.ratio:.3f}" == ratio[1], name


def compare_filters(block: str, found: DatasetFacts, name: str) -> None:
    filters = re.search(r"   FILTERS \{(.*)\}\s+FILLVALUE", block, re.DOTALL)
    positions: list[tuple[int, str]] = []
    for pattern, ours in H5DUMP_FILTERS.items():
        for match in re.finditer(pattern, filters[1] if filters else ""):
            positions.append((match.start(), ours.format(*match.groups())))
    pipeline = "+".join(word for _, word in sorted(positions)) or "none"
    given = re.sub(r"(bitshuffle)[^+]*", r"\1", found.filters)
    assert given == pipeline, name


def compare_fill(block: str, found: DatasetFacts, name: str) -> None:
    times = re.search(r"FILL_TIME H5D_FILL_TIME_(\w+)", block)
    if times:
        assert found.fill_time == FILL_TIMES[times[1]], name
    when = re.search(r"ALLOCATION_TIME \{\s+H5D_ALLOC_TIME_(\w+)", block)
    if when:
        assert found.allocation_time == ALLOCATION_TIMES[when[1]], name
    value = re.search(r"FILL_TIME \w+\s+VALUE +(.*?)\n +\}\n +ALLOC", block, re.DOTALL)
    if value:
        assert same_fill(found, value[1].strip()), f"{name}: {found.fill_value}, {value[1]}"


def same_fill(found: DatasetFacts, theirs: str) -> bool:
    """Whether a fill value is that of h5dump, which rounds numbers to six digits."""
    ours = found.fill_value
    if ours in ("default", "set") or theirs.startswith("H5D_FILL_VALUE_"):
        return (ours == "default") == (
            theirs == "H5D_FILL_VALUE_DEFAULT"
        ) or ours in theirs.lower()
    if found.dtype.startswith("string"):
        text = re.sub(r"\\(\d+)", lambda m: chr(int(m[1], 8) & 255), theirs[1:-1])
        return text.rstrip("\0").encode("latin-1").decode() == ours[1:-1]
    if found.dtype.startswith("opaque"):
        return ours == "0x" + theirs.replace(":", "")
    if found.dtype.startswith("complex"):
        real, imaginary = re.findall(r"[-\d.]+", theirs)
        return complex(ours) == complex(float(real), float(imaginary))
    if found.dtype == "bool":
        return ours.upper() == theirs
    if found.dtype.startswith("float"):
        return f"{np.dtype(found.dtype).type(ours):g}" == theirs
    return ours == theirs


# --- h5py's low-level calls ------------------------------------------------------------

INDEXES = ["v1 B-tree", "single chunk", "implicit", "fixed array", "extensible array"]
INDEXES += ["v2 B-tree"]


def index_of(dataset: h5d.DatasetID) -> str:
    """H5Dget_chunk_index_type, which h5py lacks, called in h5py's own libhdf5."""
    libhdf5, found = ctypes.CDLL(h5d.__file__), ctypes.c_int()
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


def compare_with_h5py(path: Path) -> None:
    facts = inspect(path, sample=False, metadata=False)
    objects = {entry.path: entry for entry in facts.objects}
    ours = datasets(objects)
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
            assert objects[name].attributes == len(dataset.attrs), name
            nbytes = None if found.variable_length else (dataset.size or 0) * found.itemsize
            assert found.logical_nbytes == nbytes, name
            if found.layout != "virtual":
                assert found.stored_nbytes == dataset.id.get_storage_size(), name
            if found.chunks is None:
                assert dataset.chunks is None, name
            else:
                compare_chunks(dataset, found)


@needs_chunk_iter
def test_agrees_with_h5py(path: Path) -> None:
    compare_with_h5py(path)


@needs_chunk_iter
@pytest.mark.parametrize("name", NEWEST)
def test_newest_format_agrees_with_h5py(tmp_path: Path, name: str) -> None:
    NEWEST[name](tmp_path / "a.h5")
    compare_with_h5py(tmp_path / "a.h5")


def test_every_kind_of_index_is_met(tmp_path: Path) -> None:
    met: set[str | None] = set()
    for number, libver in enumerate(("earliest", "latest")):
        make_indexes(tmp_path / f"{number}.h5", libver)
        facts = inspect(tmp_path / f"{number}.h5", sample=False, metadata=False)
        met |= {e.dataset.chunks.index for e in facts.objects if e.dataset and e.dataset.chunks}
    assert met == {*INDEXES, None}
