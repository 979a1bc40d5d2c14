"""How are the model's figures drawn?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from chunkwise.errors import CannotWriteError, UsageError
from chunkwise.names import printable
from chunkwise_lab.mpi_model.calibrate import Calibration, Run
from chunkwise_lab.mpi_model.model import LIMITS, PHASES, Job, predict
from chunkwise_lab.mpi_model.text import CHUNK_COUNTS, sized

# Lines that often lie upon each other.
_STYLES: Final = {"write": "--", "verify": ":"}


def draw(
    fitted: Calibration, job: Job, ranks: Sequence[int], path: str, runs: Sequence[Run] = ()
) -> None:
    """Draw time by ranks, phase by phase, and beside it time by chunks."""
    try:
        import matplotlib
    except ModuleNotFoundError:
        raise UsageError("a picture needs matplotlib: pip install matplotlib") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    try:
        on = [job.on(n) for n in ranks]
        found = [predict(fitted.machine, one) for one in on]
        for phase in PHASES:
            seconds = [one.phases[phase] for one in found]
            if any(seconds):
                left.plot(ranks, seconds, _STYLES.get(phase, "-"), label=phase, linewidth=1.2)
        between = [fitted.predict(one)[1:] for one in on]
        left.plot(ranks, [one.elapsed_s for one in found], "k", linewidth=2, label="all")
        left.fill_between(ranks, *zip(*between, strict=True), color="k", alpha=0.12)
        same = [
            run for run in runs if run.elapsed_s and (run.job.nbytes, run.job.n_chunks)
            == (job.nbytes, job.n_chunks)
        ]  # fmt: skip
        if same:
            points = [run.elapsed_s for run in same]
            left.plot([run.job.n_ranks for run in same], points, "ko", label="measured")
        left.set_title(f"{job.n_chunks:,} chunks of {job.chunk_nbytes / 2**20:g} MiB")
        for n_ranks in (10, 100, 1000, 10_000):
            if n_ranks <= max(ranks):
                on_them = job.on(n_ranks)
                many = [predict(fitted.machine, sized(on_them, n)) for n in CHUNK_COUNTS]
                limit = LIMITS[many[-1].limit]
                right.plot(
                    CHUNK_COUNTS,
                    [each.elapsed_s for each in many],
                    marker=".",
                    label=f"{n_ranks:,} ranks: {limit}",
                )
        right.set_title("All, by chunks; the limit of the last")
        for axes, words in ((left, "ranks"), (right, "chunks")):
            axes.set(xscale="log", yscale="log", xlabel=words, ylabel="seconds")
            axes.legend(fontsize="small")
            axes.grid(True, which="major", alpha=0.3)
        figure.savefig(Path(path))
    except OSError as wrong:
        raise CannotWriteError(f"{printable(path)}: {wrong.strerror or wrong}") from None
    except ValueError as wrong:
        raise UsageError(f"{printable(path)}: {wrong}") from None
    finally:
        pyplot.close(figure)
