"""Are objects that only references lead to verified, counted and in manifests?"""

import json
from pathlib import Path

import h5py
import numpy as np
from h5py import h5g

import chunkwise
from chunkwise.files.objects import walk
from chunkwise.inspection import inspect
from tests.support.damage import overwrite
from tests.support.native import keep_without_links
from tests.support.references import write_like_jld2


def test_a_sound_file_is_sound(tmp_path: Path) -> None:
    one = chunkwise.verify(write_like_jld2(tmp_path / "a.jld2"))
    assert (one.damage_count, one.objects, one.datasets) == (0, 8, 5)


def test_damage_in_one_is_found(tmp_path: Path) -> None:
    path = write_like_jld2(tmp_path / "a.jld2")
    with h5py.File(path) as file:
        (hidden,) = (one for one in walk(file) if one.path == "/value[0:1]->")
        chunk = hidden.identifier.get_chunk_info(3)
    overwrite(path, chunk.byte_offset + chunk.size // 2, b"\xff" * 8)
    one = chunkwise.verify(path)
    assert {damage.path for damage in one.damages} == {"/value[0:1]->"}


def test_a_manifest_holds_for_the_copy(tmp_path: Path) -> None:
    source, target = write_like_jld2(tmp_path / "a.jld2"), tmp_path / "b.jld2"
    manifest = tmp_path / "m.json"
    chunkwise.verify(source, write_manifest=manifest)
    (known,) = json.loads(manifest.read_text())["files"].values()
    assert {"/value[0:1]->", "/value[0]->/b", "/value(type)->"} <= known.keys()
    chunkwise.repack(source, target, chunk="50x50", filters="deflate:2")
    assert not chunkwise.verify(target, manifest=manifest).damage_count
    with h5py.File(target, "r+") as file:
        file[file["value"][()]["more"][0]][3, 3] += 1
    one = chunkwise.verify(target, manifest=manifest)
    assert {damage.path for damage in one.damages} == {"/value[0:1]->"}


def test_names_do_not_depend_on_chunks(tmp_path: Path) -> None:
    """The first element that leads there counts, whichever chunk is read first."""
    names = []
    for chunk in ((1, 6), (4, 1), (3, 4), None):
        path = tmp_path / "a.h5"
        with h5py.File(path, "w") as file:
            made = [file.create_dataset(f"{number}", data=[number]) for number in range(5)]
            keep_without_links(*made)
            refs = file.create_dataset("refs", (4, 6), h5py.ref_dtype, chunks=chunk)
            for row, column, number in ((0, 5, 3), (1, 0, 4), (2, 3, 0), (3, 0, 0), (3, 5, 1)):
                refs[row, column] = made[number].ref
            refs[3, 1] = made[2].ref
            for number in range(5):
                del file[f"{number}"]
        with h5py.File(path) as file:
            found = [
                (one.path, h5py.Dataset(one.identifier)[0]) for one in walk(file) if not one.linked
            ]
        names.append(found)
    places = (5, 3), (6, 4), (15, 0), (19, 2), (23, 1)
    assert names == [[(f"/refs[{at}]->", number) for at, number in places]] * 4


def test_inspect_and_fix_see_them(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        data = np.arange(2_000_000, dtype="i4").reshape(1000, 2000)
        made = file.create_dataset("x", data=data, chunks=(1000, 1), compression=1)
        keep_without_links(made)
        file["refs"] = np.array([made.ref], h5py.ref_dtype)
        del file["x"]
    facts = inspect(path)
    (one,) = (one for one in facts.objects if not one.linked)
    assert (one.path, one.dataset is not None) == ("/refs[0]->", True)
    assert any(finding.path == "/refs[0]->" for finding in facts.findings)
    chunkwise.fix(path, in_place=True, seconds=0)
    with h5py.File(path) as file:
        fixed = file[file["refs"][0]]
        assert fixed.chunks != (1000, 1)
        assert np.array_equal(fixed[()], data)


def test_references_to_every_byte_of_a_file(tmp_path: Path) -> None:
    """Few of them lead to an object, and no object is visited twice."""
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        hidden = file.create_dataset("x", data=np.arange(100), chunks=(10,), compression=1)
        keep_without_links(hidden)
        file.create_dataset("refs", (20_000,), h5py.ref_dtype, chunks=(500,))
        own = hidden.ref
        file["refs"][7] = own
        at = file["refs"].id.get_chunk_info(0).byte_offset
        address = h5g.get_objinfo(hidden.id).objno[0]
        del file["x"]
        file["refs"][:] = np.full(20_000, own, object)
        places = [file["refs"].id.get_chunk_info(number) for number in range(40)]
    assert at == places[0].byte_offset
    wild = np.arange(20_000, dtype="<u8")
    with path.open("r+b") as stream:
        for number, chunk in enumerate(places):
            stream.seek(chunk.byte_offset)
            stream.write(wild[500 * number : 500 * number + 500].tobytes())
    with h5py.File(path) as file:
        found = [one for one in walk(file) if not one.linked]
    assert [one.path for one in found if one.kind == "dataset"] == [f"/refs[{address}]->"]
    assert len(found) < 10
