"""Are this machine and its libraries fit for parallel writing, and which faults do they have?"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from chunkwise.errors import CannotWriteError, UsageError
from chunkwise.grammar.sizes import format_size
from chunkwise.mpi.filesystems import FileSystem, filesystem_of
from chunkwise.mpi.ranks import ALONE, Alone, host, launched, on_first, under_mpi, world
from chunkwise.words import counted, wrapped
from chunkwise_lab.mpi_check.checks import SEVERITIES, Finding, Settings, warnings_for
from chunkwise_lab.mpi_check.environment import (
    Component,
    Libraries,
    Ranks,
    as_record,
    launcher,
    look_at_libraries,
    look_at_ranks,
    mpi_io_component,
    require_shared_folder,
    srun_tasks,
)

# Below this a rank can hardly hold what it encodes.
_LEAST_MEMORY_NBYTES: Final = 1 << 30
_MAKE: Final = "https://docs.h5py.org/en/stable/mpi.html"


@dataclass(frozen=True)
class Report:
    """What was found."""

    libraries: Libraries  # What there is; docs/mpi.md names each
    ranks: Ranks
    component: Component
    filesystem: FileSystem
    path: str  # The file or folder to be written
    shared: bool | None  # Whether all ranks see its folder; None if there is one rank
    findings: tuple[Finding, ...]  # What is known against it, the worst first

    @property
    def failed(self) -> bool:
        """Whether something cannot work."""
        return any(one.severity == "error" for one in self.findings)

    def as_dict(self) -> dict[str, Any]:
        """Make plain values of it, for JSON."""
        return {
            "format": "chunkwise-mpi-check",
            "version": 1,
            "libraries": as_record(self.libraries),
            "ranks": as_record(self.ranks),
            "mpi_io": asdict(self.component),
            "filesystem": as_record(self.filesystem),
            "path": self.path,
            "shared": self.shared,
            "findings": [asdict(one) for one in self.findings],
        }


def check(path: str = ".") -> Report | None:
    """Look at libraries, ranks, machine and a file's place (collective)."""
    folder = Path(path) if Path(path).is_dir() else Path(path).absolute().parent
    alone: list[Finding] = []
    comm = ALONE
    try:
        if under_mpi():
            comm = world()  # type: ignore[assignment]
    except UsageError as wrong:
        # Only the launcher distinguishes the processes: one of them reports.
        if launched()[0]:
            return None
        alone.append(
            Finding(
                "launcher",
                "error",
                f"{wrong}.",
                f"started by {launcher()}",
                "give each rank mpi4py, and an MPI library of which the launcher is",
            )
        )
    ranks = look_at_ranks(comm)
    shared, unseen = _shared(comm, folder)
    filesystem = filesystem_of(folder)

    def look() -> Report:
        libraries = look_at_libraries()
        component = Component("unknown", "mpi4py loads no MPI")
        if libraries.mpi is not None:
            component = mpi_io_component(comm, libraries.mpi, folder, filesystem.kind)
        known = _known(libraries, ranks, component, filesystem)
        findings = [
            *alone,
            *unseen,
            *_of_environment(libraries, ranks, comm),
            *warnings_for(known),
        ]
        findings.sort(key=lambda one: -SEVERITIES.index(one.severity))
        found = tuple(dict.fromkeys(findings))
        return Report(libraries, ranks, component, filesystem, path, shared, found)

    report = on_first(comm, look)
    return report if comm.rank == 0 else None


def _shared(comm: Any, folder: Path) -> tuple[bool | None, list[Finding]]:
    """Whether all ranks see the folder; None if there is one, and what is wrong with it."""
    try:
        require_shared_folder(comm, folder)
    except CannotWriteError as wrong:
        remedy = "name a folder that all hosts share, and that you may write to"
        seen = counted(comm.size, "rank")
        return False, [Finding("folder", "error", f"{wrong}.", seen, remedy)]
    return (None if comm.size == 1 else True), []


def _known(
    libraries: Libraries, ranks: Ranks, component: Component, filesystem: FileSystem
) -> Settings:
    """What counts for parallel HDF5 here; without it, only what counts for any program."""
    known = Settings(
        n_ranks=len(ranks.ranks),
        n_hosts=len(ranks.hosts),
        n_cores=ranks.n_cores,
        filesystem=filesystem,
    )
    if libraries.mpi is not None:
        known = replace(known, mpi=libraries.mpi.name, mpi_version=libraries.mpi.version or None)
        if component.name != "unknown":
            known = replace(known, mpi_io=component.name)
    if libraries.parallel and libraries.hdf5:
        known = replace(known, hdf5=libraries.hdf5)
    return known


