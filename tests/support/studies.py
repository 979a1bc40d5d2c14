"""Made-up rows and studies, for tests of what follows from them."""

from pathlib import Path
from typing import Any

from chunkwise_lab.studies.results import Row
from chunkwise_lab.studies.study import Claim

STUDY = """
name = "tiny"
paper = "A. Author: A made-up paper"
about = "What becomes of a few rows."
setting = "A made-up machine."
statistic = "median"
repeat = {quick = 1, paper = 3}
minutes = {quick = 1, paper = 200}
disk = {quick = "1MiB", paper = "1MiB"}
files = ["rows.toml"]

[data.small]
sample = "cris"
both = {shape = [4, 5, 3, 7]}
labels = {size = "small"}
"""

ROWS = """
[[experiment]]
id = "rows"
title = "Rows"
source = "Table 1"
question = "Does the cache matter?"
found = "It does."

[[experiment.run]]
data = ["small"]
axes = {access = ["row=1x1x1x7"], reader = ["libhdf5"], cache = ["1KiB", "1MiB"]}

[[experiment.plot]]
title = "Reading"
x = "cache"
figure = "total_s"

[[experiment.published]]
where = {cache = "1KiB"}
figure = "total_s"
value = 3
source = "Table 1"

[[experiment.claim]]
id = "cache"
says = "A small cache makes reads slow."
rule = "ratio"
figure = "total_s"
slow = {cache = "1KiB"}
fast = {cache = "1MiB"}
published = "3 s against 1 s"
advice = "Make the cache as large as a chunk."

[[experiment]]
id = "chunks"
title = "Chunks"
source = "Figure 2"
question = "Which reader?"
found = "Either."

[[experiment.run]]
data = ["small"]
axes = {access = ["all"], reader = ["libhdf5", "chunkwise"], cache = ["1KiB", "1MiB"]}
"""


def write_study(folder: Path, rows: str = ROWS, study: str = STUDY) -> Path:
    """Write a study of a user's."""
    folder.mkdir(exist_ok=True)
    (folder / "study.toml").write_text(study)
    (folder / "rows.toml").write_text(rows)
    return folder


def row(*total_s: float, hdf5: str = "2.0.0", extra: Any = None, **point: Any) -> Row:
    """Make a row that was measured so often; without figures, one that failed."""
    point = {name.replace("_", "-"): text for name, text in point.items()}
    records: list[dict[str, Any]] = [
        {"status": "ok", "total_s": seconds, "hdf5": hdf5, **(extra or {})} for seconds in total_s
    ]
    failed = {"status": "failed", "error": "the worker was ended by SIGKILL"}
    return Row(point, tuple(records) or (failed,))


def claim(rule: str, figure: Any = "total_s", published: Any = "", **settings: Any) -> Claim:
    """Make a claim."""
    return Claim("made-up", "Made up.", rule, figure, settings, published)
