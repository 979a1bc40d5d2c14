"""How much memory do many datasets take, each with a chunk cache?

A probe.  A program reads one dataset after the other, each in small pieces, and keeps them
open, or closes each when it has read it.  Its peak memory is the system's figure for the
process, h5py and Python included.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import h5py
import numpy as np

from chunkwise.grammar import parse_size
from chunkwise.measure.process import finished, python
from chunkwise.measure.schedule import Step
from chunkwise.words import counted

if TYPE_CHECKING:
    from chunkwise_lab.studies.context import Context

_CHUNK_NBYTES: Final = 1 << 18
# `h5py` by itself: nothing of ours must be counted.  Peak memory is reset by a new process only.
_PROGRAM: Final = """
import json, sys
import h5py
path, names, nbytes, keep = json.loads(sys.argv[1])
kept = []
with h5py.File(path, rdcc_nbytes=nbytes, rdcc_nslots=10007) as file:
    for name in names:
        dataset = file[name]
        for row in range(0, len(dataset), dataset.chunks[0] // 4):
            dataset[row]
        if keep:
            kept.append(dataset)
        dataset = None
    with open("/proc/self/status") as status:
        print(next(line.split()[1] for line in status if line.startswith("VmHWM")))
"""


def measure(context: Context) -> Iterator[tuple[dict[str, str], list[dict[str, Any]]]]:
    """Measure peak memory by the number of datasets.

    The study's file says ``datasets``, a list of numbers as text, and ``cache``, the bytes that
    each may cache.  Points have ``datasets`` and ``then`` (``kept open`` or ``closed``); records
    ``peak_rss_nbytes``.
    """
    numbers = [str(number) for number in context.settings["datasets"]]
    cache = parse_size(str(context.settings["cache"]))
    path = context.folder / "datasets.h5"
    context.say(Step("generating many datasets"))
    _generate(path, max(map(int, numbers)), cache)
    try:
        for number in numbers:
            for then, keep in (("kept open", True), ("closed", False)):
                context.say(Step(f"{counted(int(number), 'dataset')}, {then}"))
                names = [str(i) for i in range(int(number))]
                records = [_one(path, names, cache, keep) for _ in range(context.repeat)]
                yield {"datasets": number, "then": then}, records
    finally:
        path.unlink(missing_ok=True)


def _generate(path: Path, datasets: int, nbytes: int) -> None:
    """Write datasets that fill their caches; zeros, as memory does not depend on values."""
    shape = (nbytes // _CHUNK_NBYTES * 16, _CHUNK_NBYTES // 16)
    with h5py.File(path, "w") as file:
        for i in range(datasets):
            file.create_dataset(
                str(i), data=np.zeros(shape, "u1"), chunks=(16, shape[1]), compression=1
            )


def _one(path: Path, names: list[str], cache: int, keep: bool) -> dict[str, Any]:
    told = json.dumps([str(path), names, cache, keep])
    done = finished([*python(_PROGRAM), told])
    if done.returncode:
        return {"status": "failed", "error": f"the program {done.how}"}
    return {"status": "ok", "peak_rss_nbytes": int(done.out) * 1024}
