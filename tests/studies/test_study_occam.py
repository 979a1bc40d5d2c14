"""Is the study of the OCCAM converter what paper 000 describes, and can it be measured?"""

import math
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from chunkwise.measure.planning import spell_out
from chunkwise.measure.target import look
from chunkwise_lab import sample
from chunkwise_lab.studies.figures import FIGURES
from chunkwise_lab.studies.libraries import Library, labels_of
from chunkwise_lab.studies.load import load
from chunkwise_lab.studies.probes import PHASES, _shares, _summed
from chunkwise_lab.studies.run import Options, generate, run
from chunkwise_lab.studies.study import SCALES, Data, Scale, Study

# Table 1, in its order.
FOURTEEN = (
    "chunk-size", "chunk-size-sieve", "chunk-size-uncompressed", "cache-slots", "cache-size",
    "cache-size-small-chunks", "preemption", "sieve-buffer", "conversion-buffer", "szip",
    "deflate-level", "small-data-block", "metadata-block", "shuffle",
)  # fmt: skip
STANDARD = {
    "operation": "write",
    "reader": "libhdf5",
    "access": "hyperslab=:x8x:",
    "chunk": "11x8x360",
    "filter": "deflate:1",
    "cache": "8910KiB",
    "w0": "1.0",
}


@pytest.fixture(scope="module")
def study() -> Study:
    return load("occam")


def test_all_of_table_1_is_there(study: Study) -> None:
    assert set(FOURTEEN) <= {experiment.id for experiment in study.experiments}
    assert (study.statistic, study.repeat["paper"]) == ("mean", 5)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", FOURTEEN)
def test_each_is_measured_against_the_standard_run(study: Study, name: str, scale: Scale) -> None:
    (experiment,) = (one for one in study.experiments if one.id == name)
    # Of small chunks the standard has other chunks.
    standard = dict(STANDARD, chunk="11x8x180") if "small-chunks" in name else STANDARD
    for one in experiment.runs:
        points = one.spaces[scale].points(())
        assert any(standard.items() <= point.items() for point in points)
        assert len(points) > 1


