"""Are datasets read whose lengths of chunks take more bytes than they need?

HDF5 2.0 refuses them.
"""

import contextlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chunkwise
from chunkwise.files.mended import wide_lengths
from chunkwise.files.native import damaged_metadata
from chunkwise.verdicts import FileVerdict
from tests.support.native import keep_without_links
from tests.support.web import serving
from tests.support.wide import widen

REFUSES = h5py.version.hdf5_version_tuple[:2] in ((2, 0), (2, 1))
LIBVER = ("v110", "v110")
FILTERS: list[dict[str, Any]] = [{}, {"compression": 1, "shuffle": True}, {"fletcher32": True}]
# One for each kind of chunk index.
KINDS: list[dict[str, Any]] = [
    {"chunks": (50, 10)},
    {"chunks": (7, 4)},
    {"chunks": (7, 4), "maxshape": (None, 10)},
    {"chunks": (7, 4), "maxshape": (None, None)},
    {"chunks": (7, 4), "dtype": "S300"},
]


def write(path: Path, **options: Any) -> np.ndarray[Any, Any]:
    values = np.arange(500).reshape(50, 10).astype(options.pop("dtype", "<i4"))
    with h5py.File(path, "w", libver=LIBVER) as file:
        made = file.create_dataset("g/x", data=values, **options)
        made.attrs["unit"] = "K"
        file["plain"] = values
        return made[:]  # type: ignore[no-any-return]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@given(filters=st.sampled_from(FILTERS), width=st.integers(4, 8), data=st.data())
def test_they_are_read_as_with_narrow_lengths(
    kind: dict[str, Any], filters: dict[str, Any], width: int, data: st.DataObject
) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "a.h5")
        values = write(path, **kind, **filters)
        metadata = damaged_metadata(path)
        assert metadata is not None
        assert metadata.narrowed() == []
        del metadata  # It has the file open
        narrow = path.read_bytes()
        assert widen(path, width) == 1
        assert (wide_lengths(path) is not None) == REFUSES
        with chunkwise.open(path) as file:
            plain = file["plain"]
            found = file["g/x"]
            rows = data.draw(st.slices(50))
            assert np.array_equal(found[rows], values[rows])
            assert (found.chunks, found.attrs["unit"]) == (kind["chunks"], "K")
            assert found.explain()["path"] == "chunked"
            assert (found.explain()["refused"] is not None) == REFUSES
            assert file["g/x"] is found
            assert plain[3, 4] == values[3, 4]
            assert file["plain"] is plain
        assert path.read_bytes() != narrow


@contextlib.contextmanager
def given_as(kind: str, path: Path) -> Iterator[Any]:
    """A file as something that is no path."""
    content = path.read_bytes()
    if kind == "bytes":
        yield io.BytesIO(content)
    elif kind == "open":
        with path.open("rb") as stream:
            yield stream
    elif kind == "url":
        pytest.importorskip("aiohttp")
        with serving({"/a.h5": content}) as server:
            yield f"{server.url}/a.h5"
    else:
        fsspec = pytest.importorskip("fsspec")
        with fsspec.open("memory://wide.h5", "wb") as stream:
            stream.write(content)
        if kind == "memory":
            yield "memory://wide.h5"
        else:
            with fsspec.open("memory://wide.h5", "rb") as stream:
                yield stream


@pytest.mark.parametrize("kind", ["bytes", "open", "url", "memory", "fsspec"])
def test_files_without_a_path_are_read_too(wide: Path, kind: str) -> None:
    with given_as(kind, wide) as given, chunkwise.open(given) as file:
        plain = file["plain"]
        found = file["g/x"]
        assert found[:].tolist() == np.arange(500).reshape(50, 10).tolist()
        assert found.chunks == (7, 4)
        said = found.explain()
        assert said["path"] == "chunked"
        assert ("HDF5 1.10 to 1.14 and 2.2 open it" in str(said["refused"])) == REFUSES
        assert plain[3, 4] == 34
        assert file["plain"].explain()["refused"] == said["refused"]


def test_h5py_says_what_to_do_when_it_is_patched(wide: Path) -> None:
    with chunkwise.patch_h5py(), h5py.File(wide) as file:
        if REFUSES:
            with pytest.raises(KeyError, match="open the file with"):
                file["g/x"]
            assert file.get("g/x") is None
        else:
            assert file["g/x"][49, 9] == 499
        with pytest.raises(KeyError, match="doesn't exist"):
            file["nothing"]
        with chunkwise.open(wide.open("rb")) as ours:
            assert ours["g/x"][49, 9] == 499


