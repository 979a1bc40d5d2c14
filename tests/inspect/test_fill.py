"""Is the fill value said in words, whatever its type?"""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from h5py import h5d, h5p, h5t

from chunkwise.inspection.collect import allocation_time, fill_time, fill_value
from tests.support.inspect_files import FILLS, make_fills
from tests.support.versions import in_memory

EXPECTED = {
    "float": "-999.3",
    "big-endian": "1e+20",
    "nan": "nan",
    "half": "0.1",
    "integer": "-32768",
    "unsigned": "18446744073709551615",
    "string": "'none'",
    "unicode": "'höhe'",
    "variable string": "'missing'",
    "bool": "True",
    "enum": "B",
    "opaque": "0x0aff00",
    "complex": "(1-2j)",
    "default": "default",
    "undefined": "undefined",
}


def said(dataset: h5py.Dataset) -> str:
    return fill_value(dataset.id.get_create_plist(), dataset.id.get_type())


def test_fill_values(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    make_fills(path)
    with h5py.File(path) as file:
        assert {name: said(file[name]) for name in EXPECTED} == EXPECTED
    assert {name for name, *_ in FILLS} < set(EXPECTED)


COMPOUND = np.dtype([("a", "<i4"), ("b", "S3"), ("c", "<f4", (2,)), ("d", [("e", "?")])])


@pytest.mark.parametrize(
    ("dtype", "value", "expected"),
    [
        (COMPOUND, (1, b"z", (1, 2.5), (True,)), "{a: 1, b: 'z', c: [1.0, 2.5], d: {e: True}}"),
        ("S200", b"x" * 200, "'" + "x" * 96 + "..."),
        ("S3", b"a\xffb", "'a\udcffb'"),
        (h5py.enum_dtype({"A": 1}, "i2"), 7, "7"),
    ],
)
def test_more_fill_values(dtype: Any, value: Any, expected: str) -> None:
    with in_memory() as file:
        given = np.array(value, dtype)[()]
        assert said(file.create_dataset("x", (3,), dtype, fillvalue=given)) == expected


@pytest.mark.parametrize(
    ("datatype", "expected"),
    [
        (h5t.array_create(h5t.STD_I32LE, (2,)), "set"),
        (h5t.vlen_create(h5t.STD_I32LE), "set"),
        (h5t.UNIX_D32LE, "set"),
        (h5t.STD_REF_OBJ, "set"),
        (h5t.create(h5t.OPAQUE, 1 << 20), "set"),
        (h5t.STD_B8LE, "7"),
        (h5t.NATIVE_LDOUBLE, "7.0"),
    ],
)
def test_types_that_the_value_does_not_fit(datatype: h5t.TypeID, expected: str) -> None:
    dcpl = h5p.create(h5p.DATASET_CREATE)
    dcpl.set_fill_value(np.array(7, "i4"))
    assert fill_value(dcpl, datatype) == expected


def test_times_of_new_properties() -> None:
    dcpl = h5p.create(h5p.DATASET_CREATE)
    assert (fill_time(dcpl), allocation_time(dcpl)) == ("if set", "late")
    dcpl.set_fill_time(h5d.FILL_TIME_NEVER)
    dcpl.set_alloc_time(h5d.ALLOC_TIME_INCR)
    assert (fill_time(dcpl), allocation_time(dcpl)) == ("never", "incremental")
