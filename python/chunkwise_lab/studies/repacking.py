"""How long do h5repack and chunkwise take to give a dataset other chunks?

A probe.  Both are timed as commands, from start to end, in turns, on the file as it is and on
the same data without compression.  The results are checked: some builds of h5repack leave out
data and report success.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from chunkwise.errors import ChunkwiseError
from chunkwise.grammar import format_size, parse_shape
from chunkwise.measure.axes import AXES
from chunkwise.measure.process import finished, in_turns, python
from chunkwise.measure.schedule import Step
from chunkwise.measure.target import Target, look
from chunkwise.measure.variants import SAMPLE_NBYTES
from chunkwise.repacking import repack

if TYPE_CHECKING:
    from chunkwise_lab.studies.context import Context

# The programs, by the reader that stands for each.
_TOOLS: Final = {"libhdf5": "h5repack", "chunkwise": "chunkwise"}
_SOURCES: Final = ("stored", "none")


def measure(context: Context) -> Iterator[tuple[dict[str, str], list[dict[str, Any]]]]:
    """Time each program on the one dataset of a run.

    The study's file says ``chunk``: the shape that is wanted.  Points are as those of bench,
    so that reads can be compared with: ``operation`` is ``repack``, ``reader`` whose data path
    the program has, ``filter`` whether the source is as it is or has none.  Records have
    ``total_s``, ``file_nbytes`` and the tool's ``tool_version``.
    """
    (file, dataset, _), chunk = next(iter(context.data.values())), str(context.settings["chunk"])
    defaults = {**{name: axis.default for name, axis in AXES.items()}, "operation": "repack"}
    points = [
        {**defaults, "reader": reader, "filter": filters, "chunk": chunk}
        for filters in _SOURCES
        for reader in _TOOLS
        if not context.readers or reader in context.readers
    ]
    nbytes = Path(file).stat().st_size
    if nbytes > SAMPLE_NBYTES:
        text = f"the file has {format_size(nbytes)}: only up to {format_size(SAMPLE_NBYTES)}"
        yield from ((point, [_failed(f"not repacked: {text}")]) for point in points)
        return
    with tempfile.TemporaryDirectory(prefix="repack-", dir=context.folder) as name:
        sources = {"stored": Path(file), "none": Path(name) / "plain.h5"}
        repack(file, sources["none"], filters={dataset: "none"})

        def repacked(point: dict[str, str]) -> dict[str, Any]:
            tool, source = _TOOLS[point["reader"]], sources[point["filter"]]
            context.say(Step(f"repacking by {tool}"))
            return _timed(tool, source, dataset, chunk, Path(name))

        works = {str(place): partial(repacked, point) for place, point in enumerate(points)}
        found = in_turns(works, context.repeat)
    yield from zip(points, found.values(), strict=True)


def _timed(tool: str, source: Path, dataset: str, chunk: str, folder: Path) -> dict[str, Any]:
    """Run one program once; the record holds its result, even a failure."""
    made = folder / "made.h5"
    made.unlink(missing_ok=True)
    program = shutil.which("h5repack")
    if tool == "chunkwise":
        start = [*python("from chunkwise.cli import main; main()")]
        command = [*start, "repack", str(source), str(made), "--chunk", f"{dataset}:{chunk}"]
    elif program is not None:
        start = [program]
        command = [*start, "-l", f"{dataset}:CHUNK={chunk}", str(source), str(made)]
    else:
        return _failed("h5repack is not installed (Debian: hdf5-tools)")
    try:
        done = finished(command)
        if done.returncode:
            return _failed(f"{tool} {done.how}")
        target = look(made, dataset)
        said = finished([*start, "--version"]).out.decode()
    except (ChunkwiseError, OSError) as wrong:
        return _failed(f"{tool}: {wrong}")
    if not _is_as_asked(target, look(source, dataset), chunk):
        return _failed(f"{tool} reported success, and left something out")
    return {
        "status": "ok",
        "total_s": done.elapsed_s,
        "shape": target.shape,
        "itemsize": target.itemsize,
        "stored_nbytes": target.stored_nbytes,
        "file_nbytes": made.stat().st_size,
        "tool_version": said.split()[-1],
    }


def _is_as_asked(made: Target, source: Target, chunk: str) -> bool:
    expected = parse_shape(chunk), source.filters, source.shape
    return (made.chunks, made.filters, made.shape) == expected and made.stored_nbytes > 0


def _failed(why: str) -> dict[str, Any]:
    return {"status": "failed", "error": why}
