"""How are filters, shapes, sizes, times and counts written, everywhere in chunkwise?

One grammar serves the command line, the API, findings and results; whatever is
printed here can be parsed here.

=========  ==================================================================
filters    ``none``, ``deflate:6``, ``shuffle+deflate:4+fletcher32``,
           ``shuffle+deflate:fast``, ``szip:nn:32``, ``blosc:lz4:5``: names in
           pipeline order joined by ``+``, options after ``:`` (`Pipeline`, `Filter`)
shapes     ``4x30x9x717``, ``scalar``, and the words ``stored``, ``auto`` and
           ``contiguous`` (`parse_shape`, `format_shape`)
sizes      ``3MiB``, ``1e6``, ``512``, ``10kB`` (`parse_size`, `format_size`)
times      ``60s``, ``5min``, ``2h``, ``1h30min`` (`parse_duration`)
counts     ``1000``, ``10k``, ``1,000,000``, ``1 million`` (`parse_count`)
=========  ==================================================================
"""

from chunkwise.grammar.filters import Effort, Filter, Pipeline
from chunkwise.grammar.shapes import Shape, ShapeWord, format_shape, parse_shape
from chunkwise.grammar.sizes import format_size, parse_count, parse_duration, parse_size

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
