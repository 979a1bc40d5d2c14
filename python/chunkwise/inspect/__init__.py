"""Facts about a file, and findings drawn from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chunkwise._lazy import attach

if TYPE_CHECKING:
    from chunkwise.advise.fix import Fix
    from chunkwise.inspect.collect import dataset_facts
    from chunkwise.inspect.facts import DatasetFacts, FileFacts, ObjectFacts
    from chunkwise.inspect.finding import Finding
    from chunkwise.inspect.inspection import inspect

__all__ = [
    "DatasetFacts",
    "FileFacts",
    "Finding",
    "Fix",
    "ObjectFacts",
    "dataset_facts",
    "inspect",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "DatasetFacts": "chunkwise.inspect.facts",
        "FileFacts": "chunkwise.inspect.facts",
        "Finding": "chunkwise.inspect.finding",
        "Fix": "chunkwise.advise.fix",
        "ObjectFacts": "chunkwise.inspect.facts",
        "dataset_facts": "chunkwise.inspect.collect",
        "inspect": "chunkwise.inspect.inspection",
    },
)
