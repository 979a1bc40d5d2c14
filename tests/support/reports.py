"""Made-up results of a study that there is not: all that a report must cope with."""

from typing import Any

from chunkwise.measure.space import Space
from chunkwise_lab.studies.results import Outcome, StudyResults
from chunkwise_lab.studies.study import Claim, Experiment, Plot, Published, Run, Study

ENVIRONMENT = {
    "cpu": "A Processor of Some Kind", "cpu_count": 2, "machine": "x86_64", "system": "Linux 6",
    "hdf5": "2.0.0", "h5py": "3.16.0", "zlib": "1.3", "python": "3.12.1", "chunkwise": "0.1.0",
    "numpy": "2.2.6", "reader": "libhdf5",
}  # fmt: skip
HOSTILE = "</script><b onclick='x'>&amp; \"bold\" $\\alpha$ | `x`"
LONG = "a very long label that no phone has room for, and a screen barely: deflate:6+shuffle"
SPACE = Space({})
RUN = Run((), {"quick": SPACE, "paper": SPACE}, {"quick": None, "paper": None})
SIDES = [round(8 * 1.28**n) for n in range(25)]
ONE = {"reader": "libhdf5"}


def record(point: dict[str, str], values: dict[str, float], **more: Any) -> dict[str, Any]:
    """Write one repeat of a row."""
    return {**ENVIRONMENT, "status": "ok", "point": point, **values, **more}


def repeats(
    point: dict[str, str], seconds: float, n: int = 3, **more: Any
) -> list[dict[str, Any]]:
    """Write a row of a few repeats that differ by some percent."""
    return [record(point, {"total_s": seconds * (1 + 0.04 * i)}, **more) for i in range(n)]


def cache_size() -> tuple[Experiment, Outcome]:
    """Sizes, `default` and 0 along the axis; values over six decades; an estimate, a failure."""
    times = {
        "default": 0.5, "0": 400.0, "64KiB": 350.0, "1MiB": 300.0, "3MiB": 3e-4, "64MiB": 4e-4,
    }  # fmt: skip
    records = []
    for reader, factor in (("libhdf5", 1.0), ("h5py", 1.4)):
        for cache, seconds in times.items():
            if (reader, cache) == ("h5py", "1MiB"):
                continue
            estimated = seconds > 100
            point = {"cache": cache, "reader": reader}
            records += repeats(point, seconds * factor, extrapolated=estimated)
    point = {"cache": "1MiB", "reader": "h5py"}
    records.append({"status": "timeout", "error": "no figures within 3 s", "point": point})
    return (
        Experiment(
            "cache-size", "Chunk cache size", "Figure 12 and section 5.5", "How large must it be?",
            "At least one chunk: below, everything is decoded again.", (RUN,),
            plots=(Plot("Reading by rows", "cache", "total_s", ("reader",), log=("x", "y")),),
            published=(
                Published({"cache": "1MiB", "reader": "libhdf5"}, "total_s", 345, "Table 5"),
                Published({"cache": "3MiB", "reader": "libhdf5"}, "total_s", 0.37, "Table 5"),
            ),
            claims=(
                Claim(
                    "collapse", "A cache smaller than a chunk collapses", "ratio", "total_s",
                    {"slow": {"cache": "1MiB"}, "fast": {"cache": "3MiB"}, "where": ONE},
                    "345 s against 0.37 s", "Make the chunk cache hold at least one chunk.",
                ),
                Claim(
                    "reader", "h5py costs nothing", "same", "total_s",
                    {"one": {"reader": "libhdf5"}, "other": {"reader": "h5py"}}, "",
                    "Do not mind who reads.",
                ),
            ),
        ),
        Outcome(
            records, ["no libhdf5 was found besides h5py's"], ["two trials met different bytes"]
        ),
    )  # fmt: skip


def chunk_size() -> tuple[Experiment, Outcome]:
    """25 points of six series with long names, over a linear axis of numbers."""
    records = []
    for n in range(6):
        for k, side in enumerate(SIDES):
            point = {"side": str(side), "filter": LONG[: 84 - 9 * n]}
            records += repeats(point, (1 + n) * 30 / (k + 2) + 0.2 * k, 2)
    return (
        Experiment(
            "chunk-size", "Chunk size, with a title that is long enough to be broken on a phone",
            "Figure 10", "Which is best?", "About 64 KB.", (RUN,),
            only_drawn="Figure 10 shows a valley without numbers; the text calls 64 KB optimal.",
            plots=(Plot("Writing, by the side", "side", "total_s", ("filter",), log=("x",)),),
            note="Generated data.",
        ),
        Outcome(records),
    )  # fmt: skip


def words() -> tuple[Experiment, Outcome]:
    """Words along the axis, of which one is hostile; bytes; a single repeat; one point alone."""
    records = [
        record({"storage": storage, "reader": reader}, {"file_nbytes": 1e6 * (n + 1) * (2 + m)})
        for n, storage in enumerate(("contiguous", LONG, HOSTILE))
        for m, reader in enumerate(("libhdf5", "chunkwise"))
    ]
    bars = Plot("File size", "storage", "file_nbytes", ("reader",), kind="bar")
    one = Plot("One point", "side", "total_s", log=("x", "y"))
    records += repeats({"side": "512"}, 2.5, 1)
    return (
        Experiment(
            "words", "Storage", "Table 2", "How large is it?", "Not stated.", (RUN,),
            plots=(bars, one),
            published=(
                Published({"storage": "contiguous"}, "file_nbytes", 3.1e6, "Table 2"),
                Published({"storage": "as then"}, "file_nbytes", 5e6, "Table 2", HOSTILE),
            ),
        ),
        Outcome(records),
    )  # fmt: skip


def made_up() -> tuple[StudyResults, Study]:
    """Return a study and its results."""
    found = [cache_size(), chunk_size(), words()]
    study = Study(
        "made-up", "A Paper: On Nothing (2005)", "It asks how long nothing takes.",
        "A machine of then.", "mean", {"quick": 3, "paper": 10},
        {"quick": 1, "paper": 1}, {"quick": 0, "paper": 0}, {},
        tuple(experiment for experiment, _ in found),
    )  # fmt: skip
    results = StudyResults("made-up", "quick", 3, "2026-11-22T12:00:00+00:00", 61.5)
    results.outcomes = {experiment.id: outcome for experiment, outcome in found}
    results.complete = True
    return results, study
