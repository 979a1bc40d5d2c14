"""Which filters are decoded natively, and what of them is left to libhdf5?

That each decodes what libhdf5's decodes is in `tests/write/test_encoders_native.py`.
"""

import struct
from pathlib import Path

import h5py
import hdf5plugin
import numpy as np
import pytest
from h5py import h5d, h5p, h5s, h5t

import chunkwise
from chunkwise import _native
from chunkwise.grammar.codecs import CODECS_BY_ID
from tests.support.filtered import CASES, Case, create, of_plugin, values
from tests.support.reading import same
from tests.support.versions import HDF5


def test_filters_are_called_as_the_grammar_calls_them() -> None:
    told = _native.filters()
    assert told == {number: codec.name for number, codec in CODECS_BY_ID.items()}
    # Those that tests decode here, and their phases in a profile.
    assert {case.number for case in CASES.values()} <= set(told)
    phases = _native.profile()
    assert all(name in phases and f"encode {name}" in phases for name in told.values())


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
            assert reason in str(ours.explain()["reason"])
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
            assert name in str(chunkwise.wrap(f[name]).explain()["reason"])
            assert same(chunkwise.wrap(f[name])[...], data)
        with pytest.warns(RuntimeWarning, match="uses snappy"):
            assert same(chunkwise.wrap(f["unlike"])[...], data)


# Blosc2's frames ---------------------------------------------------------------------

HEADER_LEN, FLAGS = 32, 31


def changed(stored: bytes, chunk: bytes) -> bytes:
    """A frame of one dimension with another chunk in it."""
    at = int.from_bytes(stored[11:15], "big")
    length = int.from_bytes(stored[0x27:0x2F], "big")
    frame = bytearray(stored[:at] + chunk + stored[at + length :])
    frame[0x10:0x18] = struct.pack(">Q", len(frame))
    frame[0x27:0x2F] = struct.pack(">Q", len(chunk))
    return bytes(frame)


@pytest.mark.parametrize(
    ("special", "value", "expected"),
    [
        (1, b"", 0.0),
        (2, b"", np.nan),
        (3, struct.pack("<f", 2.5), 2.5),
        (3, struct.pack("<2f", 1.0, 2.0), [1.0, 2.0]),
    ],
)
def test_chunks_of_one_value(
    tmp_path: Path, special: int, value: bytes, expected: float | list[float]
) -> None:
    path = tmp_path / "special.h5"
    with h5py.File(path, "w") as f:
        d = create(f, "x", "<f4", (1000,), (1000,), [of_plugin(hdf5plugin.Blosc2("lz4"))])
        d[...] = values("<f4", (1000,), "smooth")
        _, stored = d.id.read_direct_chunk((0,))
        header = bytearray(stored[int.from_bytes(stored[11:15], "big") :][:HEADER_LEN])
        header[FLAGS] = special << 4
        header[12:16] = struct.pack("<i", HEADER_LEN + len(value))
        d.id.write_direct_chunk((0,), changed(stored, bytes(header) + value))
    with h5py.File(path) as f:
        ours = chunkwise.wrap(f["x"])[...]
        assert same(ours, f["x"][...])
        assert np.array_equal(ours, np.resize(np.array(expected, "f4"), 1000), equal_nan=True)


def test_frames_that_only_libhdf5_decodes(tmp_path: Path) -> None:
    """A codec of a plugin says so in the dataset's options; other things only in the frame."""
    path = tmp_path / "left.h5"
    lz4 = of_plugin(hdf5plugin.Blosc2("lz4"))
    data = values("<f4", (1000,), "smooth")
    with h5py.File(path, "w") as f:
        create(f, "plugin", "<f4", (10,), (10,), [Case(lz4.number, (*lz4.cd_values[:6], 33))])
        d = create(f, "unlike", "<f4", (1000,), (1000,), [lz4])
        d[...] = data
        _, stored = d.id.read_direct_chunk((0,))
        at = int.from_bytes(stored[11:15], "big")
        chunk = bytearray(stored[at : at + int.from_bytes(stored[0x27:0x2F], "big")])
        # NDCELL, the first filter of a plugin, before shuffle; the data are not its own.
        chunk[16] = 32
        d.id.write_direct_chunk((0,), changed(stored, bytes(chunk)))
    with h5py.File(path) as f:
        assert "filter 32026" in str(chunkwise.wrap(f["plugin"]).explain()["reason"])
        wrong = "filter returned failure" if HDF5 >= (2, 0) else "Cannot decompress chunk"
        with (
            pytest.raises(OSError, match=wrong),
            pytest.warns(RuntimeWarning, match="uses another filter"),
        ):
            chunkwise.wrap(f["unlike"])[...]
