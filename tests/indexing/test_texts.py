"""Do references give the text and the numbers that HDF5 and xarray give of the file itself?"""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from h5py import h5a, h5d, h5p, h5s, h5t

import chunkwise
from chunkwise.indexing.attributes import _unpacked
from tests.support.indexing import by_xarray, by_zarr

PADDINGS = {"zero": h5t.STR_NULLPAD, "end": h5t.STR_NULLTERM, "space": h5t.STR_SPACEPAD}


def text_type(nbytes: int, padding: int) -> Any:
    kind = h5t.C_S1.copy()
    kind.set_size(nbytes)
    kind.set_strpad(padding)
    return kind


def add_texts(file: h5py.File, name: str, texts: list[bytes], padding: int, chunk: int) -> None:
    """Write texts as they are, byte by byte."""
    raw = np.frombuffer(b"".join(texts), f"V{len(texts[0])}").copy()
    kind, properties = text_type(len(texts[0]), padding), h5p.create(h5p.DATASET_CREATE)
    if chunk:
        properties.set_chunk((chunk,))
    space = h5s.create_simple((len(texts),))
    dataset = h5d.create(file.id, name.encode(), kind, space, properties)
    dataset.write(h5s.ALL, h5s.ALL, raw, kind)


@pytest.mark.parametrize("chunk", [0, 2])
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize(
    "texts", [[b"ab  ", b"c\0\0\0", b"    "], [b"ab\0x", b"c  d", b"abcd"], [b"a\0\0\0"] * 3]
)
def test_text_of_fixed_length_is_read_as_h5py_reads_it(
    tmp_path: Path, padding: str, texts: list[bytes], chunk: int
) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        add_texts(file, "text", texts, PADDINGS[padding], chunk)
        kind = text_type(4, PADDINGS[padding])
        attribute = h5a.create(file.id, b"note", kind, h5s.create(h5s.SCALAR))
        attribute.write(np.frombuffer(texts[0], "V4").copy(), kind)
    made = chunkwise.index(path, tmp_path / "a.json")
    assert not made.left_out
    group = by_zarr(tmp_path / "a.json")
    with h5py.File(path) as file:
        assert group["text"][...].tolist() == file["text"][...].tolist()
        assert group.attrs["note"] == file.attrs["note"].decode()
    differs = padding == "space" or (padding == "end" and b"ab\0x" in texts)
    assert made.inlined == differs
    left = chunkwise.index(path, tmp_path / "a.json", inline=0, force=True).left_out
    assert [one.name for one in left] == (["/text"] if differs else [])


def test_scales_whose_class_is_padded_with_spaces_are_scales(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["x"], file["v"] = np.arange(3), np.arange(3)
        kind = text_type(15, h5t.STR_SPACEPAD)
        attribute = h5a.create(file["x"].id, b"CLASS", kind, h5s.create(h5s.SCALAR))
        attribute.write(np.frombuffer(b"DIMENSION_SCALE", "V15").copy(), kind)
        file["v"].dims[0].attach_scale(file["x"])
    chunkwise.index(path, tmp_path / "a.json")
    assert by_zarr(tmp_path / "a.json")["v"].attrs["_ARRAY_DIMENSIONS"] == ["x"]


def test_variables_that_are_unpacked_to_a_wider_type_are_named(tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    netcdf = pytest.importorskip("netCDF4")
    path = tmp_path / "a.nc"
    packed = {
        "scale": {"scale_factor": np.float32(0.1)},
        "both": {"scale_factor": np.float32(0.1), "add_offset": np.float32(3)},
        "double": {"scale_factor": 0.1, "add_offset": 3.0},
        "offset": {"add_offset": np.float32(3)},
        "mixed": {"scale_factor": np.float32(0.1), "add_offset": 3.0},
        "plain": {"valid_max": np.float32(0.1)},
    }
    with netcdf.Dataset(path, "w") as file:
        file.createDimension("x", 9)
        for name, attributes in packed.items():
            made = file.createVariable(name, "i2", ("x",), fill_value=-1)
            made.setncatts(attributes)
            made.set_auto_maskandscale(False)
            made[:] = np.arange(9)
    found = chunkwise.index(path, tmp_path / "a.json")
    with xarray.open_dataset(path, engine="netcdf4") as theirs:
        ours = by_xarray(tmp_path / "a.json")
        named = {one.name[1:]: one.reason for one in found.wider}
        assert {*named} == {one for one in theirs if ours[one].dtype != theirs[one].dtype}
        assert {*named} == {"scale", "both"}
        for name in theirs:
            assert name not in named or f"to {ours[name].dtype}, " in named[name]
            np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-7)
        values = ours["scale"].astype("f4").values
        np.testing.assert_array_equal(values, theirs["scale"].values)
    assert any("wider: /scale: xarray unpacks it to float64" in line for line in found.lines())


@pytest.mark.parametrize("stored", ["i1", "i2", "u4", "i8", "f4", "f8"])
@pytest.mark.parametrize("scale", [None, "f4", "f8", "i2"])
@pytest.mark.parametrize("offset", [None, "f4", "f8", "i2"])
def test_types_are_chosen_as_xarray_does(
    stored: str, scale: str | None, offset: str | None
) -> None:
    xarray = pytest.importorskip("xarray")
    if scale is None and offset is None:
        return
    names = {"scale_factor": scale, "add_offset": offset}
    attributes = {name: np.dtype(kind).type(2) for name, kind in names.items() if kind}
    packed = xarray.Dataset({"v": ("x", np.ones(3, stored), attributes)})
    types = (None if kind is None else np.dtype(kind) for kind in (scale, offset))
    assert xarray.decode_cf(packed)["v"].dtype == _unpacked(np.dtype(stored), *types)
