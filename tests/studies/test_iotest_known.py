"""Does a walk say what is known against its combinations, each thing once?"""

from typing import Any

import pytest

from chunkwise_lab.mpi_check.checks import Settings as Here
from chunkwise_lab.mpi_check.checks import warnings_for
from chunkwise_lab.studies.iotest.known import Known, said, said_of, settings_of
from chunkwise_lab.studies.iotest.pattern import Geometry
from chunkwise_lab.studies.iotest.settings import Settings
from chunkwise_lab.studies.iotest.walk import combinations
from chunkwise_lab.studies.results import Row

# Chunks of 50 x 100 x 200 doubles, 8 MB, are larger than the cache.
WALK = Settings(steps=2, arrays=50, rows=100, columns=200).on(2)
HERE = Here(hdf5=(1, 10, 8), n_ranks=2, n_cores=2)


def looked(here: Here, filters: tuple[str, ...], ranks: int = 2) -> tuple[Known, dict[int, Any]]:
    known = Known(here)
    codes = {}
    for one in combinations(WALK, ranks):
        found = known.look(Geometry(WALK, one), filters)
        codes[one.number] = (one, [finding.code for finding in found])
    return known, codes


def test_each_combination_has_what_is_known_against_it() -> None:
    known, codes = looked(HERE, ("shuffle", "deflate"))
    for one, found in codes.values():
        assert len(set(found)) == len(found)
        # Of HDF5 1.10.8, whatever is written.
        assert "collective-metadata" in found
        assert ("fill-at-creation" in found) == (one.fill == "true")
        filtered = one.layout == "chunked" and one.io == "collective"
        assert ("chunk-over-cache" in found) == (filtered and one.rank == 4)
        # Measured without filters, as the library refuses them; and no chunk has two writers.
        assert not {"independent-filtered", "shared-chunks", "oversubscribed"} & {*found}
    lines = said(known.to_json())
    assert len(lines) == len(known.found) == 3
    [line] = [line for line in lines if "[chunk-over-cache]" in line]
    numbers = [n for n, (_, found) in codes.items() if "chunk-over-cache" in found]
    first = ", ".join(map(str, numbers[:4]))
    assert f"In {len(numbers)} combinations ({first}, ...). Do: write whole chunks" in line


def test_a_version_without_faults_has_none_and_so_has_a_process_without_mpi() -> None:
    _, codes = looked(Here(hdf5=(1, 14, 6), n_ranks=2), ())
    assert {code for _, found in codes.values() for code in found} == {"fill-at-creation"}
    alone, codes = looked(HERE, ("deflate",), ranks=1)
    assert alone.found == {}
    assert not any(found for _, found in codes.values())


def test_codes_are_those_of_mpi_check() -> None:
    [one, *_] = combinations(WALK, 2)
    settings = settings_of(HERE, Geometry(WALK, one), ())
    known = {finding.code for finding in warnings_for(settings)}
    found = {finding.code for finding in Known(HERE).look(Geometry(WALK, one), ())}
    assert found
    assert found <= known


def test_rows_of_a_study_say_each_thing_once() -> None:
    warning = {"code": "mpi-io", "severity": "warning", "summary": "It crawls.", "remedy": "wait"}
    rows = [
        Row({"rank": "4"}, ({"warnings": [warning]}, {"warnings": [warning]})),
        Row({"rank": "3"}, ({"warnings": [warning]},)),
        Row({"rank": "2"}, ({},)),
    ]
    assert said_of(rows) == ["warning: It crawls. [mpi-io] In 2 rows. Do: wait."]
    assert said_of(rows[2:]) == []


@pytest.mark.parametrize("count", [1, 4, 5])
def test_few_combinations_are_named(count: int) -> None:
    known, _ = looked(HERE, ())
    [one] = [one for one in known.to_json() if one["code"] == "fill-at-creation"]
    [line] = said([{**one, "combinations": one["combinations"][:count]}])
    assert (", ...)" in line) == (count > 4)
