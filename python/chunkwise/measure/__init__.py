"""How fast does a program's access pattern read this file, and why?"""

from chunkwise.measure.api import bench
from chunkwise.measure.compare import judge
from chunkwise.measure.explain import explain
from chunkwise.measure.results import Advice, Results
from chunkwise.measure.run import run
from chunkwise.measure.saved import load
from chunkwise.measure.space import Space
from chunkwise.measure.target import Target
from chunkwise.patterns.pattern import Access
from chunkwise.trials.trial import Measurement, Trial

__all__ = [
    "Access",
    "Advice",
    "Measurement",
    "Results",
    "Space",
    "Target",
    "Trial",
    "bench",
    "explain",
    "judge",
    "load",
    "run",
]
