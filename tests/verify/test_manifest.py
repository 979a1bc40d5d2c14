"""Does a manifest prove that nothing has changed, whatever a repack did, and only then?"""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise.errors import AlreadyExistsError, FileFormatError, UsageError
from chunkwise.files import durable
from chunkwise.files.classic import classic_end
from chunkwise.manifest import manifest as manifests
from chunkwise.manifest.summing import sum_values
from chunkwise.verifying.file import ManifestOptions, verify_file
from tests.support.tools import needs_netcdf
from tests.support.verifying import command, field


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.h5"
    kinds = np.dtype([("time", ">i8"), ("name", "S5"), ("flags", "u1", (3,))])
    with h5py.File(path, "w") as file:
        group = file.create_group("g")
        cube = file.create_dataset("g/cube", data=field(1, (30, 40, 50)), chunks=(5, 10, 50))
        cube.attrs["units"] = "K"
        file["g/big endian"] = np.linspace(0, 1, 500).astype(">f8")
        file["words"] = np.array(["a", "", "long word" * 9], h5py.string_dtype())
        rows = file.create_dataset("rows", (3,), h5py.vlen_dtype(np.dtype("<i2")))
        for number in range(3):
            rows[number] = np.arange(number)
        records = np.zeros(7, kinds)
        records["time"] = np.arange(7)
        file["records"] = records
        file["flag"] = np.array([True, False])
        file["half"] = np.float16(2.5)
        file["nothing"] = h5py.Empty("f4")
        file["leads"] = np.array([cube.ref, group.ref], h5py.ref_dtype)
        file["part"] = np.array([cube.regionref[2:4, :, 5]], h5py.regionref_dtype)
        file["soft"] = h5py.SoftLink("/g/cube")
        file["z"] = cube
        file["type"] = np.dtype("<i4")
        group.attrs["refers"] = cube.ref
        group.attrs["list"] = ["x", "yz"]
    return path


@pytest.mark.parametrize(
    "rules",
    [
        {"chunk": {"g/cube": (30, 4, 4)}, "filters": "shuffle+deflate:3"},
        {"chunk": "contiguous", "filters": "none"},
        {"chunk": "auto", "filters": "zstd:3", "low": "v110"},
        {"filters": {"g/cube": "lzf"}, "page_size": 4096},
    ],
)
def test_a_repack_changes_no_manifest(rules: dict[str, Any], source: Path) -> None:
    first, second = source.with_name("1.json"), source.with_name("2.json")
    assert chunkwise.verify(source, write_manifest=first).verdict == "sound"
    out = source.with_name("out.h5")
    chunkwise.repack(source, out, **rules)
    assert chunkwise.verify(out, manifest=first).verdict == "sound"
    chunkwise.verify(out, write_manifest=second)
    before, after = manifests.read(first), manifests.read(second)
    assert before["in.h5"] == after["out.h5"]


