"""What does a program call to fix a file?"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from chunkwise.errors import UsageError
from chunkwise.fixing.records import Fixed
from chunkwise.fixing.run import DEFAULT_SECONDS, FixRequest, doing, mend, plan
from chunkwise.grammar import parse_duration, parse_size
from chunkwise.newfile.target import choose
from chunkwise.notebook import in_notebook
from chunkwise.patterns import read
from chunkwise.repacking.api import using_threads
from chunkwise.repacking.options import Options, Verify
from chunkwise.repacking.progress import Watch, by_bar


def fix(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str] | None = None,
    *,
    in_place: bool = False,
    access: Sequence[str] = (),
    merge: bool = False,
    dry_run: bool = False,
    readers: Sequence[str] = (),
    seconds: float | str = DEFAULT_SECONDS,
    force: bool = False,
    memory: int | str | None = None,
    threads: int | None = None,
    verify: Verify = "proof",
    resume: bool = False,
    advise: float | str = 0,
    tell: Callable[[str], None] | None = None,
    progress: Watch | None = None,
) -> Fixed:
    """Give a file a better layout, and measure the gain.

    Finds what is wrong (`chunkwise.inspect`), chooses chunks, filters and pages, writes a new file
    with the same contents (`chunkwise.repack`), verifies it, and times the changed datasets before
    and after.  ``chunkwise fix`` does the same.

    Parameters
    ----------
    source : path
        An HDF5 or netCDF-4 file.
    target : path, optional
        The new file.  It appears when it is complete and verified, or not at all.
    in_place : bool, default False
        Replace the source; its old content stays until the new file is verified.
    access : sequence of str, optional
        Patterns that you will read, such as ``"line:0"`` or ``"1x600x600"``; by default those
        of `inspect`.  Chunks are chosen for them.
    merge : bool, default False
        Make virtual and external datasets the file's own data.
    dry_run : bool, default False
        Say what would be done and gained, and write nothing; needs no target.
    readers : sequence of str, optional
        Programs that must read the result, such as ``"netcdf-java"``: changes that they cannot
        read are not made.
    seconds : float or str, default 30
        Time for measuring, as in ``60`` or ``"5min"``; 0 measures nothing.
    force : bool, default False
        Replace an existing target; in place, a file that has several names.
    memory : int or str, optional
        Most bytes for data, as in ``"2GiB"``.  By default a quarter of what is free.
    threads : int, optional
        Threads that decode and encode; by default `chunkwise.settings().threads`.
    verify : {"proof", "none"}
        As for `chunkwise.repack`.
    resume : bool, default False
        Continue a run that was stopped.
    advise : float or str, default 0
        Time for measuring layouts of the largest datasets, as in ``60`` or ``"5min"``.  The best
        on this machine (`chunkwise.advise`) replace the model's choice.  0 measures none.
    tell : callable, optional
        Called with a few words before each part of the work; may raise to end it.
    progress : callable, optional
        Called with a `Moment` of the repack about ten times a second; may raise to end it.
        By default, a notebook shows a bar.

    Returns
    -------
    Fixed
        What was found, done and measured.  If there is nothing to fix, ``outcome`` says so, the
        file does not change, and there is no target.

    Raises
    ------
    ChunkwiseError
        For every failure: the message names file, dataset or pattern, and what to do.  The
        source did not change, and there is no target, unless a note (``__notes__``) says that
        the new file is in place.

    Examples
    --------
    >>> done = chunkwise.fix("model.nc", "model_fixed.nc")          # doctest: +SKIP
    >>> [(gain.path, gain.pattern, gain.times) for gain in done.gains]  # doctest: +SKIP
    """
    duration, advise_s = (
        parse_duration(given) if isinstance(given, str) else given for given in (seconds, advise)
    )
    if duration < 0 or advise_s < 0:
        raise UsageError(f"seconds {seconds}, advise {advise}: give 0 or more")
    nbytes = parse_size(memory) if isinstance(memory, str) else memory
    options = Options(memory_nbytes=nbytes, verify=verify, readers=tuple(readers))
    request = FixRequest(read(access), merge, options, duration, resume, advise_s)
    file = os.fspath(source)
    with in_notebook(unless=tell or progress) as show:
        do = doing(tell or (lambda text: show(text, 0, 0)), progress or by_bar(show))
        if dry_run and target is None and not in_place:
            return plan(file, request, do)
        place = choose(source, target, in_place=in_place, force=force)
        if dry_run:
            return plan(file, request, do, place)
        with using_threads(threads):
            return mend(file, place, request, do)
