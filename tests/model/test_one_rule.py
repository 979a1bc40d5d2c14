"""One chooser: never worse than the two that there were, and the same answer everywhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise.advice import calibration
from chunkwise.grammar import format_shape
from chunkwise.inspection import inspect
from chunkwise.measure import Results, explain
from chunkwise.measure.planning import trial_of
from chunkwise.measure.results import Cell
from chunkwise.measure.target import Target, look
from chunkwise.model.chunk_shape import SMALL_CHUNK_NBYTES, default_chunk, usual
from chunkwise.model.geometry import canonical
from chunkwise.model.nominal import ANYWHERE_LOAD_S, LOAD_S, MACHINE, nominal_s
from chunkwise.model.readers import LIBHDF5_1
from chunkwise.model.traffic import Pattern
from chunkwise.patterns import Access, defaults
from chunkwise.trials.trial import Measurement

Shape = tuple[int, ...]

# Shape, itemsize; what inspect and bench offered, for lines along the slowest dimension and planes
# across it, within 1 MiB and within caches of 1, 8 and 64 MiB; what `auto` chose.
FORMER: list[tuple[Shape, int, list[Shape], Shape]] = [
    ((365, 721, 1440), 4, [(1, 46, 90), (6, 181, 180)], (16, 241, 60)),
    ((8760, 721, 1440), 4, [(9, 23, 45), (35, 46, 90)], (92, 1, 1440)),
    ((365, 720, 1440), 4, [(2, 45, 90), (6, 180, 180)], (16, 45, 360)),
    ((365, 720, 360), 4, [(6, 45, 90), (12, 90, 180)], (16, 45, 360)),
    ((365, 360, 720), 8, [(3, 45, 45), (12, 90, 90)], (16, 8, 720)),
    ((365, 181, 360), 4, [(23, 46, 90), (23, 91, 90)], (31, 23, 360)),
    ((365, 600, 600), 4, [(3, 75, 75), (12, 75, 150)], (16, 25, 600)),
    ((120, 300, 300), 4, [(15, 75, 150)], (10, 75, 300)),
    ((60, 200, 200), 4, [(4, 50, 50), (15, 100, 100)], (12, 100, 200)),
    ((7300, 600, 600), 4, [(29, 38, 38), (58, 38, 75)], (77, 5, 600)),
    ((7300, 6000, 6000), 4, [(4, 188, 188)], (77, 1, 3000)),
    ((31, 721, 1440), 2, [(4, 361, 360)], (8, 721, 60)),
    ((1460, 94, 192), 4, [(92, 47, 24), (92, 47, 48)], (96, 12, 192)),
    ((30, 2000, 2000), 2, [(1, 250, 500), (2, 500, 500)], (5, 250, 334)),
    ((365, 37, 721, 1440), 4, [(1, 37, 46, 90)], (16, 1, 241, 60)),
    ((240, 29, 384, 320), 4, [(4, 29, 48, 40)], (15, 1, 48, 320)),
    ((12, 40, 1000, 1000), 4, [(1, 40, 63, 63)], (3, 5, 125, 125)),
    ((1, 30, 9, 717), 4, [(1, 30, 9, 717)], (1, 30, 9, 717)),
    ((3000, 30, 9, 717), 4, [(47, 15, 9, 23)], (64, 5, 9, 90)),
    ((50, 60, 70, 80), 8, [(2, 30, 18, 20), (4, 30, 35, 20)], (5, 4, 70, 80)),
    ((100, 100, 100, 100), 2, [(4, 25, 25, 50), (7, 25, 50, 50)], (8, 25, 50, 50)),
    ((6, 5, 40, 50, 60), 4, [(1, 5, 40, 25, 30)], (2, 1, 40, 50, 60)),
    ((20, 30, 40, 50, 60), 4, [(1, 15, 20, 25, 30)], (4, 1, 20, 50, 60)),
    ((1000000,), 8, [(125000,)], (131072,)),
    ((1000000000,), 4, [(244141,)], (262144,)),
    ((300000,), 1, [(300000,)], (300000,)),
    ((100000000,), 2, [(390625,)], (524288,)),
    ((12345678,), 24, [(24113,)], (32768,)),
    ((10000000, 3), 4, [(156250, 1)], (208334, 1)),
    ((1000000, 100), 8, [(7813, 1), (31250, 4)], (15625, 8)),
    ((100000, 1000), 4, [(1563, 16), (3125, 63)], (6144, 42)),
    ((20000, 20000), 1, [(313, 313), (625, 1250)], (834, 1250)),
    ((16384, 512), 4, [(512, 16), (2048, 128)], (2048, 128)),
    ((3162, 3162), 4, [(396, 396)], (396, 527)),
    ((1440, 721), 8, [(180, 91), (360, 361)], (360, 361)),
    ((5, 10000000), 4, [(1, 156250)], (1, 208334)),
    ((2, 3), 8, [(2, 3)], (2, 3)),
    ((1000, 1), 4, [(1000, 1)], (1000, 1)),
    ((1, 1000, 1000), 4, [(1, 250, 250), (1, 500, 500)], (1, 256, 1000)),
    ((2, 4, 1000000), 4, [(1, 4, 62500)], (1, 1, 250000)),
    ((100000, 8, 8), 8, [(12500, 2, 4)], (12500, 1, 8)),
    ((721,), 8, [(721,)], (721,)),
    ((1440,), 4, [(1440,)], (1440,)),
    ((17, 4099, 257), 3, [(2, 513, 257)], (6, 171, 257)),
    ((100, 5), 3000000, [(1, 1)], (1, 1)),
    ((4096, 512, 1024), 2, [(64, 64, 128)], (64, 8, 1024)),
    ((500, 2048, 2048), 2, [(8, 256, 256)], (24, 64, 256)),
]


def total(
    shape: Shape, itemsize: int, chunks: Shape, patterns: Sequence[Pattern], load_s: float
) -> float:
    everything = (*patterns, Pattern("", shape))
    return nominal_s(shape, itemsize, chunks, everything, LIBHDF5_1, load_s=load_s)


def line_and_plane(shape: Shape, itemsize: int) -> list[Pattern]:
    blocks = canonical(shape, itemsize)
    return [Pattern("", block) for block in dict.fromkeys((blocks[0], blocks[-1]))]


@pytest.mark.parametrize("former", FORMER, ids=lambda case: "x".join(map(str, case[0])))
def test_no_former_choice_is_better(former: tuple[Shape, int, list[Shape], Shape]) -> None:
    shape, itemsize, balanced, automatic = former
    stated = line_and_plane(shape, itemsize)
    for patterns, access, load_s in (
        (usual(shape, itemsize), (), ANYWHERE_LOAD_S),
        (stated, stated, LOAD_S),
    ):
        chosen = default_chunk(shape, itemsize, access=access)
        now = total(shape, itemsize, chosen, patterns, load_s)
        for chunks in (*balanced, automatic):
            if math.prod(chunks) * itemsize >= SMALL_CHUNK_NBYTES or chunks == shape:
                assert now <= 1.05 * total(shape, itemsize, chunks, patterns, load_s)


# --- all that ask ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A record variable with a step in each chunk; the chunks hold nothing that can be read."""
    path = tmp_path_factory.mktemp("one rule") / "x.h5"
    with h5py.File(path, "w") as made:
        dataset = made.create_dataset(
            "t", SHAPE, "f4", maxshape=(None, *SHAPE[1:]), chunks=(1, *SHAPE[1:]), compression=1
        )
        for step in range(SHAPE[0]):
            dataset.id.write_direct_chunk((step, 0, 0), b"x")
    return path


