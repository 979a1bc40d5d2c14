"""What the plan of a repack says, and what it refuses before anything is written."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise.errors import ChunkwiseError
from chunkwise.repacking.plan import budget_note
from chunkwise.repacking.render import plan_lines, shortened
from tests.support.golden import assert_golden, mistakes, refused
from tests.support.repacking import command, write_example


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_example(tmp_path_factory.mktemp("example") / "in.h5")


def plan_text(source: Path, *, chunk: Any = None, filters: Any = None) -> str:
    plan = chunkwise.plan_repack(source, chunk=chunk, filters=filters)
    text = "\n".join(plan_lines("in.h5", "out.h5", plan))
    # What the machine decides.
    of_machine = (
        r"about [\d.,]+ (?:ns|µs|ms|s|min)\b|[\d.]+ \w+ of (?:[\d.]+ \w+ of )?memory|\d+ threads?"
    )
    return re.sub(of_machine, "...", text)


def test_the_page(example: Path) -> None:
    """What changes, what a pattern passes over, and a plan that changes nothing."""
    assert_golden(
        "repack-plan",
        plan_text(example, chunk={"cube": "40x16x16"}, filters={"cube": "deflate:6"}),
        plan_text(example, chunk="40x16x16", filters="deflate:1"),
        plan_text(example, chunk={"cube": "1x64x64"}),
    )


def test_little_memory_is_said_to_cost_decodes(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        data = np.zeros((100, 200, 200), "i4")
        file.create_dataset("x", data=data, chunks=(1, 200, 200), compression=1)
    ample = chunkwise.plan_repack(tmp_path / "x.h5", chunk=(100, 10, 10), memory="1GiB")
    assert ample.steps[0].decodes == ample.steps[0].chunks == 100
    assert budget_note(ample) is None
    tight = chunkwise.plan_repack(tmp_path / "x.h5", chunk=(100, 10, 10), memory="4MiB")
    assert tight.steps[0].decodes > 100
    assert "are decoded" in str(budget_note(tight))
    assert tight.steps[0].memory_nbytes <= 4 << 20


def test_the_same_again_changes_nothing(example: Path) -> None:
    plan = chunkwise.plan_repack(example, chunk={"cube": "1x64x64"}, filters="stored")
    assert not plan.changes
    same = chunkwise.plan_repack(example, filters={"cube": "shuffle+deflate:4"})
    assert not same.changes


def test_sizes_are_estimated_from_a_sample(example: Path) -> None:
    plan = chunkwise.plan_repack(example, filters={"cube": "none", "plane": "shuffle+deflate:1"})
    steps = {step.source.path: step for step in plan.steps}
    assert steps["/again"].out_nbytes == steps["/again"].source.nbytes
    plane = steps["/a/b/plane"]
    assert 0.7 < plane.out_nbytes / plane.source.nbytes < 1
    assert plan.expected_s > 0


def test_json_has_the_plan(example: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.h5"
    done = command(example, out, "--chunk", "cube:40x16x16", "--dry-run", "--json")
    record = json.loads(done.stdout)
    assert (record["format"], len(record["datasets"])) == ("chunkwise-repack-plan", 5)
    cube = next(one for one in record["datasets"] if one["path"] == "/again")
    assert (cube["chunk_before"], cube["chunk"]) == ("1x64x64", "40x16x16")
    assert not out.exists()


CANNOT: list[dict[str, Any]] = [
    *({"chunk": f"cube:{one}"} for one in ("1x1", "0x1x1", "41x1x1")),
    *({"chunk": one} for one in ("cub:1x1x1", "/a/b:1x1", "1x2x3x4", "line:contiguous")),
    {"chunk": "cube:auto", "access": ["1x2"]},
    {"chunk": "cube:40x64x64", "memory": 1000},
    {"filters": {"words": "scaleoffset:in:0"}},
    {"filters": {"cube": "filter-32999"}},
    *({"filters": one} for one in ("cube:zst", {"scalar": "lzf"})),
    *({"memory": one} for one in ("2G", 0)),
]


def test_rules_that_cannot_be_followed(example: Path) -> None:
    said = refused(lambda rules: chunkwise.plan_repack(example, **rules), CANNOT)
    # What HDF5 says, and how much memory is needed, differs by version and machine.
    said = re.sub(r"(?<=scaleoffset:in:0): .*|(?<=which takes) \d+", "", said)
    assert_golden("repack-plan-refused", said.replace(str(example.parent), "FOLDER"))


def test_a_filter_by_pattern_is_left_where_hdf5_refuses_it(example: Path) -> None:
    plan = chunkwise.plan_repack(example, filters="**:szip:nn:32")
    left = {step.source.path: step.wanted.left for step in plan.steps if step.wanted.left}
    assert set(left) == {"/scalar", "/words"}


def test_mistakes_are_one_line(
    tmp_path: Path, example: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("old.nc").write_bytes(b"CDF\x01" + b"\xff" * 100)
    shutil.copy(example, "in.h5")
    said = mistakes("""
