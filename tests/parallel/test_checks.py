"""Is what is known against settings said where it holds, and nowhere else?"""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunkwise.mpi.filesystems import FileSystem
from chunkwise.mpi.ranks import Library
from chunkwise_lab.mpi_check.check import Report, lines
from chunkwise_lab.mpi_check.checks import SEVERITIES, Settings, warnings_for
from chunkwise_lab.mpi_check.environment import Component, Libraries, Rank, Ranks
from tests.support.golden import assert_golden

# Against which there are only notes.
GOOD = Settings(
    hdf5=(1, 14, 6),
    mpi="Open MPI",
    mpi_version=(5, 0, 11),
    mpi_io="ompio",
    n_ranks=4,
    n_hosts=1,
    n_cores=4,
    filesystem=FileSystem("lustre", "/scratch", "10.0.0.1@tcp:/scratch"),
)


def codes(settings: Settings) -> dict[str, str]:
    # The worst of each.
    return {one.code: one.severity for one in reversed(warnings_for(settings))}


def test_the_page() -> None:
    mpi = Library("Open MPI", (5, 0, 11), "", "/usr/lib/libmpi.so.40")
    ranks = tuple(Rank(n, "node1", (n,), 8 << 30, "") for n in range(4))
    report = Report(
        Libraries("4.1.0", mpi, "3.13.0", (1, 14, 6), "/usr/lib/libhdf5.so", True, mpi),
        Ranks("mpirun of Open MPI 5 (prterun)", "multiple", ranks),
        Component("ompio", "the default of Open MPI; OMPI_MCA_io is not set"),
        GOOD.filesystem or FileSystem("", "", ""), "/scratch/out.h5", True,
        tuple(warnings_for(replace(GOOD, hdf5=(1, 12, 1)))),
    )  # fmt: skip
    assert not report.failed
    assert_golden("mpi-check", "\n".join(lines(report)))


def test_nothing_is_said_of_good_settings() -> None:
    assert set(codes(GOOD).values()) == {"note"}
    assert codes(replace(GOOD, hdf5=None)) == {}


@pytest.mark.parametrize(
    ("change", "code", "severity"),
    [
        ({"hdf5": (1, 10, 1)}, "hdf5-too-old", "note"),
        ({}, "independent-filtered", "note"),
        ({}, "idle-ranks", "note"),
        ({}, "conversion-filtered", "note"),
        ({}, "broadcast", "note"),
        ({"hdf5": (1, 12, 1)}, "fill-at-creation", "note"),
        ({"hdf5": (1, 10, 2)}, "collective-metadata", "note"),
        ({"hdf5": (1, 10, 8)}, "collective-metadata", "note"),
        ({"hdf5": (1, 12, 1)}, "collective-metadata", "note"),
        ({"n_ranks": 8192, "n_cores": 8192}, "metadata-of-many-ranks", "warning"),
        ({"hdf5": (2, 0, 0)}, "order-of-metadata", "note"),
        ({"mpi_version": (3, 1, 3)}, "mpi-io", "error"),
        ({"mpi_version": (3, 1, 4)}, "mpi-io", "warning"),
        ({"mpi_version": (4, 0, 0)}, "mpi-io", "error"),
        ({"mpi_version": (4, 0, 3)}, "mpi-io", "warning"),
        ({"mpi_version": (4, 1, 4)}, "mpi-io", "warning"),
        ({"mpi_version": (5, 0, 3)}, "mpi-io", "warning"),
        ({"mpi_version": (4, 1, 4), "mpi_io": "romio"}, "mpi-io", "error"),
        ({"n_cores": 2}, "oversubscribed", "warning"),
        (
            {"filesystem": FileSystem("nfs4", "/home", "server:/home"), "n_hosts": 2},
            "filesystem",
            "error",
        ),
        ({"filesystem": FileSystem("nfs4", "/home", "server:/home")}, "filesystem", "note"),
        (
            {"filesystem": FileSystem("fuse.odd", "/x", "odd"), "n_hosts": 2},
            "filesystem",
            "warning",
        ),
    ],
)
def test_one_change_is_said(change: dict[str, object], code: str, severity: str) -> None:
    found = codes(replace(GOOD, **change))  # type: ignore[arg-type]
    assert found.get(code) == severity


@pytest.mark.parametrize(
    "change",
    [
        {"mpi_version": (3, 0, 6)},
        {"mpi_version": (3, 1, 6)},
        {"mpi_version": (4, 1, 8)},
        {"mpi": "MPICH", "mpi_version": (4, 0, 0), "mpi_io": "romio"},
        {"hdf5": (1, 10, 11)},
        {"hdf5": (1, 13, 1)},
    ],
)
def test_what_is_no_harm_is_not_said(change: dict[str, object]) -> None:
    assert codes(replace(GOOD, **change)) == codes(GOOD)  # type: ignore[arg-type]


def test_the_worst_is_first() -> None:
    found = warnings_for(
        replace(GOOD, n_cores=2, n_hosts=2, filesystem=FileSystem("nfs", "/", "s:/"))
    )
    assert [one.severity for one in found][:3] == ["error", "warning", "note"]


versions = st.tuples(st.integers(1, 5), st.integers(0, 14), st.integers(0, 12))


@given(
    settings=st.builds(
        Settings,
        hdf5=st.none() | versions,
        mpi=st.sampled_from([None, "Open MPI", "MPICH"]),
        mpi_version=st.none() | versions,
        mpi_io=st.sampled_from([None, "ompio", "romio"]),
        n_ranks=st.integers(1, 10_000),
        n_cores=st.none() | st.integers(1, 10_000),
    )
)
def test_whatever_is_known_findings_can_be_told(settings: Settings) -> None:
    found = warnings_for(settings)
    order = [SEVERITIES.index(one.severity) for one in found]
    assert order == sorted(order, reverse=True)
    for one in found:
        assert one.summary.endswith(".")
        assert one.evidence
        assert one.remedy
        assert not re.search(r"\bNone\b", one.evidence)
        assert all(source.startswith("https://") for source in one.sources)
