"""Which findings of paper 004 hold in the figures of today, and which do not?

A finding is whether it holds, and what it says, with figures of today; those of the paper
follow in brackets.  Where a figure is missing, nothing is said.
"""

from __future__ import annotations

from paper004_reads import CHUNK_NBYTES, Report, times

from chunkwise.grammar import format_size

# So many times as long is a collapse; up to so many is alike; the paper calls "only 10
# times" a fair price of compression.
COLLAPSE = 100.0
ALIKE = 1.5
COST = 10.0
Finding = tuple[bool, str] | None


def findings(report: Report) -> list[str]:
    """Say line by line what still holds, what does not, and what chunkwise does."""
    checks = (_collapse, _cures, _repacking, _cache_size, _default, _cost)
    found = [finding for check in checks if (finding := check(report))]
    lines = []
    for opening, wanted in (("still hold", True), ("do not hold", False)):
        texts = [f"- {text}." for holds, text in found if holds is wanted]
        if texts:
            lines += [f"Findings of the paper that {opening} here (its figures in brackets):"]
            lines += texts
    ours = _chunkwise(report)
    return [*lines, ours] if ours else lines


def _collapse(report: Report) -> Finding:
    ratio = report.ratio("row", "plain_row")
    if ratio is None:
        return None
    return ratio >= COLLAPSE, (
        "Under a cache smaller than a chunk, compressed rows take "
        f"{report.mark('row')}{times(ratio)} times as long as rows not compressed (3,450)"
    )


def _cures(report: Report) -> Finding:
    cured = [report.figure(key) for key in ("row_3mb", "chunk", "small")]
    taken = [figure.total_s for figure in cured if figure.total_s]
    collapsed = report.figure("row").total_s
    if len(taken) < len(cured) or collapsed is None:
        return None
    holds = max(taken) <= ALIKE * min(taken) and collapsed >= COLLAPSE * max(taken)
    return holds, (
        "A larger cache, whole chunks and smaller chunks cure that equally well: "
        f"{cured[0]}, {cured[1]} and {cured[2]} s (0.37, 0.36 and 0.36)"
    )


def _repacking(report: Report) -> Finding:
    repacking, small, row = (report.figure(key) for key in ("repack", "small", "row"))
    if repacking.total_s is None or small.total_s is None or row.total_s is None:
        return None
    return repacking.total_s + small.total_s < row.total_s, (
        f"Repacking into smaller chunks pays at once: {repacking} s, then {small} s, instead of "
        f"{row} (12 and 0.36, instead of 345)"
    )


def _cache_size(report: Report) -> Finding:
    ratio = report.ratio("plain_row", "plain_row_3mb")
    if ratio is None:
        return None
    small, large = (report.figure(key) for key in ("plain_row", "plain_row_3mb"))
    return 1 / ALIKE <= ratio <= ALIKE, (
        "The size of the cache makes no difference to rows not compressed: "
        f"{small} s with 1 MB, {large} s with 3 MB (both 0.1)"
    )


def _default(report: Report) -> Finding:
    version = report.environment.get("hdf5", "here")
    given = f"HDF5 {version} gives a cache of {format_size(report.default_cache_nbytes)}"
    if report.default_cache_nbytes < CHUNK_NBYTES:
        return True, f"Compressed rows collapse by default: {given}"
    took = report.figure("row_default")
    if took.total_s is None:
        return None
    return False, (
        f"Compressed rows collapse by default: {given}, which holds the chunk, and they take "
        f"{took} s. With HDF5 1.10, 1.12 and 1.14, which give 1 MiB, they do collapse"
    )


def _cost(report: Report) -> Finding:
    rows = report.ratio("row_3mb", "plain_row")
    chunks = report.ratio("chunk", "plain_chunk")
    if rows is None or chunks is None:
        return None
    return max(rows, chunks) <= COST, (
        "Once that is cured, compression costs a factor of ten at most: rows take "
        f"{report.mark('row_3mb')}{times(rows)} times as long as not compressed (3.7), whole "
        f"chunks {report.mark('chunk')}{times(chunks)} times (9)"
    )


def _chunkwise(report: Report) -> str | None:
    collapsed = report.speedup("row")
    cured = _range(report, "row_3mb", "chunk", "small", "row_default", "all_default")
    plain = _range(report, "plain_row", "plain_row_3mb", "plain_chunk", "plain_small")
    if collapsed is None or cured is None or plain is None:
        return None
    return (
        "chunkwise, with nothing set, is "
        f"{report.mark('row')}{times(collapsed)} times as fast as libhdf5 where that collapses, "
        f"{cured} times in the other compressed cases, and {plain} times where nothing is "
        "compressed and bytes are only copied."
    )


def _range(report: Report, *keys: str) -> str | None:
    """Return the lowest and the highest speed-up of some cases."""
    found = [(ratio, report.mark(key)) for key in keys if (ratio := report.speedup(key))]
    if not found:
        return None
    return " to ".join(mark + times(ratio) for ratio, mark in (min(found), max(found)))
