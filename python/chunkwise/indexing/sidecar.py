"""How is a sidecar written, from which `chunkwise.open` knows where chunks lie?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import h5py
from h5py import h5d

from chunkwise import _native
from chunkwise._lib import library
from chunkwise.errors import ChunkwiseError, FileChangedError
from chunkwise.files.objects import Entry, header_address, walk
from chunkwise.handles.sidecar import Content, SidecarEntry, head_of, header_sum
from chunkwise.indexing.contents import damaged_root
from chunkwise.indexing.records import LeftOut
from chunkwise.names import HDF5_ERRORS, hdf5_reason, printable

# Called with the number of chunks written so far.
Progress = Callable[[int], None]


def write_sidecar(
    path: Path,
    file: h5py.File,
    content: Content,
    storage: _native.Storage | None,
    report: Progress,
) -> tuple[int, int, list[LeftOut]]:
    """Write down where all chunks of a file lie."""
    state = content.state()
    user_block = file.userblock_size
    parts: list[SidecarEntry] = []
    left_out: list[LeftOut] = []
    begin, chunks = 0, 0
    pages = path.with_name(path.name + "-pages")
    try:
        with pages.open("xb") as stream:
            for entry in walk(file):
                report(chunks)
                if entry.kind == "unreadable":
                    if entry.depth == 0:
                        raise damaged_root(printable(file.filename), entry.reason or "")
                    left_out.append(LeftOut(entry.path, f"HDF5 cannot read it ({entry.reason})"))
                try:
                    if not _is_chunked(entry):
                        continue
                    listing = library().chunk_listing(entry.identifier.id, storage)
                except (ChunkwiseError, *HDF5_ERRORS) as error:
                    left_out.append(LeftOut(entry.path, hdf5_reason(error)))
                    continue
                dense, entries, saved = listing.saved()
                stream.write(saved)
                assert entry.address is not None
                address = header_address(entry.address)
                total = header_sum(content, address + user_block)
                parts.append(
                    SidecarEntry(printable(entry.path), address, total, begin, dense, entries)
                )
                begin += len(saved)
                chunks += listing.written
        if content.state() != state:
            raise FileChangedError(f"{printable(file.filename)}: was changed meanwhile")
        with path.open("xb") as stream, pages.open("rb") as source:
            stream.write(head_of(state, parts))
            while block := source.read(1 << 22):
                report(chunks)
                stream.write(block)
    finally:
        pages.unlink(missing_ok=True)
    return len(parts), chunks, left_out


def _is_chunked(entry: Entry) -> bool:
    if entry.kind != "dataset":
        return False
    return bool(entry.identifier.get_create_plist().get_layout() == h5d.CHUNKED)
