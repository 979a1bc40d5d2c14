"""How are filters, shapes, sizes, times and counts written, everywhere in chunkwise?

One grammar serves the command line, the API, findings and results; whatever is printed here can be
parsed here.
"""

from chunkwise.grammar.filters import Effort, Filter, Pipeline
from chunkwise.grammar.sizes import (
    Shape,
    ShapeWord,
    format_shape,
    format_size,
    parse_count,
    parse_duration,
    parse_shape,
    parse_size,
)

__all__ = [
    "Effort",
    "Filter",
    "Pipeline",
    "Shape",
    "ShapeWord",
    "format_shape",
    "format_size",
    "parse_count",
    "parse_duration",
    "parse_shape",
    "parse_size",
]
