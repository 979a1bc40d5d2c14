"""How is each part of a report written as HTML?  Every text from results goes through `escape`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from html import escape
from typing import Any, Final

from chunkwise.words import joined
from chunkwise_lab.report.model import Block, Chart, Finding, Index, Report, Series, Table
from chunkwise_lab.report.plots import Style, figure, style
from chunkwise_lab.report.verdicts import VERDICTS
from chunkwise_lab.studies.rules import Word

# Facts that are printed once if all sections agree.
_SHARED: Final = ("Machine", "Versions")
_OWN: Final = ("Scale", "Measured")


def lead(report: Report) -> str:
    """Say what this is, and its result, to a reader who knows nothing about it."""
    about = (
        "Papers on HDF5 and netCDF-4 advise how to store and read large arrays, from what they "
        "measured on the machines and libraries of their time. Here the same was measured again."
    )
    advice = len(report.advice)
    if not advice:
        return about
    counts = ((report.count(word), look) for word, look in VERDICTS.items())
    found = [f"{n} {look.one if n == 1 else look.several}" for n, look in counts if n]
    pieces = "piece" if advice == 1 else "pieces"
    whose = "the papers' own and what follows from their claims"
    once = ""
    if advice < sum(len(section.advice) for section in report.sections):
        once = " What several runs of a study say is counted once."
    return f"{about} Of {advice} {pieces} of advice ({whose}), {joined(found)}.{once}"


def troubles(report: Report) -> list[str]:
    """Say what is wrong or missing: everything wrong, and where to read the rest."""
    found = []
    for section in report.sections:
        title = section.title
        for block in section.blocks:
            found += [f"{title}, {block.title}: Wrong: {text}" for text in block.wrong]
        found += [f"{title}: {text}" for text in section.missing]
        others = [block.title for block in section.blocks if block.missing]
        if others:
            titles = "; ".join(dict.fromkeys(others))
            found.append(f"{title}: something failed or was not measured in: {titles}.")
    return found


def setting(report: Report) -> list[tuple[str, str]]:
    """Return machine and versions, each said once, and when and how each was measured."""
    pairs: list[tuple[str, str]] = []
    for title in _SHARED:
        texts: dict[str, list[str]] = {}
        for section in report.sections:
            for name, text in section.facts:
                if name == title:
                    texts.setdefault(text, []).append(section.title)
        several = len(texts) > 1
        pairs += [
            (f"{title}, {', '.join(of)}" if several else title, text) for text, of in texts.items()
        ]
    for section in report.sections:
        own = [text for name, text in section.facts if name in _OWN]
        if own:
            pairs.append((section.title, "; ".join(own)))
    return pairs


_CODE: Final = re.compile(r"`([^`]+)`")
_AS_CODE: Final = r"<code>\1</code>"
_SWATCHES: Final = {
    "circle": '<circle cx="17" cy="7" r="4.5"/>',
    "square": '<path d="M13 3h8v8h-8z"/>',
    "triangle-up": '<path d="M17 2l5 9h-10z"/>',
    "diamond": '<path d="M17 1.5 22.5 7 17 12.5 11.5 7z"/>',
    "triangle-down": '<path d="M17 12l5-9h-10z"/>',
    "pentagon": '<path d="M17 2l5 3.7-2 6h-6l-2-6z"/>',
    "cross": '<path d="M17 2.5v9M12.5 7h9" stroke-width="3"/>',
    "star": '<path d="M17 1.5l1.6 3.8 4.1.3-3.1 2.7 1 4-3.6-2.2-3.6 2.2 1-4-3.1-2.7 4.1-.3z"/>',
    "x": '<path d="M13.5 3.5l7 7M20.5 3.5l-7 7" stroke-width="3"/>',
}


def verdict(word: Word, *, of_advice: bool = False) -> str:
    """Write a verdict as a word and a shape."""
    text = VERDICTS[word].of_advice if of_advice else word
    return (
        f'<span class="verdict {_css(word)}"><svg viewBox="0 0 16 16" fill="none" '
        'stroke="currentColor" stroke-width="2.2" stroke-linecap="round" aria-hidden="true">'
        f"{VERDICTS[word].icon}</svg>{escape(text)}</span>"
    )


def _css(word: Word) -> str:
    return word.replace(" ", "-")


def alerts(texts: Iterable[str]) -> str:
    """Write what is wrong or missing."""
    items = "".join(f"<li>{escape(text)}</li>" for text in texts)
    return f'<ul class="alerts">{items}</ul>' if items else ""


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Write pairs of a name and a text."""
    items = "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in pairs)
    return f"<dl>{items}</dl>" if items else ""