# No cache that a reader should be told to give holds a line of its chunks.
SHAPE = (1600, 300, 300)


def cell(target: Target, access: Access, total_s: float) -> Cell:
    trial = trial_of(target, access, "h5py")
    operations = access.walk(target.shape).operations
    measured = Measurement(
        trial,
        "ok",
        operations=1,
        total_operations=operations,
        total_s=total_s,
        actual_cache_nslots=521,
        actual_cache_nbytes=1 << 20,
    )
    return Cell(access, trial, (measured,))


def advised(file: Path, accesses: list[Access]) -> str:
    """Return the command that bench advises where the first pattern is by far the slowest."""
    target = look(str(file), "/t")
    cells = [cell(target, access, 1e6 / 1e4**i) for i, access in enumerate(accesses)]
    advice = explain(Results(target, tuple(cells), 30.0, 1.0))
    assert advice is not None
    return advice.fix or ""


def repacked(file: Path, *access: str) -> str:
    plan = chunkwise.plan_repack(file, chunk="auto", access=access)
    (step,) = [step for step in plan.steps if step.source.path == "/t"]
    assert step.wanted.chunk is not None
    return format_shape(step.wanted.chunk)


def test_inspect_bench_and_repack_choose_the_same(file: Path) -> None:
    chunks = repacked(file)
    (found,) = [
        finding
        for finding in inspect(str(file), sample=False).findings
        if finding.code == "unlimited-chunk-1"
    ]
    assert found.evidence["offered_chunks"] == chunks
    assert f"--chunk /t:{chunks} " in found.fixes[0].text
    step, line_0, everything = defaults(SHAPE, 4)
    assert f"--chunk /t:{chunks} " in advised(file, [line_0, step, everything])


def test_bench_and_repack_choose_the_same_for_stated_patterns(file: Path) -> None:
    lines = [Access("line", (1600, 1, 1)), Access("row", (1, 1, 300))]
    assert f"--chunk /t:{repacked(file, 'line:0', 'row')} " in advised(file, lines)
    assert repacked(file, "line:0", "row") != repacked(file)


# --- the same for the same question ---------------------------------------------------------

# Shape, chunks that nobody would want, and what is read.
ASKED: list[tuple[Shape, Shape, tuple[str, ...]]] = [
    ((120, 150, 150), (1, 2, 50), ()),
    ((120, 150, 150), (1, 2, 50), ("maps=1x150x150", "series=120x1x1")),
    ((120, 150, 150), (1, 2, 50), ("maps=1x150x150 weight 50", "line:0")),
    ((120, 150, 150), (1, 2, 50), ("line:1",)),
    ((120, 150, 150), (1, 2, 50), ("line:0@random", "plane:2@f")),
    ((120, 150, 150), (1, 2, 50), ("random:500:8x8x8",)),
    ((120, 150, 150), (1, 2, 50), ("roi:20x20:200",)),
    ((120, 150, 150), (1, 2, 50), ("plane:0 append", "line:2")),
    ((120, 150, 150), (1, 2, 50), ("time=all,y=1,x=1", "whole=time=1 weight 2")),
    ((2_000_000,), (500,), ()),
    ((2_000_000,), (500,), ("random:1000:100",)),
    ((3000, 1000), (2, 100), ()),
    ((3000, 1000), (2, 100), ("row", "plane:1 weight 0.1")),
    ((12, 9, 150, 200), (1, 1, 1, 100), ()),
    ((12, 9, 150, 200), (1, 1, 1, 100), ("1x1x150x200", "12x1x1x1")),
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
