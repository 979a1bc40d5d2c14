"""What is saved of objects that libhdf5 does not read, and is the damaged structure named?

One structure is damaged in each file.  `verify` and `--salvage` name it, and where it is.
"""

import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise.repacking.salvaging import salvage
from tests.support.damage import damage_attribute, damage_header, overwrite
from tests.support.wide import seal

ATTRIBUTES: dict[str, Any] = {
    "count": np.int16(-3),
    "units": "K",
    "empty": "",
    "words": np.array(["one", "zwölf"], h5py.string_dtype()),
    "fixed": np.bytes_(b"abc"),
    "table": np.array([(1, 2.5)], [("a", "<i4"), ("b", ">f8")]),
    "matrix": np.arange(6.0).reshape(2, 3),
    "flag": np.bool_(True),
    "nothing": h5py.Empty("<f4"),
}


def write(path: Path, libver: str, more: int = 0, links: int = 0, of: int | None = None) -> None:
    with h5py.File(path, "w", libver=libver) as file:
        for name in "abc":
            made = file.create_dataset(name, data=np.arange(100), chunks=(10,))
            made.attrs.update(list(ATTRIBUTES.items())[:of])
            made.attrs[f"last of {name}"] = 1
            made.attrs.update({f"more {number:02}": number for number in range(more)})
        for number in range(links):
            file[f"g/d{number:02}"] = [number]


def first(path: Path, signature: bytes, behind: str | None = None) -> int:
    """Find the last structure before a text, or the first of all."""
    content = path.read_bytes()
    if behind is None:
        return content.index(signature)
    return content.rindex(signature, 0, content.index(behind.encode()))


def old_message(path: Path) -> str:
    write(path, "earliest")
    damage_attribute(path, "last of b")
    return "attribute"


def new_message(path: Path) -> str:
    write(path, "latest", of=2)
    content = bytearray(path.read_bytes())
    at = content.index(b"last of b\0")
    assert content[at - 9] == 3
    content[at - 9] = 0x77  # Its version
    path.write_bytes(seal(content, content.rindex(b"OHDR", 0, at)))
    return "attribute"


def dense_node(path: Path) -> str:
    write(path, "latest", more=30)
    at = first(path, b"BTLF\0\x08")
    overwrite(path, at + 10, b"\xee" * 4)
    return "node of a version 2 B-tree"


def dense_heap(path: Path) -> str:
    write(path, "latest", more=30)
    at = first(path, b"FHDB")
    overwrite(path, at + 40, b"\xee" * 4)
    return "block of a fractal heap"


IN_ATTRIBUTES = [old_message, new_message]
DENSE = [dense_node, dense_heap]


def said_by_verify(path: Path) -> str:
    found = chunkwise.verify(path)
    damages, notes = (one.reason for one in found.damages), (one.reason for one in found.notes)
    return "; ".join((*damages, *notes))


def named(structure: str, said: str) -> bool:
    return bool(re.search(rf"the {structure} at address \d+: ", said))


@pytest.mark.parametrize("make", IN_ATTRIBUTES, ids=lambda make: make.__name__)
def test_other_attributes_are_saved(make: Callable[[Path], str], tmp_path: Path) -> None:
    path, out = tmp_path / "a.h5", tmp_path / "out.h5"
    structure = make(path)
    assert named(structure, said_by_verify(path))
    found = salvage(path, out)
    (missing,) = found.missing
    assert missing.path == "/b"
    assert named(structure, missing.reason)
    assert found.verified == "proof"
    with h5py.File(out) as file:
        names = sorted(one for one in file["a"].attrs if one in ATTRIBUTES)
        assert sorted(file["a"].attrs) == sorted([*names, "last of a"])
        assert sorted(file["b"].attrs) == names
        assert (file["b"][:] == np.arange(100)).all()
        for key in names:
            same(file["b"].attrs, file["a"].attrs, key)


def same(found: Any, expected: Any, key: str) -> None:
    """The same attribute, of the same type."""
    one, other = found.get_id(key), expected.get_id(key)
    assert one.get_type() == other.get_type(), key
    assert (one.shape, one.dtype) == (other.shape, other.dtype), key
    if isinstance(expected[key], h5py.Empty):
        assert isinstance(found[key], h5py.Empty)
    else:
        assert np.array_equal(found[key], expected[key]), key


@pytest.mark.parametrize("make", DENSE, ids=lambda make: make.__name__)
def test_everything_else_is_saved(make: Callable[[Path], str], tmp_path: Path) -> None:
    path, out = tmp_path / "a.h5", tmp_path / "out.h5"
    structure = make(path)
    assert named(structure, said_by_verify(path))
    found = salvage(path, out)
    (missing,) = found.missing
    assert named(structure, missing.reason)
    with h5py.File(out) as file:
        counts = {name: len(file[name].attrs) for name in "abc"}
        whole = len(ATTRIBUTES) + 31
        assert [count for name, count in counts.items() if f"/{name}" != missing.path] == [
            whole,
            whole,
        ]
        assert all((file[name][:] == np.arange(100)).all() for name in "abc")


def test_a_bad_header_is_named(tmp_path: Path) -> None:
    path, out = tmp_path / "a.h5", tmp_path / "out.h5"
    write(path, "earliest")
    damage_header(path, "b")
    assert named("object header", said_by_verify(path))
    (missing,) = salvage(path, out).missing
    assert named("object header", missing.reason)


def test_a_bad_link_is_named_and_others_are_kept(tmp_path: Path) -> None:
    path, out = tmp_path / "a.h5", tmp_path / "out.h5"
    write(path, "latest", links=6)
    content = bytearray(path.read_bytes())
    at = content.index(b"d03")
    assert content[at - 3] == 1
    content[at - 3] = 0x55  # The version of the message
    path.write_bytes(seal(content, content.rindex(b"OHDR", 0, at)))
    assert named("link", said_by_verify(path))
    found = salvage(path, out)
    assert [one.path for one in found.missing] == ["/g"]
    assert named("link", found.missing[0].reason)
    with h5py.File(out) as file:
        assert sorted(file["g"]) == ["d00", "d01", "d02", "d04", "d05"]
        assert [one[0] for one in file["lost+found"].values()] == [3]


@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.parametrize("user_block", [0, 512])
def test_without_a_root_group_all_is_in_lost_and_found(
    libver: str, user_block: int, tmp_path: Path
) -> None:
    path, out = tmp_path / "a.h5", tmp_path / "out.h5"
    with h5py.File(path, "w", libver=libver, userblock_size=user_block) as file:
        for number in range(4):
            file[f"d{number}"] = np.arange(50) + number
            file[f"d{number}"].attrs["number"] = number
        root = h5py.h5o.get_info(file.id).addr
    overwrite(path, user_block + root, struct.pack("<Q", 0xEEEE))
    found = salvage(path, out)
    assert any("root group is lost" in one for one in found.warnings)
    with h5py.File(out) as file:
        kept = {one.attrs["number"]: one[:] for one in file["lost+found"].values()}
        assert sorted(kept) == [0, 1, 2, 3]
        assert all((kept[number] == np.arange(50) + number).all() for number in kept)
