"""Does inspect judge by the patterns that are stated, where they are meant, and nowhere else?"""

import json
import random
import re
from pathlib import Path

import h5py
import numpy as np
import pytest

from chunkwise.diagnosis.reads import decodes
from chunkwise.errors import SelectionError, UsageError
from chunkwise.fixing import fix
from chunkwise.grammar import format_shape
from chunkwise.inspection import inspect
from chunkwise.inspection.facts import FileFacts
from chunkwise.inspection.patterns import stored_as
from chunkwise.model import worth
from chunkwise.model.chunk_shape import default_chunk
from chunkwise.model.cost import Stored
from chunkwise.model.layout import FileLayout
from chunkwise.model.nominal import slowdown
from chunkwise.model.readers import LIBHDF5_1, LIBRARIES, reader, this_process
from chunkwise.model.traffic import Pattern
from chunkwise.patterns import stated
from tests.support.commands import run

SHAPE = (120, 150, 150)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A map of each day in a chunk, and coordinates of as many dimensions as patterns have."""
    found = tmp_path_factory.mktemp("access") / "a.h5"
    values = np.arange(np.prod(SHAPE), dtype="<f4").reshape(SHAPE)
    with h5py.File(found, "w") as file:
        file.create_dataset("t", data=values, chunks=(1, 150, 150), compression=1)
        file.create_dataset("height", data=values, chunks=(1, 150, 150), compression=1)
        file["t"].attrs["coordinates"] = "height"
        for axis, name in enumerate(("time", "y", "x")):
            file[name] = np.arange(SHAPE[axis], dtype="<f8")
            file[name].make_scale(name)
            file["t"].dims[axis].attach_scale(file[name])
    return found


def offered(facts: FileFacts, path: str = "/t") -> set[str]:
    return {
        str(one.evidence["offered_chunks"])
        for one in facts.findings
        if one.path == path and "offered_chunks" in one.evidence
    }


def about(facts: FileFacts, code: str = "access-mismatch") -> list[str | None]:
    return [one.path for one in facts.findings if one.code == code]


def test_chunks_are_offered_for_what_is_stated(path: Path) -> None:
    for access, block in (("line:0", (120, 1, 1)), ("series=y=1,x=1", (120, 1, 1))):
        facts = inspect(path, access=[access])
        (found,) = [one for one in facts.findings if one.code == "access-mismatch"]
        assert found.path == "/t"
        expected = default_chunk(SHAPE, 4, SHAPE, [block])
        assert offered(facts) == {format_shape(expected)}
        assert found.layout is not None
        assert found.layout.datasets[0].chunk == expected
        assert float(found.evidence["times"]) > 10
        loaded, offered_loaded = (
            float(found.evidence[name]) for name in ("loaded_nbytes", "offered_loaded_nbytes")
        )
        assert loaded > offered_loaded
    # Maps are served well.
    assert about(inspect(path, access=["plane:0"])) == []
    assert about(inspect(path)) == []


def test_a_gain_that_only_smaller_caches_have_names_its_reader(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        data = np.arange(2048.0 * 2048).reshape(2048, 2048).astype("f4")
        file.create_dataset("x", data=data, chunks=(512, 512), compression="gzip")
    found = [one for one in inspect(path, access=["64x64@walk"]).findings if one.path == "/x"]
    (mismatch,) = [one for one in found if one.code == "access-mismatch"]
    older = this_process().cache_nbytes <= LIBHDF5_1.cache_nbytes
    assert mismatch.evidence["reader"] == (this_process() if older else LIBHDF5_1).name
    if not older:
        assert f"as fast to {LIBHDF5_1.title}" in mismatch.summary
        # `fix` promises and measures the gain with that cache.
        assert mismatch.evidence["cache_nbytes"] == LIBHDF5_1.cache_nbytes
        assert mismatch.severity == "note"


def test_the_multiple_is_the_ratio_of_the_times_beside_it_and_what_fix_promises(
    path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With the rounding to three digits of both."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    units = {"µs": 1e-6, "ms": 1e-3, "s": 1.0}
    for access in (["line:0"], ["line:0", "plane:1 weight 2"], ["random:9:120x2x2"]):
        facts = inspect(path, access=access)
        (found,) = [one for one in facts.findings if one.code == "access-mismatch"]
        times = float(re.search(r"about ([\d,.]+) times", found.summary)[1].replace(",", ""))  # type: ignore[index]
        _, _, each = found.summary.partition("from memory: ")
        taken = [
            [
                float(number) * units[unit]
                for number, unit in re.findall(r"([\d.]+) (µs|ms|s)", one)
            ]
            for one in each.split(", ")
        ]
        weights = [1, 2][: len(access)]
        now, then = (np.dot(weights, side) for side in zip(*taken, strict=True))
        assert times == pytest.approx(now / then, rel=0.011)
        if len(access) == 1:
            gains = fix(path, access=access, dry_run=True).gains
            (gain,) = [one for one in gains if one.path == "/t"]
            assert gain.promised_times == pytest.approx(found.evidence["times"])
    bare = inspect(path, access=["line:0"], sample=False)
    (found,) = [one for one in bare.findings if one.code == "access-mismatch"]
    assert "by the model of a nominal machine" in found.summary
    assert "from memory" not in found.summary


def test_ways_of_reading_that_nobody_stated_are_no_matter(path: Path) -> None:
    assert "reads-exceed-cache" in {one.code for one in inspect(path).findings}
    assert not [one for one in inspect(path, access=["plane:0"]).findings if one.path == "/t"
                and one.layout is not None and one.layout.datasets[0].chunk]  # fmt: skip


def test_coordinates_are_not_meant_unless_they_are_named(path: Path) -> None:
    assert about(inspect(path, access=["line:0"])) == ["/t"]
    assert about(inspect(path, "height", access=["line:0"])) == ["/height"]


def test_what_was_stated_is_in_the_tables(path: Path) -> None:
    facts = inspect(path, "t", access=["line:0", "random:50:1x20x20", "plane:2@f"])
    (entry,) = facts.objects
    assert entry.dataset is not None
    assert entry.dataset.patterns is not None
    names = {one.name: one for one in entry.dataset.patterns}
    assert list(names) == ["line:0", "random:50:1x20x20", "plane:2@f"]
    survival = next(
        one for one in names["random:50:1x20x20"].survival if one.reader == LIBHDF5_1.name
    )
    stored = stored_as(entry.dataset)
    places = Pattern("", (1, 20, 20), scattered=True, operations=50)
    assert survival.decodes == decodes(stored, places, LIBHDF5_1)


def test_lists_of_selections_are_taken(path: Path, tmp_path: Path) -> None:
    listed = tmp_path / "places"
    draw = random.Random(0)
    places = ([draw.randrange(length) for length in SHAPE] for _ in range(500))
    listed.write_text("".join(f"{place}\n" for place in places))
    facts = inspect(path, access=[f"list:{listed}"])
    assert len(offered(facts)) == 1
    assert about(facts) == ["/t"]


def test_patterns_that_fit_nothing_are_an_error(path: Path) -> None:
    with pytest.raises(SelectionError, match="'1x1x1x1' has 4 dimensions"):
        inspect(path, access=["1x1x1x1"])
    with pytest.raises(UsageError, match="no access pattern is called 'nonsense'"):
        inspect(path, access=["nonsense"])


def test_the_command_takes_them(path: Path) -> None:
    words = ["--access", "time=all,y=1,x=1", "--access", "plane:0 weight 0.01"]
    told = json.loads(run("inspect", path, *words, "--json").out)
    expected = inspect(path, access=["time=all,y=1,x=1", "plane:0 weight 0.01"])
    assert [one["code"] for one in told["findings"]] == [one.code for one in expected.findings]
    assert "access-mismatch" in [one["code"] for one in told["findings"]]


@pytest.mark.skipif(h5py.version.hdf5_version_tuple < (2,), reason="it has the smaller cache")
def test_what_helps_older_libraries_and_slows_this_one_is_left_to_the_user(tmp_path: Path) -> None:
    """As in h5py#1832: every second row and column of chunks that only a new cache holds."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", (2000, 1000), "f8", chunks=(500, 500))[...] = 1.5
    facts = inspect(tmp_path / "a.h5", access=["[::2]", "[:, ::2]"])
    (found,) = [one for one in facts.findings if one.code == "access-mismatch"]
    assert re.search(r"and 0\.\d\dx as fast to HDF5", found.summary)
    assert found.is_offer
    assert facts.layout is None or not facts.layout.datasets


