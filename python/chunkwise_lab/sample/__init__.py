"""Which datasets can be made without downloading any, and how?

`SAMPLES` lists them, `write` writes one.  Each stands for a paper's data, or for
a common kind of file, and is generated: the project carries no foreign data.
The same name, seed and shape always give the same values, on any machine,
with any chunks and filters.
"""

from chunkwise.errors import CannotWriteError
from chunkwise_lab.sample.datasets import SAMPLES, find
from chunkwise_lab.sample.spec import Sample
from chunkwise_lab.sample.writing import Written, write, write_elements

__all__ = ["SAMPLES", "CannotWriteError", "Sample", "Written", "find", "write", "write_elements"]
