"""Is the diagnosis right about what people complained of?  A few of all (see `make bench`)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from chunkwise.inspection.finding import CODES
from chunkwise_lab.regret import reading
from chunkwise_lab.regret.__main__ import show
from chunkwise_lab.regret.complaints import Complaint, Outcome, complaints, lines, try_it
from chunkwise_lab.regret.reading import Cost

PAGE = Path(__file__).parents[2] / "docs" / "complaints.md"
ALL = {one.on: one for one in complaints()}
# Of several kinds, and each rebuilt in a moment.
FEW = (
    "mom-ocean/MOM5#195",
    "deshaw/versioned-hdf5#193",
    "deshaw/versioned-hdf5#192",
    "SciTools/iris#3357",
    "PCMDI/cmor#601",
    "bird-house/finch#36",
)


def test_there_are_sixty_and_each_says_what_is_right() -> None:
    assert len(ALL) >= 60
    assert all(one.right <= CODES.keys() for one in ALL.values())


def test_the_page_has_all_of_them() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in ALL if f"[{name}](" not in text] == []
    rows = [line for line in text.splitlines() if line.startswith("| [")]
    assert len(rows) >= 60
    assert sum(line.endswith("| right |") for line in rows) >= 55


@pytest.mark.parametrize("name", FEW)
def test_it_is_right(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Beside other programs the same reads differ by more; half as long again is still a harm.
    monkeypatch.setattr(reading, "NOTHING_S", 0.01)
    outcome = try_it(ALL[name], tmp_path, all_of_it=False, most_s=0.02)
    assert outcome.is_right, outcome


def test_what_is_slower_is_so_beyond_the_noise() -> None:
    before = [1.0, 1.02, 0.99, 1.01, 1.0]
    assert Cost(before, [1.2 * each for each in before]).is_slower
    # The shortest is longer by a tenth, but repeats differ by more.
    assert not Cost([1.0, 1.3, 1.1, 1.5, 1.2], [1.1, 1.4, 1.2, 1.6, 1.3]).is_slower
    assert not Cost([each / 1e4 for each in before], [each / 5e3 for each in before]).is_slower


def test_what_is_right_and_what_is_harmful(tmp_path: Path) -> None:
    wanted = Complaint("a/b#1", "rows", (10, 10), ("row",), frozenset({"small-chunks"}))
    missed = Outcome(wanted, (1, 1))
    found = replace(missed, found=["small-chunks"], followed="chunks 10x10", nbytes=(100, 100))
    faster, slower = Cost([2.0] * 5, [1.0] * 5), Cost([1.0] * 5, [2.0] * 5)
    assert not missed.is_right
    assert not found.is_right  # Nothing is gained.
    assert replace(found, costs={"h5py": [faster]}).is_right
    assert replace(found, nbytes=(100, 50)).is_right
    harmful = replace(found, costs={"h5py": [faster, slower]})
    assert (harmful.is_right, harmful.is_harmful) == (False, True)
    nothing = replace(missed, complaint=replace(wanted, right=frozenset()))
    assert nothing.is_right
    assert not replace(nothing, followed="chunks 10x10", nbytes=(100, 100)).is_right
    (tmp_path / "page.md").write_text("a\n<!-- complaints -->\nold\n<!-- end -->\nb\n")
    show(list(lines([harmful, nothing])), "complaints", tmp_path / "page.md")
    text = (tmp_path / "page.md").read_text()
    assert "1 of 2 are right; following makes a stated read slower in 1." in text
    assert "old" not in text
