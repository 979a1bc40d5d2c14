"""Does bad input end in one line, exit code 2, no traceback and nothing left behind?

What the line says of each kind of file is in `test_opening`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from tests.support.processes import ran

CHUNKWISE = Path(sys.executable).with_name("chunkwise")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["text.h5"], 2, "not an HDF5 file"),
        (["a.nc"], 2, "chunkwise repack a.nc a_nc4.nc"),
        (["cut.h5"], 1, "truncated"),
        (["empty.h5"], 1, "the file is empty"),
        (["cat.h5"], 2, "did you mean 'cut.h5'?"),
        (["runs"], 2, "a directory"),
        (["sound.h5", "temprature"], 2, "did you mean '/temperature'?"),
        (["sound.h5", "g"], 2, "'/g/x'"),
    ],
)
def test_bad_input_is_one_line_and_its_code(
    tmp_path: Path, words: list[str], code: int, said: str
) -> None:
    (tmp_path / "text.h5").write_text("temperature,pressure\n")
    (tmp_path / "a.nc").write_bytes(b"CDF\x01" + bytes(100))
    (tmp_path / "empty.h5").touch()
    (tmp_path / "runs").mkdir()
    for name in ("cut.h5", "sound.h5"):
        with h5py.File(tmp_path / name, "w") as file:
            file["temperature"], file["g/x"] = np.arange(1000), 1
    os.truncate(tmp_path / "cut.h5", 5000)
    before = sorted(tmp_path.rglob("*"))
    done = ran([CHUNKWISE, "inspect", *words], cwd=tmp_path)
    assert (done.returncode, done.stdout) == (code, "")
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("chunkwise: ")
    assert said in done.stderr
    assert sorted(tmp_path.rglob("*")) == before


def test_a_name_that_the_terminal_cannot_show_is_escaped(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "names.h5", "w") as f:
        f["höhe"] = 1
    environment = {**os.environ, "LC_ALL": "C", "PYTHONIOENCODING": "ascii"}
    done = ran([CHUNKWISE, "inspect", tmp_path / "names.h5"], env=environment, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "h\\xf6he" in done.stdout
