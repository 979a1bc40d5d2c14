"""Are netCDF-3's formats written and read as the data that they are made of?"""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from chunkwise import measure
from chunkwise.errors import CorruptDataError, UsageError
from chunkwise.measure import netcdf3, variants
from chunkwise.measure.space import Point
from chunkwise.measure.target import look
from chunkwise.trials import worker
from chunkwise.trials.formats import FORMATS, is_netcdf3
from chunkwise.trials.trial import Trial
from tests.support.tools import needs_netcdf

NETCDF3 = {"classic": b"CDF\x01", "64bit-offset": b"CDF\x02", "64bit-data": b"CDF\x05"}


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A file with one dataset in a group, big-endian, in chunks."""
    name = tmp_path / "data.h5"
    with h5py.File(name, "w") as file:
        values = np.arange(6 * 8, dtype=">i2").reshape(6, 8)
        file.create_dataset("a/b", data=values, chunks=(4, 8), compression="gzip")
        file["unsigned"] = np.arange(6, dtype="u4")
        file["complex"] = np.zeros(6, dtype="c8")
    return str(name)


def points(**axes: list[str]) -> list[Point]:
    given = {"access": ["all"], "reader": ["netcdf4"], **axes}
    return measure.Space({name: tuple(texts) for name, texts in given.items()}).points(())


def test_a_format_concerns_netcdf_alone() -> None:
    found = points(format=["netcdf4", "classic"], reader=["netcdf4", "libhdf5"])
    assert [(p["format"], p["reader"]) for p in found] == [
        ("netcdf4", "netcdf4"), ("netcdf4", "libhdf5"), ("classic", "netcdf4"),
    ]  # fmt: skip


def test_chunks_filters_and_caches_do_not_concern_netcdf3() -> None:
    found = points(
        format=["netcdf4", "classic"], chunk=["2x2", "4x4"], filter=["none"], cache=["1MiB"]
    )
    told = [(p["format"], p["chunk"], p["filter"], p["cache"]) for p in found]
    assert told == [
        ("netcdf4", "2x2", "none", "1MiB"),
        ("netcdf4", "4x4", "none", "1MiB"),
        ("classic", "stored", "stored", "default"),
    ]


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ({"reader": ["libhdf5"], "format": ["classic"]}, "by netcdf4, and no such trial"),
        ({"format": ["classic"], "chunk": ["2x2"]}, "concerns HDF5 files"),
        ({"format": ["netcdf5"]}, "choose from netcdf4, classic"),
    ],
)
def test_what_makes_no_sense_is_refused(axes: dict[str, list[str]], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        points(**axes)


@pytest.mark.parametrize(
    ("dataset", "format", "remedy"),
    [
        ("unsigned", "classic", "use 64bit-data, or netcdf4"),
        ("unsigned", "64bit-offset", "use 64bit-data, or netcdf4"),
        ("complex", "64bit-data", "use netcdf4"),
    ],
)
def test_types_that_a_format_lacks_are_refused(
    path: str, dataset: str, format: str, remedy: str
) -> None:
    with pytest.raises(UsageError, match=f"hold no .*; {remedy}"):
        variants.variant_of(look(path, dataset), "stored", "stored", format)


@needs_netcdf
@pytest.mark.parametrize("format", NETCDF3)
def test_a_scratch_file_is_of_its_format_and_holds_the_data(
    path: str, tmp_path: Path, format: str
) -> None:
    python = pytest.importorskip("netCDF4")
    # Makes its format netCDF-C's default in this process.
    python.Dataset(tmp_path / "other.nc", "w", format="NETCDF4").close()
    target = look(path, "/a/b")
    variant = variants.variant_of(target, "stored", "stored", format)
    with variants.prepared(target, [variant], scratch=str(tmp_path)) as made:
        found = made.reading[variant]
        assert Path(found.file).read_bytes()[:4] == NETCDF3[format]
        assert (found.dataset, found.chunks, found.filters) == ("/b", None, "none")
        assert str(variant) == FORMATS[format]
        with python.Dataset(found.file) as file:
            assert np.array_equal(file["b"][:], np.arange(48).reshape(6, 8))


@needs_netcdf
def test_of_a_sample_a_scratch_file_holds_the_sample(path: str, tmp_path: Path) -> None:
    target = look(path, "/a/b")
    variant = variants.variant_of(target, "stored", "stored", "classic")
    with variants.prepared(target, [variant], (), 64, str(tmp_path)) as made:
        assert made.reading[variant].shape == (4, 8)


@needs_netcdf
def test_what_netcdf_refuses_names_the_format(path: str, tmp_path: Path) -> None:
    target = look(path, "/a/b")
    (tmp_path / "elements").write_bytes(np.arange(48, dtype=">i2").tobytes())
    there = tmp_path / "there.nc"
    there.touch()
    with pytest.raises(UsageError, match=r"as netCDF classic: .*File exists"):
        netcdf3.write(target, "classic", str(tmp_path / "elements"), there)


@needs_netcdf
def test_formats_are_written_and_read_in_one_run(path: str, tmp_path: Path) -> None:
    space = measure.Space.of(
        access=["all"], reader=["netcdf4"], operation=["write", "read"], format=list(FORMATS),
        page_cache=["cold"],
    )  # fmt: skip
    results = measure.run(path, "/a/b", space, repeat=1, seconds=30, scratch=str(tmp_path))
    assert [(r["operation"], r["format"]) for r in results.records] == [
        (operation, format) for operation in ("write", "read") for format in FORMATS
    ]
    for record in results.records:
        assert (record["status"], record["error"]) == ("ok", None)
        assert record["dataset"] == ("/b" if is_netcdf3(record["format"]) else "/a/b")
    read = [r for r in results.records if r["operation"] == "read"]
    assert all(record["page_cache"].startswith("cold") for record in read)
    assert results.target.dataset == "/a/b"


@needs_netcdf
@pytest.mark.parametrize("format", NETCDF3)
def test_what_is_written_is_read_back(
    path: str, tmp_path: Path, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    elements = tmp_path / "elements"
    elements.write_bytes(np.arange(48, dtype="<i2").tobytes())
    trial = Trial(
        path, "/b", "all", (6, 8), "netcdf4", format=format, operation="write", shape=(6, 8),
        itemsize=2, dtype="<i2", data=str(elements), scratch=str(tmp_path),
    )  # fmt: skip
    assert worker.measure(trial)["status"] == "ok"
    whole = Path.stat

    def spoil(written: Path) -> Any:
        """When the worker asks for the file's size it is written, and not yet read back."""
        if written.name.startswith("written-"):
            with written.open("r+b") as stream:
                stream.seek(-4, 2)
                stream.write(b"spam")
        return whole(written)

    monkeypatch.setattr(Path, "stat", spoil)
    with pytest.raises(CorruptDataError, match="reads as other bytes than were given"):
        worker.measure(trial)
    assert list(tmp_path.glob("written-*")) == []
