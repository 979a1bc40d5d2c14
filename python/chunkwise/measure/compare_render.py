"""How is a comparison shown on a terminal of 80 columns, or as JSON?"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from chunkwise.files.objects import printable
from chunkwise.grammar import format_shape, format_size
from chunkwise.measure.compare import ORDER, Against, Comparison, Match
from chunkwise.measure.printing import plain_table, say
from chunkwise.measure.saved import AS_STORED, PARAMETERS, Sample, Saved
from chunkwise.measure.verdict import CONFIDENCE, FACTOR_OF_FEW, FEWEST
from chunkwise.words import counted, format_seconds, format_speed, three_digits

JSON_FORMAT: Final = "chunkwise-compare"
JSON_VERSION: Final = 2
# This many files fit side by side in 80 columns.
ABREAST: Final = 4
# What a pattern's own column says, or the heading.
_ELSEWHERE: Final = frozenset(
    {"dataset", "block", "reader", "order", "seed", "limit", "slabs", "cells"}
)
_DATA: Final = {"stored_nbytes": "stored size", "dtype": "type"}
# Beside a verdict that the fastest repeats do not bear out.
_HELD_BACK: Final = "+"
_STYLES: Final = {"failed": "bold red", "slower": "bold red", "faster": "green"}
_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
# Fewer trials show nothing in common.
_SEVERAL: Final = 3


def as_json(comparison: Comparison) -> dict[str, Any]:
    """Return the comparison as one JSON object; docs/compare.md describes it."""
    words = [against.word for against in comparison.others]
    return {
        "format": JSON_FORMAT,
        "version": JSON_VERSION,
        "threshold": comparison.threshold,
        "confidence": CONFIDENCE,
        "verdict": min(words, key=ORDER.index),
        "base": _file(comparison.base),
        "others": [_against(against) for against in comparison.others],
    }


def _file(saved: Saved) -> dict[str, Any]:
    return {"path": saved.path, "data": saved.data, "environment": saved.environment}


def _against(against: Against) -> dict[str, Any]:
    ratios = against.ratios
    return {
        **_file(against.other),
        "data_differs": sorted(against.data_differs),
        "environment_differs": list(against.environment_differs),
        "verdict": against.word,
        "counts": {word: against.count(word) for word in ORDER},
        "mean_ratio": against.mean_ratio,
        "highest_ratio": ratios[0] if ratios else None,
        "lowest_ratio": ratios[-1] if ratios else None,
        "trials": [_trial(match) for match in against.matches.values()],
        "only_base": [{"access": s.access, **s.parameters} for s in against.only_base],
        "only_other": [{"access": s.access, **s.parameters} for s in against.only_other],
    }


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
    for letter, saved in _named(comparison):
        console.print(f"{letter}  {printable(saved.path)}", highlight=False, soft_wrap=True)
    for letter, against in _lettered(comparison):
        for line, style in _differences(letter, against):
            say(console, line, style, "  ")
    for first in range(0, len(comparison.others), ABREAST):
        console.print()
        console.print(_table(comparison, first), highlight=False)
    console.print()
    for line in _footnotes(comparison):
        say(console, line, indent="  ")
    for letter, against in _lettered(comparison):
        console.print()
        for number, sentence in enumerate(_conclusion(letter, against, comparison.threshold)):
            say(console, sentence, "" if number else "bold")


def _named(comparison: Comparison) -> Iterator[tuple[str, Saved]]:
    yield "A", comparison.base
    yield from ((letter, against.other) for letter, against in _lettered(comparison))


def _lettered(comparison: Comparison) -> Iterator[tuple[str, Against]]:
    for number, against in enumerate(comparison.others, 1):
        yield _LETTERS[number] if number < len(_LETTERS) else f"#{number}", against


def _differences(letter: str, against: Against) -> Iterator[tuple[str, str]]:
    """Say what differs besides the times; first the data, which makes times incomparable."""
    data = [
        f"{_DATA.get(name, name)} {_datum(name, first)} and {_datum(name, second)}"
        for name, (first, second) in against.data_differs.items()
    ]
    if data:
        yield f"Warning: A and {letter} read different data: {'; '.join(data)}.", "yellow"
    around = [
        f"{name} {first or 'unknown'} and {second or 'unknown'}"
        for name, (first, second) in against.environment_differs.items()
    ]
    if around:
        yield f"A and {letter} differ in: {printable('; '.join(around))}.", ""
    else:
        yield f"A and {letter}: the same machine and versions.", ""


def _datum(name: str, value: Any) -> str:
    if name == "stored_nbytes":
        return format_size(value)
    return format_shape(value) if isinstance(value, list) else printable(str(value))


def _table(comparison: Comparison, first: int) -> Table:
    shown = list(_lettered(comparison))[first : first + ABREAST]
    single = len(comparison.others) == 1
    table = plain_table()
    table.add_column("pattern", overflow="fold")
    table.add_column("reader", overflow="fold")
    table.add_column("A", justify="right", no_wrap=True)
    if single:
        for title in ("B", "ratio", f"{CONFIDENCE:.0%} sure"):
            table.add_column(title, justify="right", no_wrap=True)
        table.add_column("verdict", no_wrap=True)
    else:
        for letter, _ in shown:
            table.add_column(letter, justify="right", no_wrap=True)
    for key in comparison.keys:
        base = comparison.base.samples[key]
        found = [against.matches.get(key) for _, against in shown]
        waited = any(m is not None and m.base_waited for m in found)
        row: list[str | Text] = [_pattern(base), _who(base.parameters), _median(base, waited)]
        if single and found[0] is not None:
            row += [
                _median(found[0].other, found[0].other_waited),
                *_verdict(found[0], comparison.threshold),
            ]
        else:
            row += [_cell(match, comparison.threshold) for match in found]
        table.add_row(*row)
    return table


def _pattern(sample: Sample) -> Text:
    """Name the pattern, and below what is read if the name does not say it."""
    spelled = format_shape(tuple(sample.parameters["block"]))
    listed = (sample.parameters["slabs"], sample.parameters["cells"]) != (None, None)
    if listed or spelled in sample.access:
        return Text(printable(sample.access))
    return Text(f"{printable(sample.access)}\n{spelled}")


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


def _verdict(match: Match, threshold: float) -> list[str | Text]:
    found = match.verdict
    word = Text(_word(match, threshold), style=_STYLES.get(match.word, ""))
    if found is None:
        return ["-", "-", word]
    return [format_speed(found.ratio), _interval(found.low, found.high), word]


def _interval(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return "-"
    if high < 0.1:
        return f"1/{1 / low:,.0f}-1/{1 / high:,.0f}"
    return f"{three_digits(low)}-{three_digits(high)}"


def _cell(match: Match | None, threshold: float) -> Text:
    if match is None:
        return Text("-")
    mark = "*" if match.other_waited else ""
    ratio = "" if match.verdict is None else format_speed(match.verdict.ratio) + mark + "\n"
    return Text(
        f"{ratio}{_word(match, threshold)}", style=_STYLES.get(match.word, ""), justify="right"
    )


def _footnotes(comparison: Comparison) -> Iterator[str]:
    matches = [match for against in comparison.others for match in against.matches.values()]
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
            f"Fewer than {FEWEST} repeats do not tell their spread: slower and faster then mean "
            f"{FACTOR_OF_FEW:g} times and more."
        )
    yield from _held_back_notes(comparison)
    for letter, against in _lettered(comparison):
        for match in against.matches.values():
            for name, sample in (("A", match.base), (letter, match.other)):
                if not sample.total_s:
                    error = printable(sample.error or "no reason given")
                    yield f"{sample.status} in {name}: {_label(sample)}: {error}"
        for name, alone in (("A", against.only_base), (letter, against.only_other)):
            if alone:
                absent = letter if name == "A" else "A"
                labels = "; ".join(_label(sample) for sample in alone)
                yield f"Only in {name}, not in {absent}: {labels}."


def _held_back_notes(comparison: Comparison) -> Iterator[str]:
    """Say why some verdicts are not certain although their interval is beyond the threshold."""
    for letter, against in _lettered(comparison):
        fastest, waiting = [], []
        for match in against.matches.values():
            found = match.verdict
            why = found and found.held_back(comparison.threshold)
            if found is not None and why == "fastest" and found.fastest is not None:
                fastest.append(f"{_label(match.other)} {format_speed(found.fastest)}")
            elif why == "waiting":
                waiting.append(_label(match.other))
        if fastest:
            yield (
                f"{_HELD_BACK} The interval is beyond the threshold, but the fastest repeats are "
                f"not, and a verdict needs both. {letter}'s fastest divided by A's: "
                f"{'; '.join(fastest)}."
            )
        if waiting:
            yield (
                f"{_HELD_BACK} The interval is beyond the threshold, but threads of "
                f"{letter} or A may have waited for a processor, which is no "
                "difference between the programs: "
                f"{'; '.join(waiting)}."
            )


def _label(sample: Sample) -> str:
    return f"'{printable(sample.access)}' by {_who(sample.parameters).plain}".replace("\n", ", ")


def _conclusion(letter: str, against: Against, threshold: float) -> Iterator[str]:
    """Sum up the verdicts in plain words; the first sentence is the answer."""
    total = len(against.matches)
    yield f"{letter} against A: {_answer(against, total)}"
    if against.mean_ratio is not None:
        mean, high, low = (
            format_speed(r) for r in (against.mean_ratio, against.ratios[0], against.ratios[-1])
        )
        yield f"Geometric mean of the ratios: {mean} ({low} to {high})."
    undecided = [m for m in against.matches.values() if m.word == "cannot tell"]
    if undecided:
        yield _undecided(undecided, threshold)
    if _is_common(against, threshold):
        yield (
            "All trials changed by about the same factor, whoever read: that is the machine, or "
            "what all of them share, rather than one program."
        )


def _answer(against: Against, total: int) -> str:
    if against.word in ("same", "cannot tell") and not against.count("faster"):
        known = against.count("same")
        if known == total:
            return f"no difference in {counted(total, 'trial')}."
        same = f"; {known} of {counted(total, 'trial')} are the same" if known else ""
        return f"no difference is certain{same}."
    parts = [
        f"{against.count(word)} {word}"
        for word in ("failed", "slower", "faster", "same")
        if against.count(word)
    ]
    answer = f"of {counted(total, 'trial')}, {', '.join(parts)}"
    slower = [m for m in against.matches.values() if m.word == "slower" and m.verdict is not None]
    if slower:
        worst = max(slower, key=lambda m: m.verdict.ratio if m.verdict else 0.0)
        assert worst.verdict is not None
        answer += f"; the worst: {_label(worst.other)}, {format_speed(worst.verdict.ratio)}"
    return answer + "."


def _undecided(undecided: list[Match], threshold: float) -> str:
    said = f"{len(undecided)} cannot be told: "
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


def _is_common(against: Against, threshold: float) -> bool:
    """Whether trials of several readers have all changed, and by about the same factor."""
    mean, ratios = against.mean_ratio, against.ratios
    readers = {match.base.parameters["reader"] for match in against.matches.values()}
    if mean is None or len(ratios) < _SEVERAL or len(readers) < 2:
        return False
    changed = max(mean, 1 / mean) > threshold
    return changed and ratios[0] / ratios[-1] < threshold
