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
    stated,
    weight,
    whole,
)

__all__ = [
    "HOW_TO_WRITE",
    "WORDS",
    "Access",
    "Around",
    "Hyperslab",
    "Union",
    "count",
    "defaults",
    "parse",
    "stated",
    "weight",
    "whole",
]
