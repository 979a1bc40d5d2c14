"""Which datasets are the scales of a dataset's dimensions?  h5py's answer, as datasets of ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import h5py
from h5py._hl import dims

# Makes a dataset of ours of one of h5py's.
Wrap = Callable[[h5py.Dataset], Any]


class Dimension(dims.DimensionProxy):  # type: ignore[misc]
    """One dimension and its scales."""

    def __init__(self, identifier: Any, dimension: int, wrap: Wrap) -> None:
        super().__init__(identifier, dimension)
        self._wrap = wrap

    def __getitem__(self, item: Any) -> Any:
        return self._wrap(super().__getitem__(item))

    def items(self) -> list[tuple[str, Any]]:
        """Names and datasets of all scales."""
        return [(name, self._wrap(scale)) for name, scale in super().items()]


class Dimensions(dims.DimensionManager):  # type: ignore[misc]
    """The dimensions of a dataset."""

    def __init__(self, parent: h5py.Dataset, wrap: Wrap) -> None:
        super().__init__(parent)
        self._wrap = wrap

    def __getitem__(self, index: int) -> Dimension:
        found = super().__getitem__(index)
        return Dimension(found._id, found._dimension, self._wrap)
