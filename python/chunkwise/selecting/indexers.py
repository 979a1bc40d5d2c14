"""How do arrays between the brackets combine: each with each, or pair by pair?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chunkwise.errors import SelectionError
from chunkwise.selecting.indexing import resolve

if TYPE_CHECKING:
    from chunkwise import _native
    from chunkwise.dataset import Dataset


class OuterIndex:
    """``d.oindex``: every choice of one entry goes with every choice of the others."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset

    def __getitem__(self, index: Any) -> Any:
        """Read as ``d[index]`` does."""
        return self._dataset[index]

    def explain(self, index: Any) -> dict[str, Any]:
        """Explain as ``d.explain(index)`` does."""
        return self._dataset.explain(index)


class PairedIndex:
    """``d.vindex``: arrays pair up element by element; see `Dataset.vindex`."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset

    def __getitem__(self, index: Any) -> Any:
        """Read the elements that the arrays name."""
        return self._dataset._read_resolved(self._resolve(index))

    def explain(self, index: Any) -> dict[str, Any]:
        """Explain what reading an index does; see `Dataset.explain`."""
        return self._dataset._explain(self._resolve(index))

    def _resolve(self, index: Any) -> _native.Selection:
        dataset = self._dataset
        dataset._reads()
        label = dataset._label()
        if not dataset.shape:
            raise SelectionError(f"{label}: vindex takes datasets with dimensions only")
        resolved = resolve(dataset.shape, index, label, paired=True)
        if resolved is None:
            raise SelectionError(
                f"{label}: vindex takes arrays of integers, masks, integers, slices and one "
                "Ellipsis"
            )
        return resolved
