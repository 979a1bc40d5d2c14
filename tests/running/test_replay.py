"""Are the reads of a trace found again, for the same file and for others?"""

from __future__ import annotations

import json
from pathlib import Path

import h5py
import numpy as np
import pytest

from chunkwise.errors import UsageError
from chunkwise.running.trace import recorded
from tests.support.commands import run


@pytest.fixture
def trace(tmp_path: Path) -> str:
    """A trace of two files."""
    for name in ("a.h5", "b.h5"):
        (tmp_path / name).touch()
    datasets = [
        {"file": str(tmp_path / name), "dataset": dataset, "access": access}
        for name, dataset, access in (
            ("a.h5", "/x", ["1x30", "all weight 2"]),
            ("a.h5", "/g/y", ["5@random"]),
            ("b.h5", "/x", ["40x1"]),
            ("b.h5", "/points", []),
        )
    ]
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"datasets": datasets}))
    return str(path)


def test_reads_of_a_dataset(trace: str, tmp_path: Path) -> None:
    a, b = str(tmp_path / "a.h5"), str(tmp_path / "b.h5")
    assert recorded(trace, a, "x") == ("/x", ("1x30", "all weight 2"))
    assert recorded(trace, a, "/g/y") == ("/g/y", ("5@random",))
    assert recorded(trace, b, "x") == ("/x", ("40x1",))
    # The one that took most of the time.
    assert recorded(trace, a, None)[0] == "/x"
    # Of another file, what was read of the same name.
    assert recorded(trace, str(tmp_path / "c.h5"), "/x") == ("/x", ("1x30", "all weight 2"))


def test_what_is_not_there_is_said(trace: str, tmp_path: Path) -> None:
    a, c = str(tmp_path / "a.h5"), str(tmp_path / "c.h5")
    with pytest.raises(UsageError, match="no walk of /z in it; it has walks over /g/y and /x"):
        recorded(trace, a, "z")
    with pytest.raises(UsageError, match="name a dataset"):
        recorded(trace, c, None)
    with pytest.raises(UsageError, match="No such file"):
        recorded(str(tmp_path / "nowhere"), a, "x")
    for content in ("", "[]", "{}", '{"datasets": [1]}', '{"datasets": [{}]}'):
        (tmp_path / "odd.json").write_text(content)
        with pytest.raises(UsageError, match="is no trace"):
            recorded(str(tmp_path / "odd.json"), a, "x")


def test_the_commands_follow_a_trace(tmp_path: Path) -> None:
    """What a program read is what they look at."""
    path, trace = tmp_path / "a.h5", tmp_path / "t.json"
    with h5py.File(path, "w") as file:
        values = np.arange(2000 * 2000, dtype="f4").reshape(2000, 2000)
        file.create_dataset("x", data=values, chunks=(1, 2000), compression=1)
    columns = {"file": str(path), "dataset": "/x", "access": ["2000x1"]}
    trace.write_text(json.dumps({"datasets": [columns]}))

    def ran(*words: str) -> str:
        done = run(*words, "--trace", trace, "--json")
        assert done.code == 0, done.err
        return done.out

    assert {one["code"] for one in json.loads(ran("inspect", str(path)))["findings"]} >= {
        "access-mismatch"
    }
    assert '"2000x1"' in ran("bench", str(path), "--budget", "1")
    advice = ran("advise", str(path), "--budget", "1s")
    assert '"2000x1"' in advice
    assert '"/x"' in advice
