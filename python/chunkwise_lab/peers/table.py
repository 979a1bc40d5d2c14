"""How is what was measured shown, on a terminal and in docs/benchmarks.md?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from rich import box
from rich.console import Console
from rich.table import Table

from chunkwise.words import format_seconds, format_speed, three_digits
from chunkwise_lab.peers.spec import SUBJECT

HEAD: Final = (
    "other", "its time", "spread", "chunkwise", "spread", "ratio", "of best", "target", "",
)  # fmt: skip
# As in `chunkwise compare`.
BUSY: Final = 0.1
Saved = dict[str, Any]


def rows(comparison: Saved) -> Iterator[tuple[str, ...]]:
    """Return a row for each reader that chunkwise is held against, and for targets alone."""
    unit = comparison["unit"]
    by_name = {reader["name"]: reader for reader in comparison["readers"]}
    ours = by_name[SUBJECT]
    targets = {(target["by"], target["against"]): target for target in comparison["targets"]}
    mine = _figures(ours, unit)
    target = targets.get((SUBJECT, None))
    if target is not None:
        wanted = f"at most {_figure(target['at_most'], unit)}"
        yield ("", "", "", *mine, "", "", wanted, target["word"])
    for name, reader in by_name.items():
        if name == SUBJECT or reader["median"] is None:
            continue
        yield _row(comparison, reader, ours, targets.get((SUBJECT, name)))
    for (by, against), target in targets.items():
        other, other_ours = by_name.get(against), by_name[by]
        if by != SUBJECT and other is not None and other["median"] and other_ours["median"]:
            label, *rest = _row(comparison, other, other_ours, target)
            yield (f"{label}, beside {by}", *rest)


def _row(comparison: Saved, reader: Saved, ours: Saved, target: Saved | None) -> tuple[str, ...]:
    """What is said of one reader beside another, which is mostly chunkwise."""
    name, unit = reader["name"], comparison["unit"]
    label = f"{name} (limit)" if reader["limit"] else name
    ratio = best = ""
    if ours["median"]:
        ratio = format_speed(reader["median"] / ours["median"])
        best = format_speed(reader["lowest"] / ours["lowest"])
    wanted, word = "", ""
    if target is not None:
        wanted, word = format_speed(target["at_least"]), target["word"]
        if target["limit"] is not None and target["limit"] < target["at_least"]:
            wanted += f" (limit {format_speed(target['limit'])})"
    if name in comparison["differing"]:
        word = f"{word}, OTHER BYTES".lstrip(", ")
    return (label, *_figures(reader, unit), *_figures(ours, unit), ratio, best, wanted, word)


def _figures(reader: Saved, unit: str) -> tuple[str, str]:
    return _figure(reader["median"], unit) + _mark(reader, unit), _spread(reader)


def remarks(saved: Saved) -> Iterator[str]:
    """Return a line for each reader that has no figures, and why; the same ones together."""
    found: dict[tuple[str, str], list[str]] = {}
    for comparison in saved["comparisons"]:
        for reader in comparison["readers"]:
            why = reader["skipped"] or reader["failed"]
            if why is not None:
                found.setdefault((reader["name"], str(why)), []).append(comparison["name"])
    for (name, why), where in found.items():
        yield f"{name}: {why} ({', '.join(where)})"
    marked = ((one["unit"], reader) for one in saved["comparisons"] for reader in one["readers"])
    if any(_mark(reader, unit) for unit, reader in marked):
        yield (
            "`*`: other programs had a tenth of the processors or more meanwhile: readers with "
            "several threads lose most by that; measure again when the machine is quiet"
        )
    for comparison in saved["comparisons"]:
        if comparison["note"]:
            yield f"{comparison['name']}: {comparison['note']}"


def heading(saved: Saved) -> list[str]:
    """Say where and with what this was measured."""
    about = saved["environment"]
    versions = {**saved["peers"], "HDF5": about["hdf5"], "zlib": about["zlib"]}
    versions |= {"NumPy": about["numpy"], "chunkwise": about["chunkwise"]}
    installed = [f"{name} {version or 'not installed'}" for name, version in versions.items()]
    return [
        f"{about['cpu']}, {about['cpu_count']} processors ({saved['threads']} threads), "
        f"{about['system']}, Python {about['python']}",
        ", ".join(installed),
    ]


def summary(saved: Saved) -> str:
    """Count the targets by what came of them."""
    counts: dict[str, int] = {}
    for comparison in saved["comparisons"]:
        for target in comparison["targets"]:
            counts[target["word"]] = counts.get(target["word"], 0) + 1
    total = sum(counts.values())
    return f"{total} targets: " + ", ".join(f"{n} {word}" for word, n in sorted(counts.items()))


def show(saved: Saved, console: Console) -> None:
    """Print a table."""
    for line in (*heading(saved), ""):
        console.print(line, highlight=False, markup=False)
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("work", overflow="fold", ratio=1)
    for title in HEAD:
        justify: Any = "left" if title in ("other", "") else "right"
        table.add_column(title, justify=justify, no_wrap=title not in ("other", ""))
    for comparison in saved["comparisons"]:
        title = comparison["title"]
        for row in rows(comparison):
            table.add_row(title, *row)
            title = ""
    console.print(table)
    for line in (*remarks(saved), "", summary(saved)):
        console.print(line, highlight=False, markup=False)


def markdown(saved: Saved) -> str:
    """Return the same as Markdown."""
    lines = [*(f"{line}." for line in heading(saved)), ""]
    lines.append("| work | " + " | ".join((*HEAD[:-1], "result")) + " |")
    lines.append("| --- | --- |" + " ---: |" * 7 + " --- |")
    for comparison in saved["comparisons"]:
        title = comparison["title"].replace("|", "\\|")
        for row in rows(comparison):
            lines.append(f"| {' | '.join((title, *row))} |")
            title = ""
    lines += ["", f"{summary(saved)}.", ""]
    lines += [f"- {line}" for line in remarks(saved)]
    return "\n".join(lines)


def _figure(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    if unit == "bytes":
        return f"{three_digits(value / 1e6)} MB"
    if unit == "rounds":
        return f"{value:g}"
    return format_seconds(value)


def _mark(reader: Saved, unit: str) -> str:
    """Return a star for a time during which the machine was busy with something else."""
    busy = unit == "seconds" and reader["median"] is not None
    return "*" if busy and (reader["others_share"] or 0) >= BUSY else ""


def _spread(reader: Saved) -> str:
    if reader["median"] is None or len(reader["values"]) < 2:
        return ""
    return f"{(reader['highest'] - reader['lowest']) / reader['median']:.0%}"
