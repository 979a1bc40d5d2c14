"""How is a report written as Markdown, with its tables?"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from chunkwise_lab.report.model import Block, Finding, Report, Section, Table
from chunkwise_lab.report.parts import lead, setting, troubles
from chunkwise_lab.report.verdicts import VERDICTS

# Characters that would be markup in the middle of a sentence.
_MARKUP: Final = re.compile(r"([\\`*_\[\]<>|#~])")


def markdown(report: Report) -> str:
    """Write a report as Markdown, without its plots."""
    lines = [f"# {escape(report.title)}", "", escape(lead(report)), ""]
    lines += _listed(f"**{text}**" for text in map(escape, troubles(report)))
    for index in report.indexes:
        rows = tuple((one.item, one.verdict, one.says, one.means) for one in index.entries)
        head = ("item", "verdict", "it says", "here")
        lines += _table(Table(f"{index.title}: {index.states}", head, (False,) * 4, rows))
    for section in report.sections:
        lines += [f"## {escape(section.title)} in short", "", f"*{escape(section.source)}*", ""]
        lines += [escape(section.about), ""]
        lines += _listed(map(_advice, section.advice))
    measured_on = setting(report)
    if measured_on:
        lines += ["## Measured on", ""]
        lines += _listed(f"{escape(name)}: {escape(text)}" for name, text in measured_on)
    for section in report.sections:
        lines += _section(section)
    return "\n".join(lines).rstrip() + "\n"


def escape(text: str) -> str:
    """Write a text so that none of it is markup."""
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))


def _listed(items: Iterable[str]) -> list[str]:
    found = [f"- {item}" for item in items]
    return [*found, ""] if found else []


def _advice(found: Finding) -> str:
    look = VERDICTS[found.word]
    word = f"**{look.mark} {look.of_advice}**"
    return f"{word}: {escape(f'{found.advice} {found.says}: {found.sentence} {found.paper}')}"


def _section(section: Section) -> list[str]:
    lines = [f"## {escape(section.title)}", ""]
    lines += _listed(f"{escape(name)}: {escape(text)}" for name, text in section.facts)
    lines += _listed(f"**{escape(text)}**" for text in section.missing)
    for block in section.blocks:
        lines += _block(block)
    return lines


def _block(block: Block) -> list[str]:
    lines = [f"### {escape(block.title)}", ""]
    if block.source:
        lines += [f"*{escape(block.source)}*", ""]
    for title, text in block.texts:
        lines += [f"**{escape(title)}.** {escape(text)}", ""]
    lines += _listed(f"**{escape(text)}**" for text in block.alerts)
    for found in block.findings:
        word = f"**{VERDICTS[found.word].mark} {found.word}**"
        text = f"{found.says}: {found.sentence} {found.paper} {found.limited}"
        lines += [f"{word}: {escape(text)}", ""]
    for _, table in block.pictures:
        lines += _table(table)
    return lines


def _table(table: Table) -> list[str]:
    rules = ("---:" if number else "---" for number in table.numbers)
    rows = (table.columns, *table.rows)
    head, *body = (f"| {' | '.join(map(escape, row))} |" for row in rows)
    return [f"{escape(table.caption)}:", "", head, f"| {' | '.join(rules)} |", *body, ""]
