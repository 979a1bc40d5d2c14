"""What is an access pattern, and how is one written?

Nothing here imports h5py: workers of bench may load another libhdf5.
"""

from chunkwise.access.around import Around
from chunkwise.access.grammar import (
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
from chunkwise.access.stated import as_pattern, done, stated

__all__ = [
    "HOW_TO_WRITE",
    "WORDS",
    "Access",
    "Around",
    "Hyperslab",
    "Union",
    "as_pattern",
    "count",
    "defaults",
    "done",
    "parse",
    "stated",
    "weight",
    "whole",
]
