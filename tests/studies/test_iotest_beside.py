"""Are hdf5-iotest's rows put beside ours, and only those of the same walk?"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chunkwise.errors import LibraryError, UsageError
from chunkwise.grammar import Pipeline
from chunkwise_lab.studies.iotest import beside, ini, table
from chunkwise_lab.studies.iotest.measure import Clock
from chunkwise_lab.studies.iotest.settings import Settings
from chunkwise_lab.studies.iotest.walk import combinations

SETTINGS = Settings(steps=2, arrays=3, rows=4, columns=6)


def rows(settings: Settings, wall_s: float, nbytes: int) -> beside.Rows:
    names = table.header(settings).split(",")
    return [
        dict(zip(names, table.line(settings, "1.10.8", row).split(","), strict=True))
        for one in combinations(settings, 2)
        for row in [table.row(one, "none", [Clock(wall_s)], nbytes, settings.nbytes)]
    ]


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "hdf5_iotest"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def test_rows_stand_side_by_side(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    walls = {"theirs": iter((0.1, 0.2, 0.3)), "ours": iter((0.6, 0.4, 0.5))}

    def run(command: Any, settings: Settings, _: int) -> beside.Rows:
        who = "theirs" if command[0] == program else "ours"
        return rows(settings, next(walls[who]), 5000 if who == "ours" else 4000)

    monkeypatch.setattr(beside, "_run", run)
    found = beside.walk(program, SETTINGS, 2, 3)
    assert len(found) == 96
    assert found[0].wall_s == {"theirs": 0.2, "ours": 0.5}
    assert found[0].file_nbytes == {"theirs": 4000, "ours": 5000}
    assert found[0].ratio == 2.5


def test_another_walk_is_refused(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: Any, settings: Settings, _: int) -> beside.Rows:
        return rows(replace(settings, steps=3) if command[0] == program else settings, 1, 1)

    monkeypatch.setattr(beside, "_run", run)
    with pytest.raises(LibraryError, match="other combinations"):
        beside.walk(program, SETTINGS, 2, 1)
    with pytest.raises(UsageError, match="is no program"):
        beside.walk(f"{program}-none", SETTINGS, 2, 1)
    with pytest.raises(UsageError, match="without filters"):
        beside.walk(program, replace(SETTINGS, filters=Pipeline.parse("deflate:1")), 2, 1)


def test_both_read_the_same_settings() -> None:
    settings = replace(SETTINGS, alignment_increment=65536, scaling="strong").on(2)
    values, ignored = ini.parse(beside._ini(settings))
    assert ignored == []
    kept = {"hdf5_file": settings.hdf5_file, "csv_file": settings.csv_file}
    assert replace(Settings(), **{**values, **kept}) == settings
