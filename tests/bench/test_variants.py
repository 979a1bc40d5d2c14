"""Do other ways of storing the data hold the same data, and are they gone afterwards?"""

import signal
from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise import measure
from chunkwise.errors import UsageError
from chunkwise.measure.schedule import Step
from chunkwise.measure.space import Space
from chunkwise.measure.target import Target, look
from chunkwise.measure.variants import Variant, prepared, variant_of
from tests.support.golden import assert_golden, refused
from tests.support.processes import interrupted

SHAPE = (40, 30, 20)
DATA = np.arange(40 * 30 * 20, dtype=">i4").reshape(SHAPE)


def combine(target: Target, chunks: list[str], filters: list[str]) -> list[Variant]:
    return list(dict.fromkeys(variant_of(target, c, f) for c in chunks for f in filters))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "data.h5"
    with h5py.File(path, "w") as f:
        f.create_dataset("g/x", data=DATA, chunks=(4, 30, 20), compression=1, shuffle=True)
        f.create_dataset("plain", data=DATA)
    return path


def test_each_shape_with_each_pipeline(file: Path) -> None:
    target = look(file, "g/x")
    found = combine(target, ["stored", "8x5x20"], ["stored", "none", "shuffle+gzip:1"])
    assert found == [
        Variant((4, 30, 20), "shuffle+deflate:1"),
        Variant((4, 30, 20), "none"),
        Variant((8, 5, 20), "shuffle+deflate:1"),
        Variant((8, 5, 20), "none"),
    ]
    assert combine(target, ["contiguous"], ["none"]) == [Variant(None, "none")]
    (auto,) = combine(target, ["auto"], ["none"])
    assert auto.chunks == SHAPE  # all of it is smaller than a chunk may be
    assert str(found[1]) == "chunks 4x30x20, no filter"


def test_what_makes_no_sense_is_refused(file: Path) -> None:
    target = look(file, "g/x")
    asked = "4x30=none 41x1x1=none contiguous=deflate:1 stored=gzipp 4xx=none"
    said = refused(lambda one: variant_of(target, *one.split("=")), asked.split())
    assert_golden("variants-refused", said.replace(str(file.parent), "FOLDER"))


def test_variants_hold_the_same_data_and_go_away(file: Path, tmp_path: Path) -> None:
    target = look(file, "g/x")
    variants = combine(target, ["stored", "7x9x20"], ["stored", "none", "fletcher32", "lzf"])
    variants += combine(target, ["contiguous"], ["none"])
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with prepared(target, variants, scratch=str(scratch)) as made:
        assert made.sampled is None
        assert made.reading[variants[0]] == target
        for variant, each in made.reading.items():
            assert Variant(each.chunks, each.filters) == variant
            with h5py.File(each.file) as f:
                assert f["g/x"].id.get_type().equal(h5py.h5t.STD_I32BE)
                assert np.array_equal(f["g/x"][...], DATA)
        assert list(scratch.iterdir())
    assert not list(scratch.iterdir())


def test_what_repack_would_write_is_measured_as_repack_writes_it(tmp_path: Path) -> None:
    counts = np.random.default_rng(0).poisson(0.4, (8, 300, 260)).astype("u2")
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f.create_dataset("x", data=counts, chunks=(1, 300, 260), compression=4, shuffle=True)
    target = look(tmp_path / "a.h5", "x")
    variants = [Variant((2, 300, 130), "shuffle+deflate:4"), Variant(None, "none")]
    chunkwise.repack(tmp_path / "a.h5", tmp_path / "b.h5", chunk="2x300x130")
    with prepared(target, variants, scratch=str(tmp_path), repacked=variants) as made:
        by_repack, plain = (each.file for each in made.reading.values())
        assert _stored(by_repack) == _stored(tmp_path / "b.h5")
        with h5py.File(by_repack) as f, h5py.File(plain) as g:
            assert np.array_equal(f["x"][...], counts)
            assert np.array_equal(g["x"][...], counts)
    with prepared(target, variants, scratch=str(tmp_path)) as made:
        assert _stored(made.reading[variants[0]].file) != _stored(tmp_path / "b.h5")


def _stored(path: str | Path) -> list[bytes]:
    with h5py.File(path) as f:
        found = f["x"].id
        origins = [found.get_chunk_info(n).chunk_offset for n in range(found.get_num_chunks())]
        return [found.read_direct_chunk(origin)[1] for origin in sorted(origins)]


def test_a_sample_is_whole_slabs_spread_over_the_data(file: Path) -> None:
    target = look(file, "g/x")
    # Three slabs of 4 of the 40 indexes.
    sample = 3 * 4 * 30 * 20 * 4 + 100
    variants = combine(target, ["stored", "1x30x20"], ["none"])
    with prepared(target, variants, sample_nbytes=sample) as made:
        assert made.sampled == 12
        for each in made.reading.values():
            assert each.shape == (12, 30, 20)
            with h5py.File(each.file) as f:
                rows = [*range(4), *range(12, 16), *range(24, 28)]
                assert np.array_equal(f["g/x"][...], DATA[rows])
    too_small = prepared(target, variants, sample_nbytes=100)
    with pytest.raises(UsageError, match="give a larger --sample"), too_small:
        pass


def test_space_is_checked_before(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = SimpleNamespace(total=1 << 30, free=1000)
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage)
    target = look(file, "g/x")
    with pytest.raises(UsageError, match="name a folder with --scratch"):
        measure.run(file, "g/x", space=Space.of(access=["all"], chunk=["1x30x20"]), repeat=1)
    # What is stored already needs none.
    (stored,) = combine(target, ["stored"], ["stored"])
    with prepared(target, [stored]) as made:
        assert made.reading == {stored: target}


def test_a_run_compares_variants(file: Path, tmp_path: Path) -> None:
    saved = tmp_path / "trials.jsonl"
    space = Space.of(
        access=["line:0", "all"], reader=["libhdf5", "h5py"], chunk=["stored", "40x5x5"],
        filter=["stored", "none"],
    )  # fmt: skip
    results = measure.run(file, "g/x", space, repeat=1, seconds=60, save=saved)
    assert [cell.problem for cell in results.cells] == [None] * 16
    assert results.compared == 16
    assert results.mismatches == []
    assert len(results.variants) == 4
    assert results.target.file == str(file)
    by_variant = {
        (tuple(row["chunks"]), row["filters"]): row["stored_nbytes"] for row in results.records
    }
    assert by_variant[(4, 30, 20), "none"] == DATA.nbytes
    assert by_variant[(4, 30, 20), "shuffle+deflate:1"] < DATA.nbytes
    # Scratch files are others each time, and the trials the same.
    made: list[Step] = []
    measure.run(file, "g/x", space, repeat=1, save=saved, progress=made.append)
    assert [step for step in made if step.total] == []


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_scratch_files_go_with_the_run(
    file: Path, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    scratch = tmp_path / "scratch"
    words = ["bench", file, "g/x", "--chunk", "1x30x20", "--scratch", scratch]
    words += ["--access", "1x1x1", "--budget", "60"]
    assert interrupted(words, scratch, number) == code
