"""Does `chunkwise fix` mend what it says, lose nothing, and leave alone what needs nothing?"""

import json
import os
import re
import stat
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise.cli.signals import leaving
from chunkwise.errors import (
    CannotWriteError,
    CorruptDataError,
    UsageError,
    notes_of,
)
from chunkwise.fixing import proving, records
from chunkwise.fixing import run as mending
from chunkwise.fixing.choose import ASKED_FOR, Change, choose
from chunkwise.fixing.measuring import Question, _require_same
from chunkwise.fixing.records import FindingRecord, Fixed, Gain, Metadata
from chunkwise.fixing.render import lines
from chunkwise.inspection import inspect
from chunkwise.measure.verdict import spread, verdict
from chunkwise.model.chunk_shape import default_chunk
from chunkwise.model.layout import FileLayout, Layout
from chunkwise.newfile.claim import Claim
from chunkwise.newfile.publish import noting_it_stays
from chunkwise.repacking import run as repacking
from chunkwise.repacking.run import run as repack
from chunkwise.trials.trial import Measurement, Trial
from tests.model.test_combined import of_many_kinds, virtual
from tests.model.test_every_fix import CASES, each_case, nothing_lost
from tests.support.commands import run
from tests.support.golden import assert_golden, steady
from tests.support.once import once

ROOT = Path(__file__).parents[2]
MIB = 1 << 20
DAYS, ROWS, COLUMNS = 120, 150, 150


def mendable(path: Path) -> list[tuple[str, str | None]]:
    """What of a file another layout would mend."""
    return [(one.code, one.path) for one in inspect(path).findings if one.layout is not None]


@once
def maps(path: Path) -> None:
    """A map of each day in a chunk of its own, which series are slow to read from."""
    values = np.arange(DAYS * ROWS * COLUMNS, dtype="<f4").reshape(DAYS, ROWS, COLUMNS)
    with h5py.File(path, "w") as file:
        file.create_dataset("t", data=values, chunks=(1, ROWS, COLUMNS), compression=1)
        file["time"] = np.arange(DAYS)
        file["time"].make_scale("time")
        file["t"].dims[0].attach_scale(file["time"])


# --- each finding -----------------------------------------------------------------------


