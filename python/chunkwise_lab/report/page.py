"""How is a report written as one page that needs no other file?"""

from __future__ import annotations

from html import escape
from importlib.resources import files
from typing import Final

from chunkwise.errors import UsageError
from chunkwise.words import installing
from chunkwise_lab.report.model import Finding, Report, Section
from chunkwise_lab.report.parts import (
    alerts,
    block,
    facts,
    index,
    lead,
    setting,
    troubles,
    verdict,
)
from chunkwise_lab.report.verdicts import VERDICTS

_POLICY: Final = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'"
)


def page(report: Report) -> str:
    """Write the page."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise UsageError(
            f"a page of plots needs plotly: {installing('report')}, or write Markdown "
            "(-o report.md)"
        ) from None
    parts = (
        '<a class="skip" href="#rest">Skip to the measurements</a><div class="page">',
        f'<header class="story">{_story(report)}</header>',
        f'<nav aria-label="Contents">{_contents(report)}</nav>',
        f'<main class="rest" id="rest">{"".join(map(_section, report.sections))}',
        "<footer>Written by chunkwise report from saved results. Drawn by plotly.js "
        "(MIT licence).</footer></main></div>",
    )
    scripts = (str(get_plotlyjs()), _resource("page.js")) if any(report.charts) else ()
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f"<title>{escape(report.title)}</title><style>{_resource('page.css')}</style></head>\n"
        f"<body>{chr(10).join(parts)}"
        + "".join(f"<script>{script}</script>" for script in scripts)
        + "</body></html>\n"
    )


def _resource(name: str) -> str:
    return files("chunkwise_lab.report").joinpath(name).read_text(encoding="utf-8")


def _story(report: Report) -> str:
    parts = [f"<h1>{escape(report.title)}</h1>", *map(index, report.indexes)]
    parts.append(f'<p class="lead">{escape(lead(report))}</p>')
    counts = [(word, report.count(word)) for word in VERDICTS]
    tally = "".join(f"<li>{verdict(w, of_advice=True)} {n}</li>" for w, n in counts if n)
    if tally:
        parts.append(f'<ul class="tally" aria-label="Verdicts on the advice">{tally}</ul>')
    parts.append(alerts(troubles(report)))
    for section in report.sections:
        parts.append(f'<h2><a href="#{section.id}">{escape(section.title)}</a></h2>')
        parts.append(f'<p class="source">{escape(section.source)}</p>')
        parts.append(f"<p>{escape(section.about)}</p>")
        items = "".join(map(_advice, section.advice))
        if items:
            parts.append(f'<ul class="advice">{items}</ul>')
    measured_on = facts(setting(report))
    if measured_on:
        parts.append(f"<h2>Measured on</h2>{measured_on}")
    return "\n".join(parts)


def _advice(found: Finding) -> str:
    return (
        f"<li><p>{verdict(found.word, of_advice=True)}: {escape(found.advice)}</p>"
        f'<p class="number">{escape(f"{found.says}: {found.sentence} {found.paper}".strip())} '
        f'<a href="#{found.where}" aria-label="Measurements: {escape(found.advice)}">'
        "Measurements</a></p></li>"
    )


def _contents(report: Report) -> str:
    items = []
    for section in report.sections:
        inner = "".join(
            f'<li><a href="#{block.id}">{escape(block.title)}</a></li>' for block in section.blocks
        )
        items.append(
            f'<li><a href="#{section.id}"><b>{escape(section.title)}</b></a><ul>{inner}</ul></li>'
        )
    return f"<b>Contents</b><ul>{''.join(items)}</ul>"


def _section(section: Section) -> str:
    return (
        f'<section id="{section.id}"><h2>{escape(section.title)}</h2>{facts(section.facts)}'
        f"{alerts(section.missing)}{''.join(map(block, section.blocks))}</section>"
    )
