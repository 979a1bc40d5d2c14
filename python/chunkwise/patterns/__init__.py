"""What is an access pattern, and how is one written?

Nothing here imports h5py: workers of bench may load another libhdf5.
"""

from chunkwise.patterns.around import Around
from chunkwise.patterns.grammar import (
    HOW_TO_WRITE,
    WORDS,
    Access,
    Hyperslab,
    Union,
    count,
    defaults,
    parse,
    weight,
    whole,
)
from chunkwise.patterns.stated import (
    as_pattern,
    as_stated,
    interpretations,
    of_stored,
    question,
    read,
    stated,
    taken_for,
)
from chunkwise.patterns.unbound import Dataset, StatedPattern

__all__ = [
    "HOW_TO_WRITE",
    "WORDS",
    "Access",
    "Around",
    "Dataset",
    "Hyperslab",
    "StatedPattern",
    "Union",
    "as_pattern",
    "as_stated",
    "count",
    "defaults",
    "interpretations",
    "of_stored",
    "parse",
    "question",
    "read",
    "stated",
    "taken_for",
    "weight",
    "whole",
]
