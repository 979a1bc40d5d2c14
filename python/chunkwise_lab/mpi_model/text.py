"""How are the model's figures shown to a person?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from chunkwise.grammar.sizes import format_size
from chunkwise.words import counted, format_seconds, wrapped
from chunkwise_lab.mpi_model.calibrate import Calibration
from chunkwise_lab.mpi_model.model import (
    LIMITS,
    PHASES,
    RATES,
    Job,
    chunk_nbytes_needed,
    predict,
    ranks_of_one_index,
    rate_of_index,
)

_wrapped: Final = partial(wrapped, hanging="")
# A number that is not known within this factor is not known.
_UNTOLD: Final = 100.0
CHUNK_COUNTS: Final = (10**4, 10**5, 10**6, 10**7, 10**8)
_WORDS: Final = {
    "encode_rate": "a core encodes",
    "verify_rate": "a core verifies",
    "rank_rate": "a rank reads or writes",
    "node_rate": "a node reads or writes",
    "storage_rate": "the storage, in all",
    "index_s": "a chunk in the index",
    "exchange_s": "a rank waits for an answer",
    "request_s": "a question to the index writer",
    "fixed_s": "opening and closing",
    "overlap": "phases at the same time",
}


def lines(
    fitted: Calibration,
    job: Job,
    ranks: Sequence[int],
    checked: Sequence[tuple[int, float]] = (),
) -> Iterator[str]:
    """Write predictions in lines of 80 columns."""
    yield from _machine(fitted, checked)
    yield ""
    yield from _job(fitted, job)
    yield ""
    yield from _by_ranks(fitted, job, ranks)
    yield ""
    yield from _by_chunks(fitted, job, ranks)
    yield ""
    yield from _lifted(fitted, job, max(ranks))


def _machine(fitted: Calibration, checked: Sequence[tuple[int, float]]) -> Iterator[str]:
    measured = bool(fitted.estimates)
    yield f"machine     {'measured' if measured else 'assumed: no measured runs were given'}"
    for name, words in _WORDS.items():
        value = getattr(fitted.machine, name)
        if name in RATES:
            text = f"{format_size(round(value))}/s"
        elif name == "overlap":
            text = f"{100 * value:.0f}%"
        else:
            text = format_seconds(value) if value else "0 s"
        yield f"  {words:<30}  {text:>12}  {_how(fitted, name)}".rstrip()
    for n_ranks, ratio in checked:
        yield (
            f"  predicted from fewer ranks, {counted(n_ranks, 'rank')} take {ratio:.2f} times "
            "what was measured"
        )


def _how(fitted: Calibration, name: str) -> str:
    one = fitted.estimates.get(name)
    if one is None:
        return "assumed" if fitted.estimates else ""
    if one.at_least:
        return f"at least: never the limit ({counted(one.n_runs, 'run')})"
    spread = f", within {one.factor:.2f} times" if one.factor > 1.005 else ""
    if one.factor > _UNTOLD:
        spread = ", which do not show it"
    return f"{counted(one.n_runs, 'run')}{spread}"


def _job(fitted: Calibration, job: Job) -> Iterator[str]:
    found, low, high = fitted.predict(job)
    cores = job.n_cores or job.n_ranks
    yield (
        f"{format_size(job.nbytes)} in {job.n_chunks:,} chunks of "
        f"{format_size(job.chunk_nbytes)}, by {counted(job.n_ranks, 'rank')} on "
        f"{counted(cores, 'core')}:"
    )
    for phase in PHASES:
        seconds = found.phases[phase]
        if seconds:
            mark = f"  <- the limit: {LIMITS[phase]}" if phase == found.limit else ""
            yield f"  {phase:<9} {format_seconds(seconds):>10}{mark}"
    between = "" if low == high else f", between {format_seconds(low)} and {format_seconds(high)}"
    yield f"  all       {format_seconds(found.elapsed_s):>10}{between}"
    far = job.n_ranks / fitted.most_ranks if fitted.most_ranks else 0
    if far > 1:
        yield from _wrapped(
            f"This is for {far:,.0f} times the ranks that were measured. The interval counts how "
            "runs scattered, not what many ranks do to a network or a file system.",
        )


def _by_ranks(fitted: Calibration, job: Job, ranks: Sequence[int]) -> Iterator[str]:
    yield f"{'ranks':>7} {'':1}" + "".join(f"{name:>10}" for name in (*PHASES, "all"))
    for n_ranks in ranks:
        found = predict(fitted.machine, job.on(n_ranks))
        times = [*(found.phases[phase] for phase in PHASES), found.elapsed_s]
        cells = "".join(f"{_short(seconds):>10}" for seconds in times)
        yield f"{n_ranks:>7,} {'':1}{cells}"


def _short(seconds: float) -> str:
    return format_seconds(seconds) if seconds else "-"


def _by_chunks(fitted: Calibration, job: Job, ranks: Sequence[int]) -> Iterator[str]:
    shown = list(ranks)[-6:]
    yield (f"Time and limit by chunks and ranks (chunks of {format_size(job.chunk_nbytes)}):")
    yield f"{'chunks':>11} " + "".join(f"{n_ranks:>11,}" for n_ranks in shown)
    for n_chunks in CHUNK_COUNTS:
        cells = ""
        for n_ranks in shown:
            found = predict(fitted.machine, sized(job.on(n_ranks), n_chunks))
            cells += f"{f'{_short(found.elapsed_s)} {_LETTERS[found.limit]}':>11}"
        yield f"{n_chunks:>11,} {cells}"
    known = {letter: LIMITS[name] for name, letter in _LETTERS.items()}
    yield "  limit: " + ", ".join(f"{letter} {limit}" for letter, limit in known.items())


_LETTERS: Final = {
    "encode": "c", "read": "s", "write": "s", "exchange": "x", "allocate": "I", "verify": "v",
}  # fmt: skip


def sized(job: Job, n_chunks: int) -> Job:
    """The same job with another number of chunks of the same size."""
    nbytes = n_chunks * job.chunk_nbytes
    return replace(
        job, nbytes=nbytes, source_nbytes=round(job.source_nbytes * nbytes / job.nbytes)
    )


def _lifted(fitted: Calibration, job: Job, n_ranks: int) -> Iterator[str]:
    feeds = ranks_of_one_index(fitted.machine, job)
    if feeds < 1e9:
        rate = rate_of_index(fitted.machine, job) * job.ratio
        yield from _wrapped(
            f"The index writer of chunks of {format_size(job.chunk_nbytes)}: as fast as "
            f"{feeds:,.0f} ranks that encode, and as a storage that takes "
            f"{format_size(round(rate))}/s.",
        )
    many = sized(job.on(n_ranks), CHUNK_COUNTS[-1])
    before = predict(fitted.machine, many)
    if before.limit != "allocate":
        yield from _wrapped(
            f"With {n_ranks:,} ranks and {many.n_chunks:,} chunks the limit is not the index "
            f"writer but: {LIMITS[before.limit]}."
            + (" Larger batches ask less often." if before.limit == "exchange" else ""),
        )
        return
    size = chunk_nbytes_needed(fitted.machine, many)
    larger = predict(fitted.machine, replace(many, chunk_nbytes=size))
    yield from _wrapped(
        f"With {n_ranks:,} ranks and {many.n_chunks:,} chunks "
        f"({format_size(many.nbytes)}) the index writer is the limit "
        f"({format_seconds(before.elapsed_s)}). What lifts it:",
    )
    yield (
        f"  chunks of {format_size(size)} or more: {format_seconds(larger.elapsed_s)}, "
        f"the limit is then: {LIMITS[larger.limit]}"
    )
