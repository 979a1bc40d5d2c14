"""The attacks of `tests/attack`, a few attempts each; `make attack` makes many."""

from pathlib import Path

import pytest

from tests.attack import load, names


@pytest.mark.parametrize("name", names())
@pytest.mark.slow
def test_attack(name: str, tmp_path: Path) -> None:
    attack = load(name)
    for seed in range(attack.SHORT):
        folder = tmp_path / str(seed)
        folder.mkdir()
        attack.attempt(seed, folder)