@pytest.mark.parametrize("seed", range(8))
def test_no_finding_asks_for_chunks_that_slow_stated_reads(seed: int, tmp_path: Path) -> None:
    """Rows in tiny chunks, and regions of what is in one piece, are read at random places."""
    rng = random.Random(seed)
    if seed % 2:
        shape = (rng.choice([4_000, 12_000]), rng.choice([3, 5]), rng.choice([80, 200]))
        chunks, text = (1, *shape[1:]), "samples:200"
    else:
        shape, chunks = (rng.choice([600, 1_500]), 64, rng.choice([48, 64])), None
        text = f"random:10:{shape[0]}x{rng.choice([5, 12])}x{rng.choice([7, 12])}"
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", shape, "f4", chunks=chunks, data=np.zeros(shape, "f4"))
    facts = inspect(tmp_path / "a.h5", access=[text])
    reads = stated([text], shape, 4, shape, "/x")
    found = [one for one in facts.findings if one.layout is not None and not one.is_offer]
    asked = [one.chunk for each in found for one in (each.layout or FileLayout()).datasets]
    assert asked or not seed % 2
    for chunk in asked:
        assert chunk is not None
        readers = (*LIBRARIES, reader("chunkwise"))
        before, after = (Stored.of(shape, c, 4, filtered=False) for c in (chunks, chunk))
        times = slowdown(before, after, reads, readers)
        assert times <= worth.HARMLESS
