"""Are the sources of virtual and external datasets looked for where libhdf5 finds them?"""

import json
import os
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
from h5py import h5d, h5p, h5s, h5t

from chunkwise.inspection.facts import Source
from chunkwise.inspection.sources import LOOKS, NOT_LOOKED_FOR, places, sources
from tests.support.processes import ran

# Where a source may lie; the value in it says from which place it was read.
FOLDERS = ("main", "main/sub", "real", "cwd", "one", "two", "absolute")
# For each name, prints the folders that libhdf5 reads the source from, each one removed
# after it was read, and beside it whether we would have found one.
READER = """
import json, os, sys
from pathlib import Path
import h5py, numpy as np
from chunkwise.inspection.sources import sources
top, kind, folders = Path(sys.argv[1]), sys.argv[2], sys.argv[3].split()
os.chdir(top / "cwd")

def read(main):
    with h5py.File(main) as f:
        try:
            return int(f["v"][0])
        except OSError:
            return -1

for name in ["s", "./s", str(top / "absolute" / "s"), "../one/s"]:
    main = top / "main" / "m.h5"
    main.unlink(missing_ok=True)
    main.symlink_to(top / "real" / "m.h5")
    with h5py.File(main, "w") as f:
        if kind == "virtual":
            layout = h5py.VirtualLayout((2,), "i8")
            layout[:] = h5py.VirtualSource(name, "x", (2,))
            f.create_virtual_dataset("v", layout, fillvalue=-1)
        else:
            f.create_dataset("v", (2,), "i8", external=[(name, 0, 16)])
    for value, folder in enumerate(folders):
        if kind == "virtual":
            with h5py.File(top / folder / "s", "w") as f:
                f["x"] = np.full(2, value)
        else:
            (top / folder / "s").write_bytes(np.full(2, value, "i8").tobytes())
    order = []
    while not order or order[-1][0] is not None:
        found = read(main)
        with h5py.File(main) as f:
            (source,) = sources(f["v"].id, f["v"].id.get_create_plist())
        order.append([None if found < 0 else folders[found], source.missing])
        if found >= 0:
            (top / folders[found] / "s").unlink()
    print(json.dumps(order))
"""


@pytest.mark.parametrize("kind", ["virtual", "external"])
@pytest.mark.parametrize("prefix", ["", "{top}/one:{top}/two", "${{ORIGIN}}/sub", "."])
def test_files_are_found_where_libhdf5_finds_them(tmp_path: Path, kind: str, prefix: str) -> None:
    for folder in FOLDERS:
        (tmp_path / folder).mkdir(parents=True)
    variable = "HDF5_VDS_PREFIX" if kind == "virtual" else "HDF5_EXTFILE_PREFIX"
    done = ran(
        [sys.executable, "-c", READER, tmp_path, kind, " ".join(FOLDERS)],
        env={**os.environ, variable: prefix.format(top=tmp_path)},
        check=True,
    )
    orders = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(orders) == 4
    for order in orders:
        for folder, missing in order:
            assert (missing is None) == (folder is not None), order
        assert order[-1] == [None, "no such file"]


def test_the_order_of_places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ANY_PREFIX", "/one::/two")
    (tmp_path / "m.h5").symlink_to("/elsewhere/m.h5")
    found = [str(path) for path in places("/far/s.h5", tmp_path / "m.h5", "ANY_PREFIX", "/three")]
    assert found == [
        "/far/s.h5", "/one/s.h5", "/two/s.h5", "/three/s.h5", f"{tmp_path}/s.h5", "s.h5",
        "/elsewhere/s.h5",
    ]  # fmt: skip


# --- virtual ---------------------------------------------------------------------------


def make_virtual(path: Path, wanted: list[tuple[bytes, bytes]]) -> None:
    """Map one element from each source."""
    with h5py.File(path, "w") as file:
        file["own"] = np.arange(3)
        file["group/x"] = np.arange(3)
        space = h5s.create_simple((len(wanted),))
        dcpl = h5p.create(h5p.DATASET_CREATE)
        for i, (name, dataset) in enumerate(wanted):
            space.select_hyperslab((i,), (1,))
            dcpl.set_virtual(space, name, dataset, h5s.create_simple((1,)))
        space.select_all()
        h5d.create(file.id, b"virtual", h5t.STD_I64LE, space, dcpl)


def found(path: Path, name: str = "virtual") -> tuple[Source, ...]:
    with h5py.File(path) as file:
        dataset = file[name].id
        result = sources(dataset, dataset.get_create_plist())
        # The file under inspection is as it was.
        assert dataset.valid
        assert file["own"][...].tolist() == [0, 1, 2]
    return result


