"""Is a sound copy called sound, whatever the type of its elements?"""

import os
from pathlib import Path

import h5py
import numpy as np
import numpy.typing as npt
import pytest
from h5py import h5d, h5p, h5s, h5t

import chunkwise
from chunkwise.errors import WrongValueError
from chunkwise.proof.compare import prove
from chunkwise.proof.values import first_difference, numpy_type

ROWS = 30_000
NARROW = h5t.STD_U16LE.copy()
NARROW.set_precision(10)
NARROW.set_offset(3)
TEXT = h5t.C_S1.copy()
TEXT.set_size(8)
TEXT.set_strpad(h5t.STR_NULLTERM)
OPAQUE = h5t.create(h5t.OPAQUE, 8)
OPAQUE.set_tag(b"ours")
ARRAY = h5t.array_create(h5t.IEEE_F32LE, (3, 2))
RECORD = h5t.create(h5t.COMPOUND, 16)
RECORD.insert(b"a", 2, h5t.STD_I16BE)
RECORD.insert(b"b", 8, h5t.IEEE_F64LE)
ALIGNED = h5t.create(h5t.COMPOUND, 16)
ALIGNED.insert(b"time", 0, h5t.STD_U64LE)
ALIGNED.insert(b"value", 8, h5t.STD_U16LE)
# NumPy has none of 112 bits of mantissa; PyTables' tests have a file with it.
QUADRUPLE = h5t.IEEE_F64LE.copy()
QUADRUPLE.set_size(16)
QUADRUPLE.set_precision(128)
QUADRUPLE.set_fields(127, 112, 15, 0, 112)
QUADRUPLE.set_ebias(16383)
TYPES = {
    "narrow integer": NARROW,
    "text with bytes after its end": TEXT,
    "opaque": OPAQUE,
    "bit field": h5t.STD_B32LE,
    "array": ARRAY,
    "compound with gaps": RECORD,
    "compound with a gap at its end": ALIGNED,
    "quadruple": QUADRUPLE,
    "long double": h5t.NATIVE_LDOUBLE,
    "big-endian": h5t.IEEE_F64BE,
    "boolean": h5t.py_create(np.dtype(bool)),
    "float of two bytes": h5t.IEEE_F16LE,
}


def write(path: Path, datatype: h5t.TypeID, raw: npt.NDArray[np.uint8]) -> None:
    """Write elements as they are stored, past all conversion."""
    with h5py.File(path, "w") as file:
        dcpl = h5p.create(h5p.DATASET_CREATE)
        dcpl.set_chunk((7_000,))
        dcpl.set_deflate(1)
        made = h5d.create(file.id, b"x", datatype, h5s.create_simple((ROWS,)), dcpl)
        made.write(h5s.ALL, h5s.ALL, raw, datatype)


@pytest.fixture
def raw() -> npt.NDArray[np.uint8]:
    return np.random.default_rng(5).integers(0, 2, ROWS * 32, "u1")


@pytest.mark.parametrize("name", TYPES)
def test_a_repack_of_each_type_is_proved(
    tmp_path: Path, raw: npt.NDArray[np.uint8], name: str
) -> None:
    datatype, path, out = TYPES[name], tmp_path / "a.h5", tmp_path / "b.h5"
    write(path, datatype, raw[: ROWS * datatype.get_size()])
    done = chunkwise.repack(path, out, chunk="*:4000", filters="shuffle+deflate:2")
    assert done.verified == "proof"
    with h5py.File(out, "r+") as file:
        size = datatype.get_size()
        one = raw[20_000 * size : 20_001 * size].copy()
        one[min(2, size - 1)] ^= 8
        space = file["x"].id.get_space()
        space.select_hyperslab((20_000,), (1,))
        file["x"].id.write(h5s.create_simple((1,)), space, one, datatype)
    with h5py.File(path) as source, pytest.raises(WrongValueError, match=r"\[20000\]"):
        prove(source, out, str(out), memory_nbytes=1 << 26)


def test_types_that_reading_would_convert_are_left_to_libhdf5() -> None:
    converted = {"narrow integer", "text with bytes after its end", "array", "bit field"}
    left = {name for name, datatype in TYPES.items() if numpy_type(datatype) is None}
    assert converted <= left
    assert not {"big-endian", "boolean", "float of two bytes"} & left


def test_a_forked_process_compares_too() -> None:
    values = np.arange(4 << 20, dtype="u4")
    other = values.copy()
    other[3_000_000] += 1
    assert first_difference(values, other) == 3_000_000
    child = os.fork()
    if child == 0:
        os._exit(first_difference(values, other) != 3_000_000)
    assert os.waitpid(child, 0)[1] == 0
