"""The machine loses its power while a process writes: what is on storage then?

A library that is preloaded writes down each write and each fsync of the file.  From that record
images are made as storage may hold them: everything up to an fsync that has returned, and of what
came later nothing, or sectors drawn at random.
"""

import os
import struct
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.attack._history import examine, history
from tests.support.tools import require_tool

SHORT = 2
LENGTH = 40
IMAGES = 12
SECTOR = 512
SOURCE = Path(__file__).parent / "record_writes.c"

PROGRAM = """
import ctypes, sys
from pathlib import Path
from tests.attack._history import history, perform
mark = ctypes.CDLL(None).record_mark
kinds = {"flush": 1, "flushed": 2, "closing": 3}
perform(Path(sys.argv[1]), sys.argv[2], history(int(sys.argv[3]), int(sys.argv[4])),
        lambda what, number: mark(4 * number + kinds.get(what, 0)), sync=True)
"""


@dataclass(frozen=True)
class Event:
    """A write, truncation, fsync or mark, as `record_writes.c` has it."""

    kind: str
    offset: int
    data: bytes


def attempt(seed: int, folder: Path) -> None:
    """One process, and many ways in which its file may be cut off."""
    rng = np.random.default_rng(seed)
    libver = str(rng.choice(["earliest", "latest"]))
    steps = history(seed, LENGTH)
    events = _recorded(folder, libver, seed)
    synced = [n for n, event in enumerate(events) if event.kind == "s"]
    image = folder / "image.h5"
    for _ in range(IMAGES):
        cut = int(rng.choice(synced))
        flushed = _last_mark(events[:cut], {1})
        if flushed is None or _last_mark(events[:cut], {3}) is not None:
            continue
        lost = _image(events[: cut + 1])
        told = f"seed {seed}, {libver}, event {cut}"
        image.write_bytes(lost)
        examine(image, steps, flushed, told)
        # Part of what came later, until the next flush.
        later = events[cut + 1 :]
        until = next((n for n, event in enumerate(later) if _flushes(event)), 0)
        until = int(rng.integers(0, until + 1))
        image.write_bytes(_image(later[:until], bytearray(lost), rng))
        examine(image, steps, flushed, f"{told} to {until}")


def _recorded(folder: Path, libver: str, seed: int) -> list[Event]:
    library, log, file = folder / "record.so", folder / "log", folder / "x.h5"
    gcc = require_tool("gcc")
    built = [gcc, "-shared", "-fPIC", str(SOURCE), "-o", str(library), "-ldl", "-lpthread"]
    subprocess.run(built, check=True, capture_output=True)
    recording = {"LD_PRELOAD": library, "RECORD_FILE": file, "RECORD_LOG": log}
    subprocess.run(
        [sys.executable, "-c", PROGRAM, str(file), libver, str(seed), str(LENGTH)],
        env={**os.environ, **{name: str(value) for name, value in recording.items()}},
        cwd=Path(__file__).parents[2],
        check=True,
    )
    record, events, at = log.read_bytes(), [], 0
    while at < len(record):
        kind, offset, length = struct.unpack_from("=cqq", record, at)
        at += 17
        data = record[at : at + length] if kind == b"w" else b""
        at += len(data)
        events.append(Event(kind.decode(), offset, data))
    assert _image(events) == file.read_bytes(), "not all writes were recorded"
    return events


def _image(
    events: list[Event], held: bytearray | None = None, rng: np.random.Generator | None = None
) -> bytearray:
    """What storage holds after some events; with `rng`, any of their sectors, in any order."""
    held = bytearray() if held is None else held
    for event in events:
        if event.kind == "t":
            held[event.offset :] = bytes(max(event.offset - len(held), 0))
        if event.kind != "w":
            continue
        end = event.offset + len(event.data)
        held.extend(bytes(max(end - len(held), 0)))
        begin = event.offset
        while begin < end:
            stop = min((begin // SECTOR + 1) * SECTOR, end)
            if rng is None or rng.random() < 0.6:
                held[begin:stop] = event.data[begin - event.offset : stop - event.offset]
            begin = stop
    return held


def _flushes(event: Event) -> bool:
    return event.kind == "m" and event.offset % 4 in (1, 3)


def _last_mark(events: list[Event], kinds: set[int]) -> int | None:
    """The step of the last mark of some kinds."""
    marks = [event.offset for event in events if event.kind == "m" and event.offset % 4 in kinds]
    return marks[-1] // 4 if marks else None
