"""In other chunks, do filters get parameters that keep every value, or does a dataset stay?"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import hdf5plugin
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import chunkwise
from chunkwise.errors import UsageError
from chunkwise.grammar import Pipeline
from chunkwise.repacking.bounds import bound_of
from tests.support.commands import ended
from tests.support.repacking import command

SETTINGS = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

# Filters that keep each value, with the types that they take.
KEEPING: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "zfp": (dict(hdf5plugin.Zfp(reversible=True)), ("f4", "f8", "i4")),
    "blosc": (dict(hdf5plugin.Blosc("zstd")), ("f4", ">f8", "u2")),
    "blosc2": (dict(hdf5plugin.Blosc2("lz4")), ("f4", "f8", "u2")),
    "bitshuffle in blocks": (dict(hdf5plugin.Bitshuffle(nelems=64)), ("f4", "u2")),
    "lz4 in blocks": (dict(hdf5plugin.LZ4(nbytes=512)), ("f8", "u2")),
    "lzf": ({"compression": "lzf", "shuffle": True}, ("f4", "i4")),
    "szip": ({"compression": "szip", "compression_opts": ("nn", 32)}, ("u2", "i4", "f4")),
    "scaleoffset": ({"scaleoffset": 10}, ("u2", "i4")),
    "fcidecomp": (dict(hdf5plugin.FciDecomp()), ("u2",)),
    "htj2k": (dict(hdf5plugin.Htj2k()), ("u2",)),
    "zstd": (dict(hdf5plugin.Zstd(), shuffle=True, fletcher32=True), ("f8", "i4")),
}
LOSING: dict[str, Any] = {
    "scaleoffset": {"scaleoffset": 2},
    "zfp accuracy": dict(hdf5plugin.Zfp(accuracy=1e-2)),
    "zfp rate": dict(hdf5plugin.Zfp(rate=12)),
    "sz": dict(hdf5plugin.SZ(absolute=1e-2)),
    "sz3": dict(hdf5plugin.SZ3(absolute=1e-2)),
    "sperr": dict(hdf5plugin.Sperr(absolute=1e-2)),
    "blosc2 truncprec": dict(hdf5plugin.Blosc2(filters=hdf5plugin.Blosc2.TRUNC_PREC)),
}


def walk(shape: tuple[int, ...], dtype: str, seed: int) -> npt.NDArray[Any]:
    """Values that differ little within rows, and more than 10 bits between the first and last."""
    steps = np.random.default_rng(seed).integers(0, 9, shape).cumsum(axis=-1)
    values: npt.NDArray[Any] = steps + 700 * np.arange(shape[0])[:, None]
    return values.astype(dtype)


def make(path: Path, data: npt.NDArray[Any], chunks: tuple[int, int], how: dict[str, Any]) -> None:
    """Write a dataset with the filters, and one that any rule fits."""
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=data, chunks=chunks, **how)
        file.create_dataset("y", data=data, chunks=chunks, compression=1)


def read(path: Path, name: str = "x") -> tuple[npt.NDArray[Any], tuple[int, ...], Pipeline]:
    with h5py.File(path) as file:
        found = file[name]
        return found[...], found.chunks, Pipeline.from_dcpl(found.id.get_create_plist())


def said(done: subprocess.CompletedProcess[str]) -> str:
    """Its output, as one line."""
    return " ".join(done.stdout.split())


def stored(path: Path) -> list[tuple[Any, ...]]:
    """All that the file stores of a dataset: values of its filters, masks, bytes of its chunks."""
    with h5py.File(path) as file:
        one = file["x"].id
        dcpl = one.get_create_plist()
        filters = [dcpl.get_filter(place) for place in range(dcpl.get_nfilters())]
        places = [
            one.get_chunk_info(number).chunk_offset for number in range(one.get_num_chunks())
        ]
        return [*filters, *((place, *one.read_direct_chunk(place)) for place in sorted(places))]


@SETTINGS
@given(st.data())
def test_values_stay_in_any_chunks(tmp_path: Path, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(KEEPING)))
    how, types = KEEPING[name]
    shape = data.draw(st.tuples(st.integers(8, 60), st.integers(8, 60)))
    # With one row in a chunk, ten bits are enough for it.
    rows = 1 if name == "scaleoffset" else data.draw(st.integers(1, shape[0]))
    chunks = (rows, data.draw(st.integers(8, shape[1])))
    if name == "szip":
        chunks = (shape[0], chunks[1])
    values = walk(shape, data.draw(st.sampled_from(types)), data.draw(st.integers(0, 99)))
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    make(source, values, chunks, how)
    before, _, pipeline = read(source)
    assert np.array_equal(before, values)
    wanted = data.draw(st.tuples(*(st.integers(1, length) for length in shape)))
    rule = f"**:{wanted[0]}x{wanted[1]}"
    summary = chunkwise.repack(source, target, chunk=rule, force=True)
    after, found, made = read(target)
    assert after.tobytes() == before.tobytes()
    (result,) = (one for one in summary.datasets if one.path == "/x")
    if result.left:
        # HDF5 refuses the filter in these chunks, and says so.
        assert (found, made) == (chunks, pipeline)
        assert name in ("zfp", "fcidecomp", "htj2k", "szip")
    else:
        assert found == wanted
        assert [one.name for one in made.filters] == [one.name for one in pipeline.filters]


def test_scaleoffset_gets_the_bits_that_the_new_chunks_need(tmp_path: Path) -> None:
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    data = walk((60, 50), "i4", 1)
    make(source, data, (1, 50), {"scaleoffset": 10})
    done = command(source, target, "--chunk", "x:60x50", "--filter", "y:none")
    assert done.returncode == 0, done.stderr
    after, chunks, pipeline = read(target)
    assert np.array_equal(after, data)
    assert (chunks, str(pipeline)) == ((60, 50), "scaleoffset:in:0")
    planned = command(source, target, "--chunk", "x:60x50", "--dry-run", "--force")
    assert "scaleoffset:in:10 -> scaleoffset:in:0" in planned.stdout


@pytest.mark.parametrize("name", LOSING)
@pytest.mark.parametrize("rule", ["**:20x20", "*:auto", "/*:48x48"])
def test_what_would_round_again_stays_as_it_is_stored(
    name: str, rule: str, tmp_path: Path
) -> None:
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    data = np.random.default_rng(3).normal(size=(48, 48)).cumsum(axis=0).astype("f4")
    make(source, data, (12, 48), LOSING[name])
    done = command(source, target, "--chunk", rule, "--verify", "full")
    assert done.returncode == 0, done.stderr
    assert "/x has " in said(done)
    assert "second time" in said(done)
    assert stored(target) == stored(source)
    assert read(target, "y")[1] != (12, 48)


@pytest.mark.parametrize("name", LOSING)
def test_a_rule_that_names_it_is_refused(name: str, tmp_path: Path) -> None:
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    make(source, np.zeros((48, 48), "f4"), (12, 48), LOSING[name])
    with pytest.raises(UsageError, match=r"second time; .* a rule must name its filters"):
        chunkwise.repack(source, target, chunk="x:16x48")
    with pytest.raises(UsageError, match="second time"):
        chunkwise.repack(source, target, chunk="x:16x48", filters="x:stored")
    assert not target.exists()


@pytest.mark.parametrize("name", LOSING)
def test_filters_that_are_named_round_within_their_bound(name: str, tmp_path: Path) -> None:
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    data = np.random.default_rng(3).normal(size=(48, 48)).cumsum(axis=0).astype("f4")
    make(source, data, (12, 48), LOSING[name])
    before, _, pipeline = read(source)
    chunkwise.repack(source, target, chunk="x:16x48", filters=f"x:{pipeline}")
    after, chunks, made = read(target)
    assert (chunks, made) == ((16, 48), pipeline)
    assert bound_of(pipeline, data.dtype, 0.0).violations(before, after) is None
    # Without them, each value stays.
    chunkwise.repack(source, target, chunk="x:16x48", filters="x:deflate:1", force=True)
    assert np.array_equal(read(target)[0], before)


def test_what_rounds_comes_first_and_gets_numbers(tmp_path: Path) -> None:
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    with h5py.File(source, "w") as file:
        file["x"] = np.zeros((20, 20), "f4")
        file["records"] = np.zeros(20, [("a", "f4")])
    with pytest.raises(UsageError, match="put it first"):
        chunkwise.repack(source, target, filters="x:shuffle+scaleoffset:ds:2")
    with pytest.raises(UsageError, match="does not hold plain numbers"):
        chunkwise.repack(source, target, filters="records:filter-32017:0,0,0,0,0,0,0,0,0")


@pytest.mark.parametrize(
    "how", [{"scaleoffset": 10}, {"scaleoffset": None, "compression": "szip"}]
)
def test_chunks_without_a_filter_keep_their_values(how: dict[str, Any], tmp_path: Path) -> None:
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    data = walk((40, 64), "i4", 5)
    make(source, data, (1, 64), how)
    wide = np.arange(64, dtype="i4") * 30_000_000
    with h5py.File(source, "a") as file:
        # Left out, as a writer of its own may do it: these values need more bits than stated.
        file["x"].id.write_direct_chunk((7, 0), wide.tobytes(), filter_mask=1)
    data[7] = wide
    assert np.array_equal(read(source)[0], data)
    for rule in ("x:8x64", "x:1x64", "x:40x10"):
        chunkwise.repack(source, target, chunk=rule, force=True)
        assert np.array_equal(read(target)[0], data)
    chunkwise.repack(source, target, filters=f"x:{read(source)[2]}", force=True)
    assert np.array_equal(read(target)[0], data)


def test_merged_data_keep_their_values(tmp_path: Path) -> None:
    data = walk((40, 64), "i4", 6)
    with h5py.File(tmp_path / "part.h5", "w") as file:
        file.create_dataset("d", data=data, chunks=(1, 64), scaleoffset=10)
    layout = h5py.VirtualLayout((40, 64), "i4")
    layout[:] = h5py.VirtualSource("part.h5", "d", (40, 64))
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file.create_virtual_dataset("x", layout)
    chunkwise.repack(tmp_path / "in.h5", tmp_path / "out.h5", merge=True, chunk="x:40x64")
    after, _, pipeline = read(tmp_path / "out.h5")
    assert np.array_equal(after, data)
    assert str(pipeline) == "scaleoffset:in:0"


def test_fix_leaves_what_it_cannot_give_other_chunks(tmp_path: Path) -> None:
    """Chunks of one row, which findings are about."""
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    steps = np.random.default_rng(0).normal(size=(3000, 100)).cumsum(axis=0)
    exact = (np.arange(300_000, dtype="i4") % 60_000).reshape(3000, 100)
    with h5py.File(source, "w") as file:
        for name, data, how in (
            ("rounded", steps, {"scaleoffset": 3}),
            ("zfp", steps, dict(hdf5plugin.Zfp(accuracy=1e-3))),
            ("exact", exact, {"scaleoffset": 7}),
        ):
            file.create_dataset(name, data=data, chunks=(1, 100), maxshape=(None, 100), **how)
    names = ("rounded", "zfp", "exact")
    for more in ((), ("--access", "line:0")):
        done = ended("fix", source, "-o", target, "--no-measure", *more, "--force")
        assert done.returncode == 0, done.stderr + done.stdout
        for name in names:
            before, after = read(source, name), read(target, name)
            assert np.array_equal(before[0], after[0]), name
            assert (after[1] == before[1]) == (name != "exact"), name
        assert str(read(target, "exact")[2]) == "scaleoffset:in:0"


def test_inspect_offers_no_chunks_that_would_round_again(tmp_path: Path) -> None:
    source = tmp_path / "in.h5"
    steps = np.random.default_rng(0).normal(size=(3000, 100)).cumsum(axis=0)
    with h5py.File(source, "w") as file:
        file.create_dataset("x", data=steps, chunks=(1, 100), maxshape=(None, 100), scaleoffset=3)
    facts = chunkwise.inspect(source)
    assert facts.findings
    assert not [fix for found in facts.findings for fix in found.fixes if fix.rechunks]


# --- a filter that nobody here knows ---------------------------------------------------------

CHILD = """
import sys, h5py, numpy as np
path = sys.argv[1]
with h5py.File(path, "w") as file:
    dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    dcpl.set_chunk((5, 8))
    dcpl.set_filter(411, 0, (3, 4))
    space = h5py.h5s.create_simple((40, 64))
    made = h5py.h5d.create(file.id, b"x", h5py.h5t.NATIVE_INT32, space, dcpl)
    h5py.Dataset(made)[...] = np.arange(40 * 64).reshape(40, 64)
    file["x"].attrs["unit"] = "K"
    file["same"] = file["x"]
    if len(sys.argv) > 2:
        file["kind"] = np.dtype("i4")
        typed = h5py.h5d.create(file.id, b"typed", file["kind"].id, space, dcpl)
        h5py.Dataset(typed)[...] = 1
    file.create_dataset("y", data=np.arange(400).reshape(20, 20), chunks=(1, 20))
