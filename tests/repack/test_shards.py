"""Is a file whose large datasets are divided among several what one file would be?"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import chunkwise
from chunkwise.errors import CannotWriteError, CorruptDataError, UsageError
from chunkwise.parallel.index import Table
from chunkwise.repacking import shards
from chunkwise.repacking.claim import Claim
from chunkwise.repacking.progress import Moment
from chunkwise.repacking.rank import Rank
from chunkwise.repacking.shards import Division
from tests.support.repacking import command, require_equal, text_of

LARGE = (24, 300, 300)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A netCDF-4 file with a dataset of 8.6 MB along an unlimited dimension, and others."""
    path = tmp_path_factory.mktemp("source") / "in.nc"
    data = np.random.default_rng(0).integers(0, 50, LARGE, "i4").cumsum(0).astype("f4")
    with netCDF4.Dataset(path, "w") as file:
        file.title = "an example"
        for name, length in (("time", None), ("lat", 300), ("lon", 300)):
            file.createDimension(name, length)
        dims = ("time", "lat", "lon")
        t2m = file.createVariable(
            "t2m", "f4", dims, zlib=True, shuffle=True, fill_value=-9, chunksizes=(1, 300, 300)
        )
        t2m.units = "K"
        t2m[:] = data
        file.createVariable("time", "f8", ("time",))[:] = np.arange(24)
        file.createGroup("more").createVariable("n", "i4", dims, chunksizes=(5, 100, 100))[:] = (
            data
        )
    return path


def left(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir())


# --- dividing --------------------------------------------------------------------------