# What changes, and where it is found.
CHANGES: dict[str, tuple[str, Callable[[h5py.File], Any]]] = {
    "value": ("/g/cube", lambda f: f["g/cube"].__setitem__((7, 8, 9), -1)),
    "attribute": ("/g/cube@units", lambda f: f["g/cube"].attrs.__setitem__("units", "C")),
    "type of an attribute": (
        "/g/cube@units",
        lambda f: f["g/cube"].attrs.create("units", b"K", dtype="S1"),
    ),
    "new attribute": ("/words@new", lambda f: f["words"].attrs.__setitem__("new", 1)),
    "word": ("/words", lambda f: f["words"].__setitem__(1, "x")),
    "row": ("/rows", lambda f: f["rows"].__setitem__(2, [0, 2])),
    "record": ("/records", lambda f: f["records"].__setitem__(("flags", 3), (0, 1, 0))),
    "reference": ("/leads", lambda f: f["leads"].__setitem__(0, f["words"].ref)),
    "region": ("/part", lambda f: f["part"].__setitem__(0, f["g/cube"].regionref[2:5, :, 5])),
    "link": (
        "/soft",
        lambda f: (f.__delitem__("soft"), f.__setitem__("soft", h5py.SoftLink("/words"))),
    ),
    "lost object": ("/flag", lambda f: f.__delitem__("flag")),
    "sign of zero": ("/g/big endian", lambda f: f["g/big endian"].__setitem__(0, -0.0)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_each_change_is_found(change: str, source: Path) -> None:
    where, work = CHANGES[change]
    known = source.with_name("known.json")
    chunkwise.verify(source, write_manifest=known)
    with h5py.File(source, "r+") as file:
        work(file)
    found = chunkwise.verify(source, manifest=known)
    assert [damage.path for damage in found.damages] == [where]
    assert {damage.kind for damage in found.damages} == {"manifest"}


def test_a_repack_that_rounds_values_is_not_what_the_manifest_has(source: Path) -> None:
    known, made = source.with_name("known.json"), source.with_name("made.json")
    out = source.with_name("out.h5")
    chunkwise.verify(source, write_manifest=known)
    with h5py.File(source, "r+") as file:
        file["float"] = np.random.default_rng(1).random((40, 40)).astype("f4")
    rounding: dict[str, Any] = {"chunk": "auto", "filters": {"float": "scaleoffset:ds:2"}}
    chunkwise.repack(source, out, **rounding)
    chunkwise.verify(out, write_manifest=made)
    sums = manifests.read(made)["out.h5"]
    assert sums["/float"]["sha256"] != sum_of(source)
    assert sums["/g/cube"] == manifests.read(known)["in.h5"]["/g/cube"]


def test_manifests_of_folders(source: Path) -> None:
    folder = source.parent
    (folder / "a" / "b").mkdir(parents=True)
    first = source.rename(folder / "a" / "one.h5")
    second = folder / "a" / "b" / "two.h5"
    chunkwise.repack(first, second, filters="deflate:1")
    known = folder / "known.json"
    done = command("a", "--write-manifest", known, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert set(manifests.read(known)) == {"one.h5", "b/two.h5"}
    moved = (folder / "a").rename(folder / "moved")
    assert command(moved, "--manifest", known).returncode == 0
    with h5py.File(moved / "one.h5", "r+") as file:
        file["half"][()] = 3.0
    (moved / "b" / "two.h5").rename(moved / "b" / "three.h5")
    done = command(moved, "--manifest", known, "--json")
    assert done.returncode == 1
    records = [json.loads(line) for line in done.stdout.splitlines()]
    found = {Path(one["path"]).name: one["damages"][0] for one in records}
    assert found["one.h5"]["path"] == "/half"
    assert found["three.h5"]["reason"] == "the file is not in the manifest"
    assert found["two.h5"]["reason"] == "the file is missing"


def test_what_cannot_be_a_manifest(source: Path, tmp_path: Path) -> None:
    known = tmp_path / "known.json"
    for content, said in (
        (None, "cannot be read"),
        ("{", "not JSON"),
        ("[]", "no manifest"),
        ('{"format": "chunkwise-manifest", "version": 9}', "version 9"),
        (
            '{"format": "chunkwise-manifest", "version": 1, "algorithm": "sha256-of-tiles-4MiB",'
            ' "files": {"a": 1}}',
            "lists no files",
        ),
    ):
        if content is not None:
            known.write_text(content)
        with pytest.raises(UsageError, match=said):
            chunkwise.verify(source, manifest=known)
    with pytest.raises(AlreadyExistsError, match="exists"):
        chunkwise.verify(source, write_manifest=known)
    assert chunkwise.verify(source, write_manifest=known, force=True).verdict == "sound"
    many = json.loads(known.read_text())
    many["files"] = {"x": {}, "y": {}}
    known.write_text(json.dumps(many))
    with pytest.raises(UsageError, match="does not know a file"):
        chunkwise.verify(source, manifest=known)


def test_a_damaged_file_gets_no_manifest(source: Path) -> None:
    from tests.support.damage import chunk_at, overwrite

    with h5py.File(source, "r+") as file:
        file.create_dataset("checked", data=field(), chunks=(30, 70), fletcher32=True)
    overwrite(source, chunk_at(source, "checked", (0, 0)).byte_offset, b"xyz")
    known = source.with_name("known.json")
    assert chunkwise.verify(source, write_manifest=known).verdict == "damaged"
    assert not known.exists()


def sum_of(path: Path) -> str:
    with h5py.File(path) as file:
        return str(sum_values(file)["/float"]["sha256"])


def test_a_manifest_has_its_name_once_it_is_on_storage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[tuple[str, bool]] = []
    target, fsync = tmp_path / "m.json", os.fsync

    def synced(descriptor: int) -> None:
        done.append((str(Path(f"/proc/self/fd/{descriptor}").readlink()), target.exists()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", synced)
    # Another process of this number, elsewhere or long ago.
    others = tmp_path / f".m.json.{os.getpid()}.partial"
    others.write_text("another's")
    manifests.write(target, {}, force=False)
    assert manifests.read(target) == {}
    ((path, named),) = done
    assert (Path(path).parent, named) == (tmp_path, False)
    durable.write_whole(target, b"again")
    assert [named for _, named in done] == [False, True]
    assert target.read_bytes() == b"again"
    assert {path.name for path in tmp_path.iterdir()} == {"m.json", others.name}


@needs_netcdf
def test_a_manifest_has_netcdf3_files_and_names_those_it_lacks(tmp_path: Path) -> None:
    import netCDF4

    folder = tmp_path / "in"
    (folder / "sub").mkdir(parents=True)
    with netCDF4.Dataset(folder / "sub" / "old.nc", "w", format="NETCDF3_CLASSIC") as made:
        made.createDimension("x", 5)
        made.createVariable("t", "f4", ("x",))[:] = np.arange(5)
    with h5py.File(folder / "leads.h5", "w") as file:
        file["x"] = np.arange(100)
    os.truncate(folder / "leads.h5", (folder / "leads.h5").stat().st_size - 100)
    with h5py.File(folder / "good.h5", "w") as file:
        file["x"] = 1
    known = tmp_path / "known.json"
    done = command("in", "--write-manifest", known, cwd=tmp_path)
    assert done.returncode == 1
    assert f"{Path('in', 'leads.h5')}: damaged: 1 finding" in done.stdout
    assert done.stderr.endswith("the manifest lacks 1 file: leads.h5 (damaged)\n")
    assert set(manifests.read(known)) == {"sub/old.nc", "good.h5"}
    (folder / "leads.h5").unlink()
    assert command(folder, "--manifest", known).returncode == 0
    # A repacked copy has the same values, and a changed file has not.
    old, new = folder / "sub" / "old.nc", tmp_path / "new.nc"
    chunkwise.repack(old, new, chunk={"t": (5,)}, filters={"t": "deflate:1"})
    only = tmp_path / "only.json"
    assert chunkwise.verify(old, write_manifest=only).verdict == "sound"
    assert chunkwise.verify(new, manifest=only).verdict == "sound"
    with netCDF4.Dataset(old, "a") as made:
        made["t"][2] = 9
    found = chunkwise.verify(old, manifest=only)
    assert [one.path for one in found.damages] == ["/t"]
    # Without a manifest there is nothing in it to check.
    with pytest.raises(FileFormatError, match="netCDF-3"):
        chunkwise.verify(old)


@needs_netcdf
@pytest.mark.parametrize("kind", ["NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA"])
@pytest.mark.parametrize("types", [("i2",), ("f8", "i1"), ("S1", "i2", "f4")])
@pytest.mark.parametrize("grows", [False, True])
def test_a_netcdf3_file_that_was_cut_is_damaged(
    tmp_path: Path, kind: Any, types: tuple[str, ...], grows: bool
) -> None:
    import netCDF4

    path = tmp_path / "a.nc"
    with netCDF4.Dataset(path, "w", format=kind) as made:
        made.title = "twelve bytes"
        made.createDimension("t", None if grows else 5)
        made.createDimension("x", 3)
        for number, dtype in enumerate(types):
            variable = made.createVariable(f"v{number}", dtype, ("t", "x"))
            variable.setncattr("list", np.arange(3, dtype="i2"))
            variable[:] = np.full((5, 3), b"a" if dtype == "S1" else 7, dtype)
    end = classic_end(path)
    nbytes = path.stat().st_size
    # Only the room after the last value is beyond it.
    assert end is not None
    assert nbytes - 3 <= end <= nbytes
    with path.open("r+b") as stream:
        stream.truncate(end - 1)
    found = verify_file(path, ManifestOptions(sums=True, folder=tmp_path)).verified
    assert [one.kind for one in found.damages] == ["truncated"]
    for count in range(0, 200, 7):
        with path.open("r+b") as stream:
            stream.truncate(200 - count)
        assert classic_end(path) in (None, end)
