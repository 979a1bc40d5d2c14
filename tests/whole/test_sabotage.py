"""Does the shim that makes calls go wrong do exactly what it says?  Other tests rely on it."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.sabotage import Plan, Server

NO_ROOM, BROKEN = "No space left on device", "Input/output error"


def program(_: Path) -> None:
    """Write three times, bring it to disk and rename it; runs in the server."""
    there = os.open("x", os.O_RDWR | os.O_CREAT)
    for step in range(3):
        try:
            print(os.pwrite(there, b"abcdefgh", 8 * step))
        except OSError as error:
            print(error.strerror)
    try:
        os.fsync(there)
        Path("x").rename("y")
    except OSError as error:
        print(error.strerror)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(__name__, tmp_path_factory.getbasetemp()) as made:
        yield made


@pytest.mark.parametrize(
    ("plan", "printed", "there"),
    [
        (Plan(), ["8", "8", "8"], b"abcdefgh" * 3),
        (Plan(2, "flip"), ["8", "8", "8"], b"abcdefghabcdufghabcdefgh"),
        (Plan(2, "drop"), ["8", "8", "8"], b"abcdefgh" + bytes(8) + b"abcdefgh"),
        (Plan(2, "short"), ["8", "4", "8"], b"abcdefghabcd" + bytes(4) + b"abcdefgh"),
        (Plan(2, "enospc"), ["8", NO_ROOM, "8"], b"abcdefgh" + bytes(8) + b"abcdefgh"),
        (Plan(2, "eio"), ["8", BROKEN, "8"], b"abcdefgh" + bytes(8) + b"abcdefgh"),
        (Plan(2, "late"), ["8", BROKEN, "8"], b"abcdefgh" * 3),
        (Plan(2, "short,enospc"), ["8", "4", NO_ROOM], b"abcdefghabcd"),
        (Plan(2, "pass,drop"), ["8", "8", "8"], b"abcdefgh" * 2),
        # What lasts meets calls without data as well.
        (Plan(3, "enospc..."), ["8", "8", NO_ROOM, NO_ROOM], b"abcdefgh" * 2),
        (Plan(4, "eio"), ["8", "8", "8", BROKEN], b"abcdefgh" * 3),
        (Plan(5, "drop"), ["8", "8", "8"], b"abcdefgh" * 3),
    ],
    ids=lambda value: f"{value.number} {value.faults}" if isinstance(value, Plan) else "",
)
def test_each_fault(
    server: Server, tmp_path: Path, plan: Plan, printed: list[str], there: bytes
) -> None:
    done = server.run("program", tmp_path, plan)
    assert done.out.splitlines() == printed, done.err
    calls = [(call.number, call.name, call.nbytes) for call in done.calls]
    everything = [(1, "pwrite", 8), (2, "pwrite", 8), (3, "pwrite", 8), (4, "fsync", 0)]
    everything.append((5, "rename", 0))
    assert calls == everything[: 4 if len(printed) > 3 else 5]
    (left,) = tmp_path.iterdir()
    # The file has its new name where nothing kept it from that.
    assert (left.name == "y") == (len(calls) == 5 and plan.number != 5)
    assert left.read_bytes() == there


def test_a_kill(server: Server, tmp_path: Path) -> None:
    done = server.run("program", tmp_path, Plan(2, "kill"))
    assert done.code == -signal.SIGKILL
    assert done.crashed
    assert (tmp_path / "x").read_bytes() == b"abcdefgh"
