"""How are filters, shapes, sizes, times and counts written and parsed, everywhere in chunkwise?"""

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
