"""How long does one combination take, and is what was written what is read?

What each figure covers is as in hdf5-iotest, so that they can be laid side by side:

==============  ======================================================================
``wall``        from before the file is made until it has been read and closed
``write-phase`` making the file, its datasets and selections, writing, closing
``creat``       of it: ``H5Fcreate``, making (or opening again) datasets, selections, both
                when writing and when reading, and the first ``H5Fclose``
``write``       of it: ``H5Dwrite``
``read-phase``  opening the file and its datasets, selections, reading, closing
``read``        of it: ``H5Dread``
==============  ======================================================================

One thing differs: the seconds of making and comparing values are taken off a rank's times.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from time import perf_counter, sleep
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from h5py import h5d, h5f, h5s, h5t

from chunkwise.errors import WrongValueError
from chunkwise.mpi.ranks import abandoned
from chunkwise_lab.studies.iotest.lists import Lists, space
from chunkwise_lab.studies.iotest.pattern import Geometry, Tile, Values

if TYPE_CHECKING:
    from chunkwise_lab.studies.iotest.world import World

PHASES: Final = ("write-phase", "creat", "write", "read-phase", "read")


@dataclass
class Clock:
    """One rank's seconds of one combination."""

    wall: float = 0.0
    write_phase: float = 0.0
    creat: float = 0.0
    write: float = 0.0
    read_phase: float = 0.0
    read: float = 0.0
    # Making and comparing values.
    values: float = 0.0

    def phases(self) -> tuple[float, ...]:
        """Return them in the order of `PHASES`."""
        return self.write_phase, self.creat, self.write, self.read_phase, self.read


def measure(
    world: World, geometry: Geometry, lists: Lists, values: Values, file: str, delay_s: float = 0.0
) -> Clock:
    """Write, close, open again and read one combination, and compare all values."""
    clock = Clock()
    world.barrier()
    begun = perf_counter()
    _passed(world, geometry, lists, values, file, delay_s, clock, writing=True)
    clock.write_phase = perf_counter() - begun - clock.values
    world.barrier()
    made_s, read_begun = clock.values, perf_counter()
    _passed(world, geometry, lists, values, file, delay_s, clock, writing=False)
    clock.read_phase = perf_counter() - read_begun - (clock.values - made_s)
    world.barrier()
    clock.wall = perf_counter() - begun - clock.values
    return clock


def _passed(
    world: World,
    geometry: Geometry,
    lists: Lists,
    values: Values,
    file: str,
    delay_s: float,
    clock: Clock,
    *,
    writing: bool,
) -> None:
    """Write all tiles of this rank to a new file, or read them."""
    tile = np.empty(geometry.settings.tile)
    memory = h5s.create_simple(tile.shape)
    double, whole = h5t.NATIVE_DOUBLE, space(geometry)
    block, once = geometry.block, (1,) * len(geometry.block)
    begun = perf_counter()
    if writing:
        opened = h5f.create(file.encode(), h5f.ACC_TRUNC, fapl=lists.access)
    else:
        opened = h5f.open(file.encode(), h5f.ACC_RDONLY, fapl=lists.access)
    # Of reading, the file and its datasets are opened outside of `creat`.
    making_s = perf_counter() - begun
    dataset: Any = None
    with _left_open(world, opened):
        for one in geometry.tiles(world.rank):
            if delay_s and one.array == 0 and one.step:
                sleep(delay_s)
            if one.first:
                name = one.dataset.encode()
                now = perf_counter()
                if writing and one.new:
                    dataset = h5d.create(
                        opened, name, double, whole, dcpl=lists.creation, lcpl=lists.links
                    )
                else:
                    dataset = h5d.open(opened, name)
                making_s += perf_counter() - now
            now = perf_counter()
            if writing:
                values.fill(tile, one.step, one.array)
            else:
                # Elements that a read leaves out must not come from the tile before.
                tile.fill(np.nan)
            filled = perf_counter()
            whole.select_hyperslab(one.start, once, block=block)
            selected = perf_counter()
            (dataset.write if writing else dataset.read)(
                memory, whole, tile, double, lists.transfer
            )
            done = perf_counter()
            clock.values += filled - now
            clock.creat += selected - filled
            if writing:
                clock.write += done - selected
            else:
                clock.read += done - selected
                _require_right(world, geometry, values, file, tile, one)
                clock.values += perf_counter() - done
            if one.last:
                # h5py closes it when nothing holds it any more.
                dataset = None
        now = perf_counter()
        opened.close()
        making_s += perf_counter() - now
    if writing:
        clock.creat += making_s


def _require_right(
    world: World, geometry: Geometry, values: Values, file: str, tile: Any, one: Tile
) -> None:
    wrong = values.wrong(tile, one.step, one.array)
    if wrong is not None:
        (row, column), found, expected = wrong
        place = f"step {one.step}, array {one.array}, row {row}, column {column}"
        raise WrongValueError(
            f"{file}: {one.dataset}: rank {world.rank}: {place} of its tile was read as "
            f"{found!r}, and written as {expected!r}; do not trust this HDF5 with "
            f"{geometry.combination.label}"
        )


@contextmanager
def _left_open(world: World, opened: Any) -> Iterator[None]:
    """If a rank fails, leave a shared file open: closing is collective."""
    try:
        yield
    except BaseException:
        if world.size > 1:
            # If it holds a file, MPI must end all ranks, because it cannot be finalised.
            abandoned.append(opened)
        else:
            with suppress(OSError, RuntimeError):
                opened.close()
        raise
