"""Which elements are read, and how is each library asked for them?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from chunkwise_lab.peers.task import CannotReadError

Values = npt.NDArray[Any]
POINTS, ROWS, SHARE = 10_000, 100, 0.01


@dataclass(frozen=True)
class Pick:
    """A selection, in the form in which a program has it."""

    index: Any  # What stands between the brackets; of points, one list of positions a dimension
    points: bool = False  # Whether these are the elements at paired positions, in their order

    @classmethod
    def of_point(cls, place: tuple[int, ...]) -> Pick:
        """Select one element, as a scalar."""
        return cls(place)

    def by_h5py(self, dataset: Any) -> Any:
        """Read through h5py; points by its low-level interface, as its index has none."""
        if not self.points:
            return dataset[self.index]
        from h5py import h5s

        coordinates = np.stack(self.index, axis=1)
        out = np.empty(len(coordinates), dataset.dtype)
        space = dataset.id.get_space()
        space.select_elements(coordinates)
        dataset.id.read(h5s.create_simple(out.shape), space, out)
        return out

    def by_chunkwise(self, dataset: Any) -> Any:
        """Read through chunkwise."""
        if not self.points:
            return dataset[self.index]
        return dataset.vindex[self.index]


def pick(kind: str, shape: tuple[int, ...]) -> Pick:
    """Return a selection of an array of this shape by its name; always the same."""
    rng = np.random.default_rng(5)
    if kind == "all":
        return Pick(tuple(slice(0, size, 1) for size in shape))
    if kind == "points":
        return Pick(tuple(rng.integers(0, size, POINTS) for size in shape), points=True)
    if kind == "rows":
        rows = rng.choice(shape[1], min(ROWS, shape[1] // 2), replace=False)
        return Pick((slice(None), sorted(map(int, rows)), slice(None)))
    if kind == "mask":
        return Pick(rng.random(shape, dtype=np.float32) < SHARE)
    if kind == "series":
        return Pick((slice(None), *(size // 3 for size in shape[1:])))
    if kind == "strided":
        return Pick((slice(None, None, 10), slice(None, None, 7), slice(None, None, 3)))
    if kind == "box":
        return Pick((slice(None), *(slice(size // 3, size // 3 + 10) for size in shape[1:])))
    raise ValueError(f"no selection is called {kind}")


def by_slices(reader: str, selection: Pick) -> Any:
    """Return the index for a reader that knows integers and slices alone."""
    index = selection.index
    if selection.points or not isinstance(index, tuple):
        raise CannotReadError(f"{reader} has no such index")
    if not all(isinstance(one, slice | int) for one in index):
        raise CannotReadError(f"{reader} has no such index")
    return index
