"""Is what is known against settings said where it holds, and nowhere else?"""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunkwise.mpi.filesystems import FileSystem
from chunkwise_lab.mpi_check.checks import SEVERITIES, Settings, warnings_for

# What nothing is known against: whole chunks of 1 MiB, collective, never filled.
GOOD = Settings(
    hdf5=(1, 14, 6),
    h5py=(3, 13, 0),
    mpi="Open MPI",
    mpi_version=(5, 0, 11),
    mpi_io="ompio",
    n_ranks=4,
    n_hosts=1,
    n_cores=4,
    filesystem=FileSystem("lustre", "/scratch", "10.0.0.1@tcp:/scratch"),
    filters=("shuffle", "deflate"),
    collective=True,
    collective_metadata=True,
    idle_ranks=0,
    converts=False,
    fill="never",
    allocation="default",
    shape=(400, 512, 256),
    chunks=(1, 512, 256),
    tile=(100, 512, 256),
    itemsize=8,
    path="/data",
)


def codes(settings: Settings) -> dict[str, str]:
    # The worst of each.
    return {one.code: one.severity for one in reversed(warnings_for(settings))}


def test_nothing_is_said_of_good_settings() -> None:
    assert codes(GOOD) == {}


@pytest.mark.parametrize(
    ("change", "code", "severity"),
    [
        ({"hdf5": (1, 10, 1), "collective_metadata": False}, "hdf5-too-old", "error"),
        ({"collective": False}, "independent-filtered", "error"),
        ({"collective": None}, "independent-filtered", "note"),
        ({"idle_ranks": 1}, "idle-ranks", "error"),
        ({"idle_ranks": 1, "h5py": None}, "idle-ranks", "warning"),
        ({"idle_ranks": None}, "idle-ranks", "note"),
        ({"converts": True}, "conversion-filtered", "error"),
        ({"fill": "ifset", "allocation": "early"}, "fill-at-creation", "warning"),
        ({"fill": "ifset", "filters": ()}, "fill-at-creation", "warning"),
        (
            {"fill": "alloc", "hdf5": (1, 12, 1), "collective_metadata": False},
            "fill-at-creation",
            "warning",
        ),
        ({"chunks": (2, 512, 256), "tile": (1, 512, 256)}, "chunk-over-cache", "warning"),
        ({"chunks": (3, 128, 128), "tile": (100, 512, 256)}, "shared-chunks", "warning"),
        ({"shape": (100, 4096, 4096), "chunks": (1, 8, 8)}, "tiny-chunks", "warning"),
        ({"chunks": (100, 4096, 4096), "tile": None}, "chunk-4-gib", "error"),
        ({"hdf5": (1, 10, 2)}, "collective-metadata", "error"),
        ({"hdf5": (1, 10, 8)}, "collective-metadata", "warning"),
        ({"hdf5": (1, 12, 1)}, "collective-metadata", "warning"),
        (
            {"n_ranks": 8192, "n_cores": 8192, "collective_metadata": False},
            "metadata-of-many-ranks",
            "warning",
        ),
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
        # Independent writes are no harm without filters.
        {"filters": (), "collective": False},
        {"filters": (), "converts": True, "collective": False},
        # A larger chunk is no harm where it is written whole.
        {"chunks": (100, 512, 256), "tile": (100, 512, 256)},
        # The last rank's part ends with the dataset.
        {"chunks": (100, 500, 250), "tile": (100, 512, 256), "cache_nbytes": 1 << 30},
    ],
)
def test_what_is_no_harm_is_not_said(change: dict[str, object]) -> None:
    assert codes(replace(GOOD, **change)) == {}  # type: ignore[arg-type]


def test_the_worst_is_first() -> None:
    found = warnings_for(
        replace(GOOD, collective=False, n_cores=2, filesystem=FileSystem("nfs", "/", "s:/"))
    )
    assert [one.severity for one in found] == ["error", "warning", "note"]


versions = st.tuples(st.integers(1, 5), st.integers(0, 14), st.integers(0, 12))


@given(
    settings=st.builds(
        Settings,
        hdf5=st.none() | versions,
        h5py=st.none() | st.just((3, 13, 0)),
        mpi=st.sampled_from([None, "Open MPI", "MPICH"]),
        mpi_version=st.none() | versions,
        mpi_io=st.sampled_from([None, "ompio", "romio"]),
        n_ranks=st.integers(1, 10_000),
        n_cores=st.none() | st.integers(1, 10_000),
        filters=st.sampled_from([None, (), ("deflate",)]),
        collective=st.none() | st.booleans(),
        collective_metadata=st.none() | st.booleans(),
        idle_ranks=st.none() | st.integers(0, 9),
        converts=st.none() | st.booleans(),
        fill=st.sampled_from([None, "ifset", "alloc", "never"]),
        allocation=st.sampled_from([None, "early", "incremental", "default"]),
        shape=st.none() | st.tuples(st.integers(1, 10**9), st.integers(1, 10**9)),
        chunks=st.sampled_from([None, ()]) | st.tuples(st.integers(1, 9**9), st.integers(1, 99)),
        tile=st.none() | st.tuples(st.integers(1, 10**9), st.integers(1, 10**9)),
        itemsize=st.none() | st.integers(1, 16),
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
