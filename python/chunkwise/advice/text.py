"""How is advice printed, in 80 columns?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import zip_longest
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from chunkwise.advice.answer import Advice, FrontPoint, PatternAdvice
from chunkwise.advice.verifying import Timing
from chunkwise.cells import Hung
from chunkwise.grammar import format_shape, format_size
from chunkwise.measure.tables import bar, plain_table, say
from chunkwise.names import printable
from chunkwise.remedy.fix import Fix
from chunkwise.words import counted, format_seconds, format_speed

_BAR: Final = 18
# A spread below this is not printed.
_STEADY: Final = 0.05
# The tools whose lines are printed first; --tool all prints the others.
_FIRST: Final = ("chunkwise", "nccopy", "h5repack")


def show(advice: Advice, console: Console, tools: Sequence[str] = ()) -> None:
    """Print advice."""
    name = printable(advice.dataset)
    where = f"{name} in {printable(advice.file)}" if advice.file else "a new dataset"
    say(console, f"{where}, {format_shape(advice.shape)}, {advice.itemsize} bytes each")
    console.print()
    say(console, advice.reason, style="bold" if not advice.leave else "")
    console.print()
    console.print(_before_and_after(advice))
    if len(advice.front) > 1:
        console.print()
        console.print(_front(advice))
    for note in advice.notes:
        console.print()
        say(console, note)
    _lines(advice, console, tools)
    console.print()
    measured = f", {advice.measured} of them measured" if advice.verified else ""
    say(
        console,
        f"{counted(advice.looked_at, 'layout')} compared{measured}, in "
        f"{format_seconds(advice.elapsed_s)}.",
    )


def _before_and_after(advice: Advice) -> Table:
    found, before = advice.patterns, advice.present_nbytes
    columns = {"then": [_seconds(one.best, one.best_model_s) for one in found]}
    if before is not None:
        now = [_seconds(one.present, one.present_model_s) for one in found]
        speed = ["-" if one.gain is None else format_speed(one.gain) for one in found]
        columns = {"now": now, **columns, "speed": speed}
        after = ("" if advice.leave else "~") + format_size(advice.best_nbytes)
        gain = format_speed(before / max(1, advice.best_nbytes))
        for column, size in zip(columns.values(), (format_size(before), after, gain), strict=True):
            column.append(size)
    if any(one.ours is not None for one in found):
        columns["by chunkwise, now"] = [_seconds(one.ours, None) for one in found]
    table = plain_table(gap=2)
    table.add_column("pattern", overflow="fold", max_width=24)
    for title in columns:
        table.add_column(title, justify="right", no_wrap=True)
    names = [*map(_named, found), *(["size"] if before is not None else [])]
    for name, *texts in zip_longest(names, *columns.values(), fillvalue=""):
        table.add_row(Hung(name), *map(Text, texts))
    return table


def _named(one: PatternAdvice) -> str:
    words = [printable(one.name)]
    if one.writes:
        words.append("(written)")
    if one.of_one_read:
        words.append("(one read)")
    if one.weight != 1:
        words.append(f"weight {one.weight:g}")
    return " ".join(words)


def _seconds(timing: Timing | None, model_s: float | None) -> str:
    if timing is None:
        return "" if model_s is None else f"~{format_seconds(model_s)}"
    text = ("~" if timing.estimated else "") + format_seconds(timing.median)
    off = max(timing.highest - timing.median, timing.median - timing.lowest)
    share = off / timing.median if timing.median else 0.0
    return text if share < _STEADY else f"{text} ±{share:.0%}"


def _front(advice: Advice) -> Table:
    """Draw the choices: how long each reads, or writes if nothing is read; how large it is."""
    drawn = [one.read_s or one.write_s for one in advice.front]
    table = plain_table(gap=2)
    table.add_column("the choices there are", overflow="fold")
    table.add_column("reading", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("writing", justify="right", no_wrap=True)
    table.add_column("size", justify="right", no_wrap=True)
    fastest, slowest = min(drawn), max(drawn)
    most = max(one.repeats for one in advice.front)
    widest = max(math.log10(2), math.log10(slowest / fastest) if fastest else 1.0)
    for one, seconds in zip(advice.front, drawn, strict=True):
        share = math.log10(seconds / fastest) / widest if fastest else 0.0
        read = ("" if one.measured else "~") + format_seconds(one.read_s) if one.read_s else "-"
        mark = "*" if one.layout == advice.best else " "
        table.add_row(
            Text(f"{mark}{_layout(one)}"),
            Text(read + (" once" if one.repeats == 1 < most else "")),
            Text(bar(share, _BAR)),
            Text(format_seconds(one.write_s)),
            Text(format_size(one.nbytes)),
        )
    return table


def _layout(one: FrontPoint) -> str:
    chunks = "contiguous" if one.layout.chunks is None else format_shape(one.layout.chunks)
    return f"{chunks} {one.layout.filters}"


def _lines(advice: Advice, console: Console, tools: Sequence[str]) -> None:
    first = () if tools else _FIRST
    wanted = [fix for fix in advice.fixes if _is_named(fix, tools) or fix.tool in first]
    if wanted:
        console.print()
        say(console, "To have it so (a copy; the file is not changed):")
        for fix in wanted:
            _fix(console, fix)
    others = sorted({fix.tool for fix in advice.fixes} - {fix.tool for fix in wanted})
    if others:
        say(console, f"Also for {', '.join(others)}: --tool TOOL, or --tool all.")
    if advice.cache is not None:
        console.print()
        say(console, f"If the file cannot be changed: {advice.cache.reason}")
    shown = set()
    for fix in advice.open_fixes:
        if fix.tool in ("h5py", "chunkwise") or _is_named(fix, tools):
            if fix.text not in shown:
                _fix(console, fix)
            shown.add(fix.text)


def _is_named(fix: Fix, tools: Sequence[str]) -> bool:
    return "all" in tools or fix.tool in tools


def _fix(console: Console, fix: Fix) -> None:
    for line in fix.text.splitlines():
        # Never broken, because users paste it.
        console.print(Text(f"    {line}"), soft_wrap=True, highlight=False)
