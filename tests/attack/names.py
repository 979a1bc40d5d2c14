"""Does a name in a file ever command the terminal, or a page, that shows it?

A file in which every name and string is hostile (control characters of both kinds, marks
that turn the reading direction, ends of lines, markup of rich, HTML and Markdown, bytes that
are no UTF-8) goes through every command.  Nothing raw may arrive, no line may be forged, and
no command may fail for the name.
"""

import json
import os
import pty
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np

SHORT = 1

_PARTS = (
    *("\x1b]0;title\x07", "\x9b31m", "\x90q\x9c", "\x7f", "\r", "\n", "\t", "\x08", "\x00"),
    *("\u202e", "\u2066", "\u200b", "\u200d", "\u2028", "\u2029", "\ufeff", "\u00ad", "\ue000"),
    *("[bold red]", "[/]", "[/nothing]", ":smile:", "{0}", "%s", "`", "|", "*", "\\", "'", '"'),
    *("<script>alert(1)</script>", "</pre>", "&amp;", " ", "$(x)", "~", "#", "\nerror: forged"),
    *("\udc9b", "\udcff", "é", "温度", "e\u0301", "😀"),
)
# What rich itself writes on a terminal.
_RICH = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_PROGRAM = [sys.executable, "-m", "chunkwise"]
_TIMES_S = 100.0


def hostile(rng: random.Random, *, bare: str = "") -> str:
    """Make a name that begins with a letter; `bare` says which characters it must not hold."""
    text = "x" + "".join(rng.choices(_PARTS, k=rng.randint(3, 8)))
    return "".join(c for c in text if c not in bare)


def stored(name: str) -> bytes:
    """Write a name as it lies in a file, without zeros, which would end it."""
    return name.replace("\x00", "").encode("utf-8", "surrogateescape")


def write(path: Path, rng: random.Random) -> bytes:
    """Write a file of which each name and string is hostile; return its dataset's path."""

    def name() -> bytes:
        return stored(hostile(rng, bare="/"))

    group, dataset, scale = name(), name(), name()
    text = stored(hostile(rng))
    values = np.arange(60_000, dtype="i4").reshape(60, 1000)
    with h5py.File(os.fsencode(path), "w") as file:
        inner = file.create_group(group)
        data = inner.create_dataset(dataset, data=values, chunks=(1, 1000), compression="gzip")
        dims = inner.create_dataset(scale, data=np.arange(60))
        dims.make_scale(_decoded(name()))
        data.dims[0].attach_scale(dims)
        data.dims[0].label = _decoded(name())
        for owner in (file, inner, data):
            owner.attrs[_decoded(name())] = np.bytes_(text)
            owner.attrs["units"] = np.bytes_(text)
        members = np.dtype([(_decoded(name()), "i4"), ("b", "f8")])
        inner.create_dataset(name(), data=np.zeros(3, members))
        inner.create_dataset(name(), data=np.bytes_(text))
        enum = h5py.enum_dtype({_decoded(name()): 1, "b": 2}, "i1")
        inner.create_dataset(name(), data=np.zeros(3, "i1"), dtype=enum)
        file[name()] = h5py.SoftLink(_decoded(name()))
        file[name()] = h5py.ExternalLink(_decoded(name()), _decoded(name()))
        file[name()] = np.dtype("f4")
        layout = h5py.VirtualLayout((2, 10), "i4")
        # A per cent sign begins a pattern here.
        source, inside = (_decoded(name()).replace("%", "") for _ in range(2))
        layout[0] = h5py.VirtualSource(source, inside, (10,))
        file.create_virtual_dataset(name(), layout)
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((10,))
        space = h5py.h5s.create_simple((20,))
        lacking = h5py.h5d.create(file.id, name(), h5py.h5t.STD_I32LE, space, plist)
        lacking.write(space, space, np.zeros(20, "i4"))
    return b"/" + group + b"/" + dataset


def _decoded(name: bytes) -> str:
    """Of bytes that are no UTF-8 h5py takes only some; leave them to links and groups."""
    return name.decode("utf-8", "ignore")


def check(text: str, what: str) -> None:
    """Raise if a character that is no printing one is left but the ends of lines."""
    for number, line in enumerate(text.split("\n"), 1):
        wrong = [c for c in line if not c.isprintable()]
        assert not wrong, f"{what}: line {number} has {wrong}: {line!a}"
        assert not line.startswith("error: forged"), f"{what}: line {number} is forged"


def run(folder: Path, *words: str | bytes, terminal: bool = False) -> tuple[int, str]:
    """Run chunkwise, in a pipe or on a terminal; return its exit code and all that it printed."""
    command = [*_PROGRAM, *words]
    environment = {**os.environ, "COLUMNS": "100", "TERM": "xterm"}
    if not terminal:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, env=environment, timeout=_TIMES_S
        )
        return done.returncode, (done.stdout + done.stderr).decode()
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        command, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    told = bytearray()
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # the last writer has gone
            break
        if not piece:
            break
        told += piece
    os.close(ours)
    # A terminal ends lines with both.
    text = _RICH.sub("", told.decode()).replace("\r\n", "\n").replace("\r", "\n")
    return child.wait(_TIMES_S), text


def attempt(seed: int, folder: Path) -> None:
    """Show one hostile file by every command."""
    rng = random.Random(seed)
    # A file's name is bytes without a slash or a zero.
    file = _decoded(stored(hostile(rng, bare="/\x00"))) + ".h5"
    dataset = write(folder / file, rng)
    full = os.fsdecode(dataset)
    short = ("--budget", "3", "--repeat", "1", "--reader", "h5py,chunkwise", "--access", "row")
    commands: list[tuple[tuple[str, ...], tuple[int, ...]]] = [
        (("inspect", file, "--all", "--tool", "all"), (0,)),
        (("inspect", file, full), (0,)),
        (("inspect", file, "--fail-on", "note"), (0, 1)),
        (("inspect", file, "--json"), (0,)),
        (("inspect", ".", "--json"), (0,)),
        (("inspect", ".", "--fail-on", "note"), (0, 1)),
        (("inspect", ".", "--quiet"), (0,)),
        (("inspect", file, "/not\x1b]there\x9b"), (2,)),
        (("bench", file, full, *short, "--save", "run.json"), (0,)),
        (("bench", file, "none\x9b"), (2,)),
        (("hstest", file, full, "--count", "2", "-k", "3"), (0,)),
        (("compare", "run.json", "run.json"), (0, 1, 2)),
        (("repack", file, "--dry-run", "out.h5"), (0,)),
        (("repack", file, "out.h5", "--chunks", "20x1000"), (0, 1, 2)),
        (("repack", file, "--in-place", "--json"), (0, 1, 2)),
    ]
    for words, codes in commands:
        what = ascii(words)
        code, text = run(folder, *(os.fsencode(word) for word in words))
        assert "Traceback" not in text, f"{what}: {text}"
        assert code in codes, f"{what}: exit code {code}: {text}"
        check(text, what)
        if "--json" in words and code == 0:
            _parsed(text)
    for words in (("inspect", "."), ("inspect", file), ("hstest", file, full, "--count", "2")):
        _, text = run(folder, *(os.fsencode(word) for word in words), terminal=True)
        check(text, f"{words} on a terminal")


def _parsed(text: str) -> list[Any]:
    try:
        return [json.loads(text)]
    except json.JSONDecodeError:
        return [json.loads(line) for line in text.splitlines()]