def test_what_was_opened_elsewhere_says_what_to_do(wide: Path) -> None:
    with h5py.File(wide) as theirs, chunkwise.File(theirs.id) as file:
        if REFUSES:
            with pytest.raises(KeyError, match="chunkwise repack"):
                file["g/x"]


@pytest.fixture
def wide(tmp_path: Path) -> Path:
    path = tmp_path / "wide.h5"
    write(path, chunks=(7, 4), compression=1)
    assert widen(path) == 1
    return path


def test_they_are_sound_and_a_copy_opens_everywhere(wide: Path, tmp_path: Path) -> None:
    found = chunkwise.verify(wide)
    assert (found.verdict, found.datasets) == (FileVerdict.SOUND, 2)
    assert any("1.14 and 2.2 open it" in note.reason for note in found.notes) == REFUSES
    facts = chunkwise.inspect(wide)
    assert [one.code for one in facts.findings if one.severity == "error"] == (
        ["refused-here"] if REFUSES else []
    )
    assert facts.verdict is FileVerdict.SOUND
    for salvage in (False, True):
        copy = tmp_path / f"copy{salvage}.h5"
        assert chunkwise.repack(wide, copy, salvage=salvage).verified == "proof"
        with h5py.File(copy) as file:
            assert file["g/x"][49, 9] == 499
            assert file["g/x"].attrs["unit"] == "K"
    chunkwise.repack(wide, in_place=True)
    with h5py.File(wide) as file:
        assert file["g/x"][49, 9] == 499


@pytest.mark.parametrize("suffix", [".json", ".cwi"])
def test_an_index_has_them(wide: Path, tmp_path: Path, suffix: str) -> None:
    made = tmp_path / f"wide{suffix}"
    found = chunkwise.index(wide, made)
    assert (found.left_out, found.chunks) == ((), 24 + (suffix == ".json"))
    narrow = tmp_path / "narrow" / "wide.h5"
    narrow.parent.mkdir()
    write(narrow, chunks=(7, 4), compression=1)
    chunkwise.index(
        narrow, tmp_path / f"narrow{suffix}", url=str(wide) if suffix == ".json" else None
    )
    if suffix == ".json":
        # Their headers are longer, so that chunks may lie elsewhere.
        ours, theirs = (
            json.loads((tmp_path / f"{name}.json").read_text())["refs"]
            for name in ("wide", "narrow")
        )
        assert ours.keys() == theirs.keys()
        content = wide.read_bytes(), narrow.read_bytes()
        for key, one in ours.items():
            pieces = [
                bytes_[ref[1] : ref[1] + ref[2]] if isinstance(ref, list) else ref
                for bytes_, ref in zip(content, (one, theirs[key]), strict=True)
            ]
            assert pieces[0] == pieces[1], key


def test_what_only_references_lead_to_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver=LIBVER) as file:
        hidden = file.create_dataset("hidden", data=np.arange(600), chunks=(300,))
        file["cells"] = np.array([hidden.ref], h5py.ref_dtype)
        keep_without_links(hidden)
        del file["hidden"]
    assert widen(path) == 1
    with chunkwise.open(path) as file:
        assert file[file["cells"][0]][599] == 599
    assert chunkwise.verify(path).verdict is FileVerdict.SOUND


def test_damage_in_them_is_damage(wide: Path) -> None:
    with chunkwise.open(wide) as file:
        chunk = file["g/x"].id.get_chunk_info(3)
    content = bytearray(wide.read_bytes())
    content[chunk.byte_offset + chunk.size // 2] ^= 0x55
    wide.write_bytes(content)
    assert chunkwise.verify(wide).verdict is FileVerdict.DAMAGED
    with chunkwise.open(wide) as file, pytest.raises(chunkwise.errors.CorruptDataError):
        file["g/x"][:]


def test_a_file_that_was_replaced_is_not_taken_for_it(wide: Path) -> None:
    with chunkwise.open(wide) as file:
        other = wide.with_suffix(".new")
        write(other, chunks=(7, 4))
        other.replace(wide)
        if REFUSES:
            with pytest.raises(chunkwise.errors.FileChangedError):
                file["g/x"]
