"""Does a rewritten file hold what its source held, whichever call of the run goes wrong?

A random file is repacked, in place or beside it, while one call that changes files, or all
from one on, flips a bit, is dropped, writes half, fails, or kills the process.
"""

import random
import shutil
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from tests.support.sabotage import FAULTS, Done, Plan, run

SHORT = 3
FILTERS: tuple[dict[str, Any], ...] = (
    {},
    {"compression": 1},
    {"compression": "lzf", "shuffle": True},
    {"fletcher32": True},
    {"scaleoffset": 0},
)
RULES = ("none", "deflate:1", "shuffle+deflate:4", "lzf", "shuffle+zstd:1")


def attempt(seed: int, folder: Path) -> None:
    """Rewrite a file once as it should be, and once with a fault."""
    rng = random.Random(seed)
    source, out = folder / "a.h5", folder / "b.h5"
    _write(source, rng)
    kept, expected = source.read_bytes(), _content(source)
    words = _command(rng)
    in_place = "--in-place" in words
    clean = run([sys.executable, "-m", "chunkwise", *words], folder)
    assert clean.code == 0, f"{words}: {clean.code}: {clean.err}"
    if not clean.calls:
        # Nothing was to be changed in place.
        return
    for left in folder.iterdir():
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    source.write_bytes(kept)
    fault = rng.choice(FAULTS[1:]) + rng.choice(("", "", "..."))
    plan = Plan(rng.randint(1, len(clean.calls)), fault)
    done = run([sys.executable, "-m", "chunkwise", *words], folder, plan)
    _judge(f"{words}, {plan.number} {fault}", done, source, None if in_place else out, expected)
    if not in_place:
        assert source.read_bytes() == kept, f"{words}, {plan}: the source changed"


def _judge(
    said: str, done: Done, source: Path, out: Path | None, expected: dict[str, Any]
) -> None:
    said = f"{said}: exit code {done.code}: {done.out[-300:]}{done.err[-500:]}"
    killed = any(call.fault == "kill" for call in done.struck)
    assert killed or not done.crashed, said
    assert "Traceback" not in done.err, said
    result = source if out is None else out
    if done.code == 0 or result.exists():
        assert result.exists(), said
        assert _same(_content(result), expected), f"wrong values; {said}"


def _write(path: Path, rng: random.Random) -> None:
    random_ = np.random.default_rng(rng.getrandbits(32))
    with h5py.File(path, "w", libver=rng.choice(("earliest", "latest"))) as f:
        for number in range(rng.randint(1, 4)):
            shape = tuple(rng.randint(1, 60) for _ in range(rng.randint(1, 3)))
            chunks = tuple(rng.randint(1, max(1, n // 2)) for n in shape)
            dtype = rng.choice(("i4", "u2", ">i8", "i2"))
            data = random_.integers(0, 1000, shape).astype(dtype)
            words = rng.choice(FILTERS)
            group = f.require_group(rng.choice(("/", "g", "g/h")))
            d = group.create_dataset(f"d{number}", data=data, chunks=chunks, **words)
            d.attrs["units"] = "K" * rng.randint(1, 50)
        texts = [f"text {number}" for number in range(rng.randint(1, 300))]
        f.create_dataset("texts", data=texts, chunks=(rng.randint(1, len(texts)),))
        f["refs"] = np.array([f["texts"].ref, f["/"].ref], h5py.ref_dtype)


def _command(rng: random.Random) -> list[str]:
    where = rng.choice((["b.h5"], ["--in-place"]))
    chunk = ["--chunk", "auto"] if rng.random() < 0.7 else []
    return ["repack", "a.h5", *where, *chunk, "--filter", rng.choice(RULES)]


def _content(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    with h5py.File(path) as f:

        def look(name: str, one: Any) -> None:
            found[name] = dict(one.attrs)
            if isinstance(one, h5py.Dataset) and name != "refs":
                found[name]["values"] = one[()]

        f.visititems(look)
        found["refs"] = [f[one].name for one in f["refs"][:]]
    return found


def _same(first: dict[str, Any], second: dict[str, Any]) -> bool:
    if first.keys() != second.keys() or first["refs"] != second["refs"]:
        return False
    names = first.keys() - {"refs"}
    return all(
        first[name].keys() == second[name].keys()
        and all(np.array_equal(first[name][key], second[name][key]) for key in first[name])
        for name in names
    )
