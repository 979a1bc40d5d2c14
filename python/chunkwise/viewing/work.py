"""What takes long beside the page?  Each work runs in a process of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from chunkwise.advice import goals
from chunkwise.advice.api import advise
from chunkwise.advice.verifying import Timing, cut, measure, part_nbytes
from chunkwise.advice.work import Work
from chunkwise.fixing import render as fixing
from chunkwise.fixing.api import fix
from chunkwise.measure.schedule import Step
from chunkwise.measure.variants import scratch_folder
from chunkwise.model.layout import Layout
from chunkwise.model.search import Problem
from chunkwise.repacking import render as repacking
from chunkwise.repacking.api import repack
from chunkwise.repacking.progress import Moment
from chunkwise.viewing.picture import picture

Say = Callable[[Step], None]
# Of which a quarter is for trying filters.
_SAMPLE_S: Final = 16.0
_MEASURE_S: Final = 30.0
_REPEATS: Final = 3


def sample(say: Say, file: str, dataset: str) -> Problem:
    """Measure the machine, if nobody did, and how a sample of the data compresses."""
    work = _work(say, file, dataset, (), None, _SAMPLE_S)
    with scratch_folder(None) as folder:
        return work.modelled(folder, calibrate=False)[0]


def best(
    say: Say, file: str, dataset: str, access: Sequence[str], reader: str | None
) -> dict[str, Any]:
    """Find the best layout for some reads, and measure it."""
    return advise(file, dataset, access, reader=reader, progress=say).as_dict()


def bench(
    say: Say,
    file: str,
    dataset: str,
    access: Sequence[str],
    reader: str | None,
    tried: Layout | None,
) -> dict[str, Any]:
    """Measure some reads of a dataset as it is, and of another layout in a scratch file."""
    work = _work(say, file, dataset, access, reader, _MEASURE_S)
    present = Layout(work.target.chunks, work.target.filters)
    layouts = [present, *([tried] if tried not in (None, present) else [])]
    with scratch_folder(None) as folder:
        problem, _ = work.modelled(folder, calibrate=False)
        most = part_nbytes(_MEASURE_S)
        with cut(work.target, work.requested, most, folder, lambda text: say(Step(text))) as part:
            proof = measure(
                part, [one for one in layouts if one], work.requested, problem,
                repeat=_REPEATS, seconds=_MEASURE_S, ours_too=present, progress=say,
            )  # fmt: skip

    def of(found: dict[str, Timing], name: str, reads: int) -> float | None:
        return found[name].of(reads).median if name in found else None

    rows = {}
    for text, one in zip(access, work.requested, strict=True):
        name, reads = one.pattern.name, one.pattern.reads
        rows[text] = {
            "libhdf5_s": of(proof.timings.get(present, {}), name, reads),
            "chunkwise_s": of(proof.ours, name, reads),
            "tried_s": of(proof.timings.get(layouts[-1], {}), name, reads)
            if len(layouts) > 1
            else None,
        }
    return {"part": str(part), "failed": list(proof.failed.values()), "reads": rows}


def write(
    say: Say, file: str, out: str, dataset: str, chunk: str | None, filters: str | None
) -> list[str]:
    """Write a new file, prove it, and say what was done; without a layout, mend what is found."""

    def watch(moment: Moment) -> None:
        share = moment.total_done_nbytes / max(1, moment.total_nbytes)
        say(Step(f"{moment.phase} {moment.path}: {share:.0%}"))

    if chunk is None and filters is None:
        step = lambda text: say(Step(text))  # noqa: E731
        fixed = fix(file, out, seconds=_MEASURE_S, tell=step, progress=watch)
        return list(fixing.lines(fixed))
    done = repack(
        file,
        out,
        chunk=None if chunk is None else {dataset: chunk},
        filters=None if filters is None else {dataset: filters},
        progress=watch,
    )
    return list(repacking.summary_lines(done))


def _work(
    say: Say,
    file: str,
    dataset: str,
    access: Sequence[str],
    reader: str | None,
    budget_s: float,
) -> Work:
    return Work.of(
        file, dataset, access, goals.read("balanced", reader), begun=time.monotonic(),
        budget_s=budget_s, progress=say,
    )  # fmt: skip


# The works, and after how many seconds it is ended; None for never.
WORKS: Final[dict[str, tuple[Callable[..., Any], float | None]]] = {
    "picture": (picture, 60),
    "sample": (sample, 180),
    "best": (best, 600),
    "bench": (bench, 300),
    "write": (write, None),
}
