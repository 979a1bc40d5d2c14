"""Are chunks that patched h5py fills in steps encoded by the engine, and nothing else changed?"""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt
import pytest
from h5py import h5s, h5z
from hypothesis import given
from hypothesis import strategies as st

import chunkwise
from chunkwise._lib import library
from chunkwise.errors import CannotWriteError
from chunkwise.writing import steps
from tests.support.patched import bound_always, engine_writes
from tests.support.processes import python

__all__ = ["bound_always"]
pytestmark = pytest.mark.usefixtures("bound_always")

SHAPE = (20, 10, 25)
CHUNK = (8, 10, 5)
VALUES = np.arange(20 * 10 * 25, dtype="i4").reshape(SHAPE) % 251
GZIP: dict[str, Any] = {"compression": "gzip", "shuffle": True}
CHECKED: dict[str, Any] = {"fletcher32": True, **GZIP}


def by_libhdf5() -> int:
    """Chunks that libhdf5 has encoded in this process, since this was first asked."""
    return int(library().tally([h5z.FILTER_DEFLATE])[h5z.FILTER_DEFLATE]["encode"][0])


def low_level(dataset: h5py.Dataset) -> npt.NDArray[Any]:
    """What libhdf5 reads, past all that is patched."""
    found = np.empty(dataset.shape, dataset.dtype)
    dataset.id.read(h5s.ALL, h5s.ALL, found)
    return found


@pytest.mark.parametrize("maxshape", [SHAPE, (None, 10, 25)])
def test_the_last_step_of_a_chunk_has_it_encoded(
    tmp_path: Path, maxshape: tuple[int | None, ...]
) -> None:
    model = np.zeros_like(VALUES)
    encoded, calls = by_libhdf5(), engine_writes()
    with h5py.File(tmp_path / "x.h5", "w") as f, chunkwise.patch_h5py():
        d = f.create_dataset("x", SHAPE, "i4", chunks=CHUNK, maxshape=maxshape, **GZIP)
        layout = h5py.VirtualLayout(SHAPE, "i4")
        layout[...] = h5py.VirtualSource(d)
        virtual = f.create_virtual_dataset("v", layout)
        for number, step in enumerate(VALUES):
            d[number] = model[number] = step
            for seen in (low_level(d), d[...], h5py.Dataset(f["x"].id)[...], virtual[...]):
                assert (seen == model).all(), number
        # The chunks at the edge are whole if the dataset cannot grow.
        whole = 3 if maxshape == SHAPE else 2
        assert engine_writes() == calls + whole, chunkwise.patch_stats()["writes"]
        f.flush()
        # Those at the edge.
        assert by_libhdf5() == encoded + 5
    with h5py.File(tmp_path / "x.h5") as f:
        assert (f["x"][...] == VALUES).all()


def test_a_cache_that_holds_no_steps_is_told_of(tmp_path: Path) -> None:
    calls = engine_writes()
    with (
        h5py.File(tmp_path / "x.h5", "w", rdcc_nbytes=5 * 8 * 10 * 5 * 4 - 1) as f,
        chunkwise.patch_h5py(),
    ):
        d = f.create_dataset("x", SHAPE, "i4", chunks=CHUNK, **GZIP)
        for number, step in enumerate(VALUES):
            d[number] = step
        assert (d[...] == VALUES).all()
    assert engine_writes() == calls
    reasons = chunkwise.patch_stats()["writes"]["h5py"]
    assert any("rdcc_nbytes" in reason for reason in reasons)


def test_steps_are_kept_if_their_chunk_cannot_be_put_into_the_file(tmp_path: Path) -> None:
    class Failing:
        def write(self, *_: object) -> None:
            d.id.write_direct_chunk((0, 0, 0), b"no")
            raise CannotWriteError("the disk is full")

    native: Any = Failing()
    with h5py.File(tmp_path / "x.h5", "w") as f:
        d = f.create_dataset("x", SHAPE, "i4", chunks=CHUNK, **GZIP)
        d[...] = VALUES
        with pytest.raises(CannotWriteError):
            steps.encode(d, native, d.dtype, CHUNK, ((0, 8), (0, 10), (0, 25)))
        assert (low_level(d) == VALUES).all()
    with h5py.File(tmp_path / "x.h5") as f:
        assert (f["x"][...] == VALUES).all()


