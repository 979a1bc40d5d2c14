"""Which options does `chunkwise mpi-model` take, and what does it print?"""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from typing import Any

import click

from chunkwise.cli.echo import echo, echo_json
from chunkwise.errors import UsageError
from chunkwise.grammar.sizes import parse_size
from chunkwise_lab.mpi_model.model import RATES, Job, Machine

EXAMPLES = """\b
Examples:
  chunkwise mpi-model                      300 GB on a 64-core node
  chunkwise mpi-model --nbytes 20TB --chunk 4MiB --n-ranks 2048 --storage 80GB
  chunkwise mpi-model --n-ranks 4096 --chunk 64KiB
  chunkwise mpi-model runs-1.json runs-2.json runs-4.json --storage 20GB
  chunkwise mpi-model runs.json --json > model.json
"""
# Whole powers of 4, to 10,000.
RANKS = (1, 4, 16, 64, 256, 1024, 4096, 10000)
option = partial(click.option, show_default=True)


@click.command(epilog=EXAMPLES)
@click.argument("runs", nargs=-1, metavar="[RUNS.json...]")
@option("--nbytes", metavar="SIZE", default="300GB", help="Size of all data.")
@option("--chunk", metavar="SIZE", default="1MiB", help="Size of a chunk.")
@option(
    "--ratio",
    type=click.FloatRange(min=0, min_open=True),
    default=0.5,
    help="Stored bytes divided by decoded ones.",
)
@option("--n-ranks", type=click.IntRange(min=1), default=64, help="Number of MPI ranks.")
@click.option(
    "--storage",
    metavar="SIZE",
    help="Bytes a second of the storage, for all nodes together.  [default: 100GB]",
)
@click.option(
    "--assume",
    metavar="NAME=VALUE",
    multiple=True,
    help="A number of the machine that RUNS do not give: encode_rate, verify_rate, "
    "rank_rate, node_rate (sizes a second), index_s, exchange_s, request_s, fixed_s (seconds), "
    "overlap (0 to 1); may be repeated.",
)
@click.option(
    "--filesystem", metavar="NAME", help="Use RUNS on this `storage`.  [default: the first]"
)
@click.option("--json", "as_object", is_flag=True, help="Print the whole answer as JSON.")
def command(runs: tuple[str, ...], **words: Any) -> None:
    """Predict how long a parallel write or repack takes, and what its limit is.

    RUNS are measured runs on 1, 2, 4, ... ranks; docs/mpi.md describes them. With RUNS, the model
    is fitted to the machine, and each prediction has an interval. Without RUNS, a machine is
    assumed.
    """
    from chunkwise_lab.mpi_model.calibrate import Calibration, calibrate, left_out
    from chunkwise_lab.mpi_model.measured import read_runs
    from chunkwise_lab.mpi_model.text import lines

    nbytes = parse_size(words["nbytes"])
    job = Job(
        nbytes=nbytes,
        chunk_nbytes=parse_size(words["chunk"]),
        ratio=words["ratio"],
        n_ranks=words["n_ranks"],
        source_nbytes=round(nbytes * words["ratio"]),
    )
    assumed = _assumed(words["assume"])
    measured = read_runs(runs)
    fitted, checked = Calibration(assumed), []
    if measured:
        fitted = calibrate(measured, assumed, words["filesystem"])
        checked = left_out(measured, assumed, words["filesystem"])
    if words["storage"] is not None:
        # Said of this storage: no run need have reached it.
        machine = replace(fitted.machine, storage_rate=float(parse_size(words["storage"])))
        chosen = {name: one for name, one in fitted.estimates.items() if name != "storage_rate"}
        fitted = Calibration(machine, chosen, fitted.most_ranks)
    if words["as_object"]:
        echo_json(_record(fitted, job, checked), indent=1)
        return
    for line in lines(fitted, job, RANKS, checked):
        echo(line)


def _assumed(words: tuple[str, ...]) -> Machine:
    said: dict[str, float] = {}
    known = [name for name in vars(Machine()) if name != "storage_rate"]
    for word in words:
        name, _, text = word.partition("=")
        if name not in known:
            raise UsageError(f"--assume {word!r}: there are {', '.join(known)}")
        try:
            said[name] = float(parse_size(text)) if name in RATES else float(text)
        except ValueError:
            raise UsageError(f"--assume {word!r}: {name} must be a number") from None
    return Machine(**said)


def _record(fitted: Any, job: Job, checked: Any) -> dict[str, Any]:
    predictions = []
    for n_ranks in sorted({*RANKS, job.n_ranks}):
        one = job if n_ranks == job.n_ranks else job.on(n_ranks)
        found, low, high = fitted.predict(one)
        predictions.append({**asdict(found), "n_ranks": n_ranks, "low_s": low, "high_s": high})
    return {
        "format": "chunkwise-mpi-model",
        "version": 1,
        "job": {**asdict(job), "n_chunks": job.n_chunks},
        "machine": asdict(fitted.machine),
        "estimates": {name: asdict(one) for name, one in fitted.estimates.items()},
        "most_ranks": fitted.most_ranks,
        "checked": [{"n_ranks": n, "ratio": ratio} for n, ratio in checked],
        "predictions": predictions,
    }
