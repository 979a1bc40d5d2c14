"""How fast does a program's access pattern read this file, and why?

`run` measures; its `Results` give `records` (one flat row a trial), `summary()`
(one row for each combination that was measured) and `mismatches`; `explain` says why.
`load` reads what was saved of a run, and `judge` compares such runs.
"""

from chunkwise.bench.advice import Advice
from chunkwise.bench.compare import judge
from chunkwise.bench.explain import explain
from chunkwise.bench.results import Results
from chunkwise.bench.run import run
from chunkwise.bench.saved import load
from chunkwise.bench.space import Space
from chunkwise.bench.target import Target
from chunkwise.trials.pattern import Access
from chunkwise.trials.trial import Measurement, Trial

__all__ = [
    "Access",
    "Advice",
    "Measurement",
    "Results",
    "Space",
    "Target",
    "Trial",
    "explain",
    "judge",
    "load",
    "run",
]
