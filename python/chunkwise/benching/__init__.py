"""How fast does a program's access pattern read this file, and why?

`bench` measures (`chunkwise.bench`), and so does `run`, for a `Space`.  Their `Results` give
`records` (one flat row a trial), `summary()` (one row for each combination that was measured),
`mismatches`, and `advice`: why the slow pattern is slow.  `load` reads a saved run,
and `judge` compares such runs.
"""

from chunkwise.access.pattern import Access
from chunkwise.benching.api import bench
from chunkwise.benching.compare import judge
from chunkwise.benching.explain import explain
from chunkwise.benching.new import run_new
from chunkwise.benching.results import Advice, Results
from chunkwise.benching.run import run
from chunkwise.benching.saved import load
from chunkwise.benching.space import Space
from chunkwise.benching.target import Target
from chunkwise.benching.together import run_together
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
    "run_new",
    "run_together",
]