"""


@pytest.fixture(scope="module")
def plugins(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Build the plugin for h5py's libhdf5, and give the variables that have it found."""
    compiler = shutil.which("cc")
    folder = Path(h5py.__file__).parents[1] / "h5py.libs"
    libraries = sorted(folder.glob("libhdf5-*.so*"))
    if compiler is None or not libraries or sys.platform != "linux":
        pytest.skip("needs a C compiler, and h5py from a wheel")
    built = tmp_path_factory.mktemp("plugins")
    code = Path(__file__).parents[1] / "support" / "keyed_filter.c"
    words = [compiler, "-shared", "-fPIC", "-o", built / "libkeyed.so", code, libraries[0]]
    subprocess.run([str(word) for word in words], check=True)
    return {**os.environ, "HDF5_PLUGIN_PATH": str(built)}


@pytest.fixture
def keyed(tmp_path: Path, plugins: dict[str, str]) -> Path:
    path = tmp_path / "in.h5"
    subprocess.run([sys.executable, "-c", CHILD, str(path)], env=plugins, check=True)
    return path


@pytest.mark.parametrize("rule", ["**:10x10", "*:auto"])
def test_an_unknown_filter_stays_in_its_chunks(
    rule: str, keyed: Path, plugins: dict[str, str]
) -> None:
    target = keyed.with_name("out.h5")
    done = command(keyed, target, "--chunk", rule, env=plugins)
    assert done.returncode == 0, done.stderr
    assert "nobody here knows" in said(done)
    # Its plugin would complete the stored values once more, if the dataset were made anew.
    assert stored(target) == stored(keyed)
    assert read(target, "y")[1] != (1, 20)
    with h5py.File(target) as file:
        assert dict(file["x"].attrs) == {"unit": "K"}
        assert file["same"] == file["x"]


