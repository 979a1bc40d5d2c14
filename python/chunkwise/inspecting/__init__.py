"""What is in a file, and what is wrong with it: facts, and findings drawn from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chunkwise._lazy import attach

if TYPE_CHECKING:
    from chunkwise.inspecting.collect import dataset_facts
    from chunkwise.inspecting.facts import DatasetFacts, FileFacts, ObjectFacts
    from chunkwise.inspecting.finding import Finding
    from chunkwise.inspecting.inspection import inspect
    from chunkwise.model.fix import Fix

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
        "DatasetFacts": "chunkwise.inspecting.facts",
        "FileFacts": "chunkwise.inspecting.facts",
        "Finding": "chunkwise.inspecting.finding",
        "Fix": "chunkwise.model.fix",
        "ObjectFacts": "chunkwise.inspecting.facts",
        "dataset_facts": "chunkwise.inspecting.collect",
        "inspect": "chunkwise.inspecting.inspection",
    },
)
