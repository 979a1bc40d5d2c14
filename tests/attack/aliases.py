"""One dataset reached in many ways: written through one of them, read through another.

Two files are open for writing and hold chunks that are not in them yet.  Links, virtual
datasets, wrapped and patched h5py objects lead to their datasets, from these files and from a
third one that is only read.  Whichever way is taken, a NumPy array says what is there.
"""

from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from h5py import h5d, h5p, h5s, h5t

import chunkwise

SHORT = 6
STEPS = 60
SIZE = 60


@dataclass(frozen=True)
class Alias:
    """A dataset of a file, and the datasets of the model that it shows."""

    file: str
    name: str
    shows: tuple[str, ...]

    def index(self, box: slice) -> Any:
        """What stands between the brackets for a part of each."""
        return box if len(self.shows) == 1 else (slice(None), box)


def attempt(seed: int, folder: Path) -> None:
    """Writes and reads through random aliases, and what is in the files afterwards."""
    rng = np.random.default_rng(seed)
    model = {name: np.zeros(SIZE, "i4") for name in ("x", "y", "p-0", "p-1")}
    aliases = _make(folder, str(rng.choice(["earliest", "latest"])), int(rng.integers(1, 30)))
    with ExitStack() as files:
        opened: dict[str, Any] = {}
        for name in ("a", "b", "p-0", "p-1"):
            path = folder / f"{name}.h5"
            opened[name] = files.enter_context(chunkwise.open(path, "r+", sync=False))
        opened["c"] = files.enter_context(chunkwise.open(folder / "c.h5"))
        opened["second a"] = files.enter_context(chunkwise.open(folder / "a.h5"))
        theirs = files.enter_context(h5py.File(folder / "a.h5", "r+"))
        for step in range(STEPS):
            alias = aliases[rng.integers(len(aliases))]
            way = str(rng.choice(["face", "face", "h5py", "wrapped", "patched"]))
            begin = int(rng.integers(0, SIZE - 1))
            box = slice(begin, int(rng.integers(begin + 1, SIZE + 1)))
            told = f"seed {seed}, step {step}: {alias}, {box.start}:{box.stop}, {way}"
            d = _reached(opened[alias.file], theirs if alias.file == "a" else None, alias, way)
            if alias.file not in ("c", "second a") and rng.random() < 0.6 and (
                way in ("face", "wrapped")
            ):  # fmt: skip
                for row, name in enumerate(alias.shows):
                    values = rng.integers(1, 99, box.stop - box.start)
                    model[name][box] = values
                    d[box if len(alias.shows) == 1 else (row, box)] = values
                continue
            want = [model[name][box] for name in alias.shows]
            with chunkwise.patch_h5py() if way == "patched" else nullcontext():
                _same(told, d[alias.index(box)], want[0] if len(want) == 1 else want)
            if rng.random() < 0.05:
                opened[str(rng.choice(["a", "b"]))].flush()
    with h5py.File(folder / "a.h5") as a, h5py.File(folder / "b.h5") as b:
        _same(f"seed {seed}: x afterwards", a["x"][...], model["x"])
        _same(f"seed {seed}: y afterwards", b["y"][...], model["y"])


def _reached(file: Any, theirs: h5py.File | None, alias: Alias, way: str) -> Any:
    """The dataset, in one of the ways in which a program comes by it."""
    name = alias.name
    if way == "face":
        return file[name]
    if way == "h5py":
        return file.h5py[name]
    if way == "patched":
        # Without what `.h5py` does before it gives the object away.
        return (h5py.File(file.id) if theirs is None else theirs)[name]
    return chunkwise.wrap((h5py.File(file.id) if theirs is None else theirs)[name])


def _make(folder: Path, libver: str, chunk: int) -> list[Alias]:
    """Make the files, and say what leads where."""
    for file, dataset in (("a", "x"), ("b", "y"), ("p-0", "p"), ("p-1", "p")):
        with h5py.File(folder / f"{file}.h5", "w", libver=libver) as made:
            made.create_dataset(dataset, (SIZE,), "i4", chunks=(chunk,), compression=1)
    with h5py.File(folder / "a.h5", "r+", libver=libver) as a:
        a["hard"] = a["x"]
        a["soft"] = h5py.SoftLink("/x")
        a["external"] = h5py.ExternalLink("b.h5", "/y")
        a["to itself"] = h5py.ExternalLink("a.h5", "/soft")
        _virtual(a, "by dot", ".", "x")
        _virtual(a, "by name", "a.h5", "x")
        _virtual(a, "other", "b.h5", "y")
        _virtual(a, "nested", "a.h5", "other")
        _numbered(a, "numbered", b"p-%b.h5", b"p")
    with h5py.File(folder / "b.h5", "r+", libver=libver) as b:
        b["back"] = h5py.ExternalLink("a.h5", "/x")
        _virtual(b, "of a", "a.h5", "hard")
    with h5py.File(folder / "c.h5", "w", libver=libver) as c:
        c["x"] = h5py.ExternalLink("a.h5", "/x")
        c["nested"] = h5py.ExternalLink("a.h5", "/nested")
        _virtual(c, "both", "a.h5", "x")
    of_x = [("a", name) for name in ("x", "hard", "soft", "to itself", "by dot", "by name")]
    of_x += [("b", "back"), ("b", "of a")]
    of_x += [("second a", "x"), ("second a", "by dot"), ("c", "x"), ("c", "both")]
    of_y = [("a", "external"), ("a", "other"), ("a", "nested"), ("b", "y"), ("c", "nested")]
    aliases = [Alias(file, name, ("x",)) for file, name in of_x]
    aliases += [Alias(file, name, ("y",)) for file, name in of_y]
    aliases += [Alias("p-0", "p", ("p-0",)), Alias("p-1", "p", ("p-1",))]
    return [*aliases, Alias("a", "numbered", ("p-0", "p-1"))]


def _virtual(file: h5py.File, name: str, path: str, dataset: str) -> None:
    layout = h5py.VirtualLayout((SIZE,), "i4")
    layout[:] = h5py.VirtualSource(path, dataset, (SIZE,))
    file.create_virtual_dataset(name, layout)


def _numbered(file: h5py.File, name: str, paths: bytes, dataset: bytes) -> None:
    """Make a virtual dataset of as many files as there are, a row each."""
    space = h5s.create_simple((2, SIZE), (h5s.UNLIMITED, SIZE))
    rows = h5s.create_simple((2, SIZE), (h5s.UNLIMITED, SIZE))
    rows.select_hyperslab((0, 0), (h5s.UNLIMITED, 1), (1, SIZE), (1, SIZE))
    dcpl = h5p.create(h5p.DATASET_CREATE)
    dcpl.set_virtual(rows, paths, dataset, h5s.create_simple((SIZE,)))
    h5d.create(file.id, name.encode(), h5t.NATIVE_INT32, space, dcpl)


def _same(told: str, got: Any, model: Any) -> None:
    np.testing.assert_array_equal(got, model, err_msg=told)
