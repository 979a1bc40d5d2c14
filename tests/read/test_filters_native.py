"""What the engine's filters decode is, byte for byte, what libhdf5's filters decode."""

from __future__ import annotations

import itertools
from pathlib import Path

import h5py
import hdf5plugin
import numpy as np
import pytest
from h5py import h5d, h5p, h5s, h5t
from hypothesis import given, settings
from hypothesis import strategies as st

import chunkwise
from chunkwise import _native
from chunkwise.grammar.codecs import CODECS_BY_ID
from tests.support.filtered import (
    CASES,
    DTYPES,
    KINDS,
    OWN_OPTIONS,
    SHAPES,
    Case,
    assert_native,
    create,
    of_plugin,
    values,
)
from tests.support.reading import same

SLOW = settings(derandomize=True)


def test_filters_are_called_as_the_grammar_calls_them() -> None:
    told = _native.filters()
    assert {number: one["name"] for number, one in told.items()} == {
        number: CODECS_BY_ID[number].name for number in told
    }
    # Those that tests decode here, and their phases in a profile.
    assert {case.number for case in CASES.values()} <= {
        n for n, one in told.items() if one["decoded"]
    }
    phases = _native.profile()
    for one in told.values():
        assert not one["decoded"] or one["name"] in phases
        assert not one["encoded"] or f"encode {one['name']}" in phases


MASKED = {**CASES, "blosc2": of_plugin(hdf5plugin.Blosc2("lz4"))}


@pytest.mark.parametrize("case", MASKED.values(), ids=MASKED.keys())
def test_fill_values_and_masks(tmp_path: Path, case: Case) -> None:
    """Chunks never written, and chunks whose mask says that the filter was left out."""
    path = tmp_path / "masks.h5"
    data = values("<i4", (40, 30), "smooth")
    with h5py.File(path, "w") as f:
        d = create(f, "x", "<i4", (40, 30), (16, 16), [case], fill=-7)
        d[:20, :20] = data[:20, :20]
        raw = np.ascontiguousarray(data[16:32, :16])
        d.id.write_direct_chunk((16, 0), raw.tobytes(), 1)
    with h5py.File(path) as f:
        assert_native(f["x"], 20)
        assert np.array_equal(chunkwise.wrap(f["x"])[16:32, :16], raw)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("filters")


@SLOW
@given(data=st.data())
def test_any_pipeline(folder: Path, data: st.DataObject) -> None:
    """Any filters in any order, over any type."""
    others = [Case(h5py.h5z.FILTER_SHUFFLE), Case(h5py.h5z.FILTER_FLETCHER32)]
    others.append(Case(h5py.h5z.FILTER_DEFLATE, (1,)))
    one = st.sampled_from(list(CASES.values())) | st.sampled_from(others)
    # The second of two that find out about the dataset gets no options, and crashes.
    rank = itertools.count()
    key = lambda case: case.number if case.number in OWN_OPTIONS else -next(rank)  # noqa: E731
    filters = data.draw(st.lists(one, min_size=1, max_size=4, unique_by=key))
    dtype = data.draw(st.sampled_from(DTYPES))
    shape, chunk = data.draw(st.sampled_from(SHAPES))
    kind = data.draw(st.sampled_from(KINDS))
    path = folder / "any.h5"
    path.unlink(missing_ok=True)
    with h5py.File(path, "w") as f:
        create(f, "x", dtype, shape, chunk, filters)[...] = values(dtype, shape, kind)
    with h5py.File(path) as f:
        assert_native(f["x"], 2)


def test_nbit_of_more_members_and_fewer_bits_is_left_to_libhdf5(tmp_path: Path) -> None:
    """libhdf5 tells as many options as 41 members have; h5py widens what has fewer bits."""
    members = np.dtype([(f"m{i}", ">i2" if i % 3 else np.longdouble) for i in range(42)])
    short = h5t.NATIVE_INT32.copy()
    short.set_precision(20)
    dcpl = h5p.create(h5p.DATASET_CREATE)
    dcpl.set_chunk((4, 17))
    dcpl.set_filter(h5py.h5z.FILTER_NBIT)
    numbers = np.arange(270).reshape(9, 30)
    with h5py.File(tmp_path / "nbit.h5", "w") as f:
        case = Case(h5py.h5z.FILTER_NBIT)
        d = create(f, "members", members, (9, 30), (4, 17), [case])
        d[...] = numbers.astype("f8").astype(members)
        d = h5py.Dataset(h5d.create(f.id, b"short", short, h5s.create_simple((9, 30)), dcpl))
        d[...] = numbers - 100
    with h5py.File(tmp_path / "nbit.h5") as f:
        for name, reason in (("short", "converted"), ("members", "filter 5")):
            ours = chunkwise.wrap(f[name])
            assert reason in ours.explain()["reason"]
            assert same(ours[...], f[name][...])


def test_what_only_libhdf5_decodes(tmp_path: Path) -> None:
    """Other filters, and codecs that these filters may use, with a reason."""
    path = tmp_path / "left.h5"
    data = values("<f4", (40, 30), "smooth")
    filters = {
        "filter 32013": hdf5plugin.Zfp(reversible=True),
        "filter 32001": hdf5plugin.Blosc(cname="snappy"),
    }
    with h5py.File(path, "w") as f:
        for name, options in filters.items():
            f.create_dataset(name, data=data, chunks=(16, 16), **options)
        # A chunk that does not keep to its dataset's options.
        f.create_dataset("unlike", data=data, chunks=(40, 30), **hdf5plugin.Blosc(cname="lz4"))
        whole = f.create_dataset("s", data=data, chunks=(40, 30), **hdf5plugin.Blosc("snappy"))
        _, stored = whole.id.read_direct_chunk((0, 0))
        f["unlike"].id.write_direct_chunk((0, 0), stored, 0)
    with h5py.File(path) as f:
        for name in filters:
            assert name in chunkwise.wrap(f[name]).explain()["reason"]
            assert same(chunkwise.wrap(f[name])[...], data)
        with pytest.warns(RuntimeWarning, match="uses snappy"):
            assert same(chunkwise.wrap(f["unlike"])[...], data)
