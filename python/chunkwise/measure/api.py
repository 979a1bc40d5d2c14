"""How does a program or a notebook run what `chunkwise bench` runs?"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from chunkwise.errors import UsageError
from chunkwise.grammar import parse_duration
from chunkwise.measure.axes import AXES, PROPERTY_AXES
from chunkwise.measure.results import Results
from chunkwise.measure.run import DEFAULT_REPEAT, DEFAULT_SECONDS, run
from chunkwise.measure.schedule import Step
from chunkwise.measure.space import Space
from chunkwise.measure.variants import SAMPLE_NBYTES

Value = str | int | float
# One value of an axis, or several that are compared; None leaves the default.
Values = Value | Sequence[Value] | None


def bench(
    path: str | os.PathLike[str],
    dataset: str | None = None,
    *,
    access: Values = None,
    operation: Values = None,
    reader: Values = None,
    cache: Values = None,
    nslots: Values = None,
    w0: Values = None,
    threads: Values = None,
    libhdf5: Values = None,
    chunk: Values = None,
    filter: Values = None,
    format: Values = None,
    page_cache: Values = None,
    properties: Mapping[str, Values] | None = None,
    design: str = "product",
    repeat: int = DEFAULT_REPEAT,
    seconds: float | str = DEFAULT_SECONDS,
    save: str | os.PathLike[str] | None = None,
    sample_nbytes: int = SAMPLE_NBYTES,
    scratch: str | None = None,
    check: bool = False,
    progress: Callable[[Step], None] | None = None,
) -> Results:
    """Time access patterns on a dataset, as ``chunkwise bench`` does.

    Each trial runs in a separate process, so this program's caches and settings have no effect.
    A parameter that takes values takes one, or several to compare,
    written as on the command line (docs/bench.md).

    Parameters
    ----------
    path : str or path
        An HDF5 or netCDF-4 file.
    dataset : str, optional
        The dataset's path; None takes the largest chunked dataset, or without any the largest.
    access : values, optional
        Access patterns: ``"1x1x717"``, ``"row=1x1x717"``, ``"line:0"``, ``"random:1000"``,
        ``"all"``.  None for one step, one line, and everything.
    operation : values, optional
        ``"read"`` (the default) or ``"write"`` (to a new file).
    reader : values, optional
        Who reads: ``libhdf5``, ``netcdf4``, ``chunkwise`` (loops in compiled code), ``h5py``,
        ``chunkwise-py`` (loops in Python).  None for the last two.
    cache, nslots, w0 : values, optional
        libhdf5's chunk cache: bytes (or ``"16MiB"``), slots, preemption policy.
    threads : values, optional
        Threads that chunkwise may use.
    libhdf5 : values, optional
        Which libhdf5: ``"default"``, a ``libhdf5.so``, or another Python that has h5py.
    chunk, filter : values, optional
        Other chunk shapes and filters, which are written to scratch files: ``"1x30x9x717"``,
        ``"shuffle+deflate:4"``, ``"stored"``.
    format : values, optional
        File formats of the reader ``netcdf4``.
    page_cache : values, optional
        ``"warm"`` (the default) or ``"cold"``.
    properties : mapping of str to values, optional
        Further properties of libhdf5, as ``--set`` takes them: ``{"sieve": ["64KiB", "1MiB"]}``.
    design : str
        ``"product"``: every value with every other.  ``"each"``: one parameter at a time, from
        the first value of each.
    repeat : int
        How often each combination is measured at most, if `seconds` suffices.
    seconds : float or str
        The budget for the whole run, such as ``40`` or ``"5min"``; what would take longer
        is estimated.  Every combination is measured at least once, so very many of them may
        take longer.
    save : str or path, optional
        A file to which each trial is appended as soon as it is done; trials that it already has
        are not repeated (`chunkwise.measure.store`).
    sample_nbytes : int
        For a larger dataset, scratch files hold a sample of at most this many bytes.
    scratch : str, optional
        The folder for them; None for the system's.
    check : bool
        Whether each element that is read is compared with a plain read through libhdf5.
    progress : callable, optional
        Called before each trial, and before each file that is written.

    Returns
    -------
    Results
        All measurements; `Results.as_dict` is what ``--json`` prints.  A failed trial is
        one of them, never an exception.

    Raises
    ------
    UsageError
        The dataset or a value makes no sense; nothing has been measured then.
    FileFormatError
        The file cannot be opened as HDF5.

    Examples
    --------
    >>> results = chunkwise.bench(                        # doctest: +SKIP
    ...     "data.nc", "t", access=["line=365x1x1", "all"], cache=["1MiB", "16MiB"], seconds=20
    ... )
    >>> [(row["access"], row["total_s"]) for row in results.summary()]    # doctest: +SKIP
    >>> results.advice.why                                # doctest: +SKIP
    """
    said = locals()
    given: dict[str, Values] = {
        name: said[name.replace("-", "_")] for name in AXES if name not in PROPERTY_AXES
    }
    for name, values in (properties or {}).items():
        if name not in PROPERTY_AXES:
            raise UsageError(f"properties: no '{name}': choose from {', '.join(PROPERTY_AXES)}")
        given[name] = values
    axes = {name: _texts(values) for name, values in given.items() if values is not None}
    return run(
        path,
        dataset,
        Space(axes, design),
        repeat=repeat,
        seconds=parse_duration(seconds) if isinstance(seconds, str) else seconds,
        progress=progress,
        save=save,
        sample_nbytes=sample_nbytes,
        scratch=scratch,
        check=check,
    )


def _texts(values: Value | Sequence[Value]) -> tuple[str, ...]:
    """Write values as the command line has them."""
    several = (values,) if isinstance(values, str | int | float) else values
    return tuple(map(str, several))
