"""How fast does a program's access pattern read this file, and why?

`run` measures; its `Results` give `records` (one flat row a trial), `summary()`
(one row for each pattern, driver and cache) and `mismatches`; `explain` says why.
`load` reads what was saved of a run, and `judge` compares such runs.
"""

from chunkwise.bench.access import Access
from chunkwise.bench.advice import Advice
from chunkwise.bench.compare import judge
from chunkwise.bench.explain import explain
from chunkwise.bench.results import Results
from chunkwise.bench.run import run
from chunkwise.bench.saved import load
from chunkwise.bench.target import Target
from chunkwise.bench.trial import Measurement, Trial

__all__ = [
    "Access",
    "Advice",
    "Measurement",
    "Results",
    "Target",
    "Trial",
    "explain",
    "judge",
    "load",
    "run",
]
