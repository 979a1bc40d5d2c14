"""Is one wrong element enough, wherever it lies?"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chunkwise import _native, measure
from chunkwise.errors import UsageError, WrongValueError
from chunkwise.measure import Space
from chunkwise.measure.target import look
from chunkwise.trials import worker
from chunkwise.trials.trial import Trial
from chunkwise.trials.worker import Checker
from tests.support.wrong_reader import WRONG_H5PY, WRONG_NOTHING

SHAPE = (7, 9, 5)
DATA = np.arange(np.prod(SHAPE), dtype="<i2").reshape(SHAPE)
# A box, a stride, blocks in a stride; and unions of these, which may overlap.
SLABS: list[Any] = [
    ((0, 0, 0), (1, 1, 1), (1, 1, 1), (7, 9, 5)),
    ((1, 2, 3), (1, 1, 1), (1, 1, 1), (4, 3, 2)),
    ((0, 1, 0), (3, 2, 1), (3, 4, 5), (1, 1, 1)),
    ((1, 0, 0), (3, 4, 2), (2, 2, 2), (2, 3, 1)),
]


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("known") / "d"
    DATA.tofile(path)
    return str(path)


def trial(known: str, **values: Any) -> Trial:
    base = Trial("f.h5", "/d", "x", SHAPE, "h5py", shape=SHAPE, itemsize=2, dtype="<i2")
    return replace(base, data=known, check=True, seed=4, **values)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
@pytest.mark.slow
def test_a_wrong_element_is_named(
    known: str, data: st.DataObject, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Pieces of a few rows, as of large arrays.
    monkeypatch.setattr(worker, "_PIECE", data.draw(st.integers(1, 200)))
    chosen = data.draw(st.lists(st.sampled_from(SLABS), min_size=1, unique=True))
    single = len(chosen) == 1 and data.draw(st.booleans())
    walk = _native.Walk.listed(SHAPE, [chosen[0] if single else chosen])
    mask = np.zeros(SHAPE, bool)
    for slab in chosen:
        for place in np.ndindex(*SHAPE):
            mask[place] |= all(
                0 <= i - s < t * (n - 1) + b and (i - s) % t < b
                for i, s, t, n, b in zip(place, *slab, strict=True)
            )
    right = DATA[mask]
    checker = Checker(trial(known), walk)
    checker(0, right.tobytes())
    assert checker.checked == len(right)
    at = data.draw(st.integers(0, len(right) - 1))
    read = right.copy()
    read[at] ^= 1 << data.draw(st.integers(0, 14))
    index = ", ".join(map(str, np.argwhere(mask)[at]))
    words = f"selection 0 of 'x' of seed 4: element [{index}] was read as {read[at]}, and is "
    with pytest.raises(WrongValueError) as wrong:
        checker(0, read.tobytes())
    assert str(wrong.value) == f"'/d' in f.h5: h5py, {words}{right[at]}"
    for other in (right[:-1], np.append(right, right[-1:])):
        with pytest.raises(WrongValueError, match="another number was asked for"):
            checker(0, other.tobytes())


def test_elements_of_any_size_are_compared_bit_for_bit(tmp_path: Path) -> None:
    path = tmp_path / "known"
    for dtype in ("S3", "<f8", "<c16"):
        values = np.array([0, np.nan, -0.0, 1]).astype(dtype)
        values.tofile(path)
        walk = _native.Walk((4,), (4,))
        one = trial(str(path), shape=(4,), itemsize=values.itemsize, dtype=dtype)
        Checker(one, walk)(0, values.tobytes())
        other = values.copy()
        other.view("u1")[2 * values.itemsize] ^= 4
        with pytest.raises(WrongValueError, match=r"element \[2\]"):
            Checker(one, walk)(0, other.tobytes())


def test_padding_is_not_checked(known: str) -> None:
    with pytest.raises(UsageError, match="padding"):
        Checker(trial(known, comparable=False), _native.Walk(SHAPE, SHAPE))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as f:
        f.create_dataset("d", data=DATA, chunks=(2, 9, 5))
    return path


def test_a_reader_of_one_wrong_value_has_failed(file: Path) -> None:
    space = Space.of(access=["cells:4:3"], reader=["h5py"])
    results = measure.run(file, "d", space, repeat=1, check=True, worker=WRONG_H5PY)
    (measurement,) = results.cells[0].measurements
    assert (measurement.status, measurement.wrong) == ("failed", True)
    (told,) = results.wrong
    assert told == measurement.error
    assert str(file) in told
    assert all(fact in told for fact in ("h5py", "'cells:4:3'", "seed 0"))
    right = measure.run(file, "d", space, repeat=1, check=True, worker=WRONG_NOTHING)
    assert right.wrong == []
    assert right.cells[0].measurements[0].checked_elements


def test_what_is_known_must_be_all(file: Path, tmp_path: Path) -> None:
    space = Space.of(access=["cells:4:3"], reader=["h5py"])
    path = tmp_path / "known"
    DATA[1:].tofile(path)
    with pytest.raises(UsageError, match="does not hold all elements"):
        measure.run(file, "d", space, check=path)
    assert look(file, "d").nbytes == DATA.nbytes
