"""How are the findings of mpi-check shown to a person?"""

from __future__ import annotations

from collections.abc import Iterator

from chunkwise.grammar.sizes import format_size
from chunkwise.words import counted, wrapped
from chunkwise_lab.mpi_check.check import Report
from chunkwise_lab.mpi_check.checks import Finding

_IO = {"ompio": "OMPIO", "romio": "ROMIO", "unknown": "not known"}


def lines(report: Report) -> Iterator[str]:
    """Write a report in lines of 80 columns: what there is, then what is known against it."""
    for name, text in _facts(report):
        yield from wrapped(f"{name:<12}{text}", hanging=" " * 12)
    for finding in report.findings:
        yield ""
        yield from _finding(finding)
    yield ""
    counts = [
        counted(sum(one.severity == severity for one in report.findings), severity)
        for severity in ("error", "warning", "note")
    ]
    yield f"{', '.join(counts)}; docs/mpi.md explains each"


def _facts(report: Report) -> Iterator[tuple[str, str]]:
    libraries, ranks = report.libraries, report.ranks
    if libraries.mpi is not None:
        where = f" ({libraries.mpi.path})" if libraries.mpi.path else ""
        yield "MPI", f"{libraries.mpi}{where}, by mpi4py {libraries.mpi4py}"
    else:
        yield "MPI", "none that mpi4py loads"
    level = f", thread level {ranks.thread_level}" if ranks.thread_level else ""
    yield "launcher", f"{ranks.launcher}{level}"
    n_ranks, n_hosts = len(ranks.ranks), len(ranks.hosts)
    hosts = ", ".join(ranks.hosts[:4]) + (" ..." if n_hosts > 4 else "")
    over = ", oversubscribed" if n_ranks > ranks.n_cores else ""
    yield (
        "ranks",
        f"{n_ranks:,} on {counted(n_hosts, 'host')} ({hosts}), "
        f"{counted(ranks.n_cores, 'core')}{over}",
    )
    share = ranks.memory_a_rank
    yield "memory", "not known" if share is None else f"{format_size(share)} a rank"
    if libraries.hdf5:
        built = f"built with {libraries.hdf5_mpi}" if libraries.parallel else "built without MPI"
        same = "" if not libraries.parallel else ", as mpi4py's" if libraries.same_mpi else ""
        version = ".".join(map(str, libraries.hdf5))
        yield "HDF5", f"{version}, by h5py {libraries.h5py}, {built}{same}"
    yield (
        "MPI-IO",
        f"{_IO.get(report.component.name, report.component.name)} ({report.component.why})",
    )
    seen = {True: ", seen by all ranks", False: ", not seen by all ranks", None: ""}[report.shared]
    system = report.filesystem
    yield "file", f"{report.path}: {system.kind} on {system.mount_point} ({system.source}){seen}"


def _finding(finding: Finding) -> Iterator[str]:
    yield from wrapped(f"{finding.severity}: {finding.summary} [{finding.code}]")
    yield from wrapped(f"seen: {finding.evidence}", "    ", "  ")
    yield from wrapped(f"do:   {finding.remedy}", "    ", "  ")
    for source in finding.sources:
        yield f"    {source}"
