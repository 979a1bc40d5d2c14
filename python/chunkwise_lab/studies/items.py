"""What do the five papers say, item by item (``items.toml``), and what became of each here?"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final, Literal

from chunkwise.words import joined
from chunkwise_lab.studies.claims import judge_all
from chunkwise_lab.studies.load import load
from chunkwise_lab.studies.results import StudyResults
from chunkwise_lab.studies.rules import Word, tally

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

State = Literal["done", "in part", "not measured", "not here"]
STATES: Final[tuple[State, ...]] = ("done", "in part", "not measured", "not here")


@dataclass(frozen=True)
class Item:
    """One experiment, table, figure, method or recommendation."""

    item: str  # Where the paper has it
    says: str
    by: tuple[str, ...] = ()  # study/experiment, or study/experiment/claim
    # Experiments that do it as the paper did, and whose claims are about something else.
    at: tuple[str, ...] = ()
    done: str = ""  # What does it that is no experiment
    lacks: str = ""  # What is not done, and why

    def state(self, known: Mapping[str, Word]) -> State:
        """How much of it is repeated, with saved verdicts on it."""
        if not self.by and not self.at and not self.done:
            return "not here"
        if self.lacks:
            return "in part"
        return "not measured" if self.verdict(known) == "not measured" else "done"

    @property
    def means(self) -> str:
        """What repeats it, and what is not done, as one text."""
        texts = [*(f"`{name}`" for name in self.experiments), self.done]
        reason = "in part: " if any(texts) else "not here, because "
        texts.append(f"{reason}{self.lacks}" if self.lacks else "")
        return "; ".join(filter(None, texts))

    @property
    def experiments(self) -> tuple[str, ...]:
        """The experiments, each once, as study/experiment."""
        return tuple(dict.fromkeys("/".join(one.split("/")[:2]) for one in (*self.by, *self.at)))

    def verdict(self, known: Mapping[str, Word]) -> str:
        """Sum up the verdicts on its claims, as in ``holds 3, weaker 1``."""
        if not self.by:
            return ""
        words = [
            word for name, word in known.items() if any(_within(name, one) for one in self.by)
        ]
        return tally(words or ["not measured"])


def _within(claim: str, what: str) -> bool:
    return claim == what or claim.startswith(f"{what}/")


@dataclass(frozen=True)
class Paper:
    """A paper and its items, in its order."""

    number: str
    study: str  # The study of it
    title: str
    items: tuple[Item, ...]

    def states(self, known: Mapping[str, Word]) -> str:
        """How many items are done, in part, not measured yet and not here."""
        counts = Counter(item.state(known) for item in self.items)
        return joined([f"{counts[state]} {state}" for state in STATES if counts[state]])


def papers() -> list[Paper]:
    """Read the list."""
    text = files("chunkwise_lab.studies").joinpath("items.toml").read_text(encoding="utf-8")
    return [
        Paper(
            paper["number"],
            paper["study"],
            paper["title"],
            tuple(map(_item, paper["items"])),
        )
        for paper in tomllib.loads(text)["paper"]
    ]


def _item(values: Mapping[str, Any]) -> Item:
    fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
    return Item(**fields)


def verdicts(results: Iterable[StudyResults]) -> dict[str, Word]:
    """Judge saved results; return the words by study/experiment/claim."""
    found: dict[str, Word] = {}
    for one in sorted(results, key=lambda one: one.scale == "quick"):
        if one.target is not None:
            continue  # Of the user's own data.
        for judged in judge_all(load(one.source or one.study), one):
            name = f"{one.study}/{judged.experiment.id}/{judged.claim.id}"
            if found.get(name, "cannot tell") in ("cannot tell", "not measured"):
                found[name] = judged.verdict.word
    return found
