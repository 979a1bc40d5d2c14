"""Do the lines of C that bench advises do what it says, compiled and run as pasted?"""

from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np

from chunkwise.remedy.records import ReadOnce, SetCache
from chunkwise.remedy.spelling import in_c
from tests.bench.test_explain import ALL, CUBE, LINE, advise, cell
from tests.support.processes import ran
from tests.support.tools import require_tool

VALUES = np.arange(24 * 30, dtype=">i4").reshape(24, 30)
ODD_NAMES = ["t", "g/t", "it's", 'say "hi"', "back\\slash", "é", "new\nline", "why??=", "a%d"]
# Of each name: all is read once, then with the cache in force.
PROGRAM = r"""
#include <hdf5.h>
#include <stdlib.h>
#include <stdio.h>
static void cached_%(number)d(void) {
%(cached)s
  hid_t in_force = H5Dget_access_plist(dataset);
  size_t nslots, nbytes; double w0;
  H5Pget_chunk_cache(in_force, &nslots, &nbytes, &w0);
  printf("%%zu %%zu", nslots, nbytes);
}
static void read_%(number)d(void) {
%(once)s
  long long sum = 0;
  for (hssize_t i = 0; i < n; i++) sum += ((int *)array)[i];
  printf(" %%lld\n", sum);
}
"""


def test_lines_of_c_do_what_they_say(tmp_path: Path) -> None:
    parts, calls = [], []
    for number, name in enumerate(ODD_NAMES):
        path = tmp_path / f"{name.replace('/', '-')}.h5"
        with h5py.File(path, "w") as file:
            file.create_dataset(name, data=VALUES, chunks=(4, 30), compression=1)
        lines = {
            "cached": in_c(SetCache(path.name, name, 3 << 20, 1009)),
            "once": in_c(ReadOnce(path.name, name)),
        }
        parts.append(PROGRAM % {"number": number, **lines})
        calls.append(f"  cached_{number}(); read_{number}();")
    main = "int main(void) {\n" + "\n".join(calls) + "\n  return 0;\n}\n"
    (tmp_path / "pasted.c").write_text("".join(parts) + main, encoding="utf-8")
    options = ["-Wall", "-Werror", "-Wno-unused-variable", "-o", "pasted"]
    built = ran([require_tool("h5cc"), "pasted.c", *options], cwd=tmp_path, timeout=120)
    assert built.returncode == 0, built.stderr
    done = ran(["./pasted"], cwd=tmp_path, timeout=60)
    assert done.returncode == 0, done.stderr
    expected = f"1009 {3 << 20} {VALUES.sum()}"
    assert done.stdout.splitlines() == [expected] * len(ODD_NAMES)


def test_a_command_has_no_like_in_c() -> None:
    long = replace(CUBE, shape=(730, 600, 600))
    line = replace(LINE, block=(730, 1, 1))
    advice = advise(long, cell(long, line, 1.2e6), cell(long, replace(ALL, block=long.shape), 3.5))
    assert str(advice.fix).startswith("chunkwise repack")
    assert advice.in_c is None