@given(
    sides=st.lists(st.tuples(st.integers(1, 40), st.integers(1, 12)), min_size=1, max_size=4),
    count=st.integers(2, 9),
    seed=st.integers(0, 2**32 - 1),
)
def test_parts_are_of_whole_chunks_and_all_there_is(
    sides: list[tuple[int, int]], count: int, seed: int
) -> None:
    shape, chunk = (tuple(one) for one in zip(*sides, strict=True))
    chunks = [-(-a // b) for a, b in sides]
    division = Division.of(shape, chunk, count)
    if division is None:
        assert max(chunks) == 1
        return
    axis, bounds = division.axis, division.bounds
    assert division.count == min(count, chunks[axis])
    assert chunks[axis] >= count or chunks[axis] == max(chunks)
    assert all(n < count for n in chunks[:axis])
    assert (bounds[0], bounds[-1]) == (0, shape[axis])
    assert all(begin < end and begin % chunk[axis] == 0 for begin, end in division.ranges())
    each = [-(-(end - begin) // chunk[axis]) for begin, end in division.ranges()]
    assert max(each) - min(each) <= 1
    # Each row is asked of its part, with elements of the part, and the answer is at its place.
    rng = np.random.default_rng(seed)
    rows = np.stack([rng.integers(0, n, 20) * c for n, c in zip(chunks, chunk, strict=True)], 1)
    rows = rows.astype(np.uint64)

    def ask(part: int, mine: Table) -> Table:
        length = division.shape_of(part, shape)[axis]
        assert (mine[:, axis] < length).all()
        return mine[:, axis] + np.uint64(bounds[part])

    assert (division.asked(rows, ask, 0) == rows[:, axis]).all()


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    sides=st.lists(
        st.tuples(st.integers(1, 13), st.integers(1, 6), st.integers(1, 6), st.booleans()),
        min_size=1,
        max_size=3,
    ),
    count=st.integers(2, 5),
    filters=st.sampled_from(["stored", "none", "shuffle+deflate:1", "zstd:1"]),
    written=st.floats(0, 1),
    latest=st.booleans(),
)
def test_any_dataset_is_the_same_divided(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    sides: list[tuple[int, int, int, bool]],
    count: int,
    filters: str,
    written: float,
    latest: bool,
) -> None:
    monkeypatch.setattr(shards, "_LEAST_NBYTES", 0)
    folder = tmp_path_factory.mktemp("any")
    path, out = folder / "in.h5", folder / "out.h5"
    shape = tuple(side[0] for side in sides)
    limits = tuple(None if side[3] else side[0] for side in sides)
    first, second = (
        tuple(side[at] if side[3] else min(side[at], side[0]) for side in sides) for at in (1, 2)
    )
    with h5py.File(path, "w", libver="v110" if latest else "earliest") as file:
        made = file.create_dataset(
            "g/x", shape, "i2", chunks=first, maxshape=limits, fillvalue=7, compression=1
        )
        rows = math.ceil(written * shape[0])
        made[:rows] = np.arange(math.prod(shape)).reshape(shape)[:rows]
    words: dict[str, Any] = {"chunk": {"g/x": second}, "filters": filters, "shards": count}
    if Division.of(shape, second, count) is None:
        with pytest.raises(UsageError, match="no dataset can be divided"):
            chunkwise.repack(path, out, **words)
        assert left(folder) == ["in.h5"]
        return
    done = chunkwise.repack(path, out, **words)
    with h5py.File(out) as file, h5py.File(path) as before:
        assert file["g/x"].is_virtual
        assert file["g/x"].maxshape == before["g/x"].maxshape
        np.testing.assert_array_equal(file["g/x"], before["g/x"])
    require_equal(path, out)
    assert len(done.shards) == done.datasets[0].shards
    shutil.rmtree(folder)


# --- what is there ---------------------------------------------------------------------


@pytest.mark.parametrize("verify", ["proof", "none"])
def test_readers_see_what_one_file_has(source: Path, tmp_path: Path, verify: Any) -> None:
    one, out = tmp_path / "one.nc", tmp_path / "sub" / "out.nc"
    out.parent.mkdir()
    words: dict[str, Any] = {"chunk": "t2m:24x30x30", "filters": "shuffle+deflate:1"}
    chunkwise.repack(source, one, **words)
    done = chunkwise.repack(source, out, shards=4, verify=verify, **words)
    assert done.verified == verify
    assert [shard.path.rpartition("-")[0] for shard in done.shards] == [
        f"out.nc.shards/000{number}" for number in (1, 2, 3, 4)
    ]
    assert {one.path: one.shards for one in done.datasets if one.shards} == {
        "/t2m": 4,
        "/more/n": 4,
    }
    # What belongs together may be moved.
    moved = tmp_path / "moved"
    out.parent.rename(moved)
    out = moved / "out.nc"
    require_equal(one, out)
    assert text_of(out) == text_of(one)
    with netCDF4.Dataset(out) as theirs, netCDF4.Dataset(one) as mine:
        assert theirs.dimensions["time"].isunlimited()
        for name in ("t2m", "more/n", "time"):
            np.testing.assert_array_equal(theirs[name][:], mine[name][:])
        assert theirs["t2m"].ncattrs() == mine["t2m"].ncattrs()
    with chunkwise.File(out) as theirs, h5py.File(one) as mine:
        assert theirs["t2m"].is_virtual
        assert theirs["t2m"].maxshape == (None, 300, 300)
        assert theirs["t2m"].fillvalue == -9
        assert theirs["t2m"].dims[0][0].name == "/time"
        np.testing.assert_array_equal(theirs["t2m"][3:9, ::7, 290], mine["t2m"][3:9, ::7, 290])
        chunks = mine["t2m"].id.get_num_chunks()
    parts = []
    for shard in sorted((moved / "out.nc.shards").iterdir()):
        with h5py.File(shard) as file:
            assert file["t2m"].chunks == (24, 30, 30)
            assert file["t2m"].compression == "gzip"
            parts.append(file["t2m"].shape[1])
            chunks -= file["t2m"].id.get_num_chunks()
            assert shard.stat().st_mode == out.stat().st_mode
    assert (sum(parts), chunks) == (300, 0)
    # One file again.
    chunkwise.repack(out, tmp_path / "again.nc", merge=True)
    with h5py.File(tmp_path / "again.nc") as file:
        assert not file["t2m"].is_virtual
    require_equal(one, tmp_path / "again.nc")


def test_elements_can_be_changed_and_none_appended(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.nc"
    chunkwise.repack(source, out, shards=2)
    with h5py.File(out, "r+") as file:
        file["t2m"][23, 7] = 5
        with pytest.raises(TypeError):
            file["t2m"].resize(25, axis=0)
    with h5py.File(out) as file:
        assert (file["t2m"][23, 7] == 5).all()
    with netCDF4.Dataset(out, "a") as file, pytest.raises(RuntimeError):
        file["t2m"][24] = 1
    (tmp_path / "linked").mkdir()
    link = tmp_path / "linked" / "a.nc"
    link.symlink_to(out)
    with h5py.File(link) as file:
        assert (file["t2m"][23, 7] == 5).all()


TYPES: dict[str, Any] = {
    "compound": np.dtype([("a", "<f4"), ("b", ">i8"), ("c", "S3")]),
    "enum": h5py.enum_dtype({"no": 0, "yes": 1}, basetype="i1"),
    "big-endian": np.dtype(">u2"),
    "text": np.dtype("S7"),
    "array": np.dtype(("i4", (2, 3))),
    "complex": np.dtype("c8"),
    "opaque": h5py.opaque_dtype(np.dtype("M8[s]")),
}


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("how", ["copied", "deflate:1", "fletcher32", "committed"])
def test_any_type_is_the_same_divided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, how: str
) -> None:
    monkeypatch.setattr(shards, "_LEAST_NBYTES", 0)
    path, out = tmp_path / "in.h5", tmp_path / "out.h5"
    datatype = TYPES[name]
    random = np.random.default_rng(0).integers(0, 2, (64, 6, datatype.itemsize), "u1")
    data = random.view(datatype.base if datatype.subdtype else datatype)
    with h5py.File(path, "w") as file:
        if how == "committed":
            file["type"] = datatype
            datatype = file["type"]
        made = file.create_dataset("x", (64, 6), datatype, chunks=(4, 5), compression=1)
        made[...] = data.reshape(made[...].shape)
        made.attrs["refers"] = made.ref
        file["refers"] = np.array([made.regionref[3:9]], h5py.regionref_dtype)
    filters = "stored" if how in ("copied", "committed") else f"shuffle+{how}"
    done = chunkwise.repack(path, out, filters={"x": filters}, shards=3)
    assert [one.shards for one in done.datasets if one.path == "/x"] == [3]
    require_equal(path, out)
    with h5py.File(out) as file:
        assert file["x"].is_virtual
        assert file[file["x"].attrs["refers"]] == file["x"]
        if how == "committed":
            assert file["x"].id.get_type().committed()


def test_what_is_divided_is_divided_anew(source: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "a" / "first.nc", tmp_path / "second.nc"
    first.parent.mkdir()
    chunkwise.repack(source, first, shards=3)
    done = chunkwise.repack(first, second, shards=2, merge=True, chunk="t2m:1x100x300")
    assert {one.path: one.shards for one in done.datasets if one.shards}["/t2m"] == 2
    shutil.rmtree(first.parent)
    require_equal(source, second)


def test_names_that_virtual_datasets_take_for_more(tmp_path: Path) -> None:
    path, out = tmp_path / "in.h5", tmp_path / "50%b Größe.h5"
    data = np.arange(1200 * 2000, dtype="i4").reshape(1200, 2000)
    with h5py.File(path, "w") as file:
        file.create_dataset("a%b/%%größe x", data=data, chunks=(100, 2000))
    chunkwise.repack(path, out, shards=3)
    with h5py.File(out) as file:
        np.testing.assert_array_equal(file["a%b/%%größe x"], data)
    long = tmp_path / ("n" * 251 + ".h5")
    chunkwise.repack(path, long, shards=3)
    require_equal(path, long)


def test_what_cannot_be_divided_is_in_one_file_and_said(tmp_path: Path) -> None:
    path, out = tmp_path / "in.h5", tmp_path / "out.h5"
    data = np.arange(2_400_000, dtype="i4")
    with h5py.File(path, "w") as file:
        file.create_dataset("divided", data=data, chunks=(100_000,))
        file["flat"] = data
        file.create_dataset("whole", data=data, chunks=(2_400_000,))
        file.create_dataset("small", data=data[:1000], chunks=(10,))
        file["words"] = ["a", "bc"]
    done = command(path, out, "--shards", "3", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [one["path"] for one in told["datasets"] if one["shards"]] == ["/divided"]
    assert told["warnings"] == [
        "'/flat' has no chunks, and is in one file",
        "'/whole' is one chunk, and is in one file",
    ]
    assert told["target_nbytes"] == out.stat().st_size + sum(
        (tmp_path / one["path"]).stat().st_size for one in told["shards"]
    )
    require_equal(path, out)


def test_the_page_s_commands_divide_and_make_one_file_again(source: Path, tmp_path: Path) -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "repack.md").read_text("utf-8")
    [divide] = re.findall(r"^    (chunkwise repack .* --shards \d+)$", text, re.MULTILINE)
    [again] = re.findall(r"`(chunkwise repack out.nc one.nc\s+--merge)`", text)
    shutil.copy(source, tmp_path / "in.nc")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    for one in (divide, " ".join(again.split())):
        subprocess.run(
            ["bash", "-c", one], cwd=tmp_path, env={**os.environ, "PATH": path}, check=True,
            timeout=60,
        )  # fmt: skip
    assert len(left(tmp_path / "out.nc.shards")) == 4
    require_equal(source, tmp_path / "out.nc")
    require_equal(source, tmp_path / "one.nc")


# --- asking ----------------------------------------------------------------------------


def test_a_dry_run_says_the_shards(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.nc"
    words = (source, out, "--shards", "3", "--chunk", "t2m:24x30x30", "--dry-run")
    done = command(*words)
    assert done.returncode == 0, done.stderr
    assert "shards   3 files of up to 120 along dimension 1, from 0, 90, 180, 300" in done.stdout
    assert "3 shards beside the target" in done.stdout
    told = json.loads(command(*words, "--json").stdout)
    assert told["n_shards"] == 3
    by_path = {one["path"]: one["shards"] for one in told["datasets"]}
    assert by_path["/t2m"] == {"axis": 1, "bounds": [0, 90, 180, 300]}
    assert by_path["/time"] is None
    assert left(tmp_path) == []
    plan = chunkwise.plan_repack(source, chunk="t2m:24x30x30", shards=3)
    assert plan.n_shards == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--in-place", "--shards", "2"), "cannot be replaced in one step"),
        (("out.nc", "--shards", "1"), "write a number from 2 to 256"),
        (("out.nc", "--shards", "257"), "write a number from 2 to 256"),
        (("--out", "out", "--shards", "2"), "--shards is for one file"),
        (("out.nc", "--shards", "2", "--chunk", "24x300x300"), "no dataset can be divided"),
        (("out.nc", "--shards", "2", "--high", "v108"), "v110 or newer"),
    ],
)
def test_what_makes_no_sense_is_refused(
    source: Path, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    path = tmp_path / "in.nc"
    shutil.copy(source, path)
    for more in ((), ("--dry-run",)):
        if "--out" in words and more:
            continue
        done = command(path, *words, *more, cwd=tmp_path)
        assert done.returncode == 2, done.stdout
        assert said in done.stderr
        assert done.stderr.count("\n") == 1
        assert left(tmp_path) == ["in.nc"]


def test_a_folder_of_others_is_no_place_for_shards(source: Path, tmp_path: Path) -> None:
    (tmp_path / "out.nc.shards").write_text("a file")
    with pytest.raises(UsageError, match=r"out\.nc\.shards is no folder"):
        chunkwise.repack(source, tmp_path / "out.nc", shards=2)
    (tmp_path / "out.nc.shards").unlink()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out.nc.shards").symlink_to("elsewhere")
    with pytest.raises(UsageError, match=r"out\.nc\.shards is no folder"):
        chunkwise.repack(source, tmp_path / "out.nc", shards=2)
    assert left(tmp_path / "elsewhere") == []
    assert left(tmp_path) == ["elsewhere", "out.nc.shards"]


# --- nothing is lost -------------------------------------------------------------------


def test_a_target_is_replaced_with_shards_of_its_own(source: Path, tmp_path: Path) -> None:
    path, out = tmp_path / "in.nc", tmp_path / "out.nc"
    shutil.copy(source, path)
    first = chunkwise.repack(path, out, shards=3)
    with pytest.raises(UsageError, match="exists already"):
        chunkwise.repack(path, out, shards=2)
    with h5py.File(path, "r+") as file:
        file["t2m"][...] = 1
    # What reads the old one goes on reading it.
    with h5py.File(out) as old:
        done = chunkwise.repack(path, out, shards=2, force=True)
        with h5py.File(source) as former:
            np.testing.assert_array_equal(old["t2m"][...], former["t2m"][...])
    require_equal(path, out)
    mine = {shard.path.rpartition("/")[2] for shard in done.shards}
    theirs = {shard.path.rpartition("/")[2] for shard in first.shards}
    assert set(left(tmp_path / "out.nc.shards")) == mine | theirs
    [said] = [one for one in done.warnings if "earlier" in one]
    token = next(iter(theirs))[4:]
    assert f"3 files in it (*{token})" in said


def test_what_is_published_stays_when_the_run_dies_there(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out.nc"
    with monkeypatch.context() as killed:
        # As one that was killed between the target's name and the end.
        killed.setattr(Claim, "give_back", lambda _: None)
        chunkwise.repack(source, out, shards=3)
    assert (tmp_path / ".out.nc.repack" / "lock").exists()

    def stop(moment: Moment) -> None:
        if moment.phase == "copying":
            raise KeyboardInterrupt

    for resume in (False, True):
        with pytest.raises(KeyboardInterrupt):
            chunkwise.repack(source, out, shards=3, force=True, progress=stop, resume=resume)
        require_equal(source, out)
    chunkwise.repack(source, out, shards=2, force=True, resume=True)
    require_equal(source, out)


@pytest.mark.parametrize("how", ["stopped", "damaged", "full"])
def test_a_run_that_fails_leaves_nothing(source: Path, tmp_path: Path, how: str) -> None:
    path, out = tmp_path / "in.nc", tmp_path / "out.nc"
    shutil.copy(source, path)
    if how == "stopped":

        def stop(moment: Moment) -> None:
            if moment.phase == "verifying":
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            chunkwise.repack(path, out, shards=2, progress=stop)
    elif how == "damaged":
        with h5py.File(path) as file:
            chunk = file["t2m"].id.get_chunk_info(20)
        with path.open("r+b") as stream:
            stream.seek(chunk.byte_offset)
            stream.write(bytes(chunk.size))
        rules: dict[str, Any] = {"chunk": "t2m:24x30x30"}
        with pytest.raises(CorruptDataError, match="--salvage"):
            chunkwise.repack(path, out, shards=2, **rules)
        assert left(tmp_path) == ["in.nc"]
        made = chunkwise.repack(path, out, shards=2, salvage=True, **rules)
        assert [one.lost_chunks[0][0] for one in made.datasets if one.lost_chunks] == [(20, 0, 0)]
        with h5py.File(out) as file:
            assert (file["t2m"][20] == -9).all()
        return
    else:
        limited = f'ulimit -f 2000; exec {sys.executable} -m chunkwise repack "$@"'
        words = ["bash", "-c", limited, "bash", str(path), str(out), "--shards", "2"]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 2
        assert "out.nc" in done.stderr
        assert done.stderr.count("\n") == 1, done.stderr
    assert left(tmp_path) == ["in.nc"]


def test_damage_in_a_shard_is_found(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closing = Rank.close_shards

    def damage(self: Rank) -> None:
        closing(self)
        shard = sorted((tmp_path / "out.nc.shards").iterdir())[1]
        with h5py.File(shard) as file:
            chunk = file["t2m"].id.get_chunk_info(0)
        with shard.open("r+b") as stream:
            stream.seek(chunk.byte_offset + chunk.size // 2)
            stream.write(b"\xff\x00\xff")

    monkeypatch.setattr(Rank, "close_shards", damage)
    with pytest.raises(CorruptDataError, match="t2m"):
        chunkwise.repack(source, tmp_path / "out.nc", shards=3, filters="none")
    assert left(tmp_path) == []


@pytest.mark.parametrize("resume", [True, False])
def test_a_killed_run_is_gone_on_with_or_removed(
    source: Path, tmp_path: Path, resume: bool
) -> None:
    out = tmp_path / "out.nc"
    dying = (
        "import os, sys, chunkwise.repacking.run as run, chunkwise.cli as cli\n"
        "def die(*_):\n"
        "    os._exit(9)\n"
        "run.compared = die\n"
        "sys.argv[0] = 'chunkwise'; cli.main()\n"
    )
    words = ["repack", str(source), str(out), "--shards", "3", "--chunk", "t2m:24x30x30"]
    done = subprocess.run([sys.executable, "-c", dying, *words], check=False, timeout=60)
    assert done.returncode == 9
    assert len(left(tmp_path / "out.nc.shards")) == 3
    assert not out.exists()
    again = ["--resume"] if resume else []
    made = command(*words[1:], *again, "--json")
    assert made.returncode == 0, made.stderr
    told = json.loads(made.stdout)
    replayed = {one["path"]: one["replayed"] for one in told["datasets"]}
    assert replayed["/t2m"] == (100 if resume else 0)
    require_equal(source, out)
    assert left(tmp_path) == ["out.nc", "out.nc.shards"]
    assert len(left(tmp_path / "out.nc.shards")) == 3


def test_a_run_without_shards_removes_those_of_a_killed_one(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.nc"
    words = [sys.executable, "-m", "chunkwise", "repack", str(source), str(out), "--shards", "3"]
    run = subprocess.Popen(words)
    until = time.monotonic() + 30
    while not (tmp_path / "out.nc.shards").exists() and time.monotonic() < until:
        time.sleep(0.005)
    run.kill()
    run.wait()
    if out.exists():
        out.unlink()
        shutil.rmtree(tmp_path / "out.nc.shards")
    chunkwise.repack(source, out)
    assert left(tmp_path) == ["out.nc"]
    require_equal(source, out)


def test_no_shard_is_readable_by_others_before_it_is_done(source: Path, tmp_path: Path) -> None:
    seen: set[int] = set()

    def watch(moment: Moment) -> None:
        if moment.phase == "verifying":
            seen.update(
                one.stat().st_mode & 0o777 for one in (tmp_path / "out.nc.shards").iterdir()
            )

    before = os.umask(0o027)
    try:
        chunkwise.repack(source, tmp_path / "out.nc", shards=2, progress=watch)
    finally:
        os.umask(before)
    assert seen == {0o600}
    modes = {one.stat().st_mode & 0o777 for one in (tmp_path / "out.nc.shards").iterdir()}
    assert modes == {(tmp_path / "out.nc").stat().st_mode & 0o777}


def test_a_disk_without_room_is_told_before(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=1 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(CannotWriteError, match="are free on this disk"):
        chunkwise.repack(source, tmp_path / "out.nc", shards=2, filters="none")
    assert left(tmp_path) == []
