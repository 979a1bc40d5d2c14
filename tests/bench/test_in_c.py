"""Do the lines of C that bench advises do what it says, compiled and run as pasted?"""

from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from chunkwise.remedy.records import ReadOnce, SetCache
from chunkwise.remedy.spelling import in_c
from tests.bench.test_explain import ALL, CUBE, LINE, advise, cell
from tests.support.processes import ran
from tests.support.tools import require_tool

VALUES = np.arange(24 * 30, dtype=">i4").reshape(24, 30)
ODD_NAMES = ["t", "g/t", "it's", 'say "hi"', "back\\slash", "é", "new\nline", "why??=", "a%d"]
PROGRAM = r"""
#include <hdf5.h>
#include <stdlib.h>
#include <stdio.h>
int main(void) {
%s
  hid_t in_force = H5Dget_access_plist(dataset);
  size_t nslots, nbytes; double w0;
  H5Pget_chunk_cache(in_force, &nslots, &nbytes, &w0);
  printf("%%zu %%zu", nslots, nbytes);
%s
  return 0;
}
"""
SUM = """
  long long sum = 0;
  for (hssize_t i = 0; i < n; i++) sum += ((int *)array)[i];
  printf(" %lld", sum);
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    require_tool("h5cc")
    return tmp_path


def make(path: Path, name: str) -> Path:
    with h5py.File(path, "w") as file:
        file.create_dataset(name, data=VALUES, chunks=(4, 30), compression=1)
    return path


def run(lines: str, folder: Path, then: str = "") -> list[int]:
    """Compile lines in a program of their own, and give the numbers that it prints."""
    (folder / "pasted.c").write_text(PROGRAM % (lines, then), encoding="utf-8")
    options = ["-Wall", "-Werror", "-Wno-unused-variable", "-o", "pasted"]
    built = ran(["h5cc", "pasted.c", *options], cwd=folder, timeout=120)  # fmt: skip
    assert built.returncode == 0, built.stderr
    done = ran(["./pasted"], cwd=folder, timeout=60)
    assert done.returncode == 0, done.stderr
    return [int(word) for word in done.stdout.split()]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_all_is_read_once(folder: Path, name: str) -> None:
    path = make(folder / f"{name.replace('/', '-')}.h5", name)
    *_, found = run(in_c(ReadOnce(path.name, name)) or "", folder, SUM)
    assert found == VALUES.sum()


@pytest.mark.parametrize("name", ODD_NAMES)
def test_the_cache_is_in_force(folder: Path, name: str) -> None:
    path = make(folder / f"{name.replace('/', '-')}.h5", name)
    assert run(in_c(SetCache(path.name, name, 3 << 20, 1009)) or "", folder) == [1009, 3 << 20]


def test_a_command_has_no_like_in_c() -> None:
    long = replace(CUBE, shape=(730, 600, 600))
    line = replace(LINE, block=(730, 1, 1))
    advice = advise(long, cell(long, line, 1.2e6), cell(long, replace(ALL, block=long.shape), 3.5))
    assert str(advice.fix).startswith("chunkwise repack")
    assert advice.in_c is None