@pytest.mark.parametrize(
    ("scale", "shape"), [("quick", (66, 576, 1440)), ("paper", (66, 1728, 4320))]
)
def test_every_point_is_possible(
    study: Study, scale: Scale, shape: tuple[int, ...], tmp_path: Path
) -> None:
    with h5py.File(tmp_path / "cube.h5", "w") as file:
        file.create_dataset("/temperature", shape, "f4", chunks=(11, 8, 360))
    with h5py.File(tmp_path / "row.h5", "w") as file:
        file.create_dataset("/temperature", (math.prod(shape) // 2,), "f4", chunks=(31680,))
    cube, row = (look(tmp_path / f"{name}.h5", "/temperature") for name in ("cube", "row"))
    for experiment in study.experiments:
        for one in experiment.runs:
            space = one.spaces[scale]
            found_here = any("@all" in texts for texts in space.axes.values())
            if scale in one.scales and not found_here:
                target = row if one.data == ("sea",) else cube
                plan = spell_out(target, space)
                assert len(plan.planned) == len(space.points(()))


def test_the_chunk_cache_holds_one_hyperslab_of_the_largest_model(study: Study) -> None:
    (experiment,) = (one for one in study.experiments if one.id == "preemption")
    (cache,) = experiment.runs[0].spaces["paper"].axes["cache"]
    assert int(cache.removesuffix("KiB")) * 1024 == 72 * 11 * 8 * 360 * 4 == 66 * 8 * 4320 * 4


def test_only_the_sea_is_kept_in_the_order_of_the_hyperslabs(tmp_path: Path) -> None:
    options = {"shape": (11, 24, 36), "chunk": (11, 8, 36), "seed": 3}
    data = Data("sea", "occam", {"quick": options}, nonzero=":x8x:")
    generate(data, "quick", tmp_path / "sea.h5")
    sample.write("occam", tmp_path / "all.h5", **options)  # type: ignore[arg-type]
    with h5py.File(tmp_path / "all.h5") as file:
        whole = file["/temperature"][:]
    bands = [whole[:, first : first + 8] for first in range(0, 24, 8)]
    expected = np.concatenate([band[band != 0] for band in bands])
    assert 0 < expected.size < whole.size
    with h5py.File(tmp_path / "sea.h5") as file:
        found = file["/temperature"]
        assert np.array_equal(found[:], expected)
        assert (found.chunks, found.compression_opts) == ((11 * 8 * 36,), 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all.h5", "sea.h5"]


def small(study: Study) -> Study:
    """The study on as little data as its chunks allow."""
    options = {scale: {"shape": (11, 16, 360)} for scale in SCALES}
    data = {name: replace(one, options=options) for name, one in study.data.items()}
    return replace(study, data=data, disk_nbytes=dict.fromkeys(SCALES, 1 << 20))


def test_an_experiment_from_end_to_end(study: Study, tmp_path: Path) -> None:
    options = Options("quick", tmp_path / "out", only=("metadata-block",), repeat=1)
    outcome = run(small(study), options).outcomes["metadata-block"]
    rows = outcome.rows()
    assert [row.point["metadata-block"] for row in rows] == ["default", "128KiB"]
    assert all(row.values("total_s") for row in rows)
    assert rows[0].point["data"] == "smooth"
    assert not outcome.mismatches


def test_the_largest_model_is_for_the_papers_scale_alone(study: Study, tmp_path: Path) -> None:
    (experiment,) = (one for one in study.experiments if one.id == "resolution")
    largest = replace(experiment, runs=experiment.runs[1:])
    assert [one.scales for one in largest.runs] == [("paper",)]
    options = Options("quick", tmp_path / "out", repeat=1)
    results = run(small(replace(study, experiments=(largest,))), options)
    assert (results.outcomes["resolution"].records, results.complete) == ([], True)


def test_the_profile_adds_up(study: Study, tmp_path: Path) -> None:
    options = Options("quick", tmp_path / "out", only=("profile",), repeat=1)
    (profile,) = (one for one in study.experiments if one.id == "profile")
    smooth = replace(profile, runs=(replace(profile.runs[0], data=("smooth",)),))
    outcome = run(small(replace(study, experiments=(smooth,))), options).outcomes["profile"]
    assert {row.point["phase"] for row in outcome.rows()} == set(PHASES)
    for where in ({"filter": "deflate:1"}, {"filter": "none"}):
        rows = outcome.rows({**where, "data": "smooth"})
        shares = {row.point["phase"]: row.values("share")[0] for row in rows}
        assert sum(shares.values()) == pytest.approx(100)
        assert (shares["compress"] > 0) == (where["filter"] != "none")
        assert shares["generate"] > 0
    assert FIGURES["share"].unit == "%"


def test_a_label_may_name_the_build_of_the_library() -> None:
    libraries = {"default": Library("default", "2.0.0", "h5py's")}
    labels = {"build": "@build", "points": "all"}
    assert labels_of(labels, {"libhdf5": "default"}, libraries) == {
        "build": "h5py's",
        "points": "all",
    }
    assert labels_of(labels, {"libhdf5": "/a.so"}, libraries)["build"] == "named"


def test_a_profile_has_the_same_functions_in_each_run() -> None:
    reports = [
        """
    30.00%|libz.so.1.2.13|[.] deflate_slow
     1.60%|libz.so.1.2.13|[.] adler32
     0.30%|libhdf5-69dd98a7.so.310.5.1|[.] H5VM_memcpyvv
    20.00%|[kernel.kallsyms]|[k] clear_page
        """,
        """
    32.00%|libz.so.1.2.13|[.] deflate_slow
     0.80%|libz.so.1.2.13|[.] adler32
     5.00%|libm.so.6|[.] 0x0000000000001234
     no line of a report
        """,
    ]
    found = _summed([_shares(one) for one in reports])
    assert found["function", "deflate_slow"] == [30.0, 32.0]
    # A percent in the first run.
    assert found["function", "adler32"] == [1.6, 0.8]
    assert found["function", "others of HDF5"] == [0.3, 0.0]
    assert found["function", "others of the system"] == [20.0, 0.0]
    assert found["function", "others of NumPy and Python"] == [0.0, 5.0]
    assert found["library", "zlib"] == [31.6, 32.8]
    for of in ("function", "library"):
        sums = [
            math.fsum(row[run] for key, row in found.items() if key[0] == of) for run in (0, 1)
        ]
        assert sums == pytest.approx([51.9, 37.8])
