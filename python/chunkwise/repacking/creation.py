"""How is the target's file created: its user block, format, alignment and pages?"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

import h5py
from h5py import h5f, h5g, h5p

from chunkwise import system
from chunkwise.errors import UsageError
from chunkwise.files.superblock import read_superblock
from chunkwise.names import HDF5_ERRORS, printable
from chunkwise.newfile.claim import Claim
from chunkwise.newfile.index import LIBVER
from chunkwise.repacking.options import BOUNDS, Bound, Options

# The superblock's version shows the format that the writer was allowed.
_LOW_BY_SUPERBLOCK: dict[int, Bound] = {2: "v108", 3: "v110"}


class CreatedFile:
    """A new file that libhdf5 writes."""

    def __init__(self, file: h5py.File) -> None:
        self.file = file

    def close(self) -> None:
        """Write what is left, and close the target."""
        try:
            # After a failed flush the file is as it was; after a failed close libhdf5 crashes.
            self.file.flush()
        except HDF5_ERRORS:
            self.give_up()
            raise
        self.file.close()

    def give_up(self) -> None:
        """Close a target that will be removed."""
        # What libhdf5 cannot write, on a full disk, it does not close, and crashes on when the
        # process ends.  So it is given memory to write to in the file's place, where there is
        # room.
        with contextlib.suppress(*HDF5_ERRORS, AttributeError):
            memory = system.memory_file("given up")
            os.dup2(memory, self.file.id.get_vfd_handle(), inheritable=False)
            os.close(memory)
        with contextlib.suppress(*HDF5_ERRORS):
            self.file.close()


def create(claim: Claim, source: h5py.File, options: Options) -> CreatedFile:
    """Make the empty target, with the properties that `properties` gives."""
    fcpl, fapl = properties(source, options)
    # Nobody else may read what perhaps nobody else may read in the source, from the first moment.
    os.close(claim.make_partial())
    made = h5f.create(os.fsencode(claim.partial), h5f.ACC_TRUNC, fcpl=fcpl, fapl=fapl)
    claim.require_partial(made.get_vfd_handle())
    return CreatedFile(h5py.File(made))


def properties(source: h5py.File, options: Options) -> tuple[Any, Any]:
    """Give the properties with which a target is made (`fcpl`), and opened (`fapl`)."""
    # The source's creation properties stay, such as user block and file space strategy.
    fcpl = source.id.get_create_plist()
    root = h5g.open(source.id, b"/").get_create_plist()
    fcpl.set_link_creation_order(root.get_link_creation_order())
    fcpl.set_attr_creation_order(root.get_attr_creation_order())
    fcpl.set_attr_phase_change(*root.get_attr_phase_change())
    fcpl.set_obj_track_times(root.get_obj_track_times())
    if options.page_nbytes is not None:
        fcpl.set_file_space_strategy(h5f.FSPACE_STRATEGY_PAGE, False, 1)
        fcpl.set_file_space_page_size(options.page_nbytes)
    return fcpl, access_list(source, options)


def access_list(source: h5py.File, options: Options) -> Any:
    """Give the properties with which a target is opened; see `create`."""
    fapl = h5p.create(h5p.FILE_ACCESS)
    fapl.set_fclose_degree(h5f.CLOSE_STRONG)
    # Chunks are written whole; one that cannot be written fails there and then.
    _, slots, _, w0 = fapl.get_cache()
    fapl.set_cache(0, slots, 0, w0)
    fapl.set_libver_bounds(*_bounds(Path(str(source.filename)), options))
    if options.alignment_nbytes is not None:
        fapl.set_alignment(options.alignment_nbytes, options.alignment_nbytes)
    if options.metadata_block_nbytes is not None:
        fapl.set_meta_block_size(options.metadata_block_nbytes)
    return fapl


def require_room_for_user_block(source: h5py.File, options: Options) -> None:
    """Raise UsageError if HDF5 would refuse these options for a file with a user block."""
    block = source.userblock_size
    for name, nbytes in (
        ("--alignment", options.alignment_nbytes),
        ("--paged", options.page_nbytes),
    ):
        if block and nbytes and (nbytes > block or block % nbytes):
            raise UsageError(
                f"{printable(str(source.filename))}: has a user block of {block:,} bytes, and "
                f"{name} {nbytes:,} must divide that"
            )


def _bounds(source: Path, options: Options) -> tuple[Any, Any]:
    """Give the bounds of the format: the stated ones, or the oldest that the source shows."""
    superblock = read_superblock(source)
    version = 0 if superblock is None else superblock.version
    low = options.low or _LOW_BY_SUPERBLOCK.get(version, "earliest")
    high = options.high or "latest"
    if options.low is None and BOUNDS.index(low) > BOUNDS.index(high):
        low = high
    return getattr(h5f, LIBVER[low]), getattr(h5f, LIBVER[high])