repack none.h5 out.h5
repack old.nc out.h5
repack in.h5
repack in.h5 in.h5
repack in.h5 no/out.h5
repack in.h5 a b
repack in.h5 out.h5 --in-place
repack in.h5 out.h5 --low v110 --high v108
repack in.h5 out.h5 --paged 100
repack in.h5 out.h5 --threads 0
repack in.h5 out.h5 --alignment 0
repack in.h5 --in-place --unchanged link
""")

    def call(word: Any) -> None:
        chunkwise.repack("in.h5", in_place=True, unchanged=word)

    said = said.replace(str(tmp_path), "FOLDER")
    assert_golden("repack-refused", said, refused(call, ["link"]))
    assert {path.name for path in tmp_path.iterdir()} == {"in.h5", "old.nc"}


def test_a_path_is_shown_on_one_line_of_a_terminal() -> None:
    assert shortened("/a/b", 20) == "/a/b"
    assert shortened("/a\n\x1b[31m") == r"/a\n\x1b[31m"
    assert len(shortened("/" + "x" * 300, 20)) <= 20


# --- auto, for all of a file -----------------------------------------------------------


def climate(path: Path) -> Path:
    """Make two variables that can grow, with their coordinates."""
    with h5py.File(path, "w") as file:
        file.create_dataset("time", (365,), "f8", chunks=(512,), maxshape=(None,))
        file["lat"] = np.linspace(-90, 90, 73)
        for name in ("t2m", "pr"):
            options: Any = {"chunks": (1, 73, 144), "maxshape": (None, 73, 144)}
            file.create_dataset(name, (365, 73, 144), "f4", compression=1, **options)
    return path


@pytest.mark.parametrize("access", [(), ("365x1x1",)])
def test_auto_leaves_coordinates_as_they_are(tmp_path: Path, access: tuple[str, ...]) -> None:
    plan = chunkwise.plan_repack(climate(tmp_path / "a.nc"), chunk="auto", access=access)
    steps = {step.source.path: step for step in plan.steps}
    assert {path for path, step in steps.items() if step.changes} == {"/t2m", "/pr"}
    for path in ("/time", "/lat"):
        assert "in one piece" in steps[path].wanted.left[0]
    chunk = steps["/t2m"].wanted.chunk
    assert chunk is not None
    assert chunk[0] == 365 if access else chunk[0] > 1


def test_auto_leaves_scales_and_coordinates_alone_however_large(tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    with h5py.File(path, "w") as file:
        numbers = np.arange(100_000.0)
        file.create_dataset("time", data=numbers, chunks=(10,))
        file["time"].make_scale("time")
        made = file.create_dataset("g/t2m", data=np.zeros((1000, 100)), chunks=(1, 100))
        made.attrs["coordinates"] = "lat /g/lon elsewhere"
        file.create_dataset("lat", data=np.zeros((1000, 100)), chunks=(1, 100))
        file.create_dataset("g/lon", data=np.zeros((1000, 100)), chunks=(1, 100))
        file["lat"].attrs["bounds"] = np.bytes_("lat_bounds")
        file.create_dataset("lat_bounds", data=np.zeros((1000, 200)), chunks=(1, 200))
        file.create_dataset("lat other", data=np.zeros((1000, 100)), chunks=(1, 100))
    plan = chunkwise.plan_repack(path, chunk="auto")
    left = {step.source.path: step.wanted.left for step in plan.steps if step.wanted.left}
    assert set(left) == {"/time", "/lat", "/g/lon", "/lat_bounds"}
    assert left["/time"][0].startswith("is a dimension scale, which auto leaves alone")
    assert left["/g/lon"][0].startswith("holds coordinates of '/g/t2m'")
    assert left["/lat_bounds"][0].startswith("holds coordinates of '/lat'")
    changed = {step.source.path for step in plan.steps if step.changes}
    assert changed == {"/g/t2m", "/lat other"}
    # A name asks.
    plan = chunkwise.plan_repack(path, chunk={"time": "auto"})
    assert [step.source.path for step in plan.steps if step.changes] == ["/time"]


def test_access_that_fits_no_dataset_names_real_shapes(tmp_path: Path) -> None:
    path = climate(tmp_path / "a.nc")
    for rule, shape in (("time:auto", "365"), ("t2m:auto", "365x73x144")):
        with pytest.raises(ChunkwiseError, match=rf"\(shape {shape}\)"):
            chunkwise.plan_repack(path, chunk=rule, access=["365x1x1x1"])
    with pytest.raises(ChunkwiseError, match="fits none of the 4 datasets"):
        chunkwise.plan_repack(path, chunk="auto", access=["365x1x1x1"])


def test_auto_of_a_named_coordinate_is_no_larger_than_a_page(tmp_path: Path) -> None:
    plan = chunkwise.plan_repack(climate(tmp_path / "a.nc"), chunk="time:auto")
    (step,) = [step for step in plan.steps if step.source.path == "/time"]
    assert step.wanted.chunk == (512,)
