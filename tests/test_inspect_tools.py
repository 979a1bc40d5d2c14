"""Do the facts about a file agree with what HDF5's own tools report?"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chunkwise.inspect import inspect
from tests.inspect_files import make_netcdf, make_plain
from tests.tools import require_tool


def h5ls_facts(path: Path) -> dict[str, dict[str, Any]]:
    """What ``h5ls -v -r`` says of each dataset."""
    text = subprocess.run(
        [require_tool("h5ls"), "-v", "-r", path], capture_output=True, text=True, check=True
    ).stdout
    found: dict[str, dict[str, Any]] = {}
    for block in re.split(r"\n(?=/)", text):
        head = re.match(r"(/\S*) +Dataset \{(.*)\}", block)
        storage = re.search(r"Storage: +(\d+) logical bytes, (\d+) allocated bytes", block)
        if not head or not storage:
            continue
        chunks = re.search(r"Chunks: +\{([\d, ]+)\} (\d+) bytes", block)
        pairs = [(*extent.split("/"), extent)[:2] for extent in head[2].split(", ")]
        found[head[1]] = {
            "shape": tuple(int(now) for now, _ in pairs),
            # Where a dataset cannot grow, h5ls may give the extent only once.
            "maxshape": tuple(
                None if most == "Inf" else int(most.split("/")[-1]) for _, most in pairs
            ),
            "chunks": tuple(map(int, chunks[1].split(","))) if chunks else None,
            "chunk_nbytes": int(chunks[2]) if chunks else None,
            "filter_count": len(re.findall(r"Filter-\d+:", block)),
            "logical_nbytes": int(storage[1]),
            "stored_nbytes": int(storage[2]),
        }
    return found


@pytest.mark.parametrize("make", [make_plain, make_netcdf])
def test_agrees_with_h5ls(tmp_path: Path, make: Callable[[Path], None]) -> None:
    path = tmp_path / "a.h5"
    make(path)
    reference = h5ls_facts(path)
    ours = {entry.path: entry.dataset for entry in inspect(path).objects if entry.dataset}
    assert set(ours) == set(reference)
    for name, expected in reference.items():
        found = ours[name]
        count = expected.pop("filter_count")
        assert count == (0 if found.filters == "none" else len(found.filters.split("+"))), name
        if found.layout == "virtual":
            # h5ls counts the sources' bytes, wherever they are.
            del expected["stored_nbytes"]
        assert {key: getattr(found, key) for key in expected} == expected, name


# How h5dump writes a filter, and how the project's grammar does.
H5DUMP_FILTERS = {
    r"PREPROCESSING SHUFFLE": "shuffle",
    r"COMPRESSION DEFLATE \{ LEVEL (\d+) \}": "deflate:{}",
    r"CHECKSUM FLETCHER32": "fletcher32",
    r"USER_DEFINED_FILTER \{\s+FILTER_ID (\d+)[^}]*?PARAMS \{ 1 2 \}": "filter-{}:1,2",
}


def h5dump_facts(path: Path, name: str) -> tuple[str | None, str, str | None]:
    """Layout word, pipeline and compression ratio that ``h5dump -pH`` gives."""
    text = subprocess.run(
        [require_tool("h5dump"), "-p", "-H", "-d", name, path],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    layout = re.search(r"STORAGE_LAYOUT \{\s+(\w+)", text)
    ratio = re.search(r"\(([\d.]+):1 COMPRESSION\)", text)
    filters = re.search(r"   FILTERS \{(.*)\}\s+FILLVALUE", text, re.DOTALL)
    positions: list[tuple[int, str]] = []
    for pattern, ours in H5DUMP_FILTERS.items():
        for match in re.finditer(pattern, filters[1] if filters else ""):
            positions.append((match.start(), ours.format(*match.groups())))
    pipeline = "+".join(word for _, word in sorted(positions)) or "none"
    return layout[1] if layout else None, pipeline, ratio[1] if ratio else None


@pytest.mark.parametrize("make", [make_plain, make_netcdf])
def test_agrees_with_h5dump(tmp_path: Path, make: Callable[[Path], None]) -> None:
    path = tmp_path / "a.h5"
    make(path)
    compared = 0
    for entry in inspect(path).objects:
        if entry.dataset is None:
            continue
        layout, pipeline, ratio = h5dump_facts(path, entry.path)
        # To h5dump a dataset in raw files is contiguous; of a virtual one it lists the mappings.
        words = {"external": "CONTIGUOUS", "virtual": "MAPPING"}
        ours = words.get(entry.dataset.layout, entry.dataset.layout.upper())
        assert (layout, pipeline) == (ours, entry.dataset.filters), entry.path
        if ratio is not None and entry.dataset.ratio is not None:
            assert f"{entry.dataset.ratio:.3f}" == ratio, entry.path
            compared += 1
    assert compared > 0