def index(of: Index) -> str:
    """Write all items of a paper, each with its verdict and the way to its measurements."""
    rows = []
    for one in of.entries:
        name = escape(one.item)
        link = f'<a href="#{one.where}">{name}</a>' if one.where else name
        texts = (one.verdict, one.says, one.means)
        cells = "".join(f"<td>{_CODE.sub(_AS_CODE, escape(text))}</td>" for text in texts)
        rows.append(f'<tr><th scope="row">{link}</th>{cells}</tr>')
    head = "".join(
        f'<th scope="col">{text}</th>' for text in ("item", "verdict", "it says", "here")
    )
    return (
        f'<details class="index"><summary>{escape(of.title)}: {escape(of.states)}</summary>'
        f'<div class="table" tabindex="0" role="region" aria-label="{escape(of.title)}"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div></details>"
    )


def block(one: Block) -> str:
    """Write an experiment."""
    parts = [f'<section id="{one.id}"><h3>{escape(one.title)}</h3>']
    if one.source:
        parts.append(f'<p class="source">{escape(one.source)}</p>')
    parts += [
        f'<p class="said"><b>{escape(title)}.</b> {escape(text)}</p>' for title, text in one.texts
    ]
    parts.append(alerts(one.alerts))
    if one.findings:
        parts.append(f'<div class="side">{"".join(map(claim, one.findings))}</div>')
    for chart, of in one.pictures:
        drawn = "" if chart is None else plot(chart)
        parts.append(f'<div class="pair">{drawn}{table(of)}</div>')
    return "\n".join([*filter(None, parts), "</section>"])


def claim(found: Finding) -> str:
    """Write a claim with its verdict."""
    paper = f'<p class="number">{escape(found.paper)}</p>' if found.paper else ""
    limit = f'<p class="number">{escape(found.limited)}</p>' if found.limit else ""
    return (
        f'<div class="claim {_css(found.word)}"><p>{verdict(found.word)}: {escape(found.says)}</p>'
        f"<p>{escape(found.sentence)}</p>{paper}{limit}</div>"
    )


def plot(chart: Chart) -> str:
    """Write a chart, with its data beside it, for the page's script."""
    notes = "".join(f'<p class="notes">{escape(note)}</p>' for note in chart.notes)
    drawn = figure(chart)
    # Its place is kept until it is drawn, so that nothing moves.
    return (
        f"<figure><figcaption>{escape(chart.title)}</figcaption>{_legend(chart)}"
        f'<div class="plot" id="{chart.id}" role="img" aria-label="{escape(chart.alt)}" '
        f'style="min-height:{drawn["layout"]["height"]}px"></div>'
        f'<script type="application/json" id="{chart.id}-data">{_json(drawn)}</script>'
        f"{notes}</figure>"
    )


def _json(values: Any) -> str:
    """Write JSON so that no text in it can end the script's element."""
    return json.dumps(values, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _legend(chart: Chart) -> str:
    if len(chart.series) == 1 and chart.series[0].name == "today":
        return ""
    items = "".join(
        f'<li><button type="button" aria-pressed="true" data-plot="{chart.id}" data-series="{n}">'
        f"{_swatch(series, lines=chart.kind == 'lines')}{escape(series.name)}</button></li>"
        for n, series in enumerate(chart.series)
    )
    return f'<ul class="legend" aria-label="Series: press to hide or show">{items}</ul>'


def _swatch(series: Series, *, lines: bool) -> str:
    look: Style = style(series.style, published=series.published)
    dash = "" if look.dash == "solid" else f' stroke-dasharray="{look.dash.replace("px", "")}"'
    line = f'<path d="M0 7h34"{dash} fill="none"/>' if lines else ""
    return (
        f'<svg viewBox="0 0 34 14" fill="{look.colour}" stroke="{look.colour}" stroke-width="1.8" '
        f'aria-hidden="true">{line}{_SWATCHES[look.mark]}</svg>'
    )


def table(of: Table) -> str:
    """Write a table that scrolls in itself."""
    kinds = [' class="figure"' if is_number else "" for is_number in of.numbers]
    heads = zip(of.columns, kinds, strict=True)
    head = "".join(f'<th scope="col"{kind}>{escape(text)}</th>' for text, kind in heads)
    rows = []
    for row in of.rows:
        cells = [f'<th scope="row">{escape(row[0])}</th>']
        cells += [f"<td{k}>{escape(t)}</td>" for t, k in zip(row[1:], kinds[1:], strict=True)]
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return (
        f'<div class="table" tabindex="0" role="region" aria-label="{escape(of.caption)}"><table>'
        f"<caption><span>{escape(of.caption)}</span></caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )
