"""Is everything that h5py still reads of a damaged file in what salvage saves?"""

import itertools
import json
import random
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise.errors import ChunkwiseError
from chunkwise.files.contained import contained_each
from chunkwise.repacking.salvaging import salvage, scout
from tests.support.damage import damage_header
from tests.support.tools import require_tool
from tests.support.verifying import command

Values = dict[tuple[str, ...], Any]


def make(path: Path, libver: str) -> Path:
    """Write a file of many kinds of things."""
    with h5py.File(path, "w", libver=libver) as file:
        for number in range(12):
            group = file.create_group(f"g{number:02}", track_order=number % 3 == 2)
            group.attrs["title"] = f"group {number}"
            for name in ("a", "b"):
                values = (np.arange(600) * (number + 3) % 97).reshape(20, 30).astype("<i4")
                kept = group.create_dataset(
                    name, data=values, chunks=(6, 7), compression=1, fillvalue=-1
                )
                kept.attrs["units"] = "K"
                kept.attrs["range"] = [0.0, 1.5]
            group["plain"] = np.arange(500.0) + number
            group["words"] = ["one", "two" * number, "three"]
            group["link"] = h5py.SoftLink("/g00/a")
        many = file.create_group("many")
        for number in range(60):
            many[f"d{number:02}"] = np.arange(number + 1)
        ragged = file.create_dataset("ragged", (40,), h5py.vlen_dtype("<i2"), chunks=(7,))
        for number in range(40):
            ragged[number] = np.arange(number % 5)
        file["refers"] = np.array([file["g00/a"].ref, file["g05"].ref], h5py.ref_dtype)
        file["kind"] = np.dtype([("x", "<f4"), ("y", "<i8")])
        grows = file.create_dataset("grows", (300,), "<u2", maxshape=(None,), chunks=(10,))
        grows[...] = np.arange(300)
        for number in range(30):
            file.attrs[f"attribute {number}"] = f"value {number}"
    return path


def boxes(dataset: h5py.Dataset) -> Iterator[tuple[slice, ...]]:
    """Give its chunks, or its rows."""
    chunk = dataset.chunks or (1,) * dataset.ndim
    steps = [range(0, n, c) for n, c in zip(dataset.shape, chunk, strict=True)]
    for at in itertools.product(*steps):
        yield tuple(slice(a, a + c) for a, c in zip(at, chunk, strict=True))


def plain(values: Any) -> Any:
    """Make values comparable; references become what they lead to, which is compared elsewhere."""
    if isinstance(values, h5py.Reference):
        return "reference"
    if isinstance(values, np.ndarray) and values.dtype.kind == "O":
        return [plain(one) for one in values.ravel()]
    if isinstance(values, np.ndarray):
        return (values.shape, values.tobytes())
    return values


def read(path: Path) -> Values:
    """Read carefully all that h5py gives: each attribute and chunk by itself."""
    found: Values = {}
    with h5py.File(path) as file:
        seen = set()

        def attributes(name: str, owner: Any) -> None:
            try:
                names = list(owner.attrs)
            except Exception:
                return
            for one in names:
                try:
                    found["attribute", name, one] = plain(owner.attrs[one])
                except Exception:
                    continue

        def enter(name: str, group: h5py.Group) -> None:
            attributes(name, group)
            try:
                names = list(group)
            except Exception:
                return
            for one in names:
                where = f"{name.rstrip('/')}/{one}"
                try:
                    link = group.get(one, getlink=True)
                    if isinstance(link, h5py.SoftLink):
                        found["link", where] = link.path
                        continue
                    member = group[one]
                    address = h5py.h5g.get_objinfo(member.id).objno
                except Exception:
                    continue
                if address in seen:
                    continue
                seen.add(address)
                if isinstance(member, h5py.Group):
                    found["group", where] = True
                    enter(where, member)
                elif isinstance(member, h5py.Dataset):
                    take(where, member)
                    attributes(where, member)

        def take(where: str, dataset: h5py.Dataset) -> None:
            try:
                found["dataset", where] = (dataset.shape, str(dataset.dtype))
                parts = list(boxes(dataset)) if dataset.size < 10_000 else []
            except Exception:
                return
            for part in parts:
                try:
                    found["values", where, str(part)] = plain(dataset[part])
                except Exception:
                    continue

        enter("/", file)
    return found


def apart(path: Path) -> Values | None:
    """Read in a child, which libhdf5 may crash."""
    (outcome,) = contained_each([(lambda: read(path), str(path))], 1, 60.0)
    return outcome.result


def assert_saved(damaged: Path, out: Path) -> int:
    """Salvage a file, and compare; gives how much h5py reads of the damaged one."""
    expected = apart(damaged)
    if expected is None:
        return 0
    salvage(damaged, out, force=True)
    made = apart(out)
    assert made is not None
    lost = [key for key, value in expected.items() if made.get(key) != value]
    assert not lost, lost[:10]
    assert str(chunkwise.verify(out).verdict).startswith("sound")
    return len(expected)


LIBVERS = ("earliest", "latest")


@pytest.mark.parametrize("libver", LIBVERS)
def test_nothing_is_lost_of_a_sound_file(tmp_path: Path, libver: str) -> None:
    path = make(tmp_path / "a.h5", libver)
    assert assert_saved(path, tmp_path / "out.h5") > 500


@pytest.mark.slow
@pytest.mark.parametrize("libver", LIBVERS)
@pytest.mark.parametrize("seed", range(4))
def test_what_h5py_reads_of_a_damaged_file_is_saved(
    tmp_path: Path, libver: str, seed: int
) -> None:
    path = make(tmp_path / "a.h5", libver)
    whole = path.read_bytes()
    chance = random.Random(f"{libver} {seed}")
    content = bytearray(whole)
    if seed % 4 == 3:
        del content[len(content) * chance.randint(30, 95) // 100 :]
    for _ in range((1, 4, 20, 0)[seed % 4]):
        at = chance.randrange(96, len(content))
        size = chance.choice((1, 1, 8, 100))
        content[at : at + size] = chance.randbytes(min(size, len(content) - at))
    path.write_bytes(content)
    try:
        assert_saved(path, tmp_path / "out.h5")
    except ChunkwiseError:
        # Nothing of it can be read: h5py does not either.
        with pytest.raises((OSError, RuntimeError, KeyError)), h5py.File(path) as file:
            list(file)


def datasets(path: Path, count: int = 30, *, libver: Any = "earliest") -> None:
    with h5py.File(path, "w", libver=libver) as file:
        for number in range(count):
            values = np.arange(5000).reshape(50, 100) + number
            file.create_dataset(f"d{number:02}", data=values, chunks=(10, 100), compression=1)


@pytest.mark.parametrize("libver", LIBVERS)
def test_one_bad_header_loses_one_dataset(tmp_path: Path, libver: str) -> None:
    path, out = tmp_path / "a.h5", tmp_path / "out.h5"
    datasets(path, libver=libver)
    damage_header(path, "d07")
    done = command(path, "--salvage", out, "--json")
    assert done.returncode == 1, done.stderr
    record = json.loads(done.stdout)
    (missing,) = record["salvaged"]["missing"]
    assert missing["path"] == "/d07"
    for reason in (missing["reason"], record["verified"]["damages"][0]["reason"]):
        assert re.search(r"the object header at address \d+: ", reason)
    assert record["result"]["verdict"] == "sound"
    with h5py.File(out) as file:
        assert sorted(file) == [f"d{n:02}" for n in range(30) if n != 7]
        for name, dataset in file.items():
            np.testing.assert_array_equal(
                dataset[()], np.arange(5000).reshape(50, 100) + int(name[1:])
            )
    if libver == "earliest":
        # Older tools do not read the newest format.
        subprocess.run([require_tool("h5dump"), "-H", out], check=True, capture_output=True)
    said = command(path, "--salvage", out, "--force").stdout
    assert "LOST: /d07" in said


@pytest.mark.parametrize(
    ("libver", "signature"), [("earliest", b"SNOD"), ("latest", b"BTLF\0\x05")]
)
def test_a_bad_node_of_links_loses_its_names_alone(
    tmp_path: Path, libver: str, signature: bytes
) -> None:
    path, rest = tmp_path / "a.h5", tmp_path / "rest.h5"
    with h5py.File(path, "w", libver=libver) as file:
        for number in range(200):
            file[f"group/d{number:03}"] = np.arange(9) + number
    content = bytearray(path.read_bytes())
    nodes = [found.start() for found in re.finditer(signature, content)]
    at = nodes[len(nodes) // 2]
    content[at] ^= 255
    path.write_bytes(content)
    assert f"at address {at}" in " ".join(command(path).stdout.split())
    salvage(path, rest)
    with h5py.File(rest) as file:
        kept = list(file["group"])
        assert 140 < len(kept) < 200
        for name in kept:
            assert file["group"][name][0] == int(name[1:])


@pytest.mark.parametrize("libver", LIBVERS)
@pytest.mark.parametrize("percent", [95, 80, 40])
def test_a_file_that_was_cut_off_gives_what_is_before(
    tmp_path: Path, libver: str, percent: int
) -> None:
    path, out = tmp_path / "a.h5", tmp_path / "out.h5"
    datasets(path, libver=libver)
    whole = path.read_bytes()
    with h5py.File(path) as file:
        ends = {
            name: (
                h5py.h5o.get_info(dataset.id).addr + 300,
                [at.byte_offset + at.size for at in chunks(dataset)],
            )
            for name, dataset in file.items()
        }
    end = len(whole) * percent // 100
    path.write_bytes(whole[:end])
    done = command(path, "--salvage", out)
    assert done.returncode == 1, done.stdout + done.stderr
    saved = 0
    with h5py.File(out) as file:
        kept = [one for one in every(file) if one.shape == (50, 100)]
        for dataset in kept:
            rows = dataset[()]
            first = {int(row[0]) - 100 * n for n, row in enumerate(rows) if row.any()}
            assert len(first) <= 1
            saved += sum(bool(rows[at : at + 10].any()) for at in range(0, 50, 10))
    wanted = sum(
        sum(at <= end for at in chunk_ends)
        for header, chunk_ends in ends.values()
        if header <= end
    )
    assert saved >= wanted * 0.9, (saved, wanted)


def chunks(dataset: h5py.Dataset) -> list[Any]:
    found: list[Any] = []
    dataset.id.chunk_iter(found.append)
    return found


def every(group: h5py.Group) -> Iterator[h5py.Dataset]:
    for member in group.values():
        if isinstance(member, h5py.Dataset):
            yield member
        else:
            yield from every(member)


def test_contiguous_data_is_kept_up_to_the_end(tmp_path: Path) -> None:
    path, out = tmp_path / "a.h5", tmp_path / "out.h5"
    with h5py.File(path, "w") as file:
        file["words"] = ["first"]
        data = file.create_dataset("d", data=np.arange(70_000.0).reshape(700, 100), fillvalue=-1)
        begin = data.id.get_offset()
    whole = path.read_bytes()
    path.write_bytes(whole[: begin + 8 * 40_055 + 3])
    found = salvage(path, out)
    with h5py.File(out) as file:
        # The group's list of names lay behind it.
        (made,) = [one for one in every(file) if one.shape == (700, 100)]
        values, name = made[()].ravel(), made.name
        np.testing.assert_array_equal(values[:40_055], np.arange(40_055.0))
        assert (values[40_055:] == -1).all()
    lost = sum(int(np.prod(one.shape)) for one in found.missing if one.shape and one.path == name)
    assert lost == 70_000 - 40_055


def test_a_heap_that_is_lost_loses_its_elements_alone(tmp_path: Path) -> None:
    path, out = tmp_path / "a.h5", tmp_path / "out.h5"
    with h5py.File(path, "w") as file:
        words = file.create_dataset("words", (300,), h5py.string_dtype(), chunks=(50,))
        for begin in range(0, 300, 50):
            words[begin : begin + 50] = [f"word {at} " * 9 for at in range(begin, begin + 50)]
            file.flush()
            # So that the heap begins anew after it.
            file[f"between {begin}"] = np.arange(begin)
            file.flush()
        file["whole"] = np.arange(5)
        file.attrs["name"] = "a file"
    content = bytearray(path.read_bytes())
    heap = content.index(b"GCOL", content.index(b"GCOL") + 1)
    content[heap : heap + 4] = b"GONE"
    path.write_bytes(content)
    expected: dict[int, bytes] = {}
    with h5py.File(path) as file:
        for number in range(300):
            try:
                expected[number] = file["words"][number]
            except OSError:
                continue
    assert 0 < len(expected) < 300
    found = salvage(path, out)
    with h5py.File(out) as file:
        for number in range(300):
            assert file["words"][number] == expected.get(number, b"")
        assert file["whole"][()].tolist() == [0, 1, 2, 3, 4]
    boxes = [one for one in found.missing if one.path == "/words"]
    assert sum(int(np.prod(one.shape or ())) for one in boxes) == 300 - len(expected)


def test_references_to_what_is_lost_are_null(tmp_path: Path) -> None:
    path, out = tmp_path / "a.h5", tmp_path / "out.h5"
    with h5py.File(path, "w") as file:
        for name in "abc":
            file[name] = np.arange(4)
        file["refers"] = np.array([file[name].ref for name in "abc"], h5py.ref_dtype)
    damage_header(path, "b")
    found = salvage(path, out)
    assert [one.path for one in found.missing] == ["/b"]
    assert any("/refers" in one and "1 of its references" in one for one in found.warnings)
    with h5py.File(out) as file:
        assert [bool(one) for one in file["refers"][()]] == [True, False, True]
        assert file[file["refers"][2]].name == "/c"


def test_an_attribute_that_is_lost_is_named(tmp_path: Path) -> None:
    path, out = tmp_path / "a.h5", tmp_path / "out.h5"
    with h5py.File(path, "w") as file:
        file["d"] = np.arange(4)
        file["d"].attrs["sound"] = 1
        file["d"].attrs["words"] = ["long words " * 20] * 3
    content = bytearray(path.read_bytes())
    at = content.index(b"GCOL")
    content[at : at + 4] = b"GONE"
    path.write_bytes(content)
    found = salvage(path, out)
    assert [(one.path, one.attribute) for one in found.missing] == [("/d", "words")]
    with h5py.File(out) as file:
        assert dict(file["d"].attrs) == {"sound": 1}


@pytest.mark.parametrize("libver", LIBVERS)
def test_a_superblock_with_one_damaged_byte(tmp_path: Path, libver: str) -> None:
    path, out = tmp_path / "a.h5", tmp_path / "out.h5"
    datasets(path, 5, libver=libver)
    whole = path.read_bytes()
    for at in (3, 8, 14, 20, 29, 41, 44, 46):
        content = bytearray(whole)
        content[at] ^= 0x5A
        path.write_bytes(content)
        salvage(path, out, force=True)
        with h5py.File(out) as file:
            assert len(file) == 5, at
            np.testing.assert_array_equal(file["d04"][0], np.arange(100) + 4)


def test_a_sound_file_has_nothing_to_avoid(tmp_path: Path) -> None:
    assert not any(scout(make(tmp_path / "a.h5", "latest")))
