"""Random programs in C, run as they are and with the engine under their HDF5.

A program opens files and datasets, reads and writes random selections with random types, closes
them in every way that HDF5 has, and goes on using what it has closed.  It must say the same, and
leave the same files.
"""

import functools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import h5py
import numpy as np

from chunkwise.running import environment
from tests.support.tools import require_tool

SHORT = 50
STEPS = 40
SOURCE = Path(__file__).resolve().parents[1] / "running" / "calls.c"
# Of numbers in memory, as the program in C names them.
NUMBERS = "bBhHiIqQfFdD"
TYPES = ("<i4", ">f8", "<f4", "u1", ">u2", "<i8", "S5", "?", [("a", "<i2"), ("b", "<f8")])
FOLDERS: list[tempfile.TemporaryDirectory[str]] = []

# libhdf5 1.10 refuses some irregular selections, without cause.
FAULT = "can't insert duplicate key"

DAMAGED = ("inflate() failed", "data error detected by Fletcher32 checksum")
# What h5py raises of damaged files.
FAILS = (OSError, RuntimeError, KeyError, ValueError, MemoryError)

Rng = np.random.Generator


@functools.cache
def program() -> Path:
    """Compile the program that makes the calls, once in a process."""
    h5cc = require_tool("h5cc")
    FOLDERS.append(tempfile.TemporaryDirectory())
    made = Path(FOLDERS[0].name) / "calls"
    done = subprocess.run(
        [h5cc, "-shlib", "-o", made, SOURCE], cwd=made.parent, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return made


def attempt(seed: int, folder: Path) -> None:
    """One program, run twice."""
    rng = np.random.default_rng(seed)
    written = folder / "as_written"
    written.mkdir()
    shapes = {f"{k}.h5": _write(rng, written / f"{k}.h5") for k in range(2)}
    calls = "\n".join(_calls(rng, shapes))
    said = {}
    # Whole chunks that are written here are encoded by other means: the same values, other bytes.
    writes = rng.random() < 0.5
    for way in ("plain", "preloaded"):
        shutil.copytree(written, folder / way)
        given = dict(os.environ, OMP_NUM_THREADS="1")
        if way == "preloaded":
            to = str(folder / "report")
            given |= environment.variables(report=to, cache_nbytes=int(rng.integers(0, 1 << 20)))
            given["CHUNKWISE_READ_LEAST"] = "1"
            if writes:
                given["CHUNKWISE_WRITE_LEAST"] = "1"
        try:
            done = subprocess.run(
                [program()], input=calls, cwd=folder / way, env=given, timeout=20,
                capture_output=True, text=True,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            assert way == "plain", f"hangs\n{calls}"
            return
        if way == "plain" and done.returncode != 0:
            # libhdf5 by itself crashes on some damaged files, and on what was closed.
            return
        assert done.returncode == 0, f"exit {done.returncode}\n{done.stderr}\n{calls}"
        said[way] = (done.stdout, done.stderr)
    for line, (one, other) in enumerate(
        zip(*(said[way][0].splitlines() for way in said), strict=True)
    ):
        if one != other and " W failed: " in one and any(text in one for text in DAMAGED):
            # A damaged chunk that is written as a whole need not be read before.
            return
        assert one == other or FAULT in one, (
            f"{calls.splitlines()[line]}\nplain:     {one}\npreloaded: {other}"
        )
    assert said["plain"][1] == said["preloaded"][1]
    for name in shapes:
        one, other = ((folder / way / name) for way in said)
        # What h5py makes of a damaged file is not always the same.
        same = one.read_bytes() == other.read_bytes() or _values(one) == _values(other)
        assert same, f"{name} differs\n{calls}"
        if not writes and "\nf" not in calls:
            # Not its bytes: libhdf5 notes when a dataset was resized.  Where the program has
            # closed the file and goes on with its datasets, libhdf5 writes out what it has when
            # one is looked at.
            assert one.stat().st_size == other.stat().st_size, f"{name} differs\n{calls}"


def _values(path: Path) -> list[tuple[object, ...]]:
    """Read all of a file, or learn how that fails."""
    found: list[tuple[object, ...]] = []
    try:
        with h5py.File(path) as file:
            for name in file:
                try:
                    found.append((name, file[name].shape, file[name][()].tobytes()))
                except FAILS as error:
                    found.append((name, type(error)))
    except FAILS as error:
        found.append((type(error),))
    return found


def _write(rng: Rng, path: Path) -> dict[str, tuple[int, ...]]:
    """Write a file of a few datasets; give their shapes."""
    shapes = {}
    with h5py.File(path, "w", libver=("earliest", "v110")) as file:
        for k in range(int(rng.integers(1, 4))):
            rank = int(rng.integers(1, 4))
            shape = tuple(int(n) for n in rng.integers(1, (900, 40, 14)[rank - 1], rank))
            dtype = np.dtype(TYPES[rng.integers(len(TYPES))])
            raw = rng.integers(0, 9, (*shape, dtype.itemsize), np.uint8)
            raw = raw % 2 if dtype.kind == "b" else raw
            values = raw.view(dtype).reshape(shape)
            how: dict[str, object] = {}
            if rng.random() < 0.85:
                how["chunks"] = tuple(int(rng.integers(1, n + 1)) for n in shape)
                how["maxshape"] = (None, *shape[1:]) if rng.random() < 0.5 else None
                if rng.random() < 0.8:
                    how |= {"compression": "gzip", "shuffle": bool(rng.random() < 0.5)}
                how["fletcher32"] = bool(rng.random() < 0.3)
            name = f"{'n' if dtype.kind in 'iuf' else 'd'}{k}"
            shapes[name] = shape
            if "chunks" in how and rng.random() < 0.3:
                # Some of its chunks are never written.
                dataset = file.create_dataset(name, shape, dtype, **how)
                dataset[: shape[0] // 2] = values[: shape[0] // 2]
            else:
                file.create_dataset(name, data=values, **how)
    if rng.random() < 0.2:
        content = bytearray(path.read_bytes())
        content[int(rng.integers(len(content) // 2, len(content)))] ^= 1 << int(rng.integers(8))
        path.write_bytes(content)
    return shapes


def _calls(rng: Rng, files: dict[str, dict[str, tuple[int, ...]]]) -> list[str]:
    """Write a program: most of its calls make sense."""
    names = list(files)
    open_files: dict[int, str] = {}
    open_datasets: dict[int, tuple[int, ...]] = {}
    numbers: set[int] = set()
    calls = []
    modes = {name: str(rng.choice(["r", "r", "r", "w"])) for name in names}
    for _ in range(STEPS):
        what = rng.choice([*"FDDRRRRRRRWWdf+EXCUL"])
        if what == "F" or not open_files:
            slot, name = int(rng.integers(2)), str(rng.choice(names))
            calls.append(f"F {slot} {modes[name]} {rng.choice(['d', 's'])} {name}")
            open_files[slot] = name
        elif what == "D" or not open_datasets:
            slot = int(rng.integers(6))
            file = int(rng.choice(list(open_files)))
            name = str(rng.choice(list(files[open_files[file]])))
            calls.append(f"D {slot} {file} {name}")
            open_datasets[slot] = files[open_files[file]][name]
            numbers.discard(slot)
            if name.startswith("n"):
                numbers.add(slot)
        elif what == "f":
            way = rng.choice(["f", "f", "i"])
            calls.append(f"f {rng.choice(list(open_files))} {way}")
        elif what == "L":
            calls.append(f"L {rng.choice(list(open_files))}")
        elif what in "CU":
            file = int(rng.choice(list(open_files)))
            known = files[open_files[file]]
            if what == "U":
                if rng.random() < 0.3:
                    calls.append(f"U {file} {rng.choice(list(known))}")
                continue
            slot, name = int(rng.integers(6)), f"n{len(known)}"
            shape = tuple(int(n) for n in rng.integers(1, 30, rng.integers(1, 4)))
            chunk = tuple(int(rng.integers(1, n + 1)) for n in shape)
            kind, level = rng.choice([*NUMBERS]), rng.choice([-1, 0, 1, 6])
            calls.append(
                f"C {slot} {file} {name} {kind} {level} {len(shape)} {_row(shape)} {_row(chunk)}"
            )
            open_datasets[slot] = known[name] = shape
            numbers.add(slot)
        elif what == "X":
            if rng.random() < 0.1:
                calls.append("X")
        else:
            slot = int(rng.choice(list(open_datasets)))
            shape = open_datasets[slot]
            if what == "d":
                calls.append(f"d {slot} {rng.choice(['d', 'o', 'i'])}")
            elif what == "+":
                calls.append(f"+ {slot}")
            elif what == "E":
                calls.append(f"E {slot} {rng.integers(1, 2 * shape[0] + 1)}")
            else:
                # A conversion that fails leaves libhdf5 1.10 unable to read the chunk afterwards.
                kind = rng.choice([*"sssn"])
                if slot in numbers and rng.random() < 0.4:
                    kind = rng.choice([*NUMBERS])
                memory, in_file = _spaces(rng, shape)
                how = rng.choice(["0"] * 8 + ["b", "x", "e"])
                calls.append(f"{what} {slot} {kind} {memory} {in_file} {how}")
    return calls


def _spaces(rng: Rng, shape: tuple[int, ...]) -> tuple[str, str]:
    """Write a dataspace in memory and one of the file, mostly of as many elements."""
    if rng.random() < 0.15:
        return "A", "A"
    in_file, count = _selection(rng, shape)
    if rng.random() < 0.15:
        return "A", in_file
    if rng.random() < 0.05:
        count += 1
    way = rng.random()
    # libhdf5 1.10 writes beyond its own memory where one side is points and of another rank.
    rank = len(shape) if way >= 0.9 or " P " in in_file else 1
    ones = " 1" * (rank - 1)
    if way < 0.5:
        return f"S {rank} {max(count, 1)}{ones} 0", in_file
    if way < 0.7:
        before = int(rng.integers(0, 5))
        size = before + count + int(rng.integers(0, 5))
        zeros = " 0" * (rank - 1)
        part = f"{before}{zeros} 1{ones} {max(count, 1)}{ones} 1{ones}"
        return f"S {rank} {max(size, 1)}{ones} 1 H 0 {part}", in_file
    if way < 0.9 and (len(shape) == 2 or " P " not in in_file):
        return f"S 2 {count + 1} 3 1 H 0 1 1 1 1 {max(count, 1)} 1 1 1", in_file
    # Some come twice.
    places = rng.integers(0, count + 3, count)
    if rng.random() < 0.8:
        places = rng.permutation(count + 3)[:count]
    listed = " ".join(f"{place}{' 0' * (len(shape) - 1)}" for place in places)
    ones = " 1" * (len(shape) - 1)
    rank = len(shape)
    chosen = f"P {count} {listed}" if count else "N"
    return f"S {rank} {count + 3}{ones} 1 {chosen}", in_file


def _selection(rng: Rng, shape: tuple[int, ...]) -> tuple[str, int]:
    """Write a selection of a dataset, and count its elements."""
    rank = len(shape)
    head = f"S {rank} {_row(shape)}"
    way = rng.random()
    if way < 0.1:
        return f"{head} 1 E", int(np.prod(shape))
    if way < 0.15:
        return f"{head} 1 N", 0
    if way < 0.3:
        count = int(rng.integers(1, 12))
        points = np.stack([rng.integers(0, n, count) for n in shape], axis=1)
        return f"{head} 1 P {count} {_row(points.ravel())}", count
    mask = np.zeros(shape, bool)
    parts = []
    for k in range(1 if way < 0.75 else int(rng.integers(2, 5))):
        start = [int(rng.integers(0, n)) for n in shape]
        block = [int(rng.integers(1, 4)) for _ in shape]
        stride = [b + int(rng.integers(0, 3)) for b in block]
        block = [min(b, n - s) for b, n, s in zip(block, shape, start, strict=True)]
        count_of = [
            int(rng.integers(1, (n - s - b) // step + 2))
            for n, s, b, step in zip(shape, start, block, stride, strict=True)
        ]
        operator = 0 if k == 0 else int(rng.integers(1, 4))
        parts.append(f"H {operator} {_row(start)} {_row(stride)} {_row(count_of)} {_row(block)}")
        this = np.zeros(shape, bool)
        axes = [
            np.concatenate([np.arange(s + i * step, s + i * step + b) for i in range(c)])
            for s, step, c, b in zip(start, stride, count_of, block, strict=True)
        ]
        this[np.ix_(*axes)] = True
        mask = this if k == 0 else (mask | this, mask ^ this, mask & ~this)[operator - 1]
    if rng.random() < 0.05:
        # Moved, perhaps beyond the dataset.
        parts.append("O " + _row([int(rng.integers(-1, 2)) for _ in shape]))
    return f"{head} {len(parts)} {' '.join(parts)}", int(mask.sum())


def _row(numbers: object) -> str:
    return " ".join(str(int(n)) for n in numbers)  # type: ignore[attr-defined]
