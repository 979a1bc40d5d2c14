"""Do `chunkwise.inspect` and `chunkwise.bench` return what the commands print?"""

import inspect
import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import chunkwise
from chunkwise.errors import DatasetNotFoundError, UsageError
from tests.support.commands import run
from tests.support.processes import python


@pytest.fixture
def file(tmp_path: Path) -> Path:
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f.create_dataset("g/x", data=np.zeros((12_000, 2)), chunks=(1, 2))
    return tmp_path / "a.h5"


def printed(*words: object) -> Any:
    done = run(*words, "--json")
    assert done.code == 0, done.err
    return json.loads(done.out)


@pytest.mark.parametrize(("words", "options"), [
    (("--no-sample",), {"sample": False}),
    (("g/x", "--no-sample", "--for", "netcdf-c"),
     {"dataset": "g/x", "sample": False, "readers": ["netcdf-c"]}),
])  # fmt: skip
def test_inspect(file: Path, words: tuple[str, ...], options: dict[str, Any]) -> None:
    facts = chunkwise.inspect(file, **options)
    assert facts.findings
    given = json.loads(json.dumps(facts.as_dict()))
    assert given == printed("inspect", file, *words)


def test_bench(file: Path, tmp_path: Path) -> None:
    save = str(tmp_path / "trials.jsonl")
    results = chunkwise.bench(
        str(file), "g/x", access=["100x2", "all"], reader="h5py", cache=[0, "1MiB"],
        properties={"sieve": "64KiB"}, repeat=1, seconds=300, save=save,
    )  # fmt: skip
    assert len(results.records) == 4
    # The command finds all trials made, so that its figures are the same.
    words = (
        "--access", "100x2", "--access", "all", "--reader", "h5py", "--cache", "0,1MiB",
        "--set", "sieve=64KiB", "--repeat", "1", "--budget", "300", "--save", save,
    )  # fmt: skip
    told = printed("bench", file, "g/x", *words)
    given = json.loads(json.dumps(results.as_dict()))
    assert given.pop("elapsed_s") != told.pop("elapsed_s")
    assert given == told


def test_every_option_has_its_parameter() -> None:
    from chunkwise.cli.bench import command

    options = {str(option.name) for option in command.params}
    parameters = set(inspect.signature(chunkwise.bench).parameters)
    # A sample's size is in bytes, as everywhere in Python.  A trace holds access patterns.
    theirs = {"file", "sample", "as_json", "trace"}
    ours = {"path", "sample_nbytes", "check", "progress"}
    assert options - theirs == parameters - ours


def test_what_makes_no_sense_is_refused(file: Path) -> None:
    with pytest.raises(UsageError, match="no reader is called 'hdf'"):
        chunkwise.inspect(file, readers=["hdf"])
    with pytest.raises(DatasetNotFoundError):
        chunkwise.inspect(file, "y")
    with pytest.raises(UsageError, match="properties: no 'cache'"):
        chunkwise.bench(file, properties={"cache": 1})
    with pytest.raises(UsageError, match="unknown reader"):
        chunkwise.bench(file, reader="hdf")


def test_modules_do_not_take_the_functions_places() -> None:
    code = """
import importlib, pkgutil
import chunkwise
for room in ("inspection", "measure", "repacking", "trials", "model", "cli"):
    package = importlib.import_module(f"chunkwise.{room}")
    for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)
for name in chunkwise.__all__:
    if name != "__version__":
        assert callable(getattr(chunkwise, name)), name
"""
    python(code)
