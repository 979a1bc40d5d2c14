"""Has the same question the same answer, whoever is asked, and however the data is stored?"""

import math
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise.advice import calibration
from chunkwise.files import answers
from chunkwise.grammar import format_shape
from chunkwise.inspection import inspect
from chunkwise.measure.target import look
from chunkwise.measure.variants import suitable_chunks
from chunkwise.model.nominal import _RATES
from chunkwise.model.seconds import Machine
from chunkwise.patterns import parse, question, stated

Shape = tuple[int, ...]
MACHINE = Machine({"libhdf5": _RATES}, {"libhdf5": _RATES})


def repacked(file: Path, *access: str) -> str:
    plan = chunkwise.plan_repack(file, chunk="auto", access=access)
    (step,) = [step for step in plan.steps if step.source.path == "/t"]
    assert step.wanted.chunk is not None
    return format_shape(step.wanted.chunk)


# Shape, chunks that nobody would want, and what is read.
ASKED: list[tuple[Shape, Shape, tuple[str, ...]]] = [
    ((120, 150, 150), (1, 2, 50), ()),
    ((120, 150, 150), (1, 2, 50), ("maps=1x150x150", "series=120x1x1")),
    ((120, 150, 150), (1, 2, 50), ("maps=1x150x150 weight 50", "line:0")),
    ((120, 150, 150), (1, 2, 50), ("line:0@random", "plane:2@f")),
    ((120, 150, 150), (1, 2, 50), ("plane:0 append", "line:2")),
    ((120, 150, 150), (1, 2, 50), ("time=all,y=1,x=1", "whole=time=1 weight 2")),
    ((2_000_000,), (500,), ()),
    ((2_000_000,), (500,), ("random:1000:100",)),
    ((3000, 1000), (2, 100), ("row", "plane:1 weight 0.1")),
    ((12, 9, 150, 200), (1, 1, 1, 100), ()),
]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[Shape, Path]:
    """A file for each shape, with named dimensions."""
    folder, made = tmp_path_factory.mktemp("asked"), {}
    for number, (shape, chunks, _) in enumerate(ASKED):
        if shape in made:
            continue
        path = made[shape] = folder / f"{number}.h5"
        with h5py.File(path, "w") as file:
            values = np.cumsum(np.random.default_rng(0).integers(-3, 4, math.prod(shape)))
            data = values.astype("<f4").reshape(shape)
            file.create_dataset("t", data=data, chunks=chunks, compression="lzf")
            for axis, name in enumerate(("time", "y", "x", "more")[: len(shape)]):
                file[name] = np.arange(shape[axis], dtype="<f8")
                file[name].make_scale(name)
                file["t"].dims[axis].attach_scale(file[name])
    return made


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked", ASKED, ids=lambda case: f"{format_shape(case[0])} {' '.join(case[2])}"
)
def test_the_same_question_has_one_answer(
    asked: tuple[Shape, Shape, tuple[str, ...]],
    files: dict[Shape, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shape, _, access = asked
    path = files[shape]
    answers: dict[str, set[str]] = {}
    facts = inspect(str(path), access=access)
    answers["inspect"] = {
        str(one.evidence["offered_chunks"])
        for one in facts.findings
        if one.path == "/t" and "offered_chunks" in one.evidence
    }
    answers["repack"] = {repacked(path, *access)}
    planned = chunkwise.fix(path, dry_run=True, access=access)
    answers["fix"] = {format_shape(one.chunk or ()) for one in planned.changes}
    # Nobody but `advise` knows the machine; what it does not measure, it does not decide by.
    monkeypatch.setattr(calibration, "machine", lambda **_: MACHINE)
    advice = chunkwise.advise(path, "t", access, budget_s=0.2)
    assert not advice.verified
    answers["advise"] = {format_shape(advice.best.chunks or ())}
    if not any(name in text for text in access for name in ("time=", "x=1")):
        with chunkwise.open(tmp_path / "new.h5", "w") as file:
            made = file.create_dataset("t", shape, "f4", chunks="auto", access=list(access))
            answers["create"] = {format_shape(made.chunks or ())}
    assert len(set.union(*answers.values())) == 1, answers
    assert all(len(one) == 1 for one in answers.values())
    # Coordinates stay as they are.
    assert {one.path for one in planned.changes} == {"/t"}


KINDS: dict[str, dict[str, Any]] = {
    "contiguous": {},
    "unfiltered": {"chunks": (1, 60, 60)},
    "compressed": {"chunks": (1, 60, 60), "compression": 1},
    "growing": {"chunks": (1, 60, 60), "maxshape": (None, 60, 60), "compression": 1},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reads", [("300x1x1",), ("300x4x4", "1x60x60")])
def test_what_is_stored_does_not_change_the_answer(
    kind: str, reads: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does it matter who is asked, before and after measuring."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(calibration, "machine", lambda **_: MACHINE)
    shape, path = (300, 60, 60), tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        values = np.arange(math.prod(shape), dtype="<f4").reshape(shape)
        file.create_dataset("t", data=values, **KINDS[kind])

    def answers_of_all() -> set[str]:
        found = {repacked(path, *reads)}
        facts = inspect(str(path), access=reads)
        found |= {
            str(one.evidence["offered_chunks"])
            for one in facts.findings
            if "offered_chunks" in one.evidence
        }
        planned = chunkwise.fix(path, dry_run=True, access=reads)
        found |= {format_shape(one.chunk) for one in planned.changes if one.chunk}
        advice = chunkwise.advise(path, "t", reads, budget_s=0.2)
        assert not advice.verified
        if not advice.leave:
            found.add(format_shape(advice.best.chunks or ()))
        accesses = [parse(one, shape, 4, "t") for one in reads]
        return found | {format_shape(suitable_chunks(look(str(path), "t"), accesses))}

    (before,) = answers_of_all()
    measured = answers.Answer((30, 12, 20), "none", 3.0)
    asked = stated(reads, shape, 4, None, "t")
    answers.keep(path, "t", question(asked), measured)
    assert before != "30x12x20"
    assert answers_of_all() == {"30x12x20"}
