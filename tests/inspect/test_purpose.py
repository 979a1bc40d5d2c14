"""Is it recognized what a layout is for, and is only that judged?"""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise.inspection import inspect
from chunkwise.inspection.facts import DatasetFacts, FileFacts
from chunkwise.model.purpose import Signs, purpose
from tests.support.commands import run

Shape = tuple[int, ...]

# Shape, chunks, bytes of an element, signs; the ways of reading that fit.
RECOGNIZED: list[tuple[Shape, Shape | None, int, Signs, dict[str, Shape]]] = [
    ((40, 514, 1030), (1, 514, 1030), 4, Signs("frame"), {"frames": (1, 514, 1030)}),
    ((40, 514, 1030), (1, 514, 1030), 4, Signs(), {"planes across dimension 0": (1, 514, 1030)}),
    ((365, 181, 360), (1, 181, 360), 4, Signs(None, ("T", "Y", "X")), {"maps": (1, 181, 360)}),
    # A map in four chunks.
    ((365, 181, 360), (1, 91, 180), 4, Signs(None, ("T", "Y", "X")), {"maps": (1, 181, 360)}),
    ((365, 181, 360), (365, 10, 10), 4, Signs(None, ("T", "Y", "X")), {"series": (365, 1, 1)}),
    ((500, 64, 64, 3), (1, 64, 64, 3), 1, Signs(), {"images": (1, 64, 64, 3)}),
    (
        (500, 3, 64, 64),
        (64, 3, 64, 64),
        1,
        Signs(),
        {"rows": (1, 1, 1, 64), "images": (1, 3, 64, 64)},
    ),
    (
        (60, 30, 9, 717),
        (4, 30, 9, 717),
        4,
        Signs(),
        {"rows": (1, 1, 1, 717), "planes across dimension 0": (1, 30, 9, 717)},
    ),
    # Nothing says for what: cubes, data in one piece, chunks of some bytes.
    ((128, 128, 128), (64, 64, 64), 4, Signs(), {"rows": (1, 1, 128), "steps": (1, 128, 128)}),
    ((128, 128, 128), None, 4, Signs(), {"rows": (1, 1, 128), "steps": (1, 128, 128)}),
    ((120, 150, 150), (1, 2, 50), 4, Signs(), {"rows": (1, 1, 150), "steps": (1, 150, 150)}),
    ((1_000_000,), (10_000,), 4, Signs(), {"pieces": (1024,)}),
    ((1_000_000,), (10_000,), 4, Signs("sparse"), {"rows of a sparse matrix": (256,)}),
]


@pytest.mark.parametrize("number", range(len(RECOGNIZED)))
def test_what_a_layout_is_for(number: int) -> None:
    shape, chunks, itemsize, signs, uses = RECOGNIZED[number]
    found = purpose(shape, chunks, itemsize, signs)
    assert {use.name: use.block for use in found.uses} == uses
    assert found.why


def make(path: Path, name: str, shape: Shape, chunks: Shape, **options: Any) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset(name, shape, "f4", chunks=chunks, **options)[...] = 1


def dataset(facts: FileFacts, path: str) -> DatasetFacts:
    (found,) = [one.dataset for one in facts.objects if one.path == path]
    assert found is not None
    return found


def names(path: Path, name: str) -> list[str]:
    found = dataset(inspect(path, sample=False), name).purpose
    assert found is not None
    return [use.name for use in found.uses]


@pytest.mark.parametrize(
    ("name", "shape", "chunks", "mark", "use"),
    [
        ("entry/data/data", (20, 256, 256), (1, 256, 256), None, "planes across dimension 0"),
        ("entry/data/data", (20, 256, 256), (1, 256, 256), ("NX_class", "NXdetector"), "frames"),
        ("x/x", (20, 256, 256), (1, 256, 256), ("CLASS", np.bytes_("IMAGE")), "images"),
        ("X/data", (1_000_000,), (10_000,), "indptr", "rows of a sparse matrix"),
    ],
    ids=["nothing", "a class of NeXus", "an image", "a sparse matrix"],
)
def test_signs_in_a_file(
    tmp_path: Path, name: str, shape: Shape, chunks: Shape, mark: Any, use: str
) -> None:
    """Classes of a dataset and its group, and what lies beside it."""
    path = tmp_path / "a.h5"
    make(path, name, shape, chunks)
    with h5py.File(path, "r+") as file:
        group = file[name].parent
        if mark == "indptr":
            group[mark] = np.arange(10)
        elif mark is not None:
            marked = file[name] if mark[0] == "CLASS" else group
            marked.attrs[mark[0]] = mark[1]
    assert names(path, f"/{name}") == [use]


@pytest.mark.parametrize(
    "attributes",
    [
        [{"axis": "T"}, {"axis": "Y"}, {"axis": "X"}],
        [
            {"units": "days since 1950-01-01"},
            {"units": "degrees_north"},
            {"units": "degrees_east"},
        ],
        [{}, {"standard_name": "projection_y_coordinate"}, {"standard_name": "grid_longitude"}],
    ],
)
def test_maps_by_their_dimensions(tmp_path: Path, attributes: list[dict[str, str]]) -> None:
    path, shape = tmp_path / "a.h5", (20, 180, 360)
    make(path, "t", shape, (1, 180, 360))
    with h5py.File(path, "r+") as file:
        for axis, said in enumerate(attributes):
            scale = file.create_dataset(f"d{axis}", data=np.arange(shape[axis], dtype="f4"))
            scale.attrs.update(said)
            scale.make_scale()
            file["t"].dims[axis].attach_scale(scale)
    assert names(path, "/t") == ["maps"]


def test_frames_are_not_called_wrong(tmp_path: Path) -> None:
    """A chunk that is a frame is the best for frames: no warning, and `fix` leaves it."""
    path = tmp_path / "a.h5"
    make(path, "entry/data/data", (40, 514, 1030), (1, 514, 1030), compression="gzip")
    facts = inspect(path)
    assert {one.severity for one in facts.findings} <= {"note"}
    assert "chunk-exceeds-cache" not in {one.code for one in facts.findings}
    for finding in facts.findings:
        if finding.code == "reads-exceed-cache":
            assert finding.summary.startswith("If you read lines along dimension 0 (40x1x1)")
    assert facts.layout is None
    done = chunkwise.fix(path, tmp_path / "b.h5", seconds=0)
    assert done.outcome == "nothing to mend"
    assert not (tmp_path / "b.h5").exists()
    # Who states it gets it.
    planned = chunkwise.fix(path, dry_run=True, access=["line:0"])
    assert planned.changes[0].chunk not in (None, (1, 514, 1030))


def test_it_is_said_what_was_judged(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    make(path, "t", (40, 181, 360), (1, 181, 360), compression="gzip")
    with h5py.File(path, "r+") as file:
        file["t"][...] = np.random.default_rng(0).random((40, 181, 360), "f4")
    said = " ".join(run("inspect", path).out.replace("│", "").split())
    assert "judged for planes across dimension 0 (1x181x360): each chunk is one of them" in said, (
        said
    )
    one = " ".join(run("inspect", path, "t").out.split())
    assert "judged for planes across dimension 0 (1x181x360)" in one
    assert "judged for" not in run("inspect", path, "--access", "line:0").out


def test_tiny_chunks_are_mended_whatever_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    make(path, "x", (512, 512), (8, 8))
    (finding,) = inspect(path).findings
    assert (finding.code, finding.is_offer) == ("small-chunks", False)
    assert finding.layout is not None
