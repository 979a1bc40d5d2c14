"""Which datasets can be made without downloading any, and how?

The same name, seed and shape give the same values, on any machine, with any chunks and filters.
"""

from chunkwise.errors import CannotWriteError
from chunkwise_lab.sample.datasets import SAMPLES, find
from chunkwise_lab.sample.spec import Sample
from chunkwise_lab.sample.writing import Written, write, write_elements

__all__ = ["SAMPLES", "CannotWriteError", "Sample", "Written", "find", "write", "write_elements"]
