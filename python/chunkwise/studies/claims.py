"""Does what a paper says still hold, by today's figures?

A claim names one of `RULES` with its settings, and is judged by the rows of its experiment:
it holds, no longer holds, is reversed, cannot be told, or was not measured; with a sentence
that has today's numbers in it.

Settings that every rule takes: ``where``, which rows count; ``over`` with ``total``, a label
over which rows are summed up first (``mean`` or ``sum``); ``words``, what two sides are called
in the sentence, where their settings do not say it well.
"""

from __future__ import annotations

from collections.abc import Sequence

from chunkwise.studies.comparing import samples
from chunkwise.studies.results import Row
from chunkwise.studies.rules import RULES, Evidence, Verdict, Word
from chunkwise.studies.study import Claim, Statistic, matches


def judge(claim: Claim, rows: Sequence[Row], statistic: Statistic) -> Verdict:
    """Apply a claim's rule to the rows of its experiment."""
    settings = claim.settings
    wanted = [row for row in rows if matches(row.point, settings.get("where", {}))]
    found = samples(
        wanted, claim.figure, statistic, settings.get("over"), settings.get("total", "mean")
    )
    usable = [sample for sample in found if min(sample.values) >= 0]
    return RULES[claim.rule].judge(Evidence(claim, wanted, usable))


__all__ = ["RULES", "Verdict", "Word", "judge"]
