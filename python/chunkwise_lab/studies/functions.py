"""In which functions does a program spend its time that generates data and writes it?

A probe.  `perf` takes samples of a program of its own, as paper 000 took them with gprof.
"""

from __future__ import annotations

import json
import re
import shutil
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from chunkwise.errors import UsageError
from chunkwise.measure.process import finished, python
from chunkwise.measure.schedule import Step

if TYPE_CHECKING:
    from chunkwise_lab.studies.context import Context

_LEAST_SHARE: Final = 1.0
_SYSTEM: Final = "the system"
_PROGRAM: Final = """
import json, sys
import h5py, numpy as np
from chunkwise_lab.sample import find
from chunkwise_lab.sample.spec import Region
source, name, out, level, chunk, lines = json.loads(sys.argv[1])
with h5py.File(source) as file:
    made, seed, shape = find(file.attrs["sample"]), int(file.attrs["seed"]), file[name].shape
with h5py.File(out, "w", rdcc_nbytes=8910 * 1024, rdcc_w0=1.0) as file:
    dataset = file.create_dataset("a", shape, made.dtype, chunks=tuple(chunk), compression=level)
    for y in range(0, shape[1], lines):
        part = (shape[0], min(lines, shape[1] - y), shape[2])
        values = made.values(Region((0, y, 0), part, shape, seed))
        dataset[:, y : y + lines] = np.broadcast_to(values, part).astype(made.dtype, order="C")
"""


def measure(context: Context) -> Iterator[tuple[dict[str, str], list[dict[str, Any]]]]:
    """Take samples of each dataset's program, once for each of the settings' ``levels``.

    Points have ``level`` (of deflate; 0 for none), ``of`` (``function`` or ``library``) and
    ``name``; records the ``share`` of the samples, in percent.  Functions below a percent, those
    without a name and those of the system are one for each library.
    """
    perf, recorded = shutil.which("perf"), context.folder / "perf.data"
    if perf is None:
        raise UsageError("a profile by function needs perf, which is not here (linux-perf)")
    out = context.folder / "profiled.h5"
    for path, dataset, labels in context.data.values():
        for level in context.settings["levels"]:
            context.say(Step(f"taking samples, deflate {level}"))
            told = json.dumps([path, dataset, str(out), level or None, (11, 8, 360), 8])
            command = [*python(_PROGRAM), told]
            done = finished([perf, "record", "-q", "-F", "499", "-o", str(recorded), *command])
            out.unlink(missing_ok=True)
            if done.returncode:
                raise UsageError(f"perf took no samples: {done.how}")
            fields = ["--percent-limit=0", "--fields=overhead,dso,symbol", "--field-separator=|"]
            said = finished([perf, "report", "-q", "--stdio", "-i", str(recorded), *fields])
            for (of, name), share in _shares(said.out.decode("utf-8", "replace")).items():
                point = {"level": str(level), "of": of, "name": name}
                yield {**labels, **point}, [{"status": "ok", "share": share}]


def _shares(report: str) -> defaultdict[tuple[str, str], float]:
    found: defaultdict[tuple[str, str], float] = defaultdict(float)
    for line in report.splitlines():
        if line.count("|") == 2 and "%" in line:
            share, file, symbol = (text.strip() for text in line.split("|"))
            library, name = _library(file), symbol.partition("] ")[2]
            percent = float(share.rstrip("%"))
            if percent < _LEAST_SHARE or name.startswith("0x") or library == _SYSTEM:
                name = f"others of {library}"
            found["function", name] += percent
            found["library", library] += percent
    return found


def _library(file: str) -> str:
    """Name a shared object without its version, and everything of the generator by one name."""
    name = re.split(r"[-.]", file.removeprefix("lib"))[0]
    known = {"hdf5": "HDF5", "z": "zlib", "[kernel": _SYSTEM, "c": "libc"}
    return known.get(name, "NumPy and Python")
