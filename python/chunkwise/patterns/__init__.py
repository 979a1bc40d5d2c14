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
    done,
    of_stored,
    question,
    stated,
    taken_for,
    told,
)

__all__ = [
    "HOW_TO_WRITE",
    "WORDS",
    "Access",
    "Around",
    "Hyperslab",
    "Union",
    "as_pattern",
    "as_stated",
    "count",
    "defaults",
    "done",
    "of_stored",
    "parse",
    "question",
    "stated",
    "taken_for",
    "told",
    "weight",
    "whole",
]
