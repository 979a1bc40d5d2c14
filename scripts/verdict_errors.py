"""How often is a verdict wrong, and how often does it say the same twice?

Makes up runs whose truth is known, with noise as timings have it, and judges them as
`chunkwise compare` does, and as simpler rules would.  docs/compare.md holds what this
prints; it takes some seconds.

    python scripts/verdict_errors.py
    python scripts/verdict_errors.py --times 5000 --threshold 1.1
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
import statistics
from collections.abc import Callable
from dataclasses import dataclass

from chunkwise.measure.compare import match
from chunkwise.measure.saved import Sample
from chunkwise.measure.verdict import THRESHOLD, verdict

REPEATS = (3, 5, 10)
RATIOS = (1.0, 1.5, 2.0)
# What a trial takes besides its reads: the checksums, in parts of the reads' own time.
CHECKSUMS = 0.1


@dataclass(frozen=True)
class Noise:
    """How timings differ from what they should be; each of these as a logarithm."""

    name: str  # For the table
    spread: float  # Of the repeats
    outliers: float = 0.0  # The share of repeats that take 1.5 to 4 times as long
    drift: float = 0.0  # The spread of whole runs, and of the slope within a run
    # Whether every second run shares the processor with others, and takes 1.2 to 2.5 times as
    # long.
    busy: bool = False


NOISES = (
    Noise("5% spread", 0.05),
    Noise("10% spread", 0.10),
    Noise("20% spread", 0.20),
    Noise("30% spread", 0.30),
    Noise("5%, 10% outliers", 0.05, outliers=0.10),
    Noise("10%, 5% outliers", 0.10, outliers=0.05),
    Noise("5%, drift 5%", 0.05, drift=0.05),
    Noise("5%, busy runs", 0.05, busy=True),
)


def run(noise: Noise, repeats: int, ratio: float, chance: random.Random) -> Sample:
    """Make up the repeats of one trial in one run."""
    shift, slope = chance.gauss(0, noise.drift), chance.gauss(0, noise.drift)
    busy = chance.uniform(1.2, 2.5) if noise.busy and chance.random() < 0.5 else 1.0
    totals: list[float] = []
    processor: list[float | None] = []
    for i in range(repeats):
        level = chance.gauss(0, noise.spread) + shift + slope * (2 * i / (repeats - 1) - 1)
        if chance.random() < noise.outliers:
            level += chance.uniform(math.log(1.5), math.log(4))
        work = ratio * math.exp(level)
        totals.append(work * busy)
        processor.append(work * (1 + CHECKSUMS))
    parameters = {"reader": "libhdf5"}
    return Sample(parameters, "all", totals, processor, page_cache="warm", status="ok")


def by_medians(base: Sample, other: Sample, threshold: float) -> str:
    """Judge by the ratio of medians alone."""
    ratio = statistics.median(other.total_s) / statistics.median(base.total_s)
    if ratio > threshold:
        return "slower"
    return "faster" if ratio < 1 / threshold else "same"


def by_ranks(base: Sample, other: Sample, threshold: float) -> str:
    """Judge by the exact interval of Hodges and Lehmann, 90 percent or just above."""
    ratios = sorted(b / a for a, b in itertools.product(base.total_s, other.total_s))
    left_out = {3: 0, 5: 4, 10: 27}[len(base.total_s)]
    low, high = ratios[left_out], ratios[-1 - left_out]
    if low > threshold:
        return "slower"
    if high < 1 / threshold:
        return "faster"
    return "same" if low > 1 / threshold and high < threshold else "cannot tell"


def by_verdict(base: Sample, other: Sample, threshold: float) -> str:
    """Judge as within one run: by the times alone."""
    return verdict(base.total_s, other.total_s, threshold).word


def by_compare(base: Sample, other: Sample, threshold: float) -> str:
    """Judge as `chunkwise compare` does: by the times without waiting."""
    return match(base, other, threshold).word


RULES: dict[str, Callable[[Sample, Sample, float], str]] = {
    "medians": by_medians,
    "ranks": by_ranks,
    "verdict": by_verdict,
    "compare": by_compare,
}


def main() -> None:
    """Print a table for each rule."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--times", type=int, default=400, help="comparisons for each figure")
    parser.add_argument("--threshold", type=float, default=THRESHOLD)
    arguments = parser.parse_args()
    for name, rule in RULES.items():
        print(f"{name}, threshold {arguments.threshold:g}; 3 / 5 / 10 repeats, in percent\n")
        print("| noise | wrong | same | twice alike | 1.5x found | 2x found | contradicted |")
        print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
        for noise in NOISES:
            found = [
                figures(rule, noise, repeats, arguments.times, arguments.threshold)
                for repeats in REPEATS
            ]
            cells = (
                " / ".join(f"{100 * v:.{i in (0, 5):d}f}" for v in column)
                for i, column in enumerate(zip(*found, strict=True))
            )
            print(f"| {noise.name} | {' | '.join(cells)} |")
        print()


def figures(
    rule: Callable[[Sample, Sample, float], str],
    noise: Noise,
    repeats: int,
    times: int,
    threshold: float = THRESHOLD,
) -> list[float]:
    """Judge runs of which the truth is known; each comparison is made twice."""
    chance = random.Random(f"{noise.name} {repeats}")
    found, contradicted = [], 0
    for ratio in RATIOS:
        words = [
            rule(run(noise, repeats, 1.0, chance), run(noise, repeats, ratio, chance), threshold)
            for _ in range(2 * times)
        ]
        pairs = list(zip(words[::2], words[1::2], strict=True))
        contradicted += sum(a != b and "cannot tell" not in (a, b) for a, b in pairs)
        share = {word: words.count(word) / len(words) for word in ("slower", "faster", "same")}
        if ratio == 1.0:
            found += [share["slower"] + share["faster"], share["same"]]
            found.append(sum(a == b for a, b in pairs) / times)
        else:
            found.append(share["slower"])
    return [*found, contradicted / (times * len(RATIOS))]


if __name__ == "__main__":
    main()
