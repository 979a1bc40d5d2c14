"""Random sequences that look for lost data, wrong values and crashes.

Each module here is one attack. It has

- ``SHORT``: how many attempts the test suite makes (a few seconds' worth);
- ``attempt(seed, folder)``: one attempt, the same for the same seed. It works in the empty
  `folder` and raises an AssertionError that says what was wrong.

``make attack`` runs them all for as long as ``SECONDS`` says, in child processes, so that a
crash or a hang is a finding with a seed and not the end of the run.  One attempt again:
``python -m tests.attack NAME --seed 123``.
"""

import importlib
import pkgutil
from pathlib import Path
from typing import Protocol, cast


class Attack(Protocol):
    """What each module in this folder is."""

    SHORT: int

    def attempt(self, seed: int, folder: Path) -> None:
        """One attempt; raises an AssertionError for a finding."""


def names() -> list[str]:
    """All attacks, by name."""
    found = pkgutil.iter_modules([str(Path(__file__).parent)])
    return sorted(module.name for module in found if not module.name.startswith("_"))


def load(name: str) -> Attack:
    """Import one attack."""
    return cast("Attack", importlib.import_module(f"tests.attack.{name}"))
