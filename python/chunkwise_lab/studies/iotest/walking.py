"""Which part of the walk does a study measure: some combinations, each with some filters?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from chunkwise.grammar import Pipeline
from chunkwise_lab.studies.iotest.known import known, names
from chunkwise_lab.studies.iotest.pattern import Geometry, Values
from chunkwise_lab.studies.iotest.run import once
from chunkwise_lab.studies.iotest.settings import Settings
from chunkwise_lab.studies.iotest.walk import chosen
from chunkwise_lab.studies.iotest.world import World

# What a plan says of the pattern, by attributes of `Settings`.
_PATTERN: Final = (
    "steps", "arrays", "rows", "columns", "scaling", "alignment_increment", "alignment_threshold",
)  # fmt: skip
# What a record keeps of each thing that is known against a combination.
_SAID: Final = ("code", "severity", "summary", "remedy")


def measure(
    world: World, settings: Mapping[str, Any], folder: Path
) -> Iterator[tuple[dict[str, str], dict[str, Any]]]:
    """Measure each combination once.

    ``filters`` names the chains, ``where`` what combinations must have, and the rest is of
    `chunkwise_lab.studies.iotest.settings.Settings`.  Records have ``total_s``, the wall time;
    ``made_s`` and ``elapsed_s`` of it, to make datasets and to write, of the slowest rank;
    ``selected_nbytes`` and ``file_nbytes``.
    """
    pattern = {name: settings[name] for name in _PATTERN if name in settings}
    whole = replace(Settings(single_process="mpi-io-uni", **pattern)).on(world.size)
    file = str(folder / "walk.h5")
    values = Values(whole, world.rank)
    looked = known(world, str(folder))
    for text in settings.get("filters", ("none",)):
        one_of = replace(whole, filters=Pipeline.parse(text))
        for one in chosen(one_of, world.size, _present(settings.get("where", ()), world.size)):
            row = once(world, one_of, one, values, file)
            # Of the dataset, where other labels tell how many ranks there are.
            point = {"dataset-rank" if k == "rank" else k: v for k, v in one.point().items()}
            point["filter"] = str(text)
            # A single process by MPI-IO does what several do collectively.
            if one.io == "mpi-io-uni":
                point["io"] = "collective"
            if row is None:
                yield point, {}
                continue
            figures = row.figures()
            yield (
                point,
                {
                    "status": "ok",
                    "total_s": row.wall_s,
                    "made_s": figures["creat-max"],
                    # Of the writes, for their rate.
                    "elapsed_s": figures["write-max"],
                    "selected_nbytes": whole.nbytes,
                    "file_nbytes": row.file_nbytes,
                    "shape": [whole.steps, whole.arrays, *whole.plane],
                    "itemsize": 8,
                    "weak": whole.scaling == "weak",
                    "warnings": [
                        {name: getattr(finding, name) for name in _SAID}
                        for finding in looked.look(Geometry(one_of, one), names(one_of))
                    ],
                },
            )


def _present(where: tuple[str, ...], size: int) -> list[str]:
    """Leave out of single processes what is said of several."""
    return [text for text in where if size > 1 or not text.startswith("io=")]
