"""Is what `--json` prints what its schema says, for each command that has it?"""

import importlib
import json
import re
import sys
from pathlib import Path
from typing import Any

import click
import h5py
import numpy as np
import pytest

from chunkwise.cli.main import COMMANDS, cli
from chunkwise_lab.studies.claims import judge_all
from chunkwise_lab.studies.iotest.run import Walked
from chunkwise_lab.studies.iotest.settings import Settings
from tests.support.commands import ended
from tests.support.reports import made_up

jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
schemas: Any = importlib.import_module("schemas")

BENCH = "bench a.h5 --access row=1x50 --budget 60s --repeat 1 --json"
# The format, and a command that prints it.
PRINTS = (
    ("chunkwise-inspect", "inspect a.h5 --json"),
    ("chunkwise-inspect", "inspect a.h5 broken.h5 --json"),
    ("chunkwise-bench", BENCH),
    ("chunkwise-bench", "hstest a.h5 x --count 2 --budget 1s --json"),
    ("chunkwise-advise", "advise a.h5 x --access 1x50 --budget 1s --json"),
    ("chunkwise-compare", "compare run.json run.json --json"),
    ("chunkwise-fix", "fix a.h5 -o fixed.h5 --dry-run --json"),
    ("chunkwise-repack", "repack a.h5 b.h5 --chunk 10x10 --json"),
    ("chunkwise-repack-plan", "repack a.h5 c.h5 --chunk 10x10 --dry-run --json"),
    ("chunkwise-repack-file", "repack a.h5 broken.h5 --chunk 10x10 -o folder/ --json"),
    ("chunkwise-verify-file", "verify a.h5 --json"),
    ("chunkwise-verify-file", "verify a.h5 broken.h5 --json"),
    ("chunkwise-salvage", "verify a.h5 --salvage saved.h5 --json"),
    ("chunkwise-index", "index a.h5 -o a.json --json"),
    ("chunkwise-mpi-check", "mpi-check --json"),
    ("chunkwise-mpi-model", "mpi-model --json"),
)
# What takes long, or MPI.
LONG = {"chunkwise-study", "chunkwise-iotest"}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("schemas")
    with h5py.File(folder / "a.h5", "w") as f:
        values = np.arange(2500, dtype="f4").reshape(50, 50)
        f.create_dataset("x", data=values, chunks=(50, 50), compression=1)
        f.create_dataset("g/y", data=b"text")
    (folder / "broken.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(20))
    return folder


@pytest.mark.parametrize("name", schemas.PRINTED)
def test_a_schema_is_that_of_its_record(name: str) -> None:
    kept = (schemas.FOLDER / f"{name}.json").read_text("utf-8")
    assert kept == schemas.text(name), "python scripts/schemas.py; a key that goes: a new version"
    jsonschema.Draft202012Validator.check_schema(json.loads(kept))


@pytest.mark.parametrize(("name", "words"), PRINTS, ids=[words for _, words in PRINTS])
def test_what_is_printed(name: str, words: str, files: Path) -> None:
    if "run.json" in words:
        (files / "run.json").write_text(ended(*BENCH.split(), cwd=files).stdout)
    done = ended(*words.split(), cwd=files)
    text = done.stdout
    assert done.returncode in (0, 1, 2, 3), done.stderr
    several = "broken.h5" in words
    records = [json.loads(one) for one in (text.splitlines() if several else [text])]
    assert len(records) == (2 if several else 1)
    for record in records:
        jsonschema.Draft202012Validator(schemas.schema(name)).validate(record)


@pytest.mark.parametrize("name", sorted(LONG))
def test_what_is_measured_for_long(name: str) -> None:
    results, study = made_up()
    verdicts = [one.to_json() for one in judge_all(study, results)]
    record = {
        "chunkwise-study": {**results.to_json(), "verdicts": verdicts},
        "chunkwise-iotest": Walked(Settings().on(1), 1, "1.14.6", []).to_json(),
    }[name]
    jsonschema.Draft202012Validator(schemas.schema(name)).validate(json.loads(json.dumps(record)))


def test_each_command_with_json_has_a_schema() -> None:
    context = click.Context(cli)
    assert isinstance(cli, click.Group)
    having = set()
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        if any("--json" in option.opts for option in command.params):
            having.add(name)
    tried = {words.split()[0] for _, words in PRINTS} | {"study"}
    assert having <= tried
    assert {name for name, _ in PRINTS} | LONG == set(schemas.PRINTED)


def test_the_page_names_each_schema() -> None:
    page = (ROOT / "docs" / "stability.md").read_text("utf-8")
    linked = re.findall(r"_static/schemas/([a-z-]+)\.json", page)
    assert sorted(linked) == sorted(schemas.PRINTED)