def _of_environment(libraries: Libraries, ranks: Ranks, comm: Any) -> Iterator[Finding]:
    n_ranks = len(ranks.ranks)
    tasks = srun_tasks()
    if tasks:
        yield Finding(
            "srun-without-mpi",
            "error",
            f"srun started {counted(tasks, 'task')} that do not know of each other: each would do "
            "all of the work.",
            "SLURM_STEP_NUM_TASKS is set, and no variable of PMI or PMIx",
            "srun --mpi=pmix, or --mpi=pmi2 for MPICH (`srun --mpi=list` shows which there are), "
            "or mpirun",
        )
    elif isinstance(comm, Alone) and not under_mpi():
        yield Finding(
            "not-under-mpi",
            "note",
            "No launcher of MPI started this process: nothing is known of several ranks.",
            "none of the variables of Open MPI, PMI or PMIx",
            "`mpirun -n 4 chunkwise mpi-check`",
        )
    alone = "as it was imported in a process of its own"
    if libraries.mpi4py_trouble:
        yield Finding(
            "mpi4py",
            "error" if under_mpi() else "note",
            f"{libraries.mpi4py_trouble}.",
            alone,
            "pip install mpi4py, and an MPI library (Debian: openmpi-bin)",
        )
    if libraries.h5py_trouble:
        yield Finding("h5py", "error", f"{libraries.h5py_trouble}.", alone, "install h5py again")
    if not libraries.same_mpi:
        yield Finding(
            "different-mpi",
            "error",
            f"HDF5 was built with {libraries.hdf5_mpi}, and mpi4py loads {libraries.mpi}: a "
            "communicator of the one means nothing to the other.",
            f"{_path(libraries.hdf5_path)} needs "
            f"{_path(libraries.hdf5_mpi.path if libraries.hdf5_mpi else '')}; mpi4py loads "
            f"{_path(libraries.mpi.path if libraries.mpi else '')}",
            "name HDF5's libmpi.so in MPI4PY_LIBMPI, or build h5py with the MPI of mpi4py",
            (_MAKE,),
        )
    if libraries.h5py and not libraries.parallel:
        yield Finding(
            "h5py-without-mpi",
            "note",
            "h5py was built without MPI: h5py.File(..., driver='mpio') is not there. chunkwise's "
            "own parallel writing does not need it.",
            f"h5py {libraries.h5py}, HDF5 {'.'.join(map(str, libraries.hdf5))}",
            "build it: HDF5_MPI=ON CC=mpicc pip install --no-binary h5py "
            "--no-build-isolation h5py",
            (_MAKE,),
        )
    versions = sorted({one.version for one in ranks.ranks})
    if len(versions) > 1:
        yield Finding(
            "different-versions",
            "error",
            "Ranks run different versions.",
            "; ".join(versions),
            "start the same Python on all hosts: name it with its full path",
        )
    share = ranks.memory_a_rank
    if share is not None and share < _LEAST_MEMORY_NBYTES:
        yield Finding(
            "memory",
            "warning",
            "Little memory for each rank: large chunks may not fit, and the system ends a rank "
            "that takes too much.",
            f"{format_size(share)} a rank, {counted(n_ranks, 'rank')} on "
            f"{counted(len(ranks.hosts), 'host')}",
            "start fewer ranks on a host, or ask the batch system for more memory (Slurm: "
            "--mem-per-cpu)",
        )
    yield from _of_binding(ranks)


def _of_binding(ranks: Ranks) -> Iterator[Finding]:
    n_ranks = sum(one.host == host() for one in ranks.ranks)
    least = min(len(one.cores) for one in ranks.ranks)
    here = os.cpu_count() or 1
    if n_ranks > 1 and least == 1 and here > n_ranks:
        yield Finding(
            "bound-to-one-core",
            "note",
            "Each rank may use one core, so that chunkwise encodes on one thread in each, and "
            "other cores are idle.",
            f"{counted(n_ranks, 'rank')} and {counted(here, 'core')} on host {host()}",
            "`mpirun --bind-to none`, or `mpirun --map-by slot:PE=4` for 4 cores a rank (Slurm: "
            "--cpus-per-task)",
        )


def _path(path: str) -> str:
    return path or "(not known)"


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
