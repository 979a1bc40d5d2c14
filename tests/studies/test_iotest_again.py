"""Does a probe that starts ranks keep what it measured, and repeat what is open alone?"""

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from chunkwise.measure.process import busy_s
from chunkwise_lab.studies.claims import Undecided
from chunkwise_lab.studies.context import Context
from chunkwise_lab.studies.iotest import launching, watching, worker
from chunkwise_lab.studies.iotest.world import World
from chunkwise_lab.studies.load import load

SETTINGS = {"kind": "pitfalls", "pitfall": "first-write", "ranks": [1], "any_ranks": False,
            "chunks": 2, "elements": 64}  # fmt: skip
NEW = {"chunks": "new", "ranks": "1", "oversubscribed": "no"}


@pytest.fixture
def measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., dict[str, list[dict[str, Any]]]]:
    """Run the probe, its worker in this process; return records by whether chunks are new."""

    def start(_: int, plan: Mapping[str, Any], out: Path, folder: Path) -> None:
        path = folder / "plan.json"
        path.write_text(json.dumps({**plan, "folder": str(folder)}))
        worker.work(str(path), str(out))

    def run(repeat: int, again: Undecided | None = None, **settings: Any) -> Any:
        context = Context(
            {}, {**SETTINGS, **settings}, repeat, {}, tmp_path, tmp_path / "first-write-0", (),
            lambda _: None, again=again,
        )  # fmt: skip
        return {point["chunks"]: records for point, records in launching.measure(context)}

    monkeypatch.setattr(worker, "world", lambda **_: World())
    monkeypatch.setattr(launching, "_start", start)
    return run


def often(found: dict[str, list[dict[str, Any]]]) -> dict[str, int]:
    return {name: len(records) for name, records in found.items()}


def undecided(repeat: int) -> Undecided:
    experiment = next(one for one in load("iotest").experiments if one.id == "first-write")
    return Undecided(experiment, experiment.claims[0], frozenset({frozenset(NEW.items())}), repeat)


def test_a_run_that_was_stopped_goes_on_after_its_records(
    measured: Callable[..., Any], tmp_path: Path
) -> None:
    before = measured(2)
    assert often(before) == {"new": 2, "in the file": 2}
    path = tmp_path / "first-write-0-1.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    # Killed as it wrote the third record.
    path.write_text("".join(lines[:3]) + lines[3][:20])
    after = measured(2)
    assert often(after) == {"new": 2, "in the file": 2}
    assert after["new"][0] == before["new"][0]
    assert after["new"][1] != before["new"][1]
    # Nothing is lost by asking for fewer, and other settings are another experiment.
    assert measured(1) == after
    assert often(measured(1, chunks=3)) == {"new": 1, "in the file": 1}


def test_what_is_open_is_repeated_alone(measured: Callable[..., Any]) -> None:
    measured(2)
    assert often(measured(5, undecided(5))) == {"new": 5, "in the file": 2}


def test_records_wait_until_it_is_known_what_others_did(
    measured: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    shares = iter([None, 0.5, None, 0.25, None, None])
    monkeypatch.setattr(watching.Watch, "others_share", lambda _: next(shares))
    monkeypatch.setattr(watching.Watch, "notices", True)
    found = [one.get("others_share") for records in measured(3).values() for one in records]
    assert Counter(found) == Counter({0.5: 2, 0.25: 2, None: 2})


@pytest.mark.skipif(busy_s() is None, reason="the system does not tell")
def test_ranks_are_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "_LEAST_S", 0.4)
    watch = watching.Watch(World())
    assert watch.notices
    assert watch.others_share() is None
    share, until = None, time.monotonic() + 60
    while share is None and time.monotonic() < until:
        share = watch.others_share()
    assert share is not None
    assert 0 <= share <= 1
