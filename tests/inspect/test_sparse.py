"""What inspect says of indexes with much room and few chunks, and how it finds out."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from h5py import h5d, h5i, h5o

import chunkwise
from chunkwise.files.native import damaged_metadata
from chunkwise.inspection.native import metadata_facts

ROOM = 300_000


class Quick(h5d.DatasetID):  # type: ignore[misc]
    """A dataset of which nobody asks what takes libhdf5 time for all that was not written."""

    def get_num_chunks(self, *_: Any) -> int:
        raise AssertionError("H5Dget_num_chunks goes through the index")

    def get_storage_size(self) -> int:
        raise AssertionError("H5Dget_storage_size goes through the index")

    def chunk_iter(self, *_: Any) -> None:
        raise AssertionError("H5Dchunk_iter goes through the index")


def quick(found: Any) -> Any:
    if not isinstance(found, h5d.DatasetID):
        return found
    h5i.inc_ref(found)
    return Quick(found.id)


@pytest.mark.parametrize("maxshape", [(ROOM,), (None,), (4 * ROOM,)])
@pytest.mark.parametrize("filters", [{}, {"compression": "gzip"}])
def test_arrays_are_not_gone_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, maxshape: Any, filters: dict[str, Any]
) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver=("v110", "v110")) as file:
        made = file.create_dataset("x", (ROOM,), "i4", chunks=(1,), maxshape=maxshape, **filters)
        made[[5, 77_000, ROOM - 1]] = 7
        expected = made.id.get_storage_size()
        listed: list[int] = []
        if hasattr(made.id, "chunk_iter"):
            made.id.chunk_iter(lambda chunk: listed.append(chunk.size))
            assert expected == sum(listed)
    for module in (h5o, h5d):
        opened = module.open
        monkeypatch.setattr(
            module, "open", lambda *given, opened=opened, **named: quick(opened(*given, **named))
        )
    found = chunkwise.inspect(path)
    facts = next(each.dataset for each in found.objects if each.path == "/x")
    assert facts is not None
    assert facts.stored_nbytes == expected
    assert facts.chunks is not None
    assert facts.chunks.allocated == 3
    assert facts.sample is not None
    assert facts.sample.chunks == 3
    assert found.metadata is not None
    assert found.metadata.raw_nbytes == expected
    assert found.metadata.index_requests > 3


def test_damage_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver=("v110", "v110")) as file:
        file.create_dataset("x", (ROOM,), "i4", chunks=(1,))[5] = 7
        file["y"] = np.zeros(1000, "u1")
    content = path.read_bytes()
    assert content.count(b"FAHD") == 1
    path.write_bytes(content.replace(b"FAHD", b"XXXX"))
    facts = metadata_facts(damaged_metadata(path), 0)
    assert facts is not None
    assert facts.raw_nbytes == 1000
