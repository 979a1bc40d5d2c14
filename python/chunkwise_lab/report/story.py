"""What does the first screen of a report say, in every form?"""

from __future__ import annotations

from typing import Final

from chunkwise.words import joined
from chunkwise_lab.report.model import Report
from chunkwise_lab.studies.rules import Word

# Facts that are printed once if all sections agree.
_SHARED: Final = ("Machine", "Versions")
_OWN: Final = ("Scale", "Measured")
_ENDINGS: Final[dict[Word, tuple[str, str]]] = {
    "holds": ("stands", "stand"),
    "weaker": ("gains less than in the paper", "gain less than in the papers"),
    "no longer holds": ("no longer does", "no longer do"),
    "reversed": ("is reversed", "are reversed"),
    "cannot tell": ("cannot be told", "cannot be told"),
    "not measured": ("was not measured", "were not measured"),
}


def lead(report: Report) -> str:
    """Say what this is, and its result, to a reader who knows nothing about it."""
    about = (
        "Papers on HDF5 and netCDF-4 advise how to store and read large arrays, from what they "
        "measured on the machines and libraries of their time. Here the same was measured again."
    )
    advice = len(report.advice)
    if not advice:
        return about
    found = [f"{n} {_ENDINGS[word][n != 1]}" for word in _ENDINGS if (n := report.count(word)) > 0]
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
