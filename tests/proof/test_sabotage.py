"""Does each writing call of a run that goes wrong end in an error, or in a right file?

Each `pwrite`, `fsync`, `rename` and so on of `repack` and `fix` flips a bit, is dropped, writes
half, or fails.  Then there is an error and the source is what it was; or the result is right.
Nothing else, and no process that ends by a signal.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np
import pytest

from tests.support.sabotage import WITH_DATA, Done, Plan, Server, some

# Of calls that hand over bytes.
BITS = ("flip", "short")
FAULTS = ("flip", "drop", "short", "enospc", "eio...", "late")
TEXTS = [f"some text {i}" for i in range(200)]
NUMBERS = np.arange(60_000)


def write(path: Path) -> None:
    with h5py.File(path, "w") as f:
        f.create_dataset("text", data=TEXTS, chunks=(50,), compression=1)
        f.create_dataset("z", data=NUMBERS, chunks=(20,), compression=1)
        f["text"].attrs["words"] = ["a", "b"]
        f["refs"] = f["z"].ref


def is_right(path: Path) -> bool:
    """Whether a reader gets what there was."""
    try:
        with h5py.File(path) as f:
            text = [one.decode() for one in f["text"][:]]
            return (
                text == TEXTS
                and np.array_equal(f["z"][:], NUMBERS)
                and list(f["text"].attrs["words"]) == ["a", "b"]
                and f[f["refs"][()]] == f["z"]
            )
    except (OSError, RuntimeError, KeyError, UnicodeDecodeError):
        return False


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Path, bytes]]:
    folder = tmp_path_factory.mktemp("sabotage")
    write(folder / "kept.h5")
    kept = (folder / "kept.h5").read_bytes()
    with Server("tests.proof.sabotaged", folder) as server:
        yield server, folder, kept


def attempt(server: tuple[Server, Path, bytes], name: str, plan: Plan | None) -> tuple[Done, str]:
    """Run once in a new folder; say what is wrong with the outcome, nothing if it is right."""
    serving, folder, kept = server
    work = folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    source, target = work / "a.h5", work / "b.h5"
    source.write_bytes(kept)
    done = serving.run(name, work, plan)
    if done.crashed:
        return done, "ended by a signal"
    if name == "repack" and source.read_bytes() != kept:
        return done, "the source changed"
    result = target if name == "repack" else source
    if done.code == 0 and not is_right(result):
        return done, "done, and wrong"
    if done.code != 0 and result.exists() and not is_right(result):
        return done, f"exit code {done.code}, and a wrong file in place"
    return done, ""


@pytest.mark.parametrize("name", ["repack", "in_place", "fix"])
def test_a_run_of_which_nothing_goes_wrong(server: tuple[Server, Path, bytes], name: str) -> None:
    done, wrong = attempt(server, name, None)
    assert (done.code, wrong) == (0, ""), done.out + done.err
    assert {"pwrite", "fsync"} <= {call.name for call in done.calls}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", ["repack", "in_place", "fix"])
def test_each_call_that_goes_wrong(
    server: tuple[Server, Path, bytes], name: str, fault: str
) -> None:
    clean, _ = attempt(server, name, None)
    found = []
    struck = 0
    meant = [one for one in clean.calls if fault not in BITS or one.name in WITH_DATA]
    for call in some(meant):
        done, wrong = attempt(server, name, Plan(call.number, fault))
        struck += bool(done.struck)
        if wrong:
            found.append(f"{call}: {wrong}: {done.out[-300:]}{done.err[-300:]}")
    assert struck > 3
    assert not found, "\n".join(found)
