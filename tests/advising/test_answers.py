"""Has the same question the same answer, from advise, inspect and fix, in one session?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise.advice import calibration
from chunkwise.advice.verifying import Part, Proof
from chunkwise.advice.work import Work
from chunkwise.files import answers
from chunkwise.fixing import run as fixing
from chunkwise.grammar import format_shape
from chunkwise.inspection import inspect
from chunkwise.inspection.facts import FileFacts
from chunkwise.model.layout import Layout
from chunkwise.model.nominal import _RATES
from chunkwise.model.seconds import Machine
from chunkwise.patterns import question, stated

SHAPE = (120, 150, 150)
READS = ("map=1x150x150", "series=120x1x1")
# Not what the model chooses.
BEST = (30, 30, 30)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "a.h5"
    values = np.random.default_rng(0).normal(0, 1, SHAPE).round(1).astype("f4")
    with h5py.File(found, "w") as file:
        file.create_dataset("t", data=values, chunks=(1, 150, 150), compression=1)
    return found


def requested(*texts: str) -> str:
    return question(stated(texts, SHAPE, 4, SHAPE, "here"))


def offers(facts: FileFacts) -> list[Any]:
    return [f.evidence["offered_chunks"] for f in facts.findings if f.code == "access-mismatch"]


def test_what_was_measured_is_what_inspect_and_fix_say(path: Path, tmp_path: Path) -> None:
    assert offers(inspect(path, access=READS)) != ["30x30x30"]
    answers.keep(path, "/t", requested(*READS), answers.Answer(BEST, "deflate:1", 3.0))
    facts = inspect(path, access=READS)
    assert offers(facts) == ["30x30x30"]
    (found,) = (one for one in facts.findings if one.code == "access-mismatch")
    assert "as chunkwise advise measured" in found.summary
    # The same reads under other names, in another order.
    assert offers(inspect(path, access=["a=120x1x1", "1x150x150"])) == ["30x30x30"]
    # Another question has another answer.
    assert offers(inspect(path, access=["120x1x1"])) != ["30x30x30"]
    assert offers(inspect(path, access=READS, readers=["libhdf5-1.10"])) != ["30x30x30"]
    done = chunkwise.fix(path, tmp_path / "b.h5", access=READS, seconds=0)
    assert [one.chunk for one in done.changes] == [BEST]
    # The result is what was measured to be best: nothing is wrong with it, now or later.
    assert [one.code for one in done.left if one.code == "access-mismatch"] == []
    assert offers(inspect(tmp_path / "b.h5", access=READS)) == []


def test_an_answer_holds_for_the_file_as_it_was(path: Path) -> None:
    answers.keep(path, "/t", "q", answers.Answer(None, "none", 1.0))
    assert answers.kept(path, "/t", "q") == answers.Answer(None, "none", 1.0)
    assert answers.kept(path, "/t", "another") is None
    with h5py.File(path, "r+") as file:
        file["more"] = np.arange(1000)
    assert answers.kept(path, "/t", "q") is None
    answers.cache_file("answers").write_text("[1")
    assert answers.kept(path, "/t", "q") is None


def test_fix_leaves_no_mismatch_of_what_it_measured(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    best = {"/t": Layout(BEST, "deflate:1")}
    monkeypatch.setattr(fixing, "proved", lambda *_, **__: best)
    done = chunkwise.fix(path, tmp_path / "b.h5", access=READS, seconds=0, advise=1)
    assert [one.chunk for one in done.changes] == [BEST]
    assert "access-mismatch" not in {one.code for one in done.left}


def test_a_stated_block_means_single_reads_each_as_often() -> None:
    found = stated((*READS, "x=1x1x150 weight 3", "w=1x150x150@walk"), SHAPE, 4, SHAPE, "here")
    assert [one.reads for one in found] == [120, 1000, 1000, 1]
    assert [round(one.weight * one.reads, 9) for one in found] == [1, 1, 3, 1]
    assert [one.scattered for one in found] == [True, True, True, False]
    assert found[3].order is None


def test_of_what_is_no_local_file_nothing_is_kept(path: Path) -> None:
    """Else one URL would have the answers of another, which nobody can tell from a changed one."""
    answer = answers.Answer(BEST, "deflate:1", 3.0)
    answers.keep("https://host/a.h5", "/t", "q", answer)
    assert answers.kept("https://host/a.h5", "/t", "q") is None
    assert answers.kept("https://host/b.h5", "/t", "q") is None
    assert not answers.cache_file("answers").exists()
    answers.keep(path, "/t", "q", answer)
    assert answers.kept(path, "/t", "q") == answer


@pytest.mark.parametrize(
    "text", ["", "[]", '{"KEY": 1}', '{"KEY": {"/t": 1}}', '{"KEY": {"/t": {"q": 1}}}']
)
def test_a_damaged_cache_gives_no_answer(path: Path, text: str) -> None:
    answers.keep(path, "/t", "q", answers.Answer(BEST, "deflate:1", 3.0))
    kept = answers.cache_file("answers")
    (key,) = json.loads(kept.read_text())
    kept.write_text(text.replace("KEY", key))
    assert answers.kept(path, "/t", "q") is None


@pytest.mark.slow
def test_advice_says_which_chunks_it_left_out_for_their_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """inspect, fix and repack do not ask by how much compressed data grows."""
    monkeypatch.setattr("chunkwise.advice.goals._STATED_GROWTH", 0.1)
    monkeypatch.setattr(
        calibration, "machine", lambda **_: Machine({"libhdf5": _RATES}, {"libhdf5": _RATES})
    )
    # Time for everything but measurements.
    monkeypatch.setattr(Work, "_proof", lambda self, *_: Proof(Part.all_of(self.target)))
    path, reads = tmp_path / "b.h5", ["random:10:400x1x1"]
    walk = np.cumsum(np.random.default_rng(0).integers(-9, 10, 400 * 51 * 107)) + 1000
    with h5py.File(path, "w") as file:
        data = walk.astype("i2").reshape(400, 51, 107)
        file.create_dataset("t", data=data, chunks=(1, 51, 107), compression=4, shuffle=True)
    (step,) = chunkwise.plan_repack(path, chunk="auto", access=reads).steps
    theirs = format_shape(step.wanted.chunk or ())
    advice = chunkwise.advise(path, "t", reads)
    assert format_shape(advice.best.chunks or ()) != theirs
    (said,) = (one for one in advice.notes if one.startswith("Left out are"))
    assert f"chunks of {theirs}, which repack --chunk auto" in said
    assert "at most 10% (with --objective read" in said
    free = chunkwise.advise(path, "t", reads, objective="read")
    assert format_shape(free.best.chunks or ()) == theirs
    assert "Left out" not in " ".join(free.notes)
