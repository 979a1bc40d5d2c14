"""Is a copied tree the same tree, whatever the file holds?"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import h5py
import numpy as np
import pytest
from h5py import h5d, h5f, h5p, h5s

from chunkwise import _native
from chunkwise._lib import library
from tests.everything import BOUNDS, write_everything
from tests.same_tree import Teller
from tests.tools import require_tool

FOREIGN = os.environ.get("CHUNKWISE_FOREIGN_FILES")
KINDS = {
    "old": (("earliest", "latest"), 0, True),
    "new": (("latest", "latest"), 1024, True),
    "1.8": (("earliest", "v108"), 512, False),
}


def copy(
    source: Path,
    target: Path,
    *,
    dcpls: Mapping[int, int] | None = None,
    libver: tuple[str, str] = ("earliest", "latest"),
    progress: Callable[[int, int], object] | None = None,
) -> list[str]:
    """Copy a file, its plain data by h5py; gives the warnings."""
    with h5py.File(source) as old:
        fcpl, root = old.id.get_create_plist(), h5py.h5g.open(old.id, b"/").get_create_plist()
        fcpl.set_link_creation_order(root.get_link_creation_order())
        fcpl.set_attr_creation_order(root.get_attr_creation_order())
        fcpl.set_attr_phase_change(*root.get_attr_phase_change())
        del root
        fapl = h5p.create(h5p.FILE_ACCESS)
        fapl.set_libver_bounds(*(BOUNDS[bound] for bound in libver))
        made = h5f.create(str(target).encode(), h5f.ACC_TRUNC, fcpl, fapl)
        with h5py.File(made) as new:
            tree = _native.copy_tree(library(), old.id.id, new.id.id, dcpls or {}, progress)
            for path, address in tree.datasets:
                assert h5py.h5g.get_objinfo(old.id, path).objno[0] == address
                copy_plain(h5d.open(old.id, path), h5d.open(new.id, path))
            tree.finish(progress)
            warnings = tree.warnings
            del tree
            assert (h5f.get_obj_count(old.id), h5f.get_obj_count(new.id)) == (1, 1)
    if fcpl.get_userblock():
        with source.open("rb") as old_bytes, target.open("r+b") as new_bytes:
            new_bytes.write(old_bytes.read(fcpl.get_userblock()))
    return warnings


def copy_plain(source: h5d.DatasetID, target: h5d.DatasetID) -> None:
    datatype = source.get_type()
    if source.get_create_plist().get_layout() != h5d.CHUNKED:
        everything = np.empty(source.shape, f"V{datatype.get_size()}")
        source.read(h5s.ALL, h5s.ALL, everything, mtype=datatype)
        target.write(h5s.ALL, h5s.ALL, everything, mtype=datatype)
        return
    for number in range(source.get_num_chunks()):
        chunk = source.get_chunk_info(number)
        mask, stored = source.read_direct_chunk(chunk.chunk_offset)
        target.write_direct_chunk(chunk.chunk_offset, stored, filter_mask=mask)


def facts(path: Path) -> dict[bytes, dict[str, object]]:
    with h5py.File(path) as file:
        return Teller(file).tell()


def assert_same(source: Path, target: Path) -> None:
    old, new = facts(source), facts(target)
    assert list(old) == list(new)
    for path, expected in old.items():
        for name, fact in expected.items():
            assert new[path][name] == fact, f"{path!r}: {name}"


def text_of(tool: str, path: Path, *options: str) -> str:
    """What a tool prints of a file, without its name and where its objects lie."""
    done = subprocess.run(
        [require_tool(tool), *options, path], capture_output=True, check=False, timeout=120
    )
    text = done.stdout.decode("utf-8", "replace").replace(path.stem, "FILE")
    return re.sub(r"\b(DATASET|GROUP|DATATYPE) \d+ ", r"\1 ", text)


def assert_no_difference(source: Path, target: Path) -> None:
    done = subprocess.run(
        [require_tool("h5diff"), source, target], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    assert "differences found" not in done.stdout, done.stdout


@pytest.mark.parametrize("kind", KINDS)
def test_everything_survives(kind: str, tmp_path: Path) -> None:
    libver, user_block, track_order = KINDS[kind]
    source, target = tmp_path / "everything.h5", tmp_path / "copied.h5"
    write_everything(source, libver=libver, user_block=user_block, track_order=track_order)
    warnings = copy(source, target, libver=libver)
    assert [warning for warning in warnings if "dangling" not in warning] == [
        "/references/objects: 1 of its references led to nothing and are null in the copy"
    ]
    assert len(warnings) == 2
    assert_same(source, target)
    # The copy of the copy, the dangling references being null by now, warns of nothing.
    assert copy(target, tmp_path / "again.h5", libver=libver) == []
    assert_same(target, tmp_path / "again.h5")
