"""How should a dataset be stored for its reads, and do measurements confirm that?"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from chunkwise.errors import UsageError
from chunkwise.notebook import in_notebook

if TYPE_CHECKING:
    from chunkwise.advice.answer import Advice
    from chunkwise.measure.schedule import Step
    from chunkwise.patterns import StatedPattern

DEFAULT_BUDGET_S: Final = 60.0


def advise(
    path: str | os.PathLike[str],
    dataset: str,
    access: Sequence[str | StatedPattern] = (),
    *,
    objective: str = "balanced",
    reader: str | None = None,
    budget_s: float = DEFAULT_BUDGET_S,
    calibrate: bool = False,
    scratch: str | None = None,
    progress: Callable[[Step], None] | None = None,
) -> Advice:
    """Find the chunks, filters and cache that suit a dataset, and measure that they do.

    Parameters
    ----------
    path : str or path
        An HDF5 or netCDF-4 file; it is not changed.
    dataset : str
        The dataset's path.
    access : sequence of str
        What you read or write: patterns as in `chunkwise.bench`, followed by ``weight W``,
        ``write`` or ``append``: ``"map=1x721x1440 weight 3"``.  By default the patterns that
        `inspect` judges by.
    objective : str
        ``read``, ``write``, ``size``; or ``balanced``: reading counts most, and a compressed
        dataset grows by at most a tenth, or by half for patterns that you state.
    reader : str, optional
        Who reads: ``libhdf5-1.10``, ``libhdf5-2``, ``netcdf-c``, ``chunkwise``.  None for the
        libhdf5 of this process.
    budget_s : float
        Seconds for the answer.  If they are too few for measurements, the answer comes from the
        model, and says so.
    calibrate : bool
        Measure this machine again, even if it was measured before.
    scratch : str, optional
        The folder for scratch files, which are removed at the end; None for the system's.
    progress : callable, optional
        Called before each step with a `chunkwise.measure.schedule.Step`.  By default, a notebook
        shows a bar.

    Returns
    -------
    Advice
        `Advice.as_dict` is what ``chunkwise advise --json`` prints.

    Raises
    ------
    UsageError
        The dataset cannot be stored in another way, a pattern does not fit, or arguments
        contradict each other.
    ChunkwiseError
        The file cannot be opened or read.

    Examples
    --------
    >>> advice = chunkwise.advise(                              # doctest: +SKIP
    ...     "era5.nc", "t2m", ["map=1x721x1440 weight 3", "series=8760x1x1"]
    ... )
    >>> advice.best.chunks, advice.leave, advice.verified       # doctest: +SKIP
    """
    from chunkwise.advice import goals
    from chunkwise.advice.work import Work

    begun = time.monotonic()
    if not budget_s > 0:
        raise UsageError(f"a budget of {budget_s:g} seconds is no time: give more than 0")
    goal = goals.read(objective, reader)
    with in_notebook(unless=progress) as show:
        work = Work.of(
            path, dataset, access, goal, begun=begun, budget_s=budget_s, scratch=scratch,
            progress=progress or (lambda step: show(step.text, step.done, step.total)),
        )  # fmt: skip
        return work.advice(calibrate=calibrate)