def test_why_a_virtual_source_is_missing(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "there.h5", "w") as file:
        file["x"], file["caf\xe9"] = 1, 2
    (tmp_path / "text").write_text("no HDF5 here, only words of some length\n" * 20)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    path = tmp_path / "a.h5"
    expected = {
        (b"there.h5", b"x"): None,
        (b"there.h5", b"/x"): None,
        (b"there.h5", b"caf\xc3\xa9"): None,
        (b"there.h5", b"/gone"): "no dataset /gone in it",
        (b"gone.h5", b"x"): "no such file",
        (b"caf\xe9.h5", b"x\xff"): "no such file",
        (b"text", b"x"): "not HDF5",
        (b"folder", b"x"): "no such file",
        (b"pipe", b"x"): "no such file",
        (b"n" * 5000, b"x"): "no such file",
        (b".", b"own"): None,
        (b".", b"gone"): "no dataset gone in it",
        (b".", b"group"): "no dataset group in it",
        (b"a.h5", b"group/x"): None,
        (b"there%%.h5", b"x"): "no such file",
    }
    make_virtual(path, [*expected, (b"there.h5", b"x")])
    assert {(s.file, s.dataset): s.missing for s in found(path)} == {
        tuple(name.decode("utf-8", "surrogateescape") for name in names): missing
        for names, missing in expected.items()
    }
    with h5py.File(tmp_path / "there%.h5", "w") as file:
        file["x"] = 1
    assert found(path)[-1] == Source("there%%.h5", "x", None)


def test_each_source_once_in_the_order_of_the_mappings(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    make_virtual(path, [(b"b.h5", b"x"), (b"a.h5", b"own"), (b"b.h5", b"x"), (b"b.h5", b"y")])
    assert [(s.file, s.dataset) for s in found(path)] == [
        ("b.h5", "x"),
        ("a.h5", "own"),
        ("b.h5", "y"),
    ]


def test_a_series_is_not_looked_for(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["own"] = np.arange(3)
        dcpl = h5p.create(h5p.DATASET_CREATE)
        space = h5s.create_simple((0,), (h5s.UNLIMITED,))
        space.select_hyperslab((0,), (h5s.UNLIMITED,), (2,), (2,))
        dcpl.set_virtual(space, b"part-%b.h5", b"x", h5s.create_simple((2,)))
        h5d.create(
            file.id, b"virtual", h5t.STD_I64LE, h5s.create_simple((0,), (h5s.UNLIMITED,)), dcpl
        )
    assert found(path) == (Source("part-%b.h5", "x", None),)


def test_a_source_open_elsewhere_stays_open(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file["x"] = np.arange(3)
    make_virtual(tmp_path / "a.h5", [(b"b.h5", b"x")])
    with h5py.File(tmp_path / "b.h5") as other:
        dataset = other["x"]
        assert found(tmp_path / "a.h5") == (Source("b.h5", "x", None),)
        assert dataset[...].tolist() == [0, 1, 2]


def test_so_many_are_looked_for(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    make_virtual(path, [(b".", b"x%d" % i) for i in range(LOOKS + 2)])
    missing = [source.missing for source in found(path)]
    assert missing[LOOKS - 1] == f"no dataset x{LOOKS - 1} in it"
    assert missing[LOOKS:] == [NOT_LOOKED_FOR] * 2


# --- external --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        # 100 bytes are needed, "raw" has 60 and "more" 40.
        ([("raw", 0, 60), ("more", 0, 40)], {"raw": None, "more": None}),
        ([("raw", 0, 60), ("more", 0, h5py.h5f.UNLIMITED)], {"raw": None, "more": None}),
        ([("raw", 1, 60), ("more", 0, 40)], {"raw": "too short: 60 of 61 bytes", "more": None}),
        ([("raw", 0, h5py.h5f.UNLIMITED)], {"raw": "too short: 60 of 100 bytes"}),
        ([("raw", 20, 40), ("raw", 0, 20), ("more", 0, 40)], {"raw": None, "more": None}),
        ([("gone", 0, 100)], {"gone": "no such file"}),
        ([("raw", 0, 60), ("more", 0, 40), ("gone", 0, 9)], {"gone": "no such file"}),
        ([("raw", 0, 60), ("more", 0, 1000)], {"more": None}),
    ],
)
def test_raw_files(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    pieces: list[tuple[str, int, int]],
    expected: dict[str, str | None],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("raw").write_bytes(bytes(60))
    Path("more").write_bytes(bytes(40))
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["own"] = np.arange(3)
        file.create_dataset("external", (50,), "i2", external=pieces)
    result = found(path, "external")
    assert [source.file for source in result] == list(dict.fromkeys(name for name, *_ in pieces))
    assert {source.dataset for source in result} == {None}
    missing = {source.file: source.missing for source in result}
    assert {name: missing[name] for name in expected} == expected
