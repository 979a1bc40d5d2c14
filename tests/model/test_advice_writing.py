"""Do the lines for a writer in C and Fortran, as pasted, encode each chunk once?

The program writes step by step, as models do.  What it encodes is counted in zlib's own
function, which the program defines in its place.
"""

import math
import subprocess
from pathlib import Path

import h5py
import numpy as np
import pytest

from chunkwise.remedy.fix import Tool
from tests.support.remedied import rechunk
from tests.support.tools import require_tool

SHAPE, CHUNKS = (60, 120, 150), (20, 40, 50)
WHOLE = math.prod(-(-n // c) for n, c in zip(SHAPE, CHUNKS, strict=True))

COUNTER = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
static int encodes;
typedef unsigned char bytes;
int compress2(bytes *to, unsigned long *n, const bytes *from, unsigned long m, int l)
{
    int (*real)(bytes *, unsigned long *, const bytes *, unsigned long, int) =
        dlsym(RTLD_NEXT, "compress2");
    encodes++;
    return real(to, n, from, m, l);
}
__attribute__((destructor)) static void tell(void) { fprintf(stderr, "encodes=%d\\n", encodes); }
"""

IN_C = """
#include <hdf5.h>
static float step[120 * 150];
int main(void)
{
    hsize_t now[3] = {1, 120, 150}, most[3] = {H5S_UNLIMITED, 120, 150}, one[3] = {1, 120, 150};
    hid_t file = H5Fcreate("out.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t type = H5T_NATIVE_FLOAT, space = H5Screate_simple(3, now, most);
    @LINES@
    hid_t memory = H5Screate_simple(3, one, NULL);
    for (hsize_t t = 0; t < 60; t++) {
        hsize_t start[3] = {t, 0, 0};
        for (int i = 0; i < 120 * 150; i++) step[i] = (float)(t * 7 + i % 13);
        now[0] = t + 1;
        H5Dset_extent(dataset, now);
        hid_t there = H5Dget_space(dataset);
        H5Sselect_hyperslab(there, H5S_SELECT_SET, start, NULL, one, NULL);
        if (H5Dwrite(dataset, type, memory, there, H5P_DEFAULT, step) < 0) return 1;
        H5Sclose(there);
    }
    H5Dclose(dataset);
    return H5Fclose(file) < 0;
}
"""

IN_FORTRAN = """
program writer
  use hdf5
  implicit none
  integer(hid_t) :: file, type, space, dataset, memory, there
  integer(hsize_t) :: now(3), most(3), one(3), start(3)
  integer :: error, t, i, j
  real :: step(150, 120, 1)
  call h5open_f(error)
  now = [150_hsize_t, 120_hsize_t, 1_hsize_t]
  one = now
  most = [150_hsize_t, 120_hsize_t, H5S_UNLIMITED_F]
  call h5fcreate_f("out.h5", H5F_ACC_TRUNC_F, file, error)
  type = H5T_NATIVE_REAL
  call h5screate_simple_f(3, now, space, error, most)
@LINES@
  call h5screate_simple_f(3, one, memory, error)
  do t = 0, 59
    do j = 0, 119
      do i = 0, 149
        step(i + 1, j + 1, 1) = real(t * 7 + mod(j * 150 + i, 13))
      end do
    end do
    now(3) = t + 1
    call h5dset_extent_f(dataset, now, error)
    call h5dget_space_f(dataset, there, error)
    start = [0_hsize_t, 0_hsize_t, int(t, hsize_t)]
    call h5sselect_hyperslab_f(there, H5S_SELECT_SET_F, start, one, error)
    call h5dwrite_f(dataset, H5T_NATIVE_REAL, step, one, error, memory, there)
    if (error /= 0) stop 1
    call h5sclose_f(there, error)
  end do
  call h5dclose_f(dataset, error)
  call h5fclose_f(file, error)
  call h5close_f(error)
end program writer
"""

PROGRAMS: dict[Tool, tuple[str, str, str]] = {
    "C": ("h5cc", "writer.c", IN_C),
    "Fortran": ("h5fc", "writer.f90", IN_FORTRAN),
}


def encodes(tool: Tool, lines: str, folder: Path) -> int:
    """Compile a writer with these lines, run it, check what it wrote, and count its encodes."""
    compiler, name, program = PROGRAMS[tool]
    require_tool(compiler)
    if tool == "Fortran":
        require_tool("gfortran")
    (folder / name).write_text(program.replace("@LINES@", lines))
    (folder / "counter.c").write_text(COUNTER)
    require_tool("cc")
    for command in (
        ["cc", "-c", "counter.c"],
        [compiler, name, "counter.o", "-o", "writer", "-ldl"],
    ):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    done = subprocess.run(["./writer"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with h5py.File(folder / "out.h5") as file:
        assert file["g_t"].chunks == CHUNKS
        steps, places = np.arange(60)[:, None] * 7, np.arange(120 * 150)[None] % 13
        assert np.array_equal(file["g_t"][...].reshape(60, -1), steps + places)
    return int(done.stderr.rpartition("encodes=")[2])


def lines_of(tool: Tool) -> str:
    fixes = rechunk("a.h5", "g_t", CHUNKS, "shuffle+deflate:1", shape=SHAPE, itemsize=4)
    (text,) = [fix.text for fix in fixes if fix.tool == tool and fix.writing]
    return text


@pytest.mark.parametrize("tool", PROGRAMS)
def test_each_chunk_is_encoded_once(tool: Tool, tmp_path: Path) -> None:
    lines = lines_of(tool)
    assert "Each step touches 9 chunks" in lines
    assert encodes(tool, lines, tmp_path) == WHOLE


def test_without_the_cache_chunks_are_encoded_again_and_again(tmp_path: Path) -> None:
    """What the lines spare: else the test above would show nothing."""
    lines = lines_of("C").replace("dcpl, dapl)", "dcpl, H5P_DEFAULT)")
    assert encodes("C", lines, tmp_path) > 5 * WHOLE


def test_no_fortran_for_what_it_cannot_say() -> None:
    for name, filters in (("t", "bitshuffle:lz4"), ("é", "none"), ("x" * 200, "none")):
        fixes = rechunk("a.h5", name, (10, 20), filters)
        assert all(fix.tool != "Fortran" for fix in fixes)
