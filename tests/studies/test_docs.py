"""Does docs/studies.md name all that a study's files and results can say?"""

import re
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from chunkwise_lab.studies.figures import FIGURES
from chunkwise_lab.studies.load import NAMES
from chunkwise_lab.studies.own_data import PLACEHOLDERS
from chunkwise_lab.studies.probes import PROBES
from chunkwise_lab.studies.results import Outcome, StudyResults
from chunkwise_lab.studies.rules import RULES
from chunkwise_lab.studies.study import Claim, Data, Experiment, Plot, Published, Run, Study

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TEXT = (Path(__file__).resolve().parents[2] / "docs/studies.md").read_text(encoding="utf-8")
# What the files write otherwise than the classes have it.
OTHERWISE = {
    "disk_nbytes": "disk", "experiments": "files", "options": "quick", "spaces": "axes",
    "runs": "run", "plots": "plot", "claims": "claim",
}  # fmt: skip


@pytest.mark.parametrize(
    "names",
    [NAMES, FIGURES, RULES, PLACEHOLDERS, PROBES],
    ids=["studies", "figures", "rules", "placeholders", "probes"],
)
def test_every_name_is_explained(names: tuple[str, ...]) -> None:
    assert [name for name in names if f"`{name}`" not in TEXT] == []


@pytest.mark.parametrize("kind", [StudyResults, Outcome])
def test_every_key_of_results_is_explained(kind: type[StudyResults | Outcome]) -> None:
    assert [one.name for one in fields(kind) if f"`{one.name}`" not in TEXT] == []


def test_every_key_of_the_files_is_shown() -> None:
    blocks = re.findall(r"^```toml\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
    shown = {key for block in blocks for key in _keys(tomllib.loads(block))}
    for kind in (Study, Data, Experiment, Run, Published, Plot, Claim):
        names = {OTHERWISE.get(one.name, one.name) for one in fields(kind)}
        # A dataset's name is the key that its table has; a claim's settings are its rule's.
        assert names - shown - {"name", "settings"} == set(), kind
    settings = {*RULES["ratio"].sides, "words", "least", "published", "advice"}
    assert settings <= shown


def _keys(values: object) -> set[str]:
    if isinstance(values, dict):
        return set(values).union(*map(_keys, values.values()))
    return set().union(*map(_keys, values)) if isinstance(values, list) else set()
