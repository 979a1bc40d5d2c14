"""What is in a file, and what is wrong with it: facts, and findings drawn from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chunkwise._lazy import attach

if TYPE_CHECKING:
    from chunkwise.inspection.collect import dataset_facts
    from chunkwise.inspection.facts import DatasetFacts, FileFacts, ObjectFacts
    from chunkwise.inspection.finding import Finding
    from chunkwise.inspection.inspection import inspect
    from chunkwise.inspection.many import FileListing, ListedObject, list_many
    from chunkwise.remedy.fix import Fix

__all__ = [
    "DatasetFacts",
    "FileFacts",
    "FileListing",
    "Finding",
    "Fix",
    "ListedObject",
    "ObjectFacts",
    "dataset_facts",
    "inspect",
    "list_many",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "DatasetFacts": "chunkwise.inspection.facts",
        "FileFacts": "chunkwise.inspection.facts",
        "Finding": "chunkwise.inspection.finding",
        "Fix": "chunkwise.remedy.fix",
        "ObjectFacts": "chunkwise.inspection.facts",
        "dataset_facts": "chunkwise.inspection.collect",
        "FileListing": "chunkwise.inspection.many",
        "ListedObject": "chunkwise.inspection.many",
        "inspect": "chunkwise.inspection.inspection",
        "list_many": "chunkwise.inspection.many",
    },
)