@pytest.mark.slow
@each_case("dangling-link")
def test_each_finding_that_a_layout_mends(
    code: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    CASES[code][number](Path("a.nc"))
    before = {one.code for one in inspect("a.nc").findings if one.layout is not None}
    done = chunkwise.fix("a.nc", "b.nc", seconds=0)
    if not before:
        # What only a larger cache mends.
        assert done.outcome == "nothing to mend"
        return
    assert code in {one.code for one in done.findings}
    assert done.outcome == "fixed"
    assert mendable(Path("b.nc")) == []
    if code not in ("not-closed", "early-end"):
        nothing_lost(Path("a.nc"), Path("b.nc"))


@pytest.mark.slow
def test_many_findings_at_once_with_the_gain_measured(tmp_path: Path) -> None:
    of_many_kinds(tmp_path / "a.h5")
    told: list[str] = []
    done = chunkwise.fix(tmp_path / "a.h5", tmp_path / "b.h5", seconds=8, tell=told.append)
    nothing_lost(tmp_path / "a.h5", tmp_path / "b.h5")
    assert [one for one in done.left if not one.is_offer] == []
    assert done.in_turns
    assert {change.path for change in done.changes} >= {"/tiny", "/both", "/edge"}
    both = next(change for change in done.changes if change.path == "/both")
    assert set(both.why) == {"small-chunks"}
    measured = [gain for gain in done.gains if gain.times is not None]
    assert measured
    for gain in measured:
        assert gain.repeats >= 1
        assert gain.lowest_times is not None
        assert gain.times is not None
        assert gain.highest_times is not None
        assert gain.lowest_times <= gain.times <= gain.highest_times
        assert gain.verdict in ("faster", "slower", "same", "cannot tell")
        assert gain.reason is None
    assert any(text.startswith("measuring after") for text in told)
    # What the model promises most of comes first, and is no small gain.
    assert measured[0].promised_times is not None
    assert measured[0].promised_times > 2
    assert measured[0].times is not None
    assert measured[0].times > 2
    text = "\n".join(lines(done))
    assert "as measured:" in text
    assert "in turns" in text


@once
def in_two_rounds(path: Path) -> None:
    """Deflate saves much of chunks that lie beyond the data mostly, and of no others."""
    noise = np.random.default_rng(0).bytes(24 * 53 * 209 * 4)
    data = np.frombuffer(noise, "<u4").reshape(24, 53, 209)
    with h5py.File(path, "w") as file:
        file.create_dataset("t", data=data, chunks=(1, 1, 69), compression=1)


def test_filters_that_prove_useless_in_the_new_chunks_go_as_well(tmp_path: Path) -> None:
    in_two_rounds(tmp_path / "a.h5")
    assert "weak-compression" not in {one.code for one in inspect(tmp_path / "a.h5").findings}
    done = chunkwise.fix(tmp_path / "a.h5", tmp_path / "b.h5", seconds=0)
    assert mendable(tmp_path / "b.h5") == []
    (change,) = done.changes
    assert set(change.why) == {"small-chunks", "weak-compression"}
    assert (change.filters_before, change.filters) == ("deflate:1", "none")
    assert change.chunk_before == (1, 1, 69)
    nothing_lost(tmp_path / "a.h5", tmp_path / "b.h5")
    assert names(tmp_path) == ["a.h5", "b.h5"]


def test_a_write_protected_result_is_mended_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has the permissions of its source."""
    in_two_rounds(tmp_path / "a.h5").chmod(0o444)

    def access(path: Path, mode: int) -> bool:
        return not (Path(path).is_file() and mode & os.W_OK)  # Root may write to all.

    monkeypatch.setattr(os, "access", access)
    done = chunkwise.fix(tmp_path / "a.h5", tmp_path / "b.h5", seconds=0)
    assert {why for change in done.changes for why in change.why} >= {"weak-compression"}
    assert stat.S_IMODE((tmp_path / "b.h5").stat().st_mode) == 0o444
    assert names(tmp_path) == ["a.h5", "b.h5"]


def test_what_cannot_be_written_once_more_is_there_nevertheless(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_two_rounds(tmp_path / "a.h5")
    calls = iter(range(9))

    def once(*given: Any) -> Any:
        if next(calls):
            raise CannotWriteError("b.h5: the disk is full")
        return repack(*given)

    monkeypatch.setattr(mending, "repack", once)
    done = chunkwise.fix(tmp_path / "a.h5", tmp_path / "b.h5", seconds=0)
    assert done.outcome == "fixed"
    assert [one.code for one in done.left] == ["weak-compression"]
    assert done.repacked is not None
    assert any("the disk is full" in one for one in done.repacked.warnings)
    nothing_lost(tmp_path / "a.h5", tmp_path / "b.h5")


def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    maps(Path("a.nc"))
    done = run("fix", "a.nc", "b.nc", "--access", "line:0", "--no-measure")
    assert done.code == 0
    said = re.sub(r" \(\d+% of the time\)", "", done.out)
    said = re.sub(r"(?<=-> )\d+x\S+|\b\d[\d.,]*x(?!\d)", "N", said)
    assert_golden("fix", steady(said, numbers=True))


# --- what is left alone -----------------------------------------------------------------


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def stamp(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return found.st_ino, found.st_mtime_ns, found.st_ctime_ns


def test_a_file_that_needs_nothing_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["x"] = np.arange(1000)
    before = stamp(path)
    done = run("fix", path, "--in-place")
    assert done.code == 0
    assert "nothing to mend; it was left as it is" in " ".join(done.out.split())
    assert run("fix", path, "-o", tmp_path / "b.h5").code == 0
    assert not (tmp_path / "b.h5").exists()
    assert stamp(path) == before
    (tmp_path / "b.h5").write_bytes(b"of an earlier run")
    done = run("fix", path, "-o", tmp_path / "b.h5", "--force")
    assert (done.code, "b.h5 is of an earlier run" in done.err) == (2, True)
    assert (tmp_path / "b.h5").read_bytes() == b"of an earlier run"
    (tmp_path / "b.h5").unlink()
    assert names(tmp_path) == ["a.h5"]


def test_what_no_layout_mends_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["lost"] = h5py.SoftLink("/nowhere")
    before = stamp(path)
    said = " ".join(run("fix", path, "--in-place").out.split())
    assert "nothing that another layout mends" in said
    assert "No layout mends: note dangling-link, /lost" in said
    assert stamp(path) == before


def test_virtual_data_stays_where_it_is_unless_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    virtual(path)
    done = chunkwise.fix(path, tmp_path / "b.h5", seconds=0)
    assert [one.code for one in done.left] == [ASKED_FOR]
    with h5py.File(tmp_path / "b.h5") as file:
        assert file["v"].is_virtual
        assert file["tiny"].chunks == (512, 512)
    done = chunkwise.fix(path, tmp_path / "c.h5", merge=True, seconds=0)
    assert done.left == ()
    with h5py.File(tmp_path / "c.h5") as file:
        assert not file["v"].is_virtual
        assert np.array_equal(file["v"][...], np.arange(1000))


# --- in place, dry runs -----------------------------------------------------------------


def test_in_place(tmp_path: Path) -> None:
    of_many_kinds(tmp_path / "a.h5")
    (tmp_path / "before.h5").write_bytes((tmp_path / "a.h5").read_bytes())
    done = chunkwise.fix(tmp_path / "a.h5", in_place=True, seconds=6)
    assert not done.in_turns
    assert any(gain.times is not None for gain in done.gains)
    nothing_lost(tmp_path / "before.h5", tmp_path / "a.h5")
    assert mendable(tmp_path / "a.h5") == []
    assert names(tmp_path) == ["a.h5", "before.h5"]
    again = stamp(tmp_path / "a.h5")
    assert chunkwise.fix(tmp_path / "a.h5", in_place=True).outcome == "nothing to mend"
    assert stamp(tmp_path / "a.h5") == again


def test_a_dry_run_writes_nothing_and_tells_what_would_be_done(tmp_path: Path) -> None:
    of_many_kinds(tmp_path / "a.h5")
    before = stamp(tmp_path / "a.h5")
    told = json.loads(run("fix", tmp_path / "a.h5", "--dry-run", "--json").out)
    assert stamp(tmp_path / "a.h5") == before
    assert names(tmp_path) == ["a.h5"]
    assert told["outcome"] == "planned"
    done = chunkwise.fix(tmp_path / "a.h5", tmp_path / "b.h5", seconds=0)
    # The same changes are then made.
    assert told["changes"] == json.loads(json.dumps(done.as_dict()["changes"]))
    assert told["options"] == done.options
    assert done.target_nbytes == (tmp_path / "b.h5").stat().st_size
    promised = [gain["promised_times"] for gain in told["gains"]]
    assert all(times is not None and times > 0 for times in promised)


@pytest.mark.slow
def test_the_options_it_names_are_repacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    of_many_kinds(tmp_path / "a.h5")
    planned = chunkwise.fix("a.h5", dry_run=True)
    chunkwise.fix("a.h5", "fixed.h5", seconds=0)
    subprocess.run(
        ["bash", "-c", f"{sys.executable} -m chunkwise repack {planned.options} a.h5 b.h5"],
        check=True,
        capture_output=True,
    )
    with h5py.File("fixed.h5") as mine, h5py.File("b.h5") as theirs:
        for name in mine:
            if isinstance(mine[name], h5py.Dataset):
                assert mine[name].chunks == theirs[name].chunks
                assert mine[name].compression == theirs[name].compression


# --- access patterns --------------------------------------------------------------------


@pytest.mark.parametrize("access", [("line:0",), ("1x150x150",), ("line:0", "plane:0")])
def test_chunks_are_chosen_for_the_patterns_that_are_stated(
    access: tuple[str, ...], tmp_path: Path
) -> None:
    path = maps(tmp_path / "a.h5")
    blocks = {"line:0": (DAYS, 1, 1), "plane:0": (1, ROWS, COLUMNS), "1x150x150": (1, 150, 150)}
    shape = (DAYS, ROWS, COLUMNS)
    expected = default_chunk(shape, 4, shape, [blocks[one] for one in access])
    choice = choose(inspect(path, access=access))
    chunks = {change.path: change.chunk for change in choice.changes if change.chunk}
    # Maps are read well enough as they are.
    if access == ("1x150x150",):
        expected = (1, ROWS, COLUMNS)
    assert chunks == ({} if expected == (1, ROWS, COLUMNS) else {"/t": expected})
    done = chunkwise.fix(path, tmp_path / "b.h5", access=access, seconds=0)
    with h5py.File(tmp_path / "b.h5" if done.target else path) as file:
        assert file["t"].chunks == expected
        assert file["time"].chunks is None


def test_a_dataset_without_a_finding_gains_by_a_stated_pattern(tmp_path: Path) -> None:
    shape = (DAYS, ROWS, COLUMNS)
    both = default_chunk(shape, 4)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("t", data=np.zeros(shape, "<f4"), chunks=both, compression=1)
    assert mendable(tmp_path / "a.h5") == []
    (change,) = choose(inspect(tmp_path / "a.h5", access=["plane:0"])).changes
    assert change.why[0] == "access-mismatch"
    assert change.chunk == default_chunk(shape, 4, shape, [(1, ROWS, COLUMNS)])
    # Once it has them, nothing is left to do.
    done = chunkwise.fix(tmp_path / "a.h5", tmp_path / "b.h5", access=["plane:0"], seconds=0)
    assert done.left == ()
    assert choose(inspect(tmp_path / "b.h5", access=["plane:0"])).layout is None


# --- the command ------------------------------------------------------------------------


def test_a_run_that_is_ended_leaves_nothing(tmp_path: Path) -> None:
    of_many_kinds(tmp_path / "a.h5")
    before = stamp(tmp_path / "a.h5")

    def stop(text: str) -> None:
        if text == "writing":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        chunkwise.fix(tmp_path / "a.h5", tmp_path / "b.h5", seconds=0, tell=stop)

    def late(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        chunkwise.fix(tmp_path / "a.h5", in_place=True, seconds=0, progress=late)
    assert names(tmp_path) == ["a.h5"]
    assert stamp(tmp_path / "a.h5") == before


def small_chunks(path: Path) -> Path:
    with h5py.File(path, "w") as file:
        file["t"] = numbers = np.arange(512 * 512, dtype="<i4").reshape(512, 512)
        file.create_dataset("tiny", data=numbers, chunks=(8, 8), compression=1)
    return path


@pytest.mark.parametrize(
    ("moment", "seconds", "target"),
    [("looking at the result", 0, "a.h5"), ("measuring after", 1, "b.h5")],
)
def test_what_is_in_place_stays_there_and_is_told(
    moment: str, seconds: float, target: str, tmp_path: Path
) -> None:
    source, kept = small_chunks(tmp_path / "a.h5"), small_chunks(tmp_path / "kept.h5")
    in_place = target == source.name

    def stop(text: str) -> None:
        if text.startswith(moment):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as stopped:
        chunkwise.fix(
            source,
            None if in_place else tmp_path / target,
            in_place=in_place,
            seconds=seconds,
            tell=stop,
        )
    made = tmp_path / target
    assert notes_of(stopped.value) == [f"{made}: the new file is complete and in place"]
    assert names(tmp_path) == sorted({"a.h5", "kept.h5", target})
    assert mendable(kept) != mendable(made)
    nothing_lost(kept, made)


@pytest.mark.parametrize(
    ("where", "end", "code", "said"),
    [
        ((mending, "_once_more"), KeyboardInterrupt(), 130, "chunkwise: interrupted"),
        ((repacking, "_missing"), SystemExit(143), 143, None),
        ((Claim, "give_back"), CorruptDataError("bad"), 1, "chunkwise: bad"),
        ((repacking, "publish"), KeyboardInterrupt(), 130, "chunkwise: interrupted"),
    ],
)
def test_the_command_tells_what_is_in_place(
    where: tuple[Any, str],
    end: BaseException,
    code: int,
    said: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small_chunks(tmp_path / "a.h5")
    monkeypatch.chdir(tmp_path)

    def stop(*_: object, **__: object) -> None:
        raise end

    monkeypatch.setattr(*where, stop)
    done = run("fix", "a.h5", "-o", "b.h5", "--no-measure")
    assert done.code == code
    lines_told = [] if said is None else [said]
    made = where[1] != "publish"
    if made:
        lines_told.append("chunkwise: b.h5: the new file is complete and in place")
    assert done.err.strip().splitlines() == lines_told
    assert (tmp_path / "b.h5").exists() == made


def test_a_full_disk_is_told_with_what_is_in_place(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    codes: list[int] = []
    # It ends the process at once.
    monkeypatch.setattr("os._exit", codes.append)
    with leaving(), noting_it_stays("b.h5"), noting_it_stays("b.h5"):
        raise CannotWriteError("full")
    assert codes == [2]
    assert capsys.readouterr().err.splitlines() == [
        "chunkwise: full",
        "chunkwise: b.h5: the new file is complete and in place",
    ]


# --- records ----------------------------------------------------------------------------


@pytest.mark.parametrize("record", [Fixed, FindingRecord, Gain, Metadata, Change])
def test_each_key_of_each_record_is_documented(record: Any) -> None:
    page = (ROOT / "docs" / "fix.md").read_text()
    section = re.search(rf"^### `{record.__name__}`\n(.*?)(?=^#|\Z)", page, re.M | re.S)
    assert section, record.__name__
    keys = {field.name for field in fields(record)}
    if record is Gain:
        keys |= {"promised_times", "times", "lowest_times", "highest_times"}
    if record is Fixed:
        keys = (keys - {"layout"}) | {"format", "version", "options"}
    assert set(re.findall(r"^\| `(\w+)` \|", section[1], re.M)) == keys
    assert records.FORMAT in page


def test_it_is_printed_on_80_columns(tmp_path: Path) -> None:
    of_many_kinds(tmp_path / "a.h5")
    plan = chunkwise.fix(tmp_path / "a.h5", dry_run=True)
    long = FindingRecord("data-elsewhere", "note", "/a long path " * 9, "")
    paged = FileLayout(page_nbytes=4 << 20)
    shown = [*lines(Fixed("a.h5", "b.h5", "planned", changes=plan.changes, gains=plan.gains,
                          why=("cloud-unready",), layout=paged, left=(long,),
                          target_nbytes=7, expected_s=2.0))]  # fmt: skip
    assert max(map(len, shown)) <= 80
    text = " ".join(" ".join(shown).split())
    assert "paged file space, pages of 4.0 MiB" in text
    assert "--merge makes it the file's own data" in text


def test_a_gain_that_repeats_do_not_prove_is_marked() -> None:
    def printed(before: list[float], after: list[float]) -> str:
        gain = Gain(
            "/t", "line", (1,), None, None, spread(before), spread(after),
            verdict(before, after).word, len(before),
        )  # fmt: skip
        told = lines(Fixed("a.h5", "b.h5", "planned", gains=(gain,)))
        return " ".join(" ".join(told).split())

    assert "?" not in printed([1.0, 1.01, 1.02], [0.5, 0.51, 0.52])
    for before, after in (([1.0, 1.0], [0.6, 0.5]), ([1.0, 1.3, 1.1], [0.8, 1.2, 0.7])):
        told = printed(before, after)
        assert "] ?" in told
        assert "? cannot tell" in told


def test_other_values_after_than_before_are_an_error() -> None:
    question = Question("/t", _access(), Gain("/t", "line", (1,), None, None))
    before = Measurement(_trial(), "ok", checksums={1: 5, 2: 6})
    after = Measurement(_trial(), "ok", checksums={1: 5, 2: 7})
    _require_same(question, [before], [before])
    with pytest.raises(CorruptDataError, match="'/t': line reads other values"):
        _require_same(question, [before], [after])


def _access() -> Any:
    from chunkwise.patterns import Access

    return Access("line", (1,))


def _trial() -> Trial:
    return Trial("a.h5", "/t", "line", (1,), "h5py")


# --- what is measured -------------------------------------------------------------------


def advice(chunks: tuple[int, ...], filters: str, *, verified: bool) -> Any:
    """What `advise` says of a dataset, as far as `fix` asks."""
    return SimpleNamespace(best=Layout(chunks, filters), verified=verified)


@pytest.mark.parametrize("verified", [True, False])
def test_what_is_measured_takes_the_place_of_what_findings_offer(
    verified: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[Any, ...]] = []

    def advise(_: str, path: str, access: Any, **options: Any) -> Any:
        asked.append((path, tuple(map(str, access)), options["budget_s"] > 0))
        return advice((12, 25, 30), "shuffle+deflate:1", verified=verified)

    monkeypatch.setattr(proving, "advise", advise)
    path = maps(tmp_path / "a.h5")
    options: Any = {"access": ["line:0"], "seconds": 0}
    done = chunkwise.fix(path, tmp_path / "b.h5", advise="9s", **options)
    # Coordinates, and what is small, are not asked about.
    assert asked == [("/t", ("line:0",), True)]
    (change,) = done.changes
    with h5py.File(tmp_path / "b.h5") as file:
        if verified:
            assert file["t"].chunks == change.chunk == (12, 25, 30)
            assert (file["t"].shuffle, file["t"].compression_opts) == (True, 1)
            assert change.why[-1] == "advise"
            assert change.cache_nbytes is None
        else:
            assert "advise" not in change.why
            assert file["t"].chunks == change.chunk != (12, 25, 30)
    with h5py.File(path) as before, h5py.File(tmp_path / "b.h5") as after:
        assert np.array_equal(before["t"], after["t"])
    # It is not mended back.
    assert chunkwise.fix(path, advise=9, dry_run=True, **options).changes[0].chunk == change.chunk
    with pytest.raises(UsageError, match="give 0 or more"):
        chunkwise.fix(path, tmp_path / "c.h5", advise=-1)


_ADVISED_OR_NOT: tuple[dict[str, Any], ...] = ({"advise": 9}, {})


def test_a_dataset_that_cannot_be_advised_on_has_what_findings_offer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def advise(*_: Any, **__: Any) -> Any:
        raise UsageError("all elements are equal")

    monkeypatch.setattr(proving, "advise", advise)
    path = maps(tmp_path / "a.h5")
    told, plain = (
        chunkwise.fix(path, dry_run=True, access=["line:0"], **more).changes
        for more in _ADVISED_OR_NOT
    )
    assert told == plain != ()
