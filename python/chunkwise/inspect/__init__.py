"""Facts about a file, and findings drawn from them."""

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
