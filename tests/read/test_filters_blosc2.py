"""Blosc2's frames: what is decoded natively, and what is left to libhdf5."""

from __future__ import annotations

import struct
from pathlib import Path

import h5py
import hdf5plugin
import numpy as np
import pytest

import chunkwise
from tests.support.filtered import (
    Case,
    create,
    of_plugin,
    values,
)
from tests.support.reading import same
from tests.support.versions import HDF5

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


def test_what_only_libhdf5_decodes(tmp_path: Path) -> None:
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
        assert "filter 32026" in chunkwise.wrap(f["plugin"]).explain()["reason"]
        wrong = "filter returned failure" if HDF5 >= (2, 0) else "Cannot decompress chunk"
        with (
            pytest.raises(OSError, match=wrong),
            pytest.warns(RuntimeWarning, match="uses another filter"),
        ):
            chunkwise.wrap(f["unlike"])[...]
