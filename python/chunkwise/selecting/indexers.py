"""How are arrays between the brackets combined: each with each, or pair by pair?"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chunkwise.selecting.explained import Explained


class OuterIndex:
    """``d.oindex``: every choice of one entry goes with every choice of the others."""

    def __init__(self, read: Callable[[Any], Any]) -> None:
        self._read = read

    def __getitem__(self, index: Any) -> Any:
        """Read the elements of an index."""
        return self._read(index)


class ExplainedIndex(OuterIndex):
    """``d.oindex`` and ``d.vindex`` of one dataset; see `Dataset.vindex`."""

    def __init__(self, read: Callable[[Any], Any], explain: Callable[[Any], Explained]) -> None:
        super().__init__(read)
        self._explain = explain

    def explain(self, index: Any) -> Explained:
        """Explain what reading an index does; see `Dataset.explain`."""
        return self._explain(index)