def test_an_unknown_filter_needs_no_plugin_to_stay(keyed: Path) -> None:
    target = keyed.with_name("out.h5")
    done = command(keyed, target, "--chunk", "y:10x20", "--verify", "none")
    assert done.returncode == 0, done.stderr
    assert stored(target) == stored(keyed)


def test_an_unknown_filter_of_a_committed_type_is_refused(
    keyed: Path, plugins: dict[str, str]
) -> None:
    subprocess.run([sys.executable, "-c", CHILD, str(keyed), "typed"], env=plugins, check=True)
    target = keyed.with_name("out.h5")
    done = command(keyed, target, "--chunk", "y:10x20", env=plugins)
    assert done.returncode == 2
    assert "'/typed': its filters (filter-411:40,3,4) cannot be set" in done.stderr
    assert not target.exists()


def test_an_unknown_filter_is_left_out_if_that_is_named(
    keyed: Path, plugins: dict[str, str]
) -> None:
    target = keyed.with_name("out.h5")
    done = command(keyed, target, "--chunk", "x:10x10", env=plugins)
    assert done.returncode == 2
    assert "nobody here knows" in done.stderr
    done = command(keyed, target, "--chunk", "x:10x10", "--filter", "x:deflate", env=plugins)
    assert done.returncode == 0, done.stderr
    assert np.array_equal(read(target)[0], np.arange(40 * 64).reshape(40, 64))


def test_fix_leaves_an_unknown_filter(keyed: Path, plugins: dict[str, str]) -> None:
    target = keyed.with_name("out.h5")
    done = ended("fix", keyed, "-o", target, "--access", "line:0", env=plugins)
    assert done.returncode == 0, done.stderr
    if target.exists():
        assert stored(target) == stored(keyed)
