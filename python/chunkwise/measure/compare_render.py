"""How is a comparison shown on a terminal of 80 columns, or as JSON?"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from chunkwise.cells import Hung
from chunkwise.grammar import format_shape, format_size
from chunkwise.measure.compare import ORDER, Comparison, Match
from chunkwise.measure.saved import AS_STORED, PARAMETERS, Sample, Saved
from chunkwise.measure.tables import plain_table, say
from chunkwise.measure.verdict import CONFIDENCE, FACTOR_OF_FEW, FEWEST
from chunkwise.names import printable
from chunkwise.words import counted, format_seconds, format_speed, three_digits

JSON_FORMAT: Final = "chunkwise-compare"
JSON_VERSION: Final = 2
# What a pattern's own column says, or the heading.
_ELSEWHERE: Final = frozenset(
    {"dataset", "block", "reader", "order", "seed", "limit", "slabs", "cells"}
)
_DATA: Final = {"stored_nbytes": "stored size", "dtype": "type"}
# Beside a verdict that the fastest repeats do not bear out.
_HELD_BACK: Final = "+"
_STYLES: Final = {"failed": "bold red", "slower": "bold red", "faster": "green"}
# Fewer trials show nothing in common.
_SEVERAL: Final = 3


def as_json(comparison: Comparison) -> dict[str, Any]:
    """Return the comparison as one JSON object; docs/compare.md describes it."""
    ratios = comparison.ratios
    other = {
        **_file(comparison.other),
        "data_differs": sorted(comparison.data_differs),
        "environment_differs": list(comparison.environment_differs),
        "verdict": comparison.word,
        "counts": {word: comparison.count(word) for word in ORDER},
        "mean_ratio": comparison.mean_ratio,
        "highest_ratio": ratios[0] if ratios else None,
        "lowest_ratio": ratios[-1] if ratios else None,
        "trials": [_trial(match) for match in comparison.matches.values()],
        "only_base": [{"access": s.access, **s.parameters} for s in comparison.only_base],
        "only_other": [{"access": s.access, **s.parameters} for s in comparison.only_other],
    }
    return {
        "format": JSON_FORMAT,
        "version": JSON_VERSION,
        "threshold": comparison.threshold,
        "confidence": CONFIDENCE,
        "verdict": comparison.word,
        "base": _file(comparison.base),
        # A list, as several files could once be compared with one.
        "others": [other],
    }


def _file(saved: Saved) -> dict[str, Any]:
    return {"path": saved.path, "data": saved.data, "environment": saved.environment}


def _trial(match: Match) -> dict[str, Any]:
    found = match.verdict
    return {
        "access": match.base.access,
        **match.base.parameters,
        "verdict": match.word,
        "ratio": found and found.ratio,
        "low": found and found.low,
        "high": found and found.high,
        "fastest_ratio": found and found.fastest,
        "repeats_needed": found and found.repeats,
        "extrapolated": match.extrapolated,
        "base_waited": match.base_waited,
        "other_waited": match.other_waited,
        "base_total_s": match.base.total_s,
        "other_total_s": match.other.total_s,
        "error": match.other.error or match.base.error,
    }


def show(comparison: Comparison, console: Console) -> None:
    """Print what is compared, the table, and what follows from it."""
    for letter, saved in (("A", comparison.base), ("B", comparison.other)):
        console.print(f"{letter}  {printable(saved.path)}", highlight=False, soft_wrap=True)
    for line, style in _differences(comparison):
        say(console, line, style, "  ")
    console.print()
    console.print(_table(comparison), highlight=False)
    console.print()
    for line in _footnotes(comparison):
        say(console, line, indent="  ")
    console.print()
    for number, sentence in enumerate(_conclusion(comparison)):
        say(console, sentence, "" if number else "bold")


def _differences(comparison: Comparison) -> Iterator[tuple[str, str]]:
    """Say what differs besides the times; first the data, which makes times incomparable."""
    data = [
        f"{_DATA.get(name, name)} {_datum(name, first)} and {_datum(name, second)}"
        for name, (first, second) in comparison.data_differs.items()
    ]
    if data:
        yield f"Warning: A and B read different data: {'; '.join(data)}.", "yellow"
    around = [
        f"{name} {first or 'unknown'} and {second or 'unknown'}"
        for name, (first, second) in comparison.environment_differs.items()
    ]
    if around:
        yield f"A and B differ in: {printable('; '.join(around))}.", ""
    else:
        yield "A and B: the same machine and versions.", ""


def _datum(name: str, value: Any) -> str:
    if name == "stored_nbytes":
        return format_size(value)
    return format_shape(value) if isinstance(value, list) else printable(str(value))


def _table(comparison: Comparison) -> Table:
    table = plain_table()
    table.add_column("pattern", overflow="fold")
    table.add_column("reader", overflow="fold")
    for title in ("A", "B", "ratio", f"{CONFIDENCE:.0%} sure"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for match in comparison.worst_first:
        found = match.verdict
        table.add_row(
            _pattern(match.base),
            _who(match.base.parameters),
            _median(match.base, match.base_waited),
            _median(match.other, match.other_waited),
            "-" if found is None else format_speed(found.ratio),
            "-" if found is None else _interval(found.low, found.high),
            Text(_word(match, comparison.threshold), style=_STYLES.get(match.word, "")),
        )
    return table


def _pattern(sample: Sample) -> Hung:
    """Name the pattern, and below what is read if the name does not say it."""
    spelled = format_shape(tuple(sample.parameters["block"]))
    listed = (sample.parameters["slabs"], sample.parameters["cells"]) != (None, None)
    if listed or spelled in sample.access:
        return Hung(printable(sample.access))
    return Hung(f"{printable(sample.access)}\n{spelled}")


def _who(parameters: Mapping[str, Any]) -> Text:
    """Name the reader, and below every parameter that is not what it is by default."""
    parts = []
    for field in PARAMETERS:
        value = parameters[field.name]
        if field.name in _ELSEWHERE or value in (field.default, AS_STORED):
            continue
        name = field.name.replace("_", " ")
        if field.name.endswith("_nbytes"):
            parts.append(f"{name.removesuffix(' nbytes')} {format_size(value)}")
        elif isinstance(value, list):
            parts.append(f"{name} {format_shape(tuple(value))}")
        else:
            parts.append(f"{name} {value}")
    return Text("\n".join([parameters["reader"], *parts]))


def _median(sample: Sample, waited: bool) -> str:
    if not sample.total_s:
        return sample.status
    about = "~" if sample.extrapolated else ""
    return f"{about}{format_seconds(statistics.median(sample.total_s))}{'*' if waited else ''}"


def _word(match: Match, threshold: float) -> str:
    held_back = match.verdict is not None and match.verdict.held_back(threshold)
    return f"{match.word}{_HELD_BACK if held_back else ''}"


def _interval(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return "-"
    if high < 0.1:
        return f"1/{1 / low:,.0f}-1/{1 / high:,.0f}"
    return f"{three_digits(low)}-{three_digits(high)}"


def _footnotes(comparison: Comparison) -> Iterator[str]:
    matches = comparison.matches.values()
    yield (
        "Times: all reads of a pattern, medians of the repeats. Ratio: time divided by A's. "
        f"The threshold is {comparison.threshold:g} times either way: a verdict is certain where "
        "all of the interval lies on one side of it."
    )
    if any(match.extrapolated for match in matches):
        yield "~ estimated: not every read was done."
    if any(match.base_waited or match.other_waited for match in matches):
        yield (
            "* had no processor for a part of that time: the machine was busy. Ratios leave this "
            "waiting out."
        )
    if any(m.verdict is not None and m.verdict.low is None for m in matches):
        yield (
            f"Fewer than {FEWEST} repeats do not show their spread: slower and faster then mean "
            f"{FACTOR_OF_FEW:g} times and more."
        )
    yield from _held_back_notes(comparison)
    for match in matches:
        for name, sample in (("A", match.base), ("B", match.other)):
            if not sample.total_s:
                error = printable(sample.error or "no reason given")
                yield f"{sample.status} in {name}: {_label(sample)}: {error}"
    for name, absent, alone in (
        ("A", "B", comparison.only_base),
        ("B", "A", comparison.only_other),
    ):
        if alone:
            labels = "; ".join(_label(sample) for sample in alone)
            yield f"Only in {name}, not in {absent}: {labels}."


def _held_back_notes(comparison: Comparison) -> Iterator[str]:
    """Say why some verdicts are not certain although their interval is beyond the threshold."""
    fastest, waiting = [], []
    for match in comparison.matches.values():
        found = match.verdict
        why = found and found.held_back(comparison.threshold)
        if found is not None and why == "fastest" and found.fastest is not None:
            fastest.append(f"{_label(match.other)} {format_speed(found.fastest)}")
        elif why == "waiting":
            waiting.append(_label(match.other))
    if fastest:
        yield (
            f"{_HELD_BACK} The interval is beyond the threshold, but the fastest repeats are "
            f"not, and a verdict needs both. B's fastest divided by A's: {'; '.join(fastest)}."
        )
    if waiting:
        yield (
            f"{_HELD_BACK} The interval is beyond the threshold, but threads of B or A may have "
            "waited for a processor, which is no difference between the programs: "
            f"{'; '.join(waiting)}."
        )


def _label(sample: Sample) -> str:
    return f"'{printable(sample.access)}' by {_who(sample.parameters).plain}".replace("\n", ", ")


def _conclusion(comparison: Comparison) -> Iterator[str]:
    """Sum up the verdicts in plain words; the first sentence is the answer."""
    yield f"B against A: {_answer(comparison, len(comparison.matches))}"
    if comparison.mean_ratio is not None:
        mean, high, low = (
            format_speed(r)
            for r in (comparison.mean_ratio, comparison.ratios[0], comparison.ratios[-1])
        )
        yield f"Geometric mean of the ratios: {mean} ({low} to {high})."
    undecided = [m for m in comparison.matches.values() if m.word == "cannot tell"]
    if undecided:
        yield _undecided(undecided, comparison.threshold)
    if _is_common(comparison):
        yield (
            "All trials changed by about the same factor, with every reader: that is the machine, "
            "or what all of them share, rather than one program."
        )


def _answer(comparison: Comparison, total: int) -> str:
    if comparison.word in ("same", "cannot tell") and not comparison.count("faster"):
        known = comparison.count("same")
        if known == total:
            return f"no difference in {counted(total, 'trial')}."
        same = f"; {known} of {counted(total, 'trial')} are the same" if known else ""
        return f"no difference is certain{same}."
    parts = [
        f"{comparison.count(word)} {word}"
        for word in ("failed", "slower", "faster", "same")
        if comparison.count(word)
    ]
    answer = f"of {counted(total, 'trial')}, {', '.join(parts)}"
    slower = [
        m for m in comparison.matches.values() if m.word == "slower" and m.verdict is not None
    ]
    if slower:
        worst = max(slower, key=lambda m: m.verdict.ratio if m.verdict else 0.0)
        assert worst.verdict is not None
        answer += f"; the worst: {_label(worst.other)}, {format_speed(worst.verdict.ratio)}"
    return answer + "."


def _undecided(undecided: list[Match], threshold: float) -> str:
    said = f"{len(undecided)} undecided: "
    waited = sum(match.base_waited or match.other_waited for match in undecided)
    if waited * 2 >= len(undecided):
        return said + "the machine was busy with other programs; measure again when it is not."
    if all(m.verdict is not None and m.verdict.held_back(threshold) for m in undecided):
        return (
            said + "see + above; measure again when the machine is not busy with other programs."
        )
    needed = [m.verdict.repeats for m in undecided if m.verdict and m.verdict.repeats]
    if not needed:
        return said + "the ratio is about the threshold, and more repeats will hardly decide."
    return (
        f"{said}they spread too much; bench --repeat {statistics.median_high(needed)} on both "
        f"sides would likely decide{' half of them' if len(undecided) > 1 else ''}."
    )


def _is_common(comparison: Comparison) -> bool:
    """Whether trials of several readers have all changed, and by about the same factor."""
    mean, ratios = comparison.mean_ratio, comparison.ratios
    readers = {match.base.parameters["reader"] for match in comparison.matches.values()}
    if mean is None or len(ratios) < _SEVERAL or len(readers) < 2:
        return False
    changed = max(mean, 1 / mean) > comparison.threshold
    return changed and ratios[0] / ratios[-1] < comparison.threshold
