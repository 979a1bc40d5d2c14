"""Does any damage give one error, or the names of what an index leaves out?"""

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from click.testing import CliRunner

import chunkwise
from chunkwise.cli.index import command
from chunkwise.errors import ChunkwiseError, CorruptDataError


def write(path: Path, libver: Any) -> None:
    with h5py.File(path, "w", libver=libver) as file:
        file.attrs["title"] = "text"
        chunked = file.create_dataset("chunked", data=np.arange(10), chunks=(5,), compression=1)
        chunked.attrs["units"] = "m"
        file["scale"] = np.arange(3.0)
        file["scale"].make_scale()
        file.create_dataset("scaled", (3,), "i2").dims[0].attach_scale(file["scale"])
        file["group/word"] = "word"
        file["group/link"] = h5py.SoftLink("/chunked")


def opens(path: Path) -> list[str]:
    try:
        with h5py.File(path) as file:
            # Named types are of no use to zarr.
            return [name for name in file if file.get(name, getclass=True) is not h5py.Datatype]
    except (OSError, RuntimeError, KeyError, ValueError, TypeError):
        return []


@pytest.mark.parametrize("target", ["out.json", "out.cwi"])
@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.slow
def test_no_flipped_byte_ends_in_a_traceback_or_in_silence(
    tmp_path: Path, libver: str, target: str
) -> None:
    path, out = tmp_path / "a.h5", tmp_path / target
    write(path, libver)
    sound = path.read_bytes()
    heap = range(*(_heap(sound)))
    refused = 0
    for at in range(0, len(sound), 17):
        # libhdf5 does not come back from some damaged global heaps.
        if at in heap:
            continue
        content = bytearray(sound)
        content[at] ^= 0x41
        path.write_bytes(content)
        try:
            made = chunkwise.index(path, out, force=True)
        except ChunkwiseError as error:
            refused += "a.h5: " in str(error)
            continue
        if target == "out.json":
            refs = json.loads(out.read_text())["refs"]
            left = {one.name for one in made.left_out}
            for name in opens(path):
                assert {f"{name}/.zarray", f"{name}/.zgroup"} & {*refs} or f"/{name}" in left, at
    assert refused


def _heap(content: bytes) -> tuple[int, int]:
    begin = content.index(b"GCOL")
    return begin, begin + 4096


@pytest.mark.parametrize("target", ["out.json", "out.cwi"])
def test_a_damaged_root_is_one_error(tmp_path: Path, target: str) -> None:
    path = tmp_path / "a.h5"
    write(path, "latest")
    content = bytearray(path.read_bytes())
    content[content.index(b"OHDR") + 25] ^= 0x40
    path.write_bytes(content)
    with pytest.raises(CorruptDataError, match=r"a\.h5: its root group: .*checksum"):
        chunkwise.index(path, tmp_path / target)
    assert [one.name for one in tmp_path.iterdir()] == ["a.h5"]
    done = CliRunner().invoke(command, [str(path), "-o", str(tmp_path / target)])
    assert isinstance(done.exception, CorruptDataError)


def test_a_damaged_group_is_left_out_of_a_sidecar_by_name(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    write(path, "latest")
    with h5py.File(path) as file:
        at = h5py.h5o.get_info(file["group"].id).addr
    content = bytearray(path.read_bytes())
    content[at + 20] ^= 0x40
    path.write_bytes(content)
    made = chunkwise.index(path, tmp_path / "out.cwi")
    assert [(one.name, "checksum" in one.reason) for one in made.left_out] == [("/group", True)]


def test_an_unreadable_list_of_scales_is_named(tmp_path: Path) -> None:
    """Without it, the dimensions have other names."""
    path = tmp_path / "a.h5"
    write(path, "earliest")
    content = bytearray(path.read_bytes())
    content[content.index(b"GCOL")] ^= 0x40
    path.write_bytes(content)
    left = {one.name: one.reason for one in chunkwise.index(path, tmp_path / "a.json").left_out}
    assert "HDF5 cannot read it" in left["/scaled@DIMENSION_LIST"]
