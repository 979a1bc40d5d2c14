"""Facts about a file: what it holds, and how that is stored."""

from chunkwise.inspect.facts import DatasetFacts, FileFacts, ObjectFacts, dataset_facts, inspect

__all__ = ["DatasetFacts", "FileFacts", "ObjectFacts", "dataset_facts", "inspect"]
