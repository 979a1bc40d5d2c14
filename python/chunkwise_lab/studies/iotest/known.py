"""Which combinations of the walk are known to hang or crawl, and why?

`chunkwise_lab.mpi_check.checks` knows.  This module describes a combination to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import h5py

from chunkwise.mpi.filesystems import filesystem_of
from chunkwise.mpi.ranks import library_of
from chunkwise.words import counted, joined
from chunkwise_lab.mpi_check.checks import Finding, Settings, warnings_for
from chunkwise_lab.mpi_check.environment import look_at_ranks, mpi_io_component
from chunkwise_lab.studies.iotest.lists import takes_filters, uses_mpi

if TYPE_CHECKING:
    from chunkwise_lab.studies.iotest.pattern import Geometry
    from chunkwise_lab.studies.iotest.settings import Settings as Walk
    from chunkwise_lab.studies.iotest.world import World
    from chunkwise_lab.studies.results import Row

# Of the doubles that are written.
_ITEMSIZE: Final = 8
# What a walk says of itself already; and here a chunk is written by one rank, in parts at most.
_NOT_HERE: Final = frozenset({"oversubscribed", "shared-chunks"})


@dataclass
class Known:
    """What is known against the combinations of a walk."""

    here: Settings  # Of this machine, and the folder that is written to
    # By code: the first finding, and the numbers of all combinations that it is about.
    found: dict[str, tuple[Finding, list[int]]] = field(default_factory=dict)

    def look(self, geometry: Geometry, filters: Iterable[str]) -> list[Finding]:
        """Look at a combination; gives what is known against it, each code once."""
        number = geometry.combination.number
        every = warnings_for(settings_of(self.here, geometry, filters))
        worse = {
            finding.code: finding
            for finding in reversed(every)
            if finding.severity != "note" and finding.code not in _NOT_HERE
        }
        for code, finding in worse.items():
            self.found.setdefault(code, (finding, []))[1].append(number)
        return list(worse.values())

    def to_json(self) -> list[dict[str, Any]]:
        """Return it as JSON values."""
        return [
            {**asdict(finding), "combinations": numbers}
            for finding, numbers in self.found.values()
        ]


def known(world: World, folder: str) -> Known:
    """Look at ranks, libraries and the folder (collective)."""
    if world.comm is None:
        return Known(Settings())
    from mpi4py import MPI

    ranks = look_at_ranks(world.comm)
    filesystem = filesystem_of(folder)

    def look() -> Settings:
        library = library_of(MPI.Get_library_version())
        component = mpi_io_component(world.together, library, Path(folder), filesystem.kind)
        return Settings(
            hdf5=h5py.version.hdf5_version_tuple,
            mpi=library.name,
            mpi_version=library.version or None,
            mpi_io=None if component.name == "unknown" else component.name,
            n_ranks=world.size,
            n_hosts=len(ranks.hosts),
            n_cores=ranks.n_cores,
            filesystem=filesystem,
        )

    return Known(world.on_first(look))


def settings_of(here: Settings, geometry: Geometry, filters: Iterable[str]) -> Settings:
    """Describe a combination for `warnings_for`."""
    one = geometry.combination
    if not uses_mpi(one):
        return Settings()
    return replace(
        here,
        filters=tuple(filters) if takes_filters(one) else (),
        collective=one.io == "collective",
        collective_metadata=True,
        idle_ranks=0,
        converts=False,
        fill="alloc" if one.fill == "true" else "never",
        shape=geometry.shape,
        chunks=geometry.chunk or (),
        tile=geometry.block,
        itemsize=_ITEMSIZE,
    )


def names(settings: Walk) -> tuple[str, ...]:
    """Name the filters of a walk."""
    return tuple(one.name for one in settings.filters.filters)


def said(found: Iterable[Mapping[str, Any]]) -> list[str]:
    """Print each known fault, with its code, where it applies, and what to do."""
    return [
        f"{one['severity']}: {one['summary']} [{one['code']}] "
        f"{_numbered(one['combinations'])}. Do: {one['remedy']}."
        for one in found
    ]


def said_of(rows: Sequence[Row]) -> list[str]:
    """Say what is known against rows of a study, each thing once."""
    found: dict[str, tuple[Mapping[str, Any], int]] = {}
    for row in rows:
        warnings = {one["code"]: one for r in row.records for one in r.get("warnings") or ()}
        for code, one in warnings.items():
            found[code] = one, found.get(code, (one, 0))[1] + 1
    return [
        f"{one['severity']}: {one['summary']} [{code}] In {counted(often, 'row')}. "
        f"Do: {one['remedy']}."
        for code, (one, often) in found.items()
    ]


def oversubscribed(rows: Sequence[Row], cpu_count: object) -> str:
    """Say which rows show no scaling; nothing if there are none."""
    crowded = [row.point for row in rows if row.point.get("oversubscribed") == "yes"]
    numbers = sorted({point["ranks"] for point in crowded if "ranks" in point}, key=len)
    if not numbers:
        return ""
    return (
        f"{joined(numbers)} ranks on {cpu_count} processors: oversubscribed, they take turns. "
        "These times say nothing about scaling, and no claim about time is judged by them. Open "
        "MPI's ranks gave their processor away while they waited (mpi_yield_when_idle)."
    )


def _numbered(numbers: Sequence[int]) -> str:
    first = ", ".join(map(str, numbers[:4]))
    more = ", ..." if len(numbers) > 4 else ""
    return f"In {counted(len(numbers), 'combination')} ({first}{more})"