def test_a_full_disk_loses_no_step(tmp_path: Path) -> None:
    program = """if True:
        import resource, signal, sys, h5py, numpy as np, chunkwise
        chunkwise.patch_h5py()
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        noise = np.random.default_rng(1).integers(0, 255, (8, 1 << 18), "u1")
        f = h5py.File(sys.argv[1], "w", rdcc_nbytes=1 << 22)
        d = f.create_dataset("x", noise.shape, "u1", chunks=(4, 1 << 17), compression=1)
        d[0] = noise[0]
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, resource.RLIM_INFINITY))
        for number in range(1, 8):
            d[number] = noise[number]
        print(chunkwise.patch_stats()["writes"]["engine"])
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        f.close()
        print(bool((h5py.File(sys.argv[1])["x"][...] == noise).all()))
    """
    assert python(program, tmp_path / "x.h5").split() == ["0", "True"]


BOX = st.tuples(
    st.integers(0, 19), st.integers(1, 9), st.sampled_from([(0, 25), (0, 25), (5, 25), (3, 9)])
)
WORK = st.one_of(
    st.tuples(st.just("step"), st.integers(1, 9)),
    st.tuples(st.just("step"), st.integers(1, 9)),
    st.tuples(st.just("step"), st.integers(1, 9)),
    st.tuples(st.just("box"), BOX),
    st.tuples(st.just("past what is patched"), BOX),
    st.tuples(st.just("length"), st.integers(0, 20)),
    st.tuples(st.sampled_from(["flush", "reopen", "from the start"]), st.none()),
)


@pytest.mark.slow
@given(
    st.lists(WORK, min_size=3, max_size=25),
    st.sampled_from([0, 4000, 8000, 1 << 20]),
    st.sampled_from([(20, 10, 25), (None, 10, 25)]),
    st.sampled_from([GZIP, CHECKED, {"compression": "lzf"}]),
)
def test_all_that_may_come_between_steps(
    tmp_path: Path,
    works: list[tuple[str, Any]],
    cache_nbytes: int,
    maxshape: tuple[int | None, ...],
    filters: dict[str, Any],
) -> None:
    path, model, at = tmp_path / "x.h5", np.zeros(SHAPE, "i4"), 0
    f = h5py.File(path, "w", rdcc_nbytes=cache_nbytes)
    with chunkwise.patch_h5py():
        f.create_dataset("x", SHAPE, "i4", chunks=CHUNK, maxshape=maxshape, **filters)
        for number, (work, how) in enumerate(works):
            d = f["x"]
            length = d.shape[0]
            if work == "step":
                at = at if at < length else 0
                rows = slice(at, min(at + how, length))
                d[rows] = model[rows] = number + 1
                value = np.full((rows.stop - rows.start, 10, 25), number + 2, "i4")
                d[rows] = model[rows] = value
                at = rows.stop
            elif work in ("box", "past what is patched"):
                begin, rows, (left, right) = how
                box = np.s_[begin : min(begin + rows, length), :, left:right]
                value = np.full(model[:length][box].shape, number + 50, "i8")
                if work == "box" or not value.size:
                    d[box] = model[:length][box] = value
                else:
                    space = d.id.get_space()
                    space.select_hyperslab((begin, 0, left), value.shape)
                    model[:length][box] = value
                    d.id.write(h5s.create_simple(value.shape), space, value)
            elif work == "length" and how < length:
                d.resize(how, 0)
                model[how:] = 0
            elif work == "length":
                d.resize(min(how, 20), 0)
            elif work == "flush":
                f.flush()
            elif work == "from the start":
                at = 0
            else:
                f.close()
                f = h5py.File(path, "r+", rdcc_nbytes=cache_nbytes)
            assert (low_level(f["x"]) == model[: f["x"].shape[0]]).all(), (number, work)
        length = f["x"].shape[0]
        f.close()
    with h5py.File(path) as f:
        assert (f["x"][...] == model[:length]).all()


def test_no_chunk_is_replaced_while_readers_may_follow(tmp_path: Path) -> None:
    calls = engine_writes()
    with h5py.File(tmp_path / "x.h5", "w", libver="latest") as f, chunkwise.patch_h5py():
        d = f.create_dataset("x", SHAPE, "i4", chunks=CHUNK, maxshape=(None, 10, 25), **GZIP)
        d[0] = VALUES[0]
        # It begins while a chunk is being filled.
        f.swmr_mode = True
        for number, step in enumerate(VALUES[1:], start=1):
            d[number] = step
    # Nothing was put into the file past libhdf5, not even for a moment.
    assert engine_writes() == calls
    with h5py.File(tmp_path / "x.h5") as f:
        assert (f["x"][...] == VALUES).all()
